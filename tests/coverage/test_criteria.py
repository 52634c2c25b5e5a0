import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from dnnlib import coverage as cov
from dnnlib.coverage import Covered, bknc, boundaries, cam, ctm, kmnc, nac, nbc, snac, tknc

OFFSETS = (0, 5, 12, 13, 20)


def normal(seed, rows, scale=1.0):
    """Multiples of 2^-20, so that the edges of 2^n sections have no rounding errors."""
    values = np.random.default_rng(seed).normal(scale=scale, size=(rows, 20))
    return torch.from_numpy(values * 2**20).round() / 2**20


@pytest.fixture
def train():
    values = normal(0, 300)
    values[:, 3] = 0  # a dead neuron
    return values


@pytest.fixture
def values(train):
    """Within the range, beyond it, on its edges, and around the dead neuron."""
    values = normal(1, 60, 1.3)
    values[:20, 3] = 0
    low, high = train.aminmax(dim=0)
    values[0], values[1], values[2] = low, high, (low + high) / 2
    return values


def items(covered):
    """The items of every input, as sets of (column, bin)."""
    return [{(column, section) for column, section in enumerate(row) if section >= 0}
            for row in covered.bins.tolist()]


def table(covered):
    """bool (N, columns, sections): what dnn-tip calls profiles."""
    sections = torch.arange(covered.sections)
    return (covered.bins[..., None] == sections).numpy()


# ---- boundaries

def test_boundaries_are_of_all_values(train):
    seen = boundaries(train.float())
    data = train.float().double()
    assert torch.equal(seen.low, data.amin(0)) and torch.equal(seen.high, data.amax(0))

# ---- criteria against plain loops

@pytest.mark.parametrize("threshold", [0, 0.5, -1.0])
def test_nac_is_above_not_at(values, threshold):
    values[2] = threshold
    expected = [{(j, 0) for j, a in enumerate(row) if a > threshold} for row in values.tolist()]
    assert items(nac(values, threshold)) == expected
    assert expected[2] == set()


def test_sigmoid_of_one_half_is_above_zero():
    values = torch.tensor([[1e-8, 0.0, -1e-8, 0.4]])
    assert torch.sigmoid(values)[0, 0] == 0.5  # what single precision makes of it
    assert nac(values, 0.5, sigmoid=True).bins.tolist() == [[0, -1, -1, 0]]
    assert nac(values, 0.6, sigmoid=True).bins.tolist() == [[-1, -1, -1, -1]]


def section(a, low, high, k, edges):
    """The section of one activation, from the edges one by one; None when out of range."""
    bounds = [low + (high - low) * Fraction(i, k) for i in range(k + 1)]
    for i, (start, end) in enumerate(zip(bounds, bounds[1:])):
        if edges == "high" and start < a <= end or edges != "high" and start <= a < end:
            return i
    return k - 1 if edges == "both" and a == high > low else None


@pytest.mark.parametrize("edges", cov.EDGES)
@pytest.mark.parametrize("k", [1, 2, 7, 64])
def test_kmnc_finds_the_section(train, values, edges, k):
    seen = boundaries(train)
    low, high = (list(map(Fraction, side.tolist())) for side in (seen.low, seen.high))
    values = values[:25]
    covered = kmnc(values, seen, k, edges=edges)
    assert covered.sections == k and covered.items == 20 * k
    for row, bins in zip(values.tolist(), covered.bins.tolist()):
        for j, (a, found) in enumerate(zip(row, bins)):
            expected = section(a, low[j], high[j], k, edges)
            assert found == (-1 if expected is None else expected)


def test_kmnc_options_differ_where_they_say():
    seen = boundaries([[0.0, 5.0], [4.0, 5.0]])
    on = torch.tensor([[0.0, 5.0], [4.0, 5.0], [2.0, 5.1], [-0.1, 4.9], [4.1, 5.0]])

    def first(**options):
        return kmnc(on, seen, 4, **options).bins[:, 0].tolist()

    assert first() == [0, 3, 2, -1, -1]
    assert first(edges="low") == [0, -1, 2, -1, -1]
    assert first(edges="high") == [-1, 3, 1, -1, -1]
    assert kmnc(on, seen, 4).bins[:, 1].tolist() == [-1] * 5


