"""The book's record of a cell, whose rows a run takes over, so that it runs only what is new.

That is what ``keep`` asks for. :func:`record` says in one line why there is none to take from.
"""

from collections.abc import Mapping

from dnnbook import data
from dnnbook.data import known
from dnnbook.records import records

NEW = {"held_out", "beside"}  # what such a run adds, and may have otherwise
MADE = {"keep", "profile", "device"}  # how a run is made
CELL = ("dataset", "model", "seed")
LEAVE = "leave keep at False to run everything"


def record(where: str, parameters: Mapping) -> records.Record:
    """The one record of the cell of ``parameters``, under their names in records.

    Raises ``ValueError`` if there is none, with what there is and what to do.

    >>> record("toy/luck", {"dataset": "digits", "seed": 0})
    Traceback (most recent call last):
    ValueError: keep: the book has no record of toy/luck; leave keep at False to run everything
    """
    cell = {name: value for name, value in parameters.items() if name not in NEW | MADE}
    found, place = [each for each in records.find(where) if not each.parameters.get("beside")], ""
    if not found:
        raise ValueError(f"keep: the book has no record of {where}; {LEAVE}")
    for name in [name for name in CELL if name in cell]:
        place += f"{name} {cell[name]}"
        there = [each for each in found if each.parameters.get(name) == cell[name]]
        if not there:
            others = ", ".join(sorted({str(each.parameters.get(name)) for each in found}))
            raise ValueError(f"keep: the book has no record with {place}, only with {others}; "
                             f"{LEAVE}")
        found, place = there, f"{place}, "
    differ = [_differing(each, cell) for each in found]
    same = [each for each, names in zip(found, differ) if not names]
    if len(same) == 1:
        return same[0]
    if same:
        raise ValueError(f"keep: the book has {len(same)} records with {place[:-2]}; {LEAVE}")
    others = ", ".join(f"{name} {old} (here {cell[name]})"
                       for name, old in min(differ, key=len).items())
    raise ValueError(f"keep: the book's record with {place}has {others}; give what it has, or "
                     f"{LEAVE}")


def _differing(one: records.Record, cell: Mapping) -> dict:
    """What a record has otherwise; a parameter that it lacks is one that its chapter lacks."""
    return {name: one.parameters.get(name) for name, value in cell.items()
            if one.parameters.get(name) != value}


def check(where: str, parameters: Mapping, *, here: bool) -> None:
    """``ValueError`` unless a run of the cell may take over the rows of the book's record.

    ``here``: whether the images of this machine are to be those of the record, too.
    """
    if parameters.get("profile", "paper") != "paper":
        raise ValueError("keep: the book's records are of the profile paper; expected it with keep "
                         f"(-p profile paper), got {parameters['profile']!r}")
    if parameters.get("beside") == "" and not parameters.get("held_out"):
        raise ValueError("keep: nothing is left to run; expected one more method with it "
                         "(-p beside FILE.py:CLASS)")
    of_record = record(where, parameters).provenance.get("data", "")
    if here and "dataset" in parameters:
        images = data.load(parameters["dataset"]).fingerprint
        if known.digits(images) != known.digits(of_record):
            raise ValueError(f"keep: the book's record was made on other images of "
                             f"{parameters['dataset']} ({of_record}, here {images}); {LEAVE}")
