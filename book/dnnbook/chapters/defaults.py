"""What a chapter's source says before it runs: the defaults of its parameters, its experiment."""

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


def asked(source: Path) -> dict:
    """The defaults of a chapter's parameters; {} without any."""
    cell = source.read_text("utf-8").partition(CELL)[2].partition("\n")[2].partition("\n# %%")[0]
    return {line.targets[0].id: ast.literal_eval(line.value)  # type: ignore[attr-defined]
            for line in ast.parse(cell).body}


def declared(source: Path) -> dict:
    """The 'experiment' of a chapter, its 'parameters' with defaults, and the names 'drawn'; {}
    without one.

    Raises ``ValueError`` for an argument that is no parameter, constant or value, and for one
    that is called as a parameter and is not that parameter.
    """
    tree = ast.parse(source.read_text("utf-8"))
    call = next((node for node in ast.walk(tree) if isinstance(node, ast.Call)
                 and getattr(node.func, "id", "") == "Experiment"), None)
    if call is None:
        return {}
    parameters = asked(source)
    known = {line.targets[0].id: line.value.value for line in tree.body
             if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
             and isinstance(line.value, ast.Constant)} | parameters
    given = {each.arg: each.value for each in call.keywords}
    drawn = given.pop("drawn", ast.Dict([], []))
    values = {}
    for name, node in given.items():
        if name in parameters and getattr(node, "id", "") != name:
            raise ValueError(f"{source}: its Experiment takes {name}={ast.unparse(node)}; expected "
                             f"{name}={name}, or runs would replace each other's records")
        try:
            values[name] = (known[node.id] if isinstance(node, ast.Name)
                            else ast.literal_eval(node))
        except (KeyError, ValueError) as error:
            raise ValueError(f"{source}: its Experiment takes {ast.unparse(node)!r}; expected a "
                             "parameter of the chapter, a constant, or a value") from error
    return {"experiment": ast.literal_eval(call.args[0]), "parameters": values,
            "drawn": [ast.literal_eval(key) for key in drawn.keys]}  # type: ignore[attr-defined]


@cache
def _of_chapters(experiment: str) -> tuple[dict, ...]:
    """The defaults of each chapter that declares an experiment."""
    return tuple(map(asked, sources(experiment)))


def of(experiment: str, names: Collection[str]) -> dict:
    """The defaults of the chapter with an experiment that has most of these parameters.

    >>> of("nsatp/motivation", ["trials", "repeats"])["trials"], of("toy/luck", ["trials"])
    (50, {})
    """
    return max(_of_chapters(experiment), key=lambda found: len(found.keys() & set(names)),
               default={})
