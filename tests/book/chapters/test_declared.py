"""Parameters are declared once: comments, --list and every check follow from the table."""

from pathlib import Path

import jupytext
import pytest
from PIL import Image

from dnnbook.chapters import between, declared, notebooks, parameters, sweeps
from dnnbook.chapters.experiments import Experiment
from dnnlib.robustness import clever
from tests.book import borders

CHAPTERS = [source for source in borders.SOURCES if borders.cell(source)]


def short(source: Path) -> str:
    return f"{source.parent.name}/{source.stem[:2]}"


@pytest.mark.parametrize("source", CHAPTERS, ids=short)
def test_the_comments_of_a_chapter_are_the_tables(source):
    for name, (default, comment) in borders.cell(source).items():
        found = declared.entry(name, borders.where(source))
        assert found, f"book/dnnbook/chapters/parameters.toml has no parameter {name}"
        assert comment == found["help"], f"write: {name} = {default!r}  # {found['help']}"


@pytest.mark.parametrize("source", CHAPTERS, ids=short)
def test_every_border_of_a_chapter_is_kept(source):
    tried = [*borders.tried(source)]
    assert [one for one in tried if one.good != (one.said is None)] == []
    assert all("\n" not in one.said for one in tried if one.said)
    assert any(one.good for one in tried) and any(not one.good for one in tried)


@pytest.mark.parametrize("source", CHAPTERS, ids=short)
def test_the_defaults_of_a_chapter_go_together(source):
    values = {name: default for name, (default, _) in borders.cell(source).items()}
    assert declared.check(borders.where(source), **values) == values


def test_a_chapter_checks_all_that_it_can_be_asked():
    for source in CHAPTERS:
        text = source.read_text(encoding="utf-8")
        assert "Experiment(" in text or f'declared.check("{short(source)}"' in text


def test_nothing_is_declared_that_no_chapter_has():
    asked = {name: set() for name in declared.table()}
    for source in CHAPTERS:
        for name in borders.cell(source):
            asked[name] |= {borders.where(source), source.parent.name}
    for name, found in declared.table().items():
        assert asked[name] and set(found.get("at", {})) <= asked[name], name


@pytest.mark.parametrize("name, where, kept", [
    ("inputs", "deepsensor_sensitivity/test_errors", "seeds_count"),
    ("inputs", "nsatp/motivation", "examples"), ("inputs", "nsatp/rq2", "first"),
    ("inputs", "peacepact/against_random", "candidates"), ("inputs", "synthesis/same_inputs", "limit"),
    ("inputs", "deepsensor_excitable/players", "seeds_count"),
    ("estimator_inputs", "deepsensor_excitable/players", "inputs"),
    ("permutations", "deepsensor_excitable/players", "orders"),
    ("permutations", "deepsensor_excitable/estimators", "permutations"),
    ("attack_steps", "deepsensor_excitable/overlap", "pgd_iterations"),
    ("attack_steps", "deepsensor_excitable/clever", "attack_steps"),
    ("clever_inputs", "deepsensor_excitable/clever_settings", "images"),
    ("clever_inputs", "deepsensor_sensitivity/robustness", "clever_images"),
    ("clever_fit", "deepsensor_excitable/clever", "fit"),
    ("clever_fit", "deepsensor_sensitivity/robustness", "clever_fit")])
def test_records_keep_the_keys_of_their_experiment(name, where, kept):
    assert declared.stored(name, where) == kept
    older = {new: old for old, new in declared.older(where).items()}.get(name, name)
    assert declared.stored(older, where) == kept


@pytest.mark.parametrize("source", CHAPTERS, ids=short)
def test_two_parameters_of_a_chapter_share_no_name(source):
    names, where = {*borders.cell(source)}, borders.where(source)
    assert not {old for old, new in declared.older(where).items() if new in names} & names
    assert len({declared.stored(name, where) for name in names}) == len(names)


@pytest.fixture
def motivation(tmp_path):
    """A notebook as that of nsatp/01 is made, with two of its parameters."""
    path = tmp_path / "01_page.ipynb"
    made = jupytext.reads('# %% tags=["parameters"]\ninputs = 50  #\nprofile = "embedded"  #\n',
                          "py:percent")
    made.metadata |= {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "dnnlib": {"experiment": "nsatp/motivation", "parameters": {"inputs": 50}, "reads": []}}
    jupytext.write(made, path)
    parameters._told.cache_clear()
    return path


