# %% [markdown]
# # What do the papers leave open, and what does it change?
#
# **The question.** Where a paper's text allows more than one experiment, its chapter takes one
# {term}`reading` for the {term}`verdict` and runs the others beside it. Would another choice have
# led to another verdict?

# %% tags=["hide-input"]
from dataclasses import replace
from textwrap import fill, shorten

import matplotlib.pyplot as plt
import pandas as pd

from dnnbook import published
from dnnbook.chapters.statements import says
from dnnbook.display import plots
from dnnbook.display.tables import sentences
from dnnbook.records import verdicts
from dnnbook.studies.findings.synthesis import in_two_readings
from dnnbook.words import shown

plots.style()

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

luck = 1 - 0.95 ** 5
quiz("A claim is false under each of five readings, each tested with an error of 5 %. How likely is "
     "it to hold under at least one, if the tests are independent?",
     {"5 %": round(luck, 2) == 0.05, "23 %": round(luck, 2) == 0.23, "95 %": round(luck, 2) == 0.95},
     f"One minus 0.95 to the fifth power is {100 * luck:.0f} %.")

# %% tags=["hide-input", "records"]
OPEN = {
    "fit": ("least squares on ln Eff, or on Eff", ["loglinear", "curve"]),
    "points": ("points of a fit: images, or means over intervals", ["examples", "bins"]),
    "distance": ("PE as Eq. 3 prints it, or turned round and scaled",
                 [["pd", "pe", "pv"], ["pd", "certainty", "pv"]]),
    "definition": ("F-measure: perturbed samples tried, or images tried", ["samples", "examples"]),
    "pair": ("a candidate against its own fresh mutation, or against the original that it was "
             "made from", ["remutated", "original"]),
    "difference": ("how far activations are apart: as in the text, or as in the released code",
                   ["l1", "squared_normalised"]),
    "mutations": ("strength of the mutations: as in the text, or as in the released code",
                  ["paper", "released"]),
    "budget": ("no bound on the distance, or the chapter's small one", ["none", "paper", "near"]),
    "swarm": ("the swarm of the equations, or of the released code; guided by Shapley values in "
              "nats, or in units of their mean absolute value",
              ["paper", "released", "excitable", "excitable_scaled"]),
    "scale": ("Shapley values in nats, or in units of their mean absolute value", ["none", "total"]),
    "model": ("PEACEPACT's Net-1, as its table draws it, or NSATP's, whose numbers PEACEPACT prints",
              ["net1_peacepact", "net1"]),
    "split": ("candidates: the test images, or the training images", ["test", "train"]),
    "quantity": ("the last example of each input counts, or those of all iterations", [])}
LAST_OR_ALL = {"errors_over": "errors_over_all_iterations", "test_errors": "test_errors_all",
               "least_step": "least_step_all"}


def name(reading: str | list[str], column: str = "") -> str:
    """A reading in a word, or a few."""
    if column == "budget":  # the chapter's small bound, none of a paper's
        return "no bound" if reading == "none" else "small bound"
    if isinstance(reading, list):
        return ", ".join(map(shown, reading))
    return ("last" if reading in LAST_OR_ALL else "all" if reading in LAST_OR_ALL.values()
            else shown(reading))


# %% tags=["hide-input", "records"]
def readings(claim: published.Claim) -> dict[str, list]:
    """The values that a claim's open columns can take, the book's own first."""
    where = claim.where | {"quantity": claim.quantity}
    found = {column: values for column, (_, values) in OPEN.items() if where.get(column) in values}
    last = LAST_OR_ALL.get(claim.quantity)
    return {column: sorted(values, key=lambda v: v != where[column])
            for column, values in found.items()} | (
        {"quantity": [claim.quantity, last]} if last else {})


def judged(claim: published.Claim, column: str, value: str | list[str]) -> verdicts.Verdict:
    """The verdict of a claim, had this reading been taken."""
    if column == "quantity":
        return verdicts.verdict(replace(claim, quantity=value))
    return verdicts.verdict(replace(claim, where=claim.where | {column: value}))


