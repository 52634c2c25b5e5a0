"""Questions to the reader: their answers come from records, and a wrong answer is named."""

import numpy as np
import pytest
import torch

from dnnbook import published
from dnnbook.chapters import practice
from dnnbook.records import verdicts


def test_a_quiz_is_the_same_each_time_and_marks_one_option():
    made = [practice.quiz("More or <less>?", {"More": True, "Less": 1 > 2}, "It grows.")
            for _ in range(2)]
    first, second = (quiz._repr_html_() for quiz in made)
    assert first == second and "script" not in first and "More or &lt;less&gt;?" in first
    assert first.count('class="right"') == 1 and first.count("Yes. It grows.") == 1
    assert first.count('class="wrong"') == 1 and first.count("No. It grows.") == 1


@pytest.mark.parametrize("options", [{"A": True, "B": True}, {"A": False, "B": False}, {"A": True}])
def test_a_quiz_needs_exactly_one_right_option_of_two_or_more(options):
    with pytest.raises(ValueError, match="one is right"):
        practice.quiz("Which?", options, "Because.")


def judged(monkeypatch, holds, fails, run):
    claim = published.claims("nss")[0]
    monkeypatch.setattr(practice.verdicts, "verdict", lambda c: verdicts.Verdict(
        claim, "a state", holds, fails, run, holds, fails, None, ""))
    made = practice.bet(claim.id)
    assert claim.statement in made.question and "a state" in made.why
    return next(text for text, right in made.options if right)


@pytest.mark.parametrize("holds, fails, run, right", [
    (4, 0, 4, "In all of them"), (1, 3, 4, "In some of them"), (0, 2, 4, "In none of them"),
    (1, 0, 1, "It holds"), (0, 1, 1, "The opposite holds"),
    (0, 0, 1, "The seeds are too far apart to tell")])
def test_a_bet_is_won_by_the_verdict(monkeypatch, holds, fails, run, right):
    assert judged(monkeypatch, holds, fails, run) == right


def test_a_bet_on_what_nobody_has_run_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("DNNLIB_BOOK", str(tmp_path))  # a reader's own, and empty
    made = practice.bet(published.claims("nss")[0].id)
    assert made.options == () and "three seeds yet" in made._repr_html_()


def test_no_bet_on_what_nobody_claims():
    with pytest.raises(ValueError, match="got 'no-claim'"):
        practice.bet("no-claim")


def test_a_right_answer_and_none_are_told(capsys):
    practice.check(None, 3)
    practice.check(torch.tensor([1.0, 2.0]), np.array([1, 2]))
    practice.check(sum, lambda x: x[0] + x[1], ([1, 2],), ([5, 5],))
    assert capsys.readouterr().out == "No answer yet.\nRight.\nRight.\n"


@pytest.mark.parametrize("answer, truth, cases, told", [
    (lambda x: x, lambda x: 2 * x, [(0.0,), (1.5,)], "for 1.5 expected 3.0, got 1.5"),
    ([1.0], [1.0, 1.0], [], r"expected \[1.0, 1.0\], got \[1.0\]")])
def test_a_wrong_answer_is_named_with_its_case(answer, truth, cases, told):
    with pytest.raises(AssertionError, match=told):
        practice.check(answer, truth, *cases)


def test_a_function_needs_cases_and_a_value_none():
    for truth, cases in ((lambda x: x, []), (3, [(1,)])):
        with pytest.raises(TypeError, match="cases"):
            practice.check(None, truth, *cases)