def test_a_run_takes_an_older_name_and_says_so_once(motivation, caplog):
    for _ in range(2):
        assert notebooks.typed(motivation, {"examples": "5"}) == {"inputs": 5}
    assert caplog.messages == ["examples is called inputs now"]
    assert [line["parameter"] for line in notebooks.listed(motivation)] == ["inputs", "profile"]
    assert notebooks.recorded(motivation, {"inputs": 5})[1] == {"examples": 5}
    with pytest.raises(ValueError, match="^examples is called inputs now: expected one.*got both$"):
        notebooks.typed(motivation, {"examples": "5", "inputs": "5"})
    with pytest.raises(ValueError, match="unknown parameter of 01_page 'limit'"):  # of another
        notebooks.typed(motivation, {"limit": "5"})


def test_a_sweep_takes_an_older_name_and_says_so_once(motivation, tmp_path, caplog):
    file = tmp_path / "own.toml"
    grid = f'[[grid]]\nnotebook = "{motivation}"\nprofile = "paper"\n'
    file.write_text(grid + "examples = [5, 6]\n" + grid + "inputs = [6, 7]\n")
    assert [cell.values["inputs"] for cell in sweeps.read(file)[0]] == [5, 6, 7]
    assert caplog.messages == ["examples is called inputs now"]
    file.write_text(grid + "examples = 5\ninputs = 6\n")
    with pytest.raises(ValueError, match="1 problems.*\n.*examples is called inputs now: expected"):
        sweeps.read(file)


def test_names_that_the_table_lists_are_those_of_the_engine():
    assert set(declared.table()["clever_fit"]["choices"]) == set(clever.FITS)


@pytest.mark.parametrize("chapter, given, said", [
    ("deepsensor_sensitivity/09", "swarm foo", "unknown swarm 'foo'"),
    ("deepsensor_sensitivity/13", "pixels 0.5", "pixels: expected 2 numbers from 0 to 1"),
    ("deepsensor_sensitivity/13", "inertia 0.4", "inertia: expected 2 numbers of at least 0"),
    ("deepsensor_sensitivity/13", "iterations 1", "iterations: expected a whole number of at le"),
    ("deepsensor_sensitivity/02", "keep true", "keep: the book's records are of the profile paper"),
    ("deepsensor_excitable/08", "dataset mnist_small", "unknown dataset 'mnist_small'"),
    ("deepsensor_excitable/00", "layer 99", "unknown layer of lenet1 '99'"),
    ("deepsensor_excitable/00", "small foo", "unknown small 'foo'"),
    ("deepsensor_excitable/00", "permutations 3", "permutations: expected an even whole number"),
    ("deepsensor_sensitivity/01", "seed_class 10", "seed_class: expected a class from 0 to 9"),
    ("deepsensor_sensitivity/01", "seed_class 1", "other_class: expected another class"),
    ("nss/02", "seed 4294967295", "seed: expected a whole number from 0 to 4000000000"),
    ("nss/08", "methods ginni", "unknown methods 'ginni'; did you mean 'gini'"),
    ("nss/08", "top 5", "top: expected a number above 0 and of at most 1, got 5"),
    ("nss/00", "share 0.1", "share: expected a whole number from 1 to 100, got '0.1'"),
    ("nss/00", "share 0", "share: expected a whole number from 1 to 100, got 0"),
    ("nss/05", "rates 150", "rates: expected numbers above 0 and of at most 100"),
    ("deepsensor_sensitivity/04", "alpha 200", "alpha: expected a whole number from 1 to 100"),
    ("deepsensor_sensitivity/14", "near 0", "near: expected a number above 0"),
    ("deepsensor_sensitivity/06", "l2 0", "l2: expected a number above 0"),
    ("deepsensor_excitable/06", "eps 0", "eps: expected a number above 0 and of at most 1"),
    ("deepsensor_sensitivity/04", "patches both", "unknown patches 'both'"),
    ("deepsensor_excitable/09", "kinds foo", "unknown kinds 'foo'"),
    ("deepsensor_excitable/09", "kinds polluted", "kinds: expected adversarial"),
    ("deepsensor_excitable/08", "others ", "others: expected words"),
    ("deepsensor_excitable/07", "inputs 1", "inputs: expected a whole number of at least 2"),
    ("deepsensor_sensitivity/08", "near 9", "near: expected a smaller bound than far=8, got 9"),
    ("nss/05", "references 1", "references: expected a whole number of at least 50"),
    ("nsatp/01", "side 29", "side: expected at most 28, as images of mnist_small have 28 x 28"),
    ("deepsensor_excitable/13", "fitness foo", "unknown fitness 'foo'"),
    ("deepsensor_excitable/13", "population 2", "population: expected a whole number of at least 3"),
    ("deepsensor_sensitivity/07", "clever_fit foo", "unknown clever_fit 'foo'"),
    ("deepsensor_excitable/05", "clever_fit foo", "unknown clever_fit 'foo'"),
    ("deepsensor_excitable/15", "permutations 3", "permutations: expected an even whole number"),
    ("deepsensor_excitable/14", "pool 1", "pool: expected at least clever_samples=32 points, got 1"),
    ("nsatp/02", "recipe pretrained", "recipe: 'pretrained' is there for mobilenet on imagenet or "
     "resnet20 on cifar10 or resnet50 on imagenet, got net2 on mnist_small"),
    ("nsatp/02", "model_name resnet34", "model_name: resnet34 does not take images of 1 x 28 x 28"),
])
def test_what_a_cell_would_refuse_is_refused_before(chapter, given, said):
    name, text = given.split(" ", 1)
    path = notebooks.find(chapter)
    with pytest.raises(ValueError, match=said) as refused:
        notebooks.together(path, notebooks.typed(path, {name: text}))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("chapter, given, said", [
    ("deepsensor_excitable/01", {"model_name": "mobilenet", "recipe": "pretrained"}, "others: "),
    ("nsatp/01", {"model_name": "mobilenet"}, "dataset: imagenet has no training images here"),
    ("nss/08", {"model_name": "lenet5"}, "dataset: imagenet has no training images here"),
    ("nss/08", {"model_name": "mobilenet"}, ""),
    ("deepsensor_excitable/01", {"model_name": "mobilenet", "recipe": "pretrained", "others": ""},
     ""),
    ("deepsensor_excitable/01", {"dataset": "cifar10", "model_name": "resnet20",
                                 "recipe": "pretrained", "others": ""}, ""),
    ("deepsensor_excitable/01", {"dataset": "cifar10", "model_name": "resnet20",
                                 "recipe": "pretrained"}, "others: "),
    ("deepsensor_excitable/01", {"dataset": "cifar10", "model_name": "vgg16",
                                 "recipe": "pretrained"}, "recipe: ")])
