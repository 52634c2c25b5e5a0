"""A folder of an image classifier as Hugging Face's `transformers` saves one: network and images.

``config.json`` names the head and the classes, ``preprocessor_config.json`` says how images are
prepared; both are read here. The network itself is loaded by `transformers`, if it is installed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from torch import nn
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

from dnnlib.custom.own_code import told
from dnnlib.custom.preparation import Preparation

CONFIG, PREPARED = "config.json", "preprocessor_config.json"
HEAD = "ForImageClassification"
# kinds of preparation, with what a size of one number means: both sides, or the short one
SQUARE = {"ViT": True, "DeiT": True, "Beit": True, "Pvt": True, "Siglip": True, "ConvNext": False,
          "Bit": False, "CLIP": False, "MobileNetV1": False, "MobileNetV2": False}
CROPPED = ("DeiT", "Bit", "CLIP", "MobileNetV1", "MobileNetV2")  # unless the file says otherwise
OF_MODELS = {"vit": "ViT", "swin": "ViT", "deit": "DeiT", "beit": "Beit", "convnext": "ConvNext",
             "resnet": "ConvNext"}  # in files that do not name a kind
STEPS = ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb",
         "do_reduce_labels")  # the last two are nothing to do to pixels of an RGB image
WAYS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}  # Pillow's
WHOLE = 384  # from this size on, ConvNext's images are not cropped


@dataclass(frozen=True)
class Processor:
    """What a preparation does to the pixels of a picture, as `transformers` does it.

    ``size``: (height, width), or the short side alone; ``crop``: (height, width), cut from the
    centre, with black where the picture is smaller. None leaves it as it is.

    >>> Processor((4, 4), None, "bicubic")(Image.new("RGB", (9, 5))).size
    (4, 4)
    """

    size: tuple[int, ...] | None
    crop: tuple[int, int] | None
    interpolation: str

    def __call__(self, image: Image.Image) -> Image.Image:
        if self.size is not None:
            image = F.resize(image, [*self.size], InterpolationMode(self.interpolation))
        if self.crop is None:
            return image
        top, left = (int((have - want) / 2) for have, want in zip(image.size[::-1], self.crop))
        return F.crop(image, top, left, *self.crop)

    @property
    def described(self) -> str:
        """In words, as :attr:`Preparation.described`.

        >>> Processor((256,), (224, 224), "bicubic").described
        'scaled to 256 (bicubic), cropped to 224 x 224'
        """
        size, crop = (" x ".join(map(str, sides)) if sides else "" for sides in (
            self.size, self.crop))
        return ", ".join(([f"scaled to {size} ({self.interpolation})"] if size else [])
                         + ([f"cropped to {crop}"] if crop else [])) or "taken as it is"


def load(folder: Path) -> tuple[nn.Module, Preparation]:
    """The network and how its images are prepared; nothing is fetched, and no code of it runs.

    Raises ``ValueError`` for another head than one that gives an image one class, a preparation of
    an unknown kind and weights that are missing, and ``ModuleNotFoundError`` if `transformers` is.
    """
    config = _json(folder, CONFIG)
    _check_head(folder, config)
    preparation = read_preparation(folder, config)
    try:
        from transformers import AutoModelForImageClassification
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("this needs transformers; install it with: pip install "
                                  "transformers", name="transformers") from error
    try:
        model, info = AutoModelForImageClassification.from_pretrained(
            str(folder), local_files_only=True, output_loading_info=True)
    except Exception as error:  # of every kind
        raise ValueError(f"model: transformers cannot load {folder.name}: {told(error)}") from error
    missing = sorted(map(str, [*info["missing_keys"], *info.get("mismatched_keys", ())]))
    if missing:
        raise ValueError(f"model: {folder.name} lacks weights, which would be random: "
                         f"{', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}")
    return model.eval(), preparation


def labels(folder: Path) -> tuple[str, ...] | None:
    """The names of the classes, in the order of the outputs; None if they are numbers alone."""
    given = _json(folder, CONFIG).get("id2label") or {}
    names = tuple(str(given[key]) for key in sorted(given, key=int))
    return None if all(name == f"LABEL_{i}" for i, name in enumerate(names)) else names


def _check_head(folder: Path, config: Mapping) -> None:
    heads = config.get("architectures") or []
    if heads and not any(HEAD in head for head in heads):
        raise ValueError(f"model: {folder.name} has the head {', '.join(heads)}; expected one "
                         f"whose name ends in {HEAD}")
    problem = config.get("problem_type") or (  # one output is trained to be a number there
        "regression" if len(config.get("id2label") or "01") == 1 else "single_label_classification")
    if problem != "single_label_classification":
        raise ValueError(f"model: {folder.name} has the head {', '.join(heads) or HEAD} for "
                         f"{problem}; expected one that gives an image one class")


def read_preparation(folder: Path, config: Mapping) -> Preparation:
    """What ``preprocessor_config.json`` says; ``config``: of the network, if that names no kind.

    Raises ``ValueError`` naming what is missing in it, or cannot be done here.
    """
    given = _json(folder, PREPARED)

    def needed(key: str):
        if given.get(key) is None:
            raise ValueError(f"model: {PREPARED} of {folder.name} lacks {key}")
        return given[key]

    named = given.get("image_processor_type") or given.get("feature_extractor_type") or ""
    kind = (named.removesuffix("Fast").removesuffix("Pil").removesuffix("ImageProcessor")
            .removesuffix("FeatureExtractor") or OF_MODELS.get(config.get("model_type", ""), ""))
    if kind not in SQUARE:
        raise ValueError(f"model: {PREPARED} of {folder.name} is of the kind "
                         f"{named or 'that it does not name'}; expected that of {', '.join(SQUARE)}"
                         "; give the model by FILE.py:FUNCTION, with its transform")
    if other := [key for key, value in given.items()
                 if key.startswith("do_") and value and key not in STEPS]:
        raise ValueError(f"model: {PREPARED} of {folder.name} asks for {', '.join(other)}, which "
                         "is not done here; give the model by FILE.py:FUNCTION, with its transform")
    size = crop = None
    way = "bilinear"
    if given.get("do_resize", True):
        size = _sides(folder, needed("size"), SQUARE[kind])
        way = WAYS.get(needed("resample"), "")
        if not way:
            raise ValueError(f"model: {PREPARED} of {folder.name}: expected resample from 0 to 5, "
                             f"got {given['resample']!r}")
    if kind == "ConvNext" and size is not None:
        short, = size if len(size) == 1 else size[:1]
        size, crop = (((int(short / given.get("crop_pct", 224 / 256)),), (short, short))
                      if short < WHOLE else ((short, short), None))
    elif given.get("do_center_crop", kind in CROPPED):
        height, width = _sides(folder, needed("crop_size"), True)
        crop = height, width
    mean, std = _normalised(folder, given, needed)
    return Preparation(mean=mean, std=std, transform=Processor(size, crop, way))


def _normalised(folder: Path, given: Mapping, needed) -> tuple[tuple | None, tuple | None]:
    """Mean and deviation of pixels in [0, 1], in which the images stay."""
    rescaled = given.get("do_rescale", True)
    if rescaled and abs(255 * given.get("rescale_factor", 1 / 255) - 1) > 1e-4:
        raise ValueError(f"model: {PREPARED} of {folder.name}: expected rescale_factor 1/255, got "
                         f"{given['rescale_factor']!r}")
    if given.get("do_normalize", True):
        mean, std = (tuple(map(float, needed(name))) for name in ("image_mean", "image_std"))
    elif rescaled:
        return None, None
    else:
        mean, std = (0.0,), (1.0,)
    most = 1 if rescaled else 255  # of a pixel, as the network sees it before it is normalised
    return tuple(v / most for v in mean), tuple(v / most for v in std)


def _sides(folder: Path, size, square: bool) -> tuple[int, ...]:
    """(height, width), or the short side alone."""
    if isinstance(size, int):
        return (size, size) if square else (size,)
    if isinstance(size, list | tuple) and len(size) == 2:
        return size[0], size[1]
    if isinstance(size, Mapping) and {*size} == {"height", "width"}:
        return size["height"], size["width"]
    if isinstance(size, Mapping) and {*size} == {"shortest_edge"} and size["shortest_edge"]:
        return (size["shortest_edge"],)
    raise ValueError(f"model: {PREPARED} of {folder.name}: expected a size as height and width, or "
                     f"shortest_edge, got {size!r}")


def _json(folder: Path, name: str) -> Mapping:
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(f"model: {folder} has no {name}; expected a folder as "
                                "transformers saves an image classifier and its processor")
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"model: {path} is no JSON: {error}") from error
    if not isinstance(found, Mapping):
        raise ValueError(f"model: {path}: expected an object, got {type(found).__name__}")
    return found