# %% tags=["hide-input", "records"]
def row(claim: published.Claim, column: str, value: str | list[str]) -> dict:
    """What a reading makes of a claim, for the tables below."""
    found = judged(claim, column, value)
    means = (f"; {found.cells['mean'].min():.3g} to {found.cells['mean'].max():.3g}"
             if found.run else "")
    return {"id": claim.id, "paper": shown(claim.paper), "claim": claim.statement,
            "needed": f"{shown(claim.rule)} {claim.threshold:g}", "column": column,
            "verdict": found.state, "holds": found.holds, "run": found.run,
            "share": found.holds / max(1, found.run),
            "text": f"{name(value, column)}: {found.state} ({found.holds} of {found.run} hold{means})"}


rows = pd.DataFrame([row(claim, column, value) for claim in published.claims()
                     for column, values in readings(claim).items() for value in values])
places = rows[rows["verdict"] != "not run"].groupby(["id", "column"], sort=False)
rows = places.filter(lambda place: len(place) > 1)  # run in one reading only: nothing to compare
depends = rows.groupby(["id", "column"])["verdict"].transform("nunique") > 1
changed, rest = rows[depends], rows[~depends]
counts = rows.assign(depends=depends).groupby(["column", "id"])["depends"].any().groupby("column")
counts = counts.agg(["size", "sum"]).set_axis(["claims judged", "verdict depends on it"], axis=1)

# %% tags=["hide-input", "statements"]
most = counts["verdict depends on it"].sort_values(ascending=False)
says((f"**The answer.** Often: for {rows['id'].nunique()} claims, we ran more than one reading of something that the paper "
      f"leaves open, and for {changed['id'].nunique()} of them the verdict depends on it.",
      3 * changed["id"].nunique() > rows["id"].nunique()),
     ("Three choices change the most verdicts, and were tried with the most claims: what the method knows (`pair`), how far "
      "it may search (`budget`), and which algorithm runs (`swarm`).",
      set(counts["claims judged"].nlargest(3).index) == set(most.index[:3]) == {"pair", "budget", "swarm"}),
     "So when you write a paper, say these three.",
     "Some readings were run in fewer cells than others. Then the verdict may differ for this reason alone.")

# %% tags=["hide-input", "records"]
sentences(counts.rename_axis(None).assign(
    **{"what is open": [OPEN[column][0] for column in counts.index]}))

# %% [markdown]
# **What you will learn.** One sentence in a paper, about what is given or what is counted, can decide
# a whole comparison.
#
# Only the rules run on this page: each {term}`claim` is judged again on the
# {term}`records <record>` of the other readings. [The list of
# inconsistencies](../../book/inconsistencies.md) has all places where the texts disagree with
# themselves. This page has those where both sides were run.
#
# ## The readings
#
# For each column of the records, the table shows what is open and which values it can take.

# %% tags=["hide-input", "records"]
sentences(pd.DataFrame(
    [{"what is open": text, "readings": "; ".join(dict.fromkeys(
        name(value, column) for value in values or ["last", "all"]))} for column, (text, values) in OPEN.items()],
    index=OPEN))

# %% [markdown]
# ## Each claim under each reading
#
# There is one row for each claim and each place that its paper leaves open. The row shows the verdict
# under the reading that this book judges by, and the verdict under the other reading. In brackets are
# the least and the greatest mean of a {term}`cell`; compare them with what the claim needs.

# %% [markdown]
# Where the verdict depends on the reading:

# %% tags=["hide-input"]
def side_by_side(part: pd.DataFrame) -> pd.DataFrame:
    """One row for each claim and column: as judged, and otherwise."""
    texts = part.groupby(["paper", "claim", "needed", "column"], sort=False)["text"]
    return texts.agg(["first", "last"]).set_axis(["as judged", "otherwise"], axis=1).reset_index(
        level=["claim", "needed", "column"])


sentences(side_by_side(changed))

