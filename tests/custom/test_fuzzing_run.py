import json
import math
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import get_args, get_type_hints

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from tqdm import tqdm

from dnnlib import custom, selection
from dnnlib.cli import main
from dnnlib.custom import Options, fuzzing_run, whole_levels
from dnnlib.custom.options import ATTACKS, METHODS, SWARMS, Given
from dnnlib.fuzzing import Budget, Noise
from tests.custom.changed import Changed


@pytest.fixture
def folder(tmp_path, tiny_data, own, monkeypatch):
    """Twenty images in the folders of their classes, one that is broken, a model; we are there."""
    monkeypatch.chdir(tmp_path)
    for i in range(20):
        path = tmp_path / "photos" / tiny_data.classes[tiny_data.labels[i]] / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = (tiny_data.images[i, 0] * 255).round().to(torch.uint8).numpy()
        Image.fromarray(pixels).save(path)
    (tmp_path / "photos" / "torn.png").write_bytes(b"")
    (tmp_path / "own.py").write_text(own)
    return tmp_path


@pytest.fixture
def photos(folder, tiny_model):
    return custom.read_photos("photos", tiny_model())


@pytest.fixture
def dnnlib(monkeypatch, capsys):
    """``dnnlib("fuzz", ...)``: exit code, stdout and stderr of a command."""
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dnnlib", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, *capsys.readouterr()
    return call


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes()
            for p in sorted(folder.rglob("*")) if p.is_file()}


def command(*more, by="noise", out="failures"):
    return ["fuzz", "--model", "own.py:build", "--images", "photos", "--by", by, "--l2", "2",
            "--out", out, *more]


def opened(path):
    return np.asarray(Image.open(path)) / np.float32(255)


# ---- 8-bit images


@pytest.mark.parametrize("l2, linf", [(0.3, None), (None, 0.021), (0.3, 0.05), (5.0, None),
                                      (0.01, None), (None, 0.001)])
def test_rounded_images_stay_within_the_budget(generator, l2, linf):
    inputs = torch.randint(256, (30, 3, 6, 6), generator=generator()) / 255
    budget = Budget(l2=l2, linf=linf)
    x = budget.project(inputs + torch.randn(inputs.shape, generator=generator(1)), inputs)
    images = whole_levels(x, inputs, budget)
    assert images.dtype == torch.uint8
    step = (images.double() - (inputs.double() * 255).round()) / 255
    assert step.flatten(1).norm(dim=1).max() <= (l2 or math.inf) * (1 + 2e-6)
    assert step.abs().max() <= (linf or math.inf) * (1 + 2e-6)
    assert ((images / 255 - x).abs() < 1 / 255 + 1e-6).all()  # the next level, up or down


def test_images_inside_the_budget_are_rounded_to_the_nearest(generator):
    inputs = torch.randint(256, (5, 1, 6, 6), generator=generator()) / 255
    x = (inputs + 0.1 * torch.randn(inputs.shape, generator=generator(1))).clamp(0, 1)
    assert torch.equal(whole_levels(x, inputs, Budget(l2=9.0)), (x * 255).round().byte())


def test_as_few_steps_as_needed_are_shortened(generator):
    """Against a loop over images and thresholds."""
    inputs = torch.full((20, 1, 5, 5), 100 / 255)
    budget = Budget(l2=0.04)
    x = budget.project(inputs + 0.01 * torch.randn(inputs.shape, generator=generator()), inputs)
    images, least = whole_levels(x, inputs, budget), []
    for image, point in zip(images, x):
        steps = [float(v) * 255 - 100 for v in point.flatten()]
        for threshold in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            levels = [math.copysign(math.floor(abs(s)) + (abs(s) % 1 >= threshold), s)
                      for s in steps]
            if math.hypot(*levels) <= 0.04 * 255 * (1 + 1e-6):
                break
        least.append(threshold)
        assert image.flatten().tolist() == [100 + level for level in levels]
    assert 0.5 in least and max(least) > 0.5


# ---- what is found


