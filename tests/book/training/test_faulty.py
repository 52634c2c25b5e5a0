import pytest
import torch

from dnnbook import published, training
from dnnbook.data import load
from dnnbook.training import faulty, pollution


def test_steps_are_those_of_table_5():
    table = published.table("deepsensor_sensitivity", 5)
    for model, dataset in (("lenet5", "mnist"), ("vgg16", "cifar10"), ("resnet50", "imagenet")):
        for kind in ("polluted", "underfitted", "overfitted"):
            lines = table[(table["model"] == model) & (table["training"] == kind)]
            steps = faulty.recipe(kind, model, dataset)
            for quantity in ("epochs", "batch_size"):
                assert {getattr(steps, quantity)} == set(
                    lines.loc[lines["quantity"] == quantity, "value"].astype(int))


def test_a_model_without_a_line_trains_as_lenet5():
    assert faulty.recipe("overfitted", "net1", "mnist") == faulty.recipe(
        "overfitted", "lenet5", "mnist")


def test_only_incomplete_training_has_a_learning_rate_of_its_own():
    usual = training.recipe("default", "mnist")
    rates = {kind: faulty.recipe(kind, "lenet5", "mnist", learning_rate=0.3).learning_rate
             for kind in faulty.KINDS}
    assert rates == {"well_trained": usual.learning_rate, "polluted": faulty.RETRAINING_RATE,
                     "underfitted": 0.3, "overfitted": 0.3}
    assert faulty.recipe("well_trained", "lenet5", "mnist") == usual


@pytest.fixture
def fitted(monkeypatch):
    """What would be trained: (data, recipe, seed, start)."""
    calls = []
    monkeypatch.setattr(training, "fitted", lambda model, data, steps, start, seed, device: (
        calls.append((data, steps, seed, start))))
    monkeypatch.setattr(training, "trained", lambda *names, **options: (names, options))
    return calls


def test_a_polluted_network_sees_the_polluted_set(fitted):
    faulty.trained("polluted", "lenet5", "digits", alpha=20, seed=3)
    data, steps, seed, _ = fitted[0]
    expected = pollution.pollute(load("digits", "train"), 0.2, seed=3,
                                **pollution.setting("digits"))
    assert torch.equal(data.images, expected.images) and torch.equal(data.labels, expected.labels)
    assert (steps, seed) == (faulty.recipe("polluted", "lenet5", "digits"), 3)


def test_only_a_polluted_network_goes_on_from_the_well_trained_one(fitted):
    for kind in faulty.KINDS:
        faulty.trained(kind, "lenet5", "digits", seed=3)
    faulty.trained("polluted", "lenet5", "digits", retrained=False)
    starts = dict(zip([*faulty.KINDS, "new"], (start for *_, start in fitted), strict=True))
    before = (("lenet5", "digits"), {"recipe_name": "default", "seed": 3, "device": "cpu"})
    assert starts == dict.fromkeys(starts) | {"polluted": before}
    anew = faulty.recipe("polluted", "lenet5", "digits", retrained=False)
    assert fitted[-1][1] == anew
    assert anew.learning_rate == training.recipe("default", "digits").learning_rate


@pytest.mark.parametrize("kind", ["well_trained", "underfitted", "overfitted"])
def test_the_others_see_the_clean_set(fitted, kind):
    faulty.trained(kind, "lenet5", "digits", alpha=20)
    assert fitted[0][0].fingerprint == load("digits", "train").fingerprint


def test_an_unknown_kind_says_what_is_near():
    with pytest.raises(ValueError, match="did you mean 'overfitted'"):
        faulty.recipe("overfit", "lenet5", "mnist")


def test_each_error_has_the_network_that_makes_it(monkeypatch):
    monkeypatch.setattr(faulty, "trained", lambda kind, *args, **options: (kind, *args, options))
    found = faulty.by_error("lenet5", "digits", learning_rate=0.1, seed=2)
    options = {"learning_rate": 0.1, "seed": 2}
    assert found == {error: (kind, "lenet5", "digits", options) for error, kind in (
        ("adversarial", "well_trained"), ("polluted", "polluted"), ("overfitted", "overfitted"))}
    assert list(faulty.by_error("lenet5", "digits", errors=["polluted"])) == ["polluted"]
    with pytest.raises(ValueError, match="did you mean 'polluted'"):
        faulty.by_error("lenet5", "digits", errors=["poluted"])


def test_only_the_polluted_class_counts_of_a_polluted_network():
    clean = load("digits", "train")
    seen = pollution.pollute(clean, 0.5, **pollution.setting("digits"))
    given = set(seen.labels[seen.labels != clean.labels].tolist())
    targets = faulty.targets("digits")
    assert {targets["polluted"]} == given
    assert {error for error, target in targets.items() if target is None} == {
        "adversarial", "overfitted"}
