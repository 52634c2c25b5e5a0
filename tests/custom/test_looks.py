"""What is looked at before every run: what is refused, what is told, and that nothing is changed."""

import json
import logging
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import to_pil_image

import dnnlib
from dnnlib import custom, inference, models, selection
from dnnlib.custom import preparation
from dnnlib.custom.looks import AGAIN
from dnnlib.fuzzing import Budget, Noise
from dnnlib.robustness import FGSM, PGD, attack_success_rate
from dnnlib.robustness.clever import clever
from tests.custom.changed import Changed


@pytest.fixture
def x(tiny_data):
    return tiny_data.images[:24]


@pytest.fixture
def labelled(x, tiny_model):
    """Images in folders of classes, of which the model gets some right and some wrong."""
    labels = tiny_model()(x).argmax(1)
    labels[::3] = (labels[::3] + 1) % 3
    names = tuple(f"{label}/{i}" for i, label in enumerate(labels.tolist()))
    return custom.Photos(x, names)


def rank(model, photos, folder, **options):
    return dnnlib.rank(model, photos, "gini", **options)


def fuzz(model, photos, folder, **options):
    return dnnlib.fuzz(model, photos, folder / "failures", by="noise", l2=2.0, iterations=1,
                       **options)


def compare(model, photos, folder, **options):
    return dnnlib.compare(model, photos, "gini", class_names=["0", "1", "2"], resamples=10,
                          **options)


def forecast(model, photos, folder, **options):
    return custom.forecast(model, photos, by="noise", l2=2.0, iterations=1, **options)


RUNS = [rank, fuzz, compare, forecast]
every = pytest.mark.parametrize("run", RUNS)


# ---- the same outputs, whatever else is in the pass


def over_the_batch(z):
    return z / z.amax(0, keepdim=True)


@every
@pytest.mark.parametrize("change, words", [
    (lambda z: F.dropout(z, 0.5, training=True), "two passes over the same images .* dropout"),
    (lambda z: z - z.mean(0), "depend on the other images of the pass"),
    (over_the_batch, "depend on the other images of the pass"),
    (lambda z: (8 * z).sigmoid(), "in .0, 1., each class's by itself, as after a sigmoid"),
    (lambda z: z.softmax(1), "probabilities where logits are expected; .*--probabilities.*--logits"),
    (lambda z: 100 * z.softmax(1), "non-negative and sums to 100, where logits are expected"),
    (lambda z: ((8 * z).softmax(1) * 100).round() / 100, "every output is in .0, 1., each class"),
])
def test_outputs_that_no_run_takes(run, change, words, labelled, tiny_model, tmp_path):
    with pytest.raises(ValueError, match=f"^model: .*{words}"):
        run(Changed(tiny_model(), change), labelled, tmp_path)


def test_normalisation_over_the_batch_is_refused(x):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False),
                          nn.Flatten(), nn.Linear(144, 3))
    with pytest.raises(ValueError, match="depend on the other images of the pass"):
        dnnlib.rank(model, x, "gini")
    model[1] = nn.BatchNorm2d(4)
    dnnlib.rank(model, x, "gini")


def test_a_little_of_the_batch_is_told(tiny_model, x, caplog):
    """As with activations quantised by the largest of the batch."""
    model = Changed(tiny_model(), lambda z: z + 0.01 * z.abs().max())
    assert len(dnnlib.rank(model, x, "gini")) == len(x)
    assert "depend on the other images of the pass, by up to" in caplog.text


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_rounding_is_no_noise(tiny_model, x, kind, caplog):
    custom.classifier(tiny_model().to(kind), x)
    assert not caplog.records


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_look_at_few_images(tiny_model, x, n):
    custom.classifier(tiny_model(), x[:n])
    with pytest.raises(ValueError, match="two passes"):
        custom.classifier(Changed(tiny_model(), lambda z: z + torch.rand_like(z)), x[:n])


# ---- logits, or not


@every
def test_logits_that_look_like_probabilities_can_be_said_to_be_logits(
        run, labelled, tiny_model, tmp_path):
    run(Changed(tiny_model(), lambda z: z.softmax(1)), labelled, tmp_path, probabilities=False)


def test_small_logits_are_no_probabilities(tiny_model, x, caplog):
    """They stay in [0, 1] on these images only."""
    z = tiny_model()(x)
    small = Changed(tiny_model(), lambda y: 0.5 + (y - z.mean()) / (z.amax() - z.amin()) / 4)
    one = Changed(small, lambda y: y[:, :1])
    for model in (small, one):
        outputs = model(x)
        assert (outputs > 0).all() and (outputs < 1).all()
        dnnlib.rank(model, x, "gini")
    assert not caplog.records


