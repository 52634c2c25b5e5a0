"""Weights from safetensors files, with an error that names every tensor that does not fit."""

import os
from collections.abc import Iterable, Mapping
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
    wrong = misfits(model, tensors)
    if wrong:
        listed = "; ".join(f"{what} {_some(names)}" for what, names in wrong.items())
        raise ValueError(f"{path} does not fit the model: {listed}")
    model.load_state_dict(tensors, strict=False)
    return model


def misfits(model: nn.Module, tensors: Mapping[str, torch.Tensor]) -> dict[str, list[str]]:
    """What is 'missing', 'unexpected' or of other 'shapes' or 'types', {} if the tensors fit.

    The counters of BatchNorm may be absent, and a weight that the model shares with one that is
    there.

    >>> misfits(nn.Linear(2, 1), {"weight": torch.zeros(1, 2)})
    {'missing': ['bias']}
    """
    state = model.state_dict(keep_vars=True)
    shared = {id(state[name]) for name in state if name in tensors}
    found = {
        "missing": [k for k, v in state.items() if k not in tensors and id(v) not in shared
                    and not k.endswith("num_batches_tracked")],
        "unexpected": [k for k in tensors if k not in state],
        "shapes": [f"{k} {tuple(v.shape)} for {tuple(state[k].shape)}" for k, v in tensors.items()
                   if isinstance(state.get(k), torch.Tensor) and v.shape != state[k].shape],
        "types": [f"{k} {v.dtype} for {state[k].dtype}" for k, v in tensors.items()
                  if isinstance(state.get(k), torch.Tensor)
                  and state[k].is_floating_point() > v.is_floating_point()],
    }
    return {what: names for what, names in found.items() if names}


def fitting(model: nn.Module, content: Mapping) -> tuple[dict[str, torch.Tensor], str]:
    """The tensors in a checkpoint that fit the model, by its names, and in words where they were.

    They may lie in a dict in the checkpoint, as under 'state_dict', and their names may begin with
    what a wrapper adds, as 'module.' or '_orig_mod.'. If several fit, :data:`FIRST` go first, and
    the words name the others. If none fit, those that come nearest.

    >>> weight = torch.zeros(1, 2)
    >>> fitting(nn.Linear(2, 1, bias=False), {"ema": {"module.weight": weight}, "epoch": 3})[1]
    "'ema', without 'module.'"
    """
    best: tuple[int, dict[str, torch.Tensor], str] | None = None
    others: list[str] = []
    for place, tensors in _dicts(content):
        for prefix in _prefixes(tensors):
            names = {name.replace("_orig_mod.", "").removeprefix(prefix): value
                     for name, value in tensors.items()}
            if len(names) < len(tensors):  # two became one
                continue
            wrong = sum(map(len, misfits(model, names).values()))
            if best is not None and not wrong and not best[0] and any(
                    not torch.equal(value, best[1][name]) for name, value in names.items()
                    if name in best[1]):
                others.append(repr(place))
            if best is None or wrong < best[0]:
                left = [prefix] if prefix else []
                left += ["_orig_mod."] * any("_orig_mod." in name for name in tensors)
                words = [repr(place)] if place else []
                words += [f"without {' and '.join(map(repr, left))}"] if left else []
                best = wrong, names, ", ".join(words)
    if best is None:
        raise ValueError("weights: expected a state dict, or a checkpoint with one; found none")
    return best[1], best[2] + (f" ({', '.join(others)} fit too)" if others else "")


FIRST = ("state_dict", "model_state_dict", "model")  # of what fits equally well


def _dicts(content: Mapping, place: str = "", depth: int = 0):
    """Every dict of tensors in a checkpoint, and the key that leads there."""
    tensors = {k: v for k, v in content.items() if isinstance(v, torch.Tensor)
               and isinstance(k, str) and k != "n_averaged"}  # torch's count of averages
    if tensors:
        yield place, tensors
    for key in sorted((k for k, v in content.items() if isinstance(v, Mapping)),
                      key=lambda k: FIRST.index(k) if k in FIRST else len(FIRST)):
        if depth < 3:
            yield from _dicts(content[key], f"{place}.{key}".strip("."), depth + 1)


def _prefixes(names: Iterable[str]) -> list[str]:
    """What all names begin with, up to each dot: '' first."""
    common = os.path.commonprefix([name.replace("_orig_mod.", "") for name in names])
    return [""] + [common[:i + 1] for i, letter in enumerate(common) if letter == "."]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
