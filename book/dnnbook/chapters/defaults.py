"""What a chapter is asked if nobody changes a parameter, by its source."""

import ast
from collections.abc import Collection
from functools import cache
from pathlib import Path

from dnnbook import places

CELL = '# %% tags=["parameters"'


@cache
def sources(experiment: str) -> tuple[Path, ...]:
    """The sources of the chapters that declare an experiment."""
    return tuple(path for path in sorted((places.checkout() / "notebooks").glob("*/*.py"))
                 if f'Experiment("{experiment}"' in path.read_text("utf-8"))


@cache
def _of_chapters(experiment: str) -> tuple[dict, ...]:
    """The defaults of each chapter that declares an experiment."""
    cells = [path.read_text("utf-8").partition(CELL)[2].partition("\n")[2].partition("\n# %%")[0]
             for path in sources(experiment)]
    return tuple({line.targets[0].id: ast.literal_eval(line.value)  # type: ignore[attr-defined]
                  for line in ast.parse(cell).body} for cell in cells)


def of(experiment: str, names: Collection[str]) -> dict:
    """The defaults of the chapter with an experiment that has most of these parameters.

    >>> of("nsatp/motivation", ["trials", "repeats"])["trials"], of("toy/luck", ["trials"])
    (50, {})
    """
    return max(_of_chapters(experiment), key=lambda found: len(found.keys() & set(names)),
               default={})
