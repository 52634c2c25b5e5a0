"""Selectors: which of many unlabelled candidates to label first.

Each is a frozen dataclass of options with one method, ``order(model, x)``: a permutation of the
candidates, the most worth labelling first, stable under ties. Defaults are those of NSS's
Table IV and, where that is silent, those its docstring gives a reason for.
"""

import torch

from dnnlib import checks
from dnnlib.selection.ats import ATS
from dnnlib.selection.covering import KMNC, NAC
from dnnlib.selection.densities import LSA, MDSA, MLSA, MMDSA
from dnnlib.selection.excitable import Excitable
from dnnlib.selection.nss import NSS
from dnnlib.selection.ordering import Key, keys, leads, nss_readings, orders, tidy
from dnnlib.selection.paths import NPC
from dnnlib.selection.protocol import Scored, Selector, by_score, top
from dnnlib.selection.surprise import DSA
from dnnlib.selection.uncertain import PD, PE, PV, Gini, LeastConfidence, Margin, Random

__all__ = ["ATS", "DSA", "Excitable", "Gini", "KMNC", "Key", "LSA",
           "LeastConfidence", "MDSA", "MLSA", "MMDSA", "Margin", "NAC", "NPC", "NSS", "PD", "PE",
           "PV", "Random", "SELECTORS", "Scored", "Selector", "by_score", "keys", "leads",
           "nss_readings", "orders", "selector", "table_iv", "tidy", "top"]

SELECTORS: dict[str, type] = {
    "random": Random, "nac": NAC, "kmnc": KMNC, "npc": NPC, "dsa": DSA, "gini": Gini, "ats": ATS,
    "nss": NSS, "excitable": Excitable, "pd": PD, "pv": PV, "pe": PE,
    "least_confidence": LeastConfidence, "margin": Margin,
    "lsa": LSA, "mdsa": MDSA, "mlsa": MLSA, "mmdsa": MMDSA,
}


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


def table_iv(reference: torch.Tensor, labels: torch.Tensor, *,
             seed: int = 0) -> dict[str, Selector]:
    """The seven selectors that NSS is compared with, in the options of its Table IV.

    ``reference``: training images (M, C, H, W), M >= 1, of the classes ``labels`` (M,). NPC, whose
    relevance is slow in deep networks, looks at those of the first 2,000 that the network gets
    right. ``seed``: of all that is random.

    >>> list(table_iv(torch.rand(3, 1, 8, 8), torch.tensor([0, 1, 1])))
    ['random', 'nac', 'kmnc', 'npc', 'dsa', 'gini', 'ats']
    """
    options = {"random": {"seed": seed}, "nac": {"seed": seed},
               "kmnc": {"reference": reference, "seed": seed},
               "npc": {"reference": reference[:2000], "reference_labels": labels[:2000],
                       "seed": seed},
               "dsa": {"reference": reference}, "gini": {}, "ats": {}}
    return {name: selector(name, **given) for name, given in options.items()}
