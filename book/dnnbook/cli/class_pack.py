"""The command ``dnnbook class``: chapters for a class, for students and for the teacher."""

from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli.terminal import say


def class_(names: Annotated[list[str], typer.Argument(help="Starts of names, such as nsatp/02.")],
           output: Annotated[str, typer.Option(
               "-o", "--out", help="A new folder for both kinds of copies.")] = "class",
           outputs: Annotated[bool, typer.Option(
               "--outputs/--no-outputs", help="Whether students see the book's outputs; quizzes "
                                              "and interactive figures stay.")] = True,
           seed: Annotated[int | None, typer.Option(
               help="Run the chapters with this seed first, as for an exam.")] = None) -> None:
    """Write chapters for a class: students' copies without solutions, the teacher's with answers.

    An answer cell stands in the place of each solution. `teacher` is a `source` for nbgrader.
    """
    from dnnbook.chapters import class_pack

    folder = Path(output).expanduser()
    written = class_pack.write(names, folder, outputs=outputs, seed=seed)
    plan, count = written[-1].name == class_pack.PLAN, len(written) // 2
    say(f"{folder}: {count} chapter{'s' * (count > 1)} in {class_pack.STUDENTS}, with answers in "
        f"{class_pack.TEACHER}" + f"; for the teacher, to be printed: {class_pack.PLAN}" * plan)
