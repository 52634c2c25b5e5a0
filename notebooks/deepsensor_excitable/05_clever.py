# %% [markdown]
# # Does retraining on generated examples move the boundary away?
#
# **The claim** (DeepSensor II, 6.2.2, Fig. 6). Retraining on DeepSensor's examples raises the
# {term}`CLEVER` score by 0.12 on average: about three times as much as retraining on the other
# {term}`fuzzers' <fuzzer>` examples. The score estimates an {term}`L2 distance` within which no
# attack can succeed.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 60  # benign inputs, each with one generated example; the paper has 500
iterations = 20  # of every fuzzer
population = 5  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value
bounds = "2"  # bounds on the L2 distance of generated examples, beside the paper's: none
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
epochs = 20  # of the retraining
learning_rate = 0.01  # of the retraining; the paper has none
random_starts = 1  # of PGD, as its authors have it; reading: 0, it starts at the image
eps = 0.3  # of PGD, in L-infinity; 0.5 on ImageNet
attack_steps = 10  # of PGD; 100 is the attack's default
clever_inputs = 3  # test images whose CLEVER scores are averaged
clever_batches = 2  # N_b of CLEVER, 500 in the paper
clever_samples = 32  # N_s of CLEVER, 1,024 in the paper
radius = 2.0  # of the L2 ball; the paper has none
clever_fit = "maximum"  # of few batches; the records fit a Weibull distribution, `ibm`, as CLEVER does
deepfool_steps = 10  # at most; 100 is the attack's default
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load
from dnnbook.display import campaign_plots, plots
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, clever
from dnnbook.studies.findings.deepsensor import rises, seeds_of, table_of
from dnnbook.training import retraining
from dnnbook.words import listed, shown, span
from dnnlib import fuzzing, inference, robustness

plots.style()
run = Experiment("deepsensor_excitable/clever", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, inputs=inputs, iterations=iterations, population=population,
                 points=points, bounds=bounds, others=others, references=references, held_out=held_out,
                 epochs=epochs, learning_rate=learning_rate, eps=eps, attack_steps=attack_steps,
                 random_starts=random_starts, clever_inputs=clever_inputs, clever_batches=clever_batches,
                 clever_samples=clever_samples, clever_fit=clever_fit, radius=radius, deepfool_steps=deepfool_steps)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-clever")

# %% tags=["hide-input", "statements"]
rows = at_best(records.existing("deepsensor_excitable/clever"), "dataset", "model")
NAMES = ["benign", "noise", "deephunter", "deepxplore", "dlfuzz", "pgd_at", "excitable", "sensitive", "constant", "random"]
score_gains = {bound: table_of(rows, NAMES, "model", quantity="clever_gain", budget=bound) for bound in ("none", "2")}
ways = {bound: rises(rows, NAMES, "model", quantity="deepfool_l2", budget=bound) for bound in ("none", "2")}
gain, way = (evidence.spread(each["none"]["excitable"]) for each in (score_gains, ways))
sure = gain[(gain["high"] < 0) & (way["high"] < 0)].index
says((f"**The answer.** No. After retraining on the excitable swarm's examples without a bound, the score changes by {span(gain['mean'], 2)} "
      f"in the mean of each network, where the paper has a gain of {0.12}. The verdict on that gain is "
      f"*{evidence.state('deepsensor-excitable-clever-average')}*.", gain["mean"].max() < 0),
     (f"DeepFool's way to the boundary changes by {span(way['mean'], 2)}.", way["mean"].max() < 0),
     (f"By the seeds of each network alone, both losses are clear with {listed(sure)}.", 0 < len(sure) < len(gain)))

# %% tags=["hide-input", "statements"]
least = {name: np.minimum(score_gains["2"][name], ways["2"][name]).groupby("model").min() for name in NAMES}
away = {name: found.index[found > 0] for name, found in least.items()}
says((f"DLFuzz's examples within a distance of {2} move the boundary away with every seed of {listed(away['dlfuzz'])}, both by "
      "the score and by DeepFool's way. The excitable swarm's do so with no network.", len(away["dlfuzz"]) > 0 == len(away["excitable"])))

