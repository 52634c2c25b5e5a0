# %% [markdown]
# # How excitable must a neuron be, and in which unit?
#
# **The claims** (DeepSensor II, 4.2, 6.5.1, 6.5.2, Figs. 3 and 10). A neuron whose
# {term}`Shapley value` is above $\lambda = 0.5$ is {term}`excitable <excitable neuron>`; after 20
# iterations 37 % of VGG16's neurons are excitable. Up to 0.6, raising $\lambda$ finds more errors
# of all three kinds. $\epsilon$ is the share of excitable neurons at which the search stops. The
# larger it is, the more errors are found.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
learning_rate = 0.02  # of the overfitted network; the paper has none
retrained = True  # the polluted network: trained on from the clean one; reading: False, a new one
seed = 0  # of the training, and of all else that is random
inputs = 5  # benign inputs to start from; the paper has 1,000 for lambda and 500 for epsilon
iterations = 20  # of every fuzzer
population = 4  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value; with one, most neurons above 0.5 nats are missed
lambdas = "0.1 0.3 0.5 0.6 0.8"  # values of the first threshold
epsilons = "0.002 0.02 0.2"  # of the second, with 1, the paper's, in the end
kinds = "adversarial polluted overfitted"  # of error; a record tells its kinds by its rows
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace
from itertools import product

import torch

from dnnbook import studies
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display.campaign_plots import errors_against_thresholds
from dnnbook.display.comparisons import sizes
from dnnbook.display.plots import nothing, style
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import outcomes
from dnnbook.studies.findings.deepsensor import (
    ahead_of_one,
    mean_of,
    over_thresholds,
    seeds_of,
    sides_of,
)
from dnnbook.training import faulty
from dnnbook.words import listed, rounded_down, rounded_up, span
from dnnlib import checks, fuzzing
from dnnlib.models import count
from dnnlib.neurons import excitable, shapley
from dnnlib.neurons.excitable import ExcitableNeurons

style()
run = Experiment("deepsensor_excitable/thresholds", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, learning_rate=learning_rate, retrained=retrained, seed=seed,
                 budget="none", inputs=inputs, iterations=iterations, population=population,
                 points=points, lambdas=lambdas, epsilons=epsilons, kinds=kinds)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-lambda")

# %% tags=["hide-input", "statements"]
everything = records.existing("deepsensor_excitable/thresholds")
large = everything[everything["model"] == "vgg16"]
rows, players = everything.drop(large.index), count("vgg16").neurons
AT_HALF = {"quantity": "excitable", "threshold": 0.5, "varied": "lambda"}
over_half, scaled = (100 * mean_of(rows, "errors", who=who, **AT_HALF) for who in ("excitable", "excitable_scaled"))
in_vgg16, scaled_vgg16 = (100 * seeds_of(large, who=who, **AT_HALF).mean() for who in ("excitable", "excitable_scaled"))
finely = seeds_of(large, who="excitable", quantity="share", gradients=8, scale="none").mean()
most_vgg16 = max(in_vgg16, 100 * finely)
says(("**The answer.** In nats, an example makes less than one neuron of VGG16 excitable, on average. The paper has "
      f"{37} % of them.", players * most_vgg16 / 100 < 1))

# %% tags=["hide-input", "statements"]
error_shares = outcomes.error_shares(rows)
leads = {kind: evidence.spread(over_thresholds(error_shares, kind)) for kind in ("adversarial", "overfitted", "polluted")}
clean = [leads[kind] for kind in ("adversarial", "overfitted")]
first, last = ([found["mean"].iloc[at] for found in clean] for at in (0, -1))
of_scaled = mean_of(everything, "swarm", "model", quantity="share", gradients=8, scale="total").unstack("swarm")
low, high = clean[0].index.min(), clean[0].index.max()
says((f"In the two networks trained on clean data, a higher threshold finds fewer errors on average, not more: at {low:g}, the lead "
      f"over a constant fitness is {span(first)} points, and at {high:g} {span(last)}.", all(b < a for b, a in zip(last, first))),
     f"Scaled, {span([*scaled, scaled_vgg16])} % of the neurons are excitable.",
     ("But random images, which no swarm has moved, have most of these.",
      (of_scaled["constant"] > 0.7 * of_scaled["excitable_scaled"]).all()))

