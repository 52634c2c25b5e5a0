"""The book has buttons that lead to its repository only if it has one."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes, utils

from dnnbook.chapters import lab_markup

EXTENSION = Path(__file__).resolve().parents[2] / "book" / "extensions" / "pages.py"
spec = importlib.util.spec_from_file_location("pages", EXTENSION)
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)


@pytest.mark.parametrize("url", ["", "https://git.example.org/reader/book"])
def test_buttons_only_with_an_address(monkeypatch, url):
    monkeypatch.setattr(pages.notebooks, "repository", lambda: url)
    config = SimpleNamespace(html_theme_options={"repository_url": "",
                                                 "launch_buttons": {"colab_url": "https://c"}})
    pages.with_address(None, config)
    options = config.html_theme_options
    assert ("launch_buttons" in options) == bool(url) and options["repository_url"] == url
    assert options["use_repository_button"] is options["use_issues_button"] is bool(url)


def test_a_chapter_says_how_to_run_it():
    for path in pages.notebooks.starting([], ".ipynb"):
        said = pages.command(f"notebooks/{path.parent.name}/{path.stem}").removeprefix("dnnbook run ")
        assert pages.notebooks.find(said) == path


@pytest.mark.parametrize("prompt, kept", [("Show code cell {type}", False), ("Parameters", True)])
def test_a_bar_with_words_of_its_own_is_marked(prompt, kept):
    document = utils.new_document("chapter")
    document += nodes.container("", prompt_show=prompt)
    document += nodes.container("")
    pages.Prompted(document).run()
    assert [part["classes"] for part in document] == [["prompted"] if kept else [], []]


@pytest.mark.parametrize("opening, order", [
    ("PI.", "IP."),  # the picture first
    ("PT[TI]T", "T[TIP]T"), ("PT[T][I]", "PT[T][I]"), ("PT", "PT")])  # in the first section; further down; none
def test_the_parameters_stand_behind_a_picture_of_the_opening(opening, order):
    kinds = {"P": lambda: nodes.container("", classes=["tag_parameters"]), "I": nodes.image, "T": nodes.paragraph,
             ".": nodes.comment}
    document = utils.new_document("chapter")
    place = title = nodes.section()
    document += title
    for letter in opening:
        if letter == "[":
            place = nodes.section()
            title += place
        elif letter == "]":
            place = title
        else:
            place += kinds[letter]()
    pages.picture_first(None, document)

    def spelt(part) -> str:
        if isinstance(part, nodes.section):
            return f"[{''.join(map(spelt, part.children))}]"
        return {nodes.container: "P", nodes.image: "I", nodes.paragraph: "T", nodes.comment: "."}[type(part)]

    assert spelt(title) == f"[{order}]"


def test_the_glossary_is_in_the_order_of_the_alphabet():
    text = (EXTENSION.parents[1] / "glossary.md").read_text("utf-8")
    terms = list(lab_markup.terms(text))
    assert len(terms) > 50 and terms == sorted(terms)
