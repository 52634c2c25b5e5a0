"""The page that `dnnbook run --html` writes, in a browser without a network."""

import nbformat

from dnnbook.chapters import notebooks

TEXT = "An equation $a_i^2$, and one of its own:\n\n$$\\sum_i \\frac{a_i}{2}$$\n\nIt costs \\$5."


def test_equations_are_drawn_without_a_network(browser, tmp_path):
    cell = nbformat.v4.new_markdown_cell(TEXT)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "run.ipynb")
    (tmp_path / "run.html").write_text(notebooks.web_page(tmp_path / "run.ipynb"), "utf-8")
    page = browser.new_page(offline=True)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "run.html").as_uri())
    page.wait_for_function("document.querySelectorAll('mjx-container svg').length === 2")
    assert page.locator("mjx-container[display=true]").count() == 1
    assert page.get_by_text("It costs $5.").is_visible()
    assert len(asked) == 1 and not said, (asked, said)
    page.close()
