"""Recipes: how the networks of the papers are trained."""

from dataclasses import dataclass, replace

from dnnlib import checks

SCHEDULES = ("constant", "cosine", "steps")


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, by stochastic gradient descent.

    - ``learning_rate``: of the first epoch.
    - ``batch_size``: images a step.
    - ``epochs``: passes over the data.
    - ``momentum``: share of the last step in the next, default 0.
    - ``weight_decay``: factor of the weights added to their gradient, default 0.
    - ``schedule``: of the learning rate: 'constant', 'cosine', or 'steps', a tenth after half and
      after three quarters of the epochs.
    - ``precision``: 'float32', or 'bfloat16' for the convolutions.
    - ``nesterov``: whether the momentum is Nesterov's.
    - ``augment``: whether images are cropped at random after a border of an eighth, and flipped,
      anew in every epoch.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: str = "constant"
    precision: str = "float32"
    nesterov: bool = False
    augment: bool = False

    def __post_init__(self) -> None:
        checks.known(self.schedule, SCHEDULES, "schedule")
        checks.known(self.precision, ("float32", "bfloat16"), "precision")


# NSATP Table II, PEACEPACT Table III. Neither names the optimiser: plain gradient descent.
_GRAY, _COLOUR = Recipe(0.1, 512, 20), Recipe(0.01, 512, 60)
_FASTER = replace(_COLOUR, precision="bfloat16")  # Net-1: half the minutes of an epoch
_LONGER = Recipe(0.05, 128, 4, momentum=0.9, weight_decay=5e-4, schedule="cosine",
                 precision="bfloat16")
_SPEECH = Recipe(0.02, 32, 5, momentum=0.9, weight_decay=5e-4, schedule="cosine")
_RECORDED = replace(_SPEECH, batch_size=64, epochs=4)
_SMALL = Recipe(0.02, 64, 8, momentum=0.9, schedule="cosine")  # 5,000 images
_SHORTER = replace(_SMALL, epochs=5)  # Net-1 and Net-2 take long
_BRIEF = Recipe(0.05, 64, 3, momentum=0.9)
RECIPES = {
    # for readers' own runs, the embedded images, and speech: the papers say nothing about these
    "default": {"*": Recipe(0.05, 64, 20, momentum=0.9, schedule="cosine"),
                "mnist_small": _SMALL, "fashion_mnist_small": _SMALL,
                "voices": _SPEECH, "fsdd": _RECORDED, "vctk": replace(_RECORDED, epochs=10)},
    # NSS prints no recipe for the networks it tests: brief, to about the accuracy of its Table I
    "nss": {"mnist": Recipe(0.06, 128, 1), "fashion_mnist": Recipe(0.1, 128, 2),
            "cifar10": replace(_LONGER, learning_rate=0.1, epochs=10, augment=True),
            "cifar10 vgg16": replace(_LONGER, learning_rate=0.01, epochs=6,
                                     augment=True),  # at higher rates it learns slowly
            # not measured on the whole of SVHN; a part, 4,434 digits, has as many steps: in 33
            # epochs LeNet-5 gets 74.5 % of its test digits right at this rate, 55.2 % at 0.05
            "svhn": replace(_LONGER, learning_rate=0.02, epochs=4),
            "svhn_part": replace(_LONGER, learning_rate=0.02, epochs=66),
            "svhn vgg16": replace(_LONGER, learning_rate=0.01, epochs=4),
            "digits": _BRIEF, "mnist_small": _BRIEF, "fashion_mnist_small": _BRIEF},
    # the other of the two stages of accuracy of its Fig. 3
    "nss_second": {"mnist": _LONGER, "fashion_mnist": _LONGER,
                   "cifar10": replace(_LONGER, epochs=2),
                   "cifar10 vgg16": replace(_LONGER, learning_rate=0.01, epochs=2),
                   "svhn": replace(_LONGER, learning_rate=0.02, epochs=1),
                   # in 17 epochs, as many steps as one of the whole, it learns nothing: 18.9 %
                   "svhn_part": replace(_LONGER, learning_rate=0.02, epochs=33),
                   "svhn vgg16": replace(_LONGER, learning_rate=0.01, epochs=1)},
    # both DeepSensors' Table I prints 91.70 and 90.80 % on CIFAR-10; a run of each on a GPU reached
    # 91.60 and 90.64 %
    "deepsensor": {"cifar10": replace(_LONGER, learning_rate=0.1, epochs=60, augment=True),
                   "cifar10 vgg16": replace(_LONGER, learning_rate=0.02, epochs=30,
                                            augment=True)},
    "nsatp": {"mnist": _GRAY, "fashion_mnist": _GRAY, "cifar10": _COLOUR, "cifar100": _COLOUR,
              "cifar10 net1": _FASTER, "cifar10 net1_peacepact": _FASTER,
              "cifar100 net1_peacepact": _FASTER,
              "mnist_small": _SHORTER, "fashion_mnist_small": _SHORTER},
    # with the momentum that most optimisers bring along: on colour images plain descent is slow
    "nsatp_momentum": {"cifar10": replace(_COLOUR, momentum=0.9),
                       "cifar100": replace(_COLOUR, momentum=0.9)},
}


def recipe(name: str, dataset: str, model_name: str = "") -> Recipe:
    """The recipe ``name`` for ``dataset``; the default one where its paper has none.

    A network that the recipe names beside the dataset has its own.

    >>> recipe("nss", "cifar10").learning_rate, recipe("nss", "cifar10", "vgg16").learning_rate
    (0.1, 0.01)
    """
    table, usual = RECIPES[checks.known(name, RECIPES, "recipe")], RECIPES["default"]
    own = table.get(f"{dataset} {model_name}")
    return own or table.get(dataset) or usual.get(dataset) or usual["*"]
