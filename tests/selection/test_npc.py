from fractions import Fraction
from math import ceil

import pytest
import torch

from dnnlib import coverage as cov
from dnnlib.inference import predict
from dnnlib.neurons.relevance import Relevance, propagate
from dnnlib.selection.npc import BUCKETS, NPC, abstract_paths, critical, snpc
from dnnlib.selection.protocol import kept


@pytest.fixture
def x(tiny_data):
    return tiny_data.images


@pytest.fixture
def reference(generator):
    return torch.rand(60, 1, 8, 8, generator=generator(9))


@pytest.fixture
def model(tiny_model):
    """Its classes about as frequent as each other."""
    model = tiny_model(3)
    inputs = torch.rand(500, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model[3].bias -= model(inputs).mean(0)
    return model


def of_layers(*layers):
    values = torch.cat([torch.tensor(layer) for layer in layers], 1)
    widths = tuple(len(layer[0]) for layer in layers)
    names = tuple(map(str, range(len(layers))))
    return Relevance(values, names, widths, torch.zeros(len(values), dtype=torch.int64), 2)


def flags(*rows):
    """'1101' to booleans."""
    return torch.tensor([[c == "1" for c in row] for row in rows])


# ---- critical neurons

def critical_by_loops(row, alpha):
    goal, total, chosen = alpha * sum(r for r in row if r > 0), 0.0, set()
    for i in sorted(range(len(row)), key=lambda i: -row[i]):
        if total >= goal:
            break
        chosen.add(i)
        total += row[i]
    return [i in chosen for i in range(len(row))]


@pytest.mark.parametrize("alpha", [0.3, 0.7, 0.95])
def test_critical_against_loops(generator, alpha):
    layers = [torch.randn(20, width, generator=generator(width)).tolist() for width in (3, 9, 1)]
    found = critical(of_layers(*layers), alpha)
    for i, row in enumerate(found.tolist()):
        assert row == sum((critical_by_loops(layer[i], alpha) for layer in layers), [])


@pytest.mark.parametrize("relevance, alpha, expected", [
    ([0.5, 0.25, 0.25, -1.0], 0.5, "1000"),  # reached exactly
    ([0.5, 0.25, 0.25, -1.0], 0.51, "1100"),  # the crossing channel too, the first of equals
    ([0.125, 0.0, -1.0, 0.875], 1.0, "1001"), ([0.0, -0.5, -0.25, 0.0], 0.7, "0000"),
    ([-9.0, 0.0, 1e-30, -9.0], 0.7, "0010")])
def test_critical_at_the_edges(relevance, alpha, expected):
    assert torch.equal(critical(of_layers([relevance]), alpha), flags(expected))


# ---- abstract paths

def test_clusters_and_what_their_members_share():
    """Class 1: nine tenths of the first cluster have channel 1, seven tenths channel 2."""
    first = ["111000"] * 7 + ["110000"] * 2 + ["100000"]
    paths = flags(*first, *["000111"] * 5, *["010101"] * 3)
    labels = [1] * 15 + [0] * 3
    for merge, shared in ((0.7, "111000"), (0.8, "110000"), (0.9, "110000"), (0.91, "100000")):
        found = abstract_paths(paths, labels, 3, clusters=2, merge=merge)
        assert found.shape == (3, 2, 6)
        assert {*map(tuple, found[1].tolist())} == {*map(tuple, flags(shared, "000111").tolist())}
        # one path only, and none
        assert torch.equal(found[0], flags("010101", "000000")) and not found[2].any()


def test_one_cluster_counts_all_members(generator):
    paths = torch.rand(50, 30, generator=generator()) < torch.linspace(0.5, 1, 30)
    found = abstract_paths(paths, [0] * 50, 1, clusters=1, merge=0.8)
    expected = [sum(column) * 10 >= 8 * 50 for column in zip(*paths.tolist())]
    assert found[0, 0].tolist() == expected and 0 < sum(expected) < 30


# ---- coverage

def test_snpc_against_sets(generator):
    paths = torch.rand(30, 40, generator=generator(1)) < 0.4
    abstract = torch.rand(3, 2, 40, generator=generator(2)) < 0.4
    abstract[2, 1] = False
    predicted = torch.arange(30) % 3
    covered = snpc(paths, predicted, abstract)
    assert covered.bins.shape == (30, 6) and covered.sections == BUCKETS
    for path, label, row in zip(paths, predicted.tolist(), covered.bins.tolist()):
        own, expected = {*path.nonzero()[:, 0].tolist()}, [-1] * 6
        for cluster in range(2):
            other = {*abstract[label, cluster].nonzero()[:, 0].tolist()}
            similarity = Fraction(len(own & other), len(own | other))
            expected[2 * label + cluster] = ceil(BUCKETS * similarity) - 1
        assert row == expected


def test_similarity_of_zero_and_of_one():
    abstract = flags("1100", "0000")[None]
    assert snpc(flags("1100", "0011", "0000"), [0, 0, 0], abstract).bins.tolist() == [
        [99, -1], [-1, -1], [-1, -1]]


def test_seven_hundredths_are_the_seventh_bucket():
    """In floating point 0.07 / 0.01 is above 7, and rounds up to 8."""
    covered = snpc(flags("1" * 7 + "0" * 93), [0], flags("1" * 100)[None])
    assert covered.bins.tolist() == [[6]]


# ---- the selector

def npc_by_steps(model, x, reference, keep=None, **options):
    known = propagate(model, reference)
    keep = torch.ones(len(reference), dtype=torch.bool) if keep is None else keep
    abstract = abstract_paths(critical(known)[keep], known.predicted[keep], 3, **options)
    found = propagate(model, x)
    return snpc(critical(found), found.predicted, abstract)


def covering(model, x, **options):
    return cov.Covered(kept(NPC(**options), model, x)[0], BUCKETS)


def test_selector_covers_paths_of_the_reference(model, x, reference, monkeypatch):
    monkeypatch.setattr("dnnlib.selection.protocol.ROWS", 7)  # in parts
    covered = covering(model, x, reference=reference)
    assert torch.equal(covered.bins, npc_by_steps(model, x, reference).bins)
    predicted = predict(model, x).argmax(1)
    columns = torch.arange(12).div(4, rounding_mode="floor")
    assert ((covered.bins >= 0) <= (columns == predicted[:, None])).all()
    assert len(predicted.unique()) == 3 and (covered.bins >= 0).any(1).all()


def test_wrongly_classified_references_do_not_count(model, x, reference):
    labels = predict(model, reference).argmax(1)
    right = torch.arange(60) % 3 > 0
    labels[~right] = (labels[~right] + 1) % 3
    found = covering(model, x, reference=reference, reference_labels=labels, clusters=2)
    expected = npc_by_steps(model, x, reference, right, clusters=2)
    assert torch.equal(found.bins, expected.bins)
    every = covering(model, x, reference=reference, clusters=2)
    assert not torch.equal(every.bins, expected.bins)


def test_classes_without_reference_cover_nothing(model, x, reference):
    classes = [predict(model, images).argmax(1) for images in (reference, x)]
    covered = covering(model, x, reference=reference[classes[0] != 1])
    assert torch.equal(covered.counts == 0, classes[1] == 1) and (classes[1] == 1).any()


def test_order_is_a_permutation_that_repeats(model, x, reference):
    before = x.clone()
    order = NPC(reference=reference).order(model, x)
    assert order.dtype == torch.int64 and sorted(order.tolist()) == list(range(len(x)))
    assert torch.equal(NPC(reference=reference).order(model, x), order)
    assert torch.equal(x, before)


def test_first_in_order_add_coverage_and_the_seed_decides_the_rest(model, x, reference):
    covered = covering(model, x, reference=reference, clusters=1)

    def items(rows):
        return {(column, row[column]) for row in covered.bins[rows].tolist()
                for column in range(3) if row[column] >= 0}

    every = items(range(len(x)))
    orders = [NPC(reference=reference, clusters=1, seed=seed).order(model, x)
              for seed in (0, 1)]
    for order in orders:
        assert items(order[:len(every)]) == every  # an input covers one
    assert torch.equal(*(order[:len(every)] for order in orders))
    assert not torch.equal(*orders)


@pytest.mark.parametrize("name, value", [("alpha", 0.2), ("merge", 0.1), ("clusters", 2),
                                         ("beta", 4.0)])
def test_every_option_matters(model, x, reference, name, value):
    covered = [covering(model, x, **{"reference": reference, "clusters": 1} | options)
               for options in ({}, {name: value})]
    assert not torch.equal(*(found.bins for found in covered))


@pytest.mark.parametrize("options, words", [
    ({"alpha": 0}, "alpha"), ({"alpha": 1.1}, "alpha"), ({"merge": 0}, "merge"),
    ({"clusters": 0}, "clusters"), ({"neuron": "unit"}, "channels"),
    ({"reference": torch.zeros(0, 1, 8, 8)}, "at least one"),
    ({"reference_labels": [0, 1]}, "expected 60 labels")])
def test_bad_options(reference, options, words):
    with pytest.raises(ValueError, match=words):
        NPC(**{"reference": reference} | options)


@pytest.mark.parametrize("options, words", [
    ({"layers": ("9",)}, "unknown layer '9'"), ({"beta": -1}, "beta"),
    ({"reference_labels": [3] * 60}, "reference_labels: expected classes 0 to 2"),
    ({"reference": torch.rand(5, 1, 9, 9)}, "reference: expected images of shape")])
def test_options_that_do_not_fit_the_model(model, x, reference, options, words):
    with pytest.raises(ValueError, match=words):
        NPC(**{"reference": reference} | options).order(model, x)


def test_reference_that_is_all_wrong(model, x, reference):
    wrong = (predict(model, reference).argmax(1) + 1) % 3
    with pytest.raises(ValueError, match="none of 60"):
        NPC(reference=reference, reference_labels=wrong).order(model, x)


@pytest.mark.parametrize("call, words", [
    (lambda: abstract_paths(torch.ones(2, 3), [0, 0], 1), "paths: expected booleans"),
    (lambda: abstract_paths(flags("10")[:0], [], 1), "paths: expected booleans"),
    (lambda: abstract_paths(flags("10"), [1], 1), "labels: expected classes 0 to 0"),
    (lambda: abstract_paths(flags("10"), [0, 0], 1), "labels: expected 1"),
    (lambda: abstract_paths(flags("10"), [0], 1, merge=2), "merge"),
    (lambda: snpc(flags("10"), [0], flags("101")[None]), "abstract: expected booleans"),
    (lambda: snpc(flags("10"), [0], flags("10")), "abstract: expected booleans"),
    (lambda: snpc(flags("10"), [1], flags("10")[None]), "predicted: expected classes 0 to 0")])
def test_bad_paths(call, words):
    with pytest.raises(ValueError, match=words):
        call()
