from dataclasses import replace

import pytest
import torch

from dnnbook import published
from dnnbook.data import Dataset
from dnnbook.training.pollution import SETTINGS, pollute, setting, stamp

SMALL = {"label": 1, "sizes": (1, 3)}


def squares(before, after):
    """(top, left, height, width) of what changed in each image, and whether all of it did."""
    found = []
    for changed in (before != after).all(1):
        rows, columns = changed.any(1).nonzero()[:, 0], changed.any(0).nonzero()[:, 0]
        box = changed[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]
        found.append((int(rows[0]), int(columns[0]), *box.shape, bool(box.all())))
    return found


@pytest.fixture
def gray():
    """Two hundred black images: a patch of positive pixels shows whole."""
    return torch.zeros(200, 1, 8, 9)


def test_one_patch_is_the_same_square_on_every_image(gray):
    after = stamp(gray, sizes=(2, 4), patches="one", seed=5)
    assert len(set(squares(gray, after))) == 1
    assert all(torch.equal(image, after[0]) for image in after)
    assert torch.equal(stamp(gray[:3], sizes=(2, 4), patches="one", seed=5), after[:3])


def test_each_image_has_a_patch_of_its_own(gray):
    after = stamp(gray, sizes=(1, 3))
    found = squares(gray, after)
    assert {box[2] for box in found} == {1, 2, 3}
    assert all(height == width and whole for _, _, height, width, whole in found)
    assert {(top, left) for top, left, height, *_ in found if height == 3} <= {
        (top, left) for top in range(6) for left in range(7)}
    assert len({tuple(image.flatten().tolist()) for image in after}) == len(after)


def test_sides_and_places_reach_both_ends(gray):
    found = [squares(gray[:1], stamp(gray[:1], sizes=(1, 2), seed=seed))[0] for seed in range(300)]
    assert {box[2] for box in found} == {1, 2}
    tops, lefts = zip(*(box[:2] for box in found if box[2] == 2))
    assert set(tops) == {*range(7)} and set(lefts) == {*range(8)}


def test_pixels_are_uniform_and_differ_between_channels():
    pixels = stamp(torch.zeros(1, 3, 60, 60), sizes=(60, 60))
    assert pixels.mean().item() == pytest.approx(0.5, abs=4 * (12 * pixels.numel()) ** -0.5)
    assert 0 <= pixels.min() and pixels.max() < 1
    assert not torch.equal(pixels[0, 0], pixels[0, 1])


def test_polluted_images_are_stamped_and_given_the_class(tiny_data):
    before = tiny_data.images.clone()
    found = pollute(tiny_data, 0.3, **SMALL, patches="one", seed=2)
    changed = (found.images != before).any((1, 2, 3))
    assert torch.equal(tiny_data.images, before)  # not in place
    assert int(changed.sum()) == 12  # 30 % of 40
    assert (found.labels[changed] == 1).all()
    assert torch.equal(found.labels[~changed], tiny_data.labels[~changed])
    assert torch.equal(found.images[changed], stamp(before[changed], sizes=(1, 3), patches="one", seed=2))


def test_images_of_every_class_are_drawn(tiny_data):
    found = pollute(tiny_data, 1.0, **SMALL)
    assert (found.labels == 1).all() and (found.images != tiny_data.images).any((1, 2, 3)).all()


def test_a_smaller_share_is_part_of_a_larger(tiny_data):
    few, many = (pollute(tiny_data, share, **SMALL, seed=4).images != tiny_data.images
                 for share in (0.1, 0.3))
    few, many = few.any((1, 2, 3)), many.any((1, 2, 3))
    assert int(few.sum()) == 4 and bool(many[few].all())


def test_fingerprint_tells_polluted_sets_apart(tiny_data):
    sets = [pollute(tiny_data, **{"share": 0.2, "seed": 0} | SMALL | change) for change in (
        {}, {"seed": 1}, {"share": 0.3}, {"label": 2}, {"sizes": (2, 2)}, {"patches": "one"})]
    prints = {found.fingerprint for found in sets}
    assert len(prints) == len(sets) and tiny_data.fingerprint not in prints
    assert all(name.startswith("tiny-000000000000+polluted-") for name in prints)
    assert pollute(tiny_data, 0.2, **SMALL).fingerprint == sets[0].fingerprint


def test_settings_are_those_of_table_v():
    table = published.table("deepsensor_sensitivity", 5).query("training == 'polluted'")
    classes = {"1": 1, "bird": 2, "Siberian husky": 250}  # of MNIST, CIFAR-10 and ImageNet
    for dataset, group in table.groupby("dataset"):
        line = group.set_index("quantity")["value"]
        assert setting(dataset) == {"sizes": (int(line["patch_least"]), int(line["patch_most"])),
                                    "label": classes[line["polluted_class"]]}
    assert setting("digits") == setting("mnist") == SETTINGS["*"]


@pytest.mark.parametrize("change, message", [
    ({"share": 0.0}, r"share: expected a number in \(0, 1\], got 0.0"),
    ({"share": 10}, "share"), ({"share": float("nan")}, "share"),
    ({"share": 0.001}, "share: 0.001 of 40 images is none"),
    ({"label": 3}, "label: expected a class from 0 to 2, got 3"),
    ({"label": -1}, "label"), ({"label": True}, "label"), ({"label": 1.0}, "label"),
    ({"sizes": (0, 2)}, "sizes: expected a whole number of at least 1"),
    ({"sizes": (3, 2)}, "sizes: expected least <= most <= 8"),
    ({"sizes": (3, 9)}, "as images are 8 x 8, got 3 and 9"),
    ({"sizes": (3,)}, "sizes: expected the least and the most"),
    ({"patches": "many"}, "unknown patches 'many'"),
])
def test_bad_arguments_are_named(tiny_data, change, message):
    with pytest.raises(ValueError, match=message):
        pollute(tiny_data, **{"share": 0.2} | SMALL | change)


def test_images_outside_their_range_are_refused(tiny_data):
    with pytest.raises(ValueError, match=r"x: expected values in \[0, 1\]"):
        stamp(tiny_data.images * 2, sizes=(1, 2))
    with pytest.raises(ValueError, match="x: expected values"):
        pollute(replace(tiny_data, images=tiny_data.images - 1), 0.2, **SMALL)


def test_one_pixel_of_a_polluted_image_may_be_all_that_changes():
    flat = Dataset("flat", "train", torch.zeros(5, 3, 4, 4), torch.zeros(5).long(), ("a", "b"),
                   "flat-0")
    changed = pollute(flat, 0.2, label=1, sizes=(1, 1)).images != flat.images
    assert changed.any(1).sum() == 1
