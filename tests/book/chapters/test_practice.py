"""Questions to the reader: their answers come from records, and a wrong answer is named."""

import pytest

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


@pytest.mark.parametrize("sure, said", [(1, False), (0, True)])
def test_a_bet_says_what_a_correction_leaves_where_that_differs(monkeypatch, sure, said):
    claim = published.claims("nss")[0]
    monkeypatch.setattr(practice.verdicts, "verdict", lambda c: verdicts.Verdict(
        claim, "a state", 1, 0, 4, sure, 0, None, ""))
    assert (f"After correction for many tests, it holds in {sure}" in practice.bet(claim.id).why) == said


def test_a_bet_on_what_nobody_has_run_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("DNNLIB_BOOK", str(tmp_path))  # a reader's own, and empty
    made = practice.bet(published.claims("nss")[0].id)
    assert made.options == () and "three seeds yet" in made._repr_html_()


def test_no_bet_on_what_nobody_claims():
    with pytest.raises(ValueError, match="got 'no-claim'"):
        practice.bet("no-claim")
