# %% [markdown]
# # Do attacks and generated examples excite the same neurons?
#
# **The claim** (DeepSensor II, 6.3.1, Fig. 7). Of 100 examples each of PGD, JSMA, DeepFool and
# DeepSensor, take the ten most excitable neurons. DeepSensor's cover almost all of each attack's,
# while the attacks' are scattered from each other.
#
# **What you will learn.** Why both halves of the claim cannot hold together; how many of ten
# neurons are shared by chance, and by any two images; and how stable a top ten is.

# %%
from dataclasses import replace
from itertools import combinations, product

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnlib import fuzzing, robustness, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load
from dnnlib.neurons import shapley
from dnnlib.neurons.excitable import ExcitableNeurons

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how it is trained: a name of `training.RECIPES`
seed = 0  # of the training, of the choice of seeds, of the attacks and of the swarms
seeds_count = 30  # benign seeds; the paper takes 100 examples of each kind
iterations = 20  # of the swarms
population = 10  # particles to a seed; the paper has 100
eps = 0.3  # of PGD; 6.2.1 has 0.3 for MNIST and CIFAR-10, 0.5 for ImageNet
pgd_iterations = 40  # of PGD
points = 8  # of the diagonal estimator of Shapley values
most = 10  # neurons of an example that are compared
profile = "embedded"  # embedded: a look; paper: also a record

# %% [markdown]
# ## Sets of ten
#
# Say DeepSensor shares nine of ten neurons with PGD, and nine with JSMA. PGD and JSMA then share at
# least eight, since each of them leaves out but one of DeepSensor's ten:
#
# $$|A \cap B| \ge |A \cap D| + |B \cap D| - 10 .$$

# %% tags=["nbval-check-output"]
deepsensor = {*range(10)}
pgd, jsma = {*range(9), 10}, {*range(1, 10), 11}
print("with DeepSensor:", len(pgd & deepsensor), "and", len(jsma & deepsensor),
      "  with each other:", len(pgd & jsma), ">=", 9 + 9 - 10)

# %% [markdown]
# So if one set covers the attacks', the attacks' are no longer scattered. All overlaps are needed,
# and something to compare them with. Two sets of ten that are drawn at random from $N$ neurons share
# $10 \cdot 10 / N$ on average.

# %% [markdown]
# ## The examples
#
# All kinds start from the same seeds. Of the attacks, only examples that fool the network count; of
# the swarms all last examples, as in the paper. Beside the swarm guided by excitable neurons fly one
# guided by [sensitive neurons](../deepsensor_sensitivity/02_test_errors) and one guided by nothing,
# `constant`, whose examples are random images.

# %%
data = load(dataset)
network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
chosen = fuzzing.benign(network, data.images, data.labels, seed=seed)[:seeds_count]
seeds, labels = data.images[chosen], data.labels[chosen]
attacks = {"pgd": robustness.PGD(eps=eps, eps_step=eps / 10, iterations=pgd_iterations),
           "jsma": robustness.JSMA(), "deepfool": robustness.DeepFool(overshoot=0.02)}
swarm = fuzzing.Swarm.paper(population=population)
swarms = {"excitable": replace(swarm, fitness=ExcitableNeurons()), "sensitive": swarm,
          "constant": replace(swarm, fitness=fuzzing.Constant())}
flown = fuzzing.campaigns(network, seeds, labels, swarms, iterations=iterations, seed=seed)
everyone = torch.ones(len(seeds), dtype=torch.bool)
examples = {name: (campaign.images, everyone) for name, campaign in flown.items()}
for name, attack in attacks.items():
    found = robustness.attack_success_rate(network, seeds, labels, attack, seed=seed)
    examples[name] = found.images, found.fooled
rows = []
for name, (images, counted) in examples.items():
    far = (images - seeds).flatten(1).norm(dim=1)
    rows += [{"kind": name, "quantity": quantity, "value": float(value)} for quantity, value in (
        ("examples", counted.sum()), ("l2", far[counted].mean()))]
pd.DataFrame(rows).pivot(index="kind", columns="quantity", values="value").round(1)

# %% [markdown]
# ## The top ten
#
# Shapley values of all neurons in the game from the seed to the example
# ([how](00_players)), and the ten largest.

