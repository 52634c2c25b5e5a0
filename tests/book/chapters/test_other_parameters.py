"""A chapter that runs with other parameters says nothing of its defaults, and each figure says whose it is."""

import re

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import pytest

from dnnbook.chapters import notebooks
from dnnbook.display import whose
from dnnbook.words import shown
from tests.book import cells as chapter

CHAPTERS = [path for path in notebooks.starting([], ".py") if notebooks.parameters(path.with_suffix(".ipynb"))]
WORDS = {4: "four", 5: "five", 6: "six", 8: "eight", 10: "ten", 12: "twelve", 20: "twenty", 30: "thirty",
         40: "forty", 50: "fifty", 60: "sixty", 100: "hundred", 1000: "thousand"}
COUNTED = {"inputs": "images|inputs|pairs|examples", "trials": "(inverted )?(patches|copies|trials|samples)",
           "repeats": "times|repetitions", "population": "particles|images|members", "most": "neurons|largest",
           "iterations": "iterations|moves", "references": "training images", "epochs": "epochs"}
OF_OTHERS = re.compile(r"[Pp]aper|Tables? |Figs?\. |records|NSATP|PEACEPACT|IV\.")
BY_HAND = re.compile(r"[Ss]uppose|by hand|small example")  # a paragraph


def ours(path):
    """The sentences of a chapter that speak of its own run, without its claim and its exercises; captions, too."""
    texts = []
    for cell in jupytext.read(path).cells[1:]:
        if cell.cell_type == "markdown" and "## Exercises" in cell.source:
            break
        figure = cell.metadata.get("mystnb", {}).get("figure", {}) if cell.cell_type == "code" else {}
        texts.append(cell.source if cell.cell_type == "markdown" else figure.get("caption", ""))
    text = re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$]*\$|^\|.*$|`[^`]*`", " ", "\n\n".join(texts), flags=re.S | re.M)
    return [sentence for paragraph in map(" ".join, map(str.split, text.split("\n\n"))) if not BY_HAND.search(paragraph)
            for sentence in re.split(r"(?<=[.:?]) (?=[A-Z*])", paragraph) if not OF_OTHERS.search(sentence)]


def counted(name, default):
    """How a text would count what a parameter counts; None for one that is no count."""
    if name not in COUNTED or default not in WORDS:
        return None
    return re.compile(rf"\b({WORDS[default]}|{default:,})( \w+)? ({COUNTED[name]})\b", re.I)


def told(name, default):
    """How a text or a figure would say the default of a parameter; None for one that is never said."""
    if name in ("dataset", "model_name"):
        return re.compile(rf"(?<!-){re.escape(shown(default))}" + "|\\bdigits?\\b" * (name == "dataset"))
    if name in ("seed_class", "other_class"):
        return re.compile(rf"\b(class|called|neither|n?or) ['\"]?{default}\b")
    if name in ("near", "far"):
        return re.compile(rf"(≤|within|bound of) {default:g}\b")
    return re.compile(rf"\bseed {default}\b") if name == "seed" else counted(name, default)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_sentence_spells_the_default_of_a_count(path):
    patterns = {name: counted(name, p.default)
                for name, p in notebooks.parameters(path.with_suffix(".ipynb")).items()}
    assert [(name, sentence) for sentence in ours(path) for name, pattern in patterns.items()
            if pattern and pattern.search(sentence)] == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_figure_says_whose_it_is(path):
    for cell in chapter.code(path):
        assert "plt.show()" not in cell.source
        assert "figure" not in cell.metadata.get("mystnb", {}) or re.search(
            r"\b(run|whose)\.(show|signed)\(", cell.source), cell.source


OTHERS = [
    ("deepsensor_sensitivity/08", {
        "dataset": "fashion_mnist_small", "model_name": "lenet1", "seed": 3, "seed_class": 7, "other_class": 3,
        "inputs": 3, "iterations": 2, "population": 2, "near": 0.5, "far": 5.0, "references": 50}),
    ("deepsensor_sensitivity/13", {"population": 4, "iterations": 5, "pixels": "0.2 0.7", "seed": 2}),
    ("peacepact/01", {"dataset": "fashion_mnist_small", "model_name": "lenet1", "seed": 3, "trials": 7, "repeats": 3,
                      "inputs": 4})]


@pytest.mark.parametrize("name, values", OTHERS, ids=[name for name, _ in OTHERS])
def test_a_run_with_other_parameters_says_nothing_of_the_defaults(name, values, monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK", raising=False)  # the committed records
    path, names, texts = notebooks.find(name).with_suffix(".py"), {"__name__": "__main__"}, []
    plt.close("all")  # what other tests left open
    with matplotlib.rc_context():
        for source in chapter.small(path, values):
            if "is_right(" in source or "chapters.practice" in source:
                continue
            said = chapter.run(source, names)
            signs = re.findall(rf"^(?:this run: .*|{whose.RECORDS})$", said.words, re.M)
            assert len(signs) == len(said.pictures), source
            if not re.search(r"\.(beside|recorded|verdicts)\(", source):  # what they show is of records
                texts += [said.text, said.words]
    assert any(f"seed {values['seed']}" in text for text in texts)
    defaults = {key: p.default for key, p in notebooks.parameters(path.with_suffix(".ipynb")).items() if key in values}
    found = {key: [m[0] for text in ours(path) + texts for m in pattern.finditer(text)]
             for key, default in defaults.items() if (pattern := told(key, default))}
    assert not any(found.values()), found
