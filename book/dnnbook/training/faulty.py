"""Networks of faulty training: polluted, underfitted, overfitted (DeepSensor, Tables III to V)."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from dnnbook import published, training
from dnnbook.data import load
from dnnbook.training import pollution
from dnnlib import checks

# of the embedded images, an epoch of batches of 512 is only a few steps: epochs of batches of 64
UNDERFITTED = {"digits": 6, "mnist_small": 2, "fashion_mnist_small": 2}
KINDS = ("well_trained", "polluted", "underfitted", "overfitted")
# polluted networks are trained on at a constant rate; the papers print none. At 0.02 LeNet-5 may
# collapse; at this one VGG16 stays within 1.1 points of Table V
RETRAINING_RATE = 0.001
ERRORS = {"adversarial": "well_trained", "polluted": "polluted", "overfitted": "overfitted"}


def recipe(kind: str, model_name: str, dataset: str, *, recipe_name: str = "default",
          learning_rate: float = 0.02, retrained: bool = True) -> training.Recipe:
    """The recipe of a ``kind`` of training: ``recipe_name`` with Table V's epochs and batch size.

    A model without a line there has LeNet-5's. The table prints no learning rate: underfitted and
    overfitted networks have ``learning_rate``; 0.02 brings LeNet-5 on MNIST near the
    printed 79 % in its one epoch; polluted ones have ``RETRAINING_RATE`` throughout, or, if they
    are not ``retrained``, the rates of the recipe. With the embedded images underfitting is a few
    epochs of smaller batches.

    >>> recipe("overfitted", "lenet5", "mnist").epochs
    30
    """
    checks.known(kind, KINDS, "kind")
    usual = training.recipe(recipe_name, dataset, model_name)
    if kind == "well_trained":
        return usual
    table = published.table("deepsensor_sensitivity", 5)
    printed = model_name if model_name in set(table["model"]) else "lenet5"
    line = table[(table["model"] == printed) & (table["training"] == kind)].drop_duplicates(
        "quantity").set_index("quantity")
    change = {name: int(line["value"][name]) for name in ("epochs", "batch_size")}
    if kind == "underfitted" and dataset in UNDERFITTED:
        change = {"epochs": UNDERFITTED[dataset], "batch_size": 64}
    if kind != "polluted":
        change["learning_rate"] = learning_rate
    elif retrained:
        change |= {"learning_rate": RETRAINING_RATE, "schedule": "constant"}
    return replace(usual, **change)


def trained(kind: str, model_name: str, dataset: str, *, recipe_name: str = "default",
            learning_rate: float = 0.02, alpha: float = 10, patches: str = "each",
            retrained: bool = True, seed: int = 0, device: str = "cpu") -> nn.Module:
    """Network ``model_name`` with a training of that ``kind``, or taken from the cache.

    ``retrained``: whether a polluted network is the well trained one, trained on with the polluted
    set (first paper IV.B.2, second 6.1.2: "retrain"), or, a reading, a new one that sees nothing
    else. Of the others the papers say "trained", and one epoch could not make a well trained
    network underfitted: they are new ones.

    ``alpha``: percent of the training images that are polluted, and ``patches``, as of
    :func:`pollution.pollute`, with the sizes and the class of Table V. ``seed``: of the
    pollution and of the training. ``device``: where it is trained, as of :func:`training.trained`.
    Raises ``ValueError`` for an unknown name.
    """
    data = load(dataset, "train")
    chosen = recipe(kind, model_name, dataset, recipe_name=recipe_name,
                    learning_rate=learning_rate, retrained=retrained)
    start = None
    if kind == "polluted":
        data = pollution.pollute(data, alpha / 100, patches=patches, seed=seed,
                                **pollution.setting(dataset))
        if retrained:
            start = training.trained(model_name, dataset, recipe_name=recipe_name, seed=seed,
                                     device=device)
    return training.fitted(model_name, data, chosen, start=start, seed=seed, device=device)


def by_error(model_name: str, dataset: str, *, errors: Sequence[str] = tuple(ERRORS),
             **options) -> dict[str, nn.Module]:
    """A network for each kind of error (DeepSensor, Figs. 5 and 6; the second paper's 10 and 11).

    'adversarial' errors are those of a well trained network. ``errors``: of the kinds in
    ``ERRORS``; ``options``: see :func:`trained`.
    """
    return {error: trained(ERRORS[checks.known(error, ERRORS, "errors")], model_name, dataset,
                           **options) for error in errors}


def targets(dataset: str) -> dict[str, int | None]:
    """The class that an error of each kind is given, None where any false one counts.

    As ``target`` of :func:`outcomes.hits` and ``without`` of :func:`studies.benign`.

    >>> targets("mnist")
    {'adversarial': None, 'polluted': 1, 'overfitted': None}
    """
    return {error: pollution.setting(dataset)["label"] if kind == "polluted" else None
            for error, kind in ERRORS.items()}
