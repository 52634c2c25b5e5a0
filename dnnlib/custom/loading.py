"""A person's own classifier, loaded: from code, by name, or from a file of its own."""

import importlib.util
import json
import logging
import math
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from dnnlib import checks, models
from dnnlib.custom import hugging_face
from dnnlib.custom.classifier import Classifier
from dnnlib.custom.formats import SUFFIXES, load_saved
from dnnlib.custom.own_code import told
from dnnlib.custom.preparation import Preparation, prepared
from dnnlib.models import sources
from dnnlib.models.weights import assign, fitting, misfits, read

ENDINGS = {".pt", ".pth", ".bin", ".ckpt", ".tar"}  # of torch.save
_log = logging.getLogger(__name__)  # to stderr, as it is
KINDS = ("FILE.py:FUNCTION, torchvision:NAME, timm:NAME, a folder of Hugging Face, FILE.pt, .pt2 "
         "or .onnx")
METHODS = ("method", "fuzzer")  # are classes; the rest that FILE.py:NAME names are functions


def load_model(name: str, weights: str | Path | None = None, *, size: int | None = None,
               channels: int | None = None, classes: int | None = None, **options) -> nn.Module:
    """A model with its weights, in evaluation mode.

    ``name``:

    - 'FILE.py:FUNCTION': FUNCTION takes nothing and returns a classifier, or a pair of it and the
      transform of its images: see :func:`preparation.prepared`; ``weights`` may be None if it
      loads its own.
    - 'torchvision:resnet18', 'timm:resnet18', of ``classes`` classes: with ``weights``; without,
      with those that the library provides and fetches. Images are prepared as those were.
    - a name from ``dnnlib models``, built for images of ``size`` and ``channels`` (default: its
      paper's) and ``classes``, with ``options`` of :func:`models.build`; needs ``weights``, for
      'mobilenet' also in Keras's layout.
    - a folder of an image classifier as Hugging Face's transformers saves one, with that
      installed: images are prepared as its ``preprocessor_config.json`` says.
    - a file of TorchScript (.pt, .ts), torch.export (.pt2) or ONNX: its outputs are all there is.

    ``weights``: a state dict in a file of safetensors, or of ``torch.save``, read with
    ``weights_only=True``, since other pickles can run code; also in a dict in it, or with names
    that begin with what a wrapper adds: see :func:`dnnlib.models.weights.fitting`; or the
    index.json of sharded ones. Raises ``FileNotFoundError``, ``ValueError`` or ``TypeError`` saying
    what does not fit.

    >>> load_model("lenet5")
    Traceback (most recent call last):
    ValueError: weights: expected a file with those of 'lenet5'; nothing is trained here
    """
    preparation = None
    library, _, inner = name.partition(":")
    if Path(name).suffix in SUFFIXES:
        _only(name, options | ({} if classes is None else {"classes": classes}))
        if weights is not None:
            raise ValueError(f"weights: {name} has its own")
        return load_saved(Path(name).expanduser())
    if name not in models.SPECS and Path(name).expanduser().is_dir():
        _only(name, options | ({} if classes is None else {"classes": classes}))
        if weights is not None:
            raise ValueError(f"weights: {name} has its own")
        model, preparation = hugging_face.load(Path(name).expanduser())
    elif library in ("torchvision", "timm"):
        _only(name, options)
        build = _torchvision if library == "torchvision" else _timm
        model, preparation = build(inner, weights is None, classes, size)
    elif ":" in name or name.endswith(".py"):
        _only(name, options | ({} if classes is None else {"classes": classes}))
        model, preparation = _from_file(name)
    else:
        checks.known(name, models.SPECS, f"model (nor {KINDS})")
        if weights is None:
            raise ValueError(f"weights: expected a file with those of {name!r}; nothing is "
                             "trained here")
        depth, side, _ = models.SPECS[name].shape
        shape = (channels or depth, size or side, size or side)
        model = models.build(name, shape=shape, classes=classes, **options)
    if weights is not None:
        model = _weighted(model, Path(weights).expanduser(), keras=name == "mobilenet")
    return (Classifier(model, preparation=preparation) if preparation else model).eval()


