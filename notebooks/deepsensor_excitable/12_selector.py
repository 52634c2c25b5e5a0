# %% [markdown]
# # Ours: excitable neurons as a selector
#
# **The question.** [NSS](../nss/02_fault_detection) labels those images first that move the sensitive
# neurons most when they are mutated once more. What if excitable neurons take the place of the
# sensitive ones? No paper asks; both have all that is needed.
#
# **What you will learn.** How to compute Shapley values of a loss without labels; whether the number
# of excitable neurons finds faults; and how to take a score apart until it is clear what in it
# works.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from scipy import stats

from dnnlib import inference, selection, training
from dnnlib.book import plots, records
from dnnlib.data import load, profile_limit
from dnnlib.measures import faults
from dnnlib.neurons import excitable, shapley
from dnnlib.perturb import mutations

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I
seed = 0  # of the training, of the mutations and of the selectors
points = 1  # of the diagonal estimator
profile = "embedded"  # embedded: at most 1,000 candidates; paper: the whole test set, and a record

# %% [markdown]
# ## The score
#
# A candidate $x$ is mutated to $x'$, and its neurons share out the change of loss
# $L(x', \hat y) - L(x, \hat y)$. The label is not known, so $\hat y$ is the class that the network
# gives to $x$ itself. The score is the number of neurons whose share is above $\lambda = 0.5$:
#
# $$\mathrm{score}(x) = |\{ n : \psi_n(x, x', \hat y) > \lambda \}| .$$

# %% tags=["nbval-check-output"]
psi = torch.tensor([[0.7, 0.1, 0.6, -0.2], [0.1, 0.0, 0.2, 0.1], [2.0, 0.3, 0.4, 0.0]])
counts = excitable.excitable(psi).sum(1)
print("scores:", counts.tolist(), " order:", selection.by_score(counts).tolist())
print("of the shares of the mean:", excitable.excitable(psi, scale="total").sum(1).tolist())

# %% [markdown]
# The last line is the other scale, `total`, in units of the mean absolute value: the second
# candidate, whose loss hardly changes, then has as many excitable neurons as any. Counts tie often;
# ties keep the order in which the candidates came.

# %% [markdown]
# ## The candidates
#
# Those of the chapter on NSS: each test image is changed by one of seven benign mutations. The fresh
# mutation of NSS and of the new selector is the same, drawn with another seed.

# %%
data = load(dataset, limit=profile_limit(profile))
network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
candidates = mutations.mutate(data.images, seed=seed).images
given = inference.predict(network, candidates).argmax(1)
wrong = (given != data.labels).numpy()
print(data)
print(f"{wrong.mean():.1%} of the candidates are faults")

# %% [markdown]
# ## The selectors
#
# Beside random, DeepGini and NSS, three that take the score apart, all with the same fresh mutation:
#
# - `loss`: the change of loss itself, which the Shapley values add up to; two passes, no neurons;
# - `flip`: whether the class changes at all, then the change of loss;
# - `true labels`: the count with the true class for $\hat y$, which nobody has who selects. Its game
#   is that of the swarm.

# %%
fresh_seed = 1000 + seed
options = {"random": {"seed": seed}, "gini": {}, "nss": {"seed": fresh_seed},
           "excitable": {"seed": fresh_seed, "points": points}}
selectors = {name: selection.selector(name, **given) for name, given in options.items()}
selectors["excitable, total"] = selection.selector("excitable", scale="total",
                                                   **options["excitable"])
orders = selection.orders(network, candidates, selectors)
fresh = mutations.mutate(candidates, seed=fresh_seed).images
before, after = (-inference.predict(network, x).clamp_min(1e-12).log().double()
                 for x in (candidates, fresh))
rising = (after - before).gather(1, given[:, None])[:, 0]
flips = (after.argmin(1) != given).double()
moved = (fresh != candidates).flatten(1).any(1)
game = shapley.Game(network, candidates[moved], fresh[moved], data.labels[moved])
known = torch.zeros(len(candidates))
known[moved] = excitable.excitable(shapley.diagonal(game, points=points).values).sum(1).float()
scores = {"loss": rising, "flip": flips * (1 + rising.max()) + rising, "true labels": known,
          "excitable": selectors["excitable"].score(network, candidates),
          "excitable, total": selectors["excitable, total"].score(network, candidates)}
orders |= {name: selection.by_score(scores[name]) for name in ("loss", "flip", "true labels")}

# %% [markdown]
# ## Fault detection rate and APFD
#
# The share of faults among the first 5 to 20 % of an order, in percent, and the average percentage
# of faults detected, for which a random order has 50.

# %%
rates = (5, 10, 15, 20)
rows = []
for name, order in orders.items():
    method, *scale = name.split(", ")
    column = {"method": method} | ({"scale": scale[0]} if scale else {})
    rows += [column | {"rate": rate, "quantity": "fdr",
                       "value": 100 * faults.fault_detection_rate(wrong, order, rate / 100)}
             for rate in rates]
    rows.append(column | {"quantity": "apfd", "value": 100 * faults.apfd(wrong, order)})
for method, value in (("best possible", lambda rate: faults.best_rate(wrong, rate / 100)),
                      ("random, expected", lambda rate: wrong.mean())):
    rows += [{"method": method, "rate": rate, "quantity": "fdr", "value": 100 * value(rate)}
             for rate in rates]


def selector_table(table: pd.DataFrame, index: list[str]) -> pd.DataFrame:
    """FDR at each rate, and APFD, of every selector; means."""
    table = table[table["quantity"].isin(["fdr", "apfd"])].copy()
    table["selector"] = table[["method", "scale"]].apply(lambda r: ", ".join(r.dropna()), axis=1)
    table["at"] = [f"{rate:.0f} %" if quantity == "fdr" else "APFD"
                   for quantity, rate in zip(table["quantity"], table["rate"])]
    columns = [f"{rate} %" for rate in rates] + ["APFD"]
    return table.pivot_table(index=[*index, "selector"], columns="at", values="value",
                             sort=False)[columns].round(1)


