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
OF_OTHERS = re.compile(r"[Pp]aper|Tables? |Figs?\. |records|NSATP|PEACEPACT|IV\.|CIFAR")
BY_HAND = re.compile(r"[Ss]uppose|by hand|small example")  # a paragraph


def ours(path):
    """The sentences of a chapter that speak of its own run, without its claim and its exercises; captions, too."""
    texts = []
    for cell in jupytext.read(path).cells[1:]:
        if cell.cell_type == "markdown" and "## Exercises" in cell.source:
            break
        live = cell.cell_type == "code" and not re.search(r"recorded=True|whose\.RECORDS", cell.source)
        figure = cell.metadata.get("mystnb", {}).get("figure", {}) if live else {}
        texts.append(cell.source if cell.cell_type == "markdown" else figure.get("caption", ""))
    text = re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$]*\$|^\|.*$|`[^`]*`", " ", "\n\n".join(texts), flags=re.S | re.M)
    return [sentence for paragraph in map(" ".join, map(str.split, text.split("\n\n"))) if not BY_HAND.search(paragraph)
            for sentence in re.split(r"(?<=[.:?]) (?=[A-Z*])", paragraph) if not OF_OTHERS.search(sentence)]


def counted(name, default):
    """How a text would count what a parameter counts; None for one that is no count."""
    if name not in COUNTED or default not in WORDS:
        return None
    return re.compile(rf"\b({WORDS[default]}|{default:,})( \w+)? ({COUNTED[name]})\b", re.I)


def told(name, default, value):
    """How a text or a figure would say the default of a parameter that has another value; None for one never said."""
    if name in ("dataset", "model_name"):
        digits = name == "dataset" and value != "digits"
        return re.compile(rf"(?<!-){re.escape(shown(default))}" + "|\\bdigits?\\b" * digits)
    if name in ("seed_class", "other_class"):
        return re.compile(rf"\b(class|called|neither|n?or) ['\"]?{default}\b")
    if name in ("near", "far"):
        return re.compile(rf"(≤|within|bound of) {default:g}\b(?!\.\d)")
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


FASHION = {  # a chapter takes what it asks for
    "dataset": "fashion_mnist_small", "model_name": "lenet1", "others": "lenet4", "small": "lenet4", "seed": 3, "seeds": "3",
    "seed_class": 7, "other_class": 3, "inputs": 3, "iterations": 2, "population": 2, "references": 50, "points": 1,
    "near": 0.5, "far": 5.0, "distances": "3", "bounds": "3", "trials": 7, "repeats": 3, "epochs": 1, "share": 20,
    "attacked_inputs": 3, "slowly_attacked_inputs": 1, "attack_steps": 2, "deepfool_steps": 2, "clever_inputs": 1,
    "clever_batches": 2, "clever_samples": 4, "many_batches": 2, "many_samples": 8, "pool": 10, "sections": 100,
    "lambdas": "0.2 0.7", "epsilons": "0.01", "kinds": "adversarial", "estimator_inputs": 1, "permutations": 2, "judged": 2,
    "most": 3, "held_out": 0}
DIGITS = FASHION | {
    "dataset": "digits", "model_name": "lenet4", "others": "lenet1", "seed": 5, "seeds": "5", "seed_class": 4,
    "other_class": 6, "inputs": 4, "iterations": 3, "population": 3, "references": 60, "points": 3, "near": 1.5,
    "far": 6.0, "distances": "6", "bounds": "6", "trials": 9, "repeats": 2, "share": 30}
NSS = {"model_name": "lenet5_nss"}
OTHERS = {  # chapters that run so in seconds; what else they are asked
    "nsatp/01": {}, "nsatp/02": {}, "nsatp/03": {}, "nsatp/04": {},
    "peacepact/01": {}, "peacepact/02": {}, "peacepact/03": {},
    "nss/00": NSS, "nss/01": NSS, "nss/02": NSS, "nss/03": NSS, "nss/04": NSS, "nss/05": NSS, "nss/06": NSS, "nss/07": NSS,
    "nss/08": {"methods": "gini,nss", "top": 0.1},
    "deepsensor_sensitivity/00": {}, "deepsensor_sensitivity/07": {}, "deepsensor_sensitivity/09": {},
    "deepsensor_sensitivity/12": {"methods": "dlfuzz,deepsensor"},
    "deepsensor_excitable/00": {"inputs": 6, "iterations": 6, "small": "lenet1", "model_name": "lenet4"}, "deepsensor_excitable/04": {}, "deepsensor_excitable/05": {},
    "deepsensor_excitable/08": {"dataset": "voices", "model_name": "resnet34_s", "others": "resnet34_s deep_speaker_s", "seed": 3, "under_epochs": 1, "over_epochs": 2}, "deepsensor_excitable/14": {"printed": 2},
    "deepsensor_sensitivity/01": {"inputs": 12, "iterations": 10}, "deepsensor_sensitivity/02": {},
    "deepsensor_sensitivity/03": {"population": 7}, "deepsensor_sensitivity/04": {}, "deepsensor_sensitivity/05": {},
    "deepsensor_sensitivity/06": {}, "deepsensor_sensitivity/08": {}, "deepsensor_sensitivity/10": {},
    "deepsensor_sensitivity/11": {}, "deepsensor_sensitivity/13": {"pixels": "0.2 0.7"}, "deepsensor_sensitivity/14": {},
    "deepsensor_excitable/01": {"inputs": 5}, "deepsensor_excitable/02": {}, "deepsensor_excitable/03": {},
    "deepsensor_excitable/06": {"attack_steps": 8},
    "deepsensor_excitable/07": {"inputs": 8}, "deepsensor_excitable/09": {}, "deepsensor_excitable/10": {},
    "deepsensor_excitable/11": {}, "deepsensor_excitable/12": NSS,
    "deepsensor_excitable/13": {"population": 4}, "deepsensor_excitable/15": {"model_name": "lenet4"},
    "synthesis/01": NSS, "synthesis/02": {}, "synthesis/04": NSS,
}


@pytest.mark.parametrize("base", [FASHION, DIGITS], ids=["fashion", "digits"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_run_with_other_parameters_says_nothing_of_the_defaults(name, base, shared_cache, monkeypatch):
    monkeypatch.setenv("DNNLIB_CACHE", str(shared_cache))
    monkeypatch.delenv("DNNLIB_BOOK", raising=False)  # the committed records
    path, cells, texts = notebooks.find(name).with_suffix(".py"), {"__name__": "__main__"}, []
    defaults = {key: p.default for key, p in notebooks.parameters(path.with_suffix(".ipynb")).items()}
    values = {key: value for key, value in (base | OTHERS[name]).items() if key in defaults}
    sources = [source for source in chapter.small(path, values)
               if "is_right(" not in source and "chapters.practice" not in source]
    plt.close("all")  # what other tests left open
    with matplotlib.rc_context():
        for source, of_records in zip(sources, chapter.of_records(sources)):
            said = chapter.run(source, cells)
            signs = re.findall(  # below a narrow figure in several lines
                rf"^(?:this run: [\s\S]*?seed \d+|{whose.RECORDS}$)", said.words, re.M)
            assert len(signs) == len(said.pictures), source
            assert all(sign == whose.RECORDS or f"seed {values['seed']}" in sign for sign in signs), source
            if not of_records:  # what is compared is counted
                texts += [re.sub("^The code above .*", "", said.text, flags=re.M), said.words]
    assert any(texts)
    found = {key: [m[0] for text in ours(path) + texts for m in pattern.finditer(text)]
             for key, value in values.items() if value != defaults[key] and (pattern := told(key, defaults[key], value))}
    assert not any(found.values()), found
