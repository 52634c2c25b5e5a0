# %% [markdown]
# # Do attacks and generated examples excite the same neurons?
#
# **The claim** (DeepSensor II, 6.3.1, Fig. 7). Take 100 examples each of PGD, JSMA, DeepFool and
# {term}`DeepSensor`, and the ten most {term}`excitable neurons <excitable neuron>` of each. DeepSensor's ten
# cover almost all of each attack's ten, while the tens of the attacks differ from each other.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 20  # benign inputs to start from; the paper takes 100 examples of each kind
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
eps = 0.3  # of PGD, in L-infinity; 0.5 on ImageNet
attack_steps = 40  # of PGD
points = 8  # of the diagonal estimator of Shapley values
most = 10  # neurons of an example that are compared
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace
from itertools import combinations, product

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load
from dnnbook.display.comparisons import sizes
from dnnbook.display.plots import nothing, style
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey
from dnnbook.studies.findings.deepsensor import lead_of, mean_of, seeds_of, sides_of
from dnnbook.words import headed, out_of, rounded_up, shown, span
from dnnlib import fuzzing, robustness
from dnnlib.neurons import shapley

style()
run = Experiment("deepsensor_excitable/overlap", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, inputs=inputs, iterations=iterations,
                 population=population, eps=eps, attack_steps=attack_steps, points=points,
                 most=most)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-overlap")

# %% tags=["hide-input", "statements"]
rows = records.existing("deepsensor_excitable/overlap")
attacks_beyond = seeds_of(rows, "attack", "other", quantity="between_attacks_beyond")
more_than_inputs = seeds_of(rows, "attack", who="excitable", quantity="beyond")
between, ours_beyond = (evidence.spread(each)["mean"] for each in (attacks_beyond, more_than_inputs))
says((f"**The answer.** Hardly. Of ten neurons, the swarm's examples share at most {rounded_up(ours_beyond.max(), 2)} more with an attack's "
      "than examples of different inputs do.", ours_beyond.max() < 0.2),
     (f"Attacks share more with each other: {span(between, 1)}.", between.min() > max(0, ours_beyond.max())),
     "Some overlap is certain, because a top ten always has ten neurons; so we compare with what any two inputs share.",
     f"The verdict on the claim is *{evidence.state('deepsensor-excitable-overlap')}*.")

# %% [markdown]
# ## In one picture
#
# A column with one full point counts neurons that only this kind of example excites most. A column with four
# full points counts neurons that all kinds share. Which columns have DeepSensor's point?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean number of neurons in the top tens of just those kinds of example that have a full point, from the records of the first network. Mean over the seeds.", "name": "fig-excitable-overlap-records"}}
circles = ["pgd", "jsma", "deepfool", "excitable"]


def upset(rows: pd.DataFrame) -> None:
    """Bars of the parts, largest first, above points that say which kinds each belongs to."""
    parts = rows.groupby("kind")["value"].mean().sort_values(ascending=False)
    if parts.empty:
        nothing()
        return
    _, (above, below) = plt.subplots(2, 1, figsize=(7, 3.8), sharex=True, height_ratios=(2, 1))
    above.bar(range(len(parts)), parts, color="C0")
    above.set_ylabel("neurons")
    for column, kinds in enumerate(parts.index):
        inside = [circles.index(name) for name in kinds.split()]
        below.scatter([column] * len(circles), range(len(circles)), color="0.88", s=30)
        below.plot([column] * len(inside), inside, "o-", color="0.2", ms=5.5, lw=1.5)
    below.set_yticks(range(len(circles)), [shown(name) for name in circles])
    below.set(xticks=[], ylim=(len(circles) - 0.5, -0.5))
    below.grid(False)


kept = run.recorded("quantity == 'part'")
nothing() if kept.empty else upset(kept[kept.groupby(["dataset", "model"], sort=False).ngroup() == 0])
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** Why both halves of the claim cannot be true together. How many neurons two such sets
# share by chance, and how many those of any two images. And how stable such a set is.

# %% [markdown]
# ## Sets of ten
#
# Suppose that DeepSensor shares nine of ten neurons with PGD, and nine with JSMA. PGD and JSMA each lack only
# one of DeepSensor's ten neurons, so they share at least eight with each other:
#
# $$|A \cap B| \ge |A \cap D| + |B \cap D| - 10 .$$

