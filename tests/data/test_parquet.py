"""Parquet files in the form that ``datasets`` and the hub write, made here with pyarrow."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from dnnbook.data import known, load, sources
from dnnlib.data import parquet, pictures

rng = np.random.default_rng(0)
COLOUR = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
GRAY = rng.integers(0, 256, (12, 28, 28), dtype=np.uint8)
TEN = [f"class {i}" for i in range(10)]
LABELS = [3, 1, 9, 0, 2, 4, 5, 6, 7, 8, 3, 1]


def encoded(array, kind="PNG", **options):
    Image.fromarray(array).save(file := io.BytesIO(), kind, **options)
    return file.getvalue()


def write(path, contents, *, column="image", labels=None, label="label", names=None, group=5,
          plain=False, more=None):
    """A file as ``datasets`` writes it; ``plain``: bytes without the struct and the metadata."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = contents if plain else [None if c is None else {"bytes": c, "path": None}
                                    for c in contents]
    kind = pa.binary() if plain else pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns, features = {column: pa.array(cells, kind)}, {column: {"_type": "Image"}}
    if labels is not None:
        columns[label] = pa.array(labels)
        features[label] = ({"names": names, "_type": "ClassLabel"} if names
                           else {"dtype": "int64", "_type": "Value"})
    for name, values in (more or {}).items():
        columns[name] = values
    table = pa.table(columns)
    if not plain:
        about = {"info": {"features": features}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(about)})
    pq.write_table(table, path, row_group_size=group)
    return path


@pytest.fixture
def root(folders):
    return folders / "data"


def cifar10(root, split, contents=None, **options):
    contents = [encoded(a) for a in COLOUR] if contents is None else contents
    return write(root / "cifar10" / "plain_text" / f"{split}-00000-of-00001.parquet", contents,
                 column="img", labels=LABELS, names=TEN, **options)


def test_cifar_as_the_hub_has_it(root):
    cifar10(root, "test")
    data = load("cifar10")
    assert np.array_equal((data.images * 255).round().byte().permute(0, 2, 3, 1), COLOUR)
    assert data.labels.tolist() == LABELS and data.classes == tuple(TEN)
    assert data.form == "parquet" and sources.locate("cifar10", "train") is None
    with pytest.raises(FileNotFoundError, match=r"cifar10/\*\*/train-\*.parquet \(the hub's\)"):
        load("cifar10", "train")


def test_cifar100_takes_the_fine_labels_and_their_names(root):
    fine = [f"fine {i}" for i in range(100)]
    write(root / "cifar100" / "cifar100" / "train-00000-of-00001.parquet",
          [encoded(a) for a in COLOUR], column="img", labels=[99 - i for i in range(12)],
          label="fine_label", names=fine, more={"coarse_label": pa.array([0] * 12)})
    data = load("cifar100", "train")
    assert data.labels[0] == 99 and data.classes == tuple(fine)


def test_a_fingerprint_follows_pixels_and_labels_and_not_the_container(root):
    for i, array in enumerate(COLOUR):
        place = root / "own" / f"class {LABELS[i]}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(place / f"{i:02d}.png")
    folder = load(root / "own")
    order = sorted(range(12), key=lambda i: (LABELS[i], i))
    write(root / "own.parquet", [encoded(COLOUR[i]) for i in order],
          labels=[LABELS[i] for i in order], names=TEN)
    again = load(root / "own.parquet")
    assert again.fingerprint == folder.fingerprint and again.form != folder.form
    write(root / "own.parquet", [encoded(COLOUR[i]) for i in order], labels=LABELS, names=TEN)
    assert load(root / "own.parquet").fingerprint != folder.fingerprint


def test_shards_are_read_in_order_and_a_missing_one_is_named(root):
    for number in range(2):
        write(root / "mnist" / "mnist" / f"test-0000{number}-of-00002.parquet",
              [encoded(a) for a in GRAY[6 * number:][:6]], labels=LABELS[6 * number:][:6],
              names=list("0123456789"))
    data = load("mnist")
    assert data.shape == (1, 28, 28) and data.labels.tolist() == LABELS
    assert np.array_equal((data.images[:, 0] * 255).round().byte(), GRAY)
    (root / "mnist" / "mnist" / "test-00000-of-00002.parquet").unlink()
    with pytest.raises(FileNotFoundError,
                       match="of 2 shards the file test-00000-of-00002.parquet is missing"):
        load("mnist")


def test_svhn_takes_the_cropped_digits(root):
    for config, array in (("full_numbers", GRAY[:1, :20]), ("cropped_digits", COLOUR)):
        write(root / "svhn" / config / "train-00000-of-00001.parquet",
              [encoded(a) for a in array], labels=LABELS[:len(array)], names=list("0123456789"))
    assert load("svhn", "train").shape == (3, 32, 32)


