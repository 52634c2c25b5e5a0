# %% [markdown]
# # Which inputs to label first?
#
# **The question.** You have many unlabelled images and can pay for the labels of a few: which ones? NSATP
# and PEACEPACT rank the images by the {term}`softmax vector`, {term}`NSS` by
# {term}`sensitive neurons <sensitive neuron>`, and each paper has its own data and its own measure. Here
# all selectors get the same {term}`candidates <candidate>`.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I; nss_second: its other stage
seeds = "0 1 2"  # of the trainings, and of all else that is random
references = 10000  # training images that KMNC and DSA look at; NPC at the first 2,000
beside = ""  # one more selector, of the package or your own: FILE.py:CLASS; '' for none

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dnnbook import studies, training
from dnnbook.chapters import declared
from dnnbook.chapters.statements import says
from dnnbook.data import Dataset, load, profile_limit
from dnnbook.display import plots, whose
from dnnbook.display.tables import headed, mean_and_interval
from dnnbook.records import evidence, records
from dnnbook.studies.findings.synthesis import selectors_by_network
from dnnbook.studies.ordering import SelectorKey
from dnnbook.words import listed, networks, rounded_up, shown, span
from dnnlib import checks, inference, selection
from dnnlib.measures import faults
from dnnlib.perturb import mutations
from dnnlib.progress import progress

plots.style()

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

asked = records.frame("nss/fault_detection", recipe="nss", candidates="random").query(
    "quantity == 'fdr' and rate == 20")
as_written = asked.query(
    "method == 'nss' and difference == 'l1' and pair == 'remutated'")["value"].mean()
asked = asked.groupby("method")["value"].mean()
quiz("A fifth of the candidates is labelled, mean over all runs: who finds most faults?",
     {"DeepGini, one pass": asked["gini"] > max(as_written, asked["random"]),
      "NSS, as its text describes it": as_written > max(asked["gini"], asked["random"]),
      "random order": asked["random"] > max(asked["gini"], as_written)},
     f"Faults among the selected: DeepGini {asked['gini']:.0f} %, NSS {as_written:.0f} %, random "
     f"order {asked['random']:.0f} %.")

# %% tags=["hide-input", "records"]
KNOWN = SelectorKey("nss", "original")  # told the image that a candidate was made from
KNOWN_NAME = str(KNOWN)


def best_first(rows: pd.DataFrame) -> list[str]:
    """The selectors, that with the highest mean first."""
    return [*rows.groupby("selector")["value"].mean().sort_values(ascending=False).index]


CELL = ["dataset", "model"]
RUN = [*CELL, "seed"]
MUTANTS = {"recipe": "nss", "candidates": "random"}
ENDS = ["random, expected", "best possible"]
SOFTMAX, COUNTED = ["gini", "least_confidence", "pd", "margin"], ["nac", "kmnc", "npc", "nss"]


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of selectors, and which it is: NSS by what is known, in the text's difference."""
    rows = rows.reindex(columns=[*rows, *{"pair", "difference"}.difference(rows)])
    rows = rows.query("method.notna() and (pair.isna() or difference == 'l1')")
    return rows.assign(selector=rows["method"].where(rows["pair"] != KNOWN.pair, str(KNOWN)))


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """FDR of each selector, network and seed as a share of what the best order gains."""
    rates = rows.query("quantity == 'fdr'").set_index([*RUN, "rate"])
    ours = rates.query("method not in @ENDS")
    low, high = (rates.loc[rates["method"] == end, "value"].reindex(ours.index) for end in ENDS)
    return ours.assign(value=100 * (ours["value"] - low) / (high - low)).reset_index()


def ranked(rows: pd.DataFrame, first: list[str]) -> pd.DataFrame:
    """A line for each selector, in this order, a column for each network."""
    return mean_and_interval(rows, index=["selector"], columns=CELL, order={"selector": first})


found = named(records.existing("nss/fault_detection", **MUTANTS))
extra = named(records.existing("deepsensor_excitable/selector", **MUTANTS)).query(
    "method in ['excitable', 'random, expected', 'best possible'] and scale.isna()")