# %% tags=["nbval-check-output"]
deepsensor = {*range(10)}
pgd, jsma = {*range(9), 10}, {*range(1, 10), 11}
print("with DeepSensor:", len(pgd & deepsensor), "and", len(jsma & deepsensor),
      "  with each other:", len(pgd & jsma), ">=", 9 + 9 - 10)

# %% [markdown]
# So if one set covers those of the attacks, the attacks' sets cannot differ much from each other. We
# therefore look at all overlaps, and we need something to compare them with. Two sets of ten that are drawn
# at random from $N$ neurons share $10 \cdot 10 / N$ neurons on average.

# %% [markdown]
# ## The examples
#
# All kinds of example start from the same inputs; PGD starts at the input itself, and a random start is tried
# below. For the attacks we count only examples that fool the
# network; for the {term}`swarms <swarm>` we count all last examples, as in the paper. Besides the swarm that is
# guided by excitable neurons there are two others. One is guided by [sensitive
# neurons](../deepsensor_sensitivity/02_test_errors). The other, `constant`, is guided by nothing; its
# examples are random images.

# %% tags=["hide-input"]
data = load(dataset)
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]

# %%
attacks = {"pgd": robustness.PGD(eps=eps, eps_step=eps / 10, iterations=attack_steps,
                                 random_starts=0),
           "jsma": robustness.JSMA(), "deepfool": robustness.DeepFool(overshoot=0.02)}
swarms = studies.swarms(fuzzing.Swarm.paper(population=population),
                        "excitable sensitive constant", points=4)

# %%
everyone = torch.ones(len(x), dtype=torch.bool)
examples = {}
for name, attack in attacks.items():
    found = robustness.attack_success_rate(model, x, labels, attack, seed=seed)
    examples[name] = found.images, found.fooled
for key, campaign in studies.campaigns(model, x, labels, swarms, iterations=iterations,
                                       seed=seed).items():
    examples[key.reading] = campaign.images, everyone

# %% tags=["hide-input"]
for name, (images, counted) in examples.items():
    far = (images - x).flatten(1).norm(dim=1)
    run.add({"examples": counted.sum(), "l2": far[counted].mean()}, kind=name)
wide(run.live, "quantity in ('examples', 'l2')", index="kind", columns="quantity")

# %% [markdown]
# ## The neurons of largest value
#
# We compute the {term}`Shapley values <Shapley value>` of all neurons in the game from the input to the
# example ([how](00_players)), and take the largest: `most` of them, ten in the paper.

# %% tags=["hide-input"]
def largest(psi: torch.Tensor) -> torch.Tensor:
    """Whether a neuron is among those of largest psi, bool (inputs, neurons)."""
    return torch.zeros_like(psi, dtype=torch.bool).scatter_(1, psi.topk(most).indices, True)


