"""One record of each experiment within a budget, around replays that cost nothing."""

import pytest

from dnnbook.chapters import budget, notebooks, replay
from dnnbook.records import records
from dnnbook.records.records import Record


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(records, "_commit", lambda: "0123456789ab")


def saved(experiment: str, seconds: float, value: float = 50.0, **parameters):
    libraries = {"libraries": {"torch": "2"}, "revisions": {}, "threads": 1}
    return records.save(Record(experiment, parameters, [{"quantity": "fdr", "value": value}],
                               {"commit": "c", "seconds": seconds, **libraries}))


def again(path, *, cache, moved=0.0):
    """A replay without a run: every value moved by ``moved``."""
    record = records.read(path)
    made = Record(record.experiment, record.parameters,
                  [row | {"value": row["value"] + moved} for row in record.rows])
    return replay.Replay(path, record, made,
                         replay.compared(record, made, replay.seeds(record, path)))


def outcomes(minutes=10.0, costs=None, run=again) -> list[tuple[str, str]]:
    return [(one.record.rpartition("/")[0], one.outcome)
            for one in budget.each(replay.find([]), minutes, costs=costs or {}, run=run)]


def test_one_of_each_the_cheapest_first_and_what_does_not_fit_is_listed(folders):
    for experiment, seconds in (("toy/dear", 3000), ("toy/some", 90), ("toy/cheap", 30)):
        for seed in (0, 1):
            saved(experiment, seconds + 10 * seed, seed=seed)
    ran = []

    def run(path, *, cache):
        ran.append((path.parent.name, records.read(path).parameters["seed"], cache))
        return again(path, cache=cache)

    found = [*budget.each(replay.find([]), 10.0, costs={}, run=run)]
    assert [(one.record.split("/")[1], one.outcome) for one in found] == [
        ("cheap", "agrees"), ("some", "agrees"), ("dear", "did not fit")]
    assert [of[:2] for of in ran] == [("cheap", 0), ("some", 0)] and len({of[2] for of in ran}) == 1
    assert found[-1].minutes == 50 and not any(one.wrong for one in found)


def test_the_training_of_a_network_counts_until_one_has_trained_it(folders):
    one, other = ({"dataset": "digits", "model": name, "seed": 0} for name in ("a", "b"))
    for experiment, seconds in (("toy/x", 6), ("toy/y", 12)):
        saved(experiment, seconds, **one)
    saved("toy/z", 1, **other)
    costs = {budget.network(one): 4.0, budget.network(other): 6.0}
    assert outcomes(4.5, costs) == [("toy/x", "agrees"), ("toy/y", "agrees"),
                                    ("toy/z", "did not fit")]
    assert outcomes(3.0, costs) == [("toy/x", "did not fit"), ("toy/y", "did not fit"),
                                    ("toy/z", "did not fit")]


def test_beyond_the_spread_fails_unless_the_protocol_was_another(folders):
    for seed in (0, 1, 2):
        saved("toy/x", 1, 50.0 + seed, seed=seed)
        saved("nsatp/motivation", 1, 50.0 + seed, seed=seed)  # before pairs were of one class
    far = [*budget.each(replay.find([]), 10.0, costs={},
                        run=lambda path, cache: again(path, cache=cache, moved=40.0))]
    assert {one.record.split("/")[1]: (one.outcome, one.why, one.wrong) for one in far} == {
        "x": ("differs", "", True),
        "motivation": ("of another protocol", "one_class", False)}
    near = budget.each(replay.find([]), 10.0, costs={},
                       run=lambda path, cache: again(path, cache=cache, moved=0.5))
    assert {one.outcome for one in near} == {"agrees"}


def test_a_record_of_todays_protocol_is_taken_before_a_cheaper_one(folders):
    saved("nsatp/motivation", 1, seed=0)
    saved("nsatp/motivation", 60, seed=0, one_class=True)
    (one,) = budget.each(replay.find([]), 10.0, costs={}, run=again)
    assert one.done.record.parameters["one_class"] is True


def test_a_chapter_that_fails_is_named_and_stops_no_other(folders):
    saved("toy/x", 1, seed=0)
    saved("toy/y", 2, seed=0)

    def run(path, *, cache):
        if path.parent.name == "x":
            raise notebooks.CellFailed("toy/x: no such data")
        return again(path, cache=cache)

    found = [*budget.each(replay.find([]), 10.0, costs={}, run=run)]
    assert [one.outcome for one in found] == ["failed", "agrees"]
    assert found[0].wrong and "no such data" in found[0].why


def test_a_tree_with_changes_is_refused_before_anything_runs(folders, monkeypatch):
    monkeypatch.setattr(records, "_commit", lambda: "0123456789ab+changes")
    saved("toy/x", 1, seed=0)
    with pytest.raises(ValueError, match="expected a clean tree.*0123456789ab.changes"):
        outcomes()


def test_the_sweep_of_the_book_says_what_a_network_costs():
    costs = budget.trainings()
    assert costs[budget.network({"dataset": "mnist", "model": "net2",
                                  "recipe": "nsatp"})] > 1
    assert all(minutes > 0 for minutes in costs.values())


def test_a_run_at_paper_scale_says_what_it_took_the_book(folders):
    about = {"dataset": "mnist", "model": "net2"}
    assert "no record" in budget.of_a_run("toy/x", about)
    for seed, minutes in enumerate((2, 90, 5)):
        saved("toy/x", 60 * minutes, seed=seed, **about)
    saved("toy/x", 9999, seed=0, dataset="mnist", model="net1")
    assert budget.of_a_run("toy/x", about).startswith(
        "runs of this network in the book (3) took 2 to 90 min,")
