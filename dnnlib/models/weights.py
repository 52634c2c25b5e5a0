"""Weights from safetensors files, with an error that names every tensor that does not fit."""

from pathlib import Path

import torch
from torch import nn

from dnnlib import files


def load_weights(model: nn.Module, path: str | Path) -> nn.Module:
    """Put the state dict in a safetensors file into ``model``, in place; returns the model.

    The counters ``num_batches_tracked`` of BatchNorm may be absent. Raises
    ``FileNotFoundError``; ``ValueError`` for a damaged file, and for missing, unexpected or
    wrongly shaped tensors, in which case the model is left as it was.

    >>> import tempfile
    >>> from safetensors.torch import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"bias": torch.ones(3)}, f"{folder}/w.safetensors")
    ...     load_weights(nn.Linear(2, 1), f"{folder}/w.safetensors")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...w.safetensors does not fit the model: missing weight; shapes bias (3,) for (1,)
    """
    return assign(model, read(path), path)


def read(path: str | Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, whatever its metadata."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no weights at {path}")
    return files.load_tensors(Path(path))[0]


def assign(model: nn.Module, tensors: dict[str, torch.Tensor], path: str | Path) -> nn.Module:
    """Copy ``tensors`` (from ``path``) into ``model``, all of them or none."""
    state = model.state_dict()
    wrong = {
        "missing": [k for k in state if k not in tensors and not k.endswith("num_batches_tracked")],
        "unexpected": [k for k in tensors if k not in state],
        "shapes": [f"{k} {tuple(v.shape)} for {tuple(state[k].shape)}" for k, v in tensors.items()
                   if k in state and v.shape != state[k].shape],
    }
    if any(wrong.values()):
        listed = "; ".join(f"{what} {_some(names)}" for what, names in wrong.items() if names)
        raise ValueError(f"{path} does not fit the model: {listed}")
    model.load_state_dict(tensors, strict=False)
    return model


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
