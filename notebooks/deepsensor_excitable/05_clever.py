# %% [markdown]
# # Does retraining on its examples move the boundary away?
#
# **The claim** (DeepSensor II, 6.2.2, Fig. 6). Retraining on DeepSensor's examples raises the CLEVER
# score, an estimate of the L2 distance that no attack can be below, by 0.12 on average: about three
# times as much as retraining on the other fuzzers' examples.
#
# **What you will learn.** That a CLEVER score of few samples is too large, and how an attack shows
# it; and how to compare gains of which some are losses.

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnlib import fuzzing, inference, robustness, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load
from dnnlib.fuzzing import outcomes
from dnnlib.robustness import clever
from dnnlib.training import retraining

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how it is trained: a name of `training.RECIPES`
seed = 0  # of the trainings, of the choice of seeds, of the fuzzers and of CLEVER's points
seeds_count = 60  # benign images, each with one generated example; the paper has 500
iterations = 20  # of every fuzzer
population = 5  # particles to a seed; the paper has 100
points = 2  # gradients to a Shapley value
bounds = "2"  # bounds on the L2 distance of generated examples, beside the paper's: none
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
epochs = 20  # of the retraining, in batches of 32
learning_rate = 0.01  # of the retraining; the paper has none
eps = 0.3  # of PGD in L-infinity, whose examples are a control; 0.5 on ImageNet
attack_steps = 10  # of PGD; 100 is the attack's default
images = 3  # whose CLEVER scores are averaged; the paper doesn't say how many
batches = 2  # N_b, 500 in the paper
samples = 32  # N_s, 1,024 in the paper
radius = 2.0  # of the L2 ball; the paper has none
fit = "maximum"  # reading: maximum (the paper's formula), or ibm (a Weibull distribution)
deepfool_steps = 10  # at most; 100 is the attack's default
profile = "embedded"  # embedded: a look; paper: also a record

# %% [markdown]
# ## A bound that is none
#
# [The score](../deepsensor_sensitivity/07_robustness) is $\min_j g(x_0) / L$ with $g = f_c - f_j$ and
# $L$ the largest gradient norm in a ball. It is a lower bound if $L$ is that maximum. From samples
# $L$ is too small, and the score too large. Take $g(x) = 1 - 4(x - \tfrac12)^2$ of one pixel at $x_0
# = \tfrac12$: the boundary is at a distance of $\tfrac12$ on either side, where the gradient is 4,
# so that the true score is $\tfrac14$.

# %% tags=["nbval-check-output"]


class Hill(torch.nn.Module):
    """f = (1 - 4 (x - 1/2)^2, 0)."""

    def __init__(self):
        super().__init__()
        self.height = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        g = self.height - 4 * (x.flatten(1) - 0.5) ** 2
        return torch.cat([g, torch.zeros_like(g)], 1)


top = torch.full((1, 1, 1, 1), 0.5)
for number in (4, 16, 64, 1024):
    score = clever.clever(Hill(), top, radius=0.5, batches=1, samples=number, pool=None,
                          fit="maximum", cap=False, seed=3).untargeted.item()
    print(f"{number:5} points: CLEVER {score:.2f}, at a distance of 0.50")

# %% [markdown]
# In this draw four points put the score beyond the boundary. An attack gives the other side: what it
# reached is at least as far as the boundary. So a score above the way of DeepFool from the same image
# is wrong. We print both.
#
# ## Networks
#
# Retrained as in [the chapter before](04_attack_success), with the same controls: `benign` sees the
# seeds twice, `noise` sees them under noise, and `pgd_at` sees PGD's examples of them.

# %%
data = load(dataset)
network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
right = fuzzing.benign(network, data.images, data.labels, seed=seed)
chosen, unseen = right.tensor_split([seeds_count])
seeds = replace(data, images=data.images[chosen], labels=data.labels[chosen])
rest = data.images[unseen], data.labels[unseen]
oracles = training.others(others, model, dataset, recipe_name=recipe, seed=seed)
swarms = fuzzing.swarms(fuzzing.Swarm.paper(population=population), points=points, seed=seed)
baselines = fuzzing.rivals(oracles, load(dataset, "train").images[:references])
fuzzers = {f"deepsensor, {name}": each for name, each in swarms.items()} | baselines | {
    "noise": fuzzing.Noise()}
