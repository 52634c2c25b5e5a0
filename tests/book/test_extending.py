"""The page on adding one's own does what it says, word for word."""

import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from dnnbook import studies
from dnnbook.chapters import notebooks
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load
from dnnbook.display.whose import RECORDS
from dnnbook.records import records
from dnnbook.studies.ordering import SelectorKey
from dnnlib import inference

PAGE = (Path(__file__).resolve().parents[2] / "book" / "extending.md").read_text(encoding="utf-8")

MODEL = """
from torch import nn

def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """What the names on the page stand for at its end."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("extending")
        patch.chdir(place)
        for name in ("DATA", "CACHE", "RESULTS"):
            patch.setenv(f"DNNLIB_{name}", str(place / name.lower()))
        (place / "claims.toml").write_text("".join(re.findall(r"```toml\n(.*?)```", PAGE, re.S)))
        names = {"__name__": "page"}
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", PAGE, re.S)):
            exec(compile(block, f"block {number}", "exec"), names)
        imports, shown = re.search(r"```python\n(.*?)\n\n\n(@dataclass.*?)\n\n\n", PAGE, re.S).groups()
        (place / "contrast.py").write_text(f"{imports}\n\n{shown}\n")  # "save the class in a file"
        (place / "mymodel.py").write_text(MODEL)
        yield names


def test_the_selector_orders_by_its_score(followed):
    contrast = followed["data"].images
    order = followed["Contrast"]().order(None, contrast)
    spread = contrast.flatten(1).std(dim=1)[order]
    assert (spread.diff() >= 0).all() and set(followed["rates"]) == {"contrast", "gini"}


def test_the_fitness_finds_errors_within_the_budget(followed):
    campaign = followed["campaign"]
    assert campaign.errors.any() and campaign.l2.max() <= 8.0 * (1 + 1e-5)


def test_the_fuzzer_ends_at_gray_or_at_its_bound(followed):
    fade = followed["both"]["fade"]
    away = (0.5 - followed["inputs"]).flatten(1).norm(dim=1).clamp_max(8.0)
    assert fade.l2[-1].tolist() == pytest.approx(away.tolist(), rel=1e-4)


def test_the_folder_is_a_dataset(followed):
    assert len(followed["mine"]) == 20 and set(followed["mine"].classes) == {"even", "odd"}


def test_the_function_is_a_dataset(followed):
    assert len(followed["faint"]) == 597 and followed["faint"].images.max() == pytest.approx(0.5, abs=0.01)


def test_the_perturbation_changes_some_classes(followed):
    assert 0 < followed["shifted"].success.float().mean() < 1


@pytest.mark.parametrize("chapter, name, value", [
    ("nss/04", "dataset", "faint.py:faint"), ("nss/04", "model_name", "net.py:small"),
    ("nsatp/04", "patch", "shift.py:shift"), ("synthesis/01", "beside", "contrast.py:Contrast"),
    ("nsatp/02", "beside", "odds.py:Odds"), ("nsatp/04", "beside", "odds.py:Odds")])
def test_the_chapters_take_what_the_page_wrote(followed, chapter, name, value):
    assert f"dnnbook run {chapter} -p {name} {value}" in PAGE
    path = notebooks.find(chapter)
    values = notebooks.typed(path, {name: value})
    notebooks.together(path, values)  # what is said before a kernel starts
    assert Path(values[name].partition(":")[0]).is_file() and value.split(":")[1] in values[name]


@pytest.mark.parametrize("value", ["contrast.py:Contrast,gini", "odds.py:Odds,margin"])
def test_rank_takes_the_selectors_of_the_page(followed, dnnlib, value):
    assert f"dnnlib rank --model mymodel.py:build --images photos --by {value}" in PAGE
    code, _, err = dnnlib("rank", "--model", "mymodel.py:build", "--images", "mine/test", "--by", value,
                          "--channels", 1, "--size", 28, "--out", f"{value[:4]}.csv")
    assert code == 0, err
    assert value.split(":")[1].split(",")[0].lower() in Path(f"{value[:4]}.csv").read_text()


def test_nss_2_takes_the_others_from_the_books_record(followed, folders):
    """On digits, with a record in which the others are known by their values."""
    assert "-p dataset mnist -p profile paper -p beside contrast.py:Contrast -p keep true" in PAGE
    path = notebooks.find("nss/02")
    values = notebooks.typed(path, {"dataset": "digits", "references": "50", "profile": "paper",
                                    "beside": "contrast.py:Contrast"})
    values["keep"] = True
    with pytest.raises(ValueError, match="keep: the book has no record of nss/fault_detection; leave"):
        notebooks.together(path, values)
    run = Experiment("nss/fault_detection", "paper", dataset="digits", model_name="lenet1_nss", recipe="nss",
                     seed=0, candidates="random", references=50, beside="")
    others = [SelectorKey(name) for name in ("random", "nac", "kmnc", "npc", "dsa", "gini", "ats")] + [
        SelectorKey("nss", pair, "l1", 10) for pair in ("remutated", "original")]
    fdr = pd.DataFrame({rate: 71.25 for rate in (5, 10, 15, 20)}, index=[*others, SelectorKey("random, expected")])
    run.add(studies.tidy(fdr, "fdr"))
    for key in others:
        run.add({"apfd": 12.75}, **key.columns)
    run.save(load("digits"))
    ran = notebooks.run(path, values, folders / "ran.ipynb", bar=False)
    assert len([*(folders / "cache" / "orders").glob("*.safetensors")]) == 1  # no other selector ran
    shown = [output.data["text/html"] for cell in nbformat.read(ran, 4).cells for output in cell.get("outputs", ())
             if "APFD" in output.get("data", {}).get("text/html", "")]
    lines = {name: re.findall("<td>(.*?)</td>", line)
             for name, line in re.findall(r"<tr>\s*<th>(.*?)</th>\s*(<td>.*?)</tr>", "".join(shown[0]), re.S)}
    assert lines["contrast"][-1] == "this run" and lines["contrast"][-2] != "12.8"
    assert lines["DeepGini"] == ["71.2"] * 4 + ["12.8", RECORDS]
    assert [line[-1] for line in lines.values()].count(RECORDS) == len(others)
    mine, = (each for each in records.find("nss/fault_detection") if each.parameters["beside"])
    assert {row["method"] for row in mine.rows if row["quantity"] == "apfd"} == {"contrast", *(
        key.method for key in others)}


def test_the_network_is_trained(followed):
    found = inference.accuracy(followed["network"], followed["data"].images, followed["data"].labels)
    assert found > 0.5 and len(followed["network"]) == 4


def test_the_claim_gets_its_verdict(followed):
    verdict = followed["verdict"]
    assert verdict.claim.id == "nsatp-margin" and verdict.run == 1 and verdict.state != "not run"
    assert verdict.cells["seeds"].tolist() == [3]