def test_a_column_that_may_be_either_is_told(x, caplog):
    class Table(nn.Module):
        """Takes no image beyond [0, 1], so that nobody knows."""
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.linspace(0.1, 0.9, 256)[:, None])

        def forward(self, x):
            return self.table[(x.mean((1, 2, 3)) * 255).long()]

    assert len(dnnlib.rank(Table(), x * torch.linspace(0, 1, 24).view(-1, 1, 1, 1), "gini")) == 24
    assert "may be probabilities, and are taken for logits; if not, say so" in caplog.text


def test_one_column_after_a_sigmoid_is_refused(tiny_model, x):
    model = Changed(tiny_model(), lambda z: z[:, 0].sigmoid())
    with pytest.raises(ValueError, match=r"in \[0, 1\], where logits are expected; .*--prob"):
        dnnlib.rank(model, x, "gini")
    assert len(dnnlib.rank(model, x, "gini", probabilities=True)) == len(x)


def test_logarithms_and_positive_scores_are_taken(tiny_model, x, caplog):
    alike = x[:1] + 1e-4 * x[:3]
    for change in (lambda z: z.log_softmax(1), lambda z: F.softplus(9 * z), lambda z: z + 1000):
        dnnlib.rank(Changed(tiny_model(), change), x, "gini")
    dnnlib.rank(Changed(tiny_model(), lambda z: F.softplus(9 * z)), alike.clamp(0, 1), "gini", top=1)
    dnnlib.rank(Changed(tiny_model(), F.relu), x, "gini")
    assert not caplog.records


def test_a_class_that_is_masked_hides_no_noise(tiny_model, x):
    def masked(z):
        return torch.cat([F.dropout(z, 0.5, training=True), torch.full((len(z), 1), -1e9)], 1)

    with pytest.raises(ValueError, match="two passes .* dropout"):
        dnnlib.rank(Changed(tiny_model(), masked), x, "gini")


def test_probabilities_in_half_precision_are_taken(tiny_model, x):
    def rounded(z):
        return (3 * z.repeat(1, 4)).softmax(1).bfloat16()

    model = Changed(tiny_model(), rounded)
    assert ((model(x).float().sum(1) - 1).abs() > 1e-3).any()
    assert len(dnnlib.rank(model, x, "gini", probabilities=True)) == len(x)
    with pytest.raises(ValueError, match="these are probabilities where logits are expected"):
        dnnlib.rank(model, x, "gini")


def test_of_a_model_that_limits_its_images_nobody_knows_the_bounds(x, caplog):
    class Limited(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = nn.Linear(64, 3)

        def forward(self, x):  # a weighted mean of the pixels for each class
            return x.clamp(0, 1).flatten(1) @ self.layer.weight.softmax(1).T

    assert len(dnnlib.rank(Limited(), x, "gini")) == len(x)
    assert "may be probabilities, and are taken for logits" in caplog.text


def test_a_squeeze_is_found_before_the_work(tiny_model, x):
    model = Changed(tiny_model(), lambda z: z.squeeze(0))
    with pytest.raises(ValueError, match=r"outputs \(1, 3\) for one image, got .* squeeze"):
        dnnlib.rank(model, x, "gini")


def test_the_first_of_several_tensors_is_told(tiny_model, x, caplog):
    dnnlib.rank(Changed(tiny_model(), lambda z: (torch.cat([z, z], 1), z)), x, "gini")
    assert "returns tensors of 6, 3 columns; the first is taken for logits" in caplog.text
    caplog.clear()
    dnnlib.rank(Changed(tiny_model(), lambda z: (z, z)), x, "gini")  # an auxiliary head
    assert not caplog.records


# ---- what is looked at stays as it was


@every
@pytest.mark.parametrize("fails", [False, True])
def test_modules_stay_in_their_modes(run, fails, labelled, tiny_model, tmp_path):
    model = nn.Sequential(tiny_model(), nn.Dropout(), nn.BatchNorm1d(3)).train()
    model[0].eval()
    before = [module.training for module in model.modules()]
    if fails:
        with pytest.raises(ValueError, match="expected probabilities, as said"):
            run(model, labelled, tmp_path, probabilities=True)
    else:
        run(model, labelled, tmp_path)
    assert [module.training for module in model.modules()] == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())


class Grid(nn.Module):
    """Keeps a tensor of the first pass, as position encodings are often kept."""

    def __init__(self, model):
        super().__init__()
        self.model, self.grid = model, None

    def forward(self, x):
        if self.grid is None:
            self.grid = torch.ones(x.shape[1:]) * 1.5
        return self.model(x * self.grid)