def top_set(images: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """The same of examples, bool (inputs, neurons); no neuron of those that do not count."""
    game = shapley.Game(model, x[counted], images[counted], labels[counted])
    members = torch.zeros(len(x), game.players, dtype=torch.bool)
    members[counted] = largest(shapley.diagonal(game, points=points).values)
    return members


# %%
def shared(a: torch.Tensor, b: torch.Tensor) -> float:
    """Mean number of neurons in both sets, over the inputs that have both."""
    both = a.any(1) & b.any(1)
    return float((a & b)[both].sum(1).double().mean())


def elsewhere(a: torch.Tensor, b: torch.Tensor) -> float:
    """The same of every two *different* inputs."""
    pairs = a.any(1)[:, None] & b.any(1) & ~torch.eye(len(a), dtype=torch.bool)
    return float((a.double() @ b.double().T)[pairs].mean())


# %% tags=["hide-input"]
tens = {name: top_set(*example) for name, example in examples.items()}
neurons = tens["pgd"].shape[1]
chance = most * most / neurons
overlap, apart = (pd.DataFrame({b: {a: count(tens[a], tens[b]) for a in tens} for b in tens})
                  for count in (shared, elsewhere))
print(f"{neurons} neurons; by chance alone two sets of {most} share {chance:.2f}")
headed(overlap.round(1))

# %% [markdown]
# The table above counts the neurons that two examples *of the same input* share. The table below counts those
# that examples of *different* inputs share. Any two inputs may share some, for example units near the output,
# which belong to the classes. Only the difference between the two tables says something about the kinds of
# example.

# %% tags=["hide-input"]
headed(apart.round(1))

# %% [markdown]
# ## Fig. 7
#
# The paper draws four circles, but their areas cannot show all 15 intersections. So we draw bars. There is
# one bar for each combination of kinds (full points). It shows the mean number of neurons that are in the sets
# of exactly these kinds.

# %% tags=["hide-input"]
common = torch.stack([tens[name].any(1) for name in circles]).all(0)  # inputs with all four
members = torch.stack([tens[name][common] for name in circles], 2)
parts = {}
for pattern in [*product((True, False), repeat=len(circles))][:-1]:  # the last is in none
    exact = (members == torch.tensor(pattern)).all(2)
    parts[pattern] = float(exact.sum(1).double().mean())

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean number of neurons in the sets of just those kinds of example that have a full point, for the run above. The bars that belong to a kind add up to the size of a set.", "name": "fig-excitable-overlap"}}
for pattern, value in parts.items():
    run.add({"part": value}, kind=" ".join(n for n, on in zip(circles, pattern) if on))
upset(run.live.query("quantity == 'part'"))
run.show()

# %% [markdown]
# ## How stable is such a set?
#
# We take the same images again and change nothing but chance. There is another draw of the noise, another
# random seed of the swarm, another random start of PGD. We also compute the Shapley values by permutations
# instead of gradients. If a set is not stable here, it cannot be compared between methods.

# %%
guided = FuzzerKey("deepsensor", "excitable")
again = studies.campaigns(model, x, labels, {guided: swarms[guided]}, iterations=iterations,
                          seed=seed + 1)[guided]
draws = [0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1000 * draw + seed))
         for draw in (1, 2)]
started = replace(attacks["pgd"], random_starts=1)
starts = [robustness.attack_success_rate(model, x, labels, started, seed=seed + draw)
          for draw in (0, 1)]

# %% tags=["hide-input"]
few = examples["pgd"][1].nonzero()[:5, 0]
game = shapley.Game(model, x[few], examples["pgd"][0][few], labels[few])
sampled = shapley.permutation(game, permutations=20,
                              generator=torch.Generator().manual_seed(seed)).values
noisy = [top_set((x + noise).clamp(0, 1), everyone) for noise in draws]
stability = {"noise, another draw": shared(*noisy),
             "excitable, another seed": shared(tens["excitable"], top_set(again.images, everyone)),
             "pgd, another start": shared(*(top_set(s.images, s.fooled) for s in starts)),
             "pgd, by permutations": shared(tens["pgd"][few], largest(sampled))}

# %% tags=["hide-input"]
run.add({"kind": kind, "quantity": "stability", "value": value}
        for kind, value in stability.items())
headed(pd.Series(stability, name=f"of {most} neurons, shared").round(1).to_frame())

# %% [markdown]
# ## What the claim asks for
#
# The table shows the overlap of a swarm with an attack, and its *lead*. That is this overlap, minus the
# largest overlap that another attack has with this attack. `beyond` is the overlap minus what different
# inputs share.

# %% tags=["hide-input"]
beyond = overlap - apart
for name, attack in product([key.reading for key in swarms], attacks):
    others = max(overlap.loc[attack, other] for other in attacks if other != attack)
    run.add({"overlap": overlap.loc[name, attack],
             "overlap_lead": overlap.loc[name, attack] - others,
             "beyond": beyond.loc[name, attack]},
            fuzzer="deepsensor", budget="none", swarm=name, attack=attack)
for a, b in combinations(attacks, 2):
    run.add({"between_attacks": overlap.loc[a, b], "between_attacks_beyond": beyond.loc[a, b]},
            attack=a, other=b)
run.add({"chance": chance, "neurons": neurons,
         "swarm_gradients": swarms[FuzzerKey("deepsensor", "excitable")].fitness.points})
run.save(data, device=device)
wide(run.live, "swarm.notna()", index="swarm", columns=["quantity", "attack"])

# %% [markdown]
# ## Over all records
#
# The paper prints no number of Fig. 7. Ours are means over the seeds. They are the neurons that a swarm
# shares with an attack, those that attacks share with each other, and the stability of a top ten.

