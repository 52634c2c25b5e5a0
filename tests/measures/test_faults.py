import numpy as np
import pytest
from dnn_tip import apfd as tip
from sklearn.metrics import roc_auc_score

from dnnlib.measures import faults
from dnnlib.selection import top


@pytest.fixture
def case():
    rng = np.random.default_rng(3)
    return rng.random(200) < 0.2, rng.permutation(200)


def test_rate_is_that_of_the_selection(case):
    wrong, order = case
    for rate in (0.05, 0.29, 1.0):
        chosen = top(order, rate).numpy()
        assert faults.fault_detection_rate(wrong, order, rate) == wrong[chosen].mean()


def test_no_order_beats_the_best(case):
    wrong, order = case
    best = np.argsort(~wrong, kind="stable")
    for rate in (0.1, 0.5):
        assert faults.fault_detection_rate(wrong, best, rate) == faults.best_rate(wrong, rate)
        assert faults.fault_detection_rate(wrong, order, rate) < faults.best_rate(wrong, rate)


def test_random_order_expects_the_share_of_faults(case):
    wrong, _ = case
    rng = np.random.default_rng(0)
    found = [faults.fault_detection_rate(wrong, rng.permutation(200), 0.1) for _ in range(2000)]
    assert np.mean(found) == pytest.approx(wrong.mean(), abs=4 * np.std(found) / 2000**0.5)


def test_apfd_is_dnn_tips(case):
    wrong, order = case
    assert faults.apfd(wrong, order) == pytest.approx(tip.apfd_from_order(wrong, order))


def test_apfd_without_faults_is_undefined():
    assert np.isnan(faults.apfd([False, False], [0, 1]))


def test_roc_area_is_scikit_learns_with_ties(case):
    wrong, order = case
    for score in (order, order // 20):
        assert faults.roc_area(wrong, score) == pytest.approx(roc_auc_score(wrong, score))
    assert np.isnan(faults.roc_area([True, True], [0.1, 0.2]))


def test_roc_area_of_a_wrong_score(case):
    wrong, _ = case
    with pytest.raises(ValueError, match="expected 200 numbers, got shape \\(2,\\), 1 of them NaN"):
        faults.roc_area(wrong, [0.5, np.nan])


def test_types_tell_both_classes_apart():
    pairs = [(t, p) for t in range(4) for p in range(4)]
    kinds = faults.fault_types(*zip(*pairs), classes=4)
    assert (kinds[[t == p for t, p in pairs]] == -1).all()
    assert len(set(kinds) - {-1}) == 12


def test_coverage_of_types_against_sets(case):
    _, order = case
    types = np.random.default_rng(1).integers(-1, 12, 200)
    there = set(types) - {-1}
    rates = [0.05, 0.1, 0.5, 1.0]
    found = faults.fault_type_coverage(types, order, rates)
    sets = [set(types[order[:round(200 * rate)]]) - {-1} for rate in rates]
    assert found == pytest.approx([len(s) / len(there) for s in sets])
    assert found[-1] == 1


def test_random_orders_show_the_expected_share_of_types():
    rng = np.random.default_rng(1)
    types = np.where(rng.random(200) < 0.3, rng.geometric(0.2, 200), -1)
    rates = [0.05, 0.2, 1.0]
    found = [faults.fault_type_coverage(types, rng.permutation(200), rates) for _ in range(2000)]
    error = 4 * np.std(found, axis=0) / 2000**0.5
    assert (abs(faults.expected_coverage(types, rates) - np.mean(found, axis=0)) <= error).all()
    assert np.isnan(faults.expected_coverage([-1, -1], [0.5])).all()


def test_types_without_a_fault_have_no_coverage():
    assert np.isnan(faults.fault_type_coverage([-1, -1], [0, 1], [0.5])).all()


@pytest.mark.parametrize("call, message", [
    (lambda: faults.apfd([True, False], [0, 0]), "order: expected a permutation of range"),
    (lambda: faults.apfd([1, 0], [0, 1]), "wrong: expected booleans"),
    (lambda: faults.apfd(np.zeros(0, bool), []), "wrong: expected booleans"),
    (lambda: faults.fault_detection_rate([True, False], [0, 1], 0.2), "0.2 of 2 inputs is none"),
    (lambda: faults.best_rate([True], 1.5), "rate: expected a share"),
    (lambda: faults.fault_types([0, 5], [0, 1], 3), "labels: expected classes 0 to 2"),
    (lambda: faults.fault_types([0, 1], [0], 3), "predicted: expected 2"),
])
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