@pytest.mark.parametrize("by", ["gini", "nac", "nss"])
def test_a_tensor_that_is_kept_takes_part_in_training(tiny_model, x, by):
    model = Grid(tiny_model())
    dnnlib.rank(model, x, by)
    model(x).sum().backward()
    assert model.model[0].weight.grad is not None


def test_a_network_that_keeps_a_tensor_is_fuzzed_by_gradients(tiny_model, x, tmp_path):
    found = dnnlib.fuzz(Grid(tiny_model()), x, tmp_path / "f", by="dlfuzz", l2=2.0, iterations=1)
    assert len(found.inputs) == len(x)


class Detached(nn.Module):
    def __init__(self, inner, change):
        super().__init__()
        self.inner, self.change = inner, change

    def forward(self, x):
        return self.change(self.inner, x)


@pytest.mark.parametrize("change, words", [
    (lambda inner, x: inner(x).detach(), "the model's outputs have none: are they detached"),
    (lambda inner, x: inner((255 * x).round() / 255), "those of 8 images are 0: does the model")])
def test_what_follows_gradients_needs_some(tiny_model, x, labelled, tmp_path, change, words):
    model = Detached(tiny_model(), change)
    for by in ("dlfuzz", "deepxplore", "excitable"):
        with pytest.raises(ValueError, match=f"^{by}: follows gradients, and {words}"):
            dnnlib.fuzz(model, x, tmp_path / by, by=by, l2=2.0, iterations=1)
    with pytest.raises(ValueError, match=f"^excitable: follows gradients, and {words}"):
        dnnlib.rank(model, x, "excitable")
    dnnlib.fuzz(model, x, tmp_path / "noise", by="noise", l2=2.0, iterations=1)


# ---- the images are the same when they are read again


class Random(torch.utils.data.Dataset):
    """A training set, whose transform is random."""

    change = v2.RandomHorizontalFlip()

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.change(self.x[i]), 0


def test_images_that_change_are_refused(tiny_model, x, tmp_path):
    torch.manual_seed(0)
    assert len(x) > AGAIN
    for run in (rank, fuzz, forecast):
        with pytest.raises(ValueError, match="^images: .* another image each time .* random"):
            run(tiny_model(), Random(x), tmp_path)
    with pytest.raises(ValueError, match="^reference: .* another image each time"):
        dnnlib.rank(tiny_model(), x, "dsa", reference=Random(x))


def test_the_log_is_quiet_for_an_honest_model(tiny_model, labelled, tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    for run in RUNS:
        run(tiny_model(), labelled, tmp_path)
    assert not caplog.records


# ---- bounds and means in 255ths


@pytest.mark.parametrize("make", [
    lambda: Budget(linf=8), lambda: FGSM(eps=8), lambda: PGD(eps=8, eps_step=2),
    lambda: custom.Options(by="noise", linf=8)])
def test_a_change_of_a_pixel_in_255ths_is_refused(make):
    with pytest.raises(ValueError, match="so that 8 bounds nothing; did you mean 8/255, 0.03137"):
        make()


def test_a_ball_in_255ths_is_refused(tiny_model, x):
    with pytest.raises(ValueError, match="^radius: .* 8 bounds nothing"):
        clever(tiny_model(), x[:1], norm="linf", radius=8)


def test_a_distance_that_bounds_nothing_is_refused(tiny_model, labelled, tmp_path):
    """Images of 8 x 8 values in [0, 1] are at most 8 apart."""
    for run in (lambda l2: dnnlib.fuzz(tiny_model(), labelled, tmp_path / "f", by="noise", l2=l2,
                                       iterations=1),
                lambda l2: dnnlib.compare(tiny_model(), labelled, "gini", fuzz="dlfuzz", l2=l2,
                                          class_names=["0", "1", "2"], limit=2, iterations=1)):
        with pytest.raises(ValueError, match="^l2: .* at most 8 apart and 8.5 bounds nothing"):
            run(8.5)
        run(8.0)


@pytest.mark.parametrize("given, said", [("8/255", 8 / 255), ("0.25", 0.25)])
def test_command_takes_a_fraction(given, said, x, own, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(own)
    (tmp_path / "photos").mkdir()
    for i, image in enumerate(x[:4]):
        to_pil_image(image).save(f"photos/{i}.png")
    done = subprocess.run(
        [sys.executable, "-m", "dnnlib.cli", "fuzz", "--model", "own.py:build", "--images",
         "photos", "--by", "noise", "--linf", given, "--iterations", "1", "--gallery", "none"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "failures" / "run.json").read_text())["linf"] == said


def test_a_mean_of_pixels_from_0_to_255_is_told(caplog):
    given = preparation.Preparation(mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))
    assert given.described == "normalised by mean 0.485, 0.456, 0.406, std 0.229, 0.224, 0.225"
    assert "123.675 is that of pixels from 0 to 255; mean and std are divided by 255" in caplog.text
    assert preparation.Preparation(mean=(127.5,), std=(1,)).std == (1 / 255,)


@pytest.mark.parametrize("mean, std, words", [
    (0.0, 255.0, "std: expected numbers up to 1"),
    (123.675, 0.229, "mean, std: expected both as of pixels in .0, 1., got 123.675 and 0.229")])
def test_a_mean_and_deviation_that_do_not_fit(mean, std, words):
    with pytest.raises(ValueError, match=words):
        preparation.Preparation(mean=(mean,), std=(std,))


# ---- pictures of a dataset


def test_pictures_of_a_dataset_are_prepared_as_files_are(tiny_model, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "p").mkdir()
    for i in range(6):
        picture = Image.fromarray(rng.integers(0, 256, (20, 16), dtype=np.uint8))
        exif = picture.getexif()
        exif[0x0112] = 6  # held upright
        picture.save(tmp_path / "p" / f"{i}.png", exif=exif)
    model = custom.prepare(tiny_model(), resize=8, crop=8, mean=(0.5,), std=(0.5,))
    data = [(Image.open(tmp_path / "p" / f"{i}.png"), 0) for i in range(6)]
    by_files, by_data = (dnnlib.rank(model, images, "gini", top=1).sort_index()["confidence"].tolist()
                         for images in (tmp_path / "p", data))
    assert by_data == by_files


def test_a_picture_with_a_palette_is_no_gray_one(tiny_model):
    """Its values are numbers of colours."""
    colours = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)
    palette = [Image.fromarray(values).quantize(16) for values in colours]
    with pytest.raises(ValueError, match="is a picture of mode P, where L, RGB or RGBA is expected"):
        dnnlib.rank(tiny_model(), palette, "gini", top=1)
    lenet = models.build("lenet1", shape=(1, 28, 28))
    found = custom.photos_of(palette, lenet)  # says what it takes
    whole = custom.photos_of([p.convert("L") for p in palette], lenet)
    assert found.shape == (1, 28, 28)
    assert (found.images - whole.images).abs().max() <= 1.01 / 255  # by way of its colours


