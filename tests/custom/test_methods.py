"""Selectors and fuzzers of a person's own, beside the package's."""

import re
import sys
from dataclasses import dataclass

import pytest
import torch
from PIL import Image

from dnnlib import custom, selection
from dnnlib.fuzzing import Budget
from dnnlib.fuzzing.protocol import Log

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

@dataclass(frozen=True, kw_only=True, eq=False)
class Wide(Scored):
    vectors = True
    def read(self, batch, known):
        return batch.p

@dataclass(frozen=True, kw_only=True, eq=False)
class Forgot(Scored):
    vectors = True
    def read(self, batch, known):
        batch.p.amax(1)

class Gini(Doubt):
    pass

class Plain:
    pass

class Mine(Exception):
    pass

@dataclass(frozen=True, kw_only=True, eq=False)
class Late(Scored):
    """Fails where no rehearsal looks."""
    def read(self, batch, known):
        if 9 in batch.places.tolist():
            raise Mine("no nine")
        return batch.p.amax(1)

@dataclass(frozen=True, kw_only=True, eq=False)
class Unfinished(Doubt):
    def finish(self, rows, classes, known, **more):
        if len(rows) > 8:
            raise OSError("no table")
        return super().finish(rows, classes, known, **more)

@dataclass(frozen=True, kw_only=True, eq=False)
class Unlearned(Far):
    def learned(self, rows):
        raise Mine("no middle")

@dataclass(frozen=True, kw_only=True, eq=False)
class Stretched(Scored):
    """Changes in place all that it is shown."""
    def read(self, batch, known):
        batch.x.sub_(batch.x.amin((1, 2, 3), keepdim=True))
        found = batch.x.flatten(1).std(1).double()
        batch.logits.zero_(), batch.places.zero_()
        return found

@dataclass(frozen=True, kw_only=True, eq=False)
class Gray(Far):
    def learn(self, batch):
        found = {"p": batch.p.clone()}
        batch.x.fill_(0.5), batch.logits.zero_()
        return found
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
    ("mine.py", "^method: expected FILE.py:CLASS, got mine.py; Known: Broken, "),
    ("mine.py:Plain", "expected a dataclass derived from dnnlib.selection.Selector or Scored"),
    ("mine.py:Gini", "would be called gini, as one of the package is"),
    ("mine.py:Broken", r"broken: mine.py, line \d+: KeyError: 'nothing'"),
    ("mine.py:Mean", "Mean.read: expected a row for each of 8 images, got shape"),
    ("mine.py:Wide", r"^wide: expected one score for each image, .* got shape \(8, 3\)$"),
    ("mine.py:Forgot", r"^forgot: .*expected a row for each of 8 images, got None: is a `return`"),
    ("mine.py:Relative", "relative: expected scores that do not depend on the batch"),
    ("mine.py:Unlearned", "unlearned: needs training images"),
    ("mine.py:Contrast,mine.py:Contrast", "'contrast' twice"), ("mine.py:Contrast,ginni", "'gini'")])
