"""Selectors and fuzzers of a person's own, beside the package's."""

import sys

import pytest
import torch
from PIL import Image

from dnnlib import custom, selection

MINE = '''
from dataclasses import dataclass, field
import torch
from dnnlib.selection import Scored

def spread(x):
    return x.flatten(1).std(dim=1).double()

@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast(Scored):
    """Images of little contrast first."""
    shared = False
    def read(self, batch, known):
        return -spread(batch.x)

@dataclass(frozen=True, kw_only=True, eq=False)
class Far(Scored):
    """Softmax vectors first that are far from the mean of training images."""
    reference: torch.Tensor = field(repr=False)
    keeps = ("p",)
    def learn(self, batch):
        return {"p": batch.p}
    def learned(self, rows):
        return {"middle": rows["p"].mean(0)}
    def read(self, batch, known):
        return (batch.p - known["middle"]).norm(dim=1)

@dataclass(frozen=True, kw_only=True, eq=False)
class Doubt(Scored):
    vectors = True
    def read(self, batch, known):
        return -batch.p.amax(1)

@dataclass(frozen=True, kw_only=True, eq=False)
class Broken(Scored):
    def read(self, batch, known):
        return {}["nothing"]

@dataclass(frozen=True, kw_only=True, eq=False)
class Mean(Scored):
    def read(self, batch, known):
        return batch.p.amax(1).mean(0, keepdim=True)

@dataclass(frozen=True, kw_only=True, eq=False)
class Relative(Scored):
    def read(self, batch, known):
        return batch.p.amax(1) / batch.p.amax()

class Gini(Doubt):
    pass

class Plain:
    pass
'''


@pytest.fixture
def folder(tmp_path, tiny_data, monkeypatch):
    """Twenty images, and the file of one's own; we are there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for i, image in enumerate(tiny_data.images[:20]):
        pixels = (image[0] * 255).round().to(torch.uint8).numpy()
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i:02d}.png")
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


@pytest.fixture
def images(tiny_data):
    return (tiny_data.images[:20] * 255).round() / 255


def test_a_class_orders_files_as_it_orders_a_tensor(folder, images, tiny_model):
    table = custom.rank(tiny_model(), "photos", "mine.py:Contrast, gini", block=8, batch_size=3)
    kind = sys.modules["own_mine"].Contrast
    assert table.index.tolist() == kind().order(tiny_model(), images).tolist()
    spread = images.flatten(1).std(dim=1)
    assert table.index[0] == spread.argmin() and "gini_rank" in table
    again = custom.rank(tiny_model(), "photos", [kind, selection.NSS], batch_size=7)
    assert again["contrast_rank"].tolist() == table["contrast_rank"].tolist()
    assert "nss_rank" in again


def test_one_that_learns_from_training_images(folder, images, tiny_model):
    model = tiny_model()
    with pytest.raises(ValueError, match="^far: needs training images"):
        custom.rank(model, "photos", "mine.py:Far")
    table = custom.rank(model, "photos", "mine.py:Far", reference=images[:9], batch_size=4)
    with torch.no_grad():
        p = model(images).softmax(1)
    away = (p - p[:9].mean(0)).norm(dim=1)
    assert table.index.tolist() == away.argsort(descending=True, stable=True).tolist()


@pytest.mark.parametrize("by, words", [
    ("mine.py:Contrst", "did you mean 'Contrast'"), ("your.py:Contrast", "no file your.py"),
    ("mine.py:Plain", "expected a dataclass derived from dnnlib.selection.Selector or Scored"),
    ("mine.py:Gini", "would be called gini, as one of the package is"),
    ("mine.py:Broken", r"broken: mine.py, line \d+: KeyError: 'nothing'"),
    ("mine.py:Mean", "Mean.read: expected a row for each of 8 images, got shape"),
    ("mine.py:Relative", "relative: expected scores that do not depend on the batch"),
    ("mine.py:Contrast,mine.py:Contrast", "'contrast' twice"), ("mine.py:Contrast,ginni", "'gini'")])
def test_what_will_not_do_is_told_in_a_line(folder, tiny_model, by, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words) as told:
        custom.rank(tiny_model(), "photos", by)
    assert "\n" not in str(told.value)


def test_a_changed_file_is_another_run(folder, tiny_model):
    first = custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run")
    custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run")
    (folder / "mine.py").write_text(MINE.replace("-spread", "spread"))
    with pytest.raises(ValueError, match="by was .*contrast .* and is .*contrast"):
        custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run")
    other = custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run2")
    assert other.index.tolist() != first.index.tolist()


def test_outputs_alone_are_enough_for_one_that_says_so(folder):
    p = torch.rand(9, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    names = [str(i) for i in range(9)]
    table = custom.rank_outputs(p, names, "mine.py:Doubt")
    assert table["path"].tolist() == custom.rank_outputs(p, names, "least_confidence")["path"].tolist()
    with pytest.raises(ValueError, match="^contrast: needs a model and images"):
        custom.rank_outputs(p, names, "mine.py:Contrast")


def test_a_cluster_is_sent_the_class(folder, tiny_model):
    pytest.importorskip("distributed")
    from dnnlib.custom import cluster

    here = custom.rank(tiny_model(), "photos", "mine.py:Contrast,gini", block=8)
    with cluster.connected(workers=1) as client:
        there = custom.rank(tiny_model(), "photos", "mine.py:Contrast,gini", block=8, client=client)
    assert there["path"].tolist() == here["path"].tolist()


def test_compare_shows_it_beside_the_others(folder, images, tiny_model):
    model = tiny_model()
    with torch.no_grad():
        labels = model(images).argmax(1)
    labels[:3] = (labels[:3] + 1) % 3
    for i, label in enumerate(labels.tolist()):
        target = folder / "labelled" / "abc"[label]
        target.mkdir(parents=True, exist_ok=True)
        (folder / "photos" / f"{i:02d}.png").rename(target / f"{i:02d}.png")
    found = custom.compare(model, "labelled", "mine.py:Contrast,gini")
    assert {"contrast", "gini", "random"} <= set(found.selectors["method"])


# ---- fuzzers

FADE = """
from dataclasses import dataclass
from dnnlib.fuzzing import Budget
from dnnlib.fuzzing.protocol import Log

