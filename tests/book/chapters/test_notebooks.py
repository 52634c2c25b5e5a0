import json
import os
import subprocess
import sys
from pathlib import Path

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest

from dnnbook import published
from dnnbook.chapters import notebooks
from dnnbook.chapters.statements import TAG
from dnnbook.records import records
from tests.book.committed import BOOK, SOURCES, code, pair, product, tags

matplotlib.use("Agg")

HEADER = '''# ---
# jupyter:
#   kernelspec: {name: python3, display_name: Python 3, language: python}
# ---

'''
SOURCE = '''# %% [markdown]
# # A page

# %% tags=["parameters"]
dataset = "digits"  # which images
trials = 3  # copies # of each
rate = 0.5  # a number
fast = True
colour = "red"  # a word
LINES

# %% mystnb={"figure": {"caption": "Nothing.", "name": "fig-x"}}
print(dataset, trials)

# %%
trials + 1
'''
FAILING = SOURCE.replace("trials + 1", "1 / (trials - 3)")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """``write(text)``: a source in a folder of its own, as the book has it."""
    monkeypatch.delenv("DNNLIB_REPOSITORY", raising=False)
    for name in ("TQDM_DISABLE", "PYTHONHASHSEED"):
        monkeypatch.setenv(name, os.environ.get(name, "0"))  # put back afterwards

    def write(text: str = SOURCE) -> Path:
        path = tmp_path / "notebooks" / "nsatp" / "01_page.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER + text.replace("LINES\n", ""))
        return path
    return write


@pytest.fixture
def page(write):
    """A notebook that was not run."""
    path = write().with_suffix(".ipynb")
    jupytext.write(jupytext.read(path.with_suffix(".py")), path)
    return path


def printed(path):
    return "".join(o["text"] for c in nbformat.read(path, 4).cells if c.cell_type == "code"
                   for o in c.outputs if o.output_type == "stream" and o.name == "stdout")


# Finding


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    for name in ("nsatp/01_a", "nsatp/02_b", "nsatp/02_c", "peacepact/01_a"):
        path = tmp_path / "shelf" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    monkeypatch.setattr(notebooks, "folder", lambda: tmp_path / "shelf")
    return tmp_path / "shelf"


@pytest.mark.parametrize("name, found", [
    ("nsatp/01", "nsatp/01_a"), ("nsatp/02_c", "nsatp/02_c"), ("p", "peacepact/01_a")])
def test_find_by_the_start_of_a_name(shelf, name, found):
    assert notebooks.find(name) == shelf / f"{found}.ipynb"


def test_find_by_path(shelf):
    path = shelf / "nsatp" / "02_b.ipynb"
    assert notebooks.find(str(path)) == path


@pytest.mark.parametrize("name, words", [
    ("nsatp/02", "one of several: nsatp/02_b, nsatp/02_c$"),
    ("nsapt/01_a", "unknown notebook 'nsapt/01_a'; did you mean 'nsatp/01_a'"),
    ("zzz", "unknown notebook 'zzz'; Known: nsatp/01_a, nsatp/02_b"),
    ("none.ipynb", "none.ipynb is not a notebook")])
def test_find_says_what_there_is(shelf, name, words):
    with pytest.raises(ValueError, match=words):
        notebooks.find(name)


def test_find_refuses_other_files(shelf):
    (shelf / "notes.md").touch()
    for path in (shelf / "notes.md", shelf / "nsatp"):
        with pytest.raises(ValueError, match="is not a notebook"):
            notebooks.find(str(path))


# Parameters


def test_parameters_are_read_with_their_help(page):
    found = notebooks.parameters(page)
    assert [(p.name, p.default, p.help) for p in found.values()] == [
        ("dataset", "digits", "which images"), ("trials", 3, "copies # of each"),
        ("rate", 0.5, "a number"), ("fast", True, ""), ("colour", "red", "a word")]


def test_a_notebook_may_have_no_parameters(write):
    path = write("# %%\nx = 1\n").with_suffix(".ipynb")
    jupytext.write(jupytext.read(path.with_suffix(".py")), path)
    assert notebooks.parameters(path) == {}
    with pytest.raises(ValueError, match="01_page.ipynb has no parameters; got 'x'"):
        notebooks.typed(path, {"x": "1"})


