# %% [markdown]
# # Who breaks a given input, and how near?
#
# **The question.** You have inputs that the network gets right, and you look for others near them
# that it gets wrong. Both {term}`DeepSensor` papers compare a {term}`swarm` with {term}`DeepXplore`,
# {term}`DLFuzz` and {term}`DeepHunter`, and count errors at any distance. Here all
# {term}`fuzzers <fuzzer>` have the same bounds on the {term}`L2 distance` and the same inputs.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seeds = "0 1 2"  # of the trainings, and of all else that is random
inputs = 6  # benign inputs for each random seed
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
distances = "2 4 8"  # bounds on the L2 distance
others = "lenet1 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
beside = ""  # one more fuzzer, of `dnnlib fuzz` or your own: FILE.py:CLASS; '' for none

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd

from dnnbook import studies, training
from dnnbook.chapters import declared
from dnnbook.chapters.statements import says
from dnnbook.data import Dataset, load
from dnnbook.display import plots, whose
from dnnbook.display.colours import colours
from dnnbook.display.tables import headed, mean_and_interval
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import sides_of
from dnnbook.studies.findings.synthesis import by_fuzzer, lead, of_each_paper
from dnnbook.words import listed, rounded_down, rounded_up, shown, span
from dnnlib import checks, fuzzing
from dnnlib.progress import progress

plots.style()

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

asked = records.existing("deepsensor_sensitivity/test_errors").query(
    "quantity == 'error_rate' and dataset == 'mnist' and bound == 2")
asked = of_each_paper(asked)
quiz("MNIST, at most an L2 distance of 2 from the input: whose examples are most often errors?",
     {"DLFuzz, which follows a gradient": asked["dlfuzz"] == asked.max(),
      "DeepSensor's swarm": asked["deepsensor"] == asked.max(),
      "noise of that length": asked["noise"] == asked.max()},
     f"Errors among the examples: DLFuzz {asked['dlfuzz']:.0f} %, the swarm "
     f"{asked['deepsensor']:.1f} %, noise {asked['noise']:.1f} %.")

