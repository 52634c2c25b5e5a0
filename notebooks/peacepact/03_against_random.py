# %% [markdown]
# # PEACEPACT against random order
#
# **The claim** (PEACEPACT IV.C, Table VI). Take 1,000 random inputs. Perturb them one after another,
# each a hundred times, until one yields an adversary; the F-measure is how many inputs that takes.
# Sorting the same 1,000 by PD first is said to save 98.90 to 99.68 % of it.
#
# **What you will learn.** How this protocol differs from NSATP's, which prints the same numbers for
# it; and how far a saving depends on how rare fragile inputs are.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dnnlib import inference, published, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load, profile_limit
from dnnlib.measures import fragility, uncertainty
from dnnlib.perturb import vulnerability

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "net1"  # net1 or net2; net1_peacepact as PEACEPACT's Table II draws it
seed = 0  # of the training, of the patches and of the random orders
trials = 100  # M, patched copies of each image
repeats = 10  # individual tests that are averaged
candidates = 1000  # how many inputs are drawn and ordered
patch = "random"  # reading: random, invert or evolved
profile = "embedded"  # embedded: at most 1,000 images; paper: the whole test set, and a record

# %%
data = load(dataset, limit=profile_limit(profile))
network = training.trained(model, dataset, recipe_name="nsatp", seed=seed)
measured = vulnerability.measure(network, data, patch=patch, trials=trials, seed=seed)
success = measured.success.numpy()
print(data)
print(f"test accuracy {inference.accuracy(network, data.images, data.labels):.3f}; "
      f"{success.any(1).mean():.1%} of the inputs ever change")

# %% [markdown]
# ## Ten individual tests
#
# Each test draws its candidates, shuffles them (RAND) and sorts the same ones by PD (PEACEPACT).

# %%
rng = np.random.default_rng(seed)
ranks = uncertainty.rank(measured.probabilities, "pd").numpy()
place = np.empty(len(ranks), int)
place[ranks] = np.arange(len(ranks))  # place[i]: where PD puts input i
found = []
for _ in range(repeats):
    pool = rng.permutation(len(success))[:candidates]
    by_pd = pool[np.argsort(place[pool])]
    found.append([fragility.f_measure(success[order], unit="examples") for order in (by_pd, pool)])
a, r = np.mean(found, axis=0)
rows = [{"distance": "pd", "definition": "examples", "quantity": q, "value": v}
        for q, v in (("f_measure_ranked", a), ("f_measure_random", r), ("inc", fragility.inc(r, a)))]
live = pd.DataFrame(rows)
live.set_index("quantity")[["value"]].round(2)

# %% mystnb={"figure": {"caption": "Share of all label changes met against the share of inputs tried, by PD and by the best order there is.", "name": "fig-peacepact-order"}}
figure, axis = plt.subplots(figsize=(5.5, 3.6))
plots.order_curve(axis, fragility.eff(success), {"PD": ranks})
plt.show()

# %% [markdown]
# ## What saving is possible at all?
#
# No order does better than to succeed on its first input, an F-measure of 1. If a share $q$ of the
# inputs ever changes, random order needs about $1/q$ inputs, so Inc cannot exceed about $1 - q$:
# a saving of 98.90 % needs fewer than 1.1 % fragile inputs, however good the ranking is.

# %%
q = success.any(1).mean()
print(f"fragile inputs: {q:.2%}; random order expects {1 / q:.1f} inputs; "
      f"Inc is at most about {100 * (1 - q):.1f} %")
rows.append({"quantity": "share_fragile", "value": q})

# %%
if profile == "paper":
    records.save(records.Record(
        "peacepact/against_random", dict(dataset=dataset, model=model, seed=seed, trials=trials,
                                         patch=patch, repeats=repeats, candidates=candidates), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Table VI, beside the paper's
#
# The table's numbers are those NSATP prints for **Net-2** under another definition, while the text
# quotes 7.13, 144.82 and 95.07 %, NSATP's **Net-1**. Both are shown; "ours" are whole test sets, mean
# [least, greatest] over the seeds; CIFAR-10 is a JPEG copy.

# %%
ours = records.frame("peacepact/against_random", trials=100, patch="random")
ours = ours[ours["quantity"] != "share_fragile"] if len(ours) else ours
on = ["dataset", "quantity"]
table_6 = published.table("peacepact", 6)
here = live.assign(dataset=dataset)
compare.beside(table_6, ours.query("model == 'net1'"), on=on, live=here if model == "net1" else None)

# %% [markdown]
# Our Net-2 beside the same printed numbers, which are Net-2's in NSATP:

# %%
compare.beside(table_6, ours.query("model == 'net2'"), on=on, live=here if model == "net2" else None)

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("peacepact", experiment="peacepact/against_random")

# %% [markdown]
# **What it means.** Sorting by PD works: the first example tried breaks nearly always. The *size* of
# the printed saving is out of reach by PEACEPACT's own definition on these networks, and not
# because the ranking is weak: it is at its bound. With a hundred patches on each example too many
# examples are fragile for random order to take as long as Table VI says. Counted in perturbed samples,
# NSATP's definition, such savings are within reach; the table seems to hold that count.

# %% [markdown]
# ## Exercise
#
# A ranking saves 80 % on one dataset and 95 % on another. Is it better on the second?
#
# ```{admonition} Solution
# :class: dropdown
# Not necessarily: Inc is bounded by about $1 - q$, and $q$ differs between the datasets. Compare each
# saving with what the best order would save there.
# ```
