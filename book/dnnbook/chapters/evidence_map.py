"""Which experiment was run with which network, what it decided, and what a blank would take."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path

import pandas as pd

from dnnbook import published
from dnnbook.chapters import notebooks, sweeps
from dnnbook.published.printed import STAND_INS, printed
from dnnbook.records import records, verdicts
from dnnbook.words import shown

NETWORK = ["dataset", "model"]
KEY = ["chapter", *NETWORK]


def networks(paper: str) -> list[tuple[str, str]]:
    """The datasets and networks that the paper's tables name, speakers by our stand-ins.

    >>> networks("peacepact")[:2]
    [('mnist', 'net1_peacepact'), ('fashion_mnist', 'net1_peacepact')]
    """
    found: dict[tuple[str, str], None] = {}
    for number in published.tables()[paper]:
        table = published.table(paper, number)
        if {*NETWORK} <= {*table.columns}:
            for row in _stood_in(table)[NETWORK].drop_duplicates().itertuples(index=False):
                if "-" not in row and all(isinstance(name, str) for name in row):
                    found[tuple(row)] = None
    return list(found)


def fields(paper: str) -> pd.DataFrame:
    """A row for each experiment of a paper and each of its networks.

    Columns: 'experiment', 'chapter', 'dataset', 'model'; 'state': 'run', 'few seeds' (fewer than
    three), 'blank', or '' where neither the paper prints a value for that network nor a sweep of
    the project names it; 'holds', 'open' and 'fails': cells of its claims; 'seeds', 'scale', and
    the 'paper_scale'; 'minutes' of one core and 'gpu_minutes', of all its seeds, as the sweeps of
    the project have them: those of a blank are estimates.
    """
    planned = _planned().groupby(KEY)[["minutes", "gpu_minutes"]].sum()
    blank = set(_planned().query("blank")[KEY].itertuples(index=False, name=None))
    sizes, rows = published.scales(), []
    for experiment, chapter in notebooks.declaring().items():
        claims = [claim for claim in published.claims(paper) if claim.experiment == experiment]
        if not claims:
            continue
        judged = [verdicts.verdict(claim) for claim in claims]
        there = _printed(claims)
        found = records.frame(experiment, told=["dataset"])
        for dataset, model in dict.fromkeys([*networks(paper), *_pairs(found)]):
            part = found[(found["dataset"] == dataset) & (found["model"] == model)] if len(
                found) else found
            seeds = part["seed"].nunique() if len(part) else 0
            key = (_name(chapter), dataset, model)
            state = ("run" if seeds >= verdicts.SEEDS else "few seeds" if seeds else
                     "blank" if (dataset, model) in there or key in blank else "")
            rows.append({
                "experiment": experiment, "chapter": chapter, "dataset": dataset, "model": model,
                "state": state, **_outcomes(judged, dataset, model), "seeds": seeds,
                "scale": verdicts.scale(part, [seeds]) if seeds else "",
                "paper_scale": sizes.get(experiment, ""),
                **(planned.loc[key] if key in planned.index else dict.fromkeys(planned))})
    return pd.DataFrame(rows)


def missing(found: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`fields`, those blank or with too few seeds: the command, the hours of its seeds.

    Besides, what the sweep of blanks has for their chapters: other networks, and 'larger' runs, of
    more inputs, seeds or settings than were run. The hours are estimated, from those that other
    networks took.
    """
    found = found.assign(chapter=found["chapter"].map(_name))[[*KEY, "state", "seeds"]]
    planned = _planned()[lambda each: each["chapter"].isin(found["chapter"])]
    found = found.merge(planned, how="outer", on=KEY)
    found = found[found["state"].isin(["blank", "few seeds"]) | found["blank"].eq(True)]
    bare = [_command(chapter, {"profile": "paper", "dataset": dataset, "model_name": model})
            for chapter, dataset, model in found[KEY].itertuples(index=False)]
    return pd.DataFrame({
        "command": found["command"].fillna(pd.Series(bare, found.index)),
        "state": found["state"].replace("run", "larger").fillna("blank"),
        "seeds": found["seeds"].fillna(0).astype(int),
        "hours, one core": (found["minutes"] / 60).round(1),
        "hours, GPU": (found["gpu_minutes"] / 60).round(1)}).sort_values(
        "hours, one core", ignore_index=True)