def _only(name: str, options: dict) -> None:
    if options:
        raise ValueError(f"{', '.join(options)}: only with a name from `dnnlib models`"
                         + (", torchvision or timm" if "classes" in options else "")
                         + f"; {name} takes no options")


def _weighted(model: nn.Module, path: Path, *, keras: bool) -> nn.Module:
    if keras and path.suffix == ".safetensors":
        return models.load_keras_weights(model, path)
    found, where = fitting(model, _content(path))
    if where and not misfits(model, found):
        _log.warning("weights: those of %s, %s", path.name, where)
    return assign(model, found, path)


def _content(path: Path) -> Mapping:
    """What a file of weights holds, or the files that an index.json names."""
    if not {*path.suffixes} & (ENDINGS | {".safetensors", ".json"}):
        raise ValueError("weights: expected a file that ends in .safetensors, .index.json, "
                         f"{', '.join(sorted(ENDINGS))}, got {path.name}")
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {path}")
    if path.suffix == ".safetensors":
        return read(path)
    if path.suffix == ".json":
        try:
            places = json.loads(path.read_bytes())["weight_map"]
            parts = {part: dict(_content(path.parent / part)) for part in {*places.values()}
                     if not part.endswith(".json")}
            return {name: parts[part][name] for name, part in places.items()}
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"weights: expected the index of sharded weights in {path.name}, with "
                             f"`weight_map`: {told(error)}") from error
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError,
            AttributeError) as error:
        raise ValueError(f"weights: {path.name} holds more than tensors, or is damaged; save "
                         "model.state_dict() by torch.save or by safetensors") from error
    if not isinstance(found, Mapping) or not any(
            isinstance(value, torch.Tensor | Mapping) for value in found.values()):
        raise ValueError(f"weights: expected a state dict in {path.name}, got "
                         f"{type(found).__name__}")
    return found


def _torchvision(name: str, provided: bool, classes: int | None,
                 size: int | None) -> tuple[nn.Module, Preparation]:
    from torchvision.models import get_model, get_model_weights, list_models

    known = [n for n in list_models() if "/" not in n and "_raft" not in n]
    checks.known(name, known, "model of torchvision")
    published = next(iter(get_model_weights(name)))
    preparation = prepared(published.transforms())
    if not hasattr(published.transforms(), "crop_size"):
        raise ValueError(f"model: torchvision's {name} classifies no images")
    options = {} if classes is None else {"num_classes": classes}
    if name.startswith("vit_") and size:
        options["image_size"] = size
    if name in ("googlenet", "inception_v3") and not provided:  # their transform_input
        raise ValueError(f"model: torchvision's {name} changes its input if it began with the "
                         "published weights, and a file of weights does not say so; give a "
                         "function that builds it as it was trained, FILE.py:FUNCTION")
    if provided and options:
        raise ValueError(f"weights: expected a file with those of {name}; torchvision's own are "
                         "for its 1,000 classes and its size")
    try:
        model = get_model(name, weights=published if provided else None, **options)
    except OSError as error:
        raise ConnectionError(f"weights: those of {name} cannot be fetched ({error}); give a file "
                              "(--weights)") from error
    return model, preparation


def _timm(name: str, provided: bool, classes: int | None,
          size: int | None) -> tuple[nn.Module, Preparation]:
    try:
        import timm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("this needs timm; install it with: pip install timm",
                                  name="timm") from error
    if not timm.is_model(name.partition(".")[0]) and not name.startswith("hf-hub:"):
        checks.known(name, timm.list_models(), "model of timm")
    if not name.startswith("hf-hub:"):
        try:
            timm.get_pretrained_cfg(name)
        except RuntimeError as error:
            raise ValueError(f"model: timm:{name}: {error}") from error
    model = timm.create_model(name, pretrained=provided,
                              **({} if classes is None else {"num_classes": classes}))
    data = timm.data.resolve_model_data_config(model)
    preparation = prepared(timm.data.create_transform(**data, is_training=False))
    *_, height, width = data["input_size"]
    if data["crop_mode"] == "center" and height == width:  # what the transform does, in words
        preparation = replace(preparation, resize=math.floor(width / data["crop_pct"]), crop=width,
                              interpolation=data["interpolation"])
    return model, preparation


