"""Weights from safetensors files, with an error that names every tensor that does not fit."""

import os
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from dnnlib import files


def read(path: str | Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, whatever its metadata.

    Raises ``FileNotFoundError``, and ``ValueError`` for a damaged file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no weights at {path}")
    return files.load_tensors(Path(path))[0]


def assign(model: nn.Module, tensors: dict[str, torch.Tensor], path: str | Path) -> nn.Module:
    """Copy ``tensors`` (from ``path``) into ``model``, all of them or none; returns the model.

    The counters ``num_batches_tracked`` of BatchNorm may be absent, and names may also be such as
    the model's own hooks rename. Raises ``ValueError`` for missing, unexpected or wrongly shaped
    tensors, in which case the model is left as it was.

    >>> assign(nn.Linear(2, 1), {"bias": torch.ones(3)}, "w.safetensors")
    Traceback (most recent call last):
    ValueError: w.safetensors does not fit the model: missing weight; shapes bias (3,) for (1,)
    """
    wrong = misfits(model, tensors)
    if not wrong:
        model.load_state_dict(tensors, strict=False)
    elif not (wrong.keys() <= {"missing", "unexpected"} and _renamed(model, tensors)):
        listed = "; ".join(f"{what} {_some(names)}" for what, names in wrong.items())
        raise ValueError(f"{path} does not fit the model: {listed}")
    return model


def _renamed(model: nn.Module, tensors: dict[str, torch.Tensor]) -> bool:
    """Whether the model takes ``tensors`` by hooks of its own; if not, it is as it was."""
    state = {name: value for name, value in model.state_dict().items()
             if isinstance(value, torch.Tensor) and not is_lazy(value)}
    before = {name: value.clone() for name, value in state.items()}
    try:
        nn.Module.load_state_dict(model, tensors)  # strict, whatever a subclass makes of it
    except Exception:  # a hook is a person's own code
        for name, value in before.items():
            state[name].copy_(value)
        return False
    return True


def misfits(model: nn.Module, tensors: Mapping[str, torch.Tensor]) -> dict[str, list[str]]:
    """What is 'missing', 'unexpected' or of other 'shapes' or 'types', {} if the tensors fit.

    The counters of BatchNorm may be absent, and a weight that the model shares with one that is
    there.

    >>> misfits(nn.Linear(2, 1), {"weight": torch.zeros(1, 2)})
    {'missing': ['bias']}
    """
    state = model.state_dict(keep_vars=True)
    both = {k: (v, state[k]) for k, v in tensors.items() if not k.endswith(EXTRA)
            and isinstance(state.get(k), torch.Tensor)}
    shared = {id(state[name]) for name in state if name in tensors}
    found = {
        "missing": [k for k, v in state.items() if k not in tensors and id(v) not in shared
                    and not k.endswith("num_batches_tracked")],
        "unexpected": [k for k, v in tensors.items() if k not in state
                       and isinstance(v, torch.Tensor)],
        "shapes": [f"{k} {tuple(v.shape)} for {tuple(own.shape)}" for k, (v, own) in both.items()
                   if not is_lazy(own) and v.shape != own.shape],
        "types": [f"{k} {v.dtype} for {own.dtype}" for k, (v, own) in both.items()
                  if own.is_floating_point() > v.is_floating_point()],
    }
    return {what: names for what, names in found.items() if names}


def fitting(model: nn.Module, content: Mapping) -> tuple[dict[str, torch.Tensor], str]:
    """The tensors in a checkpoint that fit the model, by its names, and in words where they were.

    They may lie in a dict in the checkpoint, as under 'state_dict', and their names, or the model's
    own, may begin with what a wrapper adds, as 'module.' or '_orig_mod.'. If several fit,
    :data:`FIRST` go first, and the words name the others. If none fit, those that come nearest.

    >>> weight = torch.zeros(1, 2)
    >>> fitting(nn.Linear(2, 1, bias=False), {"ema": {"module.weight": weight}, "epoch": 3})[1]
    "'ema', without 'module.'"
    """
    best: tuple[int, dict[str, torch.Tensor], str] | None = None
    others: list[str] = []
    for place, tensors in _dicts(content):
        for names, renamed in _named(tensors, model.state_dict()):
            wrong = sum(map(len, misfits(model, names).values()))
            if best is not None and not wrong and not best[0] and any(
                    not torch.equal(value, best[1][name]) for name, value in names.items()
                    if name in best[1] and isinstance(value, torch.Tensor)):
                others.append(repr(place))
            if best is None or wrong < best[0]:
                best = wrong, names, ", ".join([repr(place)] * bool(place) + renamed)
    if best is None:
        raise ValueError("weights: expected a state dict, or a checkpoint with one; found none")
    return best[1], best[2] + (f" ({', '.join(others)} fit too)" if others else "")


FIRST = ("state_dict", "model_state_dict", "model")  # of what fits equally well
EXTRA = "_extra_state"  # a module's, of any kind, as it writes and reads it itself
COMPILED = "_orig_mod."


def _dicts(content: Mapping, place: str = "", depth: int = 0):
    """Every dict of tensors in a checkpoint, and the key that leads there."""
    tensors = {k: v for k, v in content.items() if isinstance(k, str)
               and (isinstance(v, torch.Tensor) or k.endswith(EXTRA))
               and k != "n_averaged"}  # torch's count of averages
    if tensors:
        yield place, tensors
    for key in sorted((k for k, v in content.items() if isinstance(v, Mapping)),
                      key=lambda k: FIRST.index(k) if k in FIRST else len(FIRST)):
        if depth < 3:
            yield from _dicts(content[key], f"{place}.{key}".strip("."), depth + 1)


def _named(tensors: dict[str, torch.Tensor], state: Iterable[str]):
    """The tensors as they are called, and then without what all names begin with, up to each dot,
    or with what the model's begin with; in words what was done. Whether a part is compiled, there
    or in the model, is no matter."""
    yield tensors, []
    known = {name.replace(COMPILED, ""): name for name in state}
    plain = {name: name.replace(COMPILED, "") for name in tensors}
    compiled = [COMPILED] * any(COMPILED in name for name in tensors)
    for prefix, added in product(_begins(plain.values()), _begins(known)):
        names = {known.get(short, short): tensors[name] for name in tensors
                 for short in [added + plain[name].removeprefix(prefix)]}
        if len(names) == len(tensors) and names.keys() != tensors.keys():  # no two became one
            left = " and ".join(map(repr, [prefix] * bool(prefix) + compiled))
            yield names, [f"without {left}"] * bool(left) + [f"with {added!r}"] * bool(added)


def _begins(names: Iterable[str]) -> list[str]:
    """What all names begin with, up to each dot, '' first.

    >>> _begins(["module.net.weight", "module.net.bias"])
    ['', 'module.', 'module.net.']
    """
    common = os.path.commonprefix([*names])
    return ["", *(common[:i + 1] for i, letter in enumerate(common) if letter == ".")]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