budgets = {"none": None} | {bound: float(bound) for bound in str(bounds).split()}
steps = replace(retraining.RECIPE, learning_rate=learning_rate, epochs=epochs)
by_pgd = robustness.attack_success_rate(
    network, seeds.images, seeds.labels,
    robustness.PGD(eps=eps, eps_step=eps / 3, iterations=attack_steps), seed=seed).images
networks = {"controls": {retraining.BEFORE: network} | retraining.retrained(
    network, seeds, {"benign": (seeds.images, seeds.labels), "pgd_at": (by_pgd, seeds.labels)},
    steps, seed=seed)}
for budget, l2 in budgets.items():
    found = fuzzing.campaigns(
        network, seeds.images, seeds.labels, iterations=iterations, seed=seed,
        fuzzers={name: replace(fuzzer, budget=fuzzing.Budget(l2=l2))
                 for name, fuzzer in fuzzers.items()})
    examples = {name: (each.images, each.labels[each.origin[-1]]) for name, each in found.items()}
    networks[budget] = retraining.retrained(network, seeds, examples, steps, seed=seed)
every = [each for part in networks.values() for each in part.values()]
print(f"{len(seeds)} seeds, {len(every)} networks")

# %% [markdown]
# ## Scores
#
# A score is of an image that the network gets right, and two networks are compared on the same
# images and the same points around them. So only images count that every network gets right: of one
# that got worse we see what it still can do, and its accuracy beside it.

# %%
common = retraining.all_right(every, *rest).nonzero().flatten()[:images]
x, y = rest[0][common], rest[1][common]
nearest = robustness.DeepFool(iterations=deepfool_steps, overshoot=0.02)


def scores(each: torch.nn.Module) -> dict[str, float]:
    """Mean CLEVER score, mean L2 way of DeepFool, and on how many images the former is larger."""
    score = clever.clever(each, x, radius=radius, batches=batches, samples=samples, pool=None,
                          fit=fit, seed=seed).untargeted
    reached = robustness.attack_success_rate(each, x, y, nearest, seed=seed)
    way = (reached.images - x).flatten(1).norm(dim=1).double()
    return {"clever": score.mean().item(),
            "deepfool_l2": way.where(reached.fooled, torch.nan).nanmean().item(),
            "above_deepfool": int((reached.fooled & (score > way)).sum()),
            "accuracy": 100 * inference.accuracy(each, *rest)}


tables = {part: pd.DataFrame({name: scores(each) for name, each in some.items()}).T
          for part, some in networks.items()}
measured = pd.concat({budget: pd.concat([tables["controls"], tables[budget]])
                      for budget in budgets}, names=["budget", "network"])
print(f"{len(x)} images that all networks get right")
measured.loc["none"].round(3)

# %% [markdown]
# `above_deepfool` counts the images whose score is refuted by an attack. Accuracy is in percent of the
# images that the network got right before. The same with examples within the last of the `bounds`:

# %%
measured.loc[list(budgets)[-1]].round(3)

# %% [markdown]
# ## What the claims ask for
#
# `clever_lead` is DeepSensor's gain less the best baseline's; `clever_excess`, its gain less three
# times the baselines' mean. A ratio would not do: where a baseline lowers the score, the mean may be
# close to 0 or below, and "three times as much" of a loss is a larger loss. But a difference has its
# own trap: where all baselines lose, three times their loss is easily beaten, even by losing.

# %%
rows = []
for budget in budgets:
    table = measured.loc[budget]
    gains = retraining.gains(table["clever"])
    for name, line in table.iterrows():
        gain = {"clever_gain": gains[name]} if name in gains else {}
        rows += outcomes.rows(line.to_dict() | gain, budget=budget, **outcomes.columns(name))
    thrice = 3 * sum(gains[name] for name in baselines) / len(baselines)
    for name in swarms:
        own = f"deepsensor, {name}"
        rows += outcomes.rows({"clever_lead": retraining.lead(gains, own, baselines),
                               "clever_excess": gains[own] - thrice},
                              budget=budget, **outcomes.columns(own))
live = pd.DataFrame(rows)
live[live["quantity"].isin(["clever_lead", "clever_excess"])].pivot(
    index="quantity", columns=["budget", "swarm"], values="value").round(3)

