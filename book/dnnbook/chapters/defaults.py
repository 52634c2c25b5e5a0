"""What a chapter is asked if nobody changes a parameter, by its source."""

import ast
from collections.abc import Collection
from functools import cache

from dnnbook import places

CELL = '# %% tags=["parameters"'


@cache
def _of_chapters(experiment: str) -> tuple[dict, ...]:
    """The defaults of each chapter that declares an experiment."""
    sources = [path.read_text("utf-8")
               for path in sorted((places.checkout() / "notebooks").glob("*/*.py"))]
    cells = [source.partition(CELL)[2].partition("\n")[2].partition("\n# %%")[0]
             for source in sources if f'Experiment("{experiment}"' in source]
    return tuple({line.targets[0].id: ast.literal_eval(line.value)  # type: ignore[attr-defined]
                  for line in ast.parse(cell).body} for cell in cells)


def of(experiment: str, names: Collection[str]) -> dict:
    """The defaults of the chapter with an experiment that has most of these parameters.

    >>> of("nsatp/motivation", ["trials", "repeats"])["trials"], of("toy/luck", ["trials"])
    (50, {})
    """
    return max(_of_chapters(experiment), key=lambda found: len(found.keys() & set(names)),
               default={})
