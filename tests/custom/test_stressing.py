"""Ordinary changes by strength, against answers that are known and against torchvision by hand."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image

import dnnlib
from dnnlib import custom
from dnnlib.custom import changes, stressing_page
from dnnlib.custom.changes import LADDERS, eight_bits
from dnnlib.custom.worth import interval


class Bright(nn.Module):
    """Class 1 if the mean is above 0.5."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, x):
        mean = x.flatten(1).mean(1)
        return self.scale * torch.stack([0.5 - mean, mean - 0.5], 1)


class Column(Bright):
    """Class 1 if the image is light in its tenth column."""

    def forward(self, x):
        return super().forward(x[..., 9])


def levels(*values, side=6, channels=1):
    """Images of one gray each."""
    return torch.tensor(values).view(-1, 1, 1, 1).expand(-1, channels, side, side).contiguous()


def photographed(folder, images):
    for name, image in images.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        to_pil_image(image).save(path)
    return folder


# The changes


def named(name):
    [ladder] = [ladder for ladder in LADDERS if ladder.name == name]
    return ladder


@pytest.fixture(params=[(1, 8, 8), (3, 40, 23), (1, 3, 2), (3, 1, 5)], ids=str)
def some(request):
    return torch.randint(0, 256, (2, *request.param), dtype=torch.uint8,
                         generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_every_change_keeps_shape_and_bits_at_any_size(ladder, some):
    for strength in ladder.strengths:
        made = ladder.of(some, strength, [0, 1])
        assert made.shape == some.shape and made.dtype == torch.uint8


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_strengths_go_from_hardly_seen_to_strong(ladder):
    """Of a smooth picture: further from it at every strength; at the weakest, hardly away."""
    row = torch.linspace(0.2, 0.7, 64)
    picture = eight_bits((row + row[:, None]).div(2)[None, None] + 0.05 * torch.sin(row * 20))
    far = [(ladder.of(picture, strength, [0]).float() - picture.float()).abs().mean().item()
           for strength in ladder.strengths]
    assert 5 <= len(far) <= 8 and far == sorted(far) and len(set(far)) == len(far)
    assert far[0] < 16 and far[-1] > 2 * far[0]


@pytest.mark.parametrize("name, strength, transform", [
    ("brightness_darker", 0.6, v2.ColorJitter(brightness=(0.6, 0.6))),
    ("brightness_brighter", 1.6, v2.ColorJitter(brightness=(1.6, 1.6))),
    ("contrast", 0.5, v2.ColorJitter(contrast=(0.5, 0.5))),
    ("blur", 1, v2.GaussianBlur(7, sigma=(1, 1))),
    ("rotation_left", 15, v2.RandomRotation((15, 15), v2.InterpolationMode.BILINEAR, fill=None)),
    ("rotation_right", 15, v2.RandomRotation((-15, -15), v2.InterpolationMode.BILINEAR, fill=None))])
def test_changes_are_those_of_torchvisions_transforms(name, strength, transform):
    images = torch.randint(0, 256, (2, 3, 20, 24), dtype=torch.uint8,
                           generator=torch.Generator().manual_seed(0))
    expected = (transform(images / 255) * 255).round().to(torch.uint8)
    assert torch.equal(named(name).of(images, strength, [0, 0]), expected)


def test_jpeg_is_that_of_a_file(tmp_path):
    images = (torch.rand(2, 3, 24, 24, generator=torch.Generator().manual_seed(0)) * 255).byte()
    for image, made in zip(images, named("jpeg").of(images, 25, [0, 0])):
        to_pil_image(image).save(tmp_path / "a.jpg", quality=25)
        with Image.open(tmp_path / "a.jpg") as file:
            off = (pil_to_tensor(file).int() - made.int()).abs()
        assert off.max() <= 2  # of two libraries


def test_a_shift_is_to_the_right_by_a_share_of_the_width():
    image = torch.zeros(1, 1, 2, 40, dtype=torch.uint8)
    image[..., 5] = 200
    made = named("shift").of(image, 15, [0])
    assert (made[0, 0, 0] == 200).nonzero().flatten().tolist() == [5 + 6]
    assert named("rotation_left").of(  # what was in the middle of the right edge goes up
        torch.nn.functional.pad(torch.full((1, 1, 5, 1), 255, dtype=torch.uint8), (30, 0, 13, 13)),
        45, [0]).float().mean(3)[0, 0].argmax() < 15


def test_noise_is_of_the_seed_alone_and_only_grows():
    images = torch.full((3, 1, 8, 8), 128, dtype=torch.uint8)
    noise = named("noise")
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    made = noise.of(images, 0.1, [3, 4, 3])
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(made[0], made[2]) and not torch.equal(made[0], made[1])
    assert torch.equal(made[1:2], noise.of(images[:1], 0.1, [4]))  # in any batch
    weak = noise.of(images, 0.05, [3, 4, 3]).float() - 128
    assert torch.allclose(2 * weak, made.float() - 128, atol=1.6)
    assert 0.08 < (made.float() / 255).std() < 0.12


def test_changes_by_name():
    assert [ladder.name for ladder in changes.parse_changes(["shift", "brightness"])] == [
        "shift", "brightness_darker", "brightness_brighter"]
    assert changes.parse_changes() == changes.parse_changes("all") == LADDERS
    with pytest.raises(ValueError, match="expected each once, got 'blur' twice"):
        changes.parse_changes("blur,blur")


# What is measured


def test_brightness_as_counted_by_hand():
    """An image of gray g stays light while g f > 0.5; dark ones stay dark when they get darker."""
    grays = [i / 255 for i in range(20, 240, 7)]
    found = dnnlib.stress(Bright(), levels(*grays), "brightness")
    light = [g for g in grays if g > 0.5]
    rows = found.strengths.set_index(["direction", "strength"])
    for f in named("brightness_darker").strengths:
        kept = sum(g <= 0.5 or round(255 * g * f) > 127.5 for g in grays)
        assert rows.loc[("darker", f), "right"] == kept
    for f in named("brightness_brighter").strengths:
        kept = sum(g > 0.5 or round(255 * g * f) < 127.5 for g in grays)
        assert rows.loc[("brighter", f), "right"] == kept
    assert (found.strengths["n"] == len(grays)).all()
    firsts = found.images["brightness_darker"]
    for g, first in zip(grays, firsts):
        falls = [f for f in named("brightness_darker").strengths
                 if g > 0.5 and round(255 * g * f) < 127.5]
        assert (falls[0] if falls else "never") == ("never" if pd.isna(first) else first)
    classes = found.classes.set_index(["direction", "strength", "class"])
    assert classes.loc[("darker", 0.2, "1"), ["n", "lost"]].tolist() == [len(light), len(light)]
    assert classes.loc[("darker", 0.2, "0"), "lost"] == 0


def test_the_base_are_images_right_unchanged(tmp_path):
    """In folders, of which a bound is 0.45: what lies between is wrong, and left out."""
    grays = np.linspace(0.05, 0.95, 46)
    photographed(tmp_path, {f"{('dark', 'light')[int(g > 0.45)]}/{i:02d}.png": levels(g)[0]
                            for i, g in enumerate(grays.tolist())})
    found = custom.stress(Bright(), tmp_path, "brightness", labels="folders")
    wrong = ((grays > 0.45) & (np.round(grays * 255) < 127.5)).sum()
    assert wrong > 1 and (found.images["outcome"] == "misclassified").sum() == wrong
    assert (found.strengths["n"] == 46 - wrong).all()
    left = found.images[found.images["outcome"] == "misclassified"]
    assert {*zip(left["label"], left["predicted"])} == {("light", "dark")}
    assert left["wrong"].isna().all() and left["brightness_darker"].isna().all()
    assert f"left out: {wrong}." in found.sentences[0] and "is labelled with" in found.sentences[0]
    names = custom.stress(Bright(), tmp_path, "brightness", class_names=("a", "b"))
    assert {*names.images["label"]} == {"a", "b"} and (names.strengths["n"] == 46).all()


def test_a_column_is_lost_once_it_is_shifted():
    """The tenth of 20 columns is read: light from it to the left, by one column more an image."""
    images = torch.zeros(8, 1, 20, 20)
    for i in range(8):
        images[i, :, :, 9 - i:10] = 1  # columns 9 - i to 9 are light
    images = torch.cat([images, torch.zeros(1, 1, 20, 20)])
    found = custom.stress(Column(), images, "shift")
    moved = [round(20 * percent / 100) for percent in named("shift").strengths]
    assert moved == [1, 1, 2, 3, 4, 6]
    # after m columns the tenth shows what was m to the left, light for i >= m
    assert found.strengths["right"].tolist() == [1 + sum(i >= m for i in range(8)) for m in moved]
    assert found.images["shift"].fillna(-1).tolist() == [3, 10, 15, 20, 30, 30, -1, -1, -1]


@pytest.mark.parametrize("channels", [1, 3])
def test_answers_are_those_of_images_saved_and_loaded(tmp_path, channels):
    """Each changed image through a PNG file, and the model over all of them, by hand."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(channels * 144, 4)).eval()
    images = torch.rand(30, channels, 12, 12)
    found = custom.stress(model, images, "blur,jpeg,contrast", batch_size=7)
    x = eight_bits(images)
    clean = model(x / 255).argmax(1)
    for name in ("blur", "jpeg", "contrast"):
        for strength, right in found.strengths.query("change == @name")[["strength", "right"]].values:
            kept = 0
            for image, label in zip(named(name).of(x, strength, [0] * 30), clean):
                to_pil_image(image).save(tmp_path / "a.png")
                with Image.open(tmp_path / "a.png") as file:
                    kept += int(model(pil_to_tensor(file)[None] / 255).argmax(1) == label)
            assert right == kept
    assert 0 < found.strengths["right"].min() < 30


def test_the_seed_decides_the_noise_whatever_the_batches():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).eval()
    images = torch.rand(40, 1, 8, 8)
    one, other, third = (custom.stress(model, images, "noise", seed=seed, batch_size=size)
                         for seed, size in ((0, 40), (0, 7), (1, 40)))
    pd.testing.assert_frame_equal(one.images, other.images)
    assert not one.images["noise"].equals(third.images["noise"])


@pytest.mark.parametrize("k, n", [(0, 5), (5, 5), (3, 40), (997, 1000)])
def test_intervals_are_wilsons(k, n):
    z, p = 1.959963984540054, k / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert interval(k, n) == pytest.approx((100 * max(0, middle - half), 100 * min(1, middle + half)))


def test_limit_is_spread_over_all():
    grays = np.linspace(0.1, 0.9, 40).tolist()
    found = custom.stress(Bright(), levels(*grays), "brightness", limit=10)
    tested = found.images[found.images["outcome"] == "tested"]
    assert tested["path"].tolist() == [str(i) for i in range(0, 40, 4)]
    assert (found.strengths["n"] == 10).all() and (found.images["outcome"] == "left out").sum() == 30


# Which class falls first


class Thirds(Bright):
    """Class 0 below 0.3 in the mean, class 1 up to 0.6, class 2 above."""

    def forward(self, x):
        mean = x.flatten(1).mean(1)
        return self.scale * torch.stack([mean * 0, mean - 0.3, 2 * mean - 0.9], 1)


def test_the_class_that_falls_first_has_enough_images():
    """Darker: class 2, from 0.62 to 0.7, falls before class 1, from 0.45 to 0.55."""
    two = np.linspace(0.62, 0.7, 12).tolist()
    one = np.linspace(0.45, 0.55, 12).tolist()
    found = custom.stress(Thirds(), levels(*one, *two, 0.1, 0.2), "brightness")
    row = found.changes.set_index("direction").loc["darker"]
    assert row["class"] == "2" and row["class_n"] == 12
    lost = [sum(round(255 * g * f) / 255 <= 0.6 for g in two) for f in (0.9, 0.75)]
    assert lost[1] == 12 and row["class_50"] == (0.9 if lost[0] >= 6 else 0.75)
    k = lost[0] if lost[0] >= 6 else 12
    assert (row["class_low"], row["class_high"]) == interval(k, 12)
    assert row["others_lost"] == 0 and "2 (brightness darker" in found.sentences[2]
    assert "Too few images to say it of 0 (2)." in found.sentences[2]


def test_no_class_is_named_among_too_few():
    found = custom.stress(Thirds(), levels(*np.linspace(0.45, 0.55, 12).tolist(), 0.62, 0.7),
                          "brightness")
    assert (found.changes["class"] == "").all()
    assert "cannot be said" in found.sentences[2] and "2 (2)" in found.sentences[2]
    assert found.classes.query("`class` == '2' and direction == 'darker'")["share"].max() == 100


def test_classes_that_fall_alike_are_all_named():
    grays = [0.25] * 10 + [0.7] * 10  # classes 0 and 2; brighter, both are 1 or 2
    found = custom.stress(Thirds(), levels(*grays), "contrast")
    assert found.changes["class"].tolist() == [""]  # gray has no contrast to lose
    found = custom.stress(Column(), torch.stack([levels(0.0, side=20)[0]] * 10 + [
        torch.zeros(1, 20, 20).index_fill(2, torch.tensor([9]), 1.0)] * 10), "shift")
    assert found.changes["class"].tolist() == ["1"] and found.changes["others_lost"].tolist() == [0]


# Images that fail


class Picky(Bright):
    """Fails on an image whose first pixel is 7, and gives NaN for black ones."""

    def forward(self, x):
        if ((x[:, 0, 0, 0] * 255).round() == 7).any():
            raise RuntimeError("seven")
        return super().forward(x) + (0 * x.flatten(1).amax(1) / x.flatten(1).amax(1))[:, None]


def test_an_image_that_fails_is_left_out_alone(tmp_path):
    images = {f"{i:02d}.png": levels(0.3 + i / 40, side=20)[0] for i in range(16)}
    images["03.png"] = images["03.png"].clone()
    images["03.png"][0, 0, 0] = 7 / 255
    images["04.png"] = torch.rand(1, 20, 20, generator=torch.Generator().manual_seed(0))
    photographed(tmp_path, images)
    (tmp_path / "04.png").write_bytes((tmp_path / "04.png").read_bytes()[:200])
    (tmp_path / "torn.png").write_bytes(b"")
    found = custom.stress(Picky(), tmp_path, "brightness", batch_size=4)
    table = found.images.set_index("path")
    assert (found.strengths["n"] == 14).all() and {*found.unread} == {"03.png", "04.png"}
    assert "seven" in table.loc["03.png", "note"] and table.loc["04.png", "outcome"] == "unreadable"
    assert "readable image" in table.loc["torn.png", "note"]
    assert (table.loc[[f"{i:02d}.png" for i in range(16) if i not in (3, 4)], "outcome"] == "tested").all()


def test_an_image_that_fails_once_it_is_changed_is_named_with_the_change(tmp_path):
    images = levels(*np.linspace(0.3, 0.9, 9).tolist(), 2 / 255)
    found = custom.stress(Picky(), images, "brightness")  # 0.2 of 2 / 255 is black
    assert found.unread == {"9": "under brightness darker 0.2: the model gives NaN or infinity"}
    assert (found.strengths["n"] == 9).all()


def test_names_need_not_be_text(tmp_path):
    name = "caf\udce9"
    photographed(tmp_path, {f"{(name, 'light')[i % 2]}/{i}.png": levels((0.2, 0.8)[i % 2])[0]
                            for i in range(24)})
    found = custom.stress(Bright(), tmp_path, "brightness", labels="folders",
                          class_names=(name, "light"))
    assert found.changes["class"].tolist() == ["light", name]
    stressing_page.write(found, tmp_path / "out", {})
    table = (tmp_path / "out" / "changes.csv").read_bytes()
    assert b"caf\xe9" in table and "caf?" in found.shown["brightness brighter: factor"][1][0]


# Bad questions


@pytest.mark.parametrize("given, words", [
    ({"by": "blurr"}, "unknown change 'blurr'; did you mean 'blur'"),
    ({"by": ""}, "by: expected words"), ({"labels": "folder"}, "did you mean 'folders'"),
    ({"limit": 0}, "limit: expected"), ({"seed": -1}, "seed: expected"),
    ({"batch_size": 0}, "batch_size: expected"),
    ({"labels": "folders"}, "in the sub-folder of its class"),
    ({"class_names": ["a"]}, "class_names: expected 2")])
def test_what_cannot_be_asked_is_told_before_any_change(monkeypatch, given, words):
    monkeypatch.setattr(changes.Ladder, "of", lambda *_: pytest.fail("changed an image"))
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        custom.stress(Bright(), levels(0.2, 0.8, 0.6), **given)


def test_other_channels_and_a_model_that_is_never_right(tmp_path):
    with pytest.raises(ValueError, match="expected 1 channel or 3"):
        custom.stress(Bright(), levels(0.2, 0.8, channels=4))
    photographed(tmp_path, {"dark/0.png": levels(0.9)[0], "light/0.png": levels(0.1)[0]})
    with pytest.raises(ValueError, match="none of 2 images right before any change"):
        custom.stress(Bright(), tmp_path, labels="folders")


# What is written


@pytest.fixture
def found():
    return custom.stress(Bright(), levels(*np.linspace(0.1, 0.9, 25).tolist()),
                         class_names=("dark", "<b>light</b>"))


def test_the_example_has_the_median_of_wrong_answers(found):
    tested = found.images.set_index("path")["wrong"]
    assert tested[found.example] == sorted(tested)[(len(tested) - 1) // 2]
    images, titles = found.shown["brightness darker: factor"]
    gray = found.images["path"].tolist().index(found.example)
    expected = round(255 * float(np.linspace(0.1, 0.9, 25)[gray]) * 0.9)
    assert (images[1] * 255).round().unique().tolist() == [expected]
    marks = sum("✗" in title for _, said in found.shown.values() for title in said[1:])
    assert marks == tested[found.example] and len(found.shown) == len(LADDERS)


def test_the_figure_has_the_numbers_of_the_table(found):
    axes = [axis for axis in stressing_page.figure(found).axes if axis.get_visible()]
    assert [axis.get_title().lower() for axis in axes] == list(changes.CHANGES)
    for axis in axes:
        part = found.strengths.query("change == @axis.get_title().lower()")
        drawn = sorted(y for line in axis.lines[:-1] for y in line.get_ydata())
        unchanged = len(drawn) - len(part)
        assert drawn == sorted([*part["share"], *[100.0] * unchanged])
        assert axis.get_ylim() == axes[0].get_ylim()
    assert axes[list(changes.CHANGES).index("jpeg")].xaxis_inverted()


def test_the_page_stands_alone_and_shows_names_as_text(found, tmp_path):
    said = stressing_page.write(found, tmp_path / "out", {"seed": 0}, title="<i>photos")
    page = (tmp_path / "out" / "stress.html").read_text("utf-8")
    assert "<b>light" not in page and "&lt;b&gt;light" in page and "<i>" not in page
    assert page.count('<img alt="') == 2 == page.count("data:image/png;base64,")
    assert "http" not in page and "<script" not in page
    assert all(sentence.split(":")[0][:40] in page for sentence in found.sentences)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {*stressing_page.FILES, "run.json"}
    assert all(name in said[0] for name in stressing_page.FILES)
    again = pd.read_csv(tmp_path / "out" / "strengths.csv", keep_default_na=False)
    assert again["right"].tolist() == found.strengths["right"].tolist()
    with Image.open(tmp_path / "out" / "sheet.png") as sheet:
        sheet.verify()


def test_without_matplotlib_there_is_no_figure(found, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    said = stressing_page.write(found, tmp_path / "out", {})
    assert "plots" in said[1] and "stress.png" not in said[0]
    assert not (tmp_path / "out" / "stress.png").exists()
    assert (tmp_path / "out" / "stress.html").read_text("utf-8").count("<img") == 1


def test_a_folder_of_other_things_is_refused_and_its_own_is_written_anew(found, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    stressing_page.write(found, folder, {"seed": 0})
    (folder / "images.csv").write_text("old")
    stressing_page.write(found, folder, {"seed": 1})
    assert (folder / "images.csv").read_text() != "old"
    assert json.loads((folder / "run.json").read_bytes())["seed"] == 1
    (folder / "run.json").write_text('{"by": "gini"}')
    with pytest.raises(ValueError, match="`dnnlib stress` did not write"):
        stressing_page.check_folder(folder)
    (folder / "run.json").unlink()
    with pytest.raises(ValueError, match="`dnnlib stress` did not write"):
        stressing_page.write(found, folder, {})
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="expected a folder, got the file"):
        stressing_page.check_folder(tmp_path / "file")