@dataclass(frozen=True, kw_only=True)
class Fade:
    budget: Budget = Budget()
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log = Log(model, inputs, labels, watch)
        for number in range(1, iterations + 1):
            gray = log.inputs + (0.5 - log.inputs) * number / iterations
            log.add(self.budget.project(gray, log.inputs))
        return log.campaign()

@dataclass(frozen=True, kw_only=True)
class DLFuzz(Fade):
    pass

@dataclass(frozen=True, kw_only=True)
class Torn(Fade):
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        return [][0]
"""


def test_a_fuzzer_of_ones_own(folder, images, tiny_model):
    (folder / "fade.py").write_text(FADE)
    model = tiny_model()
    found = custom.fuzz(model, "photos", "found", by="fade.py:Fade", l2=3.0, iterations=4)
    assert set(found.passes) == {"fade", "noise"} and found.passes["fade"] == 4
    kind = sys.modules["own_fade"].Fade
    with torch.no_grad():
        labels = model(images).argmax(1)
    campaign = kind(budget=custom.Options(by=kind, l2=3.0).budget).run(
        model, images, labels, iterations=4, generator=torch.Generator())
    broken = sorted({int(i) for i in campaign.origin[campaign.errors]})
    assert found.inputs.index[found.inputs["outcome"] == "broken"].tolist() == broken
    again = custom.fuzz(model, "photos", "again", by=kind, l2=3.0, iterations=4)
    assert again.failures["l2"].tolist() == found.failures["l2"].tolist()
    (folder / "fade.py").write_text(FADE.replace("0.5", "0.4"))
    with pytest.raises(ValueError, match="by was 'fade .*' and is 'fade"):
        custom.fuzz(model, "photos", "found", by="fade.py:Fade", l2=3.0, iterations=4)


@pytest.mark.parametrize("by, words", [
    ("fade.py:Fad", "did you mean 'Fade'"), ("fade.py:Log", "expected a dataclass with a budget"),
    ("fade.py:DLFuzz", "would be called dlfuzz"), ("fade.py:Torn", "torn: .*index out of range")])
def test_a_fuzzer_that_will_not_do(folder, tiny_model, by, words):
    (folder / "fade.py").write_text(FADE)
    with pytest.raises(ValueError, match=words):
        custom.fuzz(tiny_model(), "photos", "found", by=by, l2=1.0)
    assert not (folder / "found").exists()
