"""Whatever one image does while it is read, prepared or answered costs this image alone."""

import io
import struct
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import Dataset

import dnnlib
from dnnlib import cli, custom
from dnnlib.custom.class_names import classes_named, labels_of
from dnnlib.custom.own_code import told
from dnnlib.custom.preparation import prepared

ODD = 13  # the place of the image that does something else


class Data(Dataset):
    """Images of which those at some places do something else, and how often one was asked for."""

    def __init__(self, x, does, places=(ODD,)):
        self.x, self.does, self.places, self.asked = x, does, places, 0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        self.asked += 1
        return (self.does(self.x[i]) if i in self.places else self.x[i]), 0


class Fails(nn.Module):
    """A model that does something else for images whose first pixel is ``mark``."""

    def __init__(self, model, does, mark):
        super().__init__()
        self.model, self.does, self.mark = model, does, mark

    def forward(self, x):
        marked = (x[:, 0, 0, 0] - self.mark).abs() < 1e-6
        return self.does(self.model(x), marked) if marked.any() else self.model(x)


def raises(error):
    def does(*arguments):
        raise error
    return does


def nothing_but_nan(z, marked):
    return z.masked_fill(marked[:, None], torch.nan)


@pytest.fixture
def x(tiny_data):
    return tiny_data.images[:24]


@pytest.fixture
def rest(x):
    return torch.cat([x[:ODD], x[ODD + 1:]])


