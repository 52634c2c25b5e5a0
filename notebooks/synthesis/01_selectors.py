# %% [markdown]
# # Which inputs to label first?
#
# **The question.** You have many unlabelled images and can pay for labels of a few. NSATP and
# PEACEPACT rank by the softmax vector, NSS by sensitive neurons, and NSS compares itself with seven
# others; each paper has its own data and its own measure. Here all selectors stand on the same
# candidates, in four measures: faults found, how early they come, how many kinds, and what it
# costs.
#
# **What you will learn.** What to use, and what the choice depends on.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from tqdm import tqdm

from dnnlib import inference, selection, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load, profile_limit
from dnnlib.measures import faults
from dnnlib.perturb import mutations

plots.style()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I
seeds = "0 1 2"  # of the training, of the mutations and of the selectors
references = 10000  # training images that KMNC and DSA look at; NPC at the first 2,000

# %% [markdown]
# ## All on the same candidates
#
# Test images, each changed by one of seven benign mutations, as in
# [the chapters on NSS](../nss/02_fault_detection). NSS and the
# [excitable selector](../deepsensor_excitable/12_selector) draw one fresh mutation; *NSS, known
# original* is the released code's reading, which compares with the clean image that a candidate was
# made from. Nobody with unlabelled images has that one; it is here as a mark.
#
# - **FDR**: the share of faults among the first 5 or 20 %, in percent;
# - **APFD**: how early the faults come over the whole order; 50 is random;
# - **kinds**: the share of all kinds of fault, pairs of true and given class, among the first 5 %.

# %%
KNOWN = "nss, known original"


def measured(seed: int) -> list[dict]:
    """What every selector finds with the network of one seed."""
    data = load(dataset, limit=profile_limit("embedded"))
    reference = load(dataset, "train").images[:references]
    network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
    candidates = mutations.mutate(data.images, seed=seed).images
    given = inference.predict(network, candidates).argmax(1)
    wrong = (given != data.labels).numpy()
    types = faults.fault_types(data.labels, given, len(data.classes))
    fresh = {"seed": 1000 + seed}
    selectors = selection.table_iv(reference, seed=seed) | {
        name: selection.selector(name) for name in ("pd", "pv", "pe", "least_confidence", "margin")}
    selectors |= {"nss": selection.selector("nss", **fresh),
                  "excitable": selection.selector("excitable", **fresh),
                  KNOWN: selection.selector("nss", pair="original", originals=data.images, **fresh)}
    rows = []
    for name, order in selection.orders(network, candidates, selectors).items():
        value = {f"FDR {rate} %": faults.fault_detection_rate(wrong, order, rate / 100)
                 for rate in (5, 20)}
        value |= {"APFD": faults.apfd(wrong, order),
                  "kinds 5 %": faults.fault_type_coverage(types, order, [0.05])[0]}
        rows += [{"seed": seed, "selector": name, "quantity": quantity, "value": 100 * v}
                 for quantity, v in value.items()]
    best = {f"FDR {rate} %": faults.best_rate(wrong, rate / 100) for rate in (5, 20)}
    return rows + [{"seed": seed, "selector": "best possible", "quantity": quantity,
                    "value": 100 * v} for quantity, v in best.items()]


live = pd.DataFrame([row for seed in tqdm(str(seeds).split(), desc="seeds", leave=False)
                     for row in measured(int(seed))])
here = compare.mean_and_interval(live, index=["selector"], columns=["quantity"])
by_apfd = live[live["quantity"] == "APFD"].groupby("selector")["value"].mean()
here.loc[by_apfd.sort_values(ascending=False).index.tolist() + ["best possible"]]

# %% [markdown]
# Mean over the seeds and half the width of its 95 % interval. With 500 images and three networks
# the intervals are wide: differences of a few points decide nothing here.

