# %% [markdown]
# # Do excitable neurons find faults?
#
# **The question** is ours and comes from no paper. [NSS](../nss/02_fault_detection) mutates images once more, and
# labels those first whose {term}`sensitive neurons <sensitive neuron>` then move most. What if
# {term}`excitable neurons <excitable neuron>` take the place of the sensitive ones? No paper asks this, but the
# two methods together have all that is needed.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I; nss_second: its other stage
seed = 0  # of the training, and of all else that is random
points = 4  # of the diagonal estimator of Shapley values
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from scipy import stats

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.selection_plots import named
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies.findings.deepsensor import seeds_of, sides_of, table_of
from dnnbook.studies.ordering import SelectorKey
from dnnbook.words import listed, shown, span
from dnnlib import inference, selection
from dnnlib.measures import faults
from dnnlib.neurons import excitable, shapley
from dnnlib.perturb import mutations

plots.style()
run = Experiment("deepsensor_excitable/selector", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, candidates="random", points=points)

# %% tags=["hide-input", "statements"]
rows = records.existing("deepsensor_excitable/selector")
rows = rows[(rows["points"] == rows["points"].max()) & rows["scale"].isna()]  # the count in nats, not scaled
most, fewest = (table_of(rows, ["excitable", "random, expected", "gini", "flip"], "model", quantity="fdr", rate=at)
                for at in (20, 5))
zero = seeds_of(rows, "model", who="excitable", quantity="zero")
chance = [evidence.spread(found["excitable"] - found["random, expected"])["mean"] for found in (fewest, most)]
chance = pd.concat(chance)
says((f"**The answer.** Hardly more than chance does: the fault detection rate differs from that of a random order by "
      f"{chance.min():.1f} to {chance.max():.1f} points on average.", chance.max() < 2),
     (f"For {span(zero)} % of the candidates the count is zero. It cannot order them: beyond the first few percent, the "
      "order is that of the data.", zero.min() > 90),
     ("DeepGini, which needs no neuron and one pass, finds more than twice as many faults.",
      min((found["gini"] / found["excitable"]).min() for found in (most, fewest)) > 2))

