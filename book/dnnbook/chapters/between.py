"""Rules between the parameters of a chapter: each says in one line what does not go together."""

from collections.abc import Mapping

import torch
from torch import nn

from dnnbook import data
from dnnbook.data import in_file, sources
from dnnbook.studies import beside, perturbation
from dnnbook.training import PRETRAINED
from dnnbook.training.networks import build
from dnnlib import checks, inference, models
from dnnlib.custom.options import ATTACKS
from dnnlib.selection import SELECTORS

Values = Mapping[str, object]
DISTANCES = "pd", "pv", "pe"  # of NSATP
SURPRISE = {"lsa", "mdsa", "mlsa", "mmdsa"}  # by the density of traces: in no paper
EXACT = 16  # neurons of a layer whose Shapley values can be had exactly


def check(where: str, values: Values, *, here: bool, of: str = "") -> None:
    """All rules, on all values of a chapter: ``ValueError`` by the first that is broken.

    ``here``: whether this machine has to have the dataset and the device: else only the rules that
    need neither. ``of``: what ``beside`` names, 'selectors' or 'fuzzers'.

    >>> check("deepsensor_sensitivity/examples", {"seed_class": 1, "other_class": 1}, here=False)
    Traceback (most recent call last):
    ValueError: other_class: expected another class than seed_class, got 1 for both
    """
    for rule in (_classes_differ, _others, _pool, _kinds, _bounds):
        rule(values)
    if "beside" in values:
        _beside(where, str(values["beside"]), of)
    if here:  # a sweep may plan cells whose weights are still to come
        _pretrained(where, values)
    name = values.get("dataset")
    if here and name is not None:
        sources.check(name)
    if here and "device" in values:
        inference.device(values["device"])
    if name is not None and (here or not sources.is_users(name)):
        shape, classes = _facts(name)
        _places(values, classes, name)
        _side(values, shape, name)
        _networks(values, shape, classes)
        if in_file.is_own(values.get("patch")):
            perturbation.check(str(values["patch"]), shape)
        if in_file.is_own(values.get("beside")):
            model = build(str(values["model_name"]), shape, classes)
            beside.check(str(values["beside"]), of, model, shape)
    if values.get("keep"):
        _keep(where, values, here=here)


def _facts(name: str) -> tuple[tuple[int, int, int], int]:
    """Shape of the images of a dataset, and how many classes it has."""
    if not sources.is_users(name):
        return sources.SOURCES[name].shape, sources.SOURCES[name].classes
    one = data.load(name, limit=1)
    return one.shape, len(one.classes)


def _classes_differ(values: Values) -> None:
    first, second = values.get("seed_class"), values.get("other_class")
    if first is not None and first == second:
        raise ValueError("other_class: expected another class than seed_class, "
                         f"got {first} for both")


def _others(values: Values) -> None:
    """A rival whose only other network is the one under test would be another method."""
    named = str(values.get("others") or "").replace(",", " ").split()
    if named and set(named) == {values.get("model_name")}:
        raise ValueError(f"others: {named[0]} is the network under test; name another one, "
                         "or none, '', for the rival without other networks")


def _pool(values: Values) -> None:
    for name in ("clever_samples", "many_samples"):
        if "pool" in values and values["pool"] < values.get(name, 0):
            raise ValueError(f"pool: expected at least {name}={values[name]} points, "
                             f"got {values['pool']}")


def _beside(where: str, name: str, of: str) -> None:
    distances = where in ("nsatp/rq1", "nsatp/rq3")
    there = (("noise",) if of == "fuzzers" else DISTANCES if distances else
             SELECTORS.keys() - SURPRISE if where == "synthesis/01" else ())
    if name in there:  # else one of the two would be shown in the other's place
        raise ValueError(f"beside: the chapter has {name} itself; expected another")
    if of == "fuzzers":
        if where == "deepsensor_sensitivity/test_errors" and name in ATTACKS:
            raise ValueError(f"beside: {name} needs a bound, and this chapter has none at first; "
                             "synthesis/02 takes it")
        beside.fuzzers(name)
        return
    for word, kind in beside.selectors(name).items():
        if distances and not hasattr(kind, "score"):
            raise ValueError(f"beside: expected a selector that scores, got {word}, which does not")


