"""The map of what was run, on records that the tests write."""

import pytest

from dnnbook import published
from dnnbook.chapters import evidence_map, notebooks
from dnnbook.records import records
from dnnbook.records.records import Record


@pytest.fixture
def rq1(folders):
    """NSATP's first question for Net-1: three seeds of MNIST, of which PD holds; one of CIFAR-10."""
    def save(dataset, seed, value):
        row = {"quantity": "b", "fit": "loglinear", "points": "examples", "distance": "pd",
               "value": value}
        records.save(Record("nsatp/rq1", {
            "dataset": dataset, "model": "net1", "seed": seed, "trials": 100, "patch": "random",
            "recipe": "nsatp"}, [row, row | {"quantity": "correlation", "value": 0.5},
                                 row | {"quantity": "spearman", "value": -0.5}], {}))
    for seed in range(3):
        save("mnist", seed, -1.0 - seed / 10)
    save("cifar10", 0, -1.0)


def field(table, dataset, model="net1", experiment="nsatp/rq1"):
    return table[(table["dataset"] == dataset) & (table["model"] == model)
                 & (table["experiment"] == experiment)].iloc[0]


def test_a_field_tells_its_seeds_and_what_its_cells_decide(rq1):
    table = evidence_map.fields("nsatp")
    mnist, cifar = field(table, "mnist"), field(table, "cifar10")
    assert (mnist["state"], mnist["seeds"], mnist["holds"]) == ("run", 3, 1)
    assert (cifar["state"], cifar["seeds"], cifar["holds"]) == ("few seeds", 1, 0)
    assert field(table, "cifar100")["state"] == "blank"


def test_a_network_for_which_the_paper_prints_nothing_is_no_blank(folders):
    table = evidence_map.fields("nsatp")
    assert set(table.query("experiment == 'nsatp/motivation'")["state"]) <= {"", "blank"}
    assert field(table, "cifar100", experiment="nsatp/motivation")["state"] == ""


def test_what_is_missing_comes_with_its_command_and_hours(rq1):
    found = evidence_map.missing(evidence_map.fields("nsatp"))
    lines = found[found["command"].str.startswith("dnnbook run nsatp/02")].set_index("command")
    assert not any("dataset mnist -p model_name net1" in name for name in lines.index)
    line = lines.loc["dnnbook run nsatp/02 -p profile paper -p dataset cifar10 -p model_name net1"]
    assert line["state"] == "few seeds" and line["hours, one core"] > 0


def test_the_page_has_a_bar_where_cells_were_judged_and_hours_where_not(rq1):
    page = evidence_map.Map(evidence_map.fields("nsatp"))._repr_html_()
    assert page.count("<tr>") == 1 + len(evidence_map.networks("nsatp"))
    assert 'class="holds" style="flex: 1"' in page and "1 seed" in page
    assert "not run; three seeds take about" in page and ".html" in page


def test_larger_runs_and_networks_that_no_table_names_are_listed_too(rq1):
    found = evidence_map.missing(evidence_map.fields("nsatp")).set_index("command")
    patches = found.index.str.contains("net2 -p patch evolved")
    assert patches.any() and (found[patches]["state"] == "blank").all()  # net2 was not run here
    speakers = evidence_map.missing(evidence_map.fields("deepsensor_excitable"))
    full = speakers[speakers["command"].str.contains("model_name resnet34 ")]  # ours are narrower
    assert full["state"].tolist() == ["blank"] and not speakers["command"].str.contains("nss/").any()


def test_what_was_run_smaller_than_a_sweep_has_it_is_larger(folders):
    for seed in range(3):
        records.save(Record("nss/repair", {"dataset": "mnist", "model": "lenet1_nss", "seed": seed}, [
            {"quantity": "gain", "rate": 20, "value": 1.0, "method": method, "recipe": "nss",
             "candidates": "random", "test": "clean", "pair": pair, "difference": "l1",
             "share": 10} for method, pair in (("nss", "remutated"), ("gini", None))], {}))
    found = evidence_map.missing(evidence_map.fields("nss"))
    line, = found[found["command"].str.contains("nss/05 .*dataset mnist .*lenet1_nss.*epochs 40")].itertuples()
    assert (line.state, line.seeds) == ("larger", 3)


def test_the_papers_sizes_are_of_experiments_that_are_there():
    assert set(published.scales()) <= set(notebooks.declaring())