# %% [markdown]
# ## In one picture
#
# Do the full lines rise with a threshold, as the paper's lines do? And on the left, which of them are above
# the level lines, whose {term}`swarms <swarm>` look at less (dotted) or at nothing (broken)?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 10 of the paper from the records of LeNet-5 on MNIST: one line for each random seed. Left, broken lines are swarms with a constant fitness, dotted ones swarms with the first paper's.", "name": "fig-excitable-thresholds-records"}}
SCALE = {"excitable": "none", "excitable_scaled": "total"}
kept = run.recorded()
if not kept.empty:  # one threshold is no line
    lines = kept[kept["varied"] != "control"].groupby(["dataset", "model", "varied"])["threshold"].nunique()
    several = lines[lines > 1].reset_index()[["dataset", "model"]].drop_duplicates()
    kept = kept.merge(several)
nothing() if kept.empty else errors_against_thresholds(kept, list(SCALE))
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** Why the sum of all Shapley values bounds how many of them can be large. Which unit
# $\lambda$ could have, and how to see whether a threshold steers a search at all.

# %% [markdown]
# ## How many neurons can be above a threshold?
#
# By efficiency the Shapley values sum to what all neurons together are worth,
#
# $$\sum_n \psi_n = \Delta L(\text{all}) - \Delta L(\text{none}) ,$$
#
# so that at most $\frac{1}{\lambda} \sum_n \max(\psi_n, 0)$ neurons are above $\lambda$. If 37 % of
# VGG16's 12,426 neurons are above 0.5 {term}`nats <nat>`, this needs:

# %% tags=["nbval-check-output"]
nats = 0.37 * 12_426 * 0.5
print(f"a loss of {nats:.0f} nats more, or as much in negative values as is missing")
print(f"a network that gives the true class a probability of one in a million: "
      f"{-torch.tensor(1e-6).log():.1f} nats")

# %% [markdown]
# The other {term}`reading` takes the mean absolute value of the input's neurons as its unit. Then an average
# neuron has the value 1, whatever the loss is. An example with four neurons that share out one nat, and
# then ten nats:

# %% tags=["nbval-check-output"]
for psi in (torch.tensor([0.7, 0.2, 0.2, -0.1]), torch.tensor([7.0, 2.0, 2.0, -1.0])):
    print({scale: excitable.excitable(psi, 0.5, scale=scale).sum().item()
           for scale in excitable.SCALES})

# %% [markdown]
# ## Three kinds of error
#
# The kinds are those of [the first paper's chapter](../deepsensor_sensitivity/09_thresholds). They
# come from a well trained network (`adversarial`), from one that was trained on polluted data,
# where only the polluted class counts, and from an overfitted one. Each network has inputs that it
# gets right.

# %%
data = load(dataset, limit=profile_limit(profile))
models = faulty.by_error(model_name, dataset, errors=checks.words(kinds, "kinds"),
                         recipe_name=recipe, seed=seed, learning_rate=learning_rate, retrained=retrained,
                         device=device)
targets = faulty.targets(dataset)
benign = studies.benign_for_each(models, data.images, data.labels, without=targets, count=inputs,
                                 seed=seed)
print(data)

# %% [markdown]
# ## The swarms
#
# We run one swarm for every $\lambda$ at $\epsilon = 1$, where no swarm ever stops early. We run one for
# every $\epsilon$ at $\lambda = 0.5$. Both are run in nats (`excitable`) and scaled (`excitable_scaled`). The
# controls are the first paper's {term}`fitness` at its threshold of 0.5, and a constant fitness.