gain = pd.concat([gains(found), gains(extra)])
early = gain.query("rate == 5")
order = best_first(early)

# %% tags=["hide-input", "statements"]
mean = selectors_by_network(early)
sure, counted, dsa = mean.loc[SOFTMAX], mean.loc[COUNTED], mean.loc["dsa"]
says(
    (f"**The answer.** Those of which the network is unsure. {listed(SOFTMAX)} take one number from the softmax vector, "
     "and at 5 % labelled each gains more than half of what the best order does, on average in every cell.",
     sure.min(axis=None) > 50),
    (f"Neuron coverage (NAC, KMNC), NPC, and NSS as its text describes it gain at most {rounded_up(counted.max(axis=None))} % of "
     "that.", counted.max(axis=None) < sure.min(axis=None)),
    (f"DSA, which uses the distance from the training data, depends on the network and the data: it gains "
     f"{span(dsa)} %.", dsa.max() > sure[dsa.idxmax()].max() and 0 < dsa.min() < sure[dsa.idxmin()].min()))

# %% [markdown]
# ## In one picture
#
# Each dot is a selector's **gain** over random order, which is zero, in percent of what the best possible
# order gains.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Gain in faults over random order with a twentieth of the candidates labelled, in percent of what the best possible order gains. Mean over the seeds, lines give the range.", "name": "fig-selectors-gain"}}
plots.dots(early.set_index("selector").loc[order].reset_index(), row="selector", panel=CELL,
           xlabel="gain at 5 % (%)")
whose.show(whose.RECORDS)

# %% [markdown]
# **What you will learn.** What to use, and what the choice depends on: how many
# {term}`faults <fault>` are found, how early, of how many kinds, and at what cost.
#
# ## All on the same candidates
#
# The candidates are test images, each changed by one of seven
# {term}`benign mutations <benign mutation>`, as in [the chapters on
# NSS](../nss/02_fault_detection). NSS and the [excitable
# selector](../deepsensor_excitable/12_selector) draw one fresh mutation. *NSS, known original* is
# the {term}`reading` of the released code, which compares a candidate with the clean image that it
# was made from. With unlabelled images you rarely have that clean image; this selector is here only as a
# mark to compare with.
#
# - **FDR**, the {term}`fault detection rate`: the share of faults among the first candidates, at
#   two rates, in percent;
# - **{term}`APFD`**: how early the faults come over the whole order; random order has the middle
#   value;
# - **kinds**: the share of all kinds of fault that are among the first candidates; a kind is a pair
#   of true and given class.

# %%
def lineup(data: Dataset, seed: int) -> dict[SelectorKey, selection.Selector]:
    """Selectors: those of NSS's Table IV, of the softmax vector, and of one fresh mutation."""
    fresh = {"seed": 1000 + seed}
    alone = ("pd", "pv", "pe", "least_confidence", "margin")
    train = load(dataset, "train")
    chosen = studies.table_iv(train.images[:references], train.labels[:references], seed=seed)
    chosen |= {name: selection.selector(name) for name in alone}
    chosen |= {name: selection.selector(name, **fresh) for name in ("nss", "excitable")}
    return {SelectorKey(name): selector for name, selector in chosen.items()} | {
        KNOWN: selection.selector("nss", pair="original", originals=data.images, **fresh)} | (
            studies.one_more(beside, reference=train.images[:references]))

# %%
def judged(wrong: np.ndarray, types: np.ndarray, orders: dict) -> dict[str, dict[str, float]]:
    """What each order finds, and the best order there is: shares, by selector and measure."""
    found = {str(key): {"FDR 5 %": faults.fault_detection_rate(wrong, order, 0.05),
                        "FDR 20 %": faults.fault_detection_rate(wrong, order, 0.2),
                        "APFD": faults.apfd(wrong, order),
                        "kinds 5 %": faults.fault_type_coverage(types, order, [0.05])[0]}
             for key, order in orders.items()}
    best = {"FDR 5 %": faults.best_rate(wrong, 0.05), "FDR 20 %": faults.best_rate(wrong, 0.2)}
    return found | {"best possible": best}

