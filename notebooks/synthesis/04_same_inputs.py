# %% [markdown]
# # Sensitive, excitable, uncertain: the same inputs?
#
# **The question.** The five papers look at an input from three sides. How sure the network is of it (NSATP,
# PEACEPACT), how far, or how many, neurons are moved by a change of it ({term}`NSS`; the first
# {term}`DeepSensor` paper), and which neurons carry the change of loss (the second DeepSensor paper). Each
# says that the inputs that stand out are the ones that break the network. Are they the same inputs?

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I; nss_second: its other stage
seed = 0  # of the training, and of all else that is random
trials = 100  # M, patched copies of each image
references = 10000  # training images that DSA looks at
inputs = 2000  # candidates at most, in the profile `paper`
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from dnnbook import training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.tables import headed, mean_and_interval, wide
from dnnbook.records import evidence, records
from dnnbook.studies.findings.synthesis import over_networks
from dnnbook.words import listed, rounded_down, rounded_up, shown, span
from dnnlib import inference, selection
from dnnlib.measures import faults, fragility
from dnnlib.perturb import mutations, vulnerability

plots.style()
run = Experiment("synthesis/same_inputs", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, trials=trials, references=references, inputs=inputs)

# %% tags=["hide-input", "records"]
CELLS = ["dataset", "model"]
kept = records.frame("synthesis/same_inputs")
means = over_networks(kept)
auc = means.get("auc", means)  # by method, and by the way to break that it finds

# %% tags=["hide-input", "statements"]
between = means["spearman", "gini", "nss"]
says(
    ("**The answer.** No. Uncertainty (DeepGini) and sensitivity under a fresh mutation (NSS) are almost uncorrelated: "
     f"their {len(between)} rank correlations are {span(between, 2)}.", between.abs().max() < 0.2),
    ("The scores look at different kinds of failure: NSATP's (PD) best finds the inputs that a small patch changes, and "
     "NSS those that its own mutation flips.",
     all((auc[name][best] > auc[name].drop(columns=best).max(axis=1)).all() for name, best in (("pd", "fragile"), ("nss", "flipped")))),
    ("The inputs that the network gets wrong, the faults of its paper, NSS finds hardly better than chance.",
     (auc["nss", "wrong"] - 0.5).abs().max() < 0.06))

# %% [markdown]
# **What you will learn.** How to tell whether two scores measure the same thing; and that "this input is
# fragile" and "this input is misclassified" are two different statements.
#
# ## The candidates, and three ways to break
#
# The {term}`candidates <candidate>` are test images, each changed by one of seven
# {term}`benign mutations <benign mutation>`, as in [the chapters on
# NSS](../nss/02_fault_detection). A candidate can break the network in three ways:
#
# - **wrong**: the network gives the candidate another class than its label. This needs the label.
# - **fragile**: of `trials` patches, blocks of 2 x 2 pixels in one random colour at a random place, at least
#   one changes the class that the network gives. This is NSATP's kind of failure; it needs no label.
# - **flipped**: one fresh mutation changes the class. This is what NSS looks at, in its own terms.

# %% tags=["hide-input"]
data = load(dataset, limit=inputs if profile == "paper" else profile_limit(profile))
reference = load(dataset, "train").images[:references]
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
candidates = mutations.mutate(data.images, seed=seed).images
given = inference.predict(model, candidates).argmax(1)
fresh_seed = 1000 + seed

# %%
patched = vulnerability.success_matrix(model, candidates, trials=trials,
                                       generator=torch.Generator().manual_seed(seed))
fresh = mutations.mutate(candidates, seed=fresh_seed).images
broken = {"wrong": (given != data.labels).numpy(), "fragile": fragility.eff(patched) > 0,
          "flipped": (inference.predict(model, fresh).argmax(1) != given).numpy()}

# %% tags=["hide-input"]
print(data)
print(", ".join(f"{100 * hit.mean():.1f} % {way}" for way, hit in broken.items()))

# %% [markdown]
# Do the three ways hit the same inputs? Of the inputs that are broken in one way (row), the table
# gives the share that is also broken in the other way (column), in percent. The last row is the
# share among all inputs, which chance would give.

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
# Two scores say how *uncertain* the network is: {term}`DeepGini`, and NSATP's {term}`PD`, which we
# turn round so that a larger value means less sure. NSS, with a fresh mutation, says how
# *sensitive* the neurons are. *Excitable* is the number of neurons with a {term}`Shapley value`
# above the paper's threshold, $0.5$, under the same mutation. The last score is {term}`DSA`, which
# looks at the distance from the training images.

