import math
import sys
from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

import dnnlib
from dnnbook.display import plots
from dnnlib import custom, files, models, selection
from dnnlib.custom import Classifier, classifier, load_model

OWN = '''
from torch import nn
import beside

class View(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(1, 4, 3), nn.Linear(144, 3)

    def forward(self, x):
        x = self.conv(x)
        return self.out(x.view(x.size(0), -1))

SIZE = 3

def build():
    return View()

def nothing():
    return None

def bare():
    return nn.Flatten()

def empty():
    return View().to("meta")
'''


@pytest.fixture
def own(folders):
    """A file with a model of the usual kind, and a module beside it."""
    (folders / "beside.py").write_text("")
    (folders / "own.py").write_text(OWN)
    return folders / "own.py"


@pytest.fixture
def photos(tiny_data):
    """The forty images of ``tiny_data``, and two that could not be read."""
    paths = tuple(f"{i:02d}.png" for i in range(40))
    return custom.Photos(tiny_data.images, paths, {"x.png": "is torn", "y.png": "is deep"}, 0)


def outputs(values):
    """A model that gives these outputs (N, n) for images that hold their number, i / 255."""
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.tensor(values))

        def forward(self, x):
            return self.table[(x[:, 0, 0, 0] * 255).round().long()]
    return Table()


def numbered(n):
    return (torch.arange(n) / 255.0)[:, None, None, None].expand(n, 1, 4, 4).clone()


# ---- models


def test_own_model_with_its_weights(own):
    torch.manual_seed(3)
    model = load_model(f"{own}:build")
    save_file(model.state_dict(), own.with_name("w.safetensors"))
    again = load_model(f"{own}:build", own.with_name("w.safetensors"))
    assert type(again).__name__ == "View" and not again.training
    assert torch.equal(again.conv.weight, model.conv.weight)
    assert str(own.parent) not in sys.path


def test_model_by_name_with_its_weights(folders):
    trained = models.build("lenet1", shape=(1, 20, 20), classes=4, seed=5)
    files.save_tensors(folders / "w.safetensors", trained.state_dict())
    model = load_model("lenet1", folders / "w.safetensors", size=20, classes=4)
    x = torch.rand(2, 1, 20, 20)
    assert torch.equal(model(x), trained(x)) and not model.training


def test_mobilenet_takes_keras_weights(folders):
    trained = models.build("mobilenet", shape=(3, 32, 32), classes=4, width=0.25, seed=5)
    state = trained.state_dict()
    state["conv_preds.weight"] = state["conv_preds.weight"][:, :, 0, 0]
    files.save_tensors(folders / "w.safetensors", state)
    model = load_model("mobilenet", folders / "w.safetensors", size=32, classes=4,
                               width=0.25)
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(model(x), trained(x))


@pytest.mark.parametrize("name, options, error, words", [
    ("none.py:build", {}, FileNotFoundError, "no file .*none.py"),
    ("own.py", {}, ValueError, "expected FILE.py:FUNCTION, .*got"),
    ("own.py:", {}, ValueError, "expected FILE.py:FUNCTION, .*got"),
    ("own.txt:build", {}, ValueError, "expected FILE.py:FUNCTION, .*got"),
    ("own.py:biuld", {}, ValueError, "function of own.py 'biuld'; did you mean 'build'"),
    ("own.py:SIZE", {}, ValueError, "function of own.py 'SIZE'"),
    ("own.py:nothing", {}, TypeError, "return a torch.nn.Module, .*got NoneType; did you forget `return`"),
    ("own.py:bare", {}, ValueError, "bare.. of own.py returns one without parameters"),
    ("own.py:empty", {}, ValueError, "empty.. of own.py returns one on the meta device"),
    ("own.py:empty", {"weights": "w.safetensors"}, ValueError, "returns one on the meta device"),
    ("own.py:build", {"classes": 3}, ValueError, "classes: only with a name"),
    ("lenet6", {}, ValueError, "did you mean 'lenet"),
    ("lenet5", {}, ValueError, "weights: expected a file with those of 'lenet5'"),
    ("lenet5", {"weights": "none.safetensors"}, FileNotFoundError, "no weights at"),
    ("lenet5", {"weights": "w.txt"}, ValueError, "ends in .safetensors, .* got w.txt"),
    ("lenet5", {"weights": "w.pt"}, FileNotFoundError, "no weights at w.pt"),
    ("torchvision:resnet81", {}, ValueError, "model of torchvision 'resnet81'; did you mean"),
    ("none.pt", {}, FileNotFoundError, "no file none.pt"),
    ("own.onnx", {"weights": "w.pt"}, ValueError, "own.onnx has its own"),
    ("lenet5", {"weights": "w.safetensors"}, ValueError, "does not fit the model: missing"),
    ("lenet5", {"weights": "w.safetensors", "classes": 1}, ValueError, "classes: .*at least two"),
    ("lenet5", {"weights": "w.safetensors", "size": 2}, ValueError, "2 x 2|at least"),
    ("lenet5", {"weights": "torn.safetensors"}, ValueError, "not a whole safetensors file")])