# %% [markdown]
# ## In one picture
#
# Are the bars above zero at all? And does any bar of DeepSensor come near the broken line?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 6 from the records, by the bound on the examples' L2 distance: what retraining adds to the CLEVER score. Mean over the random seeds; lines give the range. Broken line: DeepSensor's mean in the paper.", "name": "fig-excitable-clever-records"}}
kept = run.recorded()
plots.nothing() if kept.empty else campaign_plots.fuzzer_bars(
    at_best(kept, "dataset", "model").query("quantity == 'clever_gain'"), line=0.12,
    group=["dataset", "model", "budget"], ylabel="increase in CLEVER (L2)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** Why a CLEVER score from few samples is too large, and how an attack shows it. And
# how to compare gains when some of them are losses.

# %% [markdown]
# ## When the score is no lower bound
#
# [The score](../deepsensor_sensitivity/07_robustness) is $\min_j g(x_0) / L$. Here $g = f_c - f_j$,
# and $L$ is the largest gradient norm in a ball. The score is a lower bound if $L$ is really that
# maximum. From samples, $L$ is too small, and so the score is too large. For example, take
# $g(x) = 1 - 4(x - \tfrac12)^2$ of one pixel at $x_0 = \tfrac12$. The boundary is at a distance of
# $\tfrac12$ on either side. There the gradient is 4, so the true score is $\tfrac14$.

# %% tags=["hide-input"]
class Hill(torch.nn.Module):
    """f = (1 - 4 (x - 1/2)^2, 0)."""

    def __init__(self):
        super().__init__()
        self.height = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        g = self.height - 4 * (x.flatten(1) - 0.5) ** 2
        return torch.cat([g, torch.zeros_like(g)], 1)


hill, top = Hill(), torch.full((1, 1, 1, 1), 0.5)


def sampled(number: int, radius: float) -> torch.Tensor:
    """Points of the ball around the top, as the engine draws them for the first image."""
    own = int(torch.randint(2**62, (), generator=torch.Generator().manual_seed(3)))
    steps = clever.perturbations(number, (1, 1, 1), radius=radius,
                                 generator=torch.Generator().manual_seed(own))
    return (top + torch.cat(list(steps))).clamp(0, 1)


# %%
def score(number: int, radius: float = 0.5) -> float:
    """CLEVER of the hill's top: g(x_0) / L, with L from that many points of the ball."""
    points = sampled(number, radius).requires_grad_()
    g = hill(points)[:, 0] - hill(points)[:, 1]  # f_c - f_j
    gradient, = torch.autograd.grad(g.sum(), points)
    L = gradient.flatten(1).norm(dim=1).max()
    f_c, f_j = hill(top)[0].tolist()
    return (f_c - f_j) / float(L)


# %% tags=["nbval-check-output"]
NUMBERS = (4, 16, 64, 1024)
engine = [clever.clever(hill, top, radius=0.5, batches=1, samples=number, pool=None, fit="maximum",
                        cap=False, seed=3).untargeted.item() for number in NUMBERS]
mine = compared(torch.tensor([score(number) for number in NUMBERS]), torch.tensor(engine),
                "clever", of="numbers of points", but="the scores of networks")
pd.DataFrame({"points": NUMBERS, "CLEVER": mine.tolist(), "way to the boundary": 0.5}).round(2)

# %% [markdown]
# In this draw, four points give a score above the true one. An attack gives the other side: the
# image that it reached is at least as far away as the boundary. So a score that is larger than
# DeepFool's way from the same image is wrong. We print both. CLEVER's own paper fits a Weibull
# distribution to the largest gradients of several batches. It takes the right end of that
# distribution for $L$, which is beyond the largest gradient seen. Our records do so too. Where no
# distribution fits, and for the {term}`reading` `maximum`, $L$ is the largest gradient seen.
#
# ## Networks
#
# The networks are retrained as in [the chapter before](04_attack_success), with the same controls. `benign`
# sees the inputs twice, `noise` sees them under noise, and `pgd_at` sees the examples that PGD makes from
# them.

# %% tags=["hide-input"]
data = load(dataset)
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
right = studies.benign(model, data.images, data.labels, seed=seed)
chosen, unseen = right.tensor_split([inputs])
x, labels = data.images[chosen], data.labels[chosen]
rest = data.images[unseen], data.labels[unseen]
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)