# %%
options = {"gini": {}, "pd": {}, "nss": {"seed": fresh_seed}, "excitable": {"seed": fresh_seed},
           "dsa": {"reference": reference}}
scores = {name: selection.selector(name, **more).score(model, candidates).double().numpy()
          for name, more in options.items()}

# %% [markdown]
# ## Look at them
#
# These are the candidates that each score puts first.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The eight candidates that each score ranks highest, with the class of the network; an x marks the wrong ones.", "name": "fig-same-inputs-first", "classes": "bitmap"}}
order = {name: np.argsort(-score, kind="stable") for name, score in scores.items()}
titles = [f"{data.classes[int(k)]}{' x' if wrong else ''}"
          for k, wrong in zip(given, broken["wrong"])]
plots.sheet({shown(name): (candidates[place[:8].copy()], [titles[i] for i in place[:8]])
             for name, place in order.items()}, columns=8, scale=0.8)
run.show()

# %%
areas = {(name, way): faults.roc_area(hit, score)
         for way, hit in broken.items() for name, score in scores.items()}

# %% tags=["hide-input"]
for (name, way), area in areas.items():
    run.add({"auc": area}, method=name, other=way)
wide(run.live, "quantity == 'auc'", index="method", columns="other", digits=2)

# %% [markdown]
# The table above holds areas under the ROC curve: $0.5$ is chance, and $1$ means that all broken inputs come
# first. Next, how far do the scores agree? We show the {term}`rank correlation` of each pair of scores, and
# what they have in common at the top. Of all inputs in the first $1/10$ of either score, the share that is in
# the first $1/10$ of both (by chance, about $1/19$).