# %% [markdown]
# ## At paper scale
#
# The same from the records of the chapters: 10,000 candidates in each cell, three seeds. CIFAR-10
# is a JPEG copy. So that cells with many faults and with few compare, the fault detection rate is
# shown as the **gain** over random order, in percent of what the best possible order gains:
#
# $$\mathrm{gain} = 100\, \frac{\mathrm{FDR} - \mathrm{FDR}_{\mathrm{random}}}
# {\mathrm{FDR}_{\mathrm{best}} - \mathrm{FDR}_{\mathrm{random}}} .$$

# %%
found = records.existing("nss/fault_detection", recipe="nss", candidates="random")
excited = records.existing("deepsensor_excitable/selector", recipe="nss", candidates="random")
kinds = records.existing("nss/diversity", recipe="nss", candidates="random")
cost = records.existing("nss/overhead", recipe="nss")
CELL = ["dataset", "model"]


def named(table: pd.DataFrame) -> pd.DataFrame:
    """With one column for the selector: NSS by what is known, in the text's difference."""
    pair, difference = (table.get(name, pd.Series(np.nan, table.index))
                        for name in ("pair", "difference"))
    kept = (table["method"] != "nss") | pair.isna() | (difference == "l1")
    table = table.assign(selector=table["method"].where(pair != "original", KNOWN))
    return table[kept & table["selector"].notna()]


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """FDR of each selector, network and seed as a share of what the best order gains."""
    key = [*CELL, "seed", "rate"]
    rates = table[table["quantity"] == "fdr"]
    ends = {name: rates[rates["method"] == name].set_index(key)["value"]
            for name in ("random, expected", "best possible")}
    ours = named(rates[~rates["method"].isin(ends)]).set_index(key)
    low, high = (ends[name].reindex(ours.index) for name in ("random, expected", "best possible"))
    return ours.assign(value=100 * (ours["value"] - low) / (high - low)).reset_index()


extra = excited[excited["method"].isin(["excitable", "random, expected", "best possible"])
                & excited["scale"].isna()]
gain = pd.concat([gains(found), gains(extra)])
early = gain[gain["rate"] == 5]
order = early.groupby("selector")["value"].mean().sort_values(ascending=False).index
compare.mean_and_interval(early, index=["selector"], columns=CELL).loc[order]

# %% mystnb={"figure": {"caption": "Gain in faults over random order with a twentieth of the candidates labelled, in percent of what the best possible order gains: mean over three seeds, lines give the range.", "name": "fig-selectors-gain"}}
drawn = early.set_index("selector").loc[order].reset_index()
plots.dots(drawn, row="selector", panel=CELL, xlabel="gain at 5 % (%)")
plt.show()

# %% [markdown]
# ### How early, and how many kinds
#
# The APFD, and the mean share of the kinds of fault found on the way to 20 % (the area of NSS's
# Table VII).

# %%
apfd = pd.concat([found, extra])
apfd = named(apfd[apfd["quantity"] == "apfd"])
display(compare.mean_and_interval(apfd, index=["selector"], columns=CELL).loc[order])
area = named(kinds[kinds["quantity"] == "area"])
area_order = area.groupby("selector")["value"].mean().sort_values(ascending=False).index
compare.mean_and_interval(area, index=["selector"], columns=CELL).loc[area_order]

# %% [markdown]
# ### What it costs
#
# Seconds to order 10,000 candidates, in units of one pass of the network over them; with the time
# to prepare what the selector needs of the training images.

# %%
whole = cost[(cost["quantity"] == "seconds") & (cost["candidates"] == 10_000)]
key = [*CELL, "seed"]
spent = whole.groupby([*key, "method"])["value"].sum()
passes = (spent / spent.xs("one pass", level="method")).rename("value").reset_index()
passes = passes[passes["method"] != "one pass"].rename(columns={"method": "selector"})
compare.mean_and_interval(passes, index=["selector"], columns=CELL)

# %% mystnb={"figure": {"caption": "What a selector gains with a twentieth of the candidates labelled against what it costs, both as means over the cells in which both were measured.", "name": "fig-selectors-cost"}}
both = early.merge(passes, on=[*key, "selector"], suffixes=("", " spent"))
figure, axis = plt.subplots(figsize=(6, 3.6))
for name, (gained, price) in both.groupby("selector")[["value", "value spent"]].mean().iterrows():
    axis.plot(price, gained, "o", color="C0")
    axis.annotate(name, (price, gained), xytext=(5, 4), textcoords="offset points", fontsize=8)
