"""Every chapter with records trains and measures on the device that it is asked for."""

import ast

import jupytext
import pytest
import torch

from dnnbook import training
from dnnbook.chapters import notebooks, statements
from dnnlib import inference

LINE = 'device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto'
TRAINING = {"training.trained", "training.others", "training.fitted", "faulty.trained",
            "faulty.by_error"}
CHAPTERS = [path for path in notebooks.starting([], ".py") if "run.save(" in path.read_text()]


def left_out(source: str) -> list[str]:
    """What a chapter trains, saves or loads without its ``device``."""
    found = []
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in TRAINING | {"run.save"}:
            passed = {k.arg: ast.unparse(k.value) for k in call.keywords}
            if passed.get("device") != "device":
                found.append(f"{call.lineno}: {ast.unparse(call.func)}")
    if source.count("custom.load_model(") != source.count(").to(inference.device(device))"):
        found.append("custom.load_model")
    return found


def test_all_chapters_with_records_are_here():
    declaring = {path.stem for path in notebooks.declaring().values()}
    assert declaring and declaring <= {path.stem for path in CHAPTERS}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_trains_or_saves_is_told_the_device(path):
    source = path.read_text()
    assert source.count(LINE) == 1
    assert left_out(source) == []


@pytest.mark.parametrize("right, wrong", [
    ("training.trained(model_name, dataset, seed=seed, device=device)",
     "training.trained(model_name, dataset, seed=seed).to(device)"),
    ("faulty.by_error(model_name, dataset, device=device)", "faulty.by_error(model_name, dataset)"),
    ("training.others(names, model_name, dataset, device=device)",
     'training.others(names, model_name, dataset, device="cpu")'),
    ("custom.load_model(name, weights).to(inference.device(device))",
     "custom.load_model(name, weights)"),
    ("run.save(data, device=device)", "run.save(data)")])
def test_a_device_left_out_is_found(right, wrong):
    assert left_out(right) == [] and len(left_out(wrong)) == 1


class Reached(Exception):
    pass


@pytest.mark.parametrize("chapter", [
    "nsatp/01_motivation", "peacepact/01_motivation", "nss/03_one_mutation",
    "deepsensor_sensitivity/04_faulty_training", "deepsensor_excitable/10_start",
    "synthesis/04_same_inputs"])
def test_a_chapter_run_trains_where_it_was_asked_to(chapter, monkeypatch):
    path = notebooks.folder() / f"{chapter}.py"
    asked = []

    def fitted(*arguments, device="cpu", **options):
        asked.append(device)
        raise Reached

    for module in (training, training.loop):
        monkeypatch.setattr(module, "fitted", fitted)
    monkeypatch.setattr(inference, "device", torch.device)
    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"
             and statements.TAG not in cell.metadata.get("tags", ())]  # as in a run of one's own
    names = {"display": lambda *shown: None}
    with pytest.raises(Reached):
        for source in cells:
            exec(source.replace('device = "cpu"', 'device = "meta"'), names)  # the chapter's own
    assert asked == ["meta"]


@pytest.mark.parametrize("value, words", [
    ("foo", "unknown device 'foo'"), ("cuda:99", "device: cuda:99 is not there")])
@pytest.mark.parametrize("path", CHAPTERS[::9], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_another_device_is_refused(path, tmp_path, value, words):
    fresh = tmp_path / f"{path.stem}.ipynb"
    notebook = jupytext.read(path)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}
    jupytext.write(notebook, fresh)
    with pytest.raises(ValueError, match=words):
        notebooks.together(fresh, notebooks.typed(fresh, {"device": value}))
