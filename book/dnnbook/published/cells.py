"""Which cells a claim has in its paper: whatever else records hold decides nothing."""

import tomllib
from functools import lru_cache
from itertools import product

import pandas as pd

from dnnbook.published import FOLDER, Claim

NETWORK = ("dataset", "model")


@lru_cache
def _lists() -> dict[str, dict]:
    table = tomllib.loads((FOLDER / "cells.toml").read_text(encoding="utf-8"))
    return {f"{paper}/{name}": listed for paper, named in table.items()
            for name, listed in named.items()}


def networks(claim: Claim) -> set[tuple[str, str]]:
    """The pairs of a dataset and a network that a claim is about; none if its paper lists none.

    What its ``where`` names is chosen from the paper's pairs. A network that the paper does not
    have, as in another reading, is that of each of its datasets.
    """
    pairs = [tuple(pair.split()) for pair in _lists().get(claim.experiment, {}).get("networks", ())]
    asked = [_listed(claim.where[name]) if name in claim.where else None for name in NETWORK]
    found = {pair for pair in pairs if all(
        some is None or part in some for part, some in zip(pair, asked))}
    if found or not pairs:
        return found
    return set(product(*(some if some is not None else [pair[place] for pair in pairs]
                         for place, some in enumerate(asked))))


def values(claim: Claim, column: str) -> list | None:
    """The values of a column of a claim's cells in its paper; None if nothing lists them."""
    if column in claim.where:
        return _listed(claim.where[column])
    return _lists().get(claim.experiment, {}).get(column)


def count(claim: Claim) -> int:
    """How many cells a claim has in its paper.

    >>> from dnnbook.published import claims
    >>> {claim.id: count(claim) for claim in claims("nsatp")}["nsatp-rq2-better"]
    24
    """
    found = networks(claim)
    places = [place for place, name in enumerate(NETWORK) if name in claim.cells]
    many = len({tuple(pair[place] for place in places) for pair in found}) if places else 1
    for column in claim.cells:
        if column not in NETWORK:
            many *= len(values(claim, column) or ())
    return many


def within(claim: Claim, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that are of a cell of the paper; all if its paper lists none for the experiment."""
    pairs = networks(claim)
    if pairs and set(NETWORK) <= set(rows):
        rows = rows[pd.MultiIndex.from_frame(rows[[*NETWORK]]).isin(pairs)]
    listed = _lists().get(claim.experiment, {})
    for column in set(listed) & set(rows) - {*claim.where}:
        rows = rows[rows[column].isin(listed[column]) | rows[column].isna()]
    return rows


def _listed(value) -> list:
    return value if isinstance(value, list) else [value]
