"""The network that a chapter trains: one of the papers' by name, or a person's own in a file."""

import inspect

import torch
from torch import nn

from dnnbook.data import in_file
from dnnlib import models
from dnnlib.custom.own_code import told


def called(name: str) -> str:
    """What records call a network: a person's own by its function and a digest of its files."""
    return in_file.called(name, "model_name")


def build(name: str, shape: tuple[int, int, int], classes: int, *, seed: int = 0) -> nn.Module:
    """A fresh network in evaluation mode for images of ``shape`` (C, H, W), H = W.

    As :func:`models.build`, which has the names. A person's own, 'FILE.py:FUNCTION', is called with
    channels, side and classes, or without if it takes nothing, and returns a module that gives
    logits (N, classes). Raises ``ValueError``, in one line, if it does not, and
    ``FileNotFoundError`` if there is no such file.
    """
    if not in_file.is_own(name):
        return models.build(name, shape=shape, classes=classes, seed=seed)
    function = in_file.found(name, "model_name")
    takes = inspect.signature(function)
    given = (shape[0], shape[1], classes) if takes.parameters else ()
    try:
        takes.bind(*given)
    except TypeError as error:
        raise ValueError(f"model_name: expected {name} to take channels, side and classes, or "
                         f"nothing, got {takes}") from error
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model = function(*given)
            if isinstance(model, nn.Module):
                with torch.no_grad():
                    logits = model.eval()(torch.zeros(2, *shape))
        except Exception as error:  # whatever their code raises
            raise ValueError(f"model_name: {name} does not take images of "
                             f"{' x '.join(map(str, shape))}: {told(error)}") from error
    if not isinstance(model, nn.Module):
        raise ValueError(f"model_name: expected {name} to return a torch.nn.Module, got "
                         + type(model).__name__
                         + ("; did you forget `return`?" if model is None else ""))
    came = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if came != (2, classes):
        raise ValueError(f"model_name: expected logits (N, {classes}) of {name}, got {came} for "
                         "two images")
    if (logits >= 0).all() and torch.allclose(logits.sum(1), torch.ones(2), atol=1e-4):
        raise ValueError(f"model_name: expected logits of {name}, got probabilities; leave the "
                         "last softmax out")
    return model