# %%
swarms = studies.swarms(fuzzing.Swarm.paper(population=population), points=points, seed=seed)
known = studies.known_images(dataset, data, chosen, references)
baselines = studies.rivals(oracles, known, best=(data.images, data.labels), count=held_out)
budgets = {"none": None} | studies.bounds(bounds)
found = studies.at_bounds(model, x, labels, swarms | baselines | {FuzzerKey("noise"): fuzzing.Noise()},
                          budgets, iterations=iterations, seed=seed)
pgd = robustness.PGD(eps=eps, eps_step=eps / 3, iterations=attack_steps,
                     random_starts=random_starts)
by_pgd = robustness.attack_success_rate(model, x, labels, pgd, seed=seed).images

# %%
BEFORE, BENIGN, PGD_AT = map(FuzzerKey, (retraining.BEFORE, "benign", "pgd_at"))
benign = replace(data, images=x, labels=labels)
steps = replace(retraining.RECIPE, learning_rate=learning_rate, epochs=epochs)
controls = {BEFORE: model} | retraining.retrained(
    model, benign, {BENIGN: (x, labels), PGD_AT: (by_pgd, labels)}, steps, seed=seed)
examples = {name: (each.images, each.labels[each.origin[-1]]) for name, each in found.items()}
models = {(budget, key): each for budget in budgets for key, each in controls.items()}
models |= retraining.retrained(model, benign, examples, steps, seed=seed)

# %% tags=["hide-input"]
print(f"{len(x)} inputs, {len(set(models.values()))} networks")

# %% [markdown]
# ## Scores
#
# A score belongs to an image that the network gets right, and networks are compared on the same
# images and the same points around them. So only those images count that every network gets right.
# For a network that got worse, the score shows what it can still do, and its accuracy stands beside
# the score. A network that gets less than half of the images right after retraining is left out of
# this choice, and its score is 0.

# %% tags=["hide-input"]
able = {each for each in models.values() if inference.accuracy(each, *rest) > 0.5}
common = retraining.all_right(able, *rest).nonzero().flatten()[:clever_inputs]
scored, scored_labels = rest[0][common], rest[1][common]
nearest = robustness.DeepFool(iterations=deepfool_steps, overshoot=0.02)


@cache
def scores(model: torch.nn.Module) -> dict[str, float]:
    """Mean CLEVER score, mean L2 way of DeepFool, and on how many images the former is larger."""
    accuracy = {"accuracy": 100 * inference.accuracy(model, *rest)}
    if model not in able:
        return {"clever": 0.0, "deepfool_l2": 0.0, "above_deepfool": 0} | accuracy
    score = clever.clever(model, scored, radius=radius, batches=clever_batches, samples=clever_samples,
                          pool=None, fit=clever_fit, seed=seed).untargeted
    reached = robustness.attack_success_rate(model, scored, scored_labels, nearest, seed=seed)
    way = (reached.images - scored).flatten(1).norm(dim=1).double()
    return {"clever": score.mean().item(),
            "deepfool_l2": way.where(reached.fooled, torch.nan).nanmean().item(),
            "above_deepfool": int((reached.fooled & (score > way)).sum())} | accuracy


# %% tags=["hide-input"]
measured = pd.DataFrame({name: scores(each) for name, each in models.items()}).T.rename_axis(
    ["budget", "network"])
