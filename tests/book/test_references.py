"""Names in docstrings lead to what they name, and a name of nothing leads nowhere."""

import importlib.util
from types import SimpleNamespace

import pytest

from dnnbook import places

spec = importlib.util.spec_from_file_location(
    "references", places.checkout() / "book" / "extensions" / "references.py")
references = importlib.util.module_from_spec(spec)
spec.loader.exec_module(references)

OBJECTS = {name: SimpleNamespace(objtype=kind) for kind, names in {
    "module": ["dnnlib.custom.ranking", "dnnlib.measures.uncertainty", "dnnlib.fuzzing.together",
               "dnnlib.perturb.metamorphic"],
    "function": ["dnnlib.custom.ranking.rank", "dnnlib.cli.rank.rank",
                 "dnnlib.coverage.covered.cam", "dnnbook.chapters.parameters.together"],
}.items() for name in names}


@pytest.mark.parametrize("name, module, a_module, found", [
    ("rank.rank", "dnnlib.custom.gallery", False, "dnnlib.cli.rank.rank"),
    ("rank", "dnnlib.custom.gallery", False, "dnnlib.custom.ranking.rank"),  # of its own room
    ("rank", "dnnlib.neurons.layers", False, None),  # two have this name
    ("coverage.cam", "dnnlib.selection.surprise", False, "dnnlib.coverage.covered.cam"),
    ("metamorphic.AFFINE", "dnnlib.fuzzing.deephunter", False, "dnnlib.perturb.metamorphic"),
    ("together", "dnnlib.fuzzing.dlfuzz", True, "dnnlib.fuzzing.together"),
    ("metamorphic.AFINE", "dnnlib.fuzzing.deephunter", False, None),
    ("neurons.Layout", "dnnlib.fuzzing.dlfuzz", False, None)])
def test_a_name_leads_to_one_thing_or_nowhere(name, module, a_module, found):
    assert references.full_name(name, module, OBJECTS, a_module=a_module) == found
