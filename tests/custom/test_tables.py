"""What comes out of a ranking as files: tables, copies, tasks; names of any bytes."""

import json
import os
import sys
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from dnnlib import custom
from dnnlib.custom import tables
from dnnlib.custom.duplicates import duplicates

ODD = os.fsdecode(b"caf\xe9 <b>&.png")  # Latin-1, which is no UTF-8
FORMULAS = ["=1+1.png", "+a.png", "-b.png", "@c.png"]


@pytest.fixture
def folder(tmp_path):
    """Photos of names that are hard to write, and a copy of one under another name."""
    inside = tmp_path / "photos"
    inside.mkdir()
    rng = np.random.default_rng(0)
    for name in [ODD, *FORMULAS, "plain.png", "tab\there.png"]:
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(inside / name)
    (inside / "z_again.png").write_bytes((inside / "plain.png").read_bytes())
    (inside / "zz.png").write_bytes((inside / "plain.png").read_bytes())
    return inside


@pytest.fixture
def table(tiny_model, folder):
    return custom.rank(tiny_model(), folder, "gini,margin,random", top=4)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_names_of_any_bytes_go_round(table, tiny_model, folder, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    custom.write(table, tmp_path / f"ranking.{suffix}")
    again = custom.read_photos(tmp_path / f"ranking.{suffix}", tiny_model())
    assert list(again.source.files) == table["absolute_path"].tolist()
    assert {os.path.basename(path) for path in again.source.files} == set(os.listdir(folder))


def test_names_that_are_text_stay_text_in_parquet(table):
    held = tables.plain(table)
    odd = [isinstance(name, bytes) for name in held["path"]]  # all, if one name is no text
    assert all(odd) and held["path"].tolist().count(os.fsencode(ODD)) == 1
    named = table[table["path"] != ODD]
    assert tables.plain(named)["path"].tolist() == named["path"].tolist()


def test_no_cell_of_csv_is_a_formula(table, tmp_path, folder):
    table.loc[table["path"] == "plain.png", "note"] = '=HYPERLINK("x")'
    custom.write(table, tmp_path / "ranking.csv")
    read = pd.read_csv(tmp_path / "ranking.csv", dtype=object,
                       encoding_errors="surrogateescape")
    texts = read[["path", "note", "duplicate_of", "absolute_path"]].stack().dropna()
    assert not [cell for cell in texts if cell[0] in "=+-@\t\r"]
    for name in FORMULAS:  # and each is still the name of its file
        written = read["path"][read["path"].str.endswith(name[1:])].iloc[0]
        assert os.path.samefile(folder / written, folder / name)


def test_table_without_pyarrow_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"pyarrow.*\[parquet\]"):
        tables.check_target(tmp_path / "a.parquet", "--out")


# ---- what the columns say


def test_outputs_of_the_model_stand_in_the_table(table, tiny_model, folder):
    model = tiny_model()
    photos = custom.read_photos(folder, model)
    p = model(photos.images).softmax(1).detach().numpy()[table.index]
    ordered = np.sort(p)
    assert table["predicted"].tolist() == p.argmax(1).tolist()
    np.testing.assert_allclose(table["confidence"], ordered[:, -1], rtol=1e-5)
    np.testing.assert_allclose(table["margin"], ordered[:, -1] - ordered[:, -2], atol=1e-6)


def test_outputs_are_empty_without_a_pass(tiny_model, folder):
    table = custom.rank(tiny_model(), folder, "random", top=1)
    assert table[["predicted", "confidence", "margin"]].isna().all(axis=None)


def test_outputs_alone_have_the_same_columns(table, tiny_model, folder):
    p = tiny_model()(custom.read_photos(folder, tiny_model()).images).softmax(1).detach()
    alone = custom.rank_outputs(p.double(), [str(i) for i in range(9)], "gini", top=1).sort_index()
    for name in ("predicted", "confidence", "margin"):
        np.testing.assert_allclose(alone[name].astype(float),
                                   table.sort_index()[name].astype(float), atol=1e-6)