print(f"the first {len(scored)} images that all networks get right")
headed(measured.loc["none"].round(3))

# %% [markdown]
# The column *scores above DeepFool's way* counts the images whose score is refuted by an attack.
# Accuracy is in percent of the images that the network got right before. The next table is the
# same, with examples within the last of the `bounds`:

# %% tags=["hide-input"]
headed(measured.loc[list(budgets)[-1]].round(3))

# %% [markdown]
# ## What the claims ask for
#
# The lead is DeepSensor's gain minus the best baseline's gain. The excess is its gain minus three times the
# baselines' mean gain. A ratio would not work. Where a baseline lowers the score, the mean may be close to 0
# or below, and "three times as much" of a loss is a larger loss. But a difference has its own trap: where all
# baselines lose, three times their loss is easily beaten, even by a loss.

# %% tags=["hide-input"]
for budget in budgets:
    gains = retraining.gains(measured["clever"][budget], before=BEFORE)
    for key, line in measured.loc[budget].iterrows():
        run.add(line.to_dict() | ({"clever_gain": gains[key]} if key in gains else {}),
                budget=budget, **key.columns)
    for setting in ("paper", "best") if held_out else ("paper",):
        against = [key for key in baselines if key.setting == setting]
        thrice = 3 * sum(gains[key] for key in against) / len(against)
        for key in swarms:
            run.add({"clever_lead": retraining.lead(gains, key, against),
                     "clever_excess": gains[key] - thrice}, budget=budget, setting=setting,
                    **key.columns)
run.save(data, device=device)
wide(run.live, "quantity in ('clever_lead', 'clever_excess')", index=["quantity", "setting"],
     columns=["budget", "swarm"], digits=3)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 6 for the run above: what retraining adds to the CLEVER score, in L2. For every set of examples and bound on their distance.", "name": "fig-excitable-clever"}}
figure, axis = plt.subplots(figsize=(7, 3.4))
campaign_plots.bars_by_bound(axis, run.live[run.live["quantity"] == "clever_gain"],
                             "increase in CLEVER (L2)")
axis.axvline(0.12, color="0.3", ls="--", lw=1, label="DeepSensor's mean in the paper")
axis.legend(title="bound", fontsize=8)
run.show()

# %% [markdown]
# ## Over all records
#
# The scores are L2 distances; all numbers are means over the random seeds. Of Fig. 6, only the mean
# gain of 0.12 is printed as a number. The table of all rows is folded.

# %% tags=["hide-input", "hide-output"]
ours = run.recorded()
wide(ours, index=["dataset", "model", "budget", "fuzzer", "swarm", "setting"], columns="quantity",
     digits=3)

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
by_what = {"maximum": "the largest gradient, without a fit"}.get(rows["fit"].iloc[0], "a fit")
says(f"Our records cover {sizes(rows)}; {rows['images'].max()} images have a score. CLEVER "
     f"takes {by_what}, from {rows['batches'].max()} batches of {rows['samples'].max()} points. The paper's scale is "
     f"{500} batches of {1024:,} points.",
     f"The rivals ran {of_rivals(rows)}.", evidence.estimator(rows))

# %% [markdown]
# **What it means.** A gain in the score counts only if DeepFool's way grew with it. If only the score grew, the
# gradients became smaller at the sampled points, and the distance need not have become larger.

# %% tags=["hide-input", "statements"]
of_scores = score_gains["none"].groupby("model").mean()
lower = [name for name in ("constant", "dlfuzz", "deephunter") if of_scores[name].max() < 0]
excess = evidence.spread(seeds_of(rows, "model", who="excitable", quantity="clever_excess", budget="none"))["mean"]
says((f"The paper also claims three times the rivals' gain. Our excess over that is {span(excess, 2)} in the mean of each "
      "network. The verdict judges this excess alone. But if everybody loses, it can still be positive, so a cell that holds "
      "is no support while DeepSensor's own gain is not above zero.", excess.max() > 0 > gain["mean"].max()),
     (f"Without a bound, the examples of {listed('the constant fitness' if each == 'constant' else shown(each) for each in lower)} "
      "lower the score of every network too, on average.", len(lower) > 1))

