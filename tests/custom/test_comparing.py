"""Which method is worth its passes: detection with intervals, fuzzers against noise, a sentence."""

import sys

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import dnnlib
from dnnlib import custom
from dnnlib.custom import against_noise, comparing
from dnnlib.custom.class_names import Published
from dnnlib.custom.options import Options
from dnnlib.fuzzing import Campaign, DLFuzz, Noise
from dnnlib.measures.faults import fault_detection_rate


class Bright(nn.Sequential):
    """Class 1 if the mean is above 0.5; unsure near it. Twelve hidden neurons that are all alike."""

    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(36, 12), nn.ReLU(), nn.Linear(12, 2))
        with torch.no_grad():
            self[1].weight.fill_(1 / 36)
            self[1].bias.zero_()
            self[3].weight.copy_(torch.tensor([[-20.0], [20.0]]).expand(2, 12) / 12)
            self[3].bias.copy_(torch.tensor([10.0, -10.0]))


@pytest.fixture
def labelled(tmp_path):
    """200 photos by brightness, in folders by a bound that is 0.45: what is between is wrong."""
    rng = np.random.default_rng(0)
    for i, level in enumerate(rng.random(200)):
        path = tmp_path / "labelled" / ("dark", "light")[int(level > 0.45)] / f"{i:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        noisy = np.clip(255 * level + rng.normal(0, 3, (6, 6)), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(path)
    return tmp_path / "labelled"


def test_faults_are_found_as_counted_by_hand(labelled):
    found = dnnlib.compare(Bright(), labelled, "gini,random,nac", rates=(5, 20), resamples=200)
    photos = custom.read_photos(labelled, Bright())
    labels = np.array([path.startswith("light") for path in photos.paths]).astype(int)
    wrong = Bright()(photos.images).argmax(1).numpy() != labels
    assert (found.images, found.wrong) == (200, int(wrong.sum())) and 4 < found.wrong < 30
    table = found.selectors.set_index(["method", "rate"])["found"]
    order = custom.rank(Bright(), photos, "gini").index
    for rate in (5, 20):
        assert table["gini", rate] == 100 * fault_detection_rate(wrong, order, rate / 100)
        assert table["best possible", rate] == pytest.approx(
            100 * min(1, wrong.sum() / (2 * rate)))
    passes = found.selectors.groupby("method")["passes"].first()
    assert passes["gini"] == 1 and passes["nac"] == 1


def test_training_images_count_as_passes(labelled, tmp_path):
    found = custom.compare(Bright(), labelled, "kmnc,nss", resamples=20, reference=torch.rand(
        100, 1, 6, 6, generator=torch.Generator().manual_seed(0)), rates=(10,))
    passes = found.selectors.groupby("method")["passes"].first()
    assert passes["kmnc"] == 1.5 and passes["nss"] == 2  # 300 passes over 200 images, and 400


def test_interval_of_the_lead_is_that_of_drawn_images():
    """Against a loop that draws images, orders those drawn, and counts."""
    rng = np.random.default_rng(3)
    wrong, score = rng.random(60) < 0.3, rng.random(60)
    order = np.argsort(-score, kind="stable")
    table, found = comparing.detection(wrong, {"m": order}, (20,), resamples=300, seed=5)
    assert found["m"].tolist() == [wrong[i] and i in order[:12] for i in range(60)]
    place = np.empty(60, int)
    place[order] = np.arange(60)
    weights = np.random.default_rng(5).multinomial(60, np.full(60, 1 / 60), size=300)
    values = []
    for row in weights:
        drawn = sorted(np.repeat(np.arange(60), row), key=lambda i: place[i])
        values.append(100 * (wrong[drawn[:12]].mean() - wrong[drawn].mean()))
    line = table.set_index("method").loc["m"]
    assert (line["lead_low"], line["lead_high"]) == pytest.approx(
        tuple(np.percentile(values, (2.5, 97.5))))


def test_all_methods_leave_out_what_cannot_work(labelled):
    found = custom.compare(Bright(), labelled, rates=(10,), resamples=20)
    assert "needs" not in str(found.left) and "ats" in found.left  # of two classes
    assert {"gini", "margin", "random", "best possible"} <= set(found.selectors["method"])
    assert not {"dsa", "kmnc", "npc"} & set(found.selectors["method"])  # no training images
    with pytest.raises(ValueError, match="^ats: "):
        custom.compare(Bright(), labelled, "gini,ats", rates=(10,))


