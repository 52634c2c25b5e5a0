"""Which method is worth its passes, in one sentence that says no more than its inputs show."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.stats import binomtest, hypergeom

from dnnlib import checks

LEVEL = 0.025  # one-sided, as an interval of 95 % has it


@lru_cache(maxsize=100_000)
def interval(k: int, n: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share of ``k`` among ``n``, in %.

    >>> [round(end, 1) for end in interval(0, 15)]
    [0.0, 20.4]
    """
    found = binomtest(k, n).proportion_ci(0.95, "wilson")
    return 100 * float(found.low), 100 * float(found.high)


def more(found: np.ndarray, other: np.ndarray) -> float:
    """How likely ``found`` has by chance so many more: McNemar's exact test, one-sided.

    Both are bool (n,), of the same things; only those count that one of the two found.

    >>> more(np.array([1, 1, 1, 1, 0], bool), np.array([0, 0, 0, 1, 0], bool))
    0.125
    """
    alone, other_alone = int((found & ~other).sum()), int((other & ~found).sum())
    if not alone + other_alone:
        return 1.0
    return float(binomtest(alone, alone + other_alone, alternative="greater").pvalue)


def more_than_in_random_order(k: int, taken: int, wrong: int, n: int) -> float:
    """How likely ``taken`` of ``n`` images at random hold ``k`` or more of the ``wrong`` ones.

    >>> more_than_in_random_order(2, 2, 2, 4) == 1 / 6
    True
    """
    return float(hypergeom.sf(k - 1, n, wrong, taken))


def surely(likely: Iterable[float]) -> list[bool]:
    """Which of so many comparisons are no chance, so that with 95 % all that are said to be so are.

    ``likely``: of each, how likely chance does as much. Of m each is held to the m-th part of 2.5 %
    (Bonferroni): the best of many methods leads by chance sooner than one does.

    >>> surely([0.02]), surely([0.02, 0.01])
    ([True], [False, True])
    """
    likely = list(likely)
    return [p < LEVEL / len(likely) for p in likely]


def choice(found: Mapping[str, np.ndarray], chance: Mapping[str, float],
           passes: Mapping[str, float]) -> tuple[str | None, list[str]]:
    """The method to take, None if none surely finds more than chance, and those not surely worse.

    ``found``: what each method, best first, found of the same things, bool (n,); ``chance``: how
    likely chance does as much. Of the methods that surely beat chance and are not surely worse than
    the first of these, it is the one with the fewest passes, to two digits.

    >>> many, few = np.arange(99) < 60, np.arange(99) < 10
    >>> choice({"nss": many, "gini": many, "nac": few}, {"nss": 0.0, "gini": 0.0, "nac": 0.5},
    ...        {"nss": 2, "gini": 1, "nac": 1})
    ('gini', ['nss'])
    """
    names = list(found)
    better = [name for name, yes in zip(names, surely(chance[name] for name in names)) if yes]
    if not better:
        return None, []
    taken = min(_close(better[0], better, found), key=lambda name: round(passes[name], 2))
    return taken, [name for name in _close(taken, names, found) if name != taken]


def _close(best: str, names: Sequence[str], found: Mapping[str, np.ndarray]) -> list[str]:
    """Those that do not surely find less than ``best``, itself among them."""
    others = [name for name in names if name != best]
    worse = dict(zip(others, surely(more(found[best], found[name]) for name in others)))
    return [name for name in names if not worse.get(name, False)]


def selectors_sentence(table: pd.DataFrame, faults: Mapping[str, np.ndarray]) -> str:
    """The sentence on the rows of ``Compared.selectors`` at their first rate.

    ``faults``: by method, which images (N,) are faults that it puts among the first ones there;
    'random' and 'best possible': which are faults at all.
    """
    rate = table["rate"].iloc[0]
    first = table[table["rate"] == rate].set_index("method")
    random = first.loc["random", "found"]
    first = first.drop(index=["random", "best possible"]).sort_values(
        "found", ascending=False, kind="stable")
    wrong = faults["random"]
    among = checks.count(len(wrong), rate / 100), int(wrong.sum()), len(wrong)
    taken, close = choice(
        {name: faults[name] for name in first.index},
        {name: more_than_in_random_order(int(faults[name].sum()), *among) for name in first.index},
        first["passes"])
    if taken is None:
        most = first.iloc[0]
        return (f"At {rate:g} %, no method finds surely more faults than random order, "
                f"{random:.0f} %; the most is {most['found']:.0f} %, by {first.index[0]}.")
    row = first.loc[taken]
    return (f"At {rate:g} %, take {taken}: of the images that it puts first, "
            f"{row['found']:.0f} % are faults [{row['low']:.0f}, {row['high']:.0f}], in random "
            f"order {random:.0f} %, for {counted(row['passes'])} over an image"
            + _rest(close, len(first), "find as many") + ".")