# %%
plain = fuzzing.Swarm.paper(population=population)


def guided(name: str, threshold: float, epsilon: float = 1.0) -> fuzzing.Swarm:
    """The swarm with that lambda and epsilon."""
    fitness = ExcitableNeurons(threshold=threshold, scale=SCALE[name], points=points)
    return replace(plain, fitness=fitness, epsilon=epsilon)

# %%
swarms = {(name, "lambda", value): guided(name, value) for name in SCALE
          for value in map(float, checks.numbers(lambdas, "lambdas"))}
swarms |= {("sensitive", "control", 0.5): plain,
           ("constant", "control", 0.5): replace(plain, fitness=fuzzing.Constant())}
stopped = {(name, "epsilon", value): guided(name, 0.5, value) for name in SCALE
           for value in [*map(float, checks.numbers(epsilons, "epsilons")), 1.0]}
asked = {"adversarial": swarms | stopped, "polluted": swarms, "overfitted": swarms}
found = {kind: studies.campaigns(model, *benign[kind], asked[kind], iterations=iterations,
                                 seed=seed) for kind, model in models.items()}

# %% [markdown]
# ## What they find
#
# A swarm generates one example for each input: its best of the last iteration. *Excitable* is the
# mean share of neurons that the example makes excitable. They are counted by the reading and the
# $\lambda$ of the swarm; for the controls, in nats at 0.5.

# %%
for kind, campaigns in found.items():
    for (name, varied, threshold), campaign in campaigns.items():
        fitness = ExcitableNeurons(threshold=threshold if varied == "lambda" else 0.5,
                                   scale=SCALE.get(name, "none"), points=points)
        share = fitness(models[kind], *benign[kind])(campaign.images, campaign.origin[-1])
        run.add(outcomes.last_examples(campaign, target=targets[kind])
                | {"excitable": share.mean(), "passes": campaign.passes}, fuzzer="deepsensor",
                swarm=name, errors=kind, varied=varied, threshold=threshold)

# %% tags=["hide-input"]
wide(run.live.sort_values(["swarm", "varied", "threshold"]),
     "errors == 'adversarial' and quantity in ('test_errors', 'excitable', 'passes')",
     index=["swarm", "varied", "threshold"], columns="quantity",
     digits={"excitable": 3, "passes": 0, "test_errors": 0})

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 10 for the run above: examples that are test errors against the two thresholds, in nats (top) and scaled (bottom). Broken lines: a swarm with a constant fitness; dotted: the first paper's fitness.", "name": "fig-excitable-thresholds"}}
errors_against_thresholds(run.live, list(SCALE))
run.show()

# %% [markdown]
# ## Why the share in nats is small
#
# The table is about the last examples at $\lambda = 0.5$. By eight gradients, it has the change of
# loss that there is to share (`total`), the sum of the positive values (`positive`), and the
# largest share of neurons that could be above 0.5 nats with that sum (`possible`). Beside them is
# the share of neurons that are above 0.5 (`share`), by one, two and eight gradients.

# %%
x, y = benign["adversarial"]
games = {name: shapley.Game(models["adversarial"], x, campaign.images, y)
         for (name, varied, threshold), campaign in found["adversarial"].items()
         if varied != "epsilon" and threshold == 0.5}
values = {(name, n): shapley.diagonal(game, points=n)
          for name, game in games.items() for n in (1, 2, 8)}

# %%
for name, game in games.items():
    where = {"fuzzer": "deepsensor", "swarm": name, "errors": "adversarial"}
    psi = values[name, 8]
    positive = psi.values.clamp_min(0).sum(1)
    run.add({"total": psi.total.mean(), "positive": positive.mean(),
             "possible": (positive / 0.5 / game.players).clamp_max(1).mean()}, **where)
    for scale, n in product(excitable.SCALES, (1, 2, 8)):
        above = excitable.excitable(values[name, n].values, scale=scale)
        run.add({"share": above.double().mean()}, **where, scale=scale, gradients=n)

