"""What of a folder is data: links, what programs left, the order of classes, lists of paths."""

import numpy as np
import pytest
from PIL import Image

from dnnbook import data
from dnnlib.cli.output import save
from dnnlib.data import folders
from dnnlib.data.pictures import readable


def photo(path, value=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8), value, np.uint8)).save(path)


def test_linked_folders_are_walked_once(tmp_path):
    photo(tmp_path / "elsewhere" / "a.png")
    photo(tmp_path / "photos" / "b" / "b.png")
    (tmp_path / "photos" / "a").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "round").symlink_to(tmp_path / "photos")
    found = folders.listed(tmp_path / "photos")
    assert [path.name for path in found.paths] == ["a.png", "b.png"]


def test_a_link_to_nothing_is_named(tmp_path):
    photo(tmp_path / "a.png")
    for name in ("gone.png", ".gone.png", "gone.txt"):
        (tmp_path / name).symlink_to("/nowhere/gone.png")
    assert folders.listed(tmp_path).shut == {"gone.png": "is a link to nothing"}
    assert readable(tmp_path).skipped == {"gone.png": "is a link to nothing"}


def test_what_programs_left_is_no_data(tmp_path):
    photo(tmp_path / "a" / "0.png")
    left = [".ipynb_checkpoints/0.png", "__MACOSX/0.png", "@eaDir/0.png", ".git/0.png",
            "a/._0.png", "last.run/0.png"]
    for name in left:
        photo(tmp_path / name)
    photo(tmp_path / "failures" / "images" / "0.png")
    (tmp_path / "failures" / "run.json").write_text("{}")
    found = folders.listed(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in found.paths] == ["a/0.png"]
    assert set(found.litter) == {".ipynb_checkpoints/", "__MACOSX/", "@eaDir/", ".git/",
                                 "a/._0.png", "last.run/", "failures/"}


def test_the_picture_of_a_table_is_no_photo_and_a_photo_beside_a_table_is(tmp_path):
    photo(tmp_path / "a.png")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")  # somebody's marks of the photo
    save(Image.new("RGB", (300, 200)), tmp_path / "ranking.png")
    (tmp_path / "ranking.csv").write_text("path\na.png\n")
    found = folders.listed(tmp_path)
    assert [path.name for path in found.paths] == ["a.png"] and found.litter == ("ranking.png",)


def test_folders_named_by_number_are_in_order_of_number(tmp_path):
    for i in range(12):
        photo(tmp_path / str(i) / "x.png", i)
    raw = folders.read(tmp_path)
    assert raw.classes == tuple(map(str, range(12)))
    assert (raw.images[:, 0, 0, 0] == raw.labels).all()


def test_the_training_folders_number_the_classes(tmp_path):
    for split, names in (("train", "abc"), ("test", "ac")):
        for name in names:
            photo(tmp_path / split / name / "x.png", ord(name))
    train, test = (data.load(str(tmp_path), split) for split in ("train", "test"))
    assert train.classes == test.classes == ("a", "b", "c") and test.labels.tolist() == [0, 2]
    photo(tmp_path / "test" / "d" / "x.png")
    with pytest.raises(ValueError, match="expected the classes of the training images.*got d"):
        data.sources.check(str(tmp_path))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path, encoding):
    photo(tmp_path / "a.png")
    (tmp_path / "list.txt").write_text("a.png", encoding=encoding)
    assert readable(tmp_path / "list.txt").paths == ("a.png",)


@pytest.mark.parametrize("text", ["path;label\np/a.png;1\np/b.png;2\n", "filename\np/a.png\np/b.png\n",
                                  "path\np\\a.png\np\\b.png\n", "id\tpath\n1\tp/a.png\n2\tp/b.png\n"])
def test_lists_of_other_programs(tmp_path, text):
    photo(tmp_path / "p" / "a.png")
    photo(tmp_path / "p" / "b.png")
    (tmp_path / "list.csv").write_text(text)
    assert readable(tmp_path / "list.csv").paths == ("p/a.png", "p/b.png")


def test_a_dataset_saved_to_disk_is_told_how_to_be_taken(tmp_path):
    for name in ("dataset_dict.json", "test/dataset_info.json", "test/data-00000-of-00001.arrow"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    for folder in (tmp_path, tmp_path / "test"):
        with pytest.raises(FileNotFoundError, match="as save_to_disk of .* by load_from_disk and to_par"):
            folders.listed(folder)
