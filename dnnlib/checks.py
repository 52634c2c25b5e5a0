"""Checks of arguments and of what is installed: what came, what was expected."""

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from numbers import Integral, Real

import numpy as np
import torch

MOST = 30  # names that an error lists


def known(name: str, names: Iterable[str], what: str) -> str:
    """``name`` if it is one of ``names``; else ``ValueError`` with the nearest one.

    >>> known("mnits", ["mnist", "digits"], "dataset")
    Traceback (most recent call last):
    ValueError: unknown dataset 'mnits'; did you mean 'mnist'? Known: digits, mnist
    """
    names = sorted(names)
    if name in names:
        return name
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ";"
    listed = names if len(names) <= MOST else [*names[:MOST // 2], f"... ({len(names)} in all)"]
    raise ValueError(f"unknown {what} {name!r}{hint} Known: {', '.join(listed)}")


_known = known  # where a parameter has that name


def words(text: str, name: str, known: Iterable[str] | None = None,
          what: str | None = None) -> tuple[str, ...]:
    """The words of a list such as 'gini nss' or 'gini, nss', at least one and none twice.

    ``known``: the words there are, each of which is a ``what`` (default ``name``). Raises
    ``ValueError`` naming the parameter ``name``, and for an unknown word the nearest known one.

    >>> words("lenet1, lenet4", "networks")
    ('lenet1', 'lenet4')
    """
    found = _split(text)
    if not found:
        raise ValueError(f"{name}: expected words with spaces or commas between them, got {text!r}")
    if twice := [word for word in found if found.count(word) > 1]:
        raise ValueError(f"{name}: expected each once, got {twice[0]!r} twice")
    return found if known is None else tuple(_known(word, known, what or name) for word in found)


def numbers(text: str | float, name: str, least: float = -math.inf) -> tuple[int | float, ...]:
    """The finite numbers of a list such as '4 8 12' or '0.5, 1': at least one, from ``least`` up.

    Whole numbers come as int. Raises ``ValueError`` naming the parameter ``name``.

    >>> numbers("4 8.5", "bounds"), numbers(3, "seeds")
    ((4, 8.5), (3,))
    """
    above = f" of at least {least:g}" if least > -math.inf else ""
    try:
        found = tuple(int(word) if re.fullmatch(r"[+-]?\d+", word) else float(word)
                      for word in _split(text))
    except ValueError:
        found = ()
    if not found or not all(math.isfinite(number) and number >= least for number in found):
        raise ValueError(f"{name}: expected numbers{above} with spaces or commas between them, "
                         f"got {text!r}")
    return found


def alike(a, b) -> bool:
    """Whether two values are the same, as lists if they are texts: '4 8' and '4,8.0' are.

    >>> alike("4 8", "4,8.0"), alike("lenet1 lenet4", "lenet4"), alike(0.5, 0.5)
    (True, False, True)
    """
    if not (isinstance(a, str) and isinstance(b, str)):
        return a == b
    return [*map(_number, _split(a))] == [*map(_number, _split(b))]


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _split(text) -> tuple[str, ...]:
    return tuple(str(text).replace(",", " ").split())


def layers(names: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Names of layers among those ``known``, at least one and none twice; no string of them.

    >>> layers(["1", "2"], {"0", "1", "2"})
    ('1', '2')
    """
    if isinstance(names, str):
        raise TypeError(f"layers: expected a list of names, got the string {names!r}")
    if not names or len(set(names)) != len(names):
        raise ValueError(f"layers: expected at least one name and none twice, got {list(names)}")
    known = list(known)
    return tuple(_known(name, known, "layer") for name in names)


def options(kind: type, given: Mapping[str, object], name: str) -> None:
    """``ValueError`` unless ``given`` are options of the dataclass ``kind``, and all it needs.

    ``name``: what ``kind`` is called, for the message.

    >>> from dnnlib.fuzzing import Noise
    >>> options(Noise, {"scal": 1.0}, "noise")
    Traceback (most recent call last):
    ValueError: unknown option of 'noise' 'scal'; did you mean 'scale'? Known: budget, \
scale
    """
    entries = [entry for entry in fields(kind) if entry.init]
    for option in given:
        known(option, [entry.name for entry in entries], f"option of '{name}'")
    for entry in entries:
        required = entry.default is MISSING and entry.default_factory is MISSING
        if required and entry.name not in given:
            raise ValueError(f"{name}: needs the option {entry.name}")


@contextmanager
def extra(name: str, project: str = ".") -> Iterator[None]:
    """Around imports of what the extra ``name`` of ``project``, a folder, installs.

    >>> with extra("plots"):
    ...     import matplotlob
    Traceback (most recent call last):
    ModuleNotFoundError: this needs matplotlob; install it with: pip install -e '.[plots]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        raise ModuleNotFoundError(f"this needs {missing}; install it with: "
                                  f"pip install -e '{project}[{name}]'", name=error.name) from error


def tensor(values, dtype: torch.dtype | None = None) -> torch.Tensor:
    """As ``torch.as_tensor``, of lists, arrays, tables and columns of pandas, reversed or not.

    >>> import numpy as np
    >>> tensor(np.arange(3)[::-1]).tolist()
    [2, 1, 0]
    """
    if not isinstance(values, torch.Tensor) and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and (
            any(step < 0 for step in values.strides) or not values.flags.writeable):
        values = values.copy()
    return torch.as_tensor(values, dtype=dtype)


def array(values, dtype: type | None = None) -> np.ndarray:
    """As ``np.asarray``, of tensors too, on whatever device they are.

    >>> array(torch.tensor([1, 2]), float).tolist()
    [1.0, 2.0]
    """
    return np.asarray(values.cpu() if isinstance(values, torch.Tensor) else values, dtype=dtype)


def images(x: torch.Tensor, name: str = "x") -> torch.Tensor:
    """A non-empty floating tensor (N, C, H, W) without NaN, in [0, 1]."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{name}: expected a floating-point tensor (N, C, H, W), got {kind}")
    if x.ndim != 4:
        raise ValueError(f"{name}: expected shape (N, C, H, W), got {tuple(x.shape)}")
    if x.shape[0] == 0:
        raise ValueError(f"{name}: expected at least one image, got none")
    low, high = x.min().item(), x.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name}: expected finite values, got NaN or infinity")
    if low < 0 or high > 1:
        raise ValueError(f"{name}: expected values in [0, 1], got [{low:g}, {high:g}]")
    return x


def probabilities(p, name: str = "p") -> torch.Tensor:
    """Softmax vectors as a float64 tensor (N, n), n >= 2, each summing to one within 1e-3."""
    p = tensor(p, torch.float64)
    if p.ndim != 2 or 0 in p.shape:
        raise ValueError(f"{name}: expected shape (N, n) with N >= 1, got {tuple(p.shape)}")
    if p.shape[1] < 2:
        raise ValueError(f"{name}: expected at least two classes, got {p.shape[1]}")
    if not torch.isfinite(p).all():
        raise ValueError(f"{name}: expected finite probabilities, got NaN or infinity")
    total = p.sum(1)
    if (p < 0).any() or ((total - 1).abs() > 1e-3).any():
        worst = int((total - 1).abs().argmax())
        least = p[worst].min().item()
        raise ValueError(f"{name}: expected non-negative rows that sum to 1; row {worst} sums to "
                         f"{total[worst].item():.4f} and its least value is {least:.4f}")
    return p


def labels(y, n: int, classes: int, name: str = "labels") -> torch.Tensor:
    """``n`` class indices in 0 .. classes - 1, as int64."""
    y = tensor(y)
    if y.is_floating_point() or y.shape != (n,):
        raise ValueError(f"{name}: expected {n} integers, got {y.dtype} of shape {tuple(y.shape)}")
    if n and (y.min() < 0 or y.max() >= classes):
        raise ValueError(f"{name}: expected classes 0 to {classes - 1}, "
                         f"got {int(y.min())} to {int(y.max())}")
    return y.long()


def positive(value, name: str) -> int:
    """A whole number of at least one, NumPy's among them."""
    return whole(value, name, least=1)


def whole(value, name: str, least: int = 0) -> int:
    """A whole number of at least ``least``, Python's or NumPy's."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def generator(value) -> torch.Generator:
    """A generator on the CPU, never the global one, whose numbers depend on what ran before."""
    if not isinstance(value, torch.Generator) or value.device.type != "cpu":
        got = f"one on {value.device}" if isinstance(value, torch.Generator) else repr(value)
        raise TypeError("generator: expected a torch.Generator on the CPU, such as "
                        f"torch.Generator().manual_seed(0), got {got}")
    return value


def seed(value) -> int:
    """A whole number from 0 to 2^32 - 1, which all libraries that draw by one take."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < 2**32:
        raise ValueError(f"seed: expected a whole number from 0 to {2**32 - 1}, got {value!r}")
    return int(value)


def finite(value: float, name: str, *, least: float = -math.inf,
           above: float = -math.inf) -> float:
    """A finite number, of at least ``least`` and above ``above``."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (value >= least and above < value < math.inf):
        bound = (f" of at least {least:g}" if least > -math.inf
                 else f" above {above:g}" if above > -math.inf else "")
        raise ValueError(f"{name}: expected a finite number{bound}, got {value!r}")
    return value


def of_a_pixel(value: float, name: str) -> float:
    """A change of a pixel in [0, 1], at most 1.

    >>> of_a_pixel(8, "linf")
    Traceback (most recent call last):
    ValueError: linf: pixels are in [0, 1], so that 8 bounds nothing; did you mean 8/255, 0.03137?
    """
    if value > 1:
        raise ValueError(f"{name}: pixels are in [0, 1], so that {value:g} bounds nothing; did you "
                         f"mean {value:g}/255, {value / 255:.4g}?")
    return value


def fraction(text: str | float) -> float:
    """A number, also as papers write one: 8/255.

    >>> fraction("8/255") == 8 / 255, fraction("0.5")
    (True, 0.5)
    """
    above, slash, below = str(text).partition("/")
    try:
        return float(above) / float(below) if slash else float(above)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"expected a number such as 0.03 or 8/255, got {text!r}") from error


def share(value: float, name: str) -> float:
    """A share in (0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value <= 1:
        raise ValueError(f"{name}: expected a share in (0, 1], got {value!r}")
    return value


def pair(values: tuple[float, float], name: str, least: float = -math.inf) -> None:
    """Two finite numbers of at least ``least``."""
    if len(values) != 2 or not all(math.isfinite(v) and v >= least for v in values):
        above = f" of at least {least:g}" if least > -math.inf else ""
        raise ValueError(f"{name}: expected two finite numbers{above}, got {values!r}")


def count(n: int, rate: float, name: str = "rate") -> int:
    """How many of ``n`` a share in (0, 1] is, rounded down, as ``int(share * n)`` should do.

    >>> int(0.29 * 100), count(100, 0.29)
    (28, 29)
    """
    return int(share(rate, name) * n + 1e-9)
