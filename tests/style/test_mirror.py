"""A module has a test file of its name in the folder of its room, or one that is named here."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSES = {"dnnlib": (ROOT / "dnnlib", ROOT / "tests"),
          "dnnbook": (ROOT / "book" / "dnnbook", ROOT / "tests" / "book")}
# Modules that share a test file, because they keep one contract or are seen from the outside only:
# by that file, which lies in the folder of tests of their package.
SHARED = {
    "dnnlib": {
        "cli/test_app.py": "cli/compare cli/fuzz cli/layers cli/options cli/output cli/rank "
                           "cli/terminal custom/contact_sheet custom/gallery",
        "coverage/test_criteria.py": "coverage/covered coverage/ranges",
        "custom/test_comparing.py": "custom/against_noise custom/comparing_picture",
        "custom/test_datasets.py": "custom/photos",
        "custom/test_fuzzing_run.py": "custom/failures custom/options",
        "custom/test_identity.py": "custom/classifier models/sources",
        "custom/test_loading.py": "custom/formats",
        "custom/test_methods.py": "custom/cluster custom/rehearsal",
        "custom/test_one_image.py": "custom/answering custom/own_code",
        "custom/test_ranking_run.py": "custom/estimating custom/run_folder custom/scores",
        "custom/test_regression_tests.py": "custom/faults",
        "custom/test_stressing.py": "custom/changes custom/stressing_page",
        "custom/test_tables.py": "custom/duplicates custom/labelling data/delimited",
        "data/test_pictures.py": "data/folders",
        "fuzzing/test_deepxplore.py": "fuzzing/ascent",
        "fuzzing/test_swarm.py": "fuzzing/guided neurons/calls",
        "models/test_registry.py": "models/layers models/lenet models/mobilenet models/nets "
                                   "models/resnet models/vgg",
        "neurons/test_relevance.py": "neurons/rules",
        "neurons/test_shapley.py": "neurons/shapley/estimators neurons/shapley/game",
        "perturb/test_mutations.py": "perturb/operators",
        "selection/test_selectors.py": "selection/ats selection/neuron_coverage selection/nss "
                                       "selection/softmax selection/surprise",
        "book/data/test_subsets.py": "data/raw",
        "test_devices.py": "inference"},
    "dnnbook": {
        "chapters/test_board.py": "display/cards",
        "chapters/test_class_pack.py": "cli/class_pack",
        "chapters/test_declared.py": "chapters/between chapters/parameters",
        "chapters/test_experiments.py": "chapters/defaults",
        "chapters/test_lab.py": "chapters/lab_cells places",
        "chapters/test_live.py": "chapters/yours",
        "chapters/test_runs.py": "cli/runs",
        "chapters/test_sweeps.py": "cli/sweep",
        "cli/test_app.py": "cli/scoreboard",
        "data/test_check.py": "data/sources",
        "data/test_loading.py": "data/known data/missing",
        "data/test_voices.py": "data/recordings",
        "display/test_colours.py": "display/selection_plots words",
        "records/test_origins.py": "records/history",
        "records/test_rules.py": "records/recomputed records/rows",
        "studies/test_beside.py": "data/in_file records/counted",
        "test_chapter_index.py": "chapters/numbers",
        "training/test_loop.py": "training/recipes"}}
MODULES = [(house, path.relative_to(root).with_suffix("").as_posix())
           for house, (root, _) in HOUSES.items() for path in sorted(root.rglob("*.py"))
           if not path.stem.startswith("__")]
NAMED = {(house, module): tests for house, shared in SHARED.items()
         for tests, modules in shared.items() for module in modules.split()}


@pytest.mark.parametrize("house, module", MODULES)
def test_a_module_has_its_tests(house, module):
    """Of its name, or else in the file named here, which speaks of it."""
    root, tests = HOUSES[house]
    place = Path(module)
    own = tests / place.parent / f"test_{place.name}.py"
    assert own.exists() != ((house, module) in NAMED)
    if not own.exists():
        code = ast.parse((root / f"{module}.py").read_text("utf-8")).body
        names = {place.name, *(node.name for node in code
                               if isinstance(node, ast.FunctionDef | ast.ClassDef)),
                 *(node.id for statement in code for node in ast.walk(statement)
                   if isinstance(statement, ast.Assign) and isinstance(node, ast.Name))}
        text = (tests / NAMED[house, module]).read_text("utf-8")
        assert any(re.search(rf"\b{name}\b", text) for name in names)


def test_what_is_named_is_there():
    assert NAMED.keys() <= set(MODULES)