@pytest.fixture
def command(monkeypatch, capsys, tmp_path, own):
    """``command("rank", ...)``: exit code, stdout and stderr, in a folder with a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(own)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dnnlib", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code or 0, *capsys.readouterr()
    return call


def save(folder, x):
    for name, image in (x.items() if isinstance(x, dict) else
                        ((f"{i:02d}.png", image) for i, image in enumerate(x))):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image[0] * 255).round().to(torch.uint8).numpy()).save(path)


def same_but_one(table, other, names):
    """A ranking without the odd image, which is named, is that of the others alone."""
    assert table["path"].tolist()[-1] == names[ODD] and len(table) == len(names)
    assert table["note"].tolist()[-1] and not table["note"][:-1].any()
    left = [name for i, name in enumerate(names) if i != ODD]
    assert table["path"].tolist()[:-1] == [left[i] for i in other.index]
    np.testing.assert_allclose(table["gini_score"][:-1], other["gini_score"], rtol=1e-4)


# ---- reading and preparing


ITEMS = [raises(error) for error in (
    KeyError("photo"), IndexError(), FileNotFoundError(2, "No such file", "x.png"),
    ZeroDivisionError(), struct.error("unpack"), AssertionError("too dark"), StopIteration(),
    RuntimeError("shape"), TypeError(), ValueError("odd"), NotImplementedError())] + [
    lambda image: None, lambda image: "nowhere.png", lambda image: image * torch.nan,
    lambda image: image[:, :5], lambda image: image[:, :0], lambda image: image.expand(3, -1, -1),
    lambda image: (image * 255).long(), lambda image: image + 1j, lambda image: {"label": 3},
    lambda image: [], lambda image: image[None].expand(2, -1, -1, -1)]


@pytest.mark.parametrize("does", ITEMS)
def test_an_item_of_a_dataset(tiny_model, x, rest, does):
    names = [str(i) for i in range(len(x))]
    same_but_one(dnnlib.rank(tiny_model(), Data(x, does), "gini", batch_size=4),
                 dnnlib.rank(tiny_model(), rest, "gini"), names)


@pytest.mark.parametrize("place", [0, 8, 23])
def test_its_place_among_those_looked_at_first_does_not_matter(tiny_model, x, place):
    table = dnnlib.rank(tiny_model(), Data(x, raises(KeyError("photo")), (place,)), "gini")
    assert table["path"].tolist()[-1] == str(place) and table["gini_rank"].notna().sum() == 23
    assert dnnlib.rank(tiny_model(), Data(x, lambda image: image[:, :5], (place,)),
                       "gini").attrs["unread"].keys() == {str(place)}


@pytest.mark.parametrize("does", [raises(KeyError("photo")), lambda image: image[:, :5]])
def test_workers_tell_the_same(tiny_model, x, does):
    alone, by_two = (dnnlib.rank(tiny_model(), Data(x, does), "gini", workers=n) for n in (0, 2))
    pd.testing.assert_frame_equal(alone, by_two)
    assert alone.attrs["unread"] == by_two.attrs["unread"] != {}


def test_a_transform_is_told_by_its_line(tiny_model, x, tmp_path):
    def transform(picture):
        found = torch.from_numpy(np.asarray(picture).copy())[None] / 255
        assert found.max() > 0.1, "too dark"
        return found

    x[ODD] = 0.05
    save(tmp_path / "photos", x)
    model = custom.Classifier(tiny_model(), preparation=prepared(transform))
    table = dnnlib.rank(model, tmp_path / "photos", "gini")
    assert table["path"].tolist()[-1] == f"{ODD}.png" and table["gini_rank"].notna().sum() == 23
    assert table["note"].tolist()[-1].startswith("test_one_image.py, line ")
    assert table["note"].tolist()[-1].endswith(": AssertionError: too dark")


def exif(path, kind, value):
    """A photo whose orientation is written as this type, of these four bytes."""
    Image.new("L", (8, 8), 99).save(path, "JPEG")
    tags = struct.pack("<HHHI4s", 1, 0x112, kind, 2, value) + struct.pack("<I", 0)
    block = b"Exif\0\0II*\0" + struct.pack("<I", 8) + tags
    content = path.read_bytes()
    path.write_bytes(content[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block
                     + content[2:])


@pytest.mark.parametrize("kind, value", [(2, b"6\0\0\0"), (3, struct.pack("<HH", 6, 6)),
                                         (7, b"68\0\0"), (1, b"\6\1\0\0")])
def test_an_orientation_that_is_no_number_counts_as_none(tiny_model, x, tmp_path, kind, value):
    save(tmp_path / "photos", x)
    exif(tmp_path / "photos" / "turned.jpg", kind, value)
    table = dnnlib.rank(tiny_model(), tmp_path / "photos", "gini")
    assert table["gini_rank"].notna().all() and "turned.jpg" in set(table["path"])


def test_files_that_fail_by_their_header_or_late(tiny_model, x, tmp_path, monkeypatch):
    save(tmp_path / "photos", x)
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(tmp_path / "photos" / "z.jpg")
    late = tmp_path / "photos" / "z.jpg"
    late.write_bytes(late.read_bytes()[:-20])  # whose header is whole
    (tmp_path / "photos" / "none.ppm").write_bytes(b"P6 0 0 255\n")
    Image.new("L", (30, 30)).save(tmp_path / "photos" / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    table = dnnlib.rank(tiny_model(), tmp_path / "photos", "gini").set_index("path")
    left = table[table["gini_rank"].isna()]
    assert set(left.index) == {"z.jpg", "none.ppm", "bomb.png"} and left["note"].all()
    assert "bomb" in left["note"]["bomb.png"]


def test_rows_of_a_table_and_of_a_part_that_is_damaged(tiny_model, x, tmp_path):
    rows = []
    for image in x:
        picture = Image.fromarray((image[0] * 255).round().to(torch.uint8).numpy())
        picture.save(content := io.BytesIO(), "PNG")
        rows.append({"image": {"bytes": content.getvalue(), "path": None}})
    rows[2]["image"]["bytes"] = rows[2]["image"]["bytes"][:-30]
    path = tmp_path / "p.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=8)
    part, content = pq.ParquetFile(path).metadata.row_group(1).column(0), path.read_bytes()
    start = part.dictionary_page_offset or part.data_page_offset
    end = start + part.total_compressed_size
    path.write_bytes(content[:start] + b"\xff" * (end - start) + content[end:])
    table = dnnlib.rank(tiny_model(), path, "gini")
    left = table[table["gini_rank"].isna()]
    assert set(left["path"]) == {f"p.parquet:{i}" for i in [2, *range(8, 16)]}
    assert left["note"].str.len().gt(0).all()


def test_a_photo_that_goes_while_others_are_done(tiny_model, x, tmp_path):
    save(tmp_path / "photos", x)
    photos = custom.read_photos(tmp_path / "photos", tiny_model())
    table = dnnlib.rank(tiny_model(), photos, "gini", top=3)
    found = dnnlib.fuzz(tiny_model(), photos, tmp_path / "run", by="noise", l2=2.0)
    broken = sorted(set(found.failures["input"]))
    assert len(broken) > 1
    for gone in (table["path"].iloc[0], broken[0]):
        (tmp_path / "photos" / gone).unlink(missing_ok=True)
    there = [path for path in table["path"][:3] if (tmp_path / "photos" / path).exists()]
    images, titles = custom.first(table, photos)["gini"]
    assert len(images) == len(titles) == len(there) < 3
    shown = custom.pictures(found, photos, tmp_path / "run")["inputs"][1]
    assert not [title for title in shown if title.endswith(broken[0])]
    page = custom.failures_page(found, photos, tmp_path / "run").decode()
    assert f'"path":"{broken[0]}"' not in page and f'"path":"{broken[1]}"' in page


def test_a_row_of_a_tensor_without_numbers(tiny_model, x, rest):
    broken = x.clone()
    broken[ODD, 0, 3, 3] = torch.nan
    same_but_one(dnnlib.rank(tiny_model(), broken, "gini"), dnnlib.rank(tiny_model(), rest, "gini"),
                 [str(i) for i in range(24)])


def test_sizes_that_differ_are_not_left_out_by_half(tiny_model, x):
    with pytest.raises(ValueError, match="expected one size"):
        dnnlib.rank(tiny_model(), Data(x, lambda image: image[:, :5], range(0, 24, 3)), "gini")


# ---- answering


ANSWERS = [raises(RuntimeError("too dark")), raises(AssertionError("too dark")),
           raises(KeyError("dark")), raises(ZeroDivisionError()), nothing_but_nan,
           lambda z, marked: z.masked_fill(marked[:, None], torch.inf)]


@pytest.mark.parametrize("size", [1, 5, 64])
@pytest.mark.parametrize("does", ANSWERS)
def test_a_model_that_fails_on_one_image(tiny_model, x, rest, does, size):
    model = Fails(tiny_model(), does, x[ODD, 0, 0, 0].item())
    table = dnnlib.rank(model, x, "gini,nac,pd", batch_size=size, block=8)
    same_but_one(table, dnnlib.rank(tiny_model(), rest, "gini"), [str(i) for i in range(24)])
    assert table["note"].tolist()[-1].startswith("the model ")
    assert table.attrs["failed"] == {} and table["nac_rank"].notna().sum() == 23


def test_a_method_with_passes_of_its_own(tiny_model, x):
    x[ODD] = 0

    class Dark(nn.Sequential):
        def forward(self, x):
            assert not (x.flatten(1).amax(1) == 0).any(), "too dark"
            return super().forward(x)

    table = dnnlib.rank(Dark(*tiny_model()), x, "npc", reference=x, batch_size=5)
    assert table["path"].tolist()[-1] == str(ODD) and table["npc_rank"].notna().sum() == 23
    assert [*table.attrs["reference"]] == [str(ODD)]


def test_fuzz_and_compare_leave_out_the_same(tiny_model, x, tmp_path):
    model = Fails(tiny_model(), ANSWERS[1], x[ODD, 0, 0, 0].item())
    labels = tiny_model()(x).argmax(1)
    labels[::3] = (labels[::3] + 1) % 3
    photos = custom.Photos(Data(x, raises(KeyError("photo")), (5,)), tuple(
        f"{label}/{i}" for i, label in enumerate(labels.tolist())))
    odd = {photos.paths[5], photos.paths[ODD]}
    found = dnnlib.fuzz(model, photos, tmp_path / "run", by="noise", l2=1.0, iterations=1)
    left = found.inputs[found.inputs["outcome"] == "unreadable"]
    assert set(left["path"]) == odd and len(found.inputs) == 24
    compared = dnnlib.compare(model, photos, "gini,nac", resamples=10)
    assert compared.unread.keys() == odd and compared.images == 22 and not compared.left


def test_an_input_whose_examples_fail_costs_itself(tiny_model, x, tmp_path):
    class Near(nn.Sequential):
        """Takes the image itself, and no other that is like it."""

        def forward(self, given):
            near = ((given - x[ODD]).abs().flatten(1).amax(1) < 0.1) & (
                (given - x[ODD]).abs().flatten(1).amax(1) > 1e-3)
            assert not near.any(), "too near"
            return super().forward(given)

    found = dnnlib.fuzz(Near(*tiny_model()), x, tmp_path / "run", by="noise", linf=0.05,
                        iterations=2, block=6)
    left = found.inputs[found.inputs["outcome"] == "unreadable"]
    assert left["path"].tolist() == [str(ODD)] and "too near" in left["note"].item()
    assert set(found.inputs["outcome"]) <= {"broken", "held", "unreadable"}
    again = dnnlib.fuzz(Near(*tiny_model()), x, tmp_path / "run", by="noise", linf=0.05,
                        iterations=2, block=6)
    pd.testing.assert_frame_equal(again.inputs, found.inputs)


def test_a_training_image_costs_itself(tiny_model, x, tmp_path):
    seen = custom.Photos(Data(x, raises(KeyError("photo"))), tuple(f"{i}.png" for i in range(24)))
    table = dnnlib.rank(tiny_model(), x, "kmnc", reference=seen)
    assert [*table.attrs["reference"]] == ["13.png"]
    found = dnnlib.fuzz(tiny_model(), x, tmp_path / "run", by="deephunter", l2=1.0, iterations=1,
                        limit=2, reference=seen)
    assert [*found.reference] == ["13.png"]


# ---- all of them


def test_a_fault_of_every_image_is_told_at_the_start(tiny_model, x):
    data = Data(x[:1].expand(2000, -1, -1, -1), raises(KeyError("photo")), range(2000))
    with pytest.raises(ValueError, match="^images: none can be read of 256 that were tried; the "
                                         "first: 0 test_one_image.py, line .*KeyError: 'photo'$"):
        dnnlib.rank(tiny_model(), data, "gini")
    assert data.asked < 600
    with pytest.raises(ValueError, match="^model: cannot take images .*AssertionError: never$"):
        dnnlib.rank(Fails(tiny_model(), raises(AssertionError("never")), 0.5), x * 0 + 0.5, "gini")


@pytest.mark.parametrize("error", [
    KeyboardInterrupt(), MemoryError(), torch.OutOfMemoryError("CUDA out of memory"),
    torch.AcceleratorError("CUDA error: device-side assert triggered"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_what_is_no_images_fault_goes_through(tiny_model, x, error):
    with pytest.raises(type(error)):
        dnnlib.rank(tiny_model(), Data(x, raises(error)), "gini")
    with pytest.raises(type(error)):
        dnnlib.rank(Fails(tiny_model(), raises(error), x[ODD, 0, 0, 0].item()), x, "gini")


# ---- commands


def test_commands_name_it_and_end_with_three(command, x, tmp_path):
    labels = torch.arange(24) % 3
    save(tmp_path / "photos", {f"{'abc'[label]}/{i:02d}.png": image
                               for i, (label, image) in enumerate(zip(labels.tolist(), x))})
    torn = tmp_path / "photos" / "a" / "12.png"
    torn.write_bytes(torn.read_bytes()[:-40])
    given = ["--model", "own.py:build", "--images", "photos"]
    for arguments in (["rank", "--gallery", "none"], ["compare", "--resamples", "10"],
                      ["fuzz", "--by", "noise", "--l2", "1", "--iterations", "1"]):
        code, out, err = command(*arguments[:1], *given, *arguments[1:])
        assert code == 3 and "a/12.png is not a readable image" in out, err
        assert "23 " in out and "24 images" not in out  # the header of the torn one was whole


def test_a_file_of_theirs_may_lie_beside_the_package():
    """Its path begins as the package's does."""
    name = f"{Path(dnnlib.__file__).parent}_mine.py"
    with pytest.raises(KeyError) as stop:
        exec(compile("raise KeyError('width')", name, "exec"))
    assert told(stop.value).startswith("dnnlib_mine.py, line 1: KeyError")


