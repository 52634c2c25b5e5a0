"""Classes and labels have one home: what disagrees is an error, and nothing is guessed."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from dnnlib import custom
from dnnlib.custom.class_names import Published, as_folders, classes_named, labels_of


def model(n=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(48, n))


@pytest.fixture
def photos(tmp_path):
    """``photos("a/0.png b/1.png")``: files with these names, read from the folder."""
    def photos(names, source=None):
        for i, name in enumerate(names.split()):
            path = tmp_path / "photos" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((4, 4, 3), i, np.uint8)).save(path)
        return custom.read_photos(source or tmp_path / "photos", model())
    return photos


@pytest.fixture
def listing(tmp_path, photos):
    """``listing("path,label\\n...")``: the same files by a table beside them."""
    def listing(text, names="x/0.png x/1.png y/2.png", name="list.csv"):
        photos(names)
        table = tmp_path / "photos" / name
        table.write_text(text)
        return custom.read_photos(table, model())
    return listing


NAMES = Published(("dog", "sea lion", "ant"))


def test_folders_spelt_otherwise_than_published(photos):
    found = photos("Ant/0.png Dog/1.png Sea_Lion/2.png")
    names = classes_named(found, 3, "folders", NAMES)
    assert names == ("Dog", "Sea_Lion", "Ant") and labels_of(found, names).tolist() == [2, 0, 1]


def test_some_folders_are_some_classes(photos):
    found = photos("sea-lion/0.png ant/1.png")
    names = classes_named(found, 3, "folders", NAMES)
    assert labels_of(found, names).tolist() == [2, 1]  # in the order of the paths


def test_a_folder_that_has_another_place_by_its_name(photos):
    with pytest.raises(ValueError, match="ant is class 2 of the model by its name, ant, and folder "
                                         "0 of 3 in order"):
        classes_named(photos("ant/0.png hound/1.png sea_lion/2.png"), 3, "folders", NAMES)


def test_folders_of_other_names_are_in_order_which_is_told(photos, caplog):
    found = photos("n01/0.png n02/1.png n03/2.png")
    assert classes_named(found, 3, "folders", NAMES) == ("n01", "n02", "n03")
    assert "model, dog, sea lion, ant; the folders are taken in their order, n01, n02" in caplog.text
    caplog.clear()
    classes_named(found, 3, "folders")
    assert not caplog.text
    assert as_folders(("ant", "bee"), {"ant", "wasp"}) is None  # ant is the first both ways


def test_parts_of_a_dataset_are_no_classes(photos):
    found = photos("train/a/0.png train/b/1.png val/a/2.png test/c/3.png")
    with pytest.raises(ValueError, match="parts of a dataset, test and train and val; give one"):
        classes_named(found, 3, "folders")
    named = photos("")
    assert classes_named(named, 4, "folders", ["val", "train", "test", "bus"])[0] == "val"


def test_folders_of_some_numbers_with_names(photos):
    found = photos("0/a.png 2/b.png")
    names = classes_named(found, 3, "folders", ["cat", "dog", "eel"])
    assert names == ("cat", "dog", "eel") and labels_of(found, names).tolist() == [0, 2]


def test_a_column_of_labels_in_a_list(listing):
    found = listing("path,label\nx/1.png,eel\ny/2.png,cat\nx/0.png,dog\n")
    names = classes_named(found, 3, "folders")
    assert names == ("cat", "dog", "eel") and labels_of(found, names).tolist() == [2, 0, 1]
    given = classes_named(found, 3, "folders", ["dog", "cat", "eel"])
    assert labels_of(found, given).tolist() == [2, 1, 0]


def test_numbers_in_a_list_are_those_of_classes(listing):
    found = listing("path;class\nx/1.png;2\ny/2.png;0\n", name="list.tsv")
    names = classes_named(found, 3, "folders")
    assert labels_of(found, names).tolist() == [2, 0]
    assert labels_of(found, classes_named(found, 3, "folders", ["cat", "dog", "eel"])).tolist() == [
        2, 0]


def test_numbers_that_are_no_outputs_are_taken_in_turn_which_is_told(listing, photos, caplog):
    found = listing("path,label\nx/0.png,3\nx/1.png,1\ny/2.png,2\n")
    names = classes_named(found, 3, "folders")
    assert labels_of(found, names).tolist() == [2, 0, 1]
    assert "the labels 1 to 3 are taken in their order, for the model's outputs 0 to 2" in caplog.text


def test_numbers_in_a_column_with_gaps_are_whole(listing):
    names = " ".join(f"x/{i}.png" for i in range(12))
    lines = [f"x/{i}.png,{float(i)}" for i in range(12)]
    found = listing("path,label\n" + "\n".join(lines) + "\n", names)
    assert labels_of(found, classes_named(found, 12, "folders")).tolist() == [*range(12)]


@pytest.mark.parametrize("text, words", [
    ("path,label\nx/1.png,y\ny/2.png,x\nx/0.png,z\n", "x/1.png is in the folder x, and has the label y"),
    ("path,label\nx/1.png,a\nx/0.png,\ny/2.png,b\n", "expected the class of every image, x/0.png has")])
def test_a_list_that_contradicts_or_lacks(listing, text, words):
    with pytest.raises(ValueError, match=words):
        classes_named(listing(text), 3, "folders")


def test_a_list_elsewhere_that_contradicts(tmp_path, photos):
    photos("a/0.png b/1.png c/2.png")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "some.csv").write_text("path,Label\n../photos/a/0.png,a\n../photos/b/1.png,c\n")
    with pytest.raises(ValueError, match="photos/b/1.png is in the folder b, and has the label c"):
        classes_named(photos("", tmp_path / "lists" / "some.csv"), 3, "folders", ["a", "b", "c"])


def test_a_path_that_is_listed_twice(listing):
    with pytest.raises(ValueError, match="x/1.png is listed twice, as a and as b"):
        listing("path,label\nx/1.png,a\nx/1.png,b\n")
    assert len(listing("path,label\nx/1.png,a\nx/1.png,a\n")) == 1


def test_paths_outside_the_folder_of_the_list(tmp_path, photos):
    photos("a/0.png b/1.png c/2.png")
    (tmp_path / "lists").mkdir()
    table = tmp_path / "lists" / "some.txt"
    table.write_text("../photos/a/0.png\n../photos/b/1.png\n")
    with pytest.raises(ValueError, match="whose first part is the class, or a column 'label'"):
        classes_named(photos("", table), 3, "folders")


def parquet(path, labels, names=None):
    """Pictures and labels as the library ``datasets`` writes them."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    pictures = []
    for i in range(len(labels)):
        Image.fromarray(np.full((4, 4, 3), i, np.uint8)).save(png := io.BytesIO(), format="PNG")
        pictures.append({"bytes": png.getvalue(), "path": None})
    kinds = {"image": {"_type": "Image"}} | (
        {"label": {"names": names, "_type": "ClassLabel"}} if names else {})
    table = pa.table({"image": pictures, "label": labels})
    pq.write_table(table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": kinds}})}), path)


def test_numbers_as_text_are_numbers(tmp_path):
    labels = [str(i) for i in (10, 2, 0, 1, *range(3, 10))]
    parquet(tmp_path / "s.parquet", labels)
    found = custom.read_photos(tmp_path / "s.parquet", model())
    assert labels_of(found, classes_named(found, 11, "folders")).tolist() == [int(i) for i in labels]


def test_labels_that_lack_the_last_class(tmp_path):
    parquet(tmp_path / "s.parquet", [0, 1, 1])
    found = custom.read_photos(tmp_path / "s.parquet", model())
    for names in (None, ["cat", "dog", "eel"]):
        assert torch.equal(labels_of(found, classes_named(found, 3, "folders", names)),
                           torch.tensor([0, 1, 1]))


def test_files_whose_classes_are_ordered_otherwise(tmp_path):
    folder = tmp_path / "two"
    folder.mkdir()
    parquet(folder / "a.parquet", [0, 1], ["cat", "dog"])
    parquet(folder / "b.parquet", [0, 1], ["dog", "cat"])
    with pytest.raises(ValueError, match="b.parquet: expected the classes of a.parquet in their "
                                         "order, cat, dog; got dog, cat"):
        custom.read_photos(folder, model())


@pytest.mark.parametrize("about, known", [
    ({"tag": "a1_in1k", "num_classes": 1000}, True), ({"tag": "in21k", "num_classes": 21843}, False),
    ({"tag": "in1k", "num_classes": 1001, "label_offset": 1}, False), ({"tag": ""}, False),
    (None, False)])
def test_a_network_of_timm_has_the_names_of_imagenet_if_it_was_trained_on_it(monkeypatch, about,
                                                                           known):
    """timm need not be there for the tests."""
    about = about and SimpleNamespace(**{"label_offset": None, "num_classes": 1000, **about})
    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(get_pretrained_cfg=lambda name: about))
    names = custom.published_names("timm:resnet18")
    assert names == (custom.published_names("torchvision:resnet50") if known else None)
    assert custom.published_names("timm:resnet18", 10) is None
    assert custom.published_names("torchvision:resnt18") is None  # told when it is built
    monkeypatch.setitem(sys.modules, "timm", None)
    assert custom.published_names("timm:resnet18") is None