# %% [markdown]
# ## In one picture
#
# Points farther to the right found more faults for the same number of labels. Look for the selector by excitable
# neurons. Compare it with the random order, and with `flip`, which looks at no neuron.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fault detection rate with a twentieth of the candidates selected: mean over the seeds, lines give the range.", "name": "fig-excitable-selector-records"}}
CELL = ["dataset", "model"]
kept = run.recorded()
plots.nothing() if kept.empty else plots.dots(
    named(kept.query("quantity == 'fdr' and rate == 5")), row="selector", panel=CELL, xlabel="FDR at 5 % (%)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to compute {term}`Shapley values <Shapley value>` of a loss without labels, and how to
# take a score apart until it is clear which part of it works.

# %% [markdown]
# ## The score
#
# A {term}`candidate` $x$ is mutated to $x'$, and its neurons share out the change of the loss
# $L(x', \hat y) - L(x, \hat y)$. We do not know the label, so $\hat y$ is the class that the network gives to $x$
# itself. The score is the number of neurons whose share is above $\lambda = 0.5$:
#
# $$\mathrm{score}(x) = |\{ n : \psi_n(x, x', \hat y) > \lambda \}| .$$

# %% tags=["nbval-check-output"]
psi = torch.tensor([[0.7, 0.1, 0.6, -0.2], [0.1, 0.0, 0.2, 0.1], [2.0, 0.3, 0.4, 0.0]])
counts = excitable.excitable(psi).sum(1)
print("scores:", counts.tolist(), " order:", selection.by_score(counts).tolist())
print("of the shares of the mean:", excitable.excitable(psi, scale="total").sum(1).tolist())

# %% [markdown]
# The last line uses the other scale, `total`, in units of the mean absolute value. On it, the second candidate has
# the most excitable neurons, although its loss hardly changes. Counts are often equal; candidates with
# equal counts keep the order in which they came.

# %% [markdown]
# ## The candidates
#
# The candidates are those of the chapter on NSS: each test image is changed by one of seven
# {term}`benign mutations <benign mutation>`. NSS and the new selector use the same fresh mutation, which is drawn
# with another seed.

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
candidates = mutations.mutate(data.images, seed=seed).images
p = inference.predict(model, candidates)
given = p.argmax(1)
wrong = (given != data.labels).numpy()
print(data)
print(f"{wrong.mean():.1%} of the candidates are faults")

# %% [markdown]
# ## The selectors
#
# Beside random order, {term}`DeepGini` and NSS, there are three selectors that take the score apart. All use the same
# fresh mutation:
#
# - `loss` is the change of the loss itself, to which the Shapley values add up. It takes two passes and no neurons.
# - `flip` asks whether the class changes at all, and then for the change of the loss.
# - `true labels` is the count with the true class for $\hat y$, which nobody has who selects. Its game is that of
#   the {term}`swarm`.

# %%
again = {"seed": 1000 + seed}
fresh = mutations.mutate(candidates, **again).images  # x'
changed = (fresh != candidates).flatten(1).any(1)  # some mutations leave an image as it was
game = shapley.Game(model, candidates[changed], fresh[changed], given[changed])  # of the loss
my_count = torch.zeros(len(candidates))
my_count[changed] = (shapley.diagonal(game, points=points).values > 0.5).sum(1).float()

# %%
selectors = {SelectorKey("random"): selection.selector("random", seed=seed),
             SelectorKey("gini"): selection.selector("gini"),
             SelectorKey("nss"): selection.selector("nss", **again),
             SelectorKey("excitable"): selection.selector("excitable", points=points, **again),
             SelectorKey("excitable", scale="total"): selection.selector(
                 "excitable", points=points, scale="total", **again)}
usual_orders = studies.orders(model, candidates, selectors)
score = compared(my_count, selectors[SelectorKey("excitable")].score(model, candidates),
                 "selection.excitable", of="candidates")

# %%
before, after = (-inference.predict(model, x).clamp_min(1e-12).log().double()
                 for x in (candidates, fresh))
rising = (after - before).gather(1, given[:, None])[:, 0]
flips = (after.argmin(1) != given).double()

# %% [markdown]
# The same count with the true labels, and the order by each score:

# %%
told = shapley.Game(model, candidates[changed], fresh[changed], data.labels[changed])
known = torch.zeros(len(candidates))
known[changed] = excitable.excitable(shapley.diagonal(told, points=points).values).sum(1).float()
apart = {SelectorKey("loss"): rising, SelectorKey("flip"): flips * (1 + rising.max()) + rising,
         SelectorKey("true labels"): known}
orders = usual_orders | {key: selection.by_score(each) for key, each in ({SelectorKey("excitable"): score} | apart).items()}

# %% [markdown]
# ## Fault detection rate and APFD
#
# The tables show the percentage of faults among the first 5 to 20 % of an order, which is the
# {term}`fault detection rate`. They also show the average percentage of faults detected ({term}`APFD`). A random order has an
# APFD of 50.

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

quiz("Of 1,000 candidates, 900 have not one excitable neuron. A fifth is selected by the count. How "
     "many of the selected ones did the count choose?",
     {"20": False, "100": min(200, 1000 - 900) == 100, "200": False},
     "Only 100 have a count at all. The other places are filled from 900 equals, in whatever order "
     "they come.")

# %%
RATES = (5, 10, 15, 20)
fdr = faults.detection_table(wrong, orders, RATES)
fdr.loc[SelectorKey("best possible")] = [100 * faults.best_rate(wrong, rate / 100) for rate in RATES]
fdr.loc[SelectorKey("random, expected")] = 100 * wrong.mean()
apfd = {key: 100 * faults.apfd(wrong, order) for key, order in orders.items()}

# %% tags=["hide-input"]
run.add(studies.tidy(fdr, "fdr"))
for key, value in apfd.items():
    run.add({"apfd": value}, **key.columns)
wide(named(run.live.query("quantity in ('fdr', 'apfd')")), index="selector", columns=["quantity", "rate"])

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of all faults found against the share of candidates labelled, for the run above. The dotted line has all faults first, the grey one is the expectation of a random order.", "name": "fig-excitable-selector"}}
_, axis = plt.subplots(figsize=(6, 3.8))
plots.order_curve(axis, wrong, {shown(str(key)): order.numpy() for key, order in orders.items()
                                if key not in (SelectorKey("random"), SelectorKey("flip"))}, what="faults found")
run.show()

# %% [markdown]
# ## What is in the score?
#
# How well does each score tell faults from the rest? The table shows the area under the ROC curve, where 0.5 is
# chance. It also shows how many different values the score has, and its {term}`rank correlation` with the change of
# the loss and with DeepGini:

# %%
scaled = SelectorKey("excitable", scale="total")
scores = apart | {SelectorKey("excitable"): score, scaled: selectors[scaled].score(model, candidates)}
scores[SelectorKey("gini")] = 1 - p.double().square().sum(1)
scores[SelectorKey("nss")] = selectors[SelectorKey("nss")].score(model, candidates)


# %%
def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Spearman's; NaN where one of them is the same for all."""
    return stats.spearmanr(a, b).statistic if a.std() > 0 and b.std() > 0 else np.nan


# %%
inside = {key: {"auc": faults.roc_area(wrong, score), "values": score.unique().numel(),
                "zero": 100 * float((score == 0).double().mean()),
                "with_loss": correlation(score, rising),
                "with_gini": correlation(score, scores[SelectorKey("gini")])}
          for key, score in scores.items()}

# %% tags=["hide-input"]
for key, line in inside.items():
    run.add(line, **key.columns)
headed(pd.DataFrame(inside).T.round(2))

# %% [markdown]
# ## Points ahead
#
# The table shows the FDR of the excitable selector minus that of each other selector, in points. From `loss` on, this
# is what the neurons add to the change of the loss that they share out.

# %%
OTHERS = ("gini", "nss", "random", "loss", "flip")
for other in OTHERS:
    ahead = fdr.loc[[SelectorKey("excitable")]] - fdr.loc[SelectorKey(other)]
    run.add(studies.tidy(ahead, f"over_{other}"))

# %% tags=["hide-input"]
run.save(data, device=device)
AHEAD = f"quantity in {[f'over_{other}' for other in OTHERS]}"
wide(run.live, AHEAD, index="quantity", columns="rate")

# %% [markdown]
# ## Over all records
#
# The tables show fault detection rates and APFD, as means over the seeds, and then the points by which the excitable
# selector is ahead.

# %% tags=["hide-input"]
display(wide(named(run.recorded()), "quantity in ('fdr', 'apfd')", index=[*CELL, "selector"],
             columns=["quantity", "rate"]))
wide(run.recorded(), AHEAD, index=[*CELL, "quantity"], columns="rate")

# %% [markdown]
# ## Verdict
#
# There is no claim to judge; the tables above are the answer.

# %% [markdown]
# **What it means.** If `loss` and `flip` find as many faults as the count, then dividing the change of the loss among
# the neurons added nothing.

# %% tags=["hide-input", "statements"]
all_tied = [name for name, least in zero.groupby("model").min().items() if least == 100]
says(f"Our records cover {listed(map(shown, rows['model'].unique()))} on MNIST, with "
     f"{rows['seed'].nunique()} seeds.", evidence.estimator(rows))
says(*([(f"With {listed(map(shown, all_tied))} the count is zero for all candidates, so the faults found there only show "
         "the order of the data.", seeds_of(rows, "model", who="excitable", quantity="auc")[all_tied].eq(0.5).all())]
       if all_tied else []))

# %% tags=["hide-input", "statements"]
flip, early = (evidence.spread(found["flip"] - found["excitable"]) for found in (most, fewest))
gini, below = most["gini"] / most["excitable"], sides_of(early).behind
says((f"`flip` divides nothing among neurons: it asks whether the mutation changed the prediction, and then by how much the "
      f"loss rose. With the most labels it is {span(flip['mean'])} points above the count.", flip["low"].min() > 0),
     (f"With the fewest labels it is {span(-early['mean'])} below on average, which is more than chance only with "
      f"{listed(below)}.", early["mean"].max() < 0 < len(below) < len(early)),
     (f"With the most labels, DeepGini finds {span(gini, 1)} times as many faults as the count, in one pass.",
      gini.min() > 2))

# %% [markdown]
# ## Exercises
#
# **1. Try.** One mutation gives a coarse answer. Add up the counts under five fresh mutations.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# total = sum(selection.selector("excitable", seed=s).score(model, candidates)
#             for s in range(2000, 2005))
# print(faults.fault_detection_rate(wrong, selection.by_score(total), 0.1))
# ~~~
#
# The sum depends less on a single mutation, and it can take more values than one count. The price is five
# times that of one count. Is the rate higher than in the table above?
# ```
#
# **2. Try.** Break the ties of the count by DeepGini. How much of the result is then DeepGini's?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# both = scores[SelectorKey("excitable")] + scores[SelectorKey("gini")]  # DeepGini's score is below 1
# print(faults.fault_detection_rate(wrong, selection.by_score(both), 0.1))
# ~~~
#
# Look at the share of candidates with a count of 0 (column `zero`): these are ordered by DeepGini
# alone.
# ```
#
# **3. Think.** The score needs the loss, and the loss needs a label. What takes the place of the label here?
# What does the score then say about an input that the network gets wrong?
#
# ```{admonition} Solution
# :class: dropdown
# The network's own prediction. For an input that the network gets wrong, the loss is then measured against the
# wrong class. So the score says how easily the network changes its mind, and not whether it is right.
# ```
#
# **4. Code.** Write `my_order(count, gini)`: indices by count, the largest first; equal counts
# are ordered by DeepGini, the largest first. The cell says whether it is right.

# %%
my_order = None  # your function of two arrays (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda count, gini: np.lexsort((-gini, -count)),
          (np.array([0, 2, 0, 1]), np.array([0.1, 0.2, 0.7, 0.3])))


is_right(my_order)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_order(count, gini):
#     return sorted(range(len(count)), key=lambda i: (-count[i], -gini[i]))
#
# is_right(my_order)
# ~~~
# ```
