"""Saved outputs as other programs write them: what each column is taken for."""

import numpy as np
import pandas as pd
import pytest

from dnnlib import custom

N = 12
LOGITS = 2 * np.random.default_rng(0).normal(size=(N, 4))
P = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)


def table(values=P, **before):
    found = pd.DataFrame(values)
    for place, (name, column) in enumerate(before.items()):
        found.insert(place, name, column)
    return found


@pytest.mark.parametrize("sep, decimal", [(",", "."), (";", "."), (";", ","), ("\t", "."), ("|", ".")])
def test_separators_and_decimal_commas(tmp_path, sep, decimal):
    table(path=[f"{i:04d}" for i in range(N)]).to_csv(
        tmp_path / "p.csv", sep=sep, decimal=decimal, index=False)
    found = custom.read_outputs(tmp_path / "p.csv")
    assert np.allclose(found.probabilities, P) and found.names[:2] == ["0000", "0001"]
    assert found.said == ("4 columns taken as classes (0, 1, 2, 3); rows named by column 'path'",)


def test_a_table_without_headings_keeps_its_first_row(tmp_path):
    np.savetxt(tmp_path / "p.csv", P, delimiter=",")
    found = custom.read_outputs(tmp_path / "p.csv")
    assert np.allclose(found.probabilities, P) and found.names == [*map(str, range(N))]
    assert found.said == ("4 columns taken as classes, without headings; rows by number",)


def test_a_row_with_a_name_and_fractions_is_no_row_of_headings(tmp_path):
    table(path=[f"{i}.png" for i in range(N)]).to_csv(tmp_path / "p.csv", index=False, header=False)
    found = custom.read_outputs(tmp_path / "p.csv")
    assert np.allclose(found.probabilities, P) and found.names[0] == "0.png"


def test_the_index_of_pandas_is_no_class(tmp_path):
    pd.DataFrame(LOGITS, index=np.arange(N) + 3).to_csv(tmp_path / "z.csv")
    found = custom.read_outputs(tmp_path / "z.csv", probabilities=False)
    assert np.allclose(found.probabilities, P) and found.names[0] == "3"


def test_names_that_pandas_takes_for_nothing(tmp_path):
    names = ["NA", "null", "None", "nan", *map(str, range(N - 4))]
    table(path=names).to_csv(tmp_path / "p.csv", index=False)
    assert custom.read_outputs(tmp_path / "p.csv").names == names


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("other, said", [
    ({"label": np.arange(N) % 3}, "whole numbers in the column label"),
    ({"label": np.zeros(N, int)}, "the column label, which is called as labels are"),
    ({"Target": np.arange(N) % 3 + 0.5}, "the column Target, which is called as labels are"),
    ({"correct": np.arange(N) % 2 == 0}, "truth values in the column correct")])
def test_what_is_no_output_is_named(tmp_path, other, said, suffix):
    found = table(LOGITS, **other).rename(columns=str)
    target = tmp_path / f"z.{suffix}"
    found.to_csv(target, index=False) if suffix == "csv" else found.to_parquet(target)
    with pytest.raises(ValueError, match=said):
        custom.read_outputs(target, probabilities=False)


def test_a_class_that_is_never_predicted_stays_a_class(tmp_path):
    (tmp_path / "p.csv").write_text("a,b,c\n0.25,0.75,0\n0.5,0.5,0\n")
    assert custom.read_outputs(tmp_path / "p.csv").probabilities.shape == (2, 3)


def test_a_word_among_numbers_is_named(tmp_path):
    (tmp_path / "p.csv").write_text("a,b\n0.25,0.75\nbad,0.5\n0.5,0.5\n")
    with pytest.raises(ValueError, match="got 'bad'"):
        custom.read_outputs(tmp_path / "p.csv")


@pytest.mark.parametrize("factor, form, said", [(1, "%.2f", "rounded"), (100, "%.1f", "per cent")])
def test_rounded_and_per_cent_are_scaled_and_told(tmp_path, factor, form, said):
    (factor * table()).to_csv(tmp_path / "p.csv", index=False, float_format=form)
    found = custom.read_outputs(tmp_path / "p.csv")
    assert np.allclose(found.probabilities, P, atol=0.02)
    assert np.allclose(found.probabilities.sum(1), 1, atol=1e-12) and said in found.said[-1]


def test_scores_of_a_class_each_are_not_called_logits(tmp_path):
    np.save(tmp_path / "p.npy", np.full((3, 4), 0.6))
    with pytest.raises(ValueError, match="as if each class had its own"):
        custom.read_outputs(tmp_path / "p.npy")


def test_probabilities_are_no_logits(tmp_path):
    np.save(tmp_path / "p.npy", P)
    with pytest.raises(ValueError, match="leave --logits out"):
        custom.read_outputs(tmp_path / "p.npy", probabilities=False)


def test_rows_of_different_lengths_name_the_separator(tmp_path):
    (tmp_path / "p.csv").write_text("0.5;0.5\n0.5;0.5;1\n")
    with pytest.raises(ValueError, match="separated by semicolons"):
        custom.read_outputs(tmp_path / "p.csv")


@pytest.mark.parametrize("title", ["{}", "class_{}", "p{:02d}"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_are_in_the_order_of_their_numbers(tmp_path, title, start, suffix):
    """A program that sorts headings as text puts 10 before 2."""
    wide = np.random.default_rng(1).dirichlet(np.ones(12), size=N)
    given = pd.DataFrame(wide, columns=[title.format(i + start) for i in range(12)])
    given = given[sorted(given)]
    if suffix == "csv":
        given.to_csv(tmp_path / "p.csv", index=False)
    else:
        given.to_parquet(tmp_path / "p.parquet")
    found = custom.read_outputs(tmp_path / f"p.{suffix}")
    assert np.allclose(found.probabilities, wide) and found.names == [*map(str, range(N))]
    moved = "the columns of classes are put in the order of the numbers in their headings"
    assert (moved in found.said) == (title != "p{:02d}")


def test_numbers_that_count_no_classes_leave_columns_as_they_are(tmp_path):
    for titles in (["k7", "k3", "k9", "k4"], ["a1", "b0", "a2", "b3"], ["x", "y", "z", "w"]):
        pd.DataFrame(P, columns=titles).to_csv(tmp_path / "p.csv", index=False)
        found = custom.read_outputs(tmp_path / "p.csv")
        assert np.allclose(found.probabilities, P) and found.headings == (*titles,)


def test_names_in_another_order_than_the_headings(tmp_path):
    pd.DataFrame(P, columns=["dog", "cat", "ant", "bee"]).to_csv(tmp_path / "p.csv", index=False)
    found = custom.read_outputs(tmp_path / "p.csv")
    with pytest.raises(ValueError, match="where class 0 is dog, got ant"):
        found.check_names(["ant", "bee", "cat", "dog"])
    for names in (["dog", "cat", "ant", "bee"], ["Hund", "Katze", "Ameise", "Biene"]):
        found.check_names(names)
