# %% [markdown]
# # Sensitive, excitable, uncertain: the same inputs?
#
# **The question.** The five papers look at an input from three sides: how sure the network is of it
# (NSATP, PEACEPACT), how many neurons a change of it moves (NSS, the first DeepSensor), and which
# neurons carry the change of loss (the second). Each calls the inputs that stand out the ones that
# break the network. No paper asks whether they are the same inputs, and an input can break a
# network in more than one way.
#
# **What you will learn.** How to tell whether two scores measure the same thing; and that "this
# input is fragile" and "this input is misclassified" are two statements.

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I
seed = 0  # of the training, of the mutations and of the patches
trials = 100  # patched copies of each input
references = 10000  # training images that DSA looks at
limit = 2000  # candidates at most, in the profile `paper`
profile = "embedded"  # embedded: at most 1,000 candidates; paper: also a record

# %% tags=["hide-input"]
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from dnnlib import inference, selection, training
from dnnlib.book import plots
from dnnlib.book.experiments import Experiment
from dnnlib.book.tables import headed, mean_and_interval, wide
from dnnlib.book.words import shown
from dnnlib.data import load, profile_limit
from dnnlib.measures import faults, fragility
from dnnlib.perturb import mutations, vulnerability

plots.style()
run = Experiment("synthesis/same_inputs", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, trials=trials, references=references, limit=limit)

# %% [markdown]
# ## The candidates, and three ways to break
#
# Test images, each changed by one of seven benign mutations, as in
# [the chapters on NSS](../nss/02_fault_detection). Then:
#
# - **wrong**: the network gives the candidate another class than its label. Needs the label.
# - **fragile**: of `trials` patches of 2 x 2 random pixels, at least one changes the class that the
#   network gives. NSATP's kind of failure; needs no label.
# - **flipped**: one fresh mutation changes the class. What NSS looks at, in its own terms.

# %%
data = load(dataset, limit=limit if profile == "paper" else profile_limit(profile))
reference = load(dataset, "train").images[:references]
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed)
candidates = mutations.mutate(data.images, seed=seed).images
given = inference.predict(model, candidates).argmax(1)
patched = vulnerability.success_matrix(model, candidates, trials=trials,
                                       generator=torch.Generator().manual_seed(seed))
fresh_seed = 1000 + seed
fresh = mutations.mutate(candidates, seed=fresh_seed).images
broken = {"wrong": (given != data.labels).numpy(), "fragile": fragility.eff(patched) > 0,
          "flipped": (inference.predict(model, fresh).argmax(1) != given).numpy()}

print(data)
print(", ".join(f"{100 * hit.mean():.1f} % {way}" for way, hit in broken.items()))

# %% [markdown]
# Do the three ways hit the same inputs? The share of those broken in one way (row) that are broken
# in the other (column), in percent; the last row is the share among all, which chance would give.

# %%
hits = pd.DataFrame(broken).astype(float)
shares = 100 * (hits.T @ hits).div(hits.sum(), axis=0)

# %% tags=["hide-input"]
for a, hit in hits.items():
    run.add({"share": 100 * hit.mean()}, method=a)
    for b in hits.columns.drop(a):
        run.add({"also_broken": shares.loc[a, b]}, method=a, other=b)
pd.concat([shares, 100 * hits.mean().to_frame("all").T]).round(1)

# %% [markdown]
# ## The scores
#
# Uncertain: DeepGini and NSATP's PD, turned round so that a larger value is less decided.
# Sensitive: NSS, with a fresh mutation. Excitable: the number of neurons with a Shapley value above
# 0.5 under the same mutation. And DSA, which looks at the distance from the training images.

# %%
options = {"gini": {}, "pd": {}, "nss": {"seed": fresh_seed}, "excitable": {"seed": fresh_seed},
           "dsa": {"reference": reference}}
scores = {name: selection.selector(name, **more).score(model, candidates).double().numpy()
          for name, more in options.items()}

# %% tags=["hide-input"]
for way, hit in broken.items():
    for name, score in scores.items():
        run.add({"auc": faults.roc_area(hit, score)}, method=name, other=way)
wide(run.live, "quantity == 'auc'", index="method", columns="other", digits=2)