selector_table(pd.DataFrame(rows), []).astype(object).fillna("")

# %% mystnb={"figure": {"caption": "Share of all faults found against the share of candidates labelled, for the run above. The dotted line has all faults first, the grey one is the expectation of a random order.", "name": "fig-excitable-selector"}}
shown = ["gini", "nss", "excitable", "excitable, total", "loss", "true labels"]
figure, axis = plt.subplots(figsize=(6, 3.8))
plots.order_curve(axis, wrong, {name: orders[name].numpy() for name in shown},
                  what="faults found")
plt.show()

# %% [markdown]
# ## What is in the score?
#
# How well each score tells faults from the rest (area under the ROC curve; 0.5 is chance), how many
# different values it has, its rank correlation with the change of loss and with DeepGini:

# %%
p = inference.predict(network, candidates)
scores["gini"] = 1 - p.double().square().sum(1)
scores["nss"] = selectors["nss"].score(network, candidates)


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Spearman's; NaN where one of them is the same for all."""
    return stats.spearmanr(a, b).statistic if a.std() > 0 and b.std() > 0 else np.nan


inside = pd.DataFrame({name: {
    "auc": faults.roc_area(wrong, score), "values": score.unique().numel(), "zero": 100 * float(
        (score == 0).double().mean()), "with_loss": correlation(score, rising),
    "with_gini": correlation(score, scores["gini"])} for name, score in scores.items()}).T
rows += [{"method": name.split(", ")[0], "quantity": quantity, "value": value}
         | ({"scale": name.split(", ")[1]} if ", " in name else {})
         for name, line in inside.iterrows() for quantity, value in line.items()]
inside.round(2)

# %% [markdown]
# ## Points ahead
#
# FDR of the excitable selector, less that of the others, in points. From `loss` on, this is what
# the neurons add to the change of loss that they share out.

# %%
fdr = {(r["method"], r.get("scale"), r["rate"]): r["value"] for r in rows
       if r["quantity"] == "fdr"}
rows += [{"method": "excitable", "rate": rate, "quantity": f"over_{other}",
          "value": fdr["excitable", None, rate] - fdr[other, None, rate]}
         for rate in rates for other in ("gini", "nss", "random", "loss", "flip")]
live = pd.DataFrame(rows)
ahead = live[live["quantity"].str.startswith("over_")]
ahead.pivot(index="quantity", columns="rate", values="value").rename(columns=int).round(1)

# %%
if profile == "paper":
    records.save(records.Record(
        "deepsensor_excitable/selector",
        dict(dataset=dataset, model=model, recipe=recipe, seed=seed, candidates="random",
             points=points), rows, records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Over all records
#
# Fault detection rates and APFD, means over the seeds; then the points that the excitable selector
# is ahead.

# %%
ours = records.frame("deepsensor_excitable/selector")
if len(ours):
    cell = ["dataset", "model"]
    display(selector_table(ours, cell).astype(object).fillna(""))
    ahead = ours[ours["quantity"].str.startswith("over_")]
    display(ahead.pivot_table(index=[*cell, "quantity"], columns="rate", values="value",
                              sort=False).rename(columns=int).round(1))

# %% mystnb={"figure": {"caption": "Fault detection rate with a twentieth of the candidates selected: mean over the seeds, lines give the range.", "name": "fig-excitable-selector-records"}}
if len(ours):
    drawn = ours.query("quantity == 'fdr' and rate == 5").copy()
    drawn["selector"] = drawn[["method", "scale"]].apply(lambda r: ", ".join(r.dropna()), axis=1)
    plots.dots(drawn, row="selector", panel=["dataset", "model"], xlabel="FDR at 5 % (%)")
else:
    plots.nothing()
plt.show()

# %% [markdown]
# ## Verdict
#
# There is no claim to judge; the tables above are the answer.
#
# **What it means.** The count looks at one fresh mutation, and asks whether the network would change
# its mind. That says something about a candidate only as far as one near a boundary is moved across
# it more easily, and a single random mutation is a coarse way to find out: DeepGini reads the same
# from the softmax, in one pass instead of ten. If `loss` and `flip` find as many faults as the count,
# the Shapley values added nothing to the sum that they share out. And `true labels` says whether it
# is the missing label that holds the count back: there, a fault is an input whose loss is high
# *before* the mutation, which lets it rise the less.
#
# On MNIST, with either network, the count finds no more faults than random order, with 5 % selected
# even fewer, and it is not the neurons that fail: `loss` and `flip`, and NSS too, are near chance as
# well. DeepGini finds about three times as many.

# %% [markdown]
# ## Exercises
#
# **1.** One mutation is a coarse question. Add up the counts under five fresh mutations.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# total = sum(selection.selector("excitable", seed=s).score(network, candidates)
#             for s in range(2000, 2005))
# print(faults.fault_detection_rate(wrong, selection.by_score(total), 0.1))
# ~~~
#
# Chance averages out and ties get fewer; the price is fifty passes for each candidate.
# ```
#
# **2.** Break the ties of the count by DeepGini. How much of the result is then DeepGini's?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# both = scores["excitable"] + scores["gini"]  # DeepGini's score is below 1
# print(faults.fault_detection_rate(wrong, selection.by_score(both), 0.1))
# ~~~
#
# Look at the share of candidates with a count of 0 (column `zero`): these are ordered by DeepGini
# alone.
# ```