def test_files_of_the_same_bytes_are_marked(table):
    found = table.dropna(subset="duplicate_of").set_index("path")["duplicate_of"]
    assert found.to_dict() == {"z_again.png": "plain.png", "zz.png": "plain.png"}


def test_files_that_begin_alike_are_no_duplicates(tiny_model, folder, monkeypatch):
    one = folder / "plain.png"
    (folder / "zz.png").write_bytes(one.read_bytes()[:-1] + b"\0")  # of the same size
    monkeypatch.setattr("dnnlib.custom.duplicates.START", 20)
    photos = custom.read_photos(folder, tiny_model())
    names = {photos.paths[a]: photos.paths[b] for a, b in duplicates(photos).items()}
    assert names == {"z_again.png": "plain.png"}


# ---- one list from several methods


def test_merged_is_the_mean_of_the_ranks(tiny_model, folder):
    table = custom.rank(tiny_model(), folder, "gini,pd,random", merge=True, top=3)
    means = [np.mean([row[f"{m}_rank"] for m in ("gini", "pd", "random")])
             for _, row in table.iterrows()]
    keys = [(mean, row["gini_rank"]) for mean, (_, row) in zip(means, table.iterrows())]
    assert keys == sorted(keys)
    assert table["merged_rank"].tolist() == [*range(1, 10)]
    assert table["merged_selected"].tolist() == [True] * 3 + [False] * 6
    np.testing.assert_allclose(table["merged_score"], [1 - (mean - 1) / 8 for mean in means])
    assert custom.leading(table)["path"].tolist() == table["path"].tolist()[:3]


# ---- handed on


def test_copies_come_in_order_with_their_rank(table, tmp_path):
    assert custom.copy_first(table, tmp_path / "first") == 4
    copies = sorted(os.listdir(tmp_path / "first"))
    assert copies == [f"{i:04d}_{name}" for i, name in enumerate(table["path"][:4], start=1)]
    for copy, path in zip(copies, table["absolute_path"]):
        assert (tmp_path / "first" / copy).read_bytes() == open(path, "rb").read()


def test_copies_are_all_there_or_none(table, tmp_path):
    os.unlink(table["absolute_path"].iloc[2])
    with pytest.raises(FileNotFoundError):
        custom.copy_first(table, tmp_path / "first")
    assert os.listdir(tmp_path) == ["photos"]


NAMES = ["cr<ane", 'd"og &', "cr<ane"]


@pytest.fixture
def tasks(tiny_model, folder):
    """Of images whose classes have names that are hard to write, two of them the same."""
    table = custom.rank(tiny_model(), folder, "gini,margin,random", top=4, class_names=NAMES)
    made = custom.label_studio(table, model="mine")
    return table, json.loads(made.tasks), ElementTree.fromstring(made.interface), made


def test_tasks_lead_to_their_files(tasks, folder):
    """What Label Studio serves: a path below its root, in a folder below that, as its storage."""
    table, found, _, made = tasks
    assert made.folder == str(folder) and os.path.dirname(made.folder) == made.root
    assert [task["data"]["rank"] for task in found] == [1, 2, 3, 4]
    for task, (_, row) in zip(found, table.iterrows()):
        query = urlsplit(task["data"]["image"]).query.removeprefix("d=")
        assert os.path.join(os.fsencode(made.root), unquote_to_bytes(query)) == os.fsencode(
            row["absolute_path"])
        assert parse_qs(urlsplit(task["data"]["image"]).query).keys() == {"d"}  # & is no new part
        assert task["data"]["path"] == row["path"]
        assert task["data"]["scores"].keys() == {"gini", "margin"}  # random has none