@dataclass(frozen=True)
class Map:
    """:func:`fields`, for a notebook to show: a line a network, a column an experiment."""

    table: pd.DataFrame

    def _repr_html_(self) -> str:
        columns = {row.experiment: row.chapter for row in self.table.itertuples()}
        heads = "".join(f'<th><a href="../{chapter.parent.name}/{chapter.stem}.html">'
                        f'{escape(name.partition("/")[2].replace("_", " "))}</a></th>'
                        for name, chapter in columns.items())
        lines = []
        for (dataset, model), part in self.table.groupby(NETWORK, sort=False):
            by = {row["experiment"]: row for row in part.to_dict("records")}
            row = "".join(_field(by.get(name, {"state": ""})) for name in columns)
            lines.append(f"<tr><th>{escape(shown(model))}, {escape(shown(dataset))}</th>{row}</tr>")
        return (f'<table class="dataframe map"><thead><tr><th></th>{heads}</tr></thead>'
                f"<tbody>{''.join(lines)}</tbody></table>")

    def __repr__(self) -> str:
        return self.table[["experiment", *NETWORK, "state", "holds", "open", "fails"]].to_string()


def _field(row: Mapping) -> str:
    """A bar of the cells that hold, are open, and fail; else how long a blank would take."""
    if row["state"] == "":
        return '<td class="none"></td>'
    in_paper = f" (paper: {row['paper_scale']})" if row["paper_scale"] else ""
    counts = {name: row[name] for name in ("holds", "open", "fails")}
    words = ", ".join(f"{n} {verb}" for n, verb in zip(counts.values(), ("hold", "open", "fail"))
                      if n)
    if row["state"] == "run" and words:
        parts = "".join(f'<span class="{name}" style="flex: {n}"></span>'
                        for name, n in counts.items() if n)
        text = f"{words}; {row['scale']}{in_paper}"
        return (f'<td tabindex="0" aria-label="{escape(text)}" data-tip="{escape(text)}">'
                f'<span class="bar">{parts}</span></td>')
    minutes = row["minutes"]
    cost = ("" if pd.isna(minutes) else f"{minutes:.2g} min" if minutes < 60 else
            f"{minutes / 60:.0f} h")
    if row["state"] == "run":
        text = f"{row['scale']}{in_paper}, no claim rests on it"
        return f'<td tabindex="0" aria-label="{escape(text)}" data-tip="{escape(text)}">·</td>'
    text = f"{row['scale']}, too few" if row["state"] == "few seeds" else "not run"
    text += in_paper + (f"; three seeds take about {cost} of one core (estimated)" if cost else "")
    return (f'<td class="blank" tabindex="0" aria-label="{escape(text)}" '
            f'data-tip="{escape(text)}">{cost or "–"}</td>')


def _stood_in(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace(STAND_INS)


def _pairs(found: pd.DataFrame) -> list[tuple[str, str]]:
    """Networks of the records, but those on data of the reader's own."""
    if found.empty:
        return []
    return list(found[NETWORK].drop_duplicates().itertuples(index=False, name=None))


def _printed(claims: list[published.Claim]) -> set[tuple[str, str]]:
    """The networks for which the paper prints a value of one of the claims."""
    found = set()
    for claim in claims:
        table = _stood_in(printed(claim))
        fixed = {key: claim.where[key] for key in NETWORK if key in claim.where}
        table = table.assign(**fixed) if all(isinstance(v, str) for v in fixed.values()) else table
        if {*NETWORK} <= {*table.columns}:
            found |= {*table[NETWORK].itertuples(index=False, name=None)}
    return found


def _name(chapter: Path) -> str:
    return f"{chapter.parent.name}/{chapter.stem}"


def _outcomes(judged: list[verdicts.Verdict], dataset: str, model: str) -> dict[str, int]:
    counts = dict.fromkeys(("holds", "open", "fails"), 0)
    for verdict in judged:
        for cell in verdict.cells.to_dict("records"):
            own = {key: cell.get(key, verdict.claim.where.get(key)) for key in NETWORK}
            if own["dataset"] == dataset and own["model"] in (model, None):
                counts[cell["outcome"]] += 1
    return counts


def _command(chapter: str, values: Mapping) -> str:
    paper, _, name = chapter.partition("/")
    options = " ".join(f"-p {key} {shlex.quote(str(value))}" for key, value in values.items())
    return f"dnnbook run {paper}/{name[:2]} {options}"


@lru_cache
def _planned() -> pd.DataFrame:
    """What the sweeps have: for each chapter, network and setting the minutes of all its seeds."""
    rows = []
    for file in ("blank.toml", "paper.toml"):
        path = notebooks.folder().parent / "sweeps" / file
        for cell in sweeps.read(path)[0]:
            values = {key: value for key, value in cell.values.items() if key != "seed"}
            rows.append({"chapter": _name(cell.notebook), "dataset": values.get("dataset"),
                         "model": values.get("model_name"), "blank": file == "blank.toml",
                         "command": _command(_name(cell.notebook), values),
                         "minutes": cell.minutes or 0, "gpu_minutes": cell.gpu_minutes or 0})
    return pd.DataFrame(rows).groupby([*KEY, "blank", "command"], dropna=False, sort=False,
                                      as_index=False).sum()