# %% mystnb={"figure": {"caption": "Fig. 6 for the run above: what retraining adds to the CLEVER score, in L2, for every set of examples and bound on their distance.", "name": "fig-excitable-clever"}}
added = live[live["quantity"] == "clever_gain"].copy()
added["network"] = outcomes.names(added)
figure, axis = plt.subplots(figsize=(7, 3.4))
added.pivot(index="network", columns="budget", values="value").loc[
    added["network"].unique()[::-1], list(budgets)].plot.barh(
        ax=axis, width=0.8, ylabel="", xlabel="increase in CLEVER (L2)")
axis.axvline(0.12, color="0.3", ls="--", lw=1, label="DeepSensor's mean in the paper")
axis.legend(title="bound", fontsize=8)
plt.show()

# %%
if profile == "paper":
    records.save(records.Record(
        "deepsensor_excitable/clever",
        dict(dataset=dataset, model=model, recipe=recipe, seed=seed, seeds_count=seeds_count,
             iterations=iterations, population=population, points=points, bounds=bounds,
             others=others, references=references, epochs=epochs, learning_rate=learning_rate,
             eps=eps, attack_steps=attack_steps, images=images, batches=batches, samples=samples,
             radius=radius, fit=fit, deepfool_steps=deepfool_steps), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Over all records
#
# L2 distances, means over the seeds. Fig. 6 prints no numbers that could stand beside them but the
# mean gain of 0.12. CIFAR-10 is a JPEG copy.

# %%
ours = records.frame("deepsensor_excitable/clever")
if len(ours):
    ours["network"] = outcomes.names(ours)
    display(ours.pivot_table(index=["dataset", "model", "budget", "network"], columns="quantity",
                             values="value", sort=False).round(3))

# %% mystnb={"figure": {"caption": "Fig. 6 from the records, by the bound on the examples' L2 distance: what retraining adds to the CLEVER score, mean over the seeds; lines give the range. Broken line: DeepSensor's mean in the paper.", "name": "fig-excitable-clever-records"}}
if len(ours):
    plots.bars(ours.query("quantity == 'clever_gain'"), hue="network",
               group=["dataset", "model", "budget"], ylabel="increase in CLEVER (L2)", line=0.12)
else:
    plots.nothing()
plt.show()

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("deepsensor_excitable", experiment="deepsensor_excitable/clever")

# %% [markdown]
# **What it means.** A gain counts if it is larger than those of `benign` and `noise`, if the swarm of
# a `constant` fitness doesn't have it as well, and if DeepFool's way grew with it. If the score grew
# alone, gradients became smaller at the points that were sampled, and not necessarily the distance
# larger. The claim of three times can hold for a reason that is no merit: baselines whose examples
# lower the score. Then read the first of the two rows, and the accuracy.
#
# For LeNet-5 on MNIST, from 200 seeds where the paper has 500, the excitable swarm's examples *lower*
# the score with every seed, by 0.15 to 0.41 where the paper has a gain of 0.12, and DeepFool's way gets
# shorter too. Those of the constant swarm, DLFuzz and DeepHunter lower it as well, so that the excess
# over three times their mean is positive: the trap above. Both verdicts stay open, as three seeds
# differ by as much as the networks do. Two sets of examples do move the boundary away, in the score
# and in DeepFool's way, with every seed: those of the sensitive swarm without a bound, and DLFuzz's
# within a distance of 2, which cost five points of accuracy.

# %% [markdown]
# ## Exercises
#
# **1.** How does the score of one image fall with the number of points?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for number in (8, 32, 128, 512):
#     found = clever.clever(network, x[:1], radius=radius, batches=1, samples=number, pool=None,
#                           fit=fit, seed=seed)
#     print(number, round(found.untargeted.item(), 3))
# ~~~
#
# The largest gradient can only grow if points are added. Here every draw is a new one, so that the
# score may rise between two of them; in hundreds of dimensions random points find a large gradient
# slowly.
# ```
#
# **2.** Is the order of the networks in CLEVER that of DeepFool's ways?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for budget in budgets:
#     table = measured.loc[budget]
#     print(budget, table["clever"].corr(table["deepfool_l2"], method="spearman").round(2))
# ~~~
#
# Where it is not, at least one of the two says nothing about the distance of the boundary.
# ```
