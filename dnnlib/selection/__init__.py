"""Selectors: which of many unlabelled candidates to label first.

Each is a frozen dataclass of options. ``order(model, x)`` gives a permutation of the candidates,
the most worth labelling first, stable under ties. Defaults are those of NSS's Table IV and, where
that is silent, those its docstring gives a reason for.
"""

import re
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal, get_args

from dnnlib import checks
from dnnlib.selection.ats import ATS
from dnnlib.selection.contract import check_selector
from dnnlib.selection.densities import LSA, MDSA, MLSA, MMDSA
from dnnlib.selection.excitable import Excitable
from dnnlib.selection.neuron_coverage import KMNC, NAC
from dnnlib.selection.npc import NPC
from dnnlib.selection.nss import NSS
from dnnlib.selection.protocol import Scored, Selector, by_score, top
from dnnlib.selection.softmax import PD, PE, PV, Gini, LeastConfidence, Margin, Random
from dnnlib.selection.surprise import DSA

__all__ = ["ATS", "DSA", "Excitable", "Gini", "KMNC", "LSA", "LeastConfidence", "MDSA", "MLSA",
           "MMDSA", "Margin", "Method", "NAC", "NPC", "NSS", "PD", "PE", "PV", "Random",
           "SELECTORS", "Scored", "Selector", "by_score", "check_selector", "selector", "top"]

Method = Literal[  # a row for each selector: its class, of any file here, in small letters
    "random", "nac", "kmnc", "npc", "dsa", "gini", "ats", "nss", "excitable", "pd", "pv", "pe",
    "least_confidence", "margin", "lsa", "mdsa", "mlsa", "mmdsa"]
_CLASSES: dict[str, type[Selector]] = {  # of all modules of this folder
    re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): kind
    for module in iter_modules(__path__)
    for name, kind in vars(import_module(f"{__name__}.{module.name}")).items()
    if isinstance(kind, type) and issubclass(kind, Selector)}
SELECTORS: dict[str, type[Selector]] = {name: _CLASSES[name] for name in get_args(Method)}


def selector(name: str, **options) -> Selector:
    """A selector by name, with options other than its defaults.

    Raises ``ValueError`` for a name or an option that is unknown, with the nearest one, for an
    option that is needed ('kmnc', 'npc', 'dsa', 'lsa', 'mdsa', 'mlsa' and 'mmdsa' need
    ``reference``, training images), and for values that make no sense.

    >>> selector("nss", difference="squared_normalised").share
    0.1
    >>> selector("ginni")
    Traceback (most recent call last):
    ValueError: unknown selector 'ginni'; did you mean 'gini'? Known: ats, dsa, excitable, gini, \
kmnc, least_confidence, lsa, margin, mdsa, mlsa, mmdsa, nac, npc, nss, pd, pe, pv, random
    """
    kind = SELECTORS[checks.known(name, SELECTORS, "selector")]
    checks.options(kind, options, name)
    return kind(**options)