def test_models_that_cannot_be_loaded(own, monkeypatch, name, options, error, words):
    monkeypatch.chdir(own.parent)
    save_file({"a": torch.ones(2)}, "w.safetensors")
    own.with_name("torn.safetensors").write_bytes(own.with_name("w.safetensors").read_bytes()[:20])
    with pytest.raises(error, match=words):
        load_model(name, **options)
    assert str(own.parent) not in sys.path


# ---- images


@pytest.mark.parametrize("build, options, shape", [
    (lambda: models.build("lenet1"), {}, (1, 28, 28)),
    (lambda: models.build("lenet1"), {"size": 24, "channels": 3}, (3, 24, 24)),
    (lambda: nn.Linear(1, 1), {}, (3, 30, 40)),
    (lambda: nn.Linear(1, 1), {"size": 16}, (3, 16, 16)),
    (lambda: nn.Linear(1, 1), {"channels": 1}, (1, 30, 40))])
def test_images_come_as_the_model_takes_them(folders, build, options, shape):
    (folders / "photos" / "a").mkdir(parents=True)
    picture = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(picture).save(folders / "photos" / "a" / "1.png")
    photos = custom.read_photos(folders / "photos", build(), **options)
    assert photos.images.shape == (1, *shape) and photos.paths == ("a/1.png",)
    assert photos.images.dtype == torch.float32
    if shape == (3, 30, 40):
        assert np.array_equal(photos.images[0].permute(1, 2, 0) * 255, picture)


@pytest.mark.parametrize("options, words", [({"channels": 2}, "channels: expected 1 or 3"),
                                            ({"size": 0}, "size: expected")])
def test_images_of_no_shape(folders, options, words):
    with pytest.raises(ValueError, match=words):
        custom.read_photos(folders, nn.Linear(1, 1), **options)


# ---- what a model gives


def test_view_works_on_one_channel(own):
    """Channels-last strides, on which ``view`` fails, outlive ``contiguous`` if C = 1."""
    model, x = load_model(f"{own}:build"), torch.rand(5, 1, 8, 8)
    fit = classifier(model, x)
    last = x.to(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="view"):
        model(last)
    assert torch.allclose(fit(last), model(x), atol=1e-6)


@pytest.mark.parametrize("by", ["gini", "margin", "ats"])
def test_probabilities_rank_as_their_logits(tiny_model, photos, by):
    logits = tiny_model()
    table = custom.rank(logits, photos, by)
    other = custom.rank(nn.Sequential(logits, nn.Softmax(1)), photos, by, probabilities=True)
    assert other["path"].tolist() == table["path"].tolist()
    np.testing.assert_allclose(other[f"{by}_score"], table[f"{by}_score"], atol=1e-6)


def test_probability_zero_has_a_finite_logarithm():
    model = Classifier(outputs([[1.0, 0.0], [0.5, 0.5]]), probabilities=True)
    logits = model(numbered(2))
    assert logits.isfinite().all()
    assert torch.allclose(logits.softmax(1), torch.tensor([[1.0, 0.0], [0.5, 0.5]]))


@pytest.mark.parametrize("values, options, words", [
    ([[0.2, 0.8], [0.7, 0.3]], {}, r"probabilities where logits are expected.*--probabilities"),
    ([[2.0, 0.8], [0.7, 0.3]], {"probabilities": True}, "expected probabilities, as said"),
    ([[1.2, -0.2], [0.7, 0.3]], {"probabilities": True}, "expected probabilities, as said"),
    ([[2.0, 0.8], [2.0, 0.8]], {}, "the same output for each of 2 images"),
    ([[2.0], [1.0]], {"probabilities": True}, "expected probabilities, as said"),
    ([[[2.0, 1.0]], [[1.0, 0.0]]], {}, r"got shape \(2, 1, 2\)"),
    ([[2.0, math.nan], [0.7, 0.3]], {}, "finite outputs"),
    ([[2.0, math.inf], [0.7, 0.3]], {}, "finite outputs")])