def test_kmnc_is_exact_on_whole_numbers():
    seen = boundaries([[0.0], [100.0]])
    values = torch.arange(101.0)[:, None]
    assert 29 / 100 * 100 < 29  # the order of operations matters
    assert kmnc(values, seen, 100).bins[:, 0].tolist() == [*range(100), 99]


@pytest.mark.parametrize("k, kind", [(127, torch.int8), (128, torch.int8), (129, torch.int16),
                                     (1000, torch.int16), (40_000, torch.int32)])
def test_kmnc_fits_its_integer(k, kind):
    covered = kmnc(torch.tensor([[0.0], [1.0], [2.0]]), boundaries([[0.0], [1.0]]), k)
    assert covered.bins.dtype == kind and covered.bins.tolist() == [[0], [k - 1], [-1]]


@pytest.mark.parametrize("strict", [True, False])
def test_boundaries(train, values, strict):
    seen, low, high = boundaries(train), train.amin(0), train.amax(0)
    lower = values < low if strict else values <= low
    upper = values > high if strict else values >= high
    assert torch.equal(snac(values, seen, strict=strict).bins == 0, upper)
    both = nbc(values, seen, strict=strict)
    assert torch.equal(both.bins == 0, torch.cat([lower, upper], 1))
    assert both.items == 40 and set(both.bins.unique().tolist()) == {-1, 0}
    # the training extremes and the dead neuron tell the two apart
    assert bool(upper[1].any()) == (not strict)
    assert bool(lower[5, 3] and upper[5, 3]) == (not strict)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_single_precision_is_compared_exactly(strict, upper):
    # a bound between two single-precision numbers, nearer to the lower and nearer to the upper
    for bound in (1 + 2**-25, 1 + 3 * 2**-25, 1.0):
        seen = boundaries(torch.full((1, 1), bound, dtype=torch.float64))
        for a in (1 - 2**-24, 1.0, 1 + 2**-23):
            beyond = (a > bound if upper else a < bound) or (a == bound and not strict)
            sides = nbc(torch.tensor([[a]]), seen, strict=strict).bins[0] == 0
            assert sides[int(upper)] == beyond


def test_boundary_steps_as_deephunter_counts_them():
    seen = boundaries([[0.0, 2.0], [1.0, 2.0]])  # steps of 0.001, and of 0.05 where low = high
    values = torch.tensor([[1.0, 2.0], [1.0005, 2.06], [1.0025, 2.12], [9.0, 9.0]],
                          dtype=torch.float64)
    upper = snac(values, seen, steps=11)
    assert upper.bins.tolist() == [[-1, -1], [0, 1], [2, 2], [10, 10]]
    assert upper.items == 22


@pytest.mark.parametrize("k", [1, 2, 3, 10])
@pytest.mark.parametrize("distinct", [True, False])
def test_top_and_bottom(values, k, distinct):
    values = values if distinct else values.round()  # ties in every row
    tops, bottoms = [], []
    for row in values.tolist():
        top, bottom = set(), set()
        for start, end in zip(OFFSETS, OFFSETS[1:]):
            rising = sorted(range(start, end), key=lambda j: row[j])
            falling = sorted(range(start, end), key=lambda j: -row[j])
            bottom |= {(j, 0) for j in rising[:k]}
            top |= {(j, 0) for j in falling[:k]}
        tops.append(top)
        bottoms.append(bottom)
    for criterion, expected in [(tknc, tops), (bknc, bottoms)]:
        found = criterion(values, k, offsets=OFFSETS)
        assert items(found) == expected and found.items == 20


def test_one_layer_unless_told_otherwise():
    values = torch.tensor([[0.1, 0.2, 0.9, 0.8]])
    assert tknc(values, 2).bins.tolist() == [[-1, -1, 0, 0]]
    assert tknc(values, 1, offsets=[0, 2, 4]).bins.tolist() == [[-1, 0, 0, -1]]


# ---- coverage of sets

@pytest.fixture
def criteria(train, values):
    seen = boundaries(train)
    return {"nac": nac(values, 1), "kmnc": kmnc(values, seen, 10), "nbc": nbc(values, seen),
            "tknc": tknc(values, 2, offsets=OFFSETS), "bknc": bknc(values, 3)}


@pytest.mark.parametrize("name", ["nac", "kmnc", "nbc", "tknc", "bknc"])
def test_coverage_and_counts(criteria, name):
    covered = criteria[name]
    sets = items(covered)
    assert covered.counts.tolist() == [len(row) for row in sets]
    assert cov.coverage(covered) == len(set.union(*sets)) / covered.items