# %% tags=["hide-input", "records"]
def by_bound(rows: pd.DataFrame, quantity: str, *index: str) -> pd.DataFrame:
    """A line for each fuzzer, a column for each bound on the distance."""
    table = mean_and_interval(rows, f"quantity == '{quantity}'", index=[*index, "fuzzer"],
                              columns=["bound"])
    return table.sort_index(axis=1).rename(columns="L2 {:g}".format)


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, their fuzzers with their readings."""
    return rows.assign(fuzzer=studies.keys(rows).map(str))


CELL = ["dataset", "model"]
sensitive = records.existing("deepsensor_sensitivity/test_errors").replace(
    {"swarm": {"paper": "sensitive"}}).query("swarm not in ('random', 'released')")
second = named(records.existing("deepsensor_excitable/test_errors").query("bound.notna()")).assign(run="excitable")
excitable = second.query("swarm in ('excitable', 'excitable_scaled')")
bounded = pd.concat([named(sensitive.query("bound.notna()")).assign(run="sensitive"), excitable]).sort_values(
    CELL, kind="stable")
rates = bounded[bounded["quantity"] == "error_rate"]
PAIR = [*CELL, "bound", "seed"]
SENSITIVE, CONSTANT = "deepsensor, sensitive", "deepsensor, constant"
EXCITABLE, SCALED = "deepsensor, excitable", "deepsensor, excitable_scaled"
errors = by_fuzzer(rates)
means = errors.groupby([*CELL, "bound"]).mean()
per_pass, per_pass_second = (by_fuzzer(found[found["quantity"] == "errors_per_1000_passes"])
                             for found in (bounded, second))
swarms = by_fuzzer(second.query("quantity == 'error_rate' and swarm.notna()"))  # all swarms of one network

# %% tags=["hide-input", "statements"]
near = means.query("dataset == 'mnist' and bound == 2")
gradient, rest = near["dlfuzz"], near.drop(columns="dlfuzz")
nearest = means.query("dataset == 'cifar10' and bound == 1 or dataset == 'imagenet' and bound == 2")[["dlfuzz", "deepxplore"]]
above = lead(errors, SENSITIVE, "noise", "dataset == 'mnist' and bound == 8").groupby("model").mean()
close, apart = (lead(errors, SENSITIVE, "noise", f"model == 'resnet20' and bound == {bound}").mean() for bound in (1, 8))
says(
    ("**The answer.** Near an input, DLFuzz finds by far the most errors: it follows the gradient of the network's decision.",
     gradient.min() > 10 * rest.max(axis=None) and nearest["dlfuzz"].min() > 3 * nearest["deepxplore"].max()),
    f"Within a distance of {2} on MNIST, at least {rounded_down(gradient.min())} % of its examples are errors in its better setting, "
    f"and at most {rounded_up(rest.max(axis=None), 1)} % of any other fuzzer's that ran there.",
    (f"On MNIST the swarm needs a large distance: at {8}, sensitive neurons guide it to more errors than noise has, on average "
     "with every LeNet.", len(above) == 3 and above.min() > 0),
    (f"With ResNet-20 on CIFAR-10 it is the other way round: {close:.0f} points more than noise within 1, and {-apart:.0f} fewer "
     f"within {8}.", close > 0 > apart))

# %% tags=["hide-input", "statements"]
same_cost = [(table[swarm] - table["noise"]).dropna().groupby([*CELL, "bound"]).mean() for table, swarm in (
    (per_pass, SENSITIVE), (per_pass_second, EXCITABLE), (per_pass_second, SCALED))]
says(
    ("But for the same number of passes, each swarm with a fitness is below noise, at every distance and with every network.",
     max(over.max() for over in same_cost) < 0))

# %% [markdown]
# ## In one picture
#
# Look at which line rises first, and where the swarms leave the noise. Errors are in percent of the
# examples.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the examples that are test errors, against the bound on their L2 distance, from the records. Mean over the random seeds, and their range. Lines join the bounds that were run and say nothing of those between. On MNIST, excitable neurons were not run at 2 and 12, nor with LeNet-4 at 4.", "name": "fig-fuzzers-distance"}}
shades = colours(map(shown, dict.fromkeys(rates["fuzzer"])))
networks = list(rates.groupby(CELL, sort=False))
lines = -(-len(networks) // 3)
figure, axes = plt.subplots(lines, 3, figsize=(10.8, 3.0 * lines), sharey=True, squeeze=False)
for axis, (cell, group) in zip(axes.flat, networks):
    for name, part in group.groupby("fuzzer", sort=False):
        spread = part.groupby("bound")["value"].agg(["mean", "min", "max"])
        axis.plot(spread["mean"], "o-", ms=4, lw=1.3, color=shades[shown(name)], label=shown(name))
        axis.fill_between(spread.index, spread["min"], spread["max"], color=shades[shown(name)], alpha=0.15, lw=0)
    axis.set(xscale="log", xlabel="bound on the L2 distance", title=" ".join(map(shown, cell)), ylim=(-3, 103))
    ticks = sorted(group["bound"].unique())
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
for axis in axes.flat[len(networks):]:
    axis.axis("off")
for axis in axes[:, 0]:
    axis.set_ylabel("test errors (%)")
every = {name: line for axis in axes.flat for line, name in zip(*axis.get_legend_handles_labels())}
figure.legend(every.values(), every, loc="outside lower center", ncols=4, fontsize=8)
whose.show(whose.RECORDS)

# %% [markdown]
# **What you will learn.** What to use at which distance; and three questions to ask about every
# such comparison: how far, for how many {term}`passes <pass>`, and compared with what?
#
# ## The same inputs, bounds and iterations
#
# Beside the fuzzers of the papers, we run two that know nothing: **noise**, as strong as the bound
# allows, and the swarm under a **constant** {term}`fitness`. A fuzzer that does not find more
# errors than these two was not guided to its errors.

# %% tags=["hide-input"]
declared.check("synthesis/02", dataset=dataset, model_name=model_name, recipe=recipe, seeds=seeds,
               inputs=inputs, iterations=iterations, population=population, distances=distances,
               others=others, references=references, held_out=held_out, beside=beside)
bounds = {name: l2 for name, l2 in studies.bounds(distances).items() if l2 is not None}

# %%
def lineup(data: Dataset, seed: int) -> dict[FuzzerKey, fuzzing.Fuzzer]:
    """The swarms, the papers' other fuzzers, and noise."""
    swarm = fuzzing.Swarm.paper(population=population)
    oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed)
    usual = load(dataset, "train").images[:references]
    return {**studies.swarms(swarm, "sensitive excitable constant", points=2),
            **studies.rivals(oracles, usual, best=(data.images, data.labels), count=held_out),
            FuzzerKey("noise"): fuzzing.Noise(scale=1.0),
            **studies.one_more_fuzzer(beside, reference=usual)}


