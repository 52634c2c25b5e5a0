"""A reader's answer in code, beside the right one: whether they agree, or the first difference.

Notebooks show what is wrong in at most three lines, without the code that knows the answer.
"""

import traceback
from base64 import b85decode
from collections.abc import Callable
from copy import deepcopy
from zlib import decompress

import numpy as np

TOLERANCE = 1e-5  # between a reader's number and the engine's
WIDTH = 60  # of a value that is shown whole


class NotYet(AssertionError):
    """A wrong answer. IPython shows what it says and no traceback, which has the engine's code."""

    def _render_traceback_(self) -> list[str]:
        return [f"Not yet: {self}"]


def check(answer, truth, *cases: tuple, keeps: bool = False) -> None:
    """Say whether a reader's answer is right: a value beside ``truth``, or a function on ``cases``.

    ``cases``: the arguments of each call, as tuples, if ``truth`` is a function. An ``answer`` of
    None was not given yet. Tensors, arrays, lists and numbers are taken alike. Each call gets
    copies, so that an answer may change what it gets, unless ``keeps``: then that is wrong. A wrong
    one raises :class:`NotYet` with the first case that differs; of a value alone it does not say
    what is right.

    >>> check(None, 4)
    No answer yet.
    >>> check(lambda x: x + x, lambda x: 2 * x, (1.0,), (-2.0,))
    Right.
    >>> check([6, 6], [2, 6])
    Traceback (most recent call last):
    dnnbook.chapters.answers.NotYet: got [6, 6]; the first that differs is at [0]
    """
    if callable(truth) != bool(cases):
        raise TypeError("check: expected a value alone, or a function and cases to try it on")
    if not answered(answer):
        return
    if not cases:
        _compare("", answer, truth, told=False)
    elif not callable(answer):
        raise NotYet(f"expected a function, got {_short(answer)}")
    for case in cases:
        where = f"for {', '.join(map(_short, case))} "
        _compare(where, _called(answer, case, where, keeps), truth(*deepcopy(case)), told=True)
    print("Right.")


def answered(answer) -> bool:
    """Whether there is an answer; if not, a line says so."""
    if answer is None:
        print("No answer yet.")
    return answer is not None


def required(answer):
    """The answer; :class:`NotYet` if there is none, so that a grader gives no point for it.

    >>> required(None)
    Traceback (most recent call last):
    dnnbook.chapters.answers.NotYet: there is no answer; run the cell of your answer first
    """
    if answer is None:
        raise NotYet("there is no answer; run the cell of your answer first")
    return answer


def judged(is_right: Callable, answer) -> None:
    """``is_right(answer)``; :class:`NotYet` if it, or the answer, needs a name that is not there.

    >>> judged(lambda answer: check(answer, defined_above), 1)
    Traceback (most recent call last):
    dnnbook.chapters.answers.NotYet: the check needs `defined_above`; run the cells above first
    """
    try:
        is_right(answer)
    except NameError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if last.filename == _file(answer) != _file(is_right):
            raise NotYet(f"your function needs `{error.name}` in line {last.lineno} of its cell; "
                         "it is not defined, or in a cell above that did not run") from None
        raise NotYet(f"the check needs `{error.name}`; run the cells above first") from None


def unpacked(text: str) -> str:
    """The code of a check that :mod:`class_pack` packed, so that nobody reads the answer in it.

    >>> from base64 import b85encode
    >>> from zlib import compress
    >>> unpacked(b85encode(compress(b"1 + 1")).decode())
    '1 + 1'
    """
    return decompress(b85decode(text)).decode()


def _called(answer: Callable, case: tuple, where: str, keeps: bool):
    """What a reader's function returns; what it raises in one line, with the line of their code."""
    try:
        found = answer(*(given := deepcopy(case)))
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if frame.filename == _file(answer)]
        place = f", in line {lines[-1]} of its cell" if lines else ""
        said = (str(error).strip().splitlines() or [""])[0][:100]
        raise NotYet(f"{where}your function fails{place}: {type(error).__name__}: {said}") from None
    if found is None:
        raise NotYet(f"{where}your function returned nothing; did you forget `return`?")
    if keeps and not all(np.array_equal(_numbers(a), _numbers(b)) for a, b in zip(given, case)):
        raise NotYet(f"{where}your function changes what it gets; write into a copy")
    return found


def _file(function) -> str | None:
    """Where a function stands: in a notebook a name of its cell."""
    return getattr(getattr(function, "__code__", None), "co_filename", None)


def _compare(where: str, mine, theirs, *, told: bool) -> None:
    """Raise :class:`NotYet` unless two values agree; ``told``: whether it may say what is right."""
    try:
        a = _numbers(mine)
    except (TypeError, ValueError):
        raise NotYet(f"{where}expected numbers, got {_short(mine)}") from None
    b = _numbers(theirs)
    if a.shape != b.shape:
        raise NotYet(f"{where}expected {_shape(b)}, got {_shape(a)}")
    close = np.isclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    if close.all():
        return
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    at = f"at [{', '.join(map(str, place))}] " if place else ""
    one, other = _short(a[place]), _short(b[place])
    if told and len(whole := f"expected {_short(b)}, got {_short(a)}") <= WIDTH and one != other:
        raise NotYet(f"{where}{whole}")
    if told:
        close_by = "a number close by" if one == other else one
        raise NotYet(f"{where}the first that differs is {at}: expected {other}, got {close_by}"
                     .replace(" :", ":"))
    raise NotYet(f"got {_short(a)}" + (f"; the first that differs is {at}".rstrip() if at else ""))


def _numbers(value) -> np.ndarray:
    """A tensor, an array, a list or a number as an array of floats."""
    if hasattr(value, "detach"):
        value = value.detach().to_dense().cpu().numpy()
    return np.asarray(value, dtype=float)


def _shape(array: np.ndarray) -> str:
    return f"shape {array.shape}" if array.ndim else "one number"


def _short(value) -> str:
    """A value in one line: numbers to four digits, a long one as its beginning."""
    value = value.to_dense() if hasattr(value, "to_dense") else value  # a sparse tensor has no list
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        text = f"[{', '.join(map(_short, value))}]"
    else:
        text = " ".join(str(value).split())
    return text if len(text) <= WIDTH else f"{text[:WIDTH - 3]}..."