def fuzzers_sentence(table: pd.DataFrame, broken: Mapping[str, np.ndarray],
                     noise: Mapping[str, np.ndarray]) -> str:
    """The sentence on the rows of ``Compared.fuzzers``.

    ``broken``, ``noise``: by fuzzer, which inputs (n,) it breaks, and noise of as many passes.
    """
    rows = table.set_index("fuzzer").sort_values("broken", ascending=False, kind="stable")
    taken, close = choice({name: broken[name] for name in rows.index},
                          {name: more(broken[name], noise[name]) for name in rows.index},
                          rows["passes"])
    if taken is None:
        return ("No fuzzer breaks surely more inputs than noise at the same distance, with as many "
                f"passes; the most is {rows['broken'].iloc[0]:.0f} %, by {rows.index[0]}.")
    row = rows.loc[taken]
    return (f"At this distance, take {taken}: it breaks {row['broken']:.0f} % of the inputs "
            f"[{row['low']:.0f}, {row['high']:.0f}], noise with as many passes "
            f"{row['noise_passes']:.0f} %" + _rest(close, len(rows), "break as many") + ".")


def selectors_table(selectors: pd.DataFrame) -> pd.DataFrame:
    """``Compared.selectors`` to read, the best first: what each finds at each share, in %.

    Intervals of 95 % stand beside; passes are over an image.
    """
    lines: dict[str, dict] = {}
    for row in selectors.to_dict("records"):
        line = lines.setdefault(row["method"], {"method": row["method"]})
        line[f"first {row['rate']:g} %"] = (f"{row['found']:.0f}"
                                            if row["method"] == "best possible"
                                            else _interval(row, "found"))
    for row in selectors.to_dict("records"):  # as the last columns
        lines[row["method"]] |= {"passes": f"{row['passes']:.3g}",
                                 "seconds": f"{row['seconds']:.3g}"}
    first = selectors[selectors["rate"] == selectors["rate"].iloc[0]]
    order = first.sort_values("found", ascending=False, kind="stable")["method"]
    return pd.DataFrame([lines[name] for name in order])


def fuzzers_table(fuzzers: pd.DataFrame) -> pd.DataFrame:
    """``Compared.fuzzers`` to read, the best first, in % of the inputs; passes: over an input."""
    rows = fuzzers.sort_values("broken", ascending=False, kind="stable")
    return pd.DataFrame([{
        "fuzzer": row["fuzzer"], "broken": _interval(row, "broken"),
        "noise, as many examples": f"{row['noise']:.0f}",
        "noise, as many passes": f"{row['noise_passes']:.0f}",
        "passes": f"{row['passes']:.3g}", "seconds": f"{row['seconds']:.3g}"}
        for row in rows.to_dict("records")])


def _interval(row: Mapping, name: str) -> str:
    return f"{row[name]:.0f} [{row['low']:.0f}, {row['high']:.0f}]"


def counted(passes: float) -> str:
    """The number with its noun.

    >>> counted(1.0), counted(3.456)
    ('1 pass', '3.46 passes')
    """
    return "1 pass" if round(passes, 1) == 1 else f"{passes:.3g} passes"


def _rest(close: Sequence[str], n: int, may: str) -> str:
    """What the sentence says of the other ``n`` - 1 methods."""
    if n == 1:
        return ""
    if not close:
        return "; every other method surely does worse"
    *before, last = close
    return f"; {', '.join(before)}{' and ' if before else ''}{last} may {may}"
