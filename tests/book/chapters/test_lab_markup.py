"""The book's markup as what any viewer of notebooks shows; each kind as a small case."""

from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from dnnbook.chapters.lab_markup import Page, UnknownMarkup, html, markdown, terms

SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture
def page(tmp_path):
    """A chapter of a small book, in which another chapter and a page lie beside it."""
    for name in ("notebooks/nss/02_faults.ipynb", "notebooks/nss/03_more.ipynb", "book/api.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "book" / "drawn.svg").write_text(SVG)
    return Page("notebooks/nss/01_here", tmp_path,
                beside={"notebooks/nss/02_faults": "07_faults.ipynb", "book/neuron": "03_neuron.ipynb"},
                titles={"book/neuron": "What is a *neuron*?"},
                terms={"pass": 'Once through a "network", or {term}`two <pass>`.'},
                works={"gini": ("Feng et al., 2020", "https://doi.org/1"), "mine": ("Me, 1999", "")})


def shown(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).render(text)


def test_a_solution_folds_with_equations_and_code_inside(page):
    text = ("**1.** Why?\n````{admonition} Solution\n:class: dropdown\nAs\n$$\nx_1 = *y*\n$$\n"
            "see {term}`pass`:\n```python\nx = {'{term}`no`'}\n\n# [x](nowhere)\n```\n````\n**2.** And?")
    made = markdown(text, page)
    before, inside, after = made.partition("<details>")[0], *made.partition("<details>")[2].split("</details>")
    assert "Why?" in before and "And?" in after and ":class:" not in made
    assert inside.startswith("<summary>Solution</summary>\n\n") and inside.endswith("\n\n")
    assert "$$\nx_1 = *y*\n$$" in inside and "{'{term}`no`'}\n\n# [x](nowhere)" in inside
    assert '<abbr title="Once through a &quot;network&quot;, or two.">pass</abbr>' in inside
    assert '<code class="language-python">' in shown(made)


def test_a_note_is_a_box_with_its_title(page):
    made = markdown("```{note}\nMind *this*.\n```", page)
    assert made.strip().startswith("<div") and "**Note**\n\nMind *this*.\n\n</div>" in made
    assert "**Exercise**" in markdown("```{admonition} Exercise\n:class: tip\nHow many?\n```", page)


def test_a_term_keeps_its_form_and_works_in_a_table(page):
    made = markdown("| {term}`passes <pass>` | x |\n|---|---|\n| {term}`Pass` | y |", page)
    assert ">passes</abbr>" in made and ">Pass</abbr>" in made
    assert '<abbr title="Once' in markdown("{term}`two\nwords <pass>`", page)
    barred = Page("a", Path("."), terms={"p": "$P(a | b)$"})
    assert markdown("{term}`p`", barred) == '<abbr title="P(a &#124; b)">p</abbr>'


def test_a_figure_is_its_picture_with_words_and_caption(page):
    made = markdown("```{figure} ../../book/drawn.svg\n:alt: From \"a\" to b.\n:width: 416px\n:name: fig-x\n\n"
                    "Drawn after {cite}`gini`.\n```", page)
    assert '<img alt="From &quot;a&quot; to b." width="416" src="data:image/svg+xml;base64,PHN2' in made
    assert made.strip().endswith("Drawn after ([Feng et al., 2020](https://doi.org/1)).")
    with pytest.raises(UnknownMarkup, match="line 1: the figure .*without :alt:"):
        markdown("```{figure} ../../book/drawn.svg\n```", page)
    assert markdown("![a](../../book/drawn.svg)", page).startswith("![a](data:image/svg+xml;base64,")


@pytest.mark.parametrize("text, made", [
    ("[it](02_faults)", "[it](07_faults.ipynb)"),
    ("[it](../nss/02_faults.ipynb#verdict)", "[it](07_faults.ipynb#Verdict)"),
    ("[a `b`\n{term}`x <pass>`](../../book/neuron.md)", None),
    ("[it](03_more)", "it"),  # lies elsewhere, without an address
    ("[it](https://a.b/c_d_e)", "[it](https://a.b/c_d_e)"),
    ("`[it](nowhere)` and ``{nod}`x` ``", "`[it](nowhere)` and ``{nod}`x` ``"),
    ("{doc}`../../book/neuron`", "[What is a neuron?](03_neuron.ipynb)"),
    ("{doc}`more <03_more>`", "more"),
    ("{source}`dnnlib.selection.nss.score`", "`selection/nss.score`"),
    ("{cite}`gini,mine`", "([Feng et al., 2020](https://doi.org/1); Me, 1999)"),
    ("(here)=\n# Title", "# Title"),
    ("$\\mathrm{x}$ and {0, 1}", "$\\mathrm{x}$ and {0, 1}"),
])
def test_links_and_roles(page, text, made):
    got = markdown(text, page)
    assert got == made if made else got.endswith("](03_neuron.ipynb)") and "<abbr" in got


def test_what_lies_elsewhere_has_its_address(page, tmp_path):
    there = Page(page.name, tmp_path, elsewhere="https://a.b/{}".format)
    assert markdown("[it](03_more)", there) == "[it](https://a.b/notebooks/nss/03_more.ipynb)"
    assert html('<a class="x" href="03_more.html">it</a>', there) == (
        '<a class="x" href="https://a.b/notebooks/nss/03_more.ipynb">it</a>')
    assert html('<a href="03_more.html">it</a>', page) == "<a>it</a>"


def test_doors_are_headings_that_lead(page):
    made = markdown("::::{grid} 1 1 3\n:gutter: 2\n\n:::{grid-item-card} Learn\n:link: ../../book/neuron\n"
                    ":link-type: doc\nWhat it {term}`is <pass>`.\n:::\n::::", page)
    assert "**[Learn](03_neuron.ipynb)**\n\nWhat it <abbr" in made and ":::" not in made


def test_a_glossary_is_its_terms_and_meanings(page):
    text = "```{glossary}\npass\nforward pass\n    Once.\n\n    Twice.\nseed\n    A number.\n```"
    assert terms(text) == {"pass": "Once.", "forward pass": "Once.", "seed": "A number."}
    assert "**pass, forward pass**\n\nOnce.\n\nTwice.\n\n**seed**\n\nA number." in markdown(text, page)


@pytest.mark.parametrize("text, said", [
    ("One.\n\nTwo {nod}`x`.", "line 3: the role {nod}"),
    ("One.\n\n```{sidebar} x\n```", "line 3: the block {sidebar}"),
    ("::::{grid} 1\n\n:::{tab} x\n:::\n::::", "line 3: the block {tab}"),
    ("```{note}\nOne.\n{nod}`x`\n```", "line 3: the role {nod}"),
    ("a\n{term}`nobody`", "line 2: the term 'nobody'"),
    ("{cite}`nobody`", "line 1: the work 'nobody'"),
    ("[it](04_none)", "line 1: a link to 04_none"),
    ("```{figure} none.svg\n:alt: x\n```", "line 1: a picture none.svg"),
])
def test_what_is_not_known_is_named_with_its_line(page, text, said):
    with pytest.raises(UnknownMarkup, match="^notebooks/nss/01_here, ") as error:
        markdown(text, page)
    assert said in str(error.value)


def test_a_reader_s_own_markup_stays_as_it_is_where_the_page_is_not_strict(page):
    text = "```{sidebar} x\ny\n```\n{nod}`x`, {term}`nobody`, [it](04_none), {cite}`me`"
    assert markdown(text, replace(page, strict=False)) == text
    assert html('<a href="04_none.html">', replace(page, strict=False)) == '<a href="04_none.html">'