# %%
def top_ten(images: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Whether a neuron is among the ten of largest psi, bool (seeds, neurons)."""
    game = shapley.Game(network, seeds[counted], images[counted], labels[counted])
    psi = shapley.diagonal(game, points=points).values
    members = torch.zeros(len(seeds), game.players, dtype=torch.bool)
    members[counted] = torch.zeros_like(psi, dtype=torch.bool).scatter_(1, psi.topk(most).indices,
                                                                        True)
    return members


def shared(a: torch.Tensor, b: torch.Tensor) -> float:
    """Mean number of neurons in both top tens, over the seeds that have both."""
    both = a.any(1) & b.any(1)
    return float((a & b)[both].sum(1).double().mean())


def elsewhere(a: torch.Tensor, b: torch.Tensor) -> float:
    """The same of every two *different* seeds."""
    a, b = (members.double() for members in (a, b))
    every = a @ b.T
    pairs = a.any(1)[:, None] & b.any(1) & ~torch.eye(len(a), dtype=torch.bool)
    return float(every[pairs].mean())


tens = {name: top_ten(*example) for name, example in examples.items()}
neurons = tens["pgd"].shape[1]
chance = most * most / neurons
names = [*attacks, *swarms]
overlap = pd.DataFrame([[shared(tens[a], tens[b]) for b in names] for a in names], names, names)
apart = pd.DataFrame([[elsewhere(tens[a], tens[b]) for b in names] for a in names], names, names)
print(f"{neurons} neurons; by chance alone two top tens share {chance:.2f}")
overlap.round(1)

# %% [markdown]
# These are the neurons that two examples *of the same seed* share. Below, examples of *different*
# seeds: what any two inputs share, since some neurons, such as those of the two logits, are nearly
# always on top. Only the difference of the two tables speaks of the kinds of example.

# %%
apart.round(1)

# %% [markdown]
# ## Fig. 7
#
# The paper draws four circles. Their areas cannot show all 15 intersections, so here they are bars:
# for each combination of kinds (full points), the mean number of neurons that are in just these top
# tens.

# %% mystnb={"figure": {"caption": "Mean number of neurons in the top tens of just those kinds of example that have a full point, for the run above. The bars that belong to a kind add up to ten.", "name": "fig-excitable-overlap"}}
circles = [*attacks, "excitable"]
common = torch.stack([tens[name].any(1) for name in circles]).all(0)  # seeds with all four
members = torch.stack([tens[name][common] for name in circles], 2)
parts = {}
for pattern in product((True, False), repeat=len(circles)):
    if any(pattern):
        exact = (members == torch.tensor(pattern)).all(2)
        parts[" ".join(n for n, on in zip(circles, pattern) if on)] = float(
            exact.sum(1).double().mean())


def upset(parts: pd.Series, names: list[str]) -> None:
    """Bars of the parts, largest first, above points that say which kinds each belongs to."""
    parts = parts.sort_values(ascending=False)
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 3.8), sharex=True,
                                          height_ratios=(2, 1))
    above.bar(range(len(parts)), parts, color="C0")
    above.set_ylabel("neurons")
    for column, key in enumerate(parts.index):
        inside = [names.index(name) for name in key.split()]
        below.scatter([column] * len(names), range(len(names)), color="0.88", s=30)
        below.plot([column] * len(inside), inside, "o-", color="0.2", ms=5.5, lw=1.5)
    below.set_yticks(range(len(names)), names)
    below.set(xticks=[], ylim=(len(names) - 0.5, -0.5))
    below.grid(False)


upset(pd.Series(parts), circles)
plt.show()

# %% [markdown]
# ## How stable is a top ten?
#
# The same images again, with nothing changed but chance: noise of another draw, the swarm with
# another seed, PGD from another random start; and Shapley values by permutations instead of
# gradients. A top ten that is not stable here cannot be compared between methods.

# %%
again = fuzzing.campaigns(network, seeds, labels, {"excitable": swarms["excitable"]},
                          iterations=iterations, seed=seed + 1)["excitable"]
noisy = [top_ten((seeds + 0.1 * torch.randn(seeds.shape, generator=torch.Generator().manual_seed(
    1000 * draw + seed))).clamp(0, 1), everyone) for draw in (1, 2)]
started = replace(attacks["pgd"], random_starts=1)
starts = [robustness.attack_success_rate(network, seeds, labels, started, seed=seed + draw)
          for draw in (0, 1)]
fooled, few = examples["pgd"][1], slice(0, 5)
game = shapley.Game(network, seeds[fooled][few], examples["pgd"][0][fooled][few],
                    labels[fooled][few])
sampled = shapley.permutation(game, permutations=20,
                              generator=torch.Generator().manual_seed(seed)).values
by_orders = torch.zeros_like(sampled, dtype=torch.bool).scatter_(
    1, sampled.topk(most).indices, True)
stability = {"noise, another draw": shared(*noisy),
             "excitable, another seed": shared(tens["excitable"], top_ten(again.images, everyone)),
             "pgd, another start": shared(*(top_ten(s.images, s.fooled) for s in starts)),
             "pgd, by permutations": shared(tens["pgd"][fooled][few], by_orders)}
rows += [{"kind": kind, "quantity": "stability", "value": value}
         for kind, value in stability.items()]
pd.Series(stability, name="of ten neurons, shared").round(1).to_frame()

# %% [markdown]
# ## What the claim asks for
#
# `overlap` of a swarm with an attack, and `overlap_lead`: that, less the largest overlap of this
# attack with another. `beyond` is what is left of the overlap without what different seeds share.

# %%
for name in swarms:
    for attack in attacks:
        others = max(overlap.loc[attack, other] for other in attacks if other != attack)
        rows += [{"swarm": name, "attack": attack, "quantity": quantity, "value": value}
                 for quantity, value in (
                     ("overlap", overlap.loc[name, attack]),
                     ("overlap_lead", overlap.loc[name, attack] - others),
                     ("beyond", overlap.loc[name, attack] - apart.loc[name, attack]))]
for a, b in combinations(attacks, 2):
    rows += [{"attack": a, "other": b, "quantity": "between_attacks", "value": overlap.loc[a, b]},
             {"attack": a, "other": b, "quantity": "between_attacks_beyond",
              "value": overlap.loc[a, b] - apart.loc[a, b]}]
rows += [{"kind": part, "quantity": "part", "value": value} for part, value in parts.items()]
rows += [{"quantity": "chance", "value": chance}, {"quantity": "neurons", "value": neurons}]
rows = [{"fuzzer": "deepsensor", "budget": "none"} | row if "swarm" in row else row for row in rows]
live = pd.DataFrame(rows)
live[live["swarm"].notna()].pivot(index="swarm", columns=["quantity", "attack"],
                                  values="value").round(1)

# %%
if profile == "paper":
    records.save(records.Record(
        "deepsensor_excitable/overlap",
        dict(dataset=dataset, model=model, recipe=recipe, seed=seed, seeds_count=seeds_count,
             iterations=iterations, population=population, eps=eps,
             pgd_iterations=pgd_iterations, points=points, most=most), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Over all records
#
# The paper prints no number of Fig. 7. Ours, means over the seeds: neurons that a swarm shares with
# an attack, that attacks share, and the stability of a top ten.

# %%
ours = records.frame("deepsensor_excitable/overlap")
if len(ours):
    cell = ["dataset", "model"]
    swarms_share, attacks_share = ["overlap", "overlap_lead", "beyond"], [
        "between_attacks", "between_attacks_beyond"]
    for quantities, line in ((swarms_share, ["quantity", "swarm"]),
                             (attacks_share, ["quantity", "other"])):
        part = ours[ours["quantity"].isin(quantities)]
        display(part.pivot_table(index=[*cell, *line], columns="attack", values="value",
                                 sort=False).round(1))
    part = ours[ours["quantity"].isin(["stability", "chance"])].fillna({"kind": "chance"})
    display(part.pivot_table(index="kind", columns=cell, values="value", sort=False).round(1))

# %% mystnb={"figure": {"caption": "Mean number of neurons in the top tens of just those kinds of example that have a full point, from the records of the first network; mean over the seeds.", "name": "fig-excitable-overlap-records"}}
if len(ours):
    drawn = ours[ours["quantity"] == "part"]
    first = drawn[(drawn[["dataset", "model"]] == drawn[["dataset", "model"]].iloc[0]).all(axis=1)]
    upset(first.groupby("kind")["value"].mean(), circles)
else:
    plots.nothing()
plt.show()

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("deepsensor_excitable", experiment="deepsensor_excitable/overlap")

# %% [markdown]
# **What it means.** A top ten always has ten neurons, whether their values are large or not, so some
# overlap is certain. It has to be read against three numbers: chance, what any two seeds share, and
# what the same method shares with itself when it is run again. Only an overlap above the second is
# about the kind of example, and none can be expected above the third. And it is no merit of
# excitable neurons unless the swarm that is guided by a constant, whose examples are random images,
# has less of it.
#
# On MNIST with LeNet-5 it is the attacks that share neurons with each other, more than different seeds
# do. What the swarm of excitable neurons shares with them is no more than any two seeds share, and no
# more than random images do.

# %% [markdown]
# ## Exercises
#
# **1.** Which neurons are on top most often? Find their layers.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# often = tens["pgd"].double().mean(0).topk(5)
# print([(*game.where(i), round(share, 2))
#        for i, share in zip(often.indices.tolist(), often.values.tolist())])
# ~~~
#
# Mostly units near the output. They belong to the classes, whatever the attack does, so they raise
# every overlap.
# ```
#
# **2.** Is a top *three* more stable than a top ten?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# most = 3
# print(shared(*(top_ten(s.images, s.fooled) for s in starts)) / most, most / neurons)
# ~~~
#
# Compare shares, and chance beside them: it is 3 / N now, instead of 10 / N.
# ```