@pytest.mark.parametrize("name, folder, column, array", [
    ("svhn", "cropped_digits", "image", COLOUR), ("cifar10", "plain_text", "img", COLOUR),
    ("mnist", "mnist", "image", GRAY), ("fashion_mnist", "fashion_mnist", "image", GRAY)])
def test_the_folders_of_the_hub_may_lie_in_the_data_folder(root, name, folder, column, array):
    with pytest.raises(FileNotFoundError, match=f"{folder}/"):
        load(name)
    write(root / folder / "test-00000-of-00001.parquet", [encoded(a) for a in array],
          column=column, labels=LABELS, names=TEN)
    sources.check(name)
    data = load(name)
    assert data.labels.tolist() == LABELS
    seen = (data.images * 255).round().byte().permute(0, 2, 3, 1).squeeze(-1)
    assert np.array_equal(seen, array)


def test_the_folder_of_a_datasets_name_comes_first(root):
    for folder, labels in (("cropped_digits", LABELS), ("svhn", LABELS[::-1])):
        write(root / folder / "test-00000-of-00001.parquet", [encoded(a) for a in COLOUR],
              labels=labels, names=TEN)
    assert load("svhn").labels.tolist() == LABELS[::-1]


def test_names_with_blanks_around_their_marks_are_those_of_torchvision(root):
    names = ["T - shirt / top", "Trouser", *TEN[2:]]
    write(root / "fashion_mnist" / "fashion_mnist" / "test-00000-of-00001.parquet",
          [encoded(a) for a in GRAY], labels=LABELS, names=names)
    assert load("fashion_mnist").classes[:2] == ("T-shirt/top", "Trouser")


def test_a_named_dataset_of_other_classes_is_refused(root):
    write(root / "mnist" / "test.parquet", [encoded(a) for a in GRAY[:2]], labels=[0, 1],
          names=["a", "b"])
    with pytest.raises(ValueError, match="test.parquet has 2 classes; mnist has 10"):
        load("mnist")


@pytest.mark.parametrize("kind, labels, names, classes, numbers", [
    ("a text for each class", ["cat", "ant", "cat"], None, ("ant", "cat"), [1, 0, 1]),
    ("numbers alone", [2, 0, 1], None, ("0", "1", "2"), [2, 0, 1]),
    ("whole floats", [2.0, 0.0, 1.0], None, ("0", "1", "2"), [2, 0, 1]),
    ("names in an order of their own", [0, 1, 0], ["z", "a"], ("z", "a"), [0, 1, 0]),
])
def test_labels_of_a_file_of_ones_own(root, kind, labels, names, classes, numbers):
    path = write(root / "own.parquet", [encoded(a) for a in COLOUR[:3]], labels=labels, names=names)
    sources.check(path)
    data = load(path)
    assert data.classes == classes and data.labels.tolist() == numbers
    plain = write(root / "plain.parquet", [encoded(a) for a in COLOUR[:3]], labels=labels,
                  plain=True)
    assert names or load(plain).fingerprint == data.fingerprint


def test_a_number_that_is_missing_is_unknown(root):
    """pandas writes such a column as floats."""
    path = write(root / "own.parquet", [encoded(a) for a in COLOUR[:3]],
                 labels=[1.0, float("nan"), 0.0])
    assert parquet.table([path]).labels.tolist() == [1, -1, 0]
    path = write(root / "odd.parquet", [encoded(a) for a in COLOUR[:2]], labels=[0.0, 0.5])
    with pytest.raises(ValueError, match="expected numbers of classes or their names, got 0.5"):
        parquet.table([path])