@pytest.mark.parametrize("by", custom.METHODS)
def test_every_file_fails_when_it_is_loaded_again(folder, photos, tiny_model, by):
    reference = photos.images if by == "deephunter" else None
    options = Options(by=by, l2=2.5, linf=None if by in ATTACKS else 0.6, iterations=6, block=5,
                      seed=3, population=6 if by in SWARMS else None)
    found = custom.fuzz(tiny_model(), photos, "failures", options, reference=reference)
    model = tiny_model()
    assert len(found.failures)
    files = [name for name in content(folder / "failures") if name.startswith("images/")]
    assert sorted(found.failures["file"]) == files
    for case in found.failures.itertuples():
        x, seed = opened(folder / "failures" / case.file), opened(folder / "photos" / case.input)
        with torch.no_grad():
            given, label = (str(int(model(torch.from_numpy(v)[None, None]).argmax()))
                            for v in (x, seed))
        assert given == case.predicted != case.label == label
        step = x.astype(float) - seed
        assert case.l2 == pytest.approx(np.linalg.norm(step), abs=1e-5)
        assert case.linf == pytest.approx(np.abs(step).max(), abs=1e-5)
        assert case.l2 <= 2.5 + 1e-5 and case.linf <= (options.linf or 1) + 1e-5


def test_nearest_of_each_seed_and_wrong_class(photos, tiny_model, generator):
    """Against a loop over all examples of a campaign of the same random numbers."""
    model, inputs, shown = tiny_model(), photos.images, []
    with torch.no_grad():
        labels = model(inputs).argmax(1)
    noise = Noise(budget=Budget(l2=4.0), scale=0.7)
    noise.run(model, inputs, labels, iterations=15, generator=generator(4), watch=shown.append)
    best = {}
    for number, x in enumerate(shown, start=1):
        for i, image in enumerate(whole_levels(x, inputs, noise.budget)):
            with torch.no_grad():
                given = int(model(image[None] / 255).argmax())
            far = float((image / 255 - inputs[i]).norm())
            if given != labels[i] and far < best.get((i, given), (math.inf,))[0]:
                best[i, given] = far, number
    made, passes = custom.failures.nearest(model, noise, inputs, labels, iterations=15,
                                           generator=generator(4))
    assert passes == 15 * len(inputs)
    assert [(c["input"], c["predicted"]) for c in made] == sorted(best)
    assert [c["iteration"] for c in made] == [best[key][1] for key in sorted(best)]
    assert len({seed for seed, _ in best}) < len(best)  # some seed has two wrong classes


def test_examples_of_inputs_between_levels_are_within_the_budget_of_these(generator):
    class Bright(nn.Module):
        """What has a pixel of at least ``level`` is another class."""
        def __init__(self, level):
            super().__init__()
            self.least = (level - 0.5) / 255

        def forward(self, x):
            return torch.stack([torch.zeros(len(x)), 1000 * (x.amax((1, 2, 3)) - self.least)], 1)

    inputs = torch.full((4, 1, 2, 2), 0.5 + 0.3 / 255)  # 127.8 of 255
    noise = Noise(budget=Budget(linf=2 / 255), scale=0.004)
    made = {level: custom.failures.nearest(Bright(level), noise, inputs, torch.zeros(4, dtype=torch.long),
                                           iterations=40, generator=generator(0))[0] for level in (129, 130)}
    assert made[129] and not made[130]  # 1.2 and 2.2 levels from the input


def test_an_example_on_the_edge_between_two_classes_is_no_failure(generator):
    """Rounding errors would decide its class anew with every batch size."""
    class Edge(nn.Module):
        def __init__(self):
            super().__init__()
            self.lead = nn.Parameter(torch.tensor(0.0))

        def forward(self, x):
            return torch.stack([torch.zeros(len(x)), self.lead.expand(len(x))], 1)

    def made(lead):
        model = Edge()
        model.lead.data.fill_(lead)
        return custom.failures.nearest(
            model, Noise(budget=Budget(l2=1.0)), torch.full((2, 1, 2, 2), 0.6),
            torch.tensor([0, 0]), iterations=1, generator=generator())[0]

    assert len(made(1e-5)) == 0 and len(made(1e-2)) == 2