# %% tags=["hide-input", "statements"]
accuracies = table_of(rows, ["before", "dlfuzz"], "model", quantity="accuracy", budget="2")
cost = accuracies["before"] - accuracies["dlfuzz"]
sensitive, added = (evidence.spread(each["none"]["sensitive"]) for each in (score_gains, ways))
says((f"DLFuzz's examples within a distance of {2} cost {span(cost, 1)} points of accuracy.", cost.min() > 1),
     (f"After the examples of the sensitive swarm without a bound, the score rises by {span(sensitive['mean'], 2)} in the "
      f"mean of each network, and DeepFool's way by {span(added['mean'], 2)}.", min(sensitive["mean"].min(), added["mean"].min()) > 0),
     (f"For the score, the seeds decide it with {evidence.surely_above(sensitive)}.", sensitive["low"].max() > 0))

# %% tags=["hide-input", "statements"]
old = at_best(records.frame("deepsensor_excitable/clever", random_starts=0), "dataset", "model")
earlier = seeds_of(old, who="sensitive", quantity="clever_gain", budget="none")
old_way = rises(old, ["sensitive"], quantity="deepfool_l2", budget="none")["sensitive"]
says((f"In older records of {listed(old['model'].unique())}, where PGD starts at the image, retraining on the sensitive swarm's examples "
      "without a bound raises the score with every seed, but with some seed DeepFool's way becomes shorter.",
      earlier.min() > 0 > old_way.min()),
     ("DeepFool refuted no score: it never came nearer than the score allows.",
      rows.query("quantity == 'above_deepfool'")["value"].astype(float).max() == 0))

# %% [markdown]
# ## Exercises
#
# **1. Try.** How does the score of one image change with the number of points?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for number in (8, 32, 128, 512):
#     found = clever.clever(model, scored[:1], radius=radius, batches=1, samples=number, pool=None,
#                           fit=clever_fit, seed=seed)
#     print(number, round(found.untargeted.item(), 3))
# ~~~
#
# The largest gradient can only grow if points are added. But here every draw is a new one, so the
# score may also rise from one line to the next.
# ```
#
# **2. Try.** Do CLEVER and DeepFool's ways put the networks in the same order?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for budget in budgets:
#     table = measured.loc[budget]
#     print(budget, table["clever"].corr(table["deepfool_l2"], method="spearman").round(2))
# ~~~
#
# Where they do not, at least one of the two does not put the networks in the order of the distance
# to the boundary.
# ```
#
# **3. Think.** Take a CLEVER score from the largest of a few gradients, without a fit. It can only
# be too large. Why?
#
# ```{admonition} Solution
# :class: dropdown
# The largest slope that was seen is never above the true largest slope. A slope that is too small
# makes the quotient of gap and slope too large, and this quotient is the score.
# ```
#
# **4. Code.** Write `my_score(gaps, slopes, radius)`: a CLEVER score. For each wrong class, divide
# the gap between the two outputs by the steepest slope. The score is the least of these ratios, but
# at most the radius. The cell says whether it is right.

# %%
my_score = None  # your function of two tensors (classes,) and a number

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda gaps, slopes, radius: (gaps / slopes).min().clamp(max=radius),
          (torch.tensor([4.0, 1.0]), torch.tensor([2.0, 5.0]), 5.0),
          (torch.tensor([9.0, 8.0]), torch.tensor([1.0, 1.0]), 5.0))


is_right(my_score)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_score(gaps, slopes, radius):
#     return min(radius, *(float(g / s) for g, s in zip(gaps, slopes)))
#
# is_right(my_score)
# ~~~
#
# We looked at no slope beyond the radius, so we may say nothing about what lies there.
# ```
