"""A statement is shown with its numbers, and found out when the records say otherwise."""

import json
import shutil
import symtable

import jupytext
import pytest

from dnnbook import places
from dnnbook.chapters import notebooks, statements
from dnnbook.records import records

CHAPTER = '''\
# %% [markdown]
# # A chapter

# %% tags=["parameters"]
factor = 2  # of the values

# %% tags=["hide-input"]
from dnnbook.records import records
from dnnbook.chapters.statements import says

# %% tags=["hide-input", "records"]
display("a table")
lead = factor * records.frame("toy/luck")["value"].mean()

# %% tags=["hide-input", "statements"]
says((f"Luck leads by {lead:.1f} points.", lead > 1), "It is cheap.")
says(f"A second paragraph, with {lead:.0f}.")
'''


def keep(value):
    records.save(records.Record("toy/luck", {"seed": 0}, [{"quantity": "lead", "value": value}]))


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A made notebook whose sentences rest on one record."""
    monkeypatch.setattr(notebooks, "repository", lambda: "")
    source = tmp_path / "toy" / "01_luck.py"
    source.parent.mkdir()
    source.write_text(CHAPTER)
    keep(1.0)
    return notebooks.make(source)


def test_a_paragraph_is_shown_with_its_numbers(chapter):
    assert statements.check(chapter) == []
    assert "Luck leads by 2.0 points. It is cheap." in chapter.read_text()


def test_a_number_that_changed_is_named_with_its_sentence(chapter):
    keep(1.1)
    (broken,) = statements.check(chapter)  # 2.2, which is still 2 in the second paragraph
    assert broken.chapter == "toy/01_luck"
    assert "Luck leads by 2.0 points" in broken.why and "Luck leads by 2.2 points" in broken.why


def test_a_conclusion_that_fails_is_named(chapter):
    keep(0.25)
    (broken,) = statements.check(chapter)
    assert broken.why == "no longer true: 'Luck leads by 0.5 points.'"


def test_records_that_vanished_are_named(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("DNNLIB_BOOK", str(tmp_path / "none"))
    (broken,) = statements.check(chapter)
    assert "toy/01_luck" == broken.chapter and "no longer true" in broken.why


def test_a_chapter_without_statements_has_none_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "repository", lambda: "")
    source = tmp_path / "toy" / "02_none.py"
    source.parent.mkdir()
    source.write_text("# %% [markdown]\n# # Nothing\n")
    assert statements.check(notebooks.make(source)) == []


def test_making_a_chapter_ends_at_a_sentence_that_is_not_true(tmp_path, monkeypatch, chapter):
    keep(0.25)
    with pytest.raises(notebooks.CellFailed, match="Luck leads by 0.5 points"):
        notebooks.make(tmp_path / "toy" / "01_luck.py")


@pytest.mark.parametrize("wrong", ["", 3, ("a", True, 1), None])
def test_what_is_no_sentence(wrong):
    with pytest.raises((TypeError, ValueError)):
        statements.says(wrong)


def test_a_number_that_is_missing_is_no_number():
    with pytest.raises(statements.Untrue, match="a number is missing"):
        statements.says(f"It leads by {float('nan'):.1f} points.")


def test_one_digit_of_a_record_makes_the_check_name_a_sentence(tmp_path, monkeypatch):
    """On a copy of the committed records, of which one value begins with another digit."""
    monkeypatch.delenv("DNNLIB_BOOK")
    copy = tmp_path / "results"
    shutil.copytree(places.results_dir(), copy)
    path = notebooks.declaring()["nss/diversity"]
    monkeypatch.setenv("DNNLIB_BOOK", str(copy))
    assert statements.check(path) == []
    record = sorted((copy / "nss" / "diversity").glob("mnist-lenet1_nss-seed0*.json"))[0]
    rows = json.loads(record.read_text())
    place = next(row for row in rows["rows"]
                 if row["quantity"] == "area" and row["method"] == "ats")
    place["value"] = float("1" + f"{abs(place['value']):g}"[1:])
    record.write_text(json.dumps(rows))
    assert {broken.chapter for broken in statements.check(path)} == {"nss/04_diversity"}


def test_every_statement_holds(monkeypatch):
    """As `dnnbook scoreboard --check`, on the committed records."""
    monkeypatch.delenv("DNNLIB_BOOK")
    broken = [b for path in notebooks.starting([], ".ipynb") for b in statements.check(path)]
    assert [f"{b.chapter}: {b.why}" for b in broken] == []


def globals_of(code):
    """The names that code sets, and those that it takes from elsewhere."""
    table = symtable.symtable(code, "cell", "exec")
    within = [table]
    for each in within:
        within.extend(each.get_children())
    sets = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    return sets, {s.get_name() for each in within for s in each.get_symbols()
                  if s.is_referenced() and (s.is_global() or each is table)} - sets


@pytest.mark.parametrize("source", sorted(notebooks.folder().glob("*/*.py")),
                         ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_cell_needs_a_name_from_statements(source):
    """A run with other parameters leaves the statements out."""
    known, left_out = set(), set()
    for cell in jupytext.read(source).cells:
        if cell.cell_type == "code":
            sets, needs = globals_of(cell.source)
            if statements.TAG in cell.metadata.get("tags", ()):
                left_out |= sets
            else:
                assert not needs & left_out - known
                known |= sets


def test_in_a_readers_folder_a_sentence_has_no_dead_link(tmp_path, monkeypatch):
    said = statements.Said("See [the next](02_test_errors) and [Pillow](https://python-pillow.org).")
    monkeypatch.chdir(tmp_path)
    assert said._repr_markdown_() == said.text
    (tmp_path / places.MADE).write_text("{}")
    assert said._repr_markdown_() == ("See the next and [Pillow](https://python-pillow.org). "
                                        "<small>(from the book's records)</small>")