# %% tags=["hide-input"]
ours, cell = run.recorded(), ["dataset", "model"]
display(wide(ours, "quantity in ('overlap', 'overlap_lead', 'beyond')",
             index=[*cell, "quantity", "swarm"], columns="attack"))
display(wide(ours, "quantity in ('between_attacks', 'between_attacks_beyond')",
             index=[*cell, "quantity", "other"], columns="attack"))
wide(ours, "quantity in ('stability', 'chance')", index=["quantity", "kind"], columns=cell)

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
guides = rows.query("quantity == 'swarm_gradients'")["value"].max() if "swarm_gradients" in set(rows["quantity"]) else 1
says(f"Our records cover {sizes(rows)}.", evidence.estimator(rows),
     "The top tens come from such values. The swarm itself was guided by values from "
     f"{guides:.0f} gradient{'s' if guides > 1 else ''} each"
     + (". This misses most neurons above half a nat, so the swarm's examples are nearly those of a constant fitness. "
        "The claim is not yet tested for a swarm that is guided." if guides == 1 else "."))

# %% [markdown]
# **What it means.** Only an overlap above that of any two inputs says something about the kind of example. And two
# methods can hardly share more than one method shares with itself under another random seed. To credit excitable
# neurons with it, the overlap must also exceed that of the swarm with a constant {term}`fitness`.

# %% tags=["hide-input", "statements"]
lead, raw = (evidence.spread(lead_of(rows, "excitable", "constant", "attack", quantity=quantity)) for quantity in ("beyond", "overlap"))
kept = mean_of(rows, "kind", quantity="stability")[["excitable, another seed", "pgd, another start", "pgd, by permutations"]]
says((f"By the overlap beyond any two inputs', the constant swarm is at most {rounded_up(lead['mean'].abs().max(), 1)} neurons from the "
      f"excitable one. The excitable one is ahead beyond chance for {out_of(len(sides_of(lead).ahead), len(lead))} attacks.",
      lead["mean"].abs().max() < 1),
     (f"By the overlap itself, the two differ by at most {rounded_up(raw['mean'].abs().max(), 1)} neurons. Here it is ahead beyond "
      f"chance for {out_of(len(sides_of(raw).ahead), len(raw))} attacks.", raw["mean"].abs().max() < 1),
     (f"A top ten is stable only in part: when the swarm runs again with another seed, {kept['excitable, another seed']:.1f} "
      "of its ten neurons stay.", kept.between(5, 9, inclusive="neither").all()),
     (f"When PGD starts elsewhere, {kept['pgd, another start']:.1f} stay, and about as many when permutations replace the "
      "diagonal.", abs(kept["pgd, another start"] - kept["pgd, by permutations"]) < 0.5))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Which neurons are on top most often? Find their layers.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# often = tens["pgd"].double().mean(0).topk(5)
# print([(*game.where(i), round(share, 2))
#        for i, share in zip(often.indices.tolist(), often.values.tolist())])
# ~~~
#
# Look for units near the output. These belong to the classes, whatever the attack does. Where they are on
# top, they raise every overlap.
# ```
#
# **2. Try.** Is a top *three* more stable than a top ten?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# most = 3
# print(shared(*(top_set(s.images, s.fooled) for s in starts)) / most, most / neurons)
# ~~~
#
# Compare shares, and compare them with chance, which is now 3 / N instead of 10 / N.
# ```
#
# **3. Think.** Two sets of ten each share nine neurons with a third one. How many do they share
# with each other at least, and what does that say about the claim?
#
# ```{admonition} Solution
# :class: dropdown
# Eight, because each lacks only one of the third set's ten. So if DeepSensor's ten cover almost all of each
# attack's ten, the tens of the attacks cannot differ much.
# ```
#
# **4. Code.** Write `my_chance(k, n)`: how many neurons two sets of `k`, drawn at random from `n`,
# share on average. The cell says whether it is right.

# %%
my_chance = None  # your function of two counts

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda k, n: sum(k / n for _ in range(k)), (10, 268), (3, 52))


is_right(my_chance)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_chance(k, n):
#     return k * k / n
#
# is_right(my_chance)
# ~~~
#
# In LeNet-1, where 42 neurons play, two sets of ten share 2.4 on average, by chance alone.
# ```
