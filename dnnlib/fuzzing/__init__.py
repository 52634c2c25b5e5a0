"""Fuzzers: ways to turn benign seeds into test inputs, on one protocol and one budget.

Each is a frozen dataclass of options with one method, ``run(model, seeds, labels, ...)``, that
gives a :class:`Campaign`. Defaults are what DeepSensor compares with (IV.A) and, where it is
silent, what the docstrings give a reason for.
"""

from dnnlib import checks
from dnnlib.fuzzing import outcomes
from dnnlib.fuzzing.campaigns import at_bounds, benign, bounds, campaigns, rivals, swarms
from dnnlib.fuzzing.corners import corner_cases, with_noise
from dnnlib.fuzzing.deephunter import DeepHunter
from dnnlib.fuzzing.deepxplore import DeepXplore
from dnnlib.fuzzing.dlfuzz import DLFuzz
from dnnlib.fuzzing.noise import Constant, Noise, RandomFitness
from dnnlib.fuzzing.outcomes import Key
from dnnlib.fuzzing.protocol import Budget, Campaign, Fuzzer
from dnnlib.fuzzing.swarm import Swarm

__all__ = ["Budget", "Campaign", "Constant", "DLFuzz", "DeepHunter", "DeepXplore", "FUZZERS",
           "Fuzzer", "Key", "Noise", "RandomFitness", "Swarm", "at_bounds", "benign",
           "bounds", "campaigns", "corner_cases", "fuzzer", "outcomes", "rivals", "swarms",
           "with_noise"]

FUZZERS: dict[str, type] = {"deepsensor": Swarm, "deepxplore": DeepXplore, "dlfuzz": DLFuzz,
                            "deephunter": DeepHunter, "noise": Noise}


def fuzzer(name: str, **options) -> Fuzzer:
    """A fuzzer by name, with options other than its defaults.

    Raises ``ValueError`` for an unknown name, ``TypeError`` for an unknown option or one that
    is missing: DeepHunter needs ``reference``, benign images, and DeepXplore ``others``, unless
    it is in its reading 'single'.

    >>> fuzzer("deepsensor", population=5).population
    5
    """
    return FUZZERS[checks.known(name, FUZZERS, "fuzzer")](**options)