def test_what_will_not_do_is_told_in_a_line(folder, tiny_model, by, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words) as told:
        custom.rank(tiny_model(), "photos", by)
    assert "\n" not in str(told.value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges(selection.Scored):
    shared = False
    power: float = 1.0

    def read(self, batch, known):
        return (self.power * batch.x.diff(dim=-1).abs().flatten(1)).sum(1)


def test_an_instance_is_taken_with_its_options(folder, images, tiny_model, caplog):
    model = tiny_model()
    plain = custom.rank(model, "photos", Edges, folder="run")
    back = custom.rank(model, "photos", [Edges(power=-1.0), selection.NSS(share=0.5)])
    assert back.index.tolist() == Edges(power=-1.0).order(model, images).tolist()
    assert plain["edges_score"].sort_index().tolist() == (-back["edges_score"]).sort_index().tolist()
    assert back.sort_values("nss_rank").index.tolist() == selection.NSS(share=0.5).order(
        model, images).tolist()
    for power, others in ((1.0, 1), (2.0, 2), (2.0, 2)):  # put aside where the options are others
        custom.rank(model, "photos", Edges(power=power), folder="run")
        assert len(re.findall("kept as run-", caplog.text)) == others
    with pytest.raises(ValueError, match="'edges' twice"):
        custom.rank(model, "photos", [Edges(), Edges(power=2.0)])
    with pytest.raises(ValueError, match="expected a dataclass derived from dnnlib.selection.Sel"):
        custom.rank(model, "photos", [3])


@dataclass(frozen=True, kw_only=True, eq=False)
class Certain(selection.Scored):
    vectors = True
    sign: int = -1

    def read(self, batch, known):
        return self.sign * batch.p.amax(1)


def test_an_instance_orders_outputs_alone():
    p = torch.rand(9, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    first, last = (custom.rank_outputs(p, [*"abcdefghi"], by)["path"].tolist()
                   for by in (Certain, Certain(sign=1)))
    assert first == last[::-1]


def test_what_a_file_imports_is_not_listed_as_its_own(folder, tiny_model):
    (folder / "few.py").write_text("""
from dataclasses import dataclass
from dnnlib.selection import Scored

@dataclass(frozen=True, kw_only=True, eq=False)
class Mine(Scored):
    pass

def helper(x):
    return x
""")
    with pytest.raises(ValueError, match="unknown class of few.py 'Absent'; Known: Mine$"):
        custom.rank(tiny_model(), "photos", "few.py:Absent")


ANOTHER = "by was .*contrast .* and is .*contrast.*kept as run-1"


def test_a_changed_file_is_another_run(folder, tiny_model, caplog):
    first = custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run")
    custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run")
    (folder / "mine.py").write_text(MINE.replace("-spread", "spread"))
    assert "another run" not in caplog.text
    other = custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run")
    assert re.search(ANOTHER, caplog.text) and other.index.tolist() != first.index.tolist()


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


@pytest.fixture
def labelled(folder, images, tiny_model):
    """A model; its images lie in the folders of their classes, three of them wrong."""
    model = tiny_model()
    with torch.no_grad():
        labels = model(images).argmax(1)
    labels[:3] = (labels[:3] + 1) % 3
    for i, label in enumerate(labels.tolist()):
        target = folder / "labelled" / "abc"[label]
        target.mkdir(parents=True, exist_ok=True)
        (folder / "photos" / f"{i:02d}.png").rename(target / f"{i:02d}.png")
    return model


def test_compare_shows_it_beside_the_others(labelled):
    found = custom.compare(labelled, "labelled", "mine.py:Contrast,gini")
    assert {"contrast", "gini", "random"} <= set(found.selectors["method"]) and not found.failed


def test_compare_names_what_failed_of_what_was_asked_for(labelled):
    found = custom.compare(labelled, "labelled", "mine.py:Late,gini")
    assert found.failed == ["late"] and "late" not in set(found.selectors["method"])
    assert re.fullmatch(r"mine.py, line \d+: Mine: no nine", found.left["late"])
    with pytest.raises(ValueError, match="no method works here: late: mine.py, line"):
        custom.compare(labelled, "labelled", "mine.py:Late")


def test_a_changed_helper_is_another_run(folder, tiny_model, monkeypatch, caplog):
    (folder / "mine.py").write_text("from beside import spread\n" + MINE.replace("def spread", "def _"))
    for text, other in (("std", False), ("std", False), ("mean", True)):
        (folder / "beside.py").write_text(f"def spread(x):\n    return x.flatten(1).{text}(1)\n")
        monkeypatch.delitem(sys.modules, "beside", raising=False)
        custom.rank(tiny_model(), "photos", "mine.py:Contrast", folder="run")
        assert bool(re.search(ANOTHER, caplog.text)) == other


@pytest.mark.parametrize("name, why", [
    ("Late", "Mine: no nine"), ("Unfinished", "OSError: no table"), ("Unlearned", "Mine: no middle")])
def test_whatever_a_method_raises_costs_it_alone(folder, images, tiny_model, name, why):
    seen = images[:9] if name == "Unlearned" else None
    table = custom.rank(tiny_model(), "photos", f"gini,mine.py:{name}", batch_size=4, reference=seen)
    failed = table.attrs["failed"]
    assert [*failed] == [name.lower()] and "gini_rank" in table
    assert re.fullmatch(rf"mine.py, line \d+: {why}", failed[name.lower()])


def test_outputs_alone_name_the_line_that_failed(folder):
    p = torch.rand(9, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    with pytest.raises(ValueError, match="^forgot: .*expected a row for each of 9 images, got None"):
        custom.rank_outputs(p, [str(i) for i in range(9)], "mine.py:Forgot")
    with pytest.raises(ValueError, match=r"^unfinished: mine.py, line \d+: OSError: no table$"):
        custom.rank_outputs(p, [str(i) for i in range(9)], "mine.py:Unfinished")


@pytest.mark.parametrize("name", ["Stretched", "Gray"])
def test_what_a_method_changes_no_other_sees(folder, images, tiny_model, name):
    seen = images[:9].clone() if name == "Gray" else None
    others = ["dsa", "gini", "nss"] if name == "Gray" else ["gini", "nss"]
    alone = custom.rank(tiny_model(), images, others, reference=seen, batch_size=4)
    before = images.clone()
    table = custom.rank(tiny_model(), images, [f"mine.py:{name}", *others], reference=seen,
                        batch_size=4).sort_values(f"{others[0]}_rank")
    assert torch.equal(images, before) and f"{name.lower()}_rank" in table
    assert table[alone.columns].drop(columns="note").equals(alone.drop(columns="note"))


# ---- fuzzers

FADE = """
import torch
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
class Gini(Fade):
    pass

@dataclass(frozen=True, kw_only=True)
class Torn(Fade):
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        return [][0]

class Mine(Exception):
    pass

@dataclass(frozen=True, kw_only=True)
class Forgetful(Fade):
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        pass

@dataclass(frozen=True, kw_only=True)
class Unmade(Fade):
    def __post_init__(self):
        raise Mine("not today")

@dataclass(frozen=True, kw_only=True)
class Raising(Fade):
    def run(self, *given, **more):
        raise Mine("not today")

@dataclass(frozen=True, kw_only=True)
class Free(Fade):
    '''Forgets its budget, if asked for more than one iteration.'''
    factor = 0.5
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log = Log(model, inputs, labels, watch)
        for number in range(1, iterations + 1):
            log.add(log.inputs if number == 1 else log.inputs * self.factor)
        return log.campaign()

@dataclass(frozen=True, kw_only=True)
class Bright(Free):
    factor = 1.02  # near the inputs, and no image

@dataclass(frozen=True, kw_only=True)
class Hidden(Fade):
    def run(self, *given, watch, **more):
        return super().run(*given, **more)

@dataclass(frozen=True, kw_only=True)
class Early(Fade):
    def run(self, *given, iterations, **more):
        return super().run(*given, iterations=1, **more)

@dataclass(frozen=True, kw_only=True)
class Zero(Fade):
    def run(self, model, *given, **more):
        for weights in model.parameters():
            weights.data.zero_()
        return super().run(model, *given, **more)

@dataclass(frozen=True, kw_only=True)
class Darkens(Fade):
    def run(self, model, inputs, *given, **more):
        return super().run(model, inputs.mul_(0), *given, **more)

@dataclass(frozen=True, kw_only=True)
class Hooks(Fade):
    def run(self, model, *given, **more):
        model.register_forward_hook(lambda *given: None)
        return super().run(model, *given, **more)

@dataclass(frozen=True, kw_only=True)
class Draws(Fade):
    def run(self, model, inputs, *given, **more):
        torch.randn_like(inputs)
        return super().run(model, inputs, *given, **more)

@dataclass(frozen=True, kw_only=True)
class First(Fade):
    def run(self, model, inputs, labels, **more):
        return super().run(model, inputs[:1], labels[:1], **more)

@dataclass(frozen=True, kw_only=True)
class Built(Fade):
    def __init__(self, budget, more):
        pass

@dataclass(frozen=True, kw_only=True)
class Drops(Fade):
    '''After one iteration, the first inputs only.'''
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log = Log(model, inputs, labels, watch)
        for number in range(iterations):
            log.add(log.inputs if number == 0 else log.inputs[:1])
        return log.campaign()

@dataclass(frozen=True, kw_only=True)
class Moved(Fade):
    '''Takes the inputs along, so that it seems to be near them.'''
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log = Log(model, inputs, labels, watch)
        for _ in range(iterations):
            log.inputs.mul_(0.7)
            log.add(log.inputs)
        return log.campaign()
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


@dataclass(frozen=True, kw_only=True)
class Stripes:
    budget: Budget = Budget()
    every: int = 2

    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log, stripes = Log(model, inputs, labels, watch), torch.zeros(inputs.shape[-1])
        stripes[::self.every] = 1
        for number in range(1, iterations + 1):
            x = log.inputs + (stripes - log.inputs) * number / iterations
            log.add(self.budget.project(x, log.inputs))
        return log.campaign()


def test_an_instance_of_a_fuzzer_keeps_its_options(folder, tiny_model):
    model = tiny_model()
    given = {"l2": 3.0, "iterations": 4, "noise": False}
    plain = custom.fuzz(model, "photos", "plain", by=Stripes, **given)
    same = custom.fuzz(model, "photos", "same", by=Stripes(), **given)
    third = custom.fuzz(model, "photos", "third", by=Stripes(every=3), **given)
    assert set(same.passes) == {"stripes"}
    assert same.failures["l2"].tolist() == plain.failures["l2"].tolist() != []
    assert third.failures["l2"].tolist() != plain.failures["l2"].tolist()
    custom.fuzz(model, "photos", "third", by=Stripes(every=3), **given)
    with pytest.raises(ValueError, match="by was 'stripes .*' and is 'stripes"):
        custom.fuzz(model, "photos", "third", by=Stripes(every=4), **given)


@pytest.mark.parametrize("run", [
    lambda *given: custom.fuzz(*given, "found", by="fade.py:Chosen", l2=1.0, layers=("*",)),
    lambda *given: custom.compare(*given, "gini", fuzz="fade.py:Chosen", l2=1.0, resamples=9)])
def test_the_file_of_a_fuzzer_runs_once(labelled, folder, run):
    (folder / "fade.py").write_text(FADE + """
open("runs.txt", "a").write(".")

@dataclass(frozen=True, kw_only=True)
class Chosen(Fade):
    layers: tuple = ()
""")
    run(labelled, "labelled")
    assert (folder / "runs.txt").read_text() == "."


@pytest.mark.parametrize("by, words", [
    ("fade.py:Fad", "did you mean 'Fade'"), ("fade.py:Log", "expected a dataclass with a budget"),
    ("fade.py:DLFuzz", "would be called dlfuzz"),
    ("fade.py:Torn", r"^torn: fade.py, line \d+: IndexError: list index out of range$"),
    ("fade.py:Raising", r"^raising: fade.py, line \d+: Mine: not today$"),
    ("fade.py:Unmade", r"fade.py, line \d+: Mine: not today$"),
    ("fade.py:Forgetful", r"^forgetful: expected run to give a Campaign, got NoneType: is a `return`"),
    ("fade.py:Hidden", "^hidden: expected .* of 1 iteration, got 1 of them, and 0 shown to watch$"),
    ("fade.py:Moved", r"^moved: expected examples within 1 of their inputs in L2, got one at [\d.]+"),
    ("fade.py:Darkens", "^darkens: expected to leave the inputs as they were, changed them$"),
    ("fade.py:Zero", "^zero: expected to leave the model as it was, changed its weights$"),
    ("fade.py:Hooks", "^hooks: expected to leave the model as it was, changed its hooks$"),
    ("fade.py:Draws", "^draws: expected random numbers of the generator alone, drew others$"),
    ("fade.py:First", "^first: examples: expected one for each of 2 inputs, of shape .*, got .1, 1, 8, 8.$"),
    ("fade.py:Built", r"^built: TypeError: .* missing 1 required positional argument: 'more'$"),
    ("fade.py", "^fuzzer: expected FILE.py:CLASS, got fade.py; Known: Bright, Built, "),
    ("fade.py:Nope", "^unknown class of fade.py 'Nope'")])
def test_a_fuzzer_that_will_not_do(folder, tiny_model, by, words):
    (folder / "fade.py").write_text(FADE)
    with pytest.raises(ValueError, match=words):
        custom.fuzz(tiny_model(), "photos", "found", by=by, l2=1.0)
    assert not (folder / "found").exists()


WORDS = [("Free", "l2", "^free: expected examples within 0.9 of their inputs in L2, got one at "),
         ("Free", "linf", "^free: expected examples within 0.3 .* in L-infinity, got one at 0.[45]"),
         ("Bright", "l2", r"^bright: expected examples with values in \[0, 1\], got \[.*, 1.02"),
         ("Drops", "l2", r"examples: expected one for each of \d+ inputs, .*, got \(1, "),
         ("Early", "l2", "^early: expected the examples of 4 iterations, got 1 of them, and 1 ")]
BOUND = {"l2": 0.9, "linf": 0.3}


@pytest.mark.parametrize("name, what, words", WORDS)
def test_a_fuzzer_is_held_to_its_budget_in_every_block(folder, tiny_model, name, what, words):
    (folder / "fade.py").write_text(FADE)
    with pytest.raises(ValueError, match=words):
        custom.fuzz(tiny_model(), "photos", "found", by=f"fade.py:{name}", **{what: BOUND[what]},
                    iterations=4)
    assert not [*(folder / "found").glob("images/*")]


@pytest.mark.parametrize("name, what, words", WORDS)
def test_compare_leaves_out_a_fuzzer_beyond_its_budget(folder, images, labelled, name, what, words):
    (folder / "fade.py").write_text(FADE)
    found = custom.compare(labelled, "labelled", "gini", fuzz=f"fade.py:{name},noise,dlfuzz",
                           **{what: BOUND[what]}, iterations=4)
    name = name.lower()
    assert re.search(words.replace(f"^{name}: ", "^"), found.left[name]) and found.failed == [name]
    assert found.fuzzers["fuzzer"].tolist() == ["dlfuzz"]


def test_a_fuzzer_with_a_selectors_name_is_told_by_its_files(folder, tiny_model):
    (folder / "fade.py").write_text(FADE)
    custom.fuzz(tiny_model(), "photos", "found", by="fade.py:Gini", l2=3.0, iterations=1)
    (folder / "fade.py").write_text(FADE.replace("0.5", "0.4"))
    with pytest.raises(ValueError, match="by was 'gini .*' and is 'gini"):
        custom.fuzz(tiny_model(), "photos", "found", by="fade.py:Gini", l2=3.0, iterations=1)


@pytest.mark.parametrize("run, told", [
    (lambda *given: custom.rank(*given, "gini,margin", reference=given[1]), "gini, margin"),
    (lambda *given: custom.rank(*given, "gini,dsa", reference=given[1]), ""),
    (lambda *given: custom.prepared_job(*given, "gini", reference=given[1], seed=None, layers=None,
                                        probabilities=None, batch_size=8, block=8), "gini"),
    (lambda *given: custom.compare(*given, "gini", reference=given[1], resamples=9, fuzz="dlfuzz",
                                   l2=1.0, iterations=1, limit=2), "gini, dlfuzz"),
    (lambda *given: custom.compare(*given, "gini", reference=given[1], resamples=9,
                                   fuzz="deephunter", l2=1.0, iterations=1, limit=2), "")])
def test_training_images_that_nothing_takes_are_told(labelled, run, told, caplog):
    run(labelled, custom.read_photos("labelled", labelled))
    lines = [line for line in caplog.messages if line.startswith("reference: ")]
    assert lines == [f"reference: the training images are not used; none of {told} takes any"
                     ] * bool(told)