def test_pictures_of_every_kind(root):
    turned = Image.Exif()
    turned[0x0112] = 6  # held on its side
    palette = Image.fromarray(COLOUR[0]).quantize(16)
    palette.save(file := io.BytesIO(), "PNG")
    contents = [encoded(COLOUR[0], "JPEG", exif=turned), file.getvalue(),
                encoded(np.dstack([COLOUR[1], COLOUR[1][..., :1]])), encoded(GRAY[0, :20, :20])]
    write(root / "own.parquet", contents, labels=[0, 1, 0, 1])
    data = load(root / "own.parquet", size=32)
    assert data.shape == (3, 32, 32)
    for i, name in enumerate(["a.jpg", "b.png", "c.png", "d.png"]):  # as a folder has them
        place = root / "own" / ("0", "1")[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(contents[i])
    assert torch.equal(load(root / "own", size=32).images[[0, 2, 1, 3]], data.images)


def broken(case, root):
    contents, path = [encoded(a) for a in COLOUR], root / "own.parquet"
    if case == "no pictures":
        pq.write_table(pa.table({"label": [0, 1], "text": ["a", "b"]}), path)
    elif case == "several":
        write(path, contents, labels=LABELS, plain=True, more={"mask": pa.array(contents)})
    elif case == "torn":
        write(path, [*contents[:6], contents[6][:-200], *contents[7:]], labels=LABELS)
    elif case == "null":
        write(path, [*contents[:6], None, *contents[7:]], labels=LABELS)
    elif case == "sizes":
        write(path, [*contents[:6], encoded(COLOUR[6][:30]), *contents[7:]], labels=LABELS)
    elif case == "label beyond":
        write(path, contents, labels=[*LABELS[:-1], 10], names=TEN)
    elif case == "label of parts":
        write(path, contents, labels=[0.5] * 12)
    elif case == "no rows":
        write(path, [], labels=pa.array([], pa.int64()))
    elif case == "empty":
        path.write_bytes(b"")
    elif case == "text":
        path.write_text("path\na.png\n")
    return path


@pytest.mark.parametrize("case, said", [
    ("no pictures", "expected one column of pictures, got none among label, text"),
    ("several", "expected one column of pictures, got image, mask"),
    ("torn", "own.parquet:6 is not a readable image"),
    ("null", "own.parquet:6 holds no picture"),
    ("sizes", "own.parquet:6 is 32 x 30, the first image 32 x 32: give a size"),
    ("label beyond", "expected numbers from 0 to 9, as many as it has names of classes, or -1"),
    ("label of parts", "column 'label': expected numbers of classes or their names, got 0.5"),
    ("no rows", "own.parquet holds no rows"),
    ("empty", "own.parquet is not a Parquet file that can be read"),
    ("text", "own.parquet is not a Parquet file that can be read"),
])
def test_one_line_for_a_file_that_will_not_do(root, case, said):
    root.mkdir(parents=True, exist_ok=True)
    path = broken(case, root)
    with pytest.raises(ValueError) as raised:
        load(path)
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_a_dataset_without_labels_is_refused_before_it_is_read(root):
    path = write(root / "own.parquet", [encoded(a) for a in COLOUR])
    with pytest.raises(ValueError, match="expected a column of labels in .*own.parquet"):
        sources.check(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        sources.check(root / "other.parquet")


def test_rows_are_read_one_by_one_and_a_torn_one_loses_nothing(root):
    contents = [encoded(a) for a in COLOUR]
    contents[6], contents[8], contents[9] = contents[6][:-200], None, b"no picture"
    path = write(root / "own.parquet", contents, labels=LABELS, names=TEN)
    found = pictures.readable(path)
    assert [*found.skipped] == ["own.parquet:8", "own.parquet:9"]
    assert "0x" not in found.skipped["own.parquet:9"]
    assert found.paths[8] == "own.parquet:10" and found.labels[8] == LABELS[10]
    assert torch.equal(found.pictures[8], torch.from_numpy(COLOUR[10]).permute(2, 0, 1))
    with pytest.raises(ValueError, match="is not a readable image"):
        found.pictures[6]


def test_a_table_of_paths_is_still_a_list_of_paths(root):
    (root / "own").mkdir(parents=True)
    Image.fromarray(GRAY[0]).save(root / "own" / "a.png")
    pq.write_table(pa.table({"path": ["own/a.png"]}), root / "list.parquet")
    assert pictures.readable(root / "list.parquet").paths == ("own/a.png",)


def test_a_folder_of_images_stays_one_beside_tables(root):
    (root / "own" / "a").mkdir(parents=True)
    Image.fromarray(GRAY[0]).save(root / "own" / "a" / "0.png")
    pq.write_table(pa.table({"path": ["a/0.png"], "rank": [1]}), root / "own" / "ranking.parquet")
    write(root / "own" / "train.parquet", [encoded(GRAY[1])])
    assert pictures.readable(root / "own").paths == ("a/0.png",)
    assert parquet.inside(root / "own", "test") == ()


def test_no_more_than_a_few_row_groups_are_in_memory(root, monkeypatch):
    path = write(root / "own.parquet", [encoded(a) for a in COLOUR], labels=LABELS, group=1)
    read = []
    whole = pq.ParquetFile.read_row_group

    def watched(file, number, **options):
        read.append(number)
        assert options["columns"] == ["image"]
        return whole(file, number, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", watched)
    parquet._group.cache_clear()
    found = parquet.table([path])
    assert not read
    assert sum(content is not None for content in found) == 12 and read == [*range(12)]
    assert parquet._group.cache_info().currsize <= parquet.GROUPS


def test_the_fingerprints_in_the_records_are_known():
    assert known.known("idx-4718853ea946") == ("mnist", "test", "")
    assert known.copy_of("jpeg-dc7f0ae64fca[10000]") == "JPEG copy"
