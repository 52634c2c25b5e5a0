import subprocess
import sys
from dataclasses import dataclass, make_dataclass

import pytest
import torch
from torch import nn

from dnnlib import models
from dnnlib.models import fingerprints

WRITTEN = """
import sys
import torch
from torch import nn
from dnnlib import models
from dnnlib.models.fingerprints import fingerprint

SCALE = 2

class Scaled(nn.Linear):
    def forward(self, x):
        return SCALE * super().forward(x) if x.dtype in {torch.float32, torch.float64} else x

torch.manual_seed(0)
print(fingerprint(models.build("lenet1")), fingerprint(Scaled(3, 2)))
"""


def scaled(factor, shift=0.0):
    """A model whose class, weights and print are the same whatever the arguments."""
    class Scaled(nn.Linear):
        def forward(self, x):
            return factor * super().forward(x) + self.shifted(x)

        def shifted(self, x):
            return shift

    torch.manual_seed(0)
    return Scaled(3, 2)


def doubled(x):
    return 2 * x


def with_attribute(change):
    torch.manual_seed(0)
    model = scaled(1.0)
    model.change = change
    return model


@pytest.mark.parametrize("make", [
    lambda odd: scaled(3.0 if odd else 2.0), lambda odd: scaled(2.0, shift=float(odd)),
    lambda odd: with_attribute(odd), lambda odd: with_attribute(abs if odd else doubled),
    lambda odd: with_attribute((lambda x: x + 1) if odd else (lambda x: x + 2))],
    ids=["closure", "method", "attribute", "function", "lambda"])
def test_models_that_print_alike_are_told_apart_by_their_code(make):
    even, odd = make(False), make(True)
    assert str(even) == str(odd) and torch.equal(even.weight, odd.weight)
    assert fingerprints.fingerprint(even) == fingerprints.fingerprint(make(False))
    assert fingerprints.fingerprint(even) != fingerprints.fingerprint(odd)


def test_a_forward_set_on_a_module_of_torch_counts():
    model = nn.Linear(3, 2)
    before = fingerprints.fingerprint(model)
    model.forward = doubled
    assert fingerprints.fingerprint(model) != before


def test_evaluation_mode_does_not_count():
    model = scaled(2.0)
    assert fingerprints.fingerprint(model.train()) == fingerprints.fingerprint(model.eval())


def test_fingerprints_are_the_same_in_every_process(tmp_path):
    (tmp_path / "own.py").write_text(WRITTEN)
    found = {subprocess.run([sys.executable, "own.py"], cwd=tmp_path, capture_output=True,
                            text=True, check=True, env=None).stdout for _ in range(2)}
    assert len(found) == 1
    assert found.pop().split()[0] == fingerprints.fingerprint(models.build("lenet1"))


def fitness(factor):
    @dataclass(frozen=True)
    class Fitness:
        threshold: float = 0.5

        def __call__(self, x):
            return factor * x

    return Fitness()


def test_dataclasses_of_one_name_are_told_apart_by_module_and_code():
    assert fingerprints.described(fitness(1)) == fingerprints.described(fitness(1))
    assert fingerprints.described(fitness(1)) != fingerprints.described(fitness(2))
    one, other = (make_dataclass("Fitness", ["threshold"], namespace={"__module__": module})(0.5)
                  for module in ("mine", "yours"))
    assert fingerprints.described(one) != fingerprints.described(other)


def test_a_function_of_your_own_has_no_key():
    with pytest.raises(TypeError, match="a function has no key in the cache"):
        fingerprints.described(lambda x: x)


def test_a_function_of_a_library_counts_by_its_name():
    """Following them, one to the next, would take for ever."""
    from torch.utils import checkpoint

    found = fingerprints.of(checkpoint.checkpoint)
    assert found == "torch.utils.checkpoint.checkpoint"


def test_helpers_that_share_helpers_are_followed_once():
    """Forty floors, each of which calls the one below twice: 2**40 ways."""
    space = {}
    exec("def f0(x): return x\n" + "".join(
        f"def f{i}(x): return f{i - 1}(x) + f{i - 1}(x)\n" for i in range(1, 41)), space)
    assert len(fingerprints.of(space["f40"])) < 100_000