# %%
def measured(seed: int) -> dict[str, dict[str, float]]:
    """What every selector finds with the network of one seed."""
    data = load(dataset, limit=profile_limit("embedded"))
    model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed)
    candidates = mutations.mutate(data.images, seed=seed).images
    given = inference.predict(model, candidates).argmax(1)
    wrong = (given != data.labels).numpy()
    types = faults.fault_types(data.labels, given, len(data.classes))
    return judged(wrong, types, studies.orders(model, candidates, lineup(data, seed)))

# %% tags=["hide-input"]
declared.check("synthesis/01", dataset=dataset, model_name=model_name, recipe=recipe, seeds=seeds,
               references=references, beside=beside)
live = pd.DataFrame([
    {"seed": seed, "selector": name, "quantity": quantity, "value": 100 * value}
    for seed in progress(checks.numbers(seeds, "seeds"), desc="seeds", leave=False)
    for name, values in measured(seed).items() for quantity, value in values.items()])
mean_and_interval(live, index=["selector"], columns=["quantity"], order={
    "selector": [*best_first(live.query("quantity == 'APFD'")), "best possible"]})

# %% [markdown]
# The table has the mean over the random seeds and half the width of its 95 % {term}`interval`. With
# a few hundred images, and only as many networks as there are seeds, the intervals are wide: small
# differences decide nothing here.

# %% [markdown]
# ## At paper scale
#
# The same comparison from the {term}`records <record>` of the chapters, on whole test sets. For the kinds of
# fault with VGG16, CIFAR-10 is a JPEG copy. We make {term}`cells <cell>` with many faults and cells with few
# faults comparable. We show the fault detection rate as the **gain** over random order, in percent of what
# the best possible order gains:
#
# $$\mathrm{gain} = 100\, \frac{\mathrm{FDR} - \mathrm{FDR}_{\mathrm{random}}}
# {\mathrm{FDR}_{\mathrm{best}} - \mathrm{FDR}_{\mathrm{random}}} .$$

# %% tags=["hide-input", "records"]
ranked(early, order)

# %% [markdown]
# ### How early, and how many kinds
#
# The first table has the APFD. The second has the mean share of the kinds of fault found on the way
# to the largest rate (the area of NSS's Table VII).

# %% tags=["hide-input", "records"]
apfd = pd.concat([found, extra]).query("quantity == 'apfd'")
area = named(records.existing("nss/diversity", **MUTANTS)).query("quantity == 'area'")
display(ranked(apfd, order))
ranked(area, best_first(area))

# %% [markdown]
# ### What it costs
#
# The time to order a whole test set, in units of one pass of the network over that set. It includes
# the time to prepare what the selector needs from the training images.

# %% tags=["hide-input", "records"]
spent = records.existing("nss/overhead", recipe="nss").query(
    "quantity == 'seconds' and candidates == 10_000").groupby([*RUN, "method"])["value"].sum()
passes = (spent / spent.xs("one pass", level="method")).drop("one pass", level="method")
passes = passes.rename_axis([*RUN, "selector"]).reset_index(name="value")
ranked(passes, sorted(set(passes["selector"])))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "What a selector gains with a twentieth of the candidates labelled against what it costs. Both are means over the cells in which both were measured; no cost was measured on CIFAR-10.", "name": "fig-selectors-cost"}}
both = early.merge(passes, on=[*RUN, "selector"], suffixes=("", " spent"))
figure, axis = plt.subplots(figsize=(6, 3.6))
for name, (gained, price) in both.groupby("selector")[["value", "value spent"]].mean().iterrows():
    axis.plot(price, gained, "o", color="C0")
    axis.annotate(shown(name), (price, gained), xytext=(5, 4), textcoords="offset points",
                  fontsize=8)
axis.axhline(0, color="0.3", lw=1, ls=":")
axis.set(xlim=(-0.4, None), xlabel="cost (time of a pass of the network = 1)", ylabel="gain at 5 % (%)")
whose.show(whose.RECORDS)

