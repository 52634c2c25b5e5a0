"""Results in prose are put there by records: no number of one is typed."""

import ast
import re
from pathlib import Path

import jupytext
import pytest

import dnnbook
from dnnbook.chapters import notebooks
from dnnbook.chapters.statements import TAG

SOURCES = notebooks.starting([], ".py")
README = Path(__file__).resolve().parents[2] / "README.md"
# What holds digits and is no result: code, formulas, links, places in a paper, names, sizes.
NO_RESULT = [
    r"^:{3,}.*$", r"^:[a-z-]+:.*$", r"```.*?```", r"~~~.*?~~~", r"`[^`]*`", r"\$\$.*?\$\$", r"\$[^$]*\$", r"\]\([^)]*\)", r"<[^>]*>", r"https?://\S+",
    r"\{[a-z:-]+\}", r"\b(Tables?|Figs?\.|Figures?|Eqs?\.|Equations?|Sections?|Algorithms?|RQ|"
    r"[Ee]xercises?)\s*[\dIVXA-D]+[\d.A-D]*(\([a-z]\))?((,| and| to|-)\s*[\dIVXA-D]+[\d.A-D]*(\([a-z]\))?)*",
    r"\b[IVX]+\.[A-Z](\.\d)?(\.\d)?", r"\bRQ\s?\d", r"\b(LeNet|ResNet|CIFAR|Net|SHA|Model)-\d+",
    r"\bVGG-?\d+", r"\bL[012\N{INFINITY}]\b", r"\b\d+ (x|\N{MULTIPLICATION SIGN}) \d+\b", r"\b95 %",
    r"\bhalf (the )?widths?\b", r"^#.*$", r"^\s*\d+\. ", r"\bPython 3\.\d+"]
NUMBER = re.compile(
    r"\d[\d.,]*|\b(half|halves|thirds?|quarters?|fifths?|tenths?|hundredths?|twice|thrice|doubled?|doubles|"
    r"(two|three|four|five|six|seven|eight|nine|ten|twenty|hundred|thousand)"
    r"( to \w+)? (times|points|per cent|in ten|of (the )?(two|three|four|five|six|seven|eight|nine|"
    r"ten)))\b")


def typed(text: str) -> list[str]:
    """The numbers of a text that are no places, names or sizes, each with what is around it."""
    for pattern in NO_RESULT:
        text = re.sub(pattern, " ", text, flags=re.S if ".*?" in pattern else re.M)
    return [text[max(0, m.start() - 30):m.end() + 20].replace("\n", " ")
            for m in NUMBER.finditer(text)]


def results(path: Path) -> str:
    """The prose of a chapter that says what was found: all of the synthesis, else what it means."""
    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "markdown"]
    text = re.sub(r"^(:{3,}|`{3,}|~{3,})\{admonition\}.*?^\1\s*$", "", "\n\n".join(cells),
                  flags=re.M | re.S)  # exercises and solutions
    text = re.split(r"^#+ Exercises", text, flags=re.M)[0]
    if path.parent.name == "synthesis":
        return text
    return "\n".join(re.findall(r"(?:\*\*What it means\.?\*\*|^#+ What it means)(.*?)(?=^#|\Z)", text,
                                flags=re.M | re.S))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_result_is_typed_into_prose(path):
    assert typed(results(path)) == []


def test_no_result_is_typed_into_the_readme():
    computed = re.sub(r"<!-- computed -->.*?<!-- end -->", "", README.read_text("utf-8"), flags=re.S)
    assert typed(computed) == []


def sentences(source: str):
    """Of each sentence that is said without a condition, the parts that are typed."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "says":
            for given in call.args:
                if isinstance(given, ast.JoinedStr):
                    yield "".join(part.value if isinstance(part, ast.Constant) else " _ "
                                  for part in given.values)
                elif isinstance(given, ast.Constant):
                    yield given.value


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_number_of_a_sentence_without_a_condition_is_typed(path):
    for cell in jupytext.read(path).cells:
        if TAG in cell.metadata.get("tags", ()):
            assert [found for text in sentences(cell.source) for found in typed(text)] == []


GAP = r'(?: |" *\n *f?"| " *\n *f?")'
LIMIT = re.compile(rf'\b(at{GAP}least|no{GAP}less{GAP}than|at{GAP}most|no{GAP}more{GAP}than|up{GAP}to){GAP}?'
                   r'\{[^{}]*:\.\d[fg]\}', re.I)


@pytest.mark.parametrize("path", [*SOURCES, *sorted(Path(dnnbook.__file__).parent.rglob("*.py"))],
                         ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_limit_is_rounded_to_its_side(path):
    """'At least 99 %' of 98.7 is not true: words.rounded_down and rounded_up."""
    assert [found[0] for found in LIMIT.finditer(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("text, wrong", [
    ('f"at least {low:.0f} %"', 1), ('"at "\n   f"most {high:.2f} %"', 1), ('f"up to {high:.2g} %"', 1), ('f"At most "\n      f"{100 * high.max():.1f} points"', 1),
    ('f"at least {rounded_down(low)} %"', 0), ('f"about {low:.0f} %"', 0)])
def test_which_limits_round_to_the_nearest(text, wrong):
    assert len(LIMIT.findall(text)) == wrong


@pytest.mark.parametrize("text, count", [
    ("It finds 3.4 points more.", 1), ("It is twice as many, a half of them.", 2),
    ("See Table V and Figs. 1 to 3, IV.B.1, RQ2.", 0), ("LeNet-5 on CIFAR-10 with 2 x 2 pixels", 0),
    ("`k = 10` and $x^2$", 0), ("nine in ten are errors", 1), ("in two of three networks", 1),
    ("The two papers agree.", 0), ("[the page](01_selectors)", 0)])
def test_what_counts_as_a_number(text, count):
    assert len(re.findall(NUMBER, text)) >= count and len(typed(text)) == count
