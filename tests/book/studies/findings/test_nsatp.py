import pandas as pd
import pytest

from dnnbook.studies.findings import nsatp


def row(value, quantity, distance=None, *, model="net2", seed=0, **more):
    return {"model": model, "dataset": "mnist", "seed": seed, "quantity": quantity,
            "distance": distance, "value": value} | more


def fitted(value, distance, seed=0, points="examples", fit="loglinear"):
    return row(value, "correlation", distance, seed=seed, points=points, fit=fit)


@pytest.fixture
def fits():
    return pd.DataFrame([
        fitted(0.2, "pd"), fitted(0.6, "pd", seed=1), fitted(0.3, "pv"), fitted(0.31, "pv", seed=1),
        fitted(0.9, "pd", points="bins"), fitted(0.8, "pd", fit="curve"), fitted(1.0, "certainty"),
        row(-0.5, "spearman", "pd"), row(-0.1, "spearman", "pd", seed=1), row(0.7, "accuracy"),
        row(0.9, "accuracy", seed=1)])


def test_a_fit_is_averaged_over_its_seeds_alone(fits):
    found = nsatp.fit(fits, "correlation")
    assert found.loc[("net2", "mnist")].to_dict() == pytest.approx({"pd": 0.4, "pv": 0.305})
    assert nsatp.fit(fits, "correlation", "bins")["pd"].tolist() == [0.9]
    assert nsatp.fit(fits, "correlation", fitted="curve")["pd"].tolist() == [0.8]


def test_the_cell_whose_seeds_differ_most(fits):
    assert nsatp.furthest_apart(nsatp.by_seed(fits, "correlation", "examples")) == (
        "net2", "mnist", "pd")


def test_the_weakest_order_and_the_range_of_accuracies(fits):
    assert nsatp.rank_correlations(fits)["pd"].tolist() == [-0.1]
    assert nsatp.accuracies(fits).loc[("net2", "mnist")].tolist() == pytest.approx([0.7, 0.8, 0.9])


def test_slopes_beside_the_printed_ones():
    printed = pd.DataFrame([row(-2.0, "b", "pd"), row(-9.0, "b", "pv"), row(0.5, "a", "pd"),
                            row(-1.0, "b", "pd", model="net1")])
    ours = pd.Series({("net2", "mnist"): -5.0}).rename_axis(nsatp.PAIR)
    assert nsatp.beside_printed(ours, printed).values.tolist() == [[-5.0, -2.0, 2.5]]


def test_savings_are_of_one_unit():
    rows = pd.DataFrame([row(10.0, "inc", "pd", definition="samples"),
                         row(30.0, "inc", "pd", definition="samples", seed=1),
                         row(90.0, "inc", "pd", definition="examples"),
                         row(70.0, "f_measure_ranked", "pd", definition="samples")])
    assert nsatp.savings(rows, "inc").tolist() == [20.0]
    assert nsatp.savings(rows, "inc", "examples").tolist() == [90.0]


def test_in_which_share_of_the_seeds_another_distance_is_above_pd():
    rows = pd.DataFrame([row(v, "slope", d, seed=s) for s, values in enumerate(((3, 2, 1), (3, 4, 1)))
                         for v, d in zip(values, nsatp.DISTANCES)])
    assert nsatp.seeds_above_pd(rows, "slope").tolist() == [0.5]
    assert nsatp.by_distance(rows, "slope").loc[("net2", "mnist")].to_dict() == {
        "pd": 3, "pv": 3, "pe": 1}