axis.axhline(0, color="0.3", lw=1, ls=":")
axis.set(xlim=(-0.4, None), xlabel="cost (passes of the network)", ylabel="gain at 5 % (%)")
plt.show()

# %% [markdown]
# ## By situation
#
# The two selectors with the best mean over all cells, beside DeepGini, NSS as its text has it, and
# random order. The selector that knows the originals is left out: in none of these situations does
# one have them.

# %%
sure = named(found[(found["quantity"] == "confident_fdr") & (found["rate"] == 10)])
repair = records.existing("nss/repair", recipe="nss", candidates="random")
repair = named(repair[(repair["quantity"] == "gain") & (repair["test"] == "mutated")
                      & (repair["rate"] == 20) & (repair["method"] != "none")])
SITUATIONS = {
    "labels for 5 %: faults (gain, %)": early,
    "labels for 20 %: faults (gain, %)": gain[gain["rate"] == 20],
    "the whole order: APFD (%)": apfd,
    "many kinds of fault (area, %)": area,
    "confident mistakes: FDR at 10 % of those above 0.9 (%)": sure,
    "accuracy after retraining on 20 % (points)": repair}
best = {}
for situation, table in SITUATIONS.items():
    means = table[table["selector"] != KNOWN].groupby("selector")["value"].mean()
    first = means.drop("random").nlargest(2)
    best[situation] = {f"{place}": f"{name}: {value:.2f}" for place, (name, value) in
                       zip(("best", "second"), first.items())} | {
        name: f"{means[name]:.2f}" for name in ("gini", "nss", "random")}
pd.DataFrame(best).T

# %% [markdown]
# **What it means.** Whatever one counts, the list falls into three parts. The measures of the
# softmax vector (DeepGini, the least confidence, NSATP's PD, the margin) gain half and more of what
# the best order could, in every cell, for one pass; which of them hardly matters. Neuron coverage
# (NAC, KMNC), NPC and NSS as its text has it are near random order, and some below it: what many
# neurons do is not what the network gets wrong. In between stands the distance from the training
# data, DSA: the best of all with LeNet-1 on MNIST, useless with ResNet-20 on CIFAR-10.
#
# *NSS, known original* finds most at 5 %, and less than DeepGini over the whole order; it is told
# what the others have to guess.
#
# **What to use.**
#
# - *Unlabelled images and a model*: DeepGini or the least confidence. Nothing here beats them for
#   sure.
# - *Many different kinds of fault*, such as for debugging: ATS, at about six times the cost.
# - *Fear of confident mistakes*: DSA beside DeepGini, if you have the training images. Label a few
#   dozen of each first: on one of these networks DSA finds less than random order.
# - *Retraining*: the selectors differ by a point of accuracy or less, and random order is not far
#   behind; the number of labels matters more.
#
# All faults here come from mild mutations of images of ten classes. With other shifts the order of
# the first few may change; that they are worth comparing with random order on a sample will not.

# %% [markdown]
# ## Exercises
#
# **1.** The intervals over three seeds are wide, yet the selectors see the same candidates in each
# seed. Compare `least_confidence` and `gini` by their differences within a seed.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# wide = early.pivot_table(index=[*CELL, "seed"], columns="selector", values="value")
# (wide["least_confidence"] - wide["gini"]).groupby(CELL).agg(compare.interval)
# ~~~
#
# A paired difference takes out what the seeds have in common, and its interval is narrower.
# ```
#
# **2.** Random order has a gain of 0 by definition. Why does `random` not have it exactly?
#
# ```{admonition} Solution
# :class: dropdown
# The gain is measured from the *expected* rate, the share of faults among all candidates; `random`
# is one order drawn at random, and finds a few more or fewer.
# ```
