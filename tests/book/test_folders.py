import pytest

from dnnlib.book import folders


def test_a_command_that_fails_shows_its_reason_and_not_its_words(tmp_path):
    with pytest.raises(RuntimeError) as failed:
        folders.command(tmp_path, "rank", {"by": "gini", "outputs": "none.npy"})
    assert str(failed.value).startswith("dnnlib rank ended with exit code 1: ")
    assert "none.npy" in str(failed.value) and "--by" not in str(failed.value)