# %%
def measured(seed: int) -> pd.DataFrame:
    """What every fuzzer finds at every bound: a line for each of them."""
    data = load(dataset)
    model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed)
    chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
    found = studies.at_bounds(model, data.images[chosen], data.labels[chosen], lineup(data, seed),
                              bounds, iterations=iterations, seed=seed)
    return outcomes.table(found, outcomes.every_example, near=1.0)

# %%
live = named(pd.DataFrame([{"seed": seed} | row for seed in progress(
    checks.numbers(seeds, "seeds"), desc="seeds", leave=False)
    for row in outcomes.tidy(measured(seed), bounds)]))
by_bound(live, "error_rate")

# %% [markdown]
# The table above has the {term}`test errors <test error>` in percent of the examples of all
# iterations: the mean over the random seeds and half the width of its 95 % {term}`interval`. So
# few inputs show how to compare, and prove nothing; the records below have more. The next table has the
# errors for a thousand passes of the network, where a gradient counts as some passes more:

# %% tags=["hide-input"]
by_bound(live, "errors_per_1000_passes")

# %% [markdown]
# ## From the records
#
# The same comparison with more inputs, from the {term}`records <record>` of [the chapter on sensitive
# neurons](../deepsensor_sensitivity/02_test_errors) and of [the one on excitable
# neurons](../deepsensor_excitable/01_test_errors). *Best* is the setting of a rival that found most errors
# from other inputs; *single* is DeepXplore without other networks. The values of
# {term}`excitable neurons <excitable neuron>` are in {term}`nats <nat>`, or `scaled` by their mean absolute value.
# In these records their swarms start from the same inputs with LeNet-5 and VGG16, and from fewer with ResNet-20
# and MobileNet. There, compare excitable neurons only with the noise of their own inputs, as the last table does.
# With LeNet-1 and LeNet-4, the swarms of excitable neurons ran on an earlier training of the network than the noise
# and the best rivals beside them. So a small difference from these says nothing. VGG16's CIFAR-10 is a
# JPEG copy. An image of CIFAR-10 has more numbers than one of MNIST, and an image of ImageNet has many more. So the
# same distance is a smaller change there.

# %% tags=["hide-input", "records"]
by_bound(bounded, "error_rate", *CELL)

# %% tags=["hide-input", "statements"]
says(("DeepXplore follows a gradient too. But its gradient leads to disagreement between networks and to more "
      "coverage, and it may only change the light of the image or a patch. DeepHunter makes changes that keep "
      "the meaning of an image, so they mostly keep its class as well.", near["deephunter"].max() < 50))

# %% [markdown]
# ### At the same cost
#
# Errors for a thousand passes. A swarm with a fitness makes a pass for each of its
# {term}`particles <particle>` but shows only one of them. With a constant fitness there is nothing to score, so
# only the example that is shown costs a pass.

# %% tags=["hide-input"]
by_bound(bounded, "errors_per_1000_passes", *CELL)

# %% [markdown]
# ### More than nothing?
#
# By how many points the error rate is above that of noise at the same bound, paired by seed: from the same inputs,
# but for excitable neurons with LeNet-1 and LeNet-4, whose noise is of the network trained again.

# %%
noise = pd.concat([rates, second]).query("fuzzer == 'noise' and quantity == 'error_rate'")
both = rates.merge(noise[["run", *PAIR, "value"]], on=["run", *PAIR], suffixes=("", "_noise")).query(
    "fuzzer != 'noise'")
by_bound(both.assign(value=both["value"] - both["value_noise"]), "error_rate", *CELL)

# %% [markdown]
# ## What it means
#
# The table has leads over another fuzzer in the records, and their 95 % {term}`intervals <interval>`.

# %% tags=["hide-input", "records"]
FAR = "dataset == 'mnist' and bound == 8"
LEADS = {what: evidence.spread(found) for what, found in {
    "sensitive over noise": lead(errors, SENSITIVE, "noise", "bound == 8"),
    "sensitive over constant": lead(errors, SENSITIVE, CONSTANT, "bound == 8"),
    "excitable over sensitive": lead(swarms, EXCITABLE, SENSITIVE, FAR),
    "scaled over excitable": lead(swarms, SCALED, EXCITABLE, FAR),
    "DLFuzz over scaled": lead(errors, "dlfuzz", SCALED, FAR)}.items()}
headed(pd.DataFrame({
    what: {model: f"{each['mean']:.1f} ({each['low']:.1f} to {each['high']:.1f})" for model, each in found.iterrows()}
    for what, found in LEADS.items()}).fillna("").rename_axis("points at L2 8"))

