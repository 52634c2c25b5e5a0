"""The book's tables: records laid out wide, and beside the paper's numbers."""

from collections.abc import Sequence
from html import escape as plain

import pandas as pd

from dnnbook.display.whose import RECORDS
from dnnbook.records.intervals import interval
from dnnbook.records.records import BOOK
from dnnbook.records.verdicts import SEEDS
from dnnbook.words import headed, shown
from dnnlib import checks


def say_whose() -> None:
    """In a notebook: from here on a table of rows of the book's records says so below it."""
    from IPython import get_ipython

    if (shell := get_ipython()) is not None:
        shell.display_formatter.formatters["text/html"].for_type(pd.DataFrame, as_html)


def as_html(table: pd.DataFrame) -> str:
    """A table as notebooks show it, and whose it is: see :func:`records.frame`."""
    text = table._repr_html_()
    return f"{text}\n<small>{RECORDS}</small>" if table.attrs.get(BOOK) else text


def wide(table: pd.DataFrame, where: str | None = None, *, index: str | Sequence[str],
         columns: str | Sequence[str] = (), digits: int | dict[str, int] = 1, blank: str = "",
         order: dict[str, Sequence] | None = None) -> pd.DataFrame:
    """Tidy rows as a table to read: the mean over what is not named, rounded, words for codes.

    ``table``: the columns ``index``, ``columns`` and 'value'; ``where``: a query that says which
    rows are meant. Without ``columns`` the means stand under one heading, 'value'. The values of
    each column keep the order in which they first come, or that of ``order``, by its name.
    ``digits``: after the point, of all values or by their 'quantity'; ``blank``: stands where there
    is no value, or where one of those behind the mean is missing. A table of no rows gives a table
    of no rows.

    >>> rows = pd.DataFrame({"model": ["lenet1", "lenet1", "lenet5"], "seed": [0, 1, 0],
    ...                      "quantity": "error_rate", "value": [1.0, 2.0, 4.0]})
    >>> wide(rows, index="model", columns="quantity").iloc[:, 0].to_dict()
    {'LeNet-1': '1.5', 'LeNet-5': '4.0'}
    """
    index, columns = ([names] if isinstance(names, str) else list(names)
                      for names in (index, columns))
    table = table.query(where) if where is not None else table
    table = _ordered(table, order or {})
    if table.empty:
        return pd.DataFrame(columns=["value"] if not columns else []).rename_axis(index[0])
    keys = [*index, *columns]
    table = table.assign(**{key: table[key].astype(object).where(table[key].notna(), "")
                            for key in keys})
    found = table.astype({"value": float}).groupby(keys, sort=False)["value"].agg(
        lambda v: v.mean(skipna=False))
    places = [digits.get(quantity, 1) for quantity in found.index.get_level_values("quantity")] if (
        isinstance(digits, dict)) else [digits] * len(found)
    texts = pd.Series([blank if pd.isna(v) else f"{v:z,.{n}f}"
                       for v, n in zip(found, places)], found.index, object, "value")
    texts = texts.unstack(columns, sort=False, fill_value=blank) if columns else texts.to_frame()
    first = {key: {value: place for place, value in enumerate(dict.fromkeys(table[key]))}
             for key in keys}
    for axis in ("index", "columns") if columns else ("index",):
        texts = texts.sort_index(axis=axis, key=lambda level: level.map(first[level.name]))
    texts.attrs |= table.attrs
    return headed(texts)


def _ordered(table: pd.DataFrame, order: dict[str, Sequence]) -> pd.DataFrame:
    """The rows whose values are listed, in the order of the lists; the last list counts most."""
    for name, listed in order.items():
        table = table[table[name].isin(list(listed))]
        places = {value: place for place, value in enumerate(listed)}
        table = table.sort_values(name, key=lambda column: column.map(places), kind="stable")
    return table