# ---- fuzzers


def test_fuzzer_against_noise_of_as_many_passes(labelled):
    found = custom.compare(Bright(), labelled, "gini", fuzz="dlfuzz,noise", l2=0.9, limit=160,
                           iterations=4, rates=(10,), resamples=50)
    [row] = found.fuzzers.to_dict("records")
    assert row["fuzzer"] == "dlfuzz"
    assert row["passes"] > 4  # so noise of as many passes has more examples
    assert row["noise"] <= row["noise_passes"]
    assert row["broken"] > row["noise_passes"] and row["lead_low"] > 0  # brightness is one step away
    assert row["lead"] == pytest.approx(row["broken"] - row["noise_passes"])
    assert found.sentences[1].startswith("At this distance, take dlfuzz: it breaks ")


def test_noise_gets_the_fuzzer_s_passes_and_not_only_its_examples(monkeypatch):
    n = 20

    def made(model, fuzzer, x, labels, iterations, block, seed):
        if isinstance(fuzzer, Noise):  # breaks one input more in each iteration
            return n, np.arange(n), n * iterations, 0.0
        return 0, np.full(n, iterations), 10 * n, 0.0

    monkeypatch.setattr(against_noise, "_campaigns", made)
    options = {"dlfuzz": Options(by="dlfuzz", l2=1.0, iterations=4)}
    table, _, by_noise = against_noise.fuzzed(Bright(), torch.zeros(n, 1, 2, 2), torch.zeros(n),
                                              options, None, 9, 0, {})
    assert table.loc[0, ["noise", "noise_passes", "broken"]].tolist() == [20.0, 50.0, 0.0]
    assert by_noise["dlfuzz"].sum() == 10


def test_a_fuzzer_that_fails_on_the_way_costs_itself_alone(labelled, monkeypatch):
    """What the others found, of hours perhaps, is not lost."""
    run = DLFuzz.run

    def fails(self, model, inputs, labels, **more):
        if len(inputs) > 8:  # not in a rehearsal
            raise RuntimeError("singular matrix")
        return run(self, model, inputs, labels, **more)

    monkeypatch.setattr(DLFuzz, "run", fails)
    options = {"l2": 0.9, "limit": 40, "iterations": 2, "rates": (10,), "resamples": 9}
    found = custom.compare(Bright(), labelled, "gini", fuzz="dlfuzz,deepxplore", **options)
    assert found.fuzzers["fuzzer"].tolist() == ["deepxplore"] and len(found.sentences) == 2
    assert [*found.left] == ["dlfuzz"] and "singular matrix" in found.left["dlfuzz"]
    alone = custom.compare(Bright(), labelled, "gini", fuzz="dlfuzz", **options)
    assert alone.fuzzers.empty and len(alone.sentences) == 1
    assert alone.selectors.drop(columns="seconds").equals(
        found.selectors.drop(columns="seconds"))


def test_inputs_of_all_classes_are_in_the_first_block(labelled, monkeypatch):
    dealt, real = [], comparing.fuzzed

    def seen(model, x, labels, *rest):
        dealt.append(labels)
        return real(model, x, labels, *rest)

    monkeypatch.setattr(comparing, "fuzzed", seen)
    custom.compare(Bright(), labelled, "gini", fuzz="dlfuzz", l2=0.9, limit=100, iterations=1,
                   rates=(10,), resamples=9)
    assert len(dealt[0]) == 100 and set(dealt[0][:32].tolist()) == {0, 1}
    assert dealt[0].tolist() != sorted(dealt[0].tolist())


def test_first_break_is_by_the_input_that_it_came_from():
    campaign = Campaign(torch.tensor([0, 0, 1]), torch.tensor([[0, 0, 1], [1, 0, 1], [0, 1, 1]]),
                        torch.tensor([[0, 1, 2], [1, 0, 2], [0, 1, 2]]), torch.ones(3, 3),
                        torch.ones(3, 3), torch.zeros(3, 1, 2, 2), 9, 0.0)
    assert against_noise.first_break(campaign).tolist() == [3, 1, 3]


# ---- mistakes