def test_everything_and_nothing():
    assert cov.coverage(Covered(torch.tensor([[0, 1], [1, 0]]), 2)) == 1
    assert cov.coverage(Covered(torch.tensor([[-1, -1]]), 2)) == 0


# ---- orders

def greedy(sets):
    """The naive way: compare all inputs anew for every pick."""
    seen, picked = set(), []
    while True:
        gains = [len(row - seen) for row in sets]
        best = gains.index(max(gains))
        if not gains[best]:
            return picked
        picked.append(best)
        seen |= sets[best]


@pytest.mark.parametrize("name", ["nac", "kmnc", "nbc", "tknc", "bknc"])
def test_cam_is_greedy(criteria, name):
    covered = criteria[name]
    before = covered.bins.clone()
    expected = greedy(items(covered))
    assert 1 < len(expected) < 60
    order = cam(covered, fill="ctm")
    assert order.tolist()[:len(expected)] == expected
    rest = sorted(set(range(60)) - set(expected), key=lambda i: (-int(covered.counts[i]), i))
    assert order.tolist()[len(expected):] == rest
    assert cam(covered, fill=None).tolist() == expected
    assert torch.equal(covered.bins, before)


def test_cam_by_hand():
    # 0 covers most; then 2 adds two, 1 and 3 one each, 4 nothing
    covered = Covered(torch.tensor([[0, 0, 0, -1, -1, -1, -1], [0, 0, -1, 0, -1, -1, -1],
                                    [-1, -1, -1, -1, 0, 0, -1], [-1, -1, 0, -1, -1, -1, 0],
                                    [0, 0, -1, -1, -1, -1, -1]]))
    assert cam(covered, fill=None).tolist() == [0, 2, 1, 3]
    assert cam(covered, fill="ctm").tolist() == [0, 2, 1, 3, 4]
    assert ctm(covered).tolist() == [0, 1, 2, 3, 4]


def test_ties_go_to_the_lowest_index(generator):
    covered = Covered(torch.tensor([[1], [0], [1], [0], [1]]), 2)
    assert cam(covered, fill="ctm").tolist() == [0, 1, 2, 3, 4]
    assert ctm(covered).tolist() == [0, 1, 2, 3, 4]
    many = Covered(torch.zeros(500, 3, dtype=torch.int8))  # where an unstable sort shows
    assert ctm(many).tolist() == [*range(500)]


def test_random_fill_keeps_the_picks_and_is_repeatable(criteria, generator):
    covered = criteria["nbc"]
    picked = greedy(items(covered))
    one, same, other = (cam(covered, generator=generator(seed)).tolist() for seed in (1, 1, 2))
    assert one == same != other
    for order in (one, other):
        assert sorted(order) == [*range(60)] and order[:len(picked)] == picked
    assert one[len(picked):] != cam(covered, fill="ctm").tolist()[len(picked):]


def test_nothing_to_cover_leaves_the_fill(generator):
    covered = Covered(torch.full((6, 3), -1, dtype=torch.int8))
    assert cam(covered, fill=None).tolist() == []
    assert cam(covered, fill="ctm").tolist() == [*range(6)]
    assert sorted(cam(covered, generator=generator()).tolist()) == [*range(6)]


# ---- an independent implementation

def test_criteria_agree_with_dnn_tip(train, values):
    peer = pytest.importorskip("dnn_tip.neuron_coverage")
    seen = boundaries(train)
    layers = [layer.numpy() for layer in values.split([5, 7, 1, 7], 1)]
    low, high = ([side.numpy()] for side in seen)
    std = [np.zeros(20)]
    tip = dict(edges="low"), dict(strict=False)
    pairs = [(nac(values, 0.5), peer.NAC(0.5)),
             (kmnc(values, seen, 8, **tip[0]), peer.KMNC(low, high, 8)),
             (snac(values, seen, **tip[1]), peer.SNAC(high, std, 0)),
             (tknc(values, 2, offsets=OFFSETS), peer.TKNC(2))]
    for covered, criterion in pairs:
        scores, profiles = criterion(layers)
        assert np.array_equal(table(covered).reshape(profiles.shape), profiles)
        assert covered.counts.tolist() == scores.tolist()
    scores, profiles = peer.NBC(low, high, std, 0)(layers)
    covered = nbc(values, seen, **tip[1])
    assert np.array_equal((covered.bins == 0).numpy().reshape(60, 2, 20),
                          profiles.transpose(0, 2, 1))
    # by our defaults, extremes of the training data cover nothing, and those of it something
    assert nbc(values, seen).counts[:2].tolist() == [0, 0] and (scores[:2] > 0).all()


