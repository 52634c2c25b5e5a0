"""Where the book's own things lie: its checkout, its records, and those of a reader."""

import os
from pathlib import Path

MADE = ".made.json"  # in a reader's folder of notebooks: the digest of each as it was made


def checkout() -> Path:
    """The folder that holds the book's table of contents, else the one here."""
    folder = Path(__file__).resolve().parents[2]
    return folder if (folder / "_toc.yml").exists() else Path.cwd()


def results_dir() -> Path:
    """Folder of the book's records, of which tables and verdicts are made: ``$DNNLIB_BOOK``, else
    ``results`` of the checkout, else here."""
    if os.environ.get("DNNLIB_BOOK"):
        return Path(os.environ["DNNLIB_BOOK"]).expanduser()
    return checkout() / "results"


def own_results_dir() -> Path:
    """Folder that runs of one's own write records to, beside the book's, which stay as they are:
    ``$DNNLIB_RESULTS``, else ``runs/results`` of the checkout, else here.

    Raises ``ValueError`` if that is the book's own, which only its sweeps write.
    """
    own = Path(os.environ.get("DNNLIB_RESULTS") or checkout() / "runs" / "results").expanduser()
    return not_the_books(own, "DNNLIB_RESULTS")


def not_the_books(folder: Path, name: str) -> Path:
    """``folder``; ``ValueError`` with the ``name`` of the option if it is the book's results."""
    if folder.resolve() == (checkout() / "results").resolve():
        raise ValueError(f"{name}: expected a folder of your own, such as runs/results, got "
                         f"{folder}, the book's records, which only the book's sweeps write")
    return folder