def beside(paper: pd.DataFrame, ours: pd.DataFrame, *, on: Sequence[str], digits: int = 2,
           live: pd.DataFrame | None = None, where: str | None = None,
           settings: Sequence[str] = ()) -> pd.DataFrame:
    """A row for each cell: the paper's value, ours over the seeds, and the run at hand.

    ``paper``, ``ours`` and ``live`` are tidy: the columns ``on`` and 'value'; ``ours`` has a
    'seed' too. The paper's value is shown as the paper prints it, if a column 'printed' says how;
    ``digits`` are those of ours, and of a value of the paper's that was converted. Ours reads
    "mean [least, greatest]"; a cell that nobody ran is blank. Cells the paper lacks,
    such as those of the embedded digits, come last. ``where``: a query that says which of our
    rows, in ``ours`` and ``live``, are meant. ``settings``: the columns of ``ours`` and ``live``
    that say how a run was made. Only rows with the same settings share a row of the table: where
    some of a cell differ, each has its own, and a part of the index says how. For the run at hand
    it also has, in brackets, what ours is.

    >>> ours = pd.DataFrame({"model": "lenet5", "seed": [0, 1], "trials": 50, "value": [0.5, 0.7]})
    >>> live = pd.DataFrame({"model": ["lenet5"], "trials": 5, "value": 0.9})
    >>> table = beside(pd.DataFrame({"model": ["lenet5"], "value": [1]}), ours, on=["model"],
    ...                live=live, settings=["trials"], digits=1)
    >>> table.reset_index()[["settings", "ours", "seeds", "this run"]].values.tolist()
    [['', '0.6 [0.5, 0.7]', '2', ''], ['trials 5 (50)', '', '', '0.9']]
    """
    on = list(on)
    if where is not None:
        ours, live = (table.query(where) if table is not None and len(table) else table
                      for table in (ours, live))
    for table, what, more in ((paper, "paper", []), (ours, "ours", ["seed"]), (live, "live", [])):
        needed = {*on, "value", *more}
        missing = needed - set(table) if table is not None and len(table) else set()
        if missing:
            raise ValueError(f"{what}: the columns are missing: {sorted(missing)}")
    ours, live, first = _told_apart(ours, live, on, settings)
    out = paper[on].copy()
    out["settings"] = [first.get(key, "") for key in _keys(out, on)]
    out["paper"] = [_as_printed(value, text, digits) for value, text in zip(
        paper["value"], paper.get("printed", paper["value"]))]
    apart = [*on, "settings"]
    parts = {"ours": _spread(ours, apart, digits), "seeds": _count(ours, apart),
             "this run": _spread(live, apart, digits)}
    for name, part in parts.items():
        if part.empty:
            out[name] = ""
        else:
            out = out.merge(part.rename(name).reset_index(), on=apart, how="outer", sort=False)
    order = {key: i for i, key in enumerate(_keys(paper, on))}
    out["_"] = [order.get(key, len(order)) for key in _keys(out, on)]
    out = out.fillna("")
    out["__"] = out["ours"] == ""  # ours above what only this run has
    out = out.sort_values(["_", *on, "__"], kind="stable").drop(columns=["_", "__"])
    if not out["settings"].any():
        return headed(out.drop(columns="settings").set_index(on))
    return headed(out.set_index(apart))


def _keys(table: pd.DataFrame, on: list[str]) -> list[tuple]:
    return list(table[on].itertuples(index=False, name=None))


def _told_apart(ours: pd.DataFrame, live: pd.DataFrame | None, on: list[str],
                names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame | None, dict]:
    """Both with the column 'settings', which tells rows of a cell apart; that of ours' first."""
    first: dict[tuple, str] = {}
    made: dict[tuple, list[tuple[dict, str]]] = {}  # by cell: the settings, and how they are told
    names = [name for name in names if name not in on]
    if ours is not None and len(ours):
        known, texts = [name for name in names if name in ours], []
        of_cell = ours.groupby(on, dropna=False)
        several = pd.DataFrame({name: of_cell[name].transform(
            lambda column: column.nunique(dropna=False)) > 1 for name in known}, ours.index)
        for key, row, many in zip(_keys(ours, on), ours.to_dict("records"),
                                  several.to_dict("records")):
            texts.append(", ".join(f"{shown(name)} {_value(row[name])}"
                                   for name in known if many[name]))
            first.setdefault(key, texts[-1])
            made.setdefault(key, []).append(({name: row[name] for name in known}, texts[-1]))
        ours = ours.assign(settings=texts)
    if live is not None and len(live):
        live = live.assign(settings=[_beside(row, made.get(key, [])) for key, row in zip(
            _keys(live, on), live.to_dict("records"))])
    return ours, live, first


def _beside(row: dict, made: list[tuple[dict, str]]) -> str:
    """How a row of this run is told from ours of its cell: as the one with the same settings is."""
    differ = [({name: old for name, old in settings.items()
                if name in row and not _same(row[name], old)}, text) for settings, text in made]
    if not differ:
        return ""
    fewest, text = min(differ, key=lambda each: len(each[0]))
    return ", ".join(f"{shown(name)} {_value(row[name])} ({_value(old)})"
                     for name, old in fewest.items()) or text


def _same(a, b) -> bool:
    """Whether two settings agree; one that a record lacks does not differ."""
    return bool(pd.isna(a) or pd.isna(b) or checks.alike(a, b))


