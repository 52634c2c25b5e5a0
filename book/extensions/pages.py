"""What the theme leaves undone: times, texts for figures, one search, buttons that lead."""

import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from dnnbook.chapters import notebooks, times
from dnnbook.chapters.lab_cells import FORESTS


class FigureAlt(SphinxPostTransform):
    """Figures that cells draw get their caption, or what they are, for those who hear the page."""

    default_priority = 900  # the outputs' images are in place by then

    def run(self, **kwargs) -> None:
        for figure in self.document.findall(nodes.figure):
            for caption in figure.findall(nodes.caption):
                for image in figure.findall(nodes.image):
                    image.setdefault("alt", caption.astext())
        for cell in self.document.findall(nodes.container):
            if "cell" in cell["classes"] and ".verdicts(" in cell.astext():
                for image in cell.findall(nodes.image):
                    image.setdefault("alt", FORESTS)


class Prompted(SphinxPostTransform):
    """Folded cells whose author says what is in them keep their bars (book.css)."""

    default_priority = 198  # before MyST-NB folds them, which fills the place of {type} in

    def run(self, **kwargs) -> None:
        for cell in self.document.findall(nodes.container):
            if "{type}" not in cell.get("prompt_show", "{type}"):
                cell["classes"].append("prompted")


def with_time(app: Sphinx, doctree: nodes.document) -> None:
    """Under a chapter's title: the time to read it, for its exercises, and at paper scale; below
    that, how to run it."""
    docname = app.env.docname
    if not docname.startswith("notebooks/"):
        return
    shown = {id(part) for output in doctree.findall(nodes.container)
             if "cell_output" in output["classes"] for part in output.findall()}
    words = sum(len(part.astext().split()) for kind in (nodes.paragraph, nodes.literal_block)
                for part in doctree.findall(kind) if id(part) not in shown)
    exercises = sum("dropdown" in a["classes"] for a in doctree.findall(nodes.Admonition))
    grids = tomllib.loads((Path(app.srcdir) / "sweeps" / "paper.toml").read_text())["grid"]
    scale = times.at_paper_scale(docname.removeprefix("notebooks/"), grids)
    text = f"Time: {times.worded(words, exercises, scale)}"
    title = next(doctree.findall(nodes.title))
    line = nodes.paragraph("", f"{text}. Run it: ", classes=["time"])
    line += nodes.literal("", command(docname))
    title.parent.insert(title.parent.index(title) + 1, line)


def picture_first(app: Sphinx, doctree: nodes.document) -> None:
    """The bar of a chapter's parameters stands behind the picture of its opening, if it has one."""
    bar = next((cell for cell in doctree.findall(nodes.container)
                if "tag_parameters" in cell["classes"]), None)
    if bar is None:
        return
    behind = bar.parent[bar.parent.index(bar) + 1:]
    sections = [i for i, part in enumerate(behind) if isinstance(part, nodes.section)]
    opening = behind[:sections[0]] + behind[sections[0]].children if sections else behind
    picture = next(filter(is_picture, opening), None)
    if picture is not None:
        bar.parent.remove(bar)
        picture.parent.insert(picture.parent.index(picture) + 1, bar)


def is_picture(part: nodes.Node) -> bool:
    """Whether a part of a page shows a picture: drawn, or one that moves.

    >>> is_picture(nodes.container("", nodes.image())), is_picture(nodes.paragraph("", "no"))
    (True, False)
    """
    return any(isinstance(each, nodes.image) or
               (isinstance(each, nodes.raw) and "<img" in each.astext()) for each in part.findall())


def command(docname: str) -> str:
    """What runs a chapter, by the start of its name.

    >>> command("notebooks/nsatp/02_noise_sensitivity")
    'dnnbook run nsatp/02'
    """
    paper, _, name = docname.removeprefix("notebooks/").partition("/")
    return f"dnnbook run {paper}/{name.partition('_')[0]}"


def source(role: str, rawtext: str, text: str, lineno: int, inliner, options=None, content=None):
    """``{source}`dnnlib.room.module.name```: a link to the line where it is defined."""
    module, _, name = text.rpartition(".")
    link = nodes.reference("", "", internal=True, classes=["source"],
                           target=f"_modules/{module.replace('.', '/')}", anchor=name)
    link += nodes.literal("", f"{module.split('.', 1)[1].replace('.', '/')}.{name}")
    return [link], []


def resolve_sources(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """The address of each :func:`source`, from the page that it stands on."""
    for link in doctree.findall(nodes.reference):
        if "target" in link:
            link["refuri"] = "{}#{}".format(
                app.builder.get_relative_uri(docname, link["target"]), link["anchor"])


def without_tuple_fields(app: Sphinx, what: str, name: str, thing, skip: bool,
                         options) -> bool | None:
    """Fields of named tuples say of themselves only which number they have."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def with_address(app: Sphinx, config) -> None:
    """Buttons that open, run or report on the book, if it has an address of its own."""
    url = notebooks.repository()
    config.html_theme_options |= {"repository_url": url, "use_repository_button": bool(url),
                                  "use_issues_button": bool(url)}
    if not url:
        config.html_theme_options.pop("launch_buttons", None)


def one_search(app: Sphinx, config) -> None:
    """The search of the sidebar is enough: the theme would put another above the page."""
    config.html_theme_options["navbar_persistent"] = []


def without_thebe(app: Sphinx, config) -> None:
    """Thebe, which runs cells in the page, is not offered; its script would be put in twice."""
    for event in ("env-before-read-docs", "doctree-resolved"):
        for listener in list(app.events.listeners[event]):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)


def setup(app: Sphinx) -> dict:
    app.add_post_transform(FigureAlt)
    app.add_post_transform(Prompted)
    app.connect("config-inited", with_address)
    app.connect("config-inited", one_search)
    app.connect("config-inited", without_thebe)
    app.connect("doctree-read", with_time)
    app.connect("doctree-read", picture_first)
    app.add_role("source", source)
    app.connect("doctree-resolved", resolve_sources)
    app.connect("autodoc-skip-member", without_tuple_fields)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
