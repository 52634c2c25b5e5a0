"""Which fuzzer made a campaign, in which reading and setting: as a key, and as columns of a row."""

from dataclasses import dataclass

import pandas as pd

READING = {"deepsensor": "swarm", "deepxplore": "reading"}  # the column that tells them apart


@dataclass(frozen=True, order=True)
class FuzzerKey:
    """Which fuzzer, in which of its readings: names a campaign and gives the columns of its rows.

    ``setting``: of a rival, its authors' name for one, 'paper' or 'best': see :mod:`released`.
    Raises ``ValueError`` for a reading of a fuzzer that has one only.

    >>> FuzzerKey("deepsensor", "constant").columns, str(FuzzerKey("dlfuzz"))
    ({'fuzzer': 'deepsensor', 'swarm': 'constant'}, 'dlfuzz')
    """

    fuzzer: str
    reading: str = ""
    setting: str = ""

    def __post_init__(self):
        if self.reading and self.fuzzer not in READING:
            raise ValueError(f"reading: expected one of {' or '.join(READING)} only, got "
                             f"{self.reading!r} of {self.fuzzer}")

    @property
    def columns(self) -> dict[str, str]:
        """As columns of a row: the fuzzer, its swarm or reading, and its setting."""
        return {"fuzzer": self.fuzzer} | (
            {READING[self.fuzzer]: self.reading} if self.reading else {}) | (
            {"setting": self.setting} if self.setting else {})

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.fuzzer, self.reading, self.setting)))


def keys(table: pd.DataFrame) -> pd.Series:
    """The keys of rows that have a fuzzer, of all rows with their :attr:`FuzzerKey.columns`.

    >>> made = [FuzzerKey("deepsensor", "constant"), FuzzerKey("dlfuzz")]
    >>> keys(pd.DataFrame([key.columns for key in made])).tolist()
    [FuzzerKey(fuzzer='deepsensor', reading='constant', setting=''), \
FuzzerKey(fuzzer='dlfuzz', reading='', setting='')]
    """
    columns = ["fuzzer", *READING.values(), "setting"]
    parts = table.reindex(columns=columns).astype(object).fillna("")
    return pd.Series([FuzzerKey(fuzzer, swarm or reading, setting) if fuzzer else None
                      for fuzzer, swarm, reading, setting in parts.itertuples(index=False)],
                     index=table.index, dtype=object)