@pytest.mark.parametrize("lines", ["x = len('a')", "x = ("])
def test_a_parameter_that_is_no_value(write, lines):
    path = write(SOURCE.replace("LINES", lines)).with_suffix(".ipynb")
    jupytext.write(jupytext.read(path.with_suffix(".py")), path)
    with pytest.raises(ValueError, match="01_page.ipynb: the parameters cell"):
        notebooks.parameters(path)


@pytest.mark.parametrize("content", ["", "{", "{}", "[]"])
def test_a_file_that_is_no_notebook(tmp_path, content):
    (tmp_path / "x.ipynb").write_text(content)
    with pytest.raises(ValueError, match="x.ipynb is not a notebook"):
        notebooks.parameters(tmp_path / "x.ipynb")


def test_values_take_the_type_of_their_default(page):
    given = {"dataset": "mnist", "trials": "7", "rate": "1", "fast": "False", "colour": "7"}
    values = notebooks.typed(page, given)
    assert values == {"dataset": "mnist", "trials": 7, "rate": 1.0, "fast": False, "colour": "7"}
    assert [type(v) for v in values.values()] == [str, int, float, bool, str]


@pytest.mark.parametrize("given, words", [
    ({"trails": "3"}, "unknown parameter of 01_page 'trails'; did you mean 'trials'"),
    ({"trials": "many"}, "trials: expected a whole number of at least 1, got 'many'"),
    ({"trials": "1.5"}, "trials: expected a whole number of at least 1, got '1.5'"),
    ({"trials": ""}, "trials: expected a whole number of at least 1, got ''"),
    ({"trials": "0"}, "trials: expected a whole number of at least 1, got 0"),
    ({"rate": "half"}, "parameter rate: expected float"),
    ({"fast": "1"}, "parameter fast: expected bool"),
    ({"dataset": "mnits"}, "unknown dataset 'mnits'; did you mean 'mnist'"),
    ({"dataset": ""}, "dataset: expected a name of `dnnbook data`, a folder of images, "
     "torchvision:NAME or FILE.py:FUNCTION, got ''")])
def test_wrong_values_are_refused(page, given, words):
    with pytest.raises(ValueError, match=words):
        notebooks.typed(page, given)


def test_a_count_that_is_zero_unless_told_otherwise_can_be_told_to_be_zero(write):
    path = write(SOURCE.replace("LINES", "held_out = 0")).with_suffix(".ipynb")
    jupytext.write(jupytext.read(path.with_suffix(".py")), path)
    assert notebooks.typed(path, {"held_out": "0"}) == {"held_out": 0}
    with pytest.raises(ValueError, match="held_out: expected a whole number of at least 0"):
        notebooks.typed(path, {"held_out": "-1"})
    place = write(SOURCE.replace("LINES", "seed_class = 9")).with_suffix(".ipynb")
    jupytext.write(jupytext.read(place.with_suffix(".py")), place)
    assert notebooks.typed(place, {"seed_class": "0"}) == {"seed_class": 0}  # the first class
    with pytest.raises(ValueError, match="seed_class: expected a whole number of at least 0"):
        notebooks.typed(place, {"seed_class": "-1"})


def test_a_folder_is_a_dataset_wherever_the_notebook_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in ("./photos", str(tmp_path / "photos")):
        assert notebooks.typed(page, {"dataset": given}) == {"dataset": str(tmp_path / "photos")}


@pytest.mark.parametrize("name, good, bad", [
    ("model_name", "net2", "net3"), ("recipe", "nsatp", "nstap"),
    ("patch", "invert", "inverted"), ("profile", "paper", "papr"),
    ("split", "train", "trian")])
def test_unknown_names_are_refused(write, name, good, bad):
    path = write(SOURCE.replace("LINES", f'{name} = "{good}"')).with_suffix(".ipynb")
    jupytext.write(jupytext.read(path.with_suffix(".py")), path)
    assert notebooks.typed(path, {name: good}) == {name: good}
    with pytest.raises(ValueError, match=f"unknown {name} '{bad}'; did you mean"):
        notebooks.typed(path, {name: bad})