@pytest.mark.parametrize("mode", ["CMYK", "I;16", "LA"])
def test_pictures_of_other_kinds_are_named(tiny_model, mode):
    with pytest.raises(ValueError, match=f"picture of mode {mode}, where L, RGB or RGBA is expected"):
        dnnlib.rank(tiny_model(), [Image.new(mode, (8, 8))] * 3, "gini", top=1)


def test_four_channels_are_taken_as_they_are():
    torch.manual_seed(0)
    pictures = [to_pil_image(torch.rand(4, 8, 8), mode="RGBA") for _ in range(4)]
    model = nn.Sequential(nn.Flatten(), nn.Linear(4 * 64, 3))
    assert len(dnnlib.rank(model, pictures, "gini", top=1)) == 4


def test_black_and_white_is_gray(tiny_model):
    photos = custom.photos_of([Image.new("1", (8, 8), 1)], tiny_model())
    assert photos.images.eq(1).all() and photos.shape == (1, 8, 8)


# ---- what the engine's functions say when they are called directly


@pytest.mark.parametrize("run", [
    lambda model, x: selection.selector("ats").order(model, x),
    lambda model, x: clever(model, x[:1], batches=2, samples=2, pool=4),
    lambda model, x: Noise(budget=Budget(l2=1.0)).run(
        model, x, torch.zeros(len(x), dtype=torch.int64), iterations=1,
        generator=torch.Generator()),
    lambda model, x: attack_success_rate(model, x, torch.zeros(len(x), dtype=torch.int64))])
def test_softmax_inside_is_refused_by_functions_too(run, tiny_model, x):
    with pytest.raises(ValueError, match="^model: .* probabilities where logits are expected"):
        run(nn.Sequential(tiny_model(), nn.Softmax(1)).eval(), x)


def test_logits_of_one_image_may_sum_to_one_by_chance(x):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2, bias=False))
    model[1].weight.data[:] = 1 / x[0].sum() / 2
    assert inference.predict(model, x[:1]).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("run", [
    lambda model, x, y: clever(model, x[:1], batches=2, samples=2, pool=4),
    lambda model, x, y: attack_success_rate(model, x, y, FGSM(eps=0.1))])
def test_functions_leave_modules_in_their_modes(run, tiny_model, x):
    model = nn.Sequential(tiny_model(), nn.Dropout()).train()
    model[0][0].eval()
    before = [module.training for module in model.modules()]
    run(model, x, tiny_model()(x).argmax(1))
    assert [module.training for module in model.modules()] == before
