# %% [markdown]
# # RQ2: how many kinds of fault?
#
# **The claim** (NSS IV.C.2, Fig. 4, Table VII). A kind of fault is a pair (true class, predicted
# class). Up to 20 % selected, NSS shows a larger share of all kinds than every other selector, and it
# is the only one above random selection everywhere.
#
# **What you will learn.** Why finding many faults and finding many kinds of fault are two aims; and what
# a single area under a curve hides.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dnnlib import inference, published, selection, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load, profile_limit
from dnnlib.measures import faults
from dnnlib.perturb import mutations

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of Table I; nss_second: the other stage
seed = 0  # of the training, of the mutations and of the selectors
references = 10000  # training images that KMNC and DSA look at; NPC at the first 2,000
profile = "embedded"  # embedded: at most 1,000 candidates; paper: the whole test set, and a record

# %%
data = load(dataset, limit=profile_limit(profile))
reference = load(dataset, "train").images[:references]
network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
candidates = mutations.mutate(data.images, seed=seed).images
predicted = inference.predict(network, candidates).argmax(1)

# %% [markdown]
# ## Kinds of fault
#
# With $K$ classes there are $K(K-1)$ kinds, 90 for ten classes; not all of them occur. The fault type
# coverage rate (FTCR) is the share of those that occur among all candidates which the selected ones
# show. Three faults of two kinds, by hand:

# %% tags=["nbval-check-output"]
kinds = faults.fault_types([0, 1, 1, 2], [1, 1, 0, 0], classes=3)
print("kinds:", kinds.tolist())
print("FTCR after each candidate:",
      faults.fault_type_coverage(kinds, [2, 1, 3, 0], [0.25, 0.5, 0.75, 1.0]).round(2).tolist())

# %%
types = faults.fault_types(data.labels, predicted, len(data.classes))
print(f"{(types >= 0).sum()} faults of {len(set(types) - {-1})} kinds among {len(types)} candidates")

# %% [markdown]
# ## Orders
#
# The same selectors and options as in [the chapter on fault detection](02_fault_detection).

# %%
selectors = selection.table_iv(reference, seed=seed)
selectors["nss remutated"] = selection.selector("nss", seed=1000 + seed)
selectors["nss original"] = selection.selector("nss", pair="original", originals=data.images,
                                               seed=1000 + seed)
orders = selection.orders(network, candidates, selectors)

# %% mystnb={"figure": {"caption": "Share of all kinds of fault found against the share of candidates labelled, for the run above.", "name": "fig-nss-diversity"}}
percent = np.arange(1, 21)
curves = {name: 100 * faults.fault_type_coverage(types, order, percent / 100)
          for name, order in orders.items()}
figure, axis = plt.subplots(figsize=(6, 3.8))
for name, curve in curves.items():
    axis.plot(percent, curve, lw=2.4 if "nss" in name else 1.2, label=name)
axis.set(xlabel="candidates labelled (%)", ylabel="kinds of fault found (%)")
axis.legend(ncols=2, fontsize=8)
plt.show()

# %% [markdown]
# Table VII condenses each curve to its mean over 1, 2, ..., 20 %.

# %%
rows = []
areas = {name: 100 * faults.fault_type_area(types, order, 0.2) for name, order in orders.items()}
baselines = [name for name in orders if "nss" not in name]
for name in orders:
    method, *pair = name.split()
    column = {"pair": pair[0], "difference": "l1", "share": 10} if pair else {}
    rows += [{"method": method, "rate": int(p), "quantity": "ftcr", "value": value} | column
             for p, value in zip(percent, curves[name])]
    rows.append({"method": method, "rate": 20, "quantity": "area", "value": areas[name]} | column)
    if pair:
        lead = areas[name] - max(areas[b] for b in baselines)
        over = areas[name] - areas["random"]
        rows += [{"rate": 20, "quantity": q, "value": v} | column
                 for q, v in (("lead", lead), ("over_random", over))]
pd.Series(areas, name="area").sort_values(ascending=False).round(1).to_frame()

# %%
if profile == "paper":
    records.save(records.Record(
        "nss/diversity", dict(dataset=dataset, model=model, recipe=recipe, seed=seed,
                              candidates="random", references=references), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Table VII, beside the paper's
#
# NSS as the text has it; then both pairs from the records. CIFAR-10 is a JPEG copy.

# %%
ours = records.frame("nss/diversity", recipe="nss")
on = ["dataset", "model", "method"]
area = ours.query("quantity == 'area'") if len(ours) else ours
compare.beside(published.table("nss", 7), area.query("pair != 'original'") if len(area) else area,
               on=on, digits=1)

# %%
if len(area):
    both = area.assign(selector=area[["method", "pair"]].fillna("").agg(" ".join, axis=1))
    display(both.pivot_table(index="selector", columns=["dataset", "model"], values="value",
                             aggfunc="mean", sort=False).round(1))

# %% mystnb={"figure": {"caption": "Fig. 4 of the paper from the records: kinds of fault found against candidates labelled, mean over the seeds, for networks near the accuracy of Table I.", "name": "fig-nss-diversity-records"}}
if len(ours):
    curve = ours.query("quantity == 'ftcr'").copy()
    curve["selector"] = curve[["method", "pair"]].fillna("").agg(" ".join, axis=1).str.strip()
    groups = list(curve.groupby(["dataset", "model"], sort=False))
    figure, axes = plt.subplots(1, len(groups), figsize=(2.6 * len(groups), 3.2), sharey=True,
                                squeeze=False)
    for axis, (cell, group) in zip(axes[0], groups):
        for name, line in group.groupby("selector", sort=False):
            mean = line.groupby("rate")["value"].mean()
            axis.plot(mean.index, mean, lw=2 if "nss" in name else 1, label=name)
        axis.set_title(" ".join(cell), fontsize=9)
        axis.set_xlabel("labelled (%)")
    axes[0, 0].set_ylabel("kinds of fault (%)")
    axes[0, -1].legend(fontsize=7)
else:
    plots.nothing()
plt.show()

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("nss", experiment="nss/diversity")

# %% [markdown]
# **What it means.** In the paper NSS shows the most kinds of fault. Here, with the pair of the text, it
# shows fewer than random selection; with the known original about as many as random selection, on some
# networks more and on some fewer. That follows from what its score is: it takes the candidates of the
# harshest mutation first, and one mutation leads to few confusions, over and over. ATS, which was made
# for diversity, leads; DeepGini, which was not, is close on MNIST and CIFAR-10. So a method can find many
# faults and few kinds of them, and a tester should look at both numbers.

# %% [markdown]
# ## Exercises
#
# **1.** A selector finds a hundred faults of the same kind, another ten faults of ten kinds. Which would
# you rather repair a network with?
#
# ```{admonition} Solution
# :class: dropdown
# It depends on what the hundred are: a frequent confusion may matter most in use, and a hundred examples
# of it teach more than one. Ten kinds say more about where else to look. FDR and FTCR answer two
# questions.
# ```
#
# **2.** Random selection shows most of the kinds with a fifth of the candidates. Why so many?
#
# ```{admonition} Solution
# :class: dropdown
# A kind that occurs $k$ times is missed by a random fifth with probability about $0.8^k$: 11 % for
# $k = 10$. Only rare kinds are missed.
# ```