# Running


def test_relative_folders_of_the_environment_stay_where_they_are(write, tmp_path, monkeypatch):
    """The kernel runs in the notebook's folder, not in the caller's."""
    monkeypatch.chdir(tmp_path)
    for name in ("DNNLIB_DATA", "DNNLIB_CACHE", "DNNLIB_BOOK", "DNNLIB_RESULTS"):
        monkeypatch.setenv(name, f"here/{name.lower()}")
    path = write("# %%\nfrom dnnbook import places\nfrom dnnlib import files\n"
                 "print(files.data_dir(), files.cache_dir(), places.results_dir(),\n"
                 "      places.own_results_dir())\n")
    source = path.with_suffix(".ipynb")
    jupytext.write(jupytext.read(path), source)
    notebooks.run(source, {}, tmp_path / "out.ipynb")
    assert printed(tmp_path / "out.ipynb").split() == [
        str(tmp_path / "here" / f"dnnlib_{kind}") for kind in ("data", "cache", "book", "results")]


def test_a_kernel_that_does_not_start_is_tried_again(monkeypatch, tmp_path):
    died = RuntimeError("Kernel died before replying to kernel_info")
    answers = iter([died, died, None, died, died, died])

    def execute(*given, **options):
        if answer := next(answers):
            raise answer

    monkeypatch.setattr("papermill.execute_notebook", execute)
    files = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    notebooks.execute(*files)
    with pytest.raises(RuntimeError, match="before replying"):  # three times
        notebooks.execute(*files)


def test_made_twice_gives_the_same_bytes(write):
    source = write()
    product = notebooks.make(source)
    first = product.read_bytes()
    assert notebooks.make(source).read_bytes() == first
    assert product == source.with_suffix(".ipynb")
    made = nbformat.read(product, 4)
    nbformat.validate(made)
    assert printed(product) == "digits 3\n"
    assert made.cells[3].outputs[0]["data"]["text/plain"] == "4"
    assert [c.metadata for c in made.cells] == [
        {}, {"tags": ["parameters"]}, {"mystnb": {"figure": {"caption": "Nothing.",
                                                             "name": "fig-x"}}}, {}]
    assert set(made.metadata) == {"kernelspec", "language_info", "dnnlib"}
    assert made.metadata.language_info == {"name": "python"}  # no version
    assert [c.execution_count for c in made.cells if c.cell_type == "code"] == [1, 2, 3]


@pytest.mark.parametrize("tags", [["hide-input"], ["remove-input", "records"], ["hide-cell"]])
def test_code_that_the_book_folds_is_folded_in_jupyterlab(write, tags):
    product = notebooks.make(write(f"# %% tags={json.dumps(tags)}\n1\n\n# %%\n2\n"))
    assert [cell.metadata for cell in nbformat.read(product, 4).cells] == [
        {"tags": tags, "jupyter": {"source_hidden": True}}, {}]


def test_a_folder_of_readers_leaves_the_source_alone(write, tmp_path):
    source = write()
    product = notebooks.make(source, tmp_path / "into")
    assert product == tmp_path / "into" / "nsatp" / "01_page.ipynb"
    assert printed(product) == "digits 3\n" and [*source.parent.iterdir()] == [source]


ADDRESS = "https://git.example.org/reader/book"


def test_no_address_no_cell_that_fetches(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "folder", lambda: tmp_path / "notebooks")
    (tmp_path / "_config.yml").write_text('repository:\n  url: ""\n')
    assert notebooks.repository() == notebooks.fetching() == ""


