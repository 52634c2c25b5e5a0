"""The network and the digits that travel with the package, and the first command on them."""

from pathlib import Path

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from dnnlib import custom, models
from dnnlib.cli import app
from dnnlib.custom import example


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_digits_are_test_digits_of_the_book_and_the_network_knows_most(tmp_path):
    data = pytest.importorskip("dnnbook.data")
    digits = data.load("mnist_small", "test")
    example.write(tmp_path / "example")
    model = custom.load_model(example.MODEL, tmp_path / "example" / example.WEIGHTS)
    photos = custom.read_photos(tmp_path / "example" / "digits", model)
    places = [int(Path(path).stem) for path in photos.paths]
    assert sorted(places) == [*range(200)]
    assert torch.equal(photos.images, digits.images[places])
    assert [path.split("/")[0] for path in photos.paths] == [str(i) for i in
                                                             digits.labels[places].tolist()]
    assert custom.fault_rate(model, tmp_path / "example" / "digits").rate < 0.05
    assert models.spec_of(model)


def test_what_travels_is_small():
    assert all(path.stat().st_size < 100_000 for path in example.ASSETS.iterdir())


def test_a_first_command_makes_a_gallery_and_goes_on(tmp_path):
    first = CliRunner().invoke(app.app, ["rank", "--example"])
    assert first.exit_code == 0, first.output
    assert (tmp_path / "example" / "ranking.html").exists()
    table = pd.read_csv(tmp_path / "example" / "ranking.csv")
    assert len(table) == 200 and table["gini_score"].is_monotonic_decreasing
    again = CliRunner().invoke(app.app, ["rank", "--example"])
    assert again.exit_code == 0 and "none changed since the run began" in again.output


def test_the_commands_that_it_names_work(tmp_path):
    said = CliRunner().invoke(app.app, ["rank", "--example"]).output
    named = [line[line.index("dnnlib ") + 7:].split() for line in said.splitlines()
             if "dnnlib " in line and "example/digits" in line]
    assert {line[0] for line in named} == {"rank", "fuzz", "compare"}
    by_hand = CliRunner().invoke(app.app, named[0])
    assert by_hand.exit_code == 0, by_hand.output
    ours, theirs = (pd.read_csv(tmp_path / name) for name in ("example/ranking.csv",
                                                              "ranking.csv"))
    pd.testing.assert_frame_equal(ours, theirs)


@pytest.mark.parametrize("more", [["--model", "lenet5"], ["--images", "photos"]])
def test_it_brings_its_own(more):
    result = CliRunner().invoke(app.app, ["rank", "--example", *more])
    assert isinstance(result.exception, ValueError)
    assert "brings its own model and images" in str(result.exception)


def test_a_folder_of_that_name_stays_as_it_is(tmp_path):
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="writes into a new folder, example, and it is there"):
        example.write(Path("example"))
    assert [path.name for path in (tmp_path / "example").iterdir()] == ["notes.txt"]