@pytest.mark.parametrize("name", ["nac", "kmnc", "nbc", "tknc", "bknc"])
def test_cam_agrees_with_dnn_tip(criteria, name):
    peer = pytest.importorskip("dnn_tip.prioritizers")
    covered = criteria[name]
    picked = len(cam(covered, fill=None))
    theirs = [int(i) for i in peer.cam(covered.counts.numpy(), table(covered))]
    ours = cam(covered, fill="ctm")
    assert ours[:picked].tolist() == theirs[:picked]
    # its sort is unstable, so that of the rest only the counts are told
    assert covered.counts[ours].tolist() == covered.counts[theirs].tolist()
    assert covered.counts[ctm(covered)].tolist() == covered.counts[
        [int(i) for i in peer.ctm(covered.counts.numpy())]].tolist()


# ---- bad input

@pytest.mark.parametrize("values, words", [
    (torch.zeros(0, 3), "at least one input"), (torch.zeros(3, 0), "at least one input"),
    (torch.zeros(3), r"shape \(3,\)"), (torch.zeros(2, 2, 2), r"shape \(2, 2, 2\)"),
    (torch.zeros(2, 3, dtype=torch.int64), "int64"),
    (torch.tensor([[0.0, 1.0, math.nan]]), "NaN or infinity in column 2"),
    (torch.tensor([[0.0, math.inf, -math.inf]]), "column 1")])
def test_bad_values(values, words):
    seen = boundaries(torch.rand(4, 3))
    for criterion in (boundaries, nac, lambda v: kmnc(v, seen), lambda v: nbc(v, seen),
                      lambda v: snac(v, seen), tknc, bknc):
        with pytest.raises(ValueError, match=words):
            criterion(values)


def test_values_too_large_to_add_up_are_finite():
    assert nac(torch.full((1, 3), 3e38)).bins.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("call, words", [
    (lambda v, p: kmnc(v[:, :3], p), "expected 20 neurons, as in the boundaries, got 3"),
    (lambda v, p: kmnc(v, p, 0), "sections"),
    (lambda v, p: kmnc(v, p, edges="hihg"), "did you mean 'high'"),
    (lambda v, p: snac(v, p, steps=0), "steps"), (lambda v, p: nac(v, math.inf), "threshold"),
    (lambda v, p: nac(v, 1.0, sigmoid=True), r"\(0, 1\)"), (lambda v, p: tknc(v, 0), "k: "),
    (lambda v, p: tknc(v, offsets=(0, 5, 5, 20)), "offsets"),
    (lambda v, p: tknc(v, offsets=(0, 5)), "rise from 0 to 20"),
    (lambda v, p: cam(nac(v)), "generator"),
    (lambda v, p: cam(nac(v), fill="cmt"), "did you mean 'ctm'"),
    (lambda v, p: ctm(Covered(torch.zeros(0, 3, dtype=torch.int8))), "at least one input"),
    (lambda v, p: cam(Covered(torch.zeros(3, 3)), fill="ctm"), "float32"),
    (lambda v, p: cov.coverage(Covered(torch.tensor([[2]]), 2)), "-1 to 1, got 2 to 2")])
def test_bad_arguments(train, values, call, words):
    with pytest.raises(ValueError, match=words):
        call(values, boundaries(train))


def test_tables_and_reversed_arrays(values):
    table = np.asarray(values)
    usual = boundaries(table[::-1])
    for given in (pd.DataFrame(table), table[::-1][::-1]):
        assert torch.equal(nac(given).bins, nac(table).bins)
        assert torch.equal(kmnc(given, usual, 5).bins, kmnc(table, usual, 5).bins)


@pytest.mark.parametrize("order", [ctm, lambda given: cam(given, fill="ctm")])
@pytest.mark.parametrize("given", [torch.ones(3, 2, dtype=torch.bool), np.ones((3, 2))])
def test_values_are_not_what_they_cover(order, given):
    with pytest.raises(TypeError, match="covered: expected a Covered, as nac and the other"):
        order(given)