def test_rows_of_outputs_without_numbers(command, tmp_path):
    (tmp_path / "p.csv").write_text("path,a,b\nx,0.9,0.1\ny,nan,0.5\nz,,1\nw,0.5,0.5\n")
    code, out, _ = command("rank", "--outputs", "p.csv")
    assert code == 3 and "rows in p.csv that were skipped: 2\n  y expected finite numbers" in out
    table = pd.read_csv("ranking.csv")
    assert table["path"].tolist() == ["w", "x", "y", "z"]
    assert table["gini_rank"].tolist()[:2] == [1, 2] and table["note"].notna().tolist()[2:] == [True] * 2
    assert not table["gini_selected"][1:].any()


def test_copies_stay_out_of_the_photos(command, x, tmp_path):
    save(tmp_path / "photos", x)
    given = ["rank", "--model", "own.py:build", "--images", "photos", "--gallery", "none"]
    for inside in ("photos/first", "./photos/../photos/a/b"):
        code, out, err = command(*given, "--copy-to", inside)
        assert code == 2 and "--copy-to: expected a folder outside of photos" in err and not out
        assert not (tmp_path / "ranking.csv").exists() and not (tmp_path / "photos/first").exists()
    assert command(*given, "--copy-to", "photos2")[0] == 0  # whose name begins alike


def test_a_folder_without_images_is_no_class_unless_the_names_say_so(command, x, tmp_path):
    save(tmp_path / "photos", {f"{'ac'[i % 2]}/{i}.png": image for i, image in enumerate(x)})
    (tmp_path / "photos" / "b").mkdir()
    (tmp_path / "photos" / "b" / "notes.txt").write_text("none yet")
    given = ["compare", "--model", "own.py:build", "--images", "photos", "--by", "gini",
             "--resamples", "10"]
    code, out, err = command(*given)
    assert code == 2 and not out, err
    assert "expected 3 sub-folders, one for each class of the model, got 2: a, c, and without an " \
        "image b; for some classes only, give the names of all (--class-names)" in err
    code, out, err = command(*given, "--class-names", "a,b,c")
    assert code == 0 and "folders in photos without an image: b" in out, err
    photos = custom.read_photos("photos", custom.load_model("own.py:build"))
    other = custom.Photos(x, tuple(f"{i % 2}/{i}" for i in range(24)), empty=("logs",))
    assert classes_named(other, 3, "folders") == ["0", "1", "2"]
    names = classes_named(photos, 3, "folders", ["a", "b", "c"])
    assert set(labels_of(photos, names).tolist()) == {0, 2}