def test_outputs_that_cannot_rank(values, options, words):
    with pytest.raises(ValueError, match=f"^model: .*{words}"):
        classifier(outputs(values), numbered(2), **options)


def test_some_rows_that_sum_to_one_may_be_logits():
    classifier(outputs([[0.2, 0.8], [0.7, 0.8]]), numbered(2))


def test_images_all_alike_may_have_one_output(tiny_model):
    classifier(tiny_model(), torch.zeros(3, 1, 8, 8))


def test_model_of_another_shape(tiny_model):
    with pytest.raises(ValueError, match=r"cannot take images of shape \(3, 8, 8\)"):
        classifier(tiny_model(), torch.rand(3, 3, 8, 8))


def test_output_that_is_no_tensor(tiny_model):
    class Named(nn.Sequential):
        def forward(self, x):
            return {"scores": super().forward(x).mean(1)}

    with pytest.raises(TypeError, match="a dict without logits, and without a tensor .*: scores"):
        classifier(Named(tiny_model()), torch.rand(3, 1, 8, 8))


# ---- the ranking


def test_gini_against_a_loop(tiny_model, photos):
    model = tiny_model()
    scores = []
    for image in photos.images:
        with torch.no_grad():
            exps = [math.exp(v) for v in model(image[None])[0].tolist()]
        scores.append(1 - sum((e / sum(exps)) ** 2 for e in exps))
    order = sorted(range(40), key=lambda i: -scores[i])
    table = custom.rank(model, photos, "gini", top=0.1)
    assert table.index[:40].tolist() == order
    assert table["path"][:40].tolist() == [photos.paths[i] for i in order]
    np.testing.assert_allclose(table["gini_score"][:40], [scores[i] for i in order], atol=1e-6)
    assert table["gini_rank"][:40].tolist() == [*range(1, 41)]
    assert table["gini_selected"].tolist() == [True] * 4 + [False] * 38


@pytest.mark.parametrize("name", selection.SELECTORS)
def test_every_method_as_the_engine_orders(tiny_model, photos, name):
    x = photos.images
    extra = {"reference": torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(9))}
    if not custom.needs_reference(name):
        extra = {}
    chosen = selection.selector(name, **extra)
    table = custom.rank(tiny_model(), photos, name, **extra)[:40]
    assert table.index.tolist() == chosen.order(tiny_model(), x).tolist()
    if isinstance(chosen, selection.Scored):
        np.testing.assert_allclose(table[f"{name}_score"],
                                   np.sort(chosen.score(tiny_model(), x))[::-1], rtol=1e-5)
    else:
        assert table[f"{name}_score"].isna().all()


def test_no_image_is_lost(tiny_model, photos):
    table = custom.rank(tiny_model(), photos, "gini,random", top="25%")
    assert sorted(table["path"]) == sorted([*photos.paths, *photos.skipped])
    left = table[-2:]
    assert left["path"].tolist() == ["x.png", "y.png"]
    assert left["note"].tolist() == ["is torn", "is deep"]
    for name in ("gini", "random"):
        assert left[[f"{name}_score", f"{name}_rank"]].isna().all(axis=None)
        assert table[f"{name}_selected"].sum() == 10 and not left[f"{name}_selected"].any()
    assert (table["note"][:40] == "").all()


def test_first_method_gives_the_order(tiny_model, photos):
    table = custom.rank(tiny_model(), photos, "random,gini")[:40]
    assert table["random_rank"].is_monotonic_increasing
    assert not table["gini_rank"].is_monotonic_increasing


def test_methods_in_another_order_are_the_same_run(tiny_model, photos, tmp_path):
    first = custom.rank(tiny_model(), photos, "random,gini", folder=tmp_path / "run")
    again = custom.rank(tiny_model(), photos, "gini,random", folder=tmp_path / "run")
    assert again["gini_rank"][:40].is_monotonic_increasing and "none changed" in again.attrs["used"]
    assert again["random_rank"].sort_index().equals(first["random_rank"].sort_index())
    assert not (tmp_path / "run-1").exists()
    custom.rank(tiny_model(), photos, "gini", folder=tmp_path / "run")
    assert (tmp_path / "run-1").exists()


