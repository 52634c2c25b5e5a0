"""The gallery of ``dnnlib rank --example``, which the page on your own model shows as it is."""

import tempfile
from pathlib import Path

from sphinx.application import Sphinx

NAME = "example_gallery.html"


def write(target: Path) -> None:
    """The page that the command writes, without links to files, which a reader does not have."""
    from dnnlib import custom, files
    from dnnlib.custom import example

    with tempfile.TemporaryDirectory() as place:
        example.write(folder := Path(place) / "example")
        model = custom.load_model(example.MODEL, folder / example.WEIGHTS)
        photos = custom.read_photos(folder / "digits", model)
        table = custom.rank(model, photos, "gini,random", top=10).drop(columns="absolute_path")
        files.write_atomically(target, custom.ranking_page(table, photos, title="200 digits"))


def beside_pages(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        write(Path(app.outdir) / "_static" / NAME)


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", beside_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
