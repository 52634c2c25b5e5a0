"""Fuzzers: ways to turn benign inputs into test inputs, on one protocol and one budget.

Each is a frozen dataclass of options with one method, ``run(model, inputs, labels, ...)``, that
gives a :class:`Campaign`. Defaults are what DeepSensor compares with (IV.A) and, where it is
silent, what the docstrings give a reason for. :data:`FUZZERS` are the papers'; attacks of the
Adversarial Robustness Toolbox are :class:`ArtAttack`.
"""

from dnnlib import checks
from dnnlib.fuzzing.contract import check_fuzzer
from dnnlib.fuzzing.deephunter import DeepHunter
from dnnlib.fuzzing.deepxplore import DeepXplore
from dnnlib.fuzzing.dlfuzz import DLFuzz
from dnnlib.fuzzing.noise import Constant, Noise, RandomFitness
from dnnlib.fuzzing.populations import Ants, Differential, Genetic
from dnnlib.fuzzing.protocol import Budget, Campaign, Fuzzer
from dnnlib.fuzzing.swarm import Swarm
from dnnlib.fuzzing.toolbox import ArtAttack

__all__ = ["Ants", "ArtAttack", "Budget", "Campaign", "Constant", "DLFuzz", "DeepHunter",
           "DeepXplore", "Differential", "FUZZERS", "Fuzzer", "Genetic", "Noise", "RandomFitness",
           "Swarm", "check_fuzzer", "fuzzer"]

FUZZERS: dict[str, type] = {"deepsensor": Swarm, "noise": Noise, "dlfuzz": DLFuzz,
                            "deepxplore": DeepXplore, "deephunter": DeepHunter}


def fuzzer(name: str, **options) -> Fuzzer:
    """A fuzzer by name, with options other than its defaults.

    Raises ``ValueError`` for a name or an option that is unknown, with the nearest one, for an
    option that is needed ('deephunter' needs ``reference``, benign images, and 'deepxplore'
    ``others``, unless it is in its reading 'single'), and for values that make no sense.

    >>> fuzzer("deepsensor", population=5).population
    5
    >>> fuzzer("noise", scal=0.2)
    Traceback (most recent call last):
    ValueError: unknown option of 'noise' 'scal'; did you mean 'scale'? Known: budget, \
scale
    """
    kind = FUZZERS[checks.known(name, FUZZERS, "fuzzer")]
    checks.options(kind, options, name)
    return kind(**options)
