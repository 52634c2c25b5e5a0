"""What comes out of a ranking as files: tables, copies, tasks; names of any bytes."""

import json
import os
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

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
    monkeypatch.setattr(tables.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pyarrow.*dnnlib\[parquet\]"):
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


def test_tasks_lead_to_their_files(table, folder):
    content, root = custom.label_studio(table, model="mine", names=list("abcdefghij"))
    tasks = json.loads(content)
    assert root == str(folder) and [task["data"]["rank"] for task in tasks] == [1, 2, 3, 4]
    for task, (_, row) in zip(tasks, table.iterrows()):
        query = urlsplit(task["data"]["image"]).query.removeprefix("d=")
        assert os.path.join(os.fsencode(root), unquote_to_bytes(query)) == os.fsencode(
            row["absolute_path"])
        assert parse_qs(urlsplit(task["data"]["image"]).query).keys() == {"d"}  # & is no new part
        assert task["data"]["path"] == row["path"]
        [given] = task["predictions"]
        assert given["result"][0]["value"]["choices"] == ["abcdefghij"[row["predicted"]]]
        assert given["score"] == pytest.approx(row["confidence"], abs=1e-6)
        assert task["data"]["scores"].keys() == {"gini", "margin"}  # random has none
