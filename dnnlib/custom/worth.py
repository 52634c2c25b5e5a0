"""Which method is worth its passes, in one sentence that says no more than the resamples show."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

ENDS = (2.5, 97.5)  # % of the resamples, for an interval of 95 %


def surely(differences: Sequence[np.ndarray]) -> list[bool]:
    """Which differences are above zero, so that with 95 % all that are said to be so are.

    ``differences``: of each comparison its values in the resamples (R,). Of m comparisons each is
    held to the m-th part of 2.5 % (Bonferroni): the best of many methods leads by chance sooner
    than one does.

    >>> one = np.arange(100.0) - 2
    >>> surely([one]), surely([one, one])
    ([True], [False, False])
    """
    return [bool(np.percentile(values, ENDS[0] / len(differences)) > 0) for values in differences]


def choice(draws: Mapping[str, np.ndarray], chance: Mapping[str, np.ndarray],
           passes: Mapping[str, float]) -> tuple[str | None, list[str]]:
    """The method to take, None if none surely finds more than chance, and those not surely worse.

    ``draws``, ``chance``: what each method, best first, and chance in its place find in the same
    resamples (R,). Of the methods that surely beat chance and are not surely worse than the first
    of these, it is the one with the fewest passes, to two digits.

    >>> many, few = np.full(9, 60.0), np.full(9, 10.0)
    >>> choice({"nss": many, "gini": many, "nac": few}, dict.fromkeys(["nss", "gini", "nac"], few),
    ...        {"nss": 2, "gini": 1, "nac": 1})
    ('gini', ['nss'])
    """
    names = list(draws)
    sure = surely([draws[name] - chance[name] for name in names])
    better = [name for name, yes in zip(names, sure) if yes]
    if not better:
        return None, []
    taken = min(_close(better[0], better, draws), key=lambda name: round(passes[name], 2))
    return taken, [name for name in _close(taken, names, draws) if name != taken]


def _close(best: str, names: Sequence[str], draws: Mapping[str, np.ndarray]) -> list[str]:
    """Those that do not surely find less than ``best``, itself among them."""
    others = [name for name in names if name != best]
    worse = dict(zip(others, surely([draws[best] - draws[name] for name in others])))
    return [name for name in names if not worse.get(name, False)]


def selectors_sentence(table: pd.DataFrame, draws: Mapping[str, np.ndarray]) -> str:
    """The sentence on the rows of ``Compared.selectors`` at their first rate; ``draws`` there."""
    rate = table["rate"].iloc[0]
    first = table[table["rate"] == rate].set_index("method")
    random = first.loc["random", "found"]
    first = first.drop(index=["random", "best possible"]).sort_values(
        "found", ascending=False, kind="stable")
    taken, close = choice({name: draws[name] for name in first.index},
                          dict.fromkeys(first.index, draws["random"]), first["passes"])
    if taken is None:
        most = first.iloc[0]
        return (f"At {rate:g} %, no method finds surely more faults than random order, "
                f"{random:.0f} %; the most is {most['found']:.0f} %, by {first.index[0]}.")
    row = first.loc[taken]
    return (f"At {rate:g} %, take {taken}: of the images that it puts first, "
            f"{row['found']:.0f} % are faults [{row['low']:.0f}, {row['high']:.0f}], in random "
            f"order {random:.0f} %, for {counted(row['passes'])} over an image"
            + _rest(close, len(first), "find as many") + ".")


def fuzzers_sentence(table: pd.DataFrame, draws: Mapping[str, np.ndarray],
                     chance: Mapping[str, np.ndarray]) -> str:
    """The sentence on the rows of ``Compared.fuzzers``; ``chance``: noise of as many passes."""
    rows = table.set_index("fuzzer").sort_values("broken", ascending=False, kind="stable")
    taken, close = choice({name: draws[name] for name in rows.index}, chance, rows["passes"])
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
