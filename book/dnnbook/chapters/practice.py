"""Questions that a reader answers: before a plot by a guess, after the chapter by code.

A quiz is plain HTML whose options open by a click or a key. It needs no script, so it works in the
built page, in JupyterLab and without a network; and it has no random names, so that a chapter made
twice gives the same bytes. jupyterquiz draws new names for each run, has its questions in scripts
alone, and cannot say that the records no longer agree with its answer.
"""

from dataclasses import dataclass
from html import escape

from dnnbook import published
from dnnbook.chapters.answers import check
from dnnbook.records import verdicts
from dnnlib import files

__all__ = ["Quiz", "bet", "check", "quiz"]


@dataclass(frozen=True)
class Quiz:
    """A question and its options (text, whether it is right), and ``why``, shown with each.

    Without options ``why`` stands alone: why there is nothing to choose from.
    """

    question: str
    options: tuple[tuple[str, bool], ...]
    why: str

    def _repr_html_(self) -> str:
        group = f"quiz-{files.digest(self.question)[:8]}"  # one option is open at a time
        options = "".join(
            f'<details class="{"right" if right else "wrong"}" name="{group}">'
            f"<summary>{escape(text)}</summary>"
            f"<p>{'Yes.' if right else 'No.'} {escape(self.why)}</p></details>"
            for text, right in self.options)
        return (f'<div class="quiz"><p><strong>Predict.</strong> {escape(self.question)}</p>'
                f"{options or f'<p>{escape(self.why)}</p>'}</div>")

    def __repr__(self) -> str:
        return "\n".join([f"Predict. {self.question}", *(f"- {text}" for text, _ in self.options)])


def quiz(question: str, options: dict[str, bool], why: str) -> Quiz:
    """A question with options, each beside the condition under which it is the right one.

    The conditions come from records or a computation, so that other records ask for another
    answer: ``ValueError`` if not exactly one of the options is right. ``why`` explains the answer.

    >>> quiz("Is 91 prime?", {"Yes": False, "No": 91 % 7 == 0}, "It is 7 times 13.")
    Predict. Is 91 prime?
    - Yes
    - No
    """
    right = [text for text, holds in options.items() if bool(holds)]
    if len(options) < 2 or len(right) != 1:
        raise ValueError(f"quiz {question!r}: expected two options or more of which one is right, "
                         f"got {len(options)} with {right} right")
    return Quiz(question, tuple((text, bool(holds)) for text, holds in options.items()), why)


def bet(claim: str) -> Quiz:
    """What will the records say of a claim? The answer is that of its verdict.

    Where no setting has three seeds yet, as in a folder of results of one's own, it says so.
    Raises ``ValueError`` for an id that no claim has.
    """
    known = {c.id: c for c in published.claims()}
    if claim not in known:
        raise ValueError(f"claim: expected the id of one, such as {next(iter(known))!r}, "
                         f"got {claim!r}")
    v = verdicts.verdict(known[claim])
    said = f"“{known[claim].statement}”"
    if not v.run:
        return Quiz(f"The paper says: {said}", (), "No setting of it has been run with three seeds "
                    "yet, so that the records have no answer.")
    judged = "A rule judges this claim of the paper in"
    if v.run == 1:
        question = f"{judged} one setting: {said} What comes out?"
        options = {"It holds": v.holds == 1, "The opposite holds": v.fails == 1,
                   "The seeds are too far apart to tell": v.holds + v.fails == 0}
    else:
        question = f"{judged} {v.run} settings: {said} Where does it hold?"
        options = {"In all of them": v.holds == v.run, "In some of them": 0 < v.holds < v.run,
                   "In none of them": v.holds == 0}
    why = (f"Settings in which it holds: {v.holds}; in which it fails: {v.fails}; in which "
           f"nothing is decided: {v.run - v.holds - v.fails}. ")
    if (v.sure_holds, v.sure_fails) != (v.holds, v.fails):
        why += (f"After correction for many tests, it holds in {v.sure_holds} and fails in "
                f"{v.sure_fails}. ")
    why += f"The verdict: {v.state}."
    return quiz(question, options, why)
