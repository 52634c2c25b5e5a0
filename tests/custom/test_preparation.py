"""A transform as a preparation: what it does is done, and what it does not is not taken for it."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import v2

import dnnlib
from dnnlib import custom, models
from dnnlib.custom.preparation import Preparation, prepared

RGB = ((0.5, 0.4, 0.3), (0.2, 0.25, 0.3))


def normalize(formula, base=object):
    """A class called ``Normalize`` with mean and std, that does this."""
    def begin(self, mean=0.5, std=0.25):
        if base is not object:
            super(kind, self).__init__([mean], [std])
        self.mean, self.std = mean, std

    kind = type("Normalize", (base,), {"__init__": begin, "forward": formula,
                                       "__call__": formula})
    return kind


def by_channel(self, x):
    mean, std = (torch.tensor(values)[:, None, None] for values in RGB)
    return (x - mean) / std


@pytest.mark.parametrize("made", [
    normalize(lambda self, x: (x - self.mean) * self.std),
    normalize(lambda self, x: (x - self.mean) * self.std, transforms.Normalize),
    normalize(lambda self, x: (x - self.mean) * self.std, v2.Normalize),
    normalize(lambda self, x: (x - x.mean()) / x.std()),
    normalize(lambda self, x: (x - x.min()) / (x.max() - x.min())),
    normalize(lambda self, x: ((x - self.mean) / self.std).clamp(-1, 1)),
    normalize(lambda self, x: (self.mean - x) / self.std),
    normalize(lambda self, x: ((x - self.mean) / self.std).flip(-1)),
    normalize(lambda self, x: [].missing)])
def test_a_normalize_that_does_something_else_is_none(made):
    step = made()
    found = prepared(transforms.Compose([transforms.ToTensor(), step]))
    assert found.mean is found.std is None and found.transform.transforms[-1] is step


@pytest.mark.parametrize("made, mean, std", [
    (normalize(lambda self, x: (x - self.mean) / self.std), (0.5,), (0.25,)),
    (normalize(lambda self, x: 4 * x - 2), (0.5,), (0.25,)),
    (normalize(by_channel), *RGB)])
def test_a_normalize_of_ones_own_counts_by_what_it_does(made, mean, std):
    found = prepared(transforms.Compose([transforms.ToTensor(), made()]))
    assert (found.mean, found.std) == (mean, std)


def test_one_without_parameters_ranks_or_is_refused_in_a_line(tiny_model, tmp_path):
    for i in range(4):
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (8, 8), np.uint8)).save(
            tmp_path / f"{i}.png")
    plain = type("Normalize", (), {"__call__": lambda self, x: (x - x.min()) / x.max()})
    for step, fits in ((plain(), True), (normalize(lambda self, x: x - x.mean())(), False)):
        model = custom.Classifier(tiny_model(), preparation=prepared(
            transforms.Compose([transforms.ToTensor(), step])))
        if fits:
            assert dnnlib.rank(model, tmp_path, "gini", top=1)["note"].eq("").all()
        else:
            with pytest.raises(ValueError, match="values in .0, 1., .*torchvision's Normalize"):
                dnnlib.rank(model, tmp_path, "gini", top=1)


@pytest.mark.parametrize("made", [
    transforms.RandomApply([transforms.ToTensor(), transforms.Normalize([0.5], [0.25])]),
    transforms.RandomOrder([transforms.ToTensor(), transforms.Normalize([0.5], [0.25])]),
    type("Compose", (transforms.Compose,), {"__call__": lambda self, x: self.transforms[0](x)})(
        [transforms.ToTensor(), transforms.Normalize([0.5], [0.25])])])
def test_what_has_steps_and_does_not_take_them_in_turn_is_whole(made):
    found = prepared(made)
    assert found.transform is made and found.mean is None


def test_what_looks_like_a_preset_is_whole():
    def does(self, picture):
        return transforms.functional.to_tensor(picture) * self.std[0]

    kind = type("Mine", (), {"__call__": does, "resize_size": [8], "crop_size": [8], "mean": [0.5],
                             "std": [0.5], "interpolation": transforms.InterpolationMode.BILINEAR})
    assert prepared(kind()).mean is None


@pytest.mark.parametrize("workers", [0, 2])
def test_floats_that_are_no_gray_levels_stay(tiny_model, tmp_path, workers):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 8, 8), np.uint8)
    pixels[::5] = 255  # in a batch with others, these are whole levels
    for i, picture in enumerate(pixels):
        Image.fromarray(picture).save(tmp_path / f"{i:02d}.png")
    steps = [transforms.ToTensor(), transforms.Lambda(lambda x: x ** 8)]
    model = custom.Classifier(tiny_model(), preparation=prepared(transforms.Compose(steps)))
    x = (torch.from_numpy(pixels)[:, None] / 255) ** 8
    found, exact = (dnnlib.rank(tiny_model() if given is x else model, given, "gini", top=1,
                                workers=workers).sort_index()["gini_score"].tolist()
                    for given in (tmp_path, x))
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_whole_gray_levels_are_uint8():
    picture = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    for steps in ([transforms.ToTensor()], [v2.PILToTensor(), v2.ToDtype(torch.float64, True)]):
        found = prepared(transforms.Compose(steps)).apply(picture)
        assert found.dtype == np.uint8 and np.array_equal(found, np.asarray(picture))
    assert Preparation(transform=lambda picture: torch.full((1, 2, 2), 0.3)).apply(
        picture).dtype == np.float32


def test_a_transform_of_ones_own_is_given_the_picture_as_it_is(tmp_path):
    """Also before a network by name, which has channels of its own."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, 28, 28, 3), np.uint8)
    for i, picture in enumerate(pixels):
        Image.fromarray(picture).save(tmp_path / f"{i}.png")
    steps = [transforms.Lambda(lambda picture: picture.getchannel(0)), transforms.ToTensor()]
    network = models.build("lenet5")
    model = custom.Classifier(network, preparation=prepared(transforms.Compose(steps)))
    red = torch.from_numpy(pixels[..., 0])[:, None] / 255
    found, exact = (dnnlib.rank(*given, "gini", top=1).sort_index()["gini_score"].tolist()
                    for given in ((model, tmp_path), (network, red)))
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_a_pass_of_ones_own_around_the_classifier_is_not_lost(tiny_model):
    class Mirrored(custom.Classifier):
        def forward(self, x):
            return super().forward(x.flip(1, 2, 3))

    mine, x = Mirrored(tiny_model()), torch.rand(6, 1, 8, 8)
    found, exact = (dnnlib.rank(model, images, "gini", top=1).sort_index()["gini_score"].tolist()
                    for model, images in ((mine, x), (tiny_model(), x.flip(1, 2, 3))))
    assert found == pytest.approx(exact)


def test_what_runs_another_model_is_not_normalised_twice(tiny_model):
    class Runs(torch.nn.Module):  # as torch.compile gives it: with the attributes of the other
        def __init__(self, other):
            super().__init__()
            self.other, self.preparation = other, other.preparation

        def forward(self, x):
            return self.other(x)

    once, x = custom.prepare(tiny_model(), mean=(0.5,), std=(0.1,)), torch.rand(2, 1, 8, 8)
    again = custom.prepare(Runs(once), crop=8)
    assert torch.equal(again(x), once(x)) and again.preparation.crop == 8


def test_a_network_by_name_may_be_of_half_precision():
    x = torch.rand(6, 1, 28, 28)
    by = {"by": "nac", "top": 1, "reference": x}
    found = dnnlib.rank(models.build("lenet5").half(), x, **by)
    assert len(found) == 6
