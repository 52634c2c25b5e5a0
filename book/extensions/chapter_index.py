"""Chapters have their number in titles, sidebar and links; the index of what the papers print."""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dnnbook.chapters import notebooks
from dnnbook.chapters.numbers import numbered
from dnnbook.records import extent
from dnnbook.words import shown


def with_number(app: Sphinx, doctree: nodes.document) -> None:
    """The number of a chapter stands in its title, from where sidebar and links take it."""
    number = numbered(app.env.docname)
    if number:
        title = next(doctree.findall(nodes.title))
        title.insert(0, nodes.Text(f"{number}. "))


class PapersIndex(SphinxDirective):
    """``papers-index``: a row for each table and figure of a paper, with its chapter."""

    required_arguments = 1  # the paper

    def run(self) -> list[nodes.Node]:
        rows = extent.items().query("paper == @paper", local_dict={"paper": self.arguments[0]})
        text = StringList(lines(rows), "papers-index")
        box = nodes.container(classes=["whole"])  # tables.js does not fold it
        self.state.nested_parse(text, self.content_offset, box)
        return [box]


def lines(rows) -> list[str]:
    """The rows of :func:`extent.items` as a table in Markdown."""
    found = ["| in the paper | chapter | how much | cells run | not run |", "|---|---|---|---|---|"]
    for row in rows.to_dict("records"):
        page = notebooks.find(row["chapter"]).with_suffix("").relative_to(notebooks.folder())
        left = "; ".join(", ".join(map(shown, filter(None, pair)))
                         for pair in extent.lacking(row["paper"], row["item"]))
        cells = f"{row['run']} of {row['cells']}" if row["cells"] else "by code"
        if row["possible"] < row["cells"]:
            cells += f", data for {row['possible']}"
        item, chapter, cells = (text.replace(" ", "\N{NO-BREAK SPACE}")
                                for text in (row["item"], numbered(row["chapter"]), cells))
        found.append(f"| {item} | {{doc}}`{chapter} </notebooks/{page}>` | {row['state']} "
                     f"| {cells} | {left} |")
    return found


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", with_number, priority=400)  # before the titles are collected
    app.add_directive("papers-index", PapersIndex)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
