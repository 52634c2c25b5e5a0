"""The README says what the welcome page says, where records are asked whether it is true."""

import re
from pathlib import Path

import nbformat

from dnnbook.chapters import notebooks, statements

ROOT = Path(__file__).resolve().parents[2]


def plain(text: str) -> str:
    """Text without links, emphasis, what stands in brackets, and breaks of lines."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r" \([^)]*\)|[*`]", "", text)
    return " ".join(text.split())


def welcomed() -> dict[str, str]:
    """What the page says below each heading of 'What we found'."""
    found, heading = {}, None
    for cell in nbformat.read(notebooks.folder() / "synthesis" / "00_welcome.ipynb", 4).cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if line.startswith("#"):
                heading = line.removeprefix("### ") if line.startswith("### ") else None
        if heading and statements.TAG in cell.metadata.get("tags", ()):
            said = [output.data[statements.MIME] for output in cell.outputs]
            found[heading] = found.get(heading, "") + " " + plain(" ".join(said))
    return found


def test_the_findings_of_the_readme_are_sentences_of_the_welcome_page():
    bullets = re.findall(r"^- \*\*(Ask .*?)\.\*\* (.*?)(?=\n- |\n\n)",
                         (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    page = welcomed()
    assert [heading for heading, _ in bullets] == list(page) and len(page) == 3
    for heading, text in bullets:
        for sentence in re.split(r"(?<=\.) ", plain(text)):
            assert sentence.removesuffix(".") in page[heading], sentence