@pytest.mark.parametrize("home", ["_config.yml", "DNNLIB_REPOSITORY"])
def test_with_an_address_the_first_cell_fetches_this_commit(write, tmp_path, monkeypatch, home):
    source = write()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["add", "notebooks"], ["commit", "-q", "-m", "A page"]):
        subprocess.run(git + command, check=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    in_file = ADDRESS if home == "_config.yml" else ""
    (tmp_path / "_config.yml").write_text(f'repository:\n  url: "{in_file}"\n')
    if home == "DNNLIB_REPOSITORY":
        monkeypatch.setenv(home, ADDRESS)
    monkeypatch.setattr(notebooks, "folder", lambda: tmp_path / "notebooks")
    fetch, *rest = nbformat.read(notebooks.make(source), 4).cells
    assert fetch.metadata.tags == ["remove-cell"] and len(rest) == 4 and not fetch.outputs
    assert f'"clone", "-q", "{ADDRESS}"' in fetch.source
    assert f'"checkout", "-q", "{commit}"' in fetch.source


def test_the_cell_that_fetches_finds_the_book_again_after_a_restart(tmp_path):
    """In two programs, one after the other, where neither package is installed."""
    there = tmp_path / "there"
    (there / "book" / "dnnbook").mkdir(parents=True)
    (there / "book" / "dnnbook" / "__init__.py").write_text("")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(there)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "A book"]):
        subprocess.run(git + command, check=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    cell = notebooks.FETCH.format(url=there, commit=commit).replace(
        'subprocess.run([*pip', 'print([*pip')  # nothing is installed here
    cell = cell.replace(', check=True)\n    sys.path', ')\n    sys.path')
    (tmp_path / "cell.py").write_text(f"{cell}\nimport dnnbook\nprint(dnnbook.__file__)\n")
    for asked in (True, False):
        done = subprocess.run([sys.executable, "-I", "-S", "cell.py"], cwd=tmp_path,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].startswith(str(tmp_path / "book" / "book"))
        assert ("[attacks,plots]" in done.stdout) == asked


QUOTING = """# %%
from dnnbook.records import records
print(len(records.frame("toy/luck", dataset="digits")), len(records.frame("toy/other")))
"""


def save_luck(experiment="toy/luck", value=1, **provenance):
    records.save(records.Record(experiment, {"seed": 0}, [{"value": value}], provenance))


def test_a_chapter_is_stale_once_its_records_change(write):
    source = write(QUOTING)
    product = notebooks.make(source)
    save_luck("toy/unseen")
    assert not notebooks.stale(product)
    save_luck()
    assert notebooks.stale(product)
    notebooks.make(source)
    save_luck(seconds=8)  # the same numbers, made again
    assert not notebooks.stale(product)
    save_luck(value=2)
    assert notebooks.stale(product)


def test_what_judges_every_claim_reads_all_that_they_rest_on(write):
    notebooks.make(write("# %%\nfrom dnnbook.records import verdicts\nverdicts.scoreboard()\n"))
    about = nbformat.read(write().with_suffix(".ipynb"), 4).metadata["dnnlib"]
    assert set(about["reads"]) == {claim.experiment for claim in published.claims()}


LISTS = "others = 'lenet1 lenet4'  # names\ndistances = '4 8'  # bounds"
DECLARING = SOURCE.replace("LINES", LISTS) + """
# %%
from dnnbook.chapters.experiments import Experiment
run = Experiment("toy/luck", "embedded", dataset=dataset, trials=trials, candidates="each",
                 drawn={"rate": rate, "fast": fast, "colour": colour, "others": others,
                        "distances": distances})
"""


def test_the_record_of_a_run_follows_from_what_the_chapter_declared(write):
    product = notebooks.make(write(DECLARING))
    assert notebooks.recorded(product, {"dataset": "mnist"}) == (
        "toy/luck", {"dataset": "mnist", "trials": 3, "candidates": "each"})
    assert notebooks.recorded(product, {"trials": 9})[1]["trials"] == 9


@pytest.mark.parametrize("said, instead, words", [
    (' "others": others,', "", "does not name others"),
    ("trials=trials", "trials=trials + 1", "takes trials=trials \\+ 1; expected trials="),
    ('candidates="each"', "candidates=tries", "takes 'tries'; expected a parameter"),
    ("trials=trials", "trials=3", "takes trials=3; expected trials=trials")])
def test_a_chapter_that_declares_otherwise_is_not_run(write, monkeypatch, said, instead, words):
    monkeypatch.setattr(notebooks, "execute", lambda *_, **__: pytest.fail("it ran"))
    source = write(DECLARING.replace(said, instead))
    with pytest.raises(ValueError, match=f"01_page.py: its Experiment {words}"):
        notebooks.make(source)
    assert not source.with_suffix(".ipynb").exists()


SOLVED = """
# %% [markdown]
# **1.** What is next?
#
# ```{admonition} Solution
# :class: dropdown
# This:
#
# ~~~python
# print(trials LINE)
# ~~~
# ```
"""


def test_solutions_run_behind_the_chapter_and_are_not_kept(write):
    plain = notebooks.make(write()).read_bytes()
    product = notebooks.make(write(SOURCE + SOLVED.replace("LINE", "+ 1")))
    assert len(nbformat.read(product, 4).cells) == len(nbformat.reads(plain.decode(), 4).cells) + 1
    assert printed(product) == "digits 3\n"
    with pytest.raises(notebooks.CellFailed, match="NameError"):
        notebooks.make(write(SOURCE + SOLVED.replace("LINE", "+ no_such_name")))


def test_a_chapter_without_an_experiment_leaves_no_record(write):
    assert notebooks.recorded(notebooks.make(write()), {}) is None


@pytest.mark.parametrize("given, words", [
    ({"others": "lenet1 lenet6"}, "unknown network in others 'lenet6'; did you mean 'lenet"),
    ({"distances": "4 x"}, "distances: expected numbers above 0 with spaces")])
def test_lists_are_checked_word_by_word(write, given, words):
    path = write(DECLARING).with_suffix(".ipynb")
    jupytext.write(jupytext.read(path.with_suffix(".py")), path)
    with pytest.raises(ValueError, match=words):
        notebooks.typed(path, given)
    assert notebooks.typed(path, {"distances": "2"}) == {"distances": "2"}


def test_failing_source_keeps_the_old_notebook(write):
    source = write(FAILING)
    product = source.with_suffix(".ipynb")
    product.write_text("old")
    with pytest.raises(notebooks.CellFailed, match="cell 3 of .*: ZeroDivisionError"):
        notebooks.make(source)
    assert product.read_text() == "old"
    assert sorted(p.name for p in source.parent.iterdir()) == ["01_page.ipynb", "01_page.py"]


def test_run_injects_and_keeps_what_ran(write, tmp_path, capfd):
    path = write(FAILING + '\nimport sys; print("warned", file=sys.stderr)\n').with_suffix(".ipynb")
    jupytext.write(jupytext.read(path.with_suffix(".py")), path)
    before = path.read_bytes()
    output = notebooks.run(path, {"dataset": "mnist_small", "trials": 7}, tmp_path / "new" / "run.ipynb")
    assert printed(output) == "mnist_small 7\n"
    assert "warned" in capfd.readouterr().err  # in the terminal too
    partial = tmp_path / "partial.ipynb"
    with pytest.raises(notebooks.CellFailed, match="ZeroDivisionError.*partial.ipynb"):
        notebooks.run(path, {"dataset": "fashion_mnist_small"}, partial)
    assert printed(partial) == "fashion_mnist_small 3\n"
    assert path.read_bytes() == before


def test_a_run_leaves_out_sentences_about_the_records(write, tmp_path):
    source = write(DECLARING + '\n# %% [markdown]\n# ## The answer\n\n# %% tags=["statements"]\n'
                   'raise SystemError("another record")\n')
    path = source.with_suffix(".ipynb")
    jupytext.write(jupytext.read(source), path)
    output = notebooks.run(path, {}, tmp_path / "run.ipynb")
    assert "another record" not in output.read_text("utf-8")
    below = nbformat.read(output, 4).cells[1].source  # below the title
    assert "are left out, and so are their headings: *The answer*." in below
    with pytest.raises(notebooks.CellFailed, match="another record"):
        notebooks.make(source)  # the book's own chapter must not show it


# The book


def test_every_notebook_has_a_source():
    made = {p.with_suffix("") for p in notebooks.folder().glob("*/*.ipynb")}
    assert made and made == {p.with_suffix("") for p in SOURCES}


@pair
def test_pair_has_the_same_cells(source):
    ours, theirs = product(source).cells, jupytext.read(source).cells
    if notebooks.repository():
        fetch = ours.pop(0)
        assert notebooks.repository() in fetch.source and tags(fetch) == ["remove-cell"]
    assert [(c.cell_type, c.source) for c in ours] == [(c.cell_type, c.source) for c in theirs]
    assert [c.metadata for c in ours] == [notebooks.kept(c.metadata) for c in theirs]
    assert len({c.id for c in ours}) == len(ours)


def test_a_source_and_a_leftover_of_nbconvert_stand_for_their_chapter(tmp_path, monkeypatch):
    paper = tmp_path / "nsatp"
    paper.mkdir()
    for name in ("01_one.py", "01_one.ipynb", "01_one.nbconvert.ipynb"):
        (paper / name).write_text("{}")
    monkeypatch.setattr(notebooks, "folder", lambda: tmp_path)
    for asked in ("nsatp/01", "nsatp/01_one", str(paper / "01_one.py")):
        assert notebooks.find(asked) == paper / "01_one.ipynb"


def test_the_name_of_a_run_is_never_too_long():
    values = {"dataset": "/home/me/" + "fruit" * 60, "seed": 1}
    name = notebooks.called(Path("01_motivation.ipynb"), values)
    assert len(name) < 255 and name.startswith("01_motivation-")
    assert name != notebooks.called(Path("01_motivation.ipynb"), values | {"seed": 2})
    record = records.name("nsatp/rq1", values)
    assert len(Path(record).name) < 255


def test_plain_python_says_how_a_chapter_is_run():
    source = next(path for path in SOURCES if path.stem == "01_motivation")
    done = subprocess.run([sys.executable, source.name], cwd=source.parent, text=True,
                          capture_output=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "run it by `dnnbook run nsatp/01_motivation`" in done.stderr


@pair
def test_every_cell_ran_without_complaint(source):
    for cell in code(source):
        assert cell.execution_count, cell.source
        assert not [o for o in cell.outputs if o.output_type == "error"]
        assert not [o.text for o in cell.outputs if o.get("name") == "stderr"]


def opening(source) -> list[str]:
    """The code up to the first figure, if records make it and nothing is computed before; else []."""
    cells = [cell for cell in jupytext.read(source).cells if cell.cell_type == "code"]
    drawn = [i for i, cell in enumerate(cells) if "figure" in cell.metadata.get("mystnb", {})][:1]
    found = [cell.source for at in drawn for cell in cells[:at + 1]
             if not {"remove-input", TAG} & set(tags(cell))]  # a run leaves statements out
    recorded = found and "run.recorded(" in found[-1] and "training." not in "".join(found)
    return found if recorded else []


OPENED_BY_RECORDS = [source for source in BOOK if opening(source)]


@pytest.mark.parametrize("source", OPENED_BY_RECORDS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_first_figure_of_records_says_when_there_are_none(source, folders, monkeypatch):
    names = {"display": print}
    monkeypatch.setattr(plt, "show", lambda: None)
    exec("\n".join(opening(source)), names)
    texts = [text.get_text() for number in plt.get_fignums() for axis in plt.figure(number).axes
             for text in axis.texts]
    plt.close("all")
    assert "no records yet" in texts


@pair
def test_the_records_are_those_that_the_chapter_shows(source, monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK")
    assert not notebooks.stale(source.with_suffix(".ipynb"))


@pair
def test_a_question_about_records_waits_where_there_are_none(source, tmp_path, monkeypatch):
    """As in a folder of results of one's own, in which a run must come to its end."""
    asked = [cell.source for cell in code(source) if "practice import quiz" in cell.source
             and "records.frame(" in cell.source and source.parent.name != "synthesis"]
    monkeypatch.setenv("DNNLIB_BOOK", str(tmp_path))
    for cell in asked:
        names = {"display": lambda shown: pytest.fail("asks without an answer")}
        exec("from dnnbook.records import records\n" + cell, names)
