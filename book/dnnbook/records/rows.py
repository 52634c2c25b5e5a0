"""Rows of records by name and by column, and how the rows of two records differ."""

import math
from collections.abc import Iterable, Iterator, Mapping

from dnnbook.records.records import Record


def named(rows: Iterable[Mapping]) -> dict[str, dict]:
    """Rows by all that names them. A measured x, of a curve's point, does not: its place does.

    >>> [*named([{"quantity": "bin", "x": 0.1, "value": 1}, {"quantity": "bin", "x": 0.2}])]
    ['quantity=bin', 'quantity=bin #2']
    """
    found: dict[str, dict] = {}
    for row in rows:
        name = " ".join(f"{k}={v}" for k, v in sorted(row.items())
                        if k != "value" and not (k == "x" and isinstance(v, float)))
        place = 1
        while (full := name if place == 1 else f"{name} #{place}") in found:
            place += 1
        found[full] = dict(row)
    return found


def moved(old: Iterable[Mapping], new: Iterable[Mapping]) -> Iterator[str]:
    """A line for each row that is gone, new, or has another value.

    >>> [*moved([{"quantity": "fdr", "value": 50}, {"quantity": "apfd", "value": 70}],
    ...         [{"quantity": "fdr", "value": 60}])]
    ['quantity=fdr: 50 -> 60', 'quantity=apfd: 70 -> gone']
    """
    was, now = named(old), named(new)
    for name in dict.fromkeys([*was, *now]):
        a, b = was.get(name), now.get(name)
        if a != b:
            yield f"{name}: {_shown(a, b, 'new')} -> {_shown(b, a, 'gone')}"


def _shown(row: Mapping | None, other: Mapping | None, missing: str) -> str:
    if row is None:
        return missing
    x = f" at x = {row['x']}" if other is not None and row.get("x") != other.get("x") else ""
    return f"{row.get('value')}{x}"


def changes(old: Mapping, new: Mapping) -> Iterator[str]:
    """A line for each entry of two tables, such as of parameters, that is not the same.

    >>> [*changes({"seed": 0, "trials": 10}, {"seed": 0, "trials": 20})]
    ['trials: 10 -> 20']
    """
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            yield f"{key}: {old.get(key, 'new')} -> {new.get(key, 'gone')}"


class Table:
    """The rows of a record, found by their columns.

    >>> table = Table(Record("toy/x", {}, [{"quantity": "fdr", "rate": 5, "value": 50.0}]))
    >>> table.value("fdr", rate=5)
    50.0
    """

    def __init__(self, record: Record):
        self.parameters = record.parameters
        self.by: dict[str, list[dict]] = {}
        for row in record.rows:
            self.by.setdefault(str(row.get("quantity")), []).append(row)
        self._found: dict[tuple, dict[tuple, list[dict]]] = {}

    def some(self, quantity: str, /, **columns) -> list[dict]:
        """The rows of a quantity that have these columns; None: that do not have them."""
        names = (quantity, *columns)
        if names not in self._found:
            index = self._found[names] = {}
            for row in self.by.get(quantity, ()):
                index.setdefault(tuple(row.get(name) for name in columns), []).append(row)
        return self._found[names].get(tuple(columns.values()), [])

    def value(self, quantity: str, /, **columns) -> float:
        """The value of the only such row; ``LookupError`` for none or several, NaN for null."""
        found = self.some(quantity, **columns)
        if len(found) != 1:
            raise LookupError(f"expected one row of {quantity} with {columns}, got {len(found)}")
        return math.nan if found[0]["value"] is None else found[0]["value"]