def test_errors_that_rounding_undoes_are_no_failures(generator):
    """Against a model that is wrong on what no 8-bit image can hold."""
    class OffGrid(nn.Module):
        def __init__(self):
            super().__init__()
            self.least = nn.Parameter(torch.tensor(0.01))

        def forward(self, x):
            off = (x * 255 - (x * 255).round()).abs().amax((1, 2, 3))
            return torch.stack([self.least.expand(len(x)), off], 1) * 100

    model, inputs, noise = OffGrid(), torch.full((3, 1, 4, 4), 100 / 255), Noise(
        budget=Budget(l2=1.0))
    labels = torch.zeros(3, dtype=torch.int64)
    campaign = noise.run(model, inputs, labels, iterations=4, generator=generator())
    assert campaign.errors.all()
    assert custom.failures.nearest(model, noise, inputs, labels, iterations=4,
                                  generator=generator())[0] == []


def test_every_image_has_one_outcome(photos, tiny_model):
    options = Options(by="noise", l2=2.0, labels="folders", limit=4, iterations=5)
    found = custom.fuzz(tiny_model(), photos, "failures", options)
    assert found.inputs["path"].tolist() == [*photos.paths, "torn.png"]
    right = []
    for path, image in zip(photos.paths, photos.images):
        with torch.no_grad():
            if "abc"[int(tiny_model()(image[None]).argmax())] == path[0]:
                right.append(path)
    outcomes = found.inputs.set_index("path")["outcome"]
    tried = [right[i * len(right) // 4] for i in range(4)]
    assert outcomes[outcomes.isin(["broken", "held"])].index.tolist() == tried
    assert set(outcomes.index[outcomes == "left out"]) == set(right) - set(tried)
    assert set(outcomes.index[outcomes == "misclassified"]) == set(photos.paths) - set(right)
    assert outcomes["torn.png"] == "unreadable"
    assert set(found.failures["input"]) == set(outcomes.index[outcomes == "broken"])
    assert set(found.failures["label_from"]) == {"folders"}
    counts = found.inputs.set_index("path")["failures"]
    assert found.failures["input"].value_counts().to_dict() == counts[counts > 0].to_dict()


def test_labels_are_the_predictions_by_default(photos, tiny_model):
    found = custom.fuzz(tiny_model(), photos, "failures", Options(by="noise", l2=1.0, iterations=2))
    with torch.no_grad():
        given = tiny_model()(photos.images).argmax(1)
    assert found.inputs["label"][:20].tolist() == [str(int(i)) for i in given]
    assert set(found.inputs["outcome"][:20]) <= {"broken", "held"}


def test_tables_are_the_files(folder, photos, tiny_model):
    found = custom.fuzz(tiny_model(), photos, "failures", Options(by="noise", l2=2.0, iterations=5))
    for name in ("inputs", "failures"):
        read = pd.read_csv(folder / "failures" / f"{name}.csv", dtype=str, keep_default_na=False)
        assert read.equals(getattr(found, name).astype(str))


def test_population_and_layers_reach_the_swarm():
    fuzzer = Options(by="deepsensor", l2=1.0, population=7, layers=("0",)).fuzzer()
    assert (fuzzer.population, fuzzer.fitness.layers, fuzzer.budget) == (7, ("0",), Budget(l2=1.0))
    assert Options(by="deepsensor", linf=0.1).fuzzer().population == 100


def test_a_swarm_of_one_particle(photos, tiny_model):
    options = Options(by="deepsensor", l2=1.0, population=1, iterations=2, limit=2)
    assert len(custom.fuzz(tiny_model(), photos, "failures", options).inputs) == 21


def test_pictures_show_the_nearest_of_each_seed(folder, photos, tiny_model):
    found = custom.fuzz(tiny_model(), photos, "failures", Options(by="dlfuzz", l2=3.0, iterations=9))
    parts = custom.pictures(found, photos, "failures", limit=2)
    nearest = found.failures.groupby("input")["l2"].min().sort_values()[:2]
    assert len(nearest) == 2
    (inputs, names), (examples, distances), (changes, _) = parts.values()
    assert [name.split("\n")[1] for name in names] == nearest.index.tolist()
    assert [d.split()[-1] for d in distances] == [f"{v:.2f}" for v in nearest]
    assert (examples - inputs).flatten(1).norm(dim=1).tolist() == pytest.approx(nearest.tolist(),
                                                                               abs=1e-5)
    small = (examples - inputs).abs() < 0.049
    assert torch.allclose((changes - 0.5)[small], 10 * (examples - inputs)[small], atol=1e-5)
    assert set(changes[~small & (examples < inputs)].round(decimals=1).tolist()) <= {0.0}


def test_nothing_to_show_where_nothing_failed(photos, tiny_model):
    found = custom.fuzz(tiny_model(), photos, "failures", Options(by="noise", linf=1e-4, iterations=1))
    assert found.failures.empty and custom.pictures(found, photos, "failures") == {}


# ---- runs that go on


def test_killed_and_run_again_gives_the_files_of_one_run(folder, dnnlib, killed):
    more = ["--iterations", "4", "--block", "4"]
    assert dnnlib(*command(*more, out="whole"))[0] == 3  # one image could not be read
    whole = content(folder / "whole")
    ended = subprocess.run([sys.executable, "-c", killed, "8", *command(*more)],
                           capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    left = content(folder / "failures")
    assert len(set(left) - set(whole)) == 1  # the file that was being written
    blocks = {name for name in whole if name.startswith("blocks/")}
    assert set() < blocks & set(left) < blocks and "failures.csv" not in left
    code, _, err = dnnlib(*command(*more))
    assert code == 3, err
    assert content(folder / "failures") == whole
    inputs = pd.read_csv(folder / "failures" / "inputs.csv")["path"]
    assert inputs.is_unique and len(inputs) == 21


def test_blocks_mix_the_classes_and_tables_do_not(folder, photos, tiny_model):
    """Seeds of one class would cover much the same neurons."""
    found = custom.fuzz(tiny_model(), photos, "failures", Options(by="dlfuzz", l2=4.0, block=5))
    blocks = [[case["input"] for case in json.loads(path.read_bytes()) if "file" in case]
              for path in sorted((folder / "failures" / "blocks").glob("*.json"))]
    assert min(map(len, blocks)) > 1
    assert all({*block} != {*range(min(block), max(block) + 1)} for block in blocks)
    assert sorted(sum(blocks, [])) == [photos.paths.index(path) for path in found.failures["input"]]


def test_every_block_and_seed_number_has_random_numbers_of_its_own(photos, tiny_model,
                                                                   monkeypatch):
    streams, run = [], Noise.run

    def watched(self, *arguments, generator, **options):
        if generator.initial_seed():  # 0 is that of the trial on two images
            streams.append(generator.initial_seed())
        return run(self, *arguments, generator=generator, **options)

    monkeypatch.setattr(Noise, "run", watched)
    for seed in (0, 1):
        custom.fuzz(tiny_model(), photos, f"failures{seed}",
                   Options(by="noise", l2=1.0, iterations=1, block=7, seed=seed))
    assert len(streams) == 6 == len({*streams})


@pytest.mark.parametrize("by", custom.METHODS)
def test_blocks_do_not_depend_on_those_before(folder, photos, tiny_model, by):
    """A block that is lost is made again, alone, to the same bytes."""
    options = Options(by=by, l2=2.0, iterations=3, block=5, limit=15,
                      population=5 if by in SWARMS else None)

    def run():
        custom.fuzz(tiny_model(), photos, "failures", options,
                   reference=photos.images if by == "deephunter" else None)
        return content(folder / "failures")

    whole = run()
    (folder / "failures" / "blocks" / "00001.json").unlink()
    assert run() == whole


def test_bar_counts_seeds_and_starts_at_those_done(photos, tiny_model, monkeypatch):
    bars = []

    class Bar(tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "disable": True})
            bars.append([options["total"], options["initial"], 0])

        def update(self, n=1):
            bars[-1][2] += n

    monkeypatch.setattr(fuzzing_run, "progress", Bar)
    options = Options(by="noise", l2=1.0, iterations=1, block=8)
    custom.fuzz(tiny_model(), photos, "failures", options)
    (fuzzing_run.Path("failures") / "blocks" / "00002.json").unlink()
    custom.fuzz(tiny_model(), photos, "failures", options)
    assert bars == [[20, 0, 20], [20, 16, 4]]


def test_a_finished_run_is_not_made_again(folder, photos, tiny_model, monkeypatch):
    options = Options(by="noise", l2=1.0, iterations=2)
    first = custom.fuzz(tiny_model(), photos, "failures", options)
    before = content(folder / "failures")
    monkeypatch.setattr(fuzzing_run, "nearest", None)
    again = custom.fuzz(tiny_model(), photos, "failures", options)
    assert content(folder / "failures") == before and again.failures.equals(first.failures)


@pytest.mark.parametrize("change, words", [
    ({"l2": 2.0}, "l2 was 1.0 and is 2.0"), ({"seed": 1}, "seed was 0 and is 1"),
    ({"by": "dlfuzz"}, "by was 'noise' and is 'dlfuzz'"), ({"block": 2}, "block was None and is 2"),
    ({"labels": "folders"}, "labels was 'prediction' and is 'folders'"), ("model", "model was"),
    ("images", "images was"), ("probabilities", "probabilities was False and is True")])
def test_folder_of_another_run(folder, photos, tiny_model, change, words):
    options = {"by": "noise", "l2": 1.0, "iterations": 1}
    custom.fuzz(tiny_model(), photos, "failures", Options(**options))
    before = content(folder / "failures")
    model, more = tiny_model(1 if change == "model" else 0), {}
    if change == "probabilities":
        model, more = nn.Sequential(model, nn.Softmax(1)), {"probabilities": True}
    if change == "images":
        photos = custom.Photos(photos.images.flip(0), photos.paths, photos.skipped, 0)
    if isinstance(change, dict):
        options |= change
    with pytest.raises(ValueError, match=f"out: failures holds another run: .*{words}"):
        custom.fuzz(model, photos, "failures", Options(**options), **more)
    assert content(folder / "failures") == before


@pytest.mark.parametrize("name, text, words", [
    ("notes.txt", "mine", "holds files, and none is the run.json"),
    (".hidden", "mine", "holds files, and none is the run.json"),
    ("run.json", "{", "is not of a run to go on with"),
    ("run.json", "3", "is not of a run to go on with"),
    ("run.json", "{}", "is not of a run to go on with: .*earlier version")])
def test_folder_that_holds_something_else(folder, photos, tiny_model, name, text, words):
    (folder / "failures").mkdir()
    (folder / "failures" / name).write_text(text)
    with pytest.raises(ValueError, match=f"out: .*{words}"):
        custom.fuzz(tiny_model(), photos, "failures", Options(by="noise", l2=1.0))
    assert content(folder / "failures") == {name: text.encode()}


def test_a_file_is_no_folder(photos, tiny_model, folder):
    with pytest.raises(ValueError, match="out: expected a folder, got the file own.py"):
        custom.fuzz(tiny_model(), photos, "own.py", Options(by="noise", l2=1.0))


# ---- what cannot be


@pytest.mark.parametrize("options, words", [
    ({}, "l2, linf: expected at least one"), ({"l2": 0.0}, "l2: expected a distance above 0"),
    ({"l2": 1.0, "linf": -1.0}, "linf: expected"), ({"l2": math.inf}, "l2: expected"),
    ({"l2": 1.0, "iterations": 0}, "iterations: expected a whole number of at least 1, got 0"),
    ({"l2": 1.0, "population": 0}, "population: expected"),
    ({"l2": 1.0, "population": 5, "by": "noise"}, "population: only with deepsensor and excitable, got noise"),
    ({"l2": 1.0, "layers": ("0",), "by": "dlfuzz"}, "layers: only with"),
    ({"l2": 1.0, "by": "deepsensr"}, "unknown method 'deepsensr'; did you mean 'deepsensor'"),
    ({"l2": 1.0, "labels": "folder"}, "unknown labels 'folder'; did you mean 'folders'"),
    ({"l2": 1.0, "limit": 0}, "limit: expected"), ({"l2": 1.0, "block": 0}, "block: expected"),
    ({"l2": 1.0, "batch_size": 0}, "batch_size: expected"),
    ({"l2": 1.0, "seed": 0.5}, "seed: expected a whole number from 0 to 4294967295, got 0.5")])
def test_options_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        Options(**options)


@pytest.mark.parametrize("by, reference, words", [
    ("deephunter", None, "got none with deephunter"),
    ("noise", torch.zeros(1, 1, 8, 8), "got some with noise")])
def test_training_images_for_deephunter_only(photos, tiny_model, folder, by, reference, words):
    with pytest.raises(ValueError, match=f"reference: expected training images.*{words}"):
        custom.fuzz(tiny_model(), photos, "failures", Options(by=by, l2=1.0), reference=reference)


@pytest.mark.parametrize("change, words", [
    (lambda z: F.dropout(z, 0.5, training=True), "two passes .* is dropout"),
    (lambda z: z * float("nan"), "finite outputs"),
    (lambda z: z.softmax(1), "probabilities where logits are expected")])
def test_models_that_cannot_be_fuzzed(photos, tiny_model, folder, change, words):
    with pytest.raises(ValueError, match=f"^model: .*{words}"):
        custom.fuzz(Changed(tiny_model(), change), photos, "failures", Options(by="noise", l2=1.0))
    assert not (folder / "failures").exists()


def test_dropout_as_a_module_is_switched_off(photos, tiny_model, folder):
    model = nn.Sequential(tiny_model(), nn.Dropout(0.5)).train()
    options = Options(by="noise", l2=2.0, iterations=3)
    found = custom.fuzz(model, photos, "failures", options)
    assert found.failures.equals(custom.fuzz(tiny_model(), photos, "other", options).failures)


def test_a_campaign_that_fails_leaves_no_folder(photos, tiny_model, folder):
    """So that the next try, with other options, is no other run."""
    model = tiny_model()
    with pytest.raises(ValueError, match="unknown layer 'unused'"):
        custom.fuzz(model, photos, "failures", Options(by="deepsensor", l2=1.0, layers=("unused",)))
    assert not (folder / "failures").exists()
    found = custom.fuzz(model, photos, "failures",
                       Options(by="deepsensor", l2=1.0, layers=("0",), population=3, iterations=1,
                               limit=2))
    assert len(found.inputs) == 21


@pytest.mark.parametrize("rename, words", [
    ({"c": "b"}, "expected 3 sub-folders, one for each class of the model, got 2: a, b"),
    ({"a": "."}, r"every image in the sub-folder of its class, got \d\d.png"),
    ({"a": "z"}, None)])
def test_folders_that_are_not_the_classes(photos, tiny_model, rename, words):
    paths = tuple((rename.get(path[0], path[0]) + path[1:]).removeprefix("./")
                  for path in photos.paths)
    renamed = custom.Photos(photos.images, paths, photos.skipped, 0)
    options = Options(by="noise", l2=1.0, labels="folders", iterations=1)
    if words:
        with pytest.raises(ValueError, match=f"^labels: .*{words}"):
            custom.fuzz(tiny_model(), renamed, "failures", options)
    else:  # the order of the names decides
        found = custom.fuzz(tiny_model(), renamed, "failures", options)
        assert set(found.inputs["label"]) == {"b", "c", "z", ""}


def test_a_model_that_gets_nothing_right(photos, tiny_model):
    with torch.no_grad():
        given = tiny_model()(photos.images).argmax(1)
    paths = tuple(f"{'abc'[(int(g) + 1) % 3]}/{i}.png" for i, g in enumerate(given))
    wrong = custom.Photos(photos.images, (*paths[:-1], paths[-1]), {"a/x.png": "", "b/x.png": "",
                                                                    "c/x.png": ""}, 0)
    with pytest.raises(ValueError, match="labels: the model gets none of 20 images right"):
        custom.fuzz(tiny_model(), wrong, "failures", Options(by="noise", l2=1.0, labels="folders"))


# ---- the command


def test_command_writes_and_says_what_became_of_the_images(folder, dnnlib):
    (folder / "photos" / "notes.txt").write_text("no image")
    code, out, err = dnnlib(*command("--labels", "folders", "--limit", "3", "--seed", "2",
                                    "--l2", "4", by="dlfuzz"))
    assert code == 3, err  # one image could not be read
    inputs = pd.read_csv(folder / "failures" / "inputs.csv")["outcome"].value_counts()
    table = pd.read_csv(folder / "failures" / "failures.csv")
    assert f"{inputs['broken']} broken" in out and f"failing inputs: {len(table)}" in out
    for words in ("20 images of 1 x 8 x 8; of the inputs tried", "in failures\n",
                  f"wrong before any change, and not fuzzed: {inputs['misclassified']}, listed in mis",
                  f"left out by --limit: {inputs['left out']}\n", "skipped: 1\n  torn.png is not a",
                  "files in photos that are not images by their ending: 1"):
        assert words in out
    options = json.loads((folder / "failures" / "run.json").read_bytes())
    assert [options[k] for k in ("by", "l2", "limit", "seed")] == ["dlfuzz", 4.0, 3, 2]
    with Image.open(folder / "failures" / "sheet.png") as sheet:
        sheet.verify()


@pytest.mark.parametrize("more, code, words", [
    (["--l2", "0"], 2, "l2: expected a distance above 0"),
    (["--iterations", "0"], 2, "iterations: expected"), (["--by", "nosie"], 2, "'noise'"),
    (["--images", "empty"], 1, "empty holds no images"), (["--images", "no"], 1, "is not a folder"),
    (["--reference", "photos"], 2, "reference: expected training images (--reference) with"),
    (["--model", "own.py:biuld"], 2, "did you mean 'build'"), (["--size", "9"], 2, "1, 9, 9"),
    (["--out", "own.py"], 2, "--out: cannot write own.py"), (["--strict"], 2, "1 cannot be read"),
    (["--seed", "-1"], 2, "seed: expected a whole number from 0"), (["--out", "photos"], 2, "holds files")])
def test_commands_that_cannot_be(folder, dnnlib, more, code, words):
    (folder / "empty").mkdir()
    before = sorted(p for p in folder.rglob("*") if "__pycache__" not in str(p))
    got, out, err = dnnlib(*command(*more))
    last = err.splitlines()[-1]
    assert got == code and last.startswith("error: ") and words in last and not out
    assert sorted(p for p in folder.rglob("*") if "__pycache__" not in str(p)) == before


def test_help_shows_an_example(dnnlib):
    code, out, _ = dnnlib("fuzz", "--help")
    assert code == 0 and "dnnlib fuzz --model" in " ".join(out.split("Example")[1].split())


# ---- attacks of the toolbox


@pytest.mark.parametrize("by", ATTACKS)
def test_an_attack_keeps_to_one_distance(by):
    with pytest.raises(ValueError, match=f"^{by}: ART's attacks keep to one distance; give l2 or "
                                         "linf, got both$"):
        Options(by=by, l2=1.0, linf=0.1)


def test_without_the_toolbox_nothing_is_begun(folder, dnnlib, monkeypatch):
    monkeypatch.setitem(sys.modules, "art", None)
    code, out, err = dnnlib(*command(by="pgd"))
    assert code == 1 and not (folder / "failures").exists()
    assert err.strip().splitlines()[-1].endswith(
        "needs adversarial-robustness-toolbox; install it with: pip install -e '.[attacks]'")
    assert dnnlib(*command(by="noise"))[0] == 3  # the rest needs none


def test_the_default_is_dlfuzz(folder, dnnlib):
    assert Options(l2=1.0).by == "dlfuzz"
    arguments = [word for word in command() if word not in ("--by", "noise")]
    assert dnnlib(*arguments)[0] == 3
    assert json.loads((folder / "failures" / "run.json").read_text())["by"] == "dlfuzz"


# ---- noise beside, and what was wrong before


def test_noise_beside_is_what_a_run_by_noise_breaks(folder, photos, tiny_model, monkeypatch):
    """The same inputs, distance, examples and judge; the random numbers are those of a run."""
    options = {"l2": 2.5, "iterations": 6, "block": 7, "labels": "folders"}
    found = custom.fuzz(tiny_model(), photos, "failures", by="dlfuzz", **options)
    tried = found.inputs["outcome"].isin(["broken", "held"])
    assert (found.inputs["noise"] != "").equals(tried)
    digest = fuzzing_run.files.digest
    monkeypatch.setattr(fuzzing_run.files, "digest", lambda key: digest(
        [*key, "noise"] if isinstance(key, list) and len(key) == 2 else key))
    alone = custom.fuzz(tiny_model(), photos, "alone", by="noise", **options)
    assert {"broken", "held"} <= set(alone.inputs["outcome"])
    assert found.inputs["noise"][tried].equals(alone.inputs["outcome"][tried])
    assert (alone.inputs["noise"] == "").all() and set(alone.passes) == {"noise"}
    assert found.passes["noise"] == alone.passes["noise"] == 6
    assert found.passes["dlfuzz"] > 4 * 6


def test_passes_are_those_of_the_campaigns(photos, tiny_model):
    """Of DLFuzz: four an iteration, one to begin with, and one more of a block, for its layout."""
    found = custom.fuzz(tiny_model(), photos, "failures", by="dlfuzz", l2=2.0, iterations=3,
                        limit=6, block=4)
    assert found.passes == pytest.approx({"dlfuzz": 3 * 4 + 1 + 2 / 6, "noise": 3})


def test_without_noise(folder, dnnlib):
    code, out, err = dnnlib(*command("--no-noise", by="dlfuzz"))
    assert code == 3 and "noise at" not in out
    table = pd.read_csv(folder / "failures" / "inputs.csv", keep_default_na=False)
    assert (table["noise"] == "").all()
    code, out, err = dnnlib(*command(by="dlfuzz"))  # not the same run
    assert code == 2 and "noise was False and is True" in err


def test_noise_is_told_and_survives_a_kill(folder, dnnlib, killed):
    arguments = command("--block", "4", "--l2", "3", by="dlfuzz")
    code, out, err = dnnlib(*arguments)
    told = next(line for line in out.splitlines() if line.startswith("noise at the same distance"))
    table = pd.read_csv(folder / "failures" / "inputs.csv", keep_default_na=False)
    broken, by_noise = ((table[name] == "broken").sum() for name in ("outcome", "noise"))
    assert 0 < by_noise < broken
    assert f"{by_noise} of 20 inputs broken, by dlfuzz {broken}" in " ".join(out.split())
    whole = content(folder / "failures")
    arguments[arguments.index("failures")] = "again"
    (folder / "killed.py").write_text(killed)
    for left in (6, 9):
        died = subprocess.run([sys.executable, "killed.py", str(left), *arguments],
                              capture_output=True)
        assert died.returncode == -signal.SIGKILL
    assert not (folder / "again" / "inputs.csv").exists()
    code, out, err = dnnlib(*arguments)
    assert told in out and content(folder / "again") == whole


def test_what_was_wrong_before_stands_apart(folder, photos, tiny_model):
    options = Options(l2=3.0, labels="folders", iterations=5)
    found = custom.fuzz(tiny_model(), photos, "failures", options)
    with torch.no_grad():
        given = tiny_model()(photos.images).argmax(1).tolist()
    wrong = [(path, path.split("/")[0], "abc"[i]) for path, i in zip(photos.paths, given)
             if path.split("/")[0] != "abc"[i]]
    read = pd.read_csv(folder / "failures" / "misclassified.csv")
    assert [*read.itertuples(index=False, name=None)] == wrong and wrong
    page = custom.failures_page(found, photos, folder / "failures").decode()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert [(row["path"], row["label"], row["predicted"]) for row in data["wrong"]] == wrong
    assert not {group["path"] for group in data["groups"]} & {path for path, *_ in wrong}
    found = custom.fuzz(tiny_model(), photos, "other", Options(l2=3.0, iterations=5))
    assert found.misclassified.empty and not (folder / "other" / "misclassified.csv").exists()


def test_numbers_of_an_array_are_numbers(tiny_model, tiny_data, tmp_path):
    given = {"iterations": np.int64(2), "limit": np.int32(4), "l2": np.float32(2), "seed": np.uint8(1)}
    found = custom.fuzz(tiny_model(), tiny_data.images, tmp_path / "a", by="noise", **given)
    plain = custom.fuzz(tiny_model(), tiny_data.images, tmp_path / "a", by="noise",
                        **{name: value.item() for name, value in given.items()})
    assert found.inputs.equals(plain.inputs)  # the same run, gone on with


def test_a_type_checker_knows_the_names_and_the_options_that_there_are():
    assert get_type_hints(Given) == get_type_hints(Options)
    assert set(ATTACKS) <= set(METHODS)
    assert get_args(get_type_hints(custom.rank)["by"])[0] == selection.Method
    assert get_type_hints(custom.fuzz)["given"].__args__ == (Given,)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A fuzzer with an option that has no hash."""

    sizes: list = field(default_factory=lambda: [1, 2])
    budget: Budget = Budget()

    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        raise NotImplementedError


def test_an_instance_may_have_options_without_a_hash():
    options = Options(by=Listed(sizes=[3]), l2=1.0)
    assert options.fuzzer() == Listed(sizes=[3], budget=Budget(l2=1.0)) and options.at_once == 32
