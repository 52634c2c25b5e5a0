"""What the theme leaves undone: figures without alternative text, and a script that fails."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class FigureAlt(SphinxPostTransform):
    """Figures that cells draw get their caption, for those who hear the page."""

    default_priority = 900  # the outputs' images are in place by then

    def run(self, **kwargs) -> None:
        for figure in self.document.findall(nodes.figure):
            for caption in figure.findall(nodes.caption):
                for image in figure.findall(nodes.image):
                    image.setdefault("alt", caption.astext())


def without_thebe(app: Sphinx, config) -> None:
    """Thebe, which runs cells in the page, is not offered; its script would be put in twice."""
    for event in ("env-before-read-docs", "doctree-resolved"):
        for listener in list(app.events.listeners[event]):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)


def setup(app: Sphinx) -> dict:
    app.add_post_transform(FigureAlt)
    app.connect("config-inited", without_thebe)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
