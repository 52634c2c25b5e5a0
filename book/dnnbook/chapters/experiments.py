"""An experiment: what a chapter measures, and the record that a run of it leaves.

A chapter declares it once, behind its parameters, and all else follows from that: where its record
is saved and found again, whether a sweep has to run a cell, which columns a table without records
has, and what stands beside the paper's numbers. :func:`defaults.declared` reads it from the source;
a made notebook keeps it, and the names of the experiments whose records the chapter read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path

import pandas as pd

from dnnbook import places, reproducible
from dnnbook.chapters import declared, defaults, kept, yours
from dnnbook.data import Dataset
from dnnbook.display import tables, whose
from dnnbook.records import records, verdicts
from dnnlib import checks, inference

# How a record was made, in its provenance; `keep` only takes part of its rows from an earlier run.
PROVENANCE = {"profile", "device", "keep"}


class Experiment:
    """The experiment of a chapter, in a run with its ``parameters``, and the rows that it measures.

    ``name``: '<paper>/<experiment>', the folder of its records. ``profile``: 'paper', whose runs
    leave a record, or 'embedded'. ``parameters``: all that tells one record from another: every
    parameter of the chapter under its own name (:func:`undeclared`), and values that it fixes.
    ``drawn``: those that change only what is drawn, or, as `keep`, how it is made. All are checked:
    :func:`declared.check`. From here on the number of threads is fixed: :func:`reproducible.fix`.

    >>> run = Experiment("toy/luck", "embedded", model_name="lenet5", seed=0)
    >>> run.add({"error_rate": 12.5}, fuzzer="noise")
    >>> run.live[["model", "seed", "fuzzer", "quantity", "value"]].values.tolist()
    [['lenet5', 0, 'noise', 'error_rate', 12.5]]
    """

    def __init__(self, name: str, profile: str, *, drawn: Mapping[str, object] | None = None,
                 **parameters):
        reproducible.fix()
        yours.changed.clear()
        self._chapter, self._before = yours.chapter(name), max(0, len(yours.ran()) - 1)
        drawn = drawn or {}
        good = declared.check(name, profile=profile, **parameters, **drawn)
        self.name, self.profile = name, profile
        self._own = places.own_results_dir()  # refused before anything is computed
        self.parameters = {declared.stored(key, name): declared.kept(key, good[key], name)
                           for key in parameters}
        if len(self.parameters) < len(parameters):
            raise ValueError(f"{name}: two parameters have one name in records, of "
                             f"{', '.join(parameters)}")
        self._told = good
        tables.say_whose()
        self._rows: dict[frozenset, dict] = {}
        self.clock = records.Clock()

    def add(self, measured: Mapping[str, float] | Iterable[dict], **where) -> None:
        """Values by the name of their quantity, or tidy rows; ``where``: columns of each.

        A row replaces the one added before that has the same in all columns but 'value', as when a
        cell runs again. Raises ``ValueError`` for two such rows at once.

        >>> run = Experiment("toy/luck", "embedded", seed=0)
        >>> run.add({"slope": -4.0}); run.add({"slope": -1.0})
        >>> run.rows
        [{'quantity': 'slope', 'value': -1.0}]
        """
        if isinstance(measured, Mapping):
            measured = [{"quantity": quantity, "value": float(value)}
                        for quantity, value in measured.items()]
        added: dict[frozenset, dict] = {}
        for row in measured:
            row = where | row
            key = frozenset((column, _key(value)) for column, value in row.items()
                            if column != "value")
            if key in added:
                raise ValueError(f"{self.name}: two rows are alike in all but their value: "
                                 f"{added[key]} and {row}")
            added[key] = row
        self._rows |= added

    @property
    def rows(self) -> list[dict]:
        """What was measured so far, in order: each row a flat dict with a 'value'."""
        return [*self._rows.values()]

    @property
    def live(self) -> pd.DataFrame:
        """The rows of this run, with its parameters as columns.

        Raises ``ValueError`` where nothing was measured yet, as in a cell that runs again alone
        after the one with the experiment.
        """
        if not self._rows:
            raise ValueError(f"{self.name}: this run has measured nothing yet; run the cells "
                             "above, from the one with the experiment")
        return pd.DataFrame([self.parameters | row for row in self.rows])

    def keep(self) -> pd.DataFrame:
        """The rows of the book's record of this cell, which are rows of this run too from here on.

        Raises ``ValueError`` as :func:`kept.record` does.
        """
        before = kept.record(self.name, self.parameters)
        self.add(before.rows)
        self.add({"rows_kept": len(before.rows)}, commit=before.provenance["commit"])
        return pd.DataFrame(before.rows)

    def save(self, data: Dataset, *, device: str = "cpu") -> Path | None:
        """Keep the rows as a record, if the profile is 'paper'; its path.

        None, and a line that says so, where a method of the chapter is no longer the engine's, or
        a cell ran that is not the chapter's: a record names the code that it was made with.
        ``device``: where it was trained and measured, as of :func:`inference.device`.
        """
        if self.profile != "paper":
            return None
        since = yours.ran()[self._before:]  # from the cell with the experiment on
        if mine := [*sorted(yours.changed), *yours.others(since, self._chapter)]:
            names = ", ".join(mine)
            print(f"This run leaves no record, since its code is yours: {names}.")
            return None
        return records.save(records.Record(
            self.name, self.parameters, self.rows,
            records.provenance(data=data.fingerprint, device=str(inference.device(device)),
                               clock=self.clock)), self._own)

    def recorded(self, where: str | None = None, **parameters) -> pd.DataFrame:
        """The rows of all records, of those with these ``parameters``; ``where``: a query.

        Without records the table has no rows, and the columns of :attr:`live`, of the same types;
        none where nothing was measured yet.
        """
        found = records.frame(self.name, **parameters)
        if self._rows:
            columns = [*found, *(column for column in self.live if column not in found)]
            found = found.reindex(columns=columns)
            found = found.astype(self.live.dtypes) if found.empty else found
        elif found.empty:
            return found
        return found.query(where) if where is not None else found

    @property
    def settings(self) -> list[str]:
        """What tells how a run was made, but for its seed: its parameters, and the profile."""
        return [name for name in self.parameters if name != "seed"] + ["profile"]

    def beside(self, paper: pd.DataFrame, where: str, *, on: Sequence[str], digits: int = 2,
               take: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
               **parameters) -> pd.DataFrame:
        """The paper's table, ours over the seeds and this run: see :func:`tables.beside`.

        This run stands apart where its settings are not those of our records. ``take``: what is
        made of the rows of the records, and of this run, before they are compared.
        """
        take = take or (lambda rows: rows)
        ours, live = self.recorded(**parameters), self.live
        return tables.beside(paper, take(ours.assign(profile="paper")),
                             live=take(live.assign(profile=self.profile)),
                             on=on, digits=digits, where=where, settings=self.settings)

    def __str__(self) -> str:
        return whose.run_of(*(self.parameters[name] for name in ("dataset", "model", "seed")),
                            **self.changed)

    @property
    def changed(self) -> dict:
        """The other parameters that are not as the chapter has them, under their stored names."""
        before = defaults.of(self.name, self._told)
        return {declared.stored(name, self.name): declared.kept(name, value, self.name)
                for name, value in self._told.items()
                if name in before and not checks.alike(before[name], value)
                and name not in {"dataset", "model_name", "seed", "device", "keep"}}

    def show(self, *, recorded: bool = False) -> None:
        """Show the figures of a cell, which say that they are of this run, or of the records."""
        whose.show(whose.RECORDS if recorded else str(self))

    def verdicts(self, readings: Mapping[str, Mapping] | None = None):
        """The claims that rest on this experiment: draws their forest plots, gives the verdicts.

        ``readings``: others, whose verdicts stand beside: see :func:`verdicts.with_readings`.
        """
        from dnnbook.display import tables, verdict_plots

        verdict_plots.show(self.name)
        board = verdicts.scoreboard(self.name.split("/")[0], experiment=self.name)
        board = verdicts.with_readings(board, readings or {})
        return tables.claims(board, ["verdict", "cells (paper's)", *(readings or {})])


def _key(value: object) -> str:
    """A column's value as text, a whole number as a float: a table with gaps has no others."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return str(float(value) if whole else value)


def undeclared(declared: Mapping, named: Iterable[str]) -> list[str]:
    """The parameters of a chapter that its declaration forgets, so that two runs share a name.

    >>> undeclared({"parameters": {"seed": 0}, "drawn": ["other"]}, ["seed", "rates", "profile"])
    ['rates']
    """
    return [name for name in named
            if name not in {*declared["parameters"], *declared["drawn"], *PROVENANCE}]
