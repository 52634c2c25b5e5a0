"""Figures of the book as files, for slides: drawn anew, as vectors and as pixels."""

from base64 import b64decode
from pathlib import Path

from dnnbook.chapters import notebooks
from dnnlib import files

FORMATS = """from matplotlib_inline.backend_inline import set_matplotlib_formats
set_matplotlib_formats("svg", "png")"""
ENDINGS = {"image/svg+xml": ".svg", "image/png": ".png"}


def draw(path: Path, folder: Path) -> list[Path]:
    """Run the notebook at ``path``, and write its captioned figures below ``folder``.

    Each as ``<name>.svg`` and ``<name>.png``, with its caption in ``<name>.txt``; the name is the
    one by which the chapter refers to it. Gives the files. Raises
    :class:`notebooks.CellFailed` if a cell fails.
    """
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FORMATS))
    work = files.cache_dir() / "figures" / path.parent.name
    work.mkdir(parents=True, exist_ok=True)
    fresh, done = work / f"{path.stem}.in.ipynb", work / path.name
    nbformat.write(notebook, fresh)
    notebooks.execute(fresh, done, cwd=path.parent, progress_bar=False)
    written = []
    for cell in nbformat.read(done, as_version=4).cells:
        about = cell.metadata.get("mystnb", {}).get("figure", {})
        found = [output.data for output in cell.get("outputs", ())
                 if about and "image/png" in output.get("data", {})]
        for number, data in enumerate(found):
            name = about["name"] + (f"-{number + 1}" if len(found) > 1 else "")
            parts = {ending: data[kind] for kind, ending in ENDINGS.items() if kind in data}
            for ending, text in (parts | {".txt": about["caption"] + "\n"}).items():
                target = folder / f"{name}{ending}"
                files.write_atomically(target, b64decode(text) if ending == ".png"
                                       else text.encode())
                written.append(target)
    return written