# %% [markdown]
# The same as a picture. A cell is one combination of dataset, network and measure.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the cells in which a claim holds, where the verdict depends on the reading. Filled: the reading that this book judges by; open: the other one. The claim, and in brackets the column.", "name": "fig-readings"}}
shares = changed.groupby(["id", "claim", "column"], sort=False)["share"].agg(["first", "last"])
figure, axis = plt.subplots(figsize=(9.5, 0.6 + 0.42 * len(shares)))
lines = range(len(shares))
axis.hlines(lines, shares["first"], shares["last"], color="0.7", lw=1.5, zorder=1)
axis.scatter(shares["last"], lines, fc="white", ec="C0", s=36, zorder=2)
axis.scatter(shares["first"], lines, color="C0", s=20, zorder=3)
axis.set_yticks(lines, [fill(f"{shorten(claim, 92, placeholder=' …')} ({column})", 62)
                        for _, claim, column in shares.index], fontsize=8)
axis.set(xlabel="share of the cells in which the claim holds", xlim=(-0.03, 1.03))
axis.invert_yaxis()
plt.show()

# %% [markdown]
# And where it does not:

# %% tags=["hide-input"]
sentences(side_by_side(rest))

# %% [markdown]
# ## What it means

# %% tags=["hide-input", "statements"]
pair, budget, swarm = (in_two_readings(rows, column) for column in ("pair", "budget", "swarm"))
faulty, lost = pair[pair.index.str.startswith("nss-fdr")], budget[budget["judged"] > 0]
says((f"- **What the method knows** (`pair`). {len(faulty)} claims say how many faults NSS finds. Without the original that a "
      f"candidate was made from, they hold in {faulty['holds'].sum()} of {faulty['run'].sum()} cells. With it, "
      f"{int((faulty['otherwise'] > 0).sum())} of them hold in more cells than before.",
      faulty["holds"].sum() < 0.05 * faulty["run"].sum()
      and (faulty["otherwise"] > faulty["judged"]).sum() == (faulty["otherwise"] > 0).sum() > 0))
says(f"- **How far the method may search** (`budget`). {len(lost)} claims hold somewhere without a bound on the "
     f"distance. Within the chapter's small distance, {int((lost['otherwise'] == 0).sum())} of them hold nowhere.")
says("- **Which algorithm runs** (`swarm`): the first DeepSensor paper's equations or its released script, the second "
     f"paper's values in nats or scaled. {int(swarm['depends'].sum())} of {len(swarm)} verdicts depend on these choices.")

# %% tags=["hide-input", "statements"]
tried, some = counts.loc["difference"]
says((f"The other choices were tried with fewer claims, and change at most {most.iloc[3]} verdicts each.",
      counts["claims judged"].drop(["pair", "budget", "swarm"]).max() < counts["claims judged"].nlargest(3).min()),
     ("How we fit NSATP's curve (`fit`) changes none.", counts.loc["fit", "verdict depends on it"] == 0),
     (f"How we measure the change of an activation (`difference`) changes {some} of {tried}.", some < tried / 2))

# %% [markdown]
# ## Exercises
#
# **1. Try.** A row of the table is a rule applied to records. Judge NSS's claims on candidates of random
# mutations for networks of the second stage of training, `recipe = "nss_second"`.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# [judged(claim, "recipe", "nss_second").state for claim in published.claims("nss")
#  if claim.experiment == "nss/fault_detection" and claim.where.get("candidates") == "random"]
# ~~~
# ```
#
# **2. Think.** Every reading that you add is one more chance that a claim holds by luck. How would you
# guard against this?
#
# ```{admonition} Solution
# :class: dropdown
# Choose the reading before you look at the results, and report the other readings beside it. Or use
# wider intervals, such as intervals at the level $1 - 0.05 / k$ for $k$ readings.
# ```
#
# **3. Code.** You have `k` intervals, independent or not. The chance that one or more of them miss
# the true value shall be at most 5 %. Write `my_level(k)`, which gives the level that each interval
# needs. The cell says whether it is right.

# %%
my_level = None  # your function of a count

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda k: 1 - 0.05 / k, (1,), (5,))


is_right(my_level)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_level(k):
#     return (k - 0.05) / k
#
# is_right(my_level)
# ~~~
#
# The chances of missing add up, at worst: this is Bonferroni's rule.
# ```