@pytest.mark.parametrize("options, words", [
    ({"by": "ginni"}, "did you mean 'gini'"), ({"by": "random"}, "got random alone"), ({"by": "dsa"}, "dsa: needs training images"),
    ({"by": "gini", "fuzz": "dlfuz", "l2": 1.0}, "did you mean 'dlfuzz'"),
    ({"by": "gini", "fuzz": "dlfuzz"}, "l2, linf: expected at least one"),
    ({"by": "gini", "fuzz": "deephunter", "l2": 1.0}, "deephunter: needs training images"),
    ({"by": "gini", "rates": (0.1,)}, "rates: 0.1 % of 200 images is none"),
    ({"by": "gini", "rates": (120,)}, "rate: expected")])
def test_mistakes_are_told_before_the_first_pass(labelled, options, words):
    model, seen = Bright(), []
    model.register_forward_pre_hook(lambda module, given: seen.append(1))
    with pytest.raises(ValueError, match=words):
        custom.compare(model, labelled, **options)
    assert not seen


def test_folders_of_some_classes_are_found_by_their_names(labelled):
    """Three outputs, of which the last is never given, and folders of two classes, out of order."""
    model = Bright()
    three = nn.Linear(12, 3)
    with torch.no_grad():
        three.weight.copy_(torch.cat([model[3].weight, torch.zeros(1, 12)])[[1, 0, 2]])
        three.bias.copy_(torch.cat([model[3].bias, torch.tensor([-99.0])])[[1, 0, 2]])
    model[3] = three
    with pytest.raises(ValueError, match="expected 3 sub-folders.*--class-names"):
        custom.compare(model, labelled, "gini", rates=(10,))
    found = custom.compare(model, labelled, "gini", rates=(10,), resamples=9,
                           class_names=["light", "dark", "none"])
    assert found.wrong == custom.compare(Bright(), labelled, "gini", rates=(10,), resamples=9).wrong


@pytest.mark.parametrize("names", [["Dark", "Light"], ["night", "day"], ["dark", "day"]])
def test_names_and_folders_that_disagree_are_an_error(labelled, names):
    with pytest.raises(ValueError, match=f"--class-names.*{names[0]}, {names[1]}; got "):
        custom.compare(Bright(), labelled, "gini", class_names=names)


def test_published_names_need_not_be_those_of_the_folders(labelled):
    found, plain = (custom.compare(Bright(), labelled, "gini", rates=(10,), resamples=9,
                                   class_names=names) for names in (Published(["a", "b"]), None))
    assert found.wrong == plain.wrong


def test_images_without_folders_have_no_classes(labelled):
    (labelled / "loose.png").write_bytes((next((labelled / "dark").iterdir())).read_bytes())
    with pytest.raises(ValueError, match="in the sub-folder of its class, got loose.png"):
        custom.compare(Bright(), labelled, "gini")


def test_a_model_that_is_always_right_tells_nothing(labelled, monkeypatch):
    monkeypatch.setattr(comparing, "classes_of_photos", lambda model, photos, **rest: (torch.tensor(
        [int(path.startswith("light")) for path in photos.paths]), {}))
    with pytest.raises(ValueError, match="gets all of 200 right"):
        custom.compare(Bright(), labelled, "gini")


def test_all_leaves_out_what_the_toolbox_cannot(labelled, monkeypatch):
    """Its attacks keep to one distance, and need it; asked for by name they are an error."""
    options = {"limit": 4, "iterations": 1, "population": 2, "resamples": 10}
    found = custom.compare(Bright(), labelled, "gini", fuzz="all", l2=0.9, linf=0.3, **options)
    assert {*found.left} == {"pgd", "apgd"} and "got both" in found.left["pgd"]
    assert {*found.fuzzers["fuzzer"]} == {"deepsensor", "excitable", "dlfuzz", "deepxplore"}
    found = custom.compare(Bright(), labelled, "gini", fuzz="pgd,apgd", l2=0.9, **options)
    assert [*found.fuzzers["fuzzer"]] == ["pgd", "apgd"]
    monkeypatch.setitem(sys.modules, "art", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e '.\[attacks\]'"):
        custom.compare(Bright(), labelled, "gini", fuzz="pgd", l2=0.9, **options)


def test_picture_shows_methods_and_fuzzers(labelled):
    from dnnlib.custom.comparing_picture import picture

    found = custom.compare(Bright(), labelled, "gini,nac", fuzz="dlfuzz", l2=0.9, limit=4,
                           iterations=2, resamples=20)
    small = picture(comparing.Compared(found.selectors, found.fuzzers[:0], 1, 1, ()))
    assert small.startswith(b"\x89PNG") and len(picture(found)) > len(small)
