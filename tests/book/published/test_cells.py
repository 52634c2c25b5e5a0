import pandas as pd
import pytest

from dnnbook import published
from dnnbook.published import cells


@pytest.mark.parametrize("claim", published.claims(), ids=lambda claim: claim.id)
def test_the_number_of_cells_follows_from_the_papers_list(claim):
    assert cells.count(claim) == claim.expected
    assert cells.networks(claim)


def test_what_is_no_cell_of_the_paper_is_left_out():
    claim = next(c for c in published.claims() if c.id == "nsatp-rq2-better")
    rows = pd.DataFrame([("mnist", "net1", "pd"), ("mnist", "net1", "renyi"), ("mnist", "mine", "pd"),
                         ("digits", "net1", "pd")], columns=["dataset", "model", "distance"])
    assert cells.within(claim, rows).index.tolist() == [0]