def test_predictions_fit_the_interface(tasks):
    """As Label Studio checks an import: names and type of the tags, one of their choices, a score."""
    table, found, view, _ = tasks
    [image], [control] = view.findall("Image"), view.findall("Choices")
    offered = [choice.get("value") for choice in control]
    assert offered == ["cr<ane (0)", 'd"og &', "cr<ane (2)"]
    ids = set()
    for task, (_, row) in zip(found, table.iterrows()):
        [given] = task["predictions"]
        [result] = given["result"]
        assert (result["from_name"], result["to_name"]) == (control.get("name"), image.get("name"))
        assert result["type"] == control.tag.lower() and control.get("toName") == image.get("name")
        assert result["value"] == {"choices": [offered[row["predicted"]]]}
        assert row["predicted_name"] == offered[row["predicted"]]
        assert 0 <= given["score"] <= 1
        assert given["score"] == pytest.approx(row["confidence"], abs=1e-6)
        assert image.get("value") == "$image" and "image" in task["data"]
        ids.add(result["id"])
    assert len(ids) == len(found)


def test_classes_without_names_are_numbers(table):
    made = custom.label_studio(table)
    choices = [c.get("value") for c in ElementTree.fromstring(made.interface).find("Choices")]
    assert choices == ["0", "1", "2"]
    assert "predicted_name" not in table


@pytest.mark.parametrize("names, offered", [(["cat", "dog", "ant"], ["cat", "dog", "ant"]),
                                            (None, ["0", "1", "2"])])
def test_images_without_a_pass_have_no_prediction_and_all_choices(tiny_model, folder, names,
                                                                  offered):
    made = custom.label_studio(custom.rank(tiny_model(), folder, "random", top=1,
                                           class_names=names))
    assert "predictions" not in json.loads(made.tasks)[0]
    choices = ElementTree.fromstring(made.interface).find("Choices")
    assert [choice.get("value") for choice in choices] == offered


@pytest.mark.parametrize("names", [["a"], list("abcd")])
def test_names_are_as_many_as_classes(tiny_model, folder, names):
    with pytest.raises(ValueError, match=f"class_names: expected 3, .* got {len(names)}"):
        custom.rank(tiny_model(), folder, "gini", top=1, class_names=names)


@pytest.mark.parametrize("names, came", [
    ({0: "a", 1: "b", 2: "c"}, "a dict of int"), ({"b": 1, "a": 0, "c": 2}, "a dict of str"),
    ({"a", "b", "c"}, "a set of str"), ("abc", "a str"), ([0, 1, 2], "a list of int")])
def test_names_without_an_order_are_no_names(tiny_model, folder, names, came):
    with pytest.raises(TypeError, match=f"a list of names in the order .* got {came}$"):
        custom.rank(tiny_model(), folder, "gini", top=1, class_names=names)


def test_names_come_from_a_file_or_commas(tmp_path):
    (tmp_path / "names.txt").write_text("cat, wild\n dog \n\n")
    assert custom.read_names(str(tmp_path / "names.txt")) == ("cat, wild", "dog")
    (tmp_path / "marked.txt").write_text("café\ndog", encoding="utf-16")
    assert custom.read_names(str(tmp_path / "marked.txt")) == ("café", "dog")
    assert custom.read_names("cat,dog") == ("cat", "dog")
    (tmp_path / "numbered.txt").write_text("2 ant\n0 cat\n1: dog\n")
    with pytest.raises(ValueError, match="the names in numbered.txt in the order of .* numbered in an"):
        custom.read_names(str(tmp_path / "numbered.txt"))
    for text in ("0 cat\n1 dog", "3 euro\n1 euro", "10 cent\nnone"):
        (tmp_path / "names.txt").write_text(text)
        assert custom.read_names(str(tmp_path / "names.txt")) == (*text.split("\n"),)
    with pytest.raises(FileNotFoundError, match="there is no file none.txt"):
        custom.read_names("none.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xff")
    with pytest.raises(ValueError, match="bytes.txt is not text"):
        custom.read_names(str(tmp_path / "bytes.txt"))
