# %% [markdown]
# # Which rules changed after the runs?
#
# **The question.** Some of the first rules of our {term}`claims <claim>` turned out to be unfair: too
# generous, too strict, or on the wrong scale. Some of our procedures turned out to be wrong. So we changed
# them: what did these *amendments* do to the {term}`verdicts <verdict>`?

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from dnnbook import places, published
from dnnbook.chapters.statements import says
from dnnbook.display import plots, tables, verdict_plots
from dnnbook.records import intervals, verdicts

plots.style()

# %% tags=["hide-input", "records"]
RANK = {"not reproduced": 0, "undecided": 1, "not run": 1, "partly": 2, "reproduced where run": 3, "reproduced": 4}
first, previous = (pd.read_csv(places.results_dir() / f"scoreboard_{when}.csv", index_col="id") for when in ("first", "before"))
now = verdicts.scoreboard()
words = verdict_plots.first_words(now["verdict"])
moved, since = (words.map(RANK) - verdict_plots.first_words(board["verdict"]).map(RANK).reindex(now.index)
                for board in (previous, first))

# %% tags=["hide-input", "statements"]
known = [claim for claim in first.index if claim in words.index]
other = first["verdict"].loc[known].ne(words.loc[known])
says(f"**The answer.** Of the {len(first)} claims that had a first verdict, {int(other.sum())} have another verdict now.",
     ("So most claims keep their verdict.", other.mean() < 0.5),
     f"Of those that changed, {int((since > 0).sum())} say more for the claim than before, and {int((since < 0).sum())} say less.",
     f"Since then, {len(now) - len(known)} claims were added.")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Verdicts by the first rules, on the records of that time, and by the rules of today, on the records of today. Those claims of each paper that have both.", "name": "fig-amendments"}}
verdict_plots.before_after(first, now, published.PAPERS)
plt.show()

# %% [markdown]
# ## What changed
#
# The first claims of the papers got their rules before any run was kept. Others were added later, when
# records of most of their experiments existed already. We chose no amendment for its verdict. The table gives the
# reason of each: the paper's words, those of a method's authors, statistics, or a measurement of ours.
# An amendment that concerns statistics applies to all claims alike.

# %% tags=["hide-input"]
amendments = dict(enumerate(published.amendments(), start=1))
tables.sentences(pd.DataFrame([
    {"number": number, "date": a.date, "from and to": a.what, "why": a.reason,
     "claims": "all" if a.claims == "all" else str(len(a.claims))}
    for number, a in amendments.items()]).set_index("number"))

# %% [markdown]
# ## Before and after
#
# *First* is the verdict of the first rules, on the {term}`records <record>` of that time. *Now* is the
# verdict of the amended rules on today's records, some of which were made again since then. The number of
# {term}`cells <cell>` that the paper has is in brackets. Claims that were added later have no first verdict.
# *By* names the amendments above that concern the claim, beside those that concern all.

# %% tags=["hide-input"]
cells = "cells (paper's)"
both = pd.DataFrame({
    "claim": now["claim"],
    "first": (first["verdict"] + ": " + first[cells]).reindex(now.index).fillna("(added later)"),
    "now": now["verdict"] + ": " + now[cells],
    "by": [", ".join(str(number) for number, a in amendments.items()
                     if a.claims != "all" and claim in a.claims) for claim in now.index]})
changed = first["verdict"].reindex(now.index).ne(verdict_plots.first_words(now["verdict"]))
tables.sentences(both[changed].set_index("claim"))

# %% tags=["hide-input"]
tables.sentences(both[~changed].set_index("claim"))

# %% [markdown]
# ## The amendments of 27 November 2026
#
# They were written before the runs with five seeds for each cell. These are the claims whose verdict has changed
# since: by these amendments, by later ones, or by records that were added. Where the numbers of cells differ, records
# were added. A verdict goes *up* if it says more for the claim than before. *Undecided* is the
# old word for *too few runs* and *nothing to compare*, and *partly* that for *mostly* and *partly, some fail*:
# a new word alone is no change.

# %% tags=["hide-input", "statements"]
says(f"Of {len(previous)} claims, {int((moved > 0).sum())} went up and {int((moved < 0).sum())} went down.")

# %% tags=["hide-input"]
tables.sentences(pd.DataFrame({
    "claim": now["claim"], "before": previous["verdict"] + ": " + previous[cells],
    "after": now["verdict"] + ": " + now[cells],
    "by": [", ".join(str(number) for number, a in amendments.items() if a.date == "2026-11-27"
                     and (a.claims == "all" or claim in a.claims)) for claim in now.index]})[
                         moved.fillna(0) != 0].set_index("claim"))

# %% [markdown]
# ## Why not one spread for all cells?
#
# If the cells of a claim had the same spread, we could take one spread from all of them. Bartlett's test
# asks whether spreads are the same. We applied it to every claim with at
# least three cells, on the scale of the claim.

# %% tags=["hide-input", "statements"]
p = []
for claim in published.claims():
    with np.errstate(divide="ignore", invalid="ignore"):  # a ratio of 0 has no logarithm
        values = [intervals.SCALES[claim.scale].forward(group.to_numpy())
                  for _, group in verdicts.cells(claim)
                  if len(group) >= verdicts.SEEDS and group.notna().all()]
    values = [v for v in values if np.isfinite(v).all() and np.ptp(v) > 0]
    if len(values) >= 3:
        p.append(stats.bartlett(*values).pvalue)
unlike = sum(intervals.holm(p))
says((f"In {sum(v < 0.05 for v in p)} of {len(p)} claims, the spreads of the cells differ by more than "
      f"chance. In {unlike} of them they do so even after Holm's correction over the claims.",
      unlike > 0 and sum(v < 0.05 for v in p) > stats.binom.ppf(0.95, len(p), 0.05)),
     "For these claims one spread would be wrong. So variances are moderated: how much the cells "
     "borrow follows from how much they differ.")