# %% [markdown]
# ## By situation
#
# For each situation, the table shows the two selectors with the best mean over all cells. They stand beside
# {term}`DeepGini`, NSS as its text describes it, and random order. The selector that knows the
# originals is left out, because you rarely have them ([one case where you do](08_test_your_model)). For kinds of
# fault and for retraining, least confidence, PD and margin were not run; retraining was run with the LeNets only.

# %% tags=["hide-input", "records"]
repair = named(records.existing("nss/repair", **MUTANTS)).query(
    "quantity == 'gain' and test == 'mutated' and rate == 20 and method != 'none'")
SITUATIONS = {
    "labels for 5 %: faults (gain, %)": early,
    "labels for 20 %: faults (gain, %)": gain.query("rate == 20"),
    "the whole order: APFD (%)": apfd,
    "many kinds of fault (area, %)": area,
    "confident faults: FDR at 10 % of those above 0.9 (%)": found.query(
        "quantity == 'confident_fdr' and rate == 10"),
    "accuracy after retraining on 20 % (points)": repair}
best = {}
for situation, rows in SITUATIONS.items():
    cells = rows.groupby(["selector", *CELL])["value"].mean()
    means = cells.groupby("selector").mean().drop(str(KNOWN), errors="ignore")
    first = [f"{shown(name)}: {value:.2f}" for name, value in
             means.drop("random").nlargest(2).items()]
    best[situation] = dict(zip(["best", "second"], first)) | {
        name: f"{means[name]:.2f}" for name in ("gini", "nss", "random")}
headed(pd.DataFrame(best).T)

# %% [markdown]
# ## What it means
#
# The table counts, in the records, the cells in which the whole {term}`interval` of a gain lies below zero, or above it.

# %% tags=["hide-input", "records"]
ends = evidence.spread(evidence.by_seed(early, f"selector in {COUNTED}", "selector", *CELL))
clearly = pd.DataFrame({"cells": True, "interval below 0": ends["high"] < 0, "interval above 0": ends["low"] > 0})
headed(clearly.groupby("selector").sum())

# %% tags=["hide-input", "statements"]
behind, ahead = clearly["interval below 0"], clearly["interval above 0"]
says(
    (f"Which of the four with the softmax vector you use matters less: within a cell, their gains differ by at most "
     f"{rounded_up(np.ptp(sure, axis=0).max())} percentage points.", np.ptp(sure, axis=0).max() < 15),
    (f"In {behind.sum()} of their {len(ends)} cells, coverage, NPC and NSS find fewer faults than random order, by more "
     "than chance explains.", behind.sum() > 0),
    (f"But these orders are not simply random: {(behind | ahead).sum()} intervals exclude 0, some above it and some below. So most "
     "of the orders measure something, but it has little to do with what the network gets wrong.",
     behind.sum() > 0 < ahead.sum() and ((behind | ahead).groupby("selector").sum() >= 3).sum() >= 3),
    (f"DSA gains more than any of the four with {networks([dsa.idxmax()])}, and less than any of them, but "
     f"more than random order, with {networks([dsa.idxmin()])}.",
     dsa.max() > sure[dsa.idxmax()].max() and 0 < dsa.min() < sure[dsa.idxmin()].min()))

# %% tags=["hide-input", "statements"]
told, guessed = mean.loc[KNOWN_NAME], mean.drop(KNOWN_NAME)
late = selectors_by_network(apfd)
says(
    (f"*{shown(KNOWN_NAME)}* compares each candidate with the clean image that it was made from, which the others do not "
     f"have. At 5 % labelled, it finds the most faults in {int((told > guessed.max()).sum())} of {len(told)} cells. But "
     "over the whole order its APFD is below DeepGini's in every cell.",
     (told > guessed.max()).mean() > 0.5 and (late.loc[KNOWN_NAME] < late.loc["gini"]).all()))

# %% [markdown]
# ### What to use