def test_seed_reaches_the_methods(tiny_model, photos):
    ranks = [custom.rank(tiny_model(), photos, "random", seed=seed)["path"].tolist()
             for seed in (1, 1, 2)]
    assert ranks[0] == ranks[1] != ranks[2]


def test_one_image_is_not_ranked(tiny_model, photos):
    one = custom.Photos(photos.images[:1], photos.paths[:1], photos.skipped, 0)
    with pytest.raises(ValueError, match="at least two candidates"):
        custom.rank(tiny_model(), one, "gini")


def test_error_names_the_method(photos):
    two = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    with pytest.raises(ValueError, match="^ats: .*at least 3 classes.*got 2"):
        custom.rank(two, photos, "gini,ats")


@pytest.mark.parametrize("by, words", [
    ("", "methods: expected words"), (",", "methods: expected words"),
    ("ginni", "did you mean 'gini'"), ("gini,nss,gini", "'gini' twice"),
    ("gini,kmnc", "kmnc: needs training images.*--reference")])
def test_methods_that_do_not_exist(by, words):
    with pytest.raises(ValueError, match=words):
        custom.parse_methods(by, reference=False)


# ---- the share


@pytest.mark.parametrize("top, share", [
    ("5%", 0.05), (" 12.5 % ", 0.125), ("0.05", 0.05), (0.5, 0.5), ("1.0", 1.0), ("1", 0.005),
    ("200", 1.0), (50, 0.25)])
def test_share(top, share):
    assert custom.parse_top(top, 200) == pytest.approx(share)


@pytest.mark.parametrize("n", [3, 7, 49, 1000])
def test_count_is_kept(n):
    for k in range(1, min(n, 60) + 1):
        assert len(selection.top(torch.arange(n), custom.parse_top(str(k), n))) == k


@pytest.mark.parametrize("top, words", [
    ("five", "top: expected a share"), ("%", "top: expected a share"),
    ("5 percent", "top: expected a share"), ("41", "at most the 40 images there are"),
    *((top, f"top: expected .* got {top}") for top in ("0", "-3", "0%", "150%", "nan%")), ("2%", "of 40 candidates is none")])
def test_share_that_makes_no_sense(tiny_model, photos, top, words):
    with pytest.raises(ValueError, match=words):
        custom.rank(tiny_model(), photos, "gini", top=top)


# ---- the contact sheet


def test_first_images_with_their_titles(tiny_model, photos):
    table = custom.rank(tiny_model(), photos, "gini,random", top="50%")
    firsts = custom.first(table, photos, limit=3)
    assert [*firsts] == ["gini", "random"]
    for name, (images, titles) in firsts.items():
        rows = table.sort_values(f"{name}_rank")[:3]
        assert torch.equal(images, photos.images[rows.index.tolist()])
        assert [t.split("\n")[1] for t in titles] == rows["path"].tolist()
        assert [t.split("\n")[0].split(":")[0] for t in titles] == ["1", "2", "3"]
        assert all((":" in t) == (name == "gini") for t in titles)  # random has no score
    only = custom.first(custom.rank(tiny_model(), photos, "gini", top="2"), photos)
    assert len(only["gini"][0]) == 2  # what is not selected is not shown


def test_long_names_show_their_end(photos):
    table = pd.DataFrame({"path": ["holiday/beach_0001.jpg"], "a_score": [0.5], "a_rank": [1],
                          "a_selected": [True]})
    named = replace(photos, paths=("holiday/beach_0001.jpg", *photos.paths[1:]))
    assert custom.first(table, named)["a"][1] == ["1: 0.5\n…each_0001.jpg"]


def test_sheet_has_a_part_for_each_method(tmp_path):
    rng = np.random.default_rng(0)
    parts = {name: (rng.random((n, 1, 4, 4)), [f"{name} ${i}" for i in range(n)])
             for name, n in (("a", 9), ("b", 2))}
    figure = plots.sheet(parts, columns=4)
    assert [part.get_suptitle() for part in figure.subfigs] == ["a", "b"]
    for part, (x, titles) in zip(figure.subfigs, parts.values()):
        shown = [axis for axis in part.axes if axis.get_images()]
        assert [axis.get_title() for axis in shown] == titles
        assert all(np.array_equal(axis.get_images()[0].get_array(), image[0])
                   for axis, image in zip(shown, x))
    figure.savefig(tmp_path / "sheet.png")  # a $ is no formula
    plt.close(figure)