# %% [markdown]
# The table holds areas under the ROC curve: 0.5 is chance, 1 has all broken inputs first. The rank
# correlation of each two scores, and how much of their first tenths they have in common (by chance,
# about 5 % of what both hold together):

# %%
order = {name: np.argsort(-score, kind="stable") for name, score in scores.items()}
first = {name: set(place[:max(1, len(place) // 10)]) for name, place in order.items()}
rho = pd.DataFrame(scores).corr("spearman")
common = pd.DataFrame({a: {b: len(first[a] & first[b]) / len(first[a] | first[b]) for b in scores}
                       for a in scores})

# %% tags=["hide-input"]
for a, b in combinations(scores, 2):
    run.add({"spearman": rho.loc[a, b], "jaccard": common.loc[a, b]}, method=a, other=b)
run.save(data)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Agreement of five scores in the run above: rank correlation over all candidates (left), what the first tenths have in common (right).", "name": "fig-same-inputs"}}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), sharey=True)
plots.matrix(axes[0], headed(rho), "rank correlation")
plots.matrix(axes[1], headed(common), "first tenths in common")
plt.show()

# %% [markdown]
# ## Look at them
#
# The candidates that each score puts first.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The eight candidates that each score ranks highest, with the class of the network; an x marks the wrong ones.", "name": "fig-same-inputs-first"}}
titles = [f"{data.classes[int(k)]}{' x' if wrong else ''}"
          for k, wrong in zip(given, broken["wrong"])]
plots.sheet({shown(name): (candidates[place[:8].copy()], [titles[i] for i in place[:8]])
             for name, place in order.items()}, columns=8, scale=0.8)
plt.show()

# %% [markdown]
# ## Over all records
#
# How well each score finds each kind of broken input (area under the ROC curve), and how the scores
# agree (rank correlation): means over the seeds, and the half width of their 95 % interval.
# CIFAR-10 is a JPEG copy.

# %% tags=["hide-input"]
AS = {"index": ["method", "other"], "columns": ["dataset", "model"]}
for quantity in ("auc", "spearman"):
    display(mean_and_interval(run.recorded(f"quantity == '{quantity}'"), digits=2, **AS))
mean_and_interval(run.recorded("quantity in ('share', 'also_broken')").fillna({"other": "of all"}),
                  **AS)

# %% [markdown]
# **What it means.** They are not the same inputs. Uncertainty and sensitivity under a fresh
# mutation have a rank correlation near zero: each tells who breaks in its own sense, and little
# else. DeepGini and PD find the *fragile* inputs almost perfectly, because a small patch turns
# exactly those inputs that are near a boundary, and the softmax vector says how near. They find the
# *wrong* ones well, and those that one mutation *flips* a little. NSS finds the flipped ones, which
# is what it measures, with the same mutation; of the wrong ones and the fragile ones it knows
# nothing.
#
# So NSATP's and NSS's claims can both be sound where each is tested in its own terms, and still
# only one of them helps to find misclassified inputs: being wrong goes together with being fragile
# (of the wrong ones more than half are), much less with being flipped.
#
# Excitable neurons give the least. On LeNet-5 and on ResNet-20 no count differs from the others
# (`undefined`): a change of loss that is shared out among hundreds of neurons leaves none above
# half a nat. With the few neurons of LeNet-1 the count follows NSS, faintly. And DSA is a third
# thing, half uncertainty and half distance, to a degree that changes with the network.

# %% [markdown]
# ## Exercises
#
# **1.** Is NSS's score for *flipped* good because it looks at the same mutation? Let another one
# decide who is flipped.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# again = mutations.mutate(candidates, seed=5000 + seed).images
# other = (inference.predict(model, again).argmax(1) != given).numpy()
# {name: round(faults.roc_area(other, score), 2) for name, score in scores.items()}
# ~~~
#
# NSS falls towards 0.5 and DeepGini stays where it was: the score describes the mutation that was
# drawn more than the input.
# ```
#
# **2.** Add the ranks of DeepGini and NSS. For which of the three ways to break is the sum better
# than either?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# both_ranks = pd.Series(scores["gini"]).rank() + pd.Series(scores["nss"]).rank()
# {way: round(faults.roc_area(hit, both_ranks), 2) for way, hit in broken.items()}
# ~~~
#
# For *flipped*, a little: an input near a boundary that is hit hard. For the other two NSS only
# adds noise.
# ```