# %% tags=["hide-input", "statements"]
fifth = selectors_by_network(gain[gain["rate"] == 20]).drop(KNOWN_NAME).mean(axis=1)
kinds = area.groupby("selector")["value"].mean().drop(KNOWN_NAME)
price = passes[passes["selector"] == "ats"].groupby("model")["value"].mean()
says(("- *You have unlabelled images and a model*: use DeepGini or least confidence. At 20 % labelled, no "
      "selector that works without the originals has a better mean over the cells.",
      {*fifth.nlargest(2).index} == {"gini", "least_confidence"}))
says((f"- *You want many different kinds of fault*, for example to debug: use ATS. With ten "
      f"classes it takes about {price.drop('resnet20').mean():.0f} times as long as a pass of a LeNet, and hardly longer "
      "than a pass of ResNet-20; with more classes, [it takes longer](../../book/scales).",
      kinds.idxmax() == "ats" and price.drop("resnet20").min() > 2 and price["resnet20"] < 1.2))

# %% tags=["hide-input", "statements"]
confident = selectors_by_network(SITUATIONS["confident faults: FDR at 10 % of those above 0.9 (%)"])
worse = confident.loc["dsa"] < confident.loc["gini"]
repaired = selectors_by_network(repair).drop(KNOWN_NAME)
above = (repaired - repaired.loc["random"]).drop("random")
says(("- *You fear confident faults*: use DSA beside DeepGini, if you have the training images. DSA finds more such "
      "faults than random order in the mean of every cell. First label a few dozen images from each: with the networks of "
      "CIFAR-10, DSA finds fewer than DeepGini.", {cell[0] for cell in worse.index[worse]} == {"cifar10"}
      and worse["cifar10"].all() and (confident.loc["dsa"] > confident.loc["random"]).all()))
says((f"- *You retrain on 20 %*: use DSA. Random order gains {repaired.loc['random'].min():.1f} to "
      f"{repaired.loc['random'].max():.1f} points of accuracy. Of all selectors that need no originals, DSA gains most in each "
      f"cell, {above.loc['dsa'].min():.1f} to {above.loc['dsa'].max():.1f} points more than that.",
      above.idxmax().eq("dsa").all() and above.loc["dsa"].min() > 0))

# %% [markdown]
# All faults here come from mild mutations of images of ten classes. If your images differ from the
# training images in another way, other selectors may come first. So you still need to compare with
# random order on a small labelled sample.

# %% [markdown]
# ## Exercises
#
# **1. Try.** The intervals over the seeds are wide, yet the selectors see the same candidates in
# each seed. Compare `least_confidence` and `gini` by their differences within a seed.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# from dnnbook.records.intervals import interval
# at = early.set_index([*RUN, "selector"])["value"].unstack()
# (at["least_confidence"] - at["gini"]).groupby(CELL).agg(interval)
# ~~~
#
# Where both selectors rise and fall together from seed to seed, the difference removes this part, and
# its interval is narrower. Where they do not, it can be wider. Compare with the table of gains, which
# has half the width of each interval.
# ```
#
# **2. Think.** Random order has a gain of 0 by definition. Why is the gain of `random` not exactly
# 0?
#
# ```{admonition} Solution
# :class: dropdown
# The gain starts from the *expected* rate of random order, which is the share of faults among all
# candidates. `random` is a single order drawn at random, so it finds a few faults more or fewer than
# expected.
# ```
#
# **3. Code.** Write `my_apfd(wrong, order)`: one minus the mean place of a fault (from 1 to N)
# divided by N, plus half a place. The cell says whether it is right.

# %%
my_apfd = None  # your function of booleans (N,) and indices (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    some = np.array([True, False, False, True])
    check(answer, faults.apfd, (some, [3, 0, 1, 2]), (some, [1, 2, 0, 3]))


is_right(my_apfd)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_apfd(wrong, order):
#     places = 1 + np.flatnonzero(wrong[order])
#     return 1 - places.mean() / len(order) + 1 / (2 * len(order))
#
# is_right(my_apfd)
# ~~~
#
# APFD looks at the whole order; a fault detection rate at 5 % looks only at its beginning. Labels
# are bought at the beginning.
# ```
