"""One more method beside those of a chapter: of the package, or a person's own, 'FILE.py:CLASS'."""

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from torch import nn

from dnnbook.studies import ordering
from dnnbook.studies.naming import FuzzerKey
from dnnlib.custom import methods
from dnnlib.custom.options import Options
from dnnlib.custom.own_code import made_of
from dnnlib.custom.rehearsal import chosen_of, rehearse_fuzzer
from dnnlib.fuzzing.protocol import Fuzzer
from dnnlib.inference import predict
from dnnlib.selection import Method, Scored, Selector


def one_more(name: str, *, reference: torch.Tensor) -> dict[ordering.SelectorKey, Selector]:
    """One more selector, by its key; none for ''.

    ``reference``: training images, for one that compares with some. Raises ``ValueError`` for a
    class that is no selector.

    >>> one_more("lsa", reference=torch.rand(3, 1, 8, 8)).keys() == {ordering.SelectorKey("lsa")}
    True
    """
    return {ordering.SelectorKey(word): made_of(kind, {"reference": reference}
                                        if methods.needs_reference(kind) else {})
            for word, kind in selectors(name).items()}


def one_more_fuzzer(name: str, *, reference: torch.Tensor) -> dict[FuzzerKey, Fuzzer]:
    """One more fuzzer of those of ``dnnlib fuzz``, by its key; arguments as of :func:`one_more`.

    >>> one_more_fuzzer("noise", reference=torch.rand(3, 1, 8, 8)).keys() == {FuzzerKey("noise")}
    True
    """
    return {FuzzerKey(word): options.fuzzer(reference if options.needs_reference else None)
            for word, options in fuzzers(name).items()}


def one_more_distance(name: str, model: nn.Module, x: torch.Tensor, *,
                      reference: torch.Tensor) -> dict[str, np.ndarray]:
    """How far inputs ``x`` (N, C, H, W) are from the first that one more selector would take.

    As a distance (N,) by its name, none for '': the largest score less each. ``reference``: as of
    :func:`one_more`, and what it raises.
    """
    scores = {key.method: cast(Scored, selector).score(model, x).double().cpu().numpy()
              for key, selector in one_more(name, reference=reference).items()}
    return {method: score.max() - score for method, score in scores.items()}


def selectors(name: str) -> dict[str, methods.Kind]:
    """The class of one selector by its name, {} for ''; ``ValueError`` for what is none."""
    return methods.kinds_of([cast(Method, name)]) if name else {}


def fuzzers(name: str) -> Mapping[str, Options]:
    """What ``dnnlib fuzz`` is asked for by a name, {} for ''; ``ValueError`` for what is none."""
    asked = [Options(by=name, l2=1.0)] if name else []
    return {options.name: options for options in asked}


def check(name: str, of: str, model: nn.Module, shape: tuple[int, int, int]) -> None:
    """Tries a method of a person's own on eight images of noise of ``shape`` (C, H, W), so that
    what breaks its contract is told before a network is trained.

    ``of``: 'selectors' or 'fuzzers'. Of a selector that learns from training images only that is
    tried, as noise may be all of one class. ``model``: untrained. Raises ``ValueError`` in one
    line.
    """
    x = torch.rand(8, *shape, generator=torch.Generator().manual_seed(0))
    if of == "selectors":
        for kind in selectors(name).values():
            chosen_of(f"beside: {name}", kind, model, x, reference=x)
    else:
        for fuzzer in one_more_fuzzer(name, reference=x).values():
            rehearse_fuzzer(f"beside: {name}", fuzzer, model, x, predict(model, x).argmax(1))
