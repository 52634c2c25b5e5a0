"""One colour for a method in every figure of the book."""

from collections.abc import Iterable

from matplotlib import colors

from dnnbook.words import shown
from dnnlib.fuzzing import FUZZERS
from dnnlib.selection import SELECTORS

# Okabe and Ito's hues, which colour-blind readers tell apart, and darker or lighter ones of them.
METHODS = {
    # what a comparison stands on is gray
    "random": "#7a7a7a", "random, expected": "#7a7a7a", "noise": "#7a7a7a",
    "best possible": "#000000", "training on": "#7a7a7a", "one pass": "#444444",
    "benign": "#b5b5b5", "PGD-AT": "#cc79a7",
    # fuzzers
    "DeepSensor": "#0072b2", "DeepSensor, paper": "#0072b2", "DeepSensor, sensitive": "#0072b2",
    "DeepSensor, released": "#004a75", "DeepSensor, excitable": "#882255",
    "DeepSensor, excitable, scaled": "#aa6688", "DeepSensor, constant": "#56b4e9",
    "DeepSensor, random": "#9fd3f2", "DLFuzz": "#d55e00", "DeepXplore": "#e69f00",
    "DeepHunter": "#009e73",
    # selectors
    "NSS": "#0072b2", "NSS, fresh mutation": "#0072b2",
    "NSS, known original": "#56b4e9",
    "DeepGini": "#d55e00", "ATS": "#cc79a7", "DSA": "#e69f00", "DSA by coverage": "#f5cf7a",
    "KMNC": "#009e73", "NAC": "#5cc8a8", "NPC": "#8c6d31", "PD": "#882255", "PV": "#b07aa1",
    "PE": "#d4a6c8", "least confidence": "#a63603", "margin": "#fdae6b",
    "excitable": "#332288", "excitable neurons": "#332288",
    "LSA": "#999933", "MDSA": "#117733", "MLSA": "#44aa99", "MMDSA": "#ddcc77"}
SPARE = ("#e7298a", "#66a61e", "#7570b3", "#1f78b4", "#b15928")  # of new methods of the package


def colour(method: str) -> str:
    """The colour of a method, by its name in words; of a reading without its own, its method's.

    >>> colour("DLFuzz") == colour("DLFuzz, paper") == colour("dlfuzz, best")
    True

    A method of the package that the table does not have yet gets one of :data:`SPARE`. Raises
    ``ValueError`` for any other name.
    """
    name = str(shown(method))
    while name not in METHODS:
        if ", " not in name:
            new = [known for known in map(shown, (*SELECTORS, *FUZZERS)) if known not in METHODS]
            if name in new:
                return SPARE[new.index(name) % len(SPARE)]
            raise ValueError(f"method: no colour for {method!r}; known are {', '.join(METHODS)}")
        name = name.rpartition(", ")[0]
    return METHODS[name]


def colours(methods: Iterable[str]) -> dict[str, str]:
    """A colour for each method of one figure: the second reading in one colour, and so on, paler.

    >>> found = colours(["NSS, original", "NSS, original, l1", "random"])
    >>> found["NSS, original"] == colour("NSS, original") != found["NSS, original, l1"]
    True
    """
    found: dict[str, str] = {}
    for method in dict.fromkeys(methods):
        own = colour(method)
        before = sum(colour(other) == own for other in found)
        share = 0.7 ** before
        found[method] = colors.to_hex([share * part + 1 - share for part in colors.to_rgb(own)])
    return found


def palette(names: Iterable[str]) -> dict[str, str] | None:
    """:func:`colours`, or None where a name is of no method, such as of a distance or a start."""
    try:
        return colours(names)
    except ValueError:
        return None