# ---- methods of one call


def test_a_method_that_fails_costs_only_itself(tiny_model, photos):
    """Training images of one predicted class, which only a look at all of them shows."""
    model = tiny_model()
    given = model(photos.images).argmax(1)
    one = photos.images[given == given[0]]
    table = custom.rank(model, photos, "dsa,gini,nac", reference=one)
    assert [*table.attrs["failed"]] == ["dsa"]
    assert "at least two predicted classes" in table.attrs["failed"]["dsa"]
    assert "dsa_rank" not in table and sorted(table["nac_rank"].dropna()) == [*range(1, 41)]
    assert table["gini_rank"].tolist()[:40] == [*range(1, 41)]
    with pytest.raises(ValueError, match="^dsa: reference"):
        custom.rank(model, photos, "dsa", reference=one)


def test_methods_that_read_outputs_share_a_pass(tiny_model, photos):
    seen = []
    model = tiny_model()
    model.register_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    custom.rank(model, photos, "gini,pd,pv,pe,ats,margin,random,least_confidence", batch_size=40)
    assert [n for n in seen if n > 2] == [40, 40]  # a look at the outputs, then all methods


def test_what_cannot_work_is_told_before_all_images_are_seen(tiny_model, photos):
    seen = []
    model = nn.Sequential(*tiny_model()[:2], nn.Softplus(), *tiny_model()[2:])
    model.register_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    with pytest.raises(ValueError, match=r"^npc: layer '2' \(Softplus\): no rule"):
        custom.rank(model, photos, "nac,npc", reference=photos.images, batch_size=40)
    assert [n for n in seen if n > 2] == [40]  # a look at the outputs


def test_layers_by_pattern(tiny_model, photos):
    model = tiny_model()
    chosen = selection.selector("nac", layers=("1",), batch_size=64).order(model, photos.images)
    table = custom.rank(model, photos, "nac", layers=["[1]"])
    assert table.index[:40].tolist() == chosen.tolist()
    with pytest.raises(ValueError, match="nothing matches"):
        custom.rank(model, photos, "nac", layers=["layer*"])


def wrapped(model):
    return torch.compile(model, backend="eager")


def in_place(model):
    model.compile(backend="eager")
    return model


def in_part(model):
    model[3].compile(backend="eager")
    return model


@pytest.mark.parametrize("compiled", [wrapped, in_place, in_part])
@pytest.mark.parametrize("by", selection.SELECTORS)
def test_a_compiled_network_is_ranked_as_without(compiled, by, tiny_model, tiny_data):
    """A hook is not called by what was compiled before it was there."""
    model, x = compiled(tiny_model()), tiny_data.images
    with torch.no_grad():
        model(x[:3])
    given = {"by": by, "top": 8, "reference": torch.utils.data.TensorDataset(
        x.flip(3), torch.arange(len(x)) % 3)}
    assert dnnlib.rank(model, x, **given)["path"].equals(
        dnnlib.rank(tiny_model(), x, **given)["path"])


def test_scores_that_are_all_the_same_are_told(tiny_model, photos, caplog):
    """A softmax that is saturated in float64 too."""
    model = nn.Sequential(tiny_model(), nn.Linear(3, 3, bias=False))
    model[1].weight.data = 1e6 * torch.eye(3)
    custom.rank(model, photos, "gini,random")
    assert "gini: all images have the same score, so that their order says nothing" in caplog.messages
    caplog.clear()
    custom.rank(tiny_model(), photos, "gini,random")
    assert not caplog.messages


def test_gradients_that_are_turned_off_for_all_are_there(tiny_model, photos, tmp_path):
    with torch.no_grad():
        off = custom.rank(tiny_model(), photos, "excitable", top=1)
        found = custom.fuzz(tiny_model(), photos, tmp_path / "found", by="dlfuzz", l2=1.0,
                            iterations=2, limit=4, noise=False)
    assert off.index.tolist() == custom.rank(tiny_model(), photos, "excitable", top=1).index.tolist()
    assert found.passes["dlfuzz"] > 0