def _kinds(values: Values) -> None:
    if "kinds" in values and "adversarial" not in checks.words(values["kinds"], "kinds"):
        raise ValueError("kinds: expected adversarial, which the others are beside, among them, "
                         f"got {values['kinds']!r}")


def _bounds(values: Values) -> None:
    if "far" in values and values["near"] >= values["far"]:
        raise ValueError(f"near: expected a smaller bound than far={values['far']:g}, "
                         f"got {values['near']:g}")


def _pretrained(where: str, values: Values) -> None:
    """ImageNet has only a photograph of each class here, and nothing is trained on it."""
    asked = (values.get("model_name"), values.get("dataset"))
    recipe = values.get("recipe", "pretrained" if where.endswith("your_own_model") else "")
    if None in asked:
        return
    there = asked in PRETRAINED
    if values.get("recipe") == "pretrained" and not there:
        known = " or ".join(map(" on ".join, PRETRAINED))
        raise ValueError(f"recipe: 'pretrained' is there for {known}, "
                         f"got {' on '.join(map(str, asked))}")
    if asked[1] == "imagenet" and (not there or recipe != "pretrained"):
        raise ValueError("dataset: imagenet has no training images here; expected model_name "
                         "mobilenet and recipe pretrained with it, got "
                         f"{asked[0]}{f' and {recipe}' if recipe else ''}")
    if recipe == "pretrained" and there and values.get("others"):
        raise ValueError(f"others: there are no other networks for {asked[1]} that others trained; "
                         f"expected none, '', got {values['others']!r}")


def _side(values: Values, shape: tuple[int, int, int], dataset: str) -> None:
    if values.get("side", 0) > min(shape[1:]):
        raise ValueError(f"side: expected at most {min(shape[1:])}, as images of {dataset} have "
                         f"{shape[1]} x {shape[2]} pixels, got {values['side']}")


def _places(values: Values, classes: int, dataset: str) -> None:
    for name in ("seed_class", "other_class"):
        if values.get(name, 0) >= classes:
            raise ValueError(f"{name}: expected a class from 0 to {classes - 1}, as {dataset} has "
                             f"{classes} classes, got {values[name]}")


def _networks(values: Values, shape: tuple[int, int, int], classes: int) -> None:
    asked = {"model_name": [values.get("model_name")], "small": [values.get("small")],
             "others": str(values.get("others") or "").replace(",", " ").split()}
    for name, networks in asked.items():
        for network in filter(None, networks):
            if in_file.is_own(network):
                build(network, shape, classes)
                continue
            try:
                with torch.device("meta"):  # sizes only
                    built = models.build(network, shape=shape, classes=classes)
            except ValueError as error:
                raise ValueError(f"{name}: {network} does not take images of "
                                 f"{' x '.join(map(str, shape))}: {error}") from error
            if name == "small" and "layer" in values:
                _layer(values["layer"], network, built, shape)


def _layer(name: str, network: str, built: nn.Module, shape: tuple[int, int, int]) -> None:
    layers = models.neuron_layers(built)
    checks.known(name, layers, f"layer of {network}")
    with torch.device("meta"):
        x = torch.zeros(1, *shape)
    sizes: dict[str, int] = {}
    hook = layers[name].register_forward_hook(
        lambda module, given, found: sizes.update({name: found.shape[1]}))
    with torch.no_grad():
        built(x)
    hook.remove()
    if sizes[name] > EXACT:
        raise ValueError(f"layer: expected one of at most {EXACT} neurons, whose exact values can "
                         f"be had; {name!r} of {network} has {sizes[name]}")


def _keep(where: str, values: Values, *, here: bool) -> None:
    from dnnbook.chapters import kept  # these two ask for these rules
    from dnnbook.chapters.declared import stored

    kept.check(where, {stored(name, where): value for name, value in values.items()}, here=here)