# %% tags=["hide-input"]
wide(run.live, "quantity in ('total', 'positive', 'possible', 'share')", index="swarm",
     columns=["quantity", "scale", "gradients"], digits=3)

# %% [markdown]
# ## What the claims ask for
#
# From one threshold to the next, the number of {term}`test errors <test error>` changes by a step.
# *Least step* is the least of these steps, along $\lambda$ up to 0.6 and along $\epsilon$. It is
# below zero as soon as one step loses errors. *Most over least* is the largest of all counts
# divided by the smallest: it is 1 if the threshold did not matter.

# %%
SERIES = ["swarm", "errors", "varied"]
every = run.live.query("quantity == 'test_errors' and varied != 'control'")
every = every[every.groupby(SERIES)["threshold"].transform("nunique") > 1]
for series, line in every.query("varied == 'epsilon' or threshold <= 0.6").groupby(SERIES):
    run.add({"least_step": outcomes.least_step(line.set_index("threshold")["value"])},
            fuzzer="deepsensor", **dict(zip(SERIES, series)))
for series, line in every.groupby(SERIES):
    run.add({"most_over_least": line["value"].max() / max(1, line["value"].min())},
            fuzzer="deepsensor", **dict(zip(SERIES, series)))

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live, "quantity in ('least_step', 'most_over_least')",
     index=["swarm", "varied", "errors"], columns="quantity")

# %% [markdown]
# ## Over all records
#
# First, the share of the examples that are test errors, and then the share of neurons made
# excitable at $\lambda$. Both are in percent, as means over the random seeds. Fig. 10 prints no
# numbers that we could put beside them.

# %% tags=["hide-input"]
ours = run.recorded()
reached = ours[(ours["quantity"] == "excitable") & (ours["varied"] == "lambda")]
for table in (outcomes.error_shares(ours), reached.assign(value=100 * reached["value"])):
    display(wide(table, index=["dataset", "model", "swarm", "varied", "errors"],
                 columns="threshold").sort_index(axis=1))

# %% [markdown]
# The records also have the test errors among the examples of all iterations, the median distance, and the passes:

# %% tags=["hide-input", "hide-output"]
wide(ours, "quantity in ('test_errors_all_iterations', 'l2', 'passes')",
     index=["swarm", "varied", "errors", "threshold"], columns=["dataset", "model", "quantity"])

# %% [markdown]
# ## Verdict
#
# Section 4.2 gives the share of excitable neurons for VGG16 on CIFAR-10; in its place, the reading has the
# records of LeNet-5 on MNIST.

# %% tags=["hide-input"]
run.verdicts({"with LeNet-5 on MNIST": {"dataset": "mnist", "model": "lenet5"}})

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says(*evidence.left_out(rows), f"Our records cover {sizes(rows)}, for each kind of error. In the well trained network, at "
     f"one value of each threshold, they also cover {sizes(large)}.", evidence.estimator(everything))

# %% [markdown]
# **What it means.** A threshold in nats counts neurons and measures the loss at the same time. The more loss
# there is to share out, the more shares are large. If no swarm reaches $\epsilon$, $\epsilon$ changes
# nothing.

# %% tags=["hide-input", "statements"]
possible, vgg16_possible = (100 * seeds_of(part, who="excitable", quantity="possible").mean() for part in (rows, large))
says((f"If the sum of VGG16's positive values were shared out evenly, it would be enough for "
      f"{players * vgg16_possible / 100:.0f} of its {players:,} neurons.", most_vgg16 < vgg16_possible < 1),
     (f"The LeNet-5 of MNIST has fewer neurons, and {span(over_half)} % of them are excitable in the examples. Shared out "
      f"evenly, the values in the well trained network would be enough for {possible:.0f} %.",
      over_half.max() < 37 and over_half["adversarial"] < possible < 37))