def in_file(names: str) -> bool:
    """Whether a name, or one of several, is of a file, FILE.py:NAME; also FILE.py alone.

    >>> in_file("my.py:Mine, gini"), in_file("my.py"), in_file("gini, nss")
    (True, True, False)
    """
    return ".py:" in names or any(name.strip().endswith(".py") for name in names.split(","))


@contextmanager
def from_file(name: str, what: str, called: str) -> Iterator[tuple[Path, Callable]]:
    """The path, and the function or class, of FILE.py:NAME; meanwhile its folder is on the path.

    The file runs as a module of the name ``called``; ``what`` it is of, errors begin with. Modules
    beside it are its own, whatever lay beside another file that ran before. The working directory
    stays what it was, as all other paths are relative to it.
    """
    file, _, function = (name if ":" in name else f"{name}:").rpartition(":")
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{what}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(called, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    here = os.getcwd()
    _forget_others(path.parent)
    try:
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:  # whatever their code raises
            raise ValueError(f"{what}: {path.name} does not run: {told(error)}") from error
        if not callable(getattr(module, function, None)):
            kind = "class" if what in METHODS else "function"
            known = {key for key, value in vars(module).items() if callable(value)
                     and not key.startswith("_") and getattr(value, "__module__", "") == called
                     and (kind == "function" or isinstance(value, type))} - {function}
            if not function:
                raise ValueError(f"{what}: expected FILE.py:{kind.upper()}, got {name}; Known: "
                                 f"{', '.join(sorted(known)) or 'none'}")
            checks.known(function, known, f"{kind} of {path.name}")
        yield path, getattr(module, function)
    finally:
        if str(path.parent) in sys.path:  # their code may have set another
            sys.path.remove(str(path.parent))
        os.chdir(here)


def _forget_others(folder: Path) -> None:
    """Own modules from elsewhere that are called as one in ``folder``, which Python would take for
    it: as ``layers``, where two versions of a model are in two folders."""
    there = {path.stem for path in folder.iterdir()}  # to look at every module takes a second
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] not in there:
            continue
        base, file = folder.joinpath(*name.split(".")), getattr(module, "__file__", None)
        if name != "__main__" and file and sources.own(file) and (
                Path(f"{base}.py").is_file() or (base / "__init__.py").is_file()
                ) and not Path(file).resolve().is_relative_to(folder):
            del sys.modules[name]


def of_file(name: str, what: str) -> Callable:
    """The function or class of FILE.py:NAME, see :func:`from_file`."""
    with from_file(name, what, f"own_{Path(name.rpartition(':')[0]).stem}") as (_, found):
        return found


def _from_file(name: str) -> tuple[nn.Module, Preparation | None]:
    """What FUNCTION of FILE.py returns, run with the file's folder on the path, as a script is."""
    file, _, function = name.rpartition(":")
    if not file.endswith(".py") or not function:
        raise ValueError(f"model: expected {KINDS}, got {name!r}")
    with from_file(name, "model", "own_model") as (path, build):
        try:
            model = build()
        except (Exception, SystemExit) as error:
            raise ValueError(f"model: {function}() of {path.name} fails: {told(error)}") from error
    pair = isinstance(model, tuple) and len(model) == 2
    model, transform = model if pair else (model, None)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected {function}() of {path.name} to return a torch.nn.Module, "
                        f"or a pair of it and a transform, got {type(model).__name__}"
                        + ("; did you forget `return`?" if model is None else ""))
    if not model.state_dict():  # a quantised one has no parameters, and has weights
        raise ValueError(f"model: {function}() of {path.name} returns one without parameters")
    if any(isinstance(v, torch.Tensor) and v.is_meta for v in model.state_dict().values()):
        raise ValueError(f"model: {function}() of {path.name} returns one on the meta device, "
                         "where parameters have no values; build it on the CPU")
    return model, prepared(transform) if pair else None