# %%
first = {name: set(place[:max(1, len(place) // 10)]) for name, place in order.items()}
rho = pd.DataFrame(scores).corr("spearman")
common = pd.DataFrame({a: {b: len(first[a] & first[b]) / len(first[a] | first[b]) for b in scores}
                       for a in scores})

# %% tags=["hide-input"]
for a, b in combinations(scores, 2):
    run.add({"spearman": rho.loc[a, b], "jaccard": common.loc[a, b]}, method=a, other=b)
run.save(data, device=device)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

in_both = 1000 * 0.1 * 0.1
quiz("Two scores of 1,000 candidates have nothing to do with each other. How many candidates are in "
     "the first tenth of both, on average?",
     {"None": in_both == 0, "10": in_both == 10, "100": in_both == 100},
     "Each candidate is in either tenth with probability 0.1, and in both with 0.01.")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Agreement of five scores in the run above: rank correlation over all candidates (left), what the first tenths have in common (right).", "name": "fig-same-inputs"}}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), sharey=True)
plots.matrix(axes[0], headed(rho), "rank correlation")
plots.matrix(axes[1], headed(common), "first tenths in common")
run.show()

# %% [markdown]
# ## Over all records
#
# The {term}`records <record>` show how well each score finds each kind of broken input (area under
# the ROC curve), and how far the scores agree (rank correlation). The numbers are means over the
# random seeds, and the half width of their 95 % {term}`interval`.

# %% tags=["hide-input"]
AS = {"index": ["method", "other"], "columns": ["dataset", "model"]}
for quantity in ("auc", "spearman"):
    display(mean_and_interval(run.recorded(f"quantity == '{quantity}'"), digits=2, **AS))
mean_and_interval(run.recorded("quantity in ('share', 'also_broken')").fillna({"other": "of all"}),
                  **AS)

# %% [markdown]
# ## What it means
#
# The table has, from the records, the least and the greatest of the networks' means.

# %% tags=["hide-input"]
headed(pd.DataFrame({way: {name: span(auc[name, way], 2) for name in ("gini", "pd", "nss", "excitable", "dsa") if (name, way) in auc}
                     for way in ("wrong", "fragile", "flipped")}).rename_axis("area under the ROC curve"))

# %% tags=["hide-input", "statements"]
fragile, wrong, flipped = (auc.xs(way, level="other", axis=1)[["gini", "pd"]].stack() for way in ("fragile", "wrong", "flipped"))
also, turned = means["also_broken", "wrong", "fragile"], means["also_broken", "wrong", "flipped"]
says(
    ("DeepGini and PD find the *fragile* inputs almost perfectly. A small patch changes the class of the inputs that are "
     "near a boundary between two classes, and the softmax vector says how near they are.", fragile.min() > 0.9),
    ("They find the *wrong* inputs well, and those that one mutation *flips* less well.",
     0.75 < wrong.min() and flipped.max() < wrong.min()),
    ("NSS finds the flipped inputs, but it measures the effect of the same mutation; for the others it is near chance.",
     auc["nss", "flipped"].min() > flipped.max() and (auc["nss"][["wrong", "fragile"]] - 0.5).abs().max(axis=None) < 0.06),
    ("DSA, which compares activations with those of the training images, finds wrong inputs about as well.",
     auc["dsa", "wrong"].min() > wrong.min() - 0.05 and auc["dsa", "wrong"].max() < wrong.max() + 0.05),
    (f"Being wrong goes together with being fragile: at least {rounded_down(also.min())} % of the wrong inputs are fragile, and at "
     f"most {rounded_up(turned.max())} % are flipped.", also.min() > turned.max()))

# %% tags=["hide-input", "statements"]
count = means["spearman", "nss", "excitable"]  # missing if all inputs have one number, with at least one seed
tied, lenets = count.index[count.isna()], auc["excitable"].loc[count.notna()]
by_count = evidence.by_seed(kept, "method == 'excitable' and quantity == 'auc'", "other", *CELLS)
says(
    ("The number of excitable neurons finds flipped inputs a little with the LeNets, and does not find the others.",
     lenets["flipped"].min() > 0.55 and (lenets[["wrong", "fragile"]] - 0.5).abs().max(axis=None) < 0.05),
    (f"With {listed(shown(model) for _, model in tied)}, it hardly orders them: with at least one random seed, all inputs "
     "have the same number.", len(tied) > 0 and (by_count.unstack(CELLS)[tied] - 0.5).abs().max(axis=None) < 0.01))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Is NSS's score for *flipped* good because it looks at the same mutation? Let another
# mutation decide which inputs are flipped.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# again = mutations.mutate(candidates, seed=5000 + seed).images
# other = (inference.predict(model, again).argmax(1) != given).numpy()
# {name: round(faults.roc_area(other, score), 2) for name, score in scores.items()}
# ~~~
#
# Compare with the column *flipped* in the table of areas. If a score falls to about 0.5 here, it
# describes the mutation that we drew more than the input.
# ```
#
# **2. Try.** Add the ranks of DeepGini and NSS. For which of the three ways to break is the sum
# better than either?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# both_ranks = pd.Series(scores["gini"]).rank() + pd.Series(scores["nss"]).rank()
# {way: round(faults.roc_area(hit, both_ranks), 2) for way, hit in broken.items()}
# ~~~
#
# Compare with the rows of DeepGini and NSS in the table of areas. The sum can help where each of the
# two says something about this way to break that the other does not say.
# ```
#
# **3. Think.** Two scores agree on which inputs are misclassified, and disagree on which are
# fragile. Can both be good?
#
# ```{admonition} Solution
# :class: dropdown
# Yes. A misclassified input may lie deep inside the wrong class, where no small patch changes its
# class. And a fragile input may be classified correctly. Which score is good depends on what you mean
# by "broken".
# ```
#
# **4. Code.** Write `my_spearman(a, b)`, the rank correlation of two scores without ties: it is the
# ordinary correlation of their ranks. The cell says whether it is right.

# %%
my_spearman = None  # your function of two arrays (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda a, b: pd.Series(a).corr(pd.Series(b), method="spearman"),
          (np.array([1.0, 5, 2, 9]), np.array([2.0, 8, 9, 100])),
          (np.arange(5.0), -np.arange(5.0) ** 3))


is_right(my_spearman)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_spearman(a, b):
#     ranks = [np.argsort(np.argsort(score)) for score in (a, b)]
#     return np.corrcoef(ranks)[0, 1]
#
# is_right(my_spearman)
# ~~~
#
# If the largest value grows, nothing changes: only the order counts.
# ```
