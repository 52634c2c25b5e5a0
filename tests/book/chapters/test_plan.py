"""The plan of a sweep: shared parts first, hours, and workers that memory carries."""

import pytest

from dnnbook.chapters import plan
from dnnbook.chapters.sweeps import Cell


def cell(**values):
    needs = {name: values.pop(name) for name in ("minutes", "memory_gib") if name in values}
    return Cell(None, values, **needs)


def test_one_cell_of_each_network_comes_first_and_none_is_lost():
    cells = [cell(model_name=m, seed=s, rate=r) for m in "ab" for s in (0, 1) for r in (5, 10, 15)]
    ordered = plan.in_order(cells)
    assert [(c.values["model_name"], c.values["seed"]) for c in ordered[:4]] == [
        ("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert all(c.values["rate"] == 5 for c in ordered[:4])
    assert ordered[4:] == [c for c in cells if c.values["rate"] != 5]


def test_cells_that_share_nothing_known_keep_their_order():
    cells = [cell(rate=r) for r in (3, 1, 2)]
    assert plan.in_order(cells) == cells


def test_hours_are_summed_and_unknown_if_one_is():
    assert plan.hours([cell(minutes=90), cell(minutes=30.0)]) == 2
    assert plan.hours([]) == 0
    assert plan.hours([cell(minutes=90), cell()]) is None


@pytest.mark.parametrize("gib, cores, expected", [(40, 4, 4), (13, 4, 2), (7, 4, 1), (1, 4, 1)])
def test_workers_are_as_many_as_memory_carries(gib, cores, expected):
    cells = [cell(memory_gib=6), cell(memory_gib=2), cell()]
    assert plan.workers(cells, available=gib * plan.GIB, cores=cores) == expected


def test_without_a_need_of_memory_there_is_one_worker_for_each_core():
    assert plan.workers([cell()], available=1, cores=3) == 3


def test_the_memory_of_this_machine_is_asked_for_where_a_cell_needs_it():
    assert plan.workers([cell(memory_gib=1e6)], cores=8) == 1
