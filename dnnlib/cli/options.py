"""What commands of ``dnnlib`` take alike, and how it becomes model and images."""

import logging
from contextlib import contextmanager
from typing import Annotated

import typer

_log = logging.getLogger(__name__)  # to stderr, as it is


def _fraction(text: str) -> float:
    from dnnlib import checks

    try:
        return checks.fraction(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Model = Annotated[str, typer.Option(help="FILE.py:FUNCTION, which returns a torch.nn.Module that "
                                    "gives logits, or it and the transform of its images; "
                                    "torchvision:NAME, timm:NAME, a name from `dnnlib models`; a "
                                    "folder of an image classifier as Hugging Face's transformers "
                                    "saves it; or a file of TorchScript (.pt), torch.export (.pt2) "
                                    "or ONNX.")]
Images = Annotated[str, typer.Option(help="A folder of images, in sub-folders or not; a .parquet "
                                     "file with a column of pictures, or a folder of them; or a "
                                     "list of paths: .txt, or a column `path` in .csv, .tsv, "
                                     ".parquet. The model sees values in [0, 1].")]
Weights = Annotated[str, typer.Option(help="The model's state dict: .safetensors, .pt or .pth.")]
Reference = Annotated[str, typer.Option(
    help="A folder of training images, for the methods that need them.")]
Size = Annotated[int | None, typer.Option(
    help="Pixels a side: images are scaled to it by their short side and cropped at the centre.")]
Resize = Annotated[int | None, typer.Option(help="Instead: pixels of the short side to scale to,")]
Crop = Annotated[int | None, typer.Option(help="and pixels a side to crop to, at the centre.")]
Mean = Annotated[str, typer.Option(
    help="What is taken from the pixels before the model, a channel: 0.485,0.456,0.406.")]
Std = Annotated[str, typer.Option(help="And what they are divided by: 0.229,0.224,0.225.")]
L2 = Annotated[float | None, typer.Option(
    parser=_fraction, metavar="FLOAT", help="{l2}")]
Linf = Annotated[float | None, typer.Option(
    parser=_fraction, metavar="FLOAT", help="{linf} As 0.03 or 8/255.")]
Channels = Annotated[int | None, typer.Option(help="1, gray-scale, or 3.")]
Classes = Annotated[int | None, typer.Option(help="Of a model by name.")]
ClassNames = Annotated[str, typer.Option(
    help="The classes in the order of the model's outputs, a .txt file with a name a line, or with "
         "commas; default ImageNet's, for one of torchvision or timm without --classes, else "
         "numbers.")]
Width = Annotated[float | None, typer.Option(help="Of MobileNet.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or mps; auto: cuda where there is "
                                     "one, else mps, else cpu.")]
Probabilities = Annotated[bool | None, typer.Option(
    "--probabilities/--logits", help="What the model, or the file of outputs, gives; default: a "
                                     "model logits, which are looked at, a file probabilities.")]
Workers = Annotated[int | None, typer.Option(min=0, help="{workers}")]
Scheduler = Annotated[str, typer.Option(
    help="A Dask scheduler, tcp://HOST:8786, whose workers take the blocks; they need the same "
         "files.")]
Processes = Annotated[int | None, typer.Option(
    min=1, help="Processes of this machine that take the blocks side by side, a core each; default "
                "all in one, which suits a GPU and large networks.")]
Strict = Annotated[bool, typer.Option(
    "--strict", help="Stop before any pass if a folder, or an image by its first bytes, cannot be "
                     "read; without it these are listed, and so is what shows it later. The exit "
                     "code is 3 then.")]
BatchSize = Annotated[int, typer.Option(help="{batch_size}")]
Seed = Annotated[int, typer.Option(help="{seed}")]
Iterations = Annotated[int, typer.Option(help="{iterations}")]
Population = Annotated[int | None, typer.Option(help="{population}")]
Labels = Annotated[str, typer.Option(help="{labels}")]
Limit = Annotated[int | None, typer.Option(help="{limit}")]
Layers = Annotated[str, typer.Option(
    help="{layers} With commas, as 'layer3.*'; `dnnlib layers` lists them.")]


def check_kept(test: str, guess: bool) -> None:
    """``ValueError`` if no test can be written to FILE.py, before anything is computed."""
    from pathlib import Path

    from dnnlib.custom import regression_tests

    regression_tests.check_file(Path(test).expanduser())
    if guess:
        raise ValueError("--pytest: only without --estimate, which tries few images")


@contextmanager
def cluster(scheduler: str, processes: int | None = None):
    """A client of the scheduler, or of so many processes, if one of the two is given."""
    if scheduler and processes:
        raise ValueError("--processes: only without --scheduler, whose workers there are already")
    if not scheduler and not processes:
        yield None
        return
    from dnnlib.custom import cluster as clusters

    with clusters.connected(scheduler or None, workers=processes) as client:
        yield client


def names_of(class_names: str, model: str, classes: int | None) -> tuple[str, ...] | None:
    """The classes' names: those given, or else those that are known."""
    from dnnlib import custom

    return (custom.read_names(class_names) if class_names
            else custom.published_names(model, classes))


def read(model: str, weights: str, images: str, reference: str, *, size: int | None,
         resize: int | None, crop: int | None, mean: str, std: str, channels: int | None,
         device: str, classes: int | None, width: float | None, strict: bool = False):
    """The model, the images, and the training images if there are.

    ``strict``: ``ValueError`` for images that cannot be read, as far as their headers tell.
    """
    from dnnlib import checks, custom, inference
    from dnnlib.custom import preparation

    for name, value in {"model": model, "images": images}.items():
        if not value:
            raise ValueError(f"--{name}: expected one; `dnnlib rank --help` shows examples")
    if size is not None and (resize is not None or crop is not None):
        raise ValueError("--size: either it, or --resize and --crop")
    place = inference.device(device)
    given = {k: v for k, v in {"classes": classes, "width": width}.items() if v is not None}
    prepared = {"resize": resize, "crop": crop,
                "mean": checks.numbers(mean, "mean") if mean else None,
                "std": checks.numbers(std, "std") if std else None}
    network = custom.load_model(model, weights or None, size=size or crop, channels=channels,
                                **given)
    published = preparation.of(network)
    if published.transform is not None and (size or resize or crop):
        now = published.with_options(**prepared | ({"resize": size, "crop": size} if size else {}))
        _log.warning("images: %s, as asked for, where the model came with: %s", now.described,
                     published.described)
    network = custom.prepare(network, **prepared).to(place)
    photos = custom.read_photos(images, network, size=size, channels=channels)
    seen = custom.read_photos(reference, network, size=size,
                              channels=photos.shape[0]) if reference else None
    skipped = photos.skipped | (seen.skipped if seen else {})
    if strict and skipped:
        name, why = next(iter(skipped.items()))
        raise ValueError(f"--strict: {len(skipped):,} cannot be read; the first: {name} {why}")
    return network, photos, seen
