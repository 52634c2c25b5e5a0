from dataclasses import replace

import pytest
import torch
from torch import nn
from torchvision.transforms import v2

from dnnbook import reproducible
from dnnbook.training import Recipe, augmentation, fit, loop
from dnnbook.training.augmentation import Changes, border, changed, drawn

SHAPE = (2, 8, 8)


@pytest.fixture
def images(generator):
    return torch.rand(400, *SHAPE, generator=generator()) + 0.1  # no zero but of the border


def every_crop(image):
    """By offset and flip, each possible result for an image, by torchvision's own functions."""
    edge = border(SHAPE)
    around = v2.functional.pad(image, [edge] * 4)
    crops = {(top, left): v2.functional.crop(around, top, left, *SHAPE[1:])
             for top in range(2 * edge + 1) for left in range(2 * edge + 1)}
    return {(*place, flip): v2.functional.horizontal_flip(crop) if flip else crop
            for place, crop in crops.items() for flip in (False, True)}


def test_each_change_is_torchvisions_crop_and_flip(images):
    for place, expected in every_crop(images[0]).items():
        found = changed(images[:1], Changes(*(torch.tensor([value]) for value in place)))
        assert torch.equal(found[0], expected)


def test_every_image_has_its_own_change(images):
    torch.manual_seed(1)
    changes = drawn(len(images), SHAPE)
    found = changed(images, changes)
    for image, crop, *place in zip(images[:50], found, *(each.tolist() for each in changes)):
        assert torch.equal(crop, every_crop(image)[tuple(place)])


def test_the_distribution_is_that_of_torchvision(images):
    """Places are equally likely, as are those of torchvision's transforms: chi squared of both."""
    torch.manual_seed(2)
    count = 18 * 200
    mine = torch.stack(list(drawn(count, SHAPE)), 1).tolist()
    transform = v2.Compose([v2.RandomCrop(SHAPE[1:], padding=border(SHAPE)),
                            v2.RandomHorizontalFlip()])
    crops = {crop.numpy().tobytes(): place for place, crop in every_crop(images[0]).items()}
    theirs = [crops[transform(images[0]).contiguous().numpy().tobytes()] for _ in range(count)]
    for places in (mine, theirs):
        seen = {}
        for place in map(tuple, places):
            seen[place] = seen.get(place, 0) + 1
        assert len(seen) == 18
        assert sum((n - 200) ** 2 / 200 for n in seen.values()) < 43  # 0.9995 of chi2 of 17


def test_the_border_is_an_eighth_of_zeros(images):
    assert border((3, 32, 32)) == 4 and border((1, 28, 28)) == 3 and border((1, 5, 5)) == 1
    corner = changed(images[:1], Changes(torch.tensor([0]), torch.tensor([0]),
                                         torch.tensor([False])))[0]
    assert (corner[:, 0] == 0).all() and (corner[:, :, 0] == 0).all()
    assert torch.equal(corner[:, 1:, 1:], images[0, :, :-1, :-1])


def test_training_with_augmentation_follows_the_seed_and_has_its_own_revision(
        tiny_model, tiny_data):
    steps = Recipe(0.1, 16, 2, augment=True)
    found = []
    for seed in (0, 0, 1):
        model = tiny_model()
        fit(model, tiny_data, steps, seed=seed)
        found.append(nn.utils.parameters_to_vector(model.parameters()))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    reproducible.fix()
    fit(tiny_model(), tiny_data, replace(steps, augment=False))
    assert "augmentation" not in reproducible.settings()["revisions"]
    fit(tiny_model(), tiny_data, steps)
    assert reproducible.settings()["revisions"]["augmentation"] == 2


def test_an_epoch_sees_the_images_changed(tiny_model, tiny_data, monkeypatch):
    """The batches of an epoch, without their order, are the images by the changes drawn."""
    seen = []
    monkeypatch.setattr(loop, "fast_layout", lambda x, device: seen.append(x) or x)
    fit(tiny_model(), tiny_data, Recipe(0.1, 16, 1, augment=True), seed=3)
    torch.manual_seed(3 * 100_003)
    order = torch.randperm(len(tiny_data))
    changes = augmentation.drawn(len(tiny_data), tiny_data.shape)
    assert torch.equal(torch.cat(seen), augmentation.changed(tiny_data.images, changes)[order])