# %% tags=["hide-input", "statements"]
says(
    "Each rival counts here with its paper's setting or its best one, whichever is better for the network, distance and "
    "random seed; *single* is left out.",
    f"On CIFAR-10 and ImageNet, at least {rounded_down(nearest['dlfuzz'].min())} % of DLFuzz's examples are errors, even at the "
    f"smallest distance that we tried. For DeepXplore there, it is {span(nearest['deepxplore'])} %.")

# %% tags=["hide-input", "statements"]
unguided, better, scaled, behind = (LEADS[what] for what in (
    "sensitive over constant", "excitable over sensitive", "scaled over excitable", "DLFuzz over scaled"))
by_side = sides_of(unguided)
says(
    (f"At a distance of {8}, sensitive neurons guide the swarm to more errors than a constant fitness does, with "
     f"{listed(by_side.ahead)}.", len(by_side.ahead) == 3),
    (f"With {listed(by_side.behind)} they lead it to fewer. With "
     f"{listed(by_side.undecided)} the seeds do not decide.",
     len(by_side.behind) == 1),
    (f"On MNIST and with as many particles, excitable neurons guide it to more errors than sensitive ones do, with "
     f"{evidence.surely_above(better)}.", (better["low"] > 0).sum() >= 2),
    ("With scaled values it finds even more errors, with every LeNet, but on average still fewer than DLFuzz.",
     len(scaled) == 3 and (scaled["low"] > 0).all() and (behind["mean"] > 0).all() and (behind["low"] > 0).any()))

# %% tags=["hide-input", "statements"]
wide = means.query("dataset == 'mnist' and bound == 12")[[SENSITIVE, "dlfuzz"]]
away = evidence.spread(lead(swarms, EXCITABLE, CONSTANT, "dataset == 'cifar10' and bound == 8"))
says(
    (f"On MNIST, at a distance of {12}, the swarm of sensitive neurons finds about as many errors as DLFuzz, {span(wide[SENSITIVE])} %.",
     (wide[SENSITIVE] - wide["dlfuzz"]).abs().max() < 5),
    (f"On CIFAR-10, at a distance of {8}, with {listed(away.index)} and with values in nats, the swarm of excitable neurons has exactly as many "
     "errors as one with a constant fitness, with every random seed.",
     len(away) > 0 and (away[["low", "high"]] == 0).all(axis=None)))

# %% [markdown]
# **What to use.**
#
# - *To break given inputs nearby, with access to gradients*: DLFuzz, or one of the attacks in
#   [the chapter on robustness](../deepsensor_sensitivity/07_robustness).
# - *Without gradients*: start with noise at the distance that your task allows. Try a swarm with a
#   fitness after it, if passes are cheap; compare both, and the same swarm with a constant fitness.
# - *To see natural failures*, such as a rotated or a darker image: DeepHunter's mutations, which
#   a camera could make.
# - *In every report*: give the distance and the passes, and the result of noise beside them.

# %% [markdown]
# ## Exercises
#
# **1. Think.** Even if the bound is large, some of DLFuzz's examples on MNIST are no errors. Why?
#
# ```{admonition} Solution
# :class: dropdown
# The examples of *all* iterations count. DLFuzz starts at the input and makes a small step in each
# iteration, so its first examples are still near the input. Within a small bound, fewer of its
# examples are errors. Compare with the last iteration alone, `campaign.errors[-1]`.
# ```
#
# **2. Try.** What does a distance of 8 look like? Add noise of that L2 norm to a digit.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# import torch
# data = load("digits")
# plots.images(studies.with_noise(data.images[:8], torch.full((8,), 8.0)))
# ~~~
#
# The images are full of grey grains that everybody can see. Which of the digits can you still read?
# ```
#
# **3. Code.** Write `my_within(l2, errors, bound)`: the share of all examples that are errors
# within the bound. The cell says whether it is right.

# %%
my_within = None  # your function of two tensors (N,), distances and booleans, and a number

# %% tags=["hide-input"]
import torch

from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    lengths, wrong = torch.tensor([0.5, 1.5, 2.5, 3.5]), torch.tensor([True, False, True, True])
    check(answer, lambda l2, e, bound: (e & (l2 <= bound)).double().mean(), (lengths, wrong, 1.0),
          (lengths, wrong, 3.0))


is_right(my_within)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_within(l2, errors, bound):
#     return float(errors[l2 <= bound].sum()) / len(errors)
#
# is_right(my_within)
# ~~~
#
# We divide by the number of all examples. If we divided by the number within the bound, the share
# could fall as the bound grows.
# ```
