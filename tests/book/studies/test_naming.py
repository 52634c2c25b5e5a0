"""Keys of fuzzers, as columns of rows and back."""

import pandas as pd
import pytest

from dnnbook import studies
from dnnbook.studies import FuzzerKey


@pytest.mark.parametrize("key, columns", [
    (FuzzerKey("noise"), {"fuzzer": "noise"}),
    (FuzzerKey("deepsensor", "excitable"), {"fuzzer": "deepsensor", "swarm": "excitable"}),
    (FuzzerKey("deepxplore", "single"), {"fuzzer": "deepxplore", "reading": "single"})])
def test_a_key_becomes_columns_and_back(key, columns):
    assert key.columns == columns
    assert studies.keys(pd.DataFrame([columns, {"quantity": "accuracy"}])).tolist() == [key, None]


def test_a_fuzzer_with_one_reading_has_no_other():
    with pytest.raises(ValueError, match="got 'paper' of dlfuzz"):
        FuzzerKey("dlfuzz", "paper")
