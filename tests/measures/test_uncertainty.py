import itertools

import numpy as np
import pytest
import scipy.stats
import torch

from dnnlib.measures import uncertainty as u

# NSATP's two worked vectors, and the PD and PV it prints for them; its digits are cut or rounded
VECTORS = [([0, 0, 0, .18, .81, 0, 0, 0, .01, 0], 0.718, 0.589),
           ([0, 0, 0, 0, .95, .01, 0, 0, .01, .03], 0.932, 0.804)]


@pytest.fixture
def p():
    return torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(10, 0.3), 200))


@pytest.mark.parametrize("vector, pd, pv", VECTORS)
def test_worked_vectors(vector, pd, pv):
    assert u.probability_difference([vector]).item() == pytest.approx(pd, abs=5.1e-4)
    assert u.probability_variance([vector]).item() == pytest.approx(pv, abs=5.1e-4)


def test_pd_against_its_sum_written_out(p):
    for row, value in zip(p[:20].tolist(), u.probability_difference(p)):
        s = sorted(row, reverse=True)
        expected = sum((s[i - 1] - s[i]) / i for i in range(1, len(s)))
        assert value.item() == pytest.approx(expected, abs=1e-12)


def test_pv_orders_as_deepgini_does(p):
    gini = 1 - p.square().sum(1)
    assert torch.equal(u.indecision(p, "pv").argsort(descending=True, stable=True),
                       gini.argsort(descending=True, stable=True))
    assert torch.allclose(u.probability_variance(p), 1 - 1 / 10 - gini, atol=1e-12)


def test_pe_is_scipys_entropy(p):
    p = torch.cat([p, torch.eye(10, dtype=p.dtype)])  # 0 log 0 too
    assert np.allclose(u.probability_entropy(p), scipy.stats.entropy(p, axis=1), atol=1e-12)
    assert np.allclose(u.certainty(p), 1 - scipy.stats.entropy(p, axis=1, base=10), atol=1e-12)


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_extremes(n):
    p = torch.stack([torch.full((n,), 1 / n, dtype=torch.float64),
                     torch.eye(n, dtype=torch.float64)[n - 1]])
    for measure, ends in ((u.probability_difference, (0, 1)), (u.certainty, (0, 1)),
                          (u.probability_variance, (0, 1 - 1 / n)),
                          (u.probability_entropy, (np.log(n), 0))):
        assert measure(p).tolist() == pytest.approx(ends, abs=1e-9)


@pytest.mark.parametrize("by", u.MEASURES)
def test_order_of_classes_does_not_matter(p, by):
    turned = p[:, torch.randperm(10, generator=torch.Generator().manual_seed(0))]
    assert torch.allclose(u.MEASURES[by](p), u.MEASURES[by](turned), atol=1e-12)


@pytest.mark.parametrize("by", u.MEASURES)
def test_indecision_puts_the_undecided_first_and_keeps_ties(by):
    sure, unsure, flat = [0.75, 0.25], [0.625, 0.375], [0.5, 0.5]  # exact in binary
    rows = [sure, flat, unsure, sure, flat] * 5
    expected = [i for kind in (flat, unsure, sure) for i, row in enumerate(rows) if row == kind]
    assert u.indecision(rows, by).argsort(descending=True, stable=True).tolist() == expected


BAD = {"nan": [[float("nan"), 1.0]], "not summing to one": [[0.5, 0.4]], "negative": [[-0.5, 1.5]],
       "one class": [[1.0]], "empty": torch.zeros(0, 10), "one dimension": [0.5, 0.5]}


@pytest.mark.parametrize("function, bad", [*itertools.product(
    [*u.MEASURES.values(), u.certainty, u.indecision], BAD)])
def test_what_is_no_distribution_is_refused(function, bad):
    with pytest.raises(ValueError, match="^p: expected"):
        function(BAD[bad])


def test_unknown_distance():
    with pytest.raises(ValueError, match="did you mean 'pd'"):
        u.indecision([[0.5, 0.5]], "pdd")