def _value(value) -> str:
    if pd.isna(value):
        return "not told"
    return f"{value:.10g}" if isinstance(value, float) else str(shown(value)) or "none"


def _as_printed(value, text, digits: int) -> str:
    """The paper's own text if it still says the value; else, as in other units, the value."""
    if not _number(value):
        return str(value)
    if isinstance(text, str) and _number(text) and float(text) == float(value):
        return text
    return f"{float(value):.{digits}f}"


def _number(value) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _spread(table: pd.DataFrame | None, on: list[str], digits: int) -> pd.Series:
    if table is None or table.empty:
        return pd.Series(dtype=object)

    def text(values: pd.Series) -> str:
        if values.isna().any():
            return "undefined"
        mean = f"{values.mean():z.{digits}f}"
        return mean if len(values) == 1 else (
            f"{mean} [{values.min():z.{digits}f}, {values.max():z.{digits}f}]")

    return table.groupby(on, sort=False)["value"].apply(lambda v: text(v.astype(float)))


def _count(table: pd.DataFrame, on: list[str]) -> pd.Series:
    if table.empty:
        return pd.Series(dtype=object)
    return table.groupby(on, sort=False)["seed"].nunique().astype(str)


def mean_and_interval(table: pd.DataFrame, where: str | None = None, *, index: Sequence[str],
                      columns: Sequence[str] = (), digits: int = 1,
                      order: dict[str, Sequence] | None = None) -> pd.DataFrame:
    """Records as a table of "mean ± half width of the 95 % interval over the seeds".

    ``table``: tidy, with the columns ``index``, ``columns``, 'seed' and 'value'; ``where`` and
    ``order`` as of :func:`wide`. Two seeds or fewer have no interval worth the name and give the
    mean alone; what nobody ran is blank, and a mean of values of which one is missing is
    "undefined".

    >>> runs = pd.DataFrame({"method": "gini", "seed": [0, 1, 2], "value": [1.0, 2.0, 3.0]})
    >>> print(*mean_and_interval(runs, index=["method"]).loc["DeepGini", "value"].split())
    2.0 ± 2.5
    """
    def text(values: pd.Series) -> str:
        if values.isna().any():
            return "undefined"
        low, high = interval(values)
        half = f"{(high - low) / 2:.{digits}f}"
        parts = [f"{values.mean():z.{digits}f}", *(["±", half] if len(values) >= SEEDS else [])]
        return "\N{NO-BREAK SPACE}".join(parts)

    table = _ordered(table.query(where) if where is not None else table, order or {})
    if table.empty:
        return pd.DataFrame(columns=["value"] if not columns else []).rename_axis(index[0])
    group = [*index, *columns]
    values = table.groupby([*group, "seed"], sort=False)["value"].agg(
        lambda v: v.astype(float).mean(skipna=False))
    texts = values.groupby(group, sort=False).agg(text)
    made = (texts.unstack(list(columns), sort=False).fillna("") if columns
            else texts.to_frame("value"))
    made.attrs |= table.attrs
    return headed(made)


def sentences(table: pd.DataFrame, *, escape: bool = True):
    """A table whose cells hold text, for a notebook: they wrap, and stand at the left.

    ``escape``: whether the cells are plain text; else they are HTML, such as links.
    """
    from IPython.display import HTML

    return HTML(table.to_html(classes="sentences", escape=escape))


def claims(board: pd.DataFrame, columns: Sequence[str]):
    """The claims of a scoreboard, for a notebook: below each its place in the paper, and its runs.

    ``columns``: those that stand beside the claims. Runs that all claims share stand once, in the
    heading.

    >>> board = pd.DataFrame({"claim": ["A < B."], "place": ["IV"], "runs": ["3 seeds"],
    ...                       "verdict": ["mostly"]})
    >>> text = claims(board, ["verdict"]).data
    >>> "A &lt; B. <small>IV</small>" in text, "claim (runs: 3 seeds)" in text
    (True, True)
    """
    runs = [text for text in board["runs"].unique() if text]  # none of a claim that nobody ran
    alike = len(runs) == 1
    where = board["place"].where(alike | (board["runs"] == ""),
                                 board["place"] + "; " + board["runs"])
    named = [f"{plain(claim, quote=False)} <small>{plain(place, quote=False)}</small>"
             for claim, place in zip(board["claim"], where)]
    heading = f"claim (runs: {runs[0]})" if alike else "claim"
    return sentences(board[list(columns)].map(plain, quote=False).set_axis(
        pd.Index(named, name=plain(heading, quote=False))), escape=False)