def test_weights_of_others_are_there_for_two_networks(chapter, given, said):
    values = parameters.defaults(notebooks.find(chapter)) | {"dataset": "imagenet"} | given
    try:
        between._pretrained(parameters.where(notebooks.find(chapter)), values)
    except ValueError as error:
        assert said and str(error).startswith(said)
    else:
        assert not said


def test_a_layer_whose_values_cannot_be_had_exactly():
    small = {"dataset": "digits", "small": "lenet5", "layer": "8"}
    with pytest.raises(ValueError, match="layer: expected one of at most 16 neurons.* has 120"):
        between.check("deepsensor_excitable/players", small, here=False)


@pytest.mark.parametrize("chapter, given", [
    ("deepsensor_sensitivity/01", "other_class 0"), ("deepsensor_sensitivity/02", "held_out 0"),
    ("nsatp/02", "trials 1e3"), ("nss/05", "rates 5,20"), ("deepsensor_sensitivity/02", "others "),
    ("deepsensor_sensitivity/02", "others lenet1,lenet4")])
def test_values_that_runs_take(chapter, given):
    name, text = given.split(" ", 1)
    path = notebooks.find(chapter)
    notebooks.together(path, notebooks.typed(path, {name: text}))


def test_a_chapters_first_cell_says_the_same_line_as_run():
    """So papermill, whose -r gives text, and a reader in JupyterLab hear of it, too."""
    path = notebooks.find("nsatp/02")
    with pytest.raises(ValueError) as of_run:
        notebooks.typed(path, {"trials": "ten"})
    values = notebooks.recorded(path, {})[1]
    with pytest.raises(ValueError) as of_cell:
        Experiment("nsatp/rq1", "embedded", dataset=values["dataset"], trials="ten")
    assert str(of_run.value) == str(of_cell.value)


def test_a_sweep_hears_of_classes_that_are_the_same(tmp_path):
    """Neither of them is wrong alone, and the default of the other does not count."""
    file = tmp_path / "own.toml"
    grid = '[[grid]]\nnotebook = "deepsensor_sensitivity/01"\nprofile = "paper"\n'
    file.write_text(grid + "seed_class = 1\nother_class = [5, 6]\n")
    assert len(sweeps.read(file)[0]) == 1  # one run, drawn twice
    file.write_text(grid + "seed_class = [1, 5]\nother_class = [5, 6]\n")
    with pytest.raises(ValueError, match="1 problems.*\n.*other_class: expected another class"):
        sweeps.read(file)


def test_own_images_say_what_they_cannot(tmp_path):
    for split in ("train", "test"):
        for number, name in enumerate(("ant", "bee", "cat")):
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            Image.new("RGB", (24, 24), (80 * number, 10, 10)).save(folder / "0.png")
    own = {"dataset": str(tmp_path)}
    with pytest.raises(ValueError, match="seed_class: expected a class from 0 to 2"):
        between.check("x", own | {"seed_class": 9}, here=True)
    with pytest.raises(ValueError, match="model_name: net1 does not take images of 3 x 24 x 24"):
        between.check("x", own | {"model_name": "net1"}, here=True)
    between.check("x", own | {"model_name": "lenet5", "seed_class": 2}, here=True)