# %% tags=["hide-input", "statements"]
surely = {name: sides_of(found).ahead for name, found in zip(("well trained", "overfitted"), clean)}
says(*[f"In the {name} network the lead over a constant fitness is more than chance at "
       f"{listed(f'{threshold:g}' for threshold in above) if above else 'no threshold'}." for name, above in surely.items()],
     ("With scaled values, all examples are errors at every threshold in these two networks.", seeds_of(
         error_shares[error_shares["errors"] != "polluted"], "errors", "threshold", who="excitable_scaled",
         varied="lambda").min() == 100))

# %% tags=["hide-input", "statements"]
polluted = leads["polluted"]
given = seeds_of(error_shares, "threshold", who="excitable", errors="polluted", varied="lambda").unstack("threshold")
worst, *others = given.loc[given.min(axis=1).sort_values().index].to_numpy()
says((f"For the polluted class there is no curve: at each threshold, the lead over a constant fitness is at most "
      f"{rounded_up(polluted['mean'].max())} points on average, and may be chance.",
      (polluted["low"] < 0).all() and (polluted["high"] > 0).all()),
     (f"With two of the three seeds, at least {rounded_down(min(map(min, others)))} % of the examples are given that class at each "
      f"threshold; with the third, at most {rounded_up(max(worst))} %.",
      len(others) == 2 and min(map(min, others)) > 90 and max(worst) < 50))

# %% tags=["hide-input", "statements"]
stopping = seeds_of(error_shares, "threshold", who="excitable", varied="epsilon").unstack("threshold")
change = evidence.spread(ahead_of_one(stopping, stopping.columns.max()))
says((f"The second threshold changes the errors by at most {rounded_up(change['mean'].abs().max())} points on average, which may "
      "be chance.", change["mean"].abs().max() < 10 and len(sides_of(change).undecided) == len(change)))

# %% [markdown]
# ## Exercises
#
# **1. Try.** May the positive Shapley values sum to more than the change of loss? Check it.
#
# ```{admonition} Solution
# :class: dropdown
# Yes: only the sum of all values is fixed, and negative values cancel positive ones.
#
# ~~~python
# print(psi.values.clamp_min(0).sum(1) - psi.total, -psi.values.clamp_max(0).sum(1) + psi.gap)
# ~~~
#
# Both numbers are the same: the negative values take back what the positive ones have too much.
# ```
#
# **2. Try.** How precise must a Shapley value be for a threshold?
#
# ```{admonition} Solution
# :class: dropdown
# A value can change sides only if its error is larger than its distance from $\lambda$. Compare one
# point with many:
#
# ~~~python
# few = shapley.diagonal(game, points=1).values
# print((excitable.excitable(few) != excitable.excitable(psi.values)).double().mean())
# ~~~
# ```
#
# **3. Think.** A search stops when 37 % of the neurons are excitable, and no swarm ever gets there.
# What does the threshold do, and which experiment can show its influence?
#
# ```{admonition} Solution
# :class: dropdown
# Nothing: all swarms take all their iterations, as if there were no threshold. Only thresholds that
# some swarm reaches can make a difference.
# ```
#
# **4. Code.** Suppose that no value is negative and that all of them sum to `total`. Write
# `my_most(total, threshold)`: how many neurons can be *above* the threshold at most. The cell says
# whether it is right.

# %%
my_most = None  # your function of two positive numbers

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def most(total, threshold):
        count = 0
        while (count + 1) * threshold < total:
            count += 1
        return count

    check(answer, most, (2.3, 0.5), (2.0, 0.5), (0.4, 0.5))


is_right(my_most)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# import math
#
# def my_most(total, threshold):
#     return math.ceil(total / threshold) - 1
#
# is_right(my_most)
# ~~~
#
# If no value is negative, a change of loss of 2.3 nats, from sure to a tenth, makes at most four
# neurons excitable.
# ```
