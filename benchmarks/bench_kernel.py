"""Memory of a fresh kernel, in MB: what a server needs for each chapter that is open.

    python benchmarks/bench_kernel.py [--chapter nss/00]

Once the chapter's imports ran, and once all of its cells ran. Resident memory has the files of
PyTorch too, which the kernels of one machine share; each has the rest to itself. Linux only.
"""

import argparse
import json

import nbformat
import torch
from goals import keep
from nbclient import NotebookClient

from dnnbook.chapters import notebooks

TELL = """\
import json, re
from pathlib import Path
status = Path("/proc/self/status").read_text()
print(json.dumps(dict(re.findall(r"(\\w+):\\s+(\\d+) kB", status))))"""


def megabytes(chapter: str) -> list[dict[str, float]]:
    """What the system says of a kernel's memory: after the imports of a chapter, and at its end."""
    path = notebooks.find(chapter)
    sources = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    imports = next(i for i, source in enumerate(sources) if "import torch" in source)
    told = sources[:imports + 1] + [TELL] + sources[imports + 1:] + [TELL]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in told])
    NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}).execute()
    return [{name: int(kilobytes) * 1024 / 1e6
             for name, kilobytes in json.loads(cell.outputs[0].text).items()}
            for cell in notebook.cells if cell.source == TELL]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chapter", default="nss/00")
    chapter = parser.parse_args().chapter
    imported, ended = megabytes(chapter)
    print(f"a kernel of {chapter}, with PyTorch {torch.__version__}:")
    for what, figure in (("with its imports, resident memory", imported["VmRSS"]),
                         ("with its imports, memory to itself", imported["RssAnon"]),
                         ("at its end, the most of resident memory", ended["VmHWM"]),
                         ("at its end, memory to itself", ended["RssAnon"])):
        print(f"  {what}: {figure:.0f} MB")
        keep(f"a kernel of a chapter {what}", figure, unit="MB")


if __name__ == "__main__":
    main()
