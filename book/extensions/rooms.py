"""A page of the API has a section for each module of its room, also for one that is new."""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
LINE = re.compile(r"^% the other modules of ([\w.]+)$", re.M)
SECTION = """## `{room}/{name}`

```{{eval-rst}}
.. automodule:: {module}
   :members:
```
"""


def completed(text: str, root: Path = ROOT) -> str:
    """The page with a section for each module that it lacks, where it has the line for these.

    >>> text = "% the other modules of dnnlib.selection"
    >>> "## `selection/nss`" in completed(text), "% the other" in completed(text)
    (True, False)
    """
    def sections(found: re.Match) -> str:
        folder = root / found[1].replace(".", "/")
        modules = {f"{found[1]}.{path.stem}": path.stem for path in sorted(folder.glob("[!_]*.py"))}
        return "\n".join(SECTION.format(room=folder.name, name=name, module=module)
                         for module, name in modules.items() if f":: {module}\n" not in text)

    return LINE.sub(sections, text)


def setup(app: Sphinx) -> dict:
    app.connect("source-read", lambda app, name, source: source.insert(0, completed(source.pop(0))))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
