# %% [markdown]
# # Does it matter where the particles start?
#
# **The claim** (DeepSensor IV.F, Fig. 6). Swarms that start at random positions find more test
# errors than swarms that start at the input, whatever the cause of the errors, and raise six
# coverage criteria more. So, says the paper, a random start escapes local optima.
#
# **What you will learn.** To ask what the start itself brings, before any optimisation; and to tell
# a better search from a longer way.

# %% tags=["parameters"]
dataset = "mnist_small"  # a name from `dnnlib data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, resnet20, vgg16
recipe = "default"  # of the well trained network: a name of `training.RECIPES`
learning_rate = 0.02  # of the overfitted network; Table V has none
seed = 0  # of the trainings, of the choice of inputs and of the swarms
inputs = 20  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every swarm
population = 5  # particles of a swarm; the second paper has 100
near = 1.0  # a bound on the L2 distance, that of IV.C; 2 on ImageNet
references = 1000  # training images that say which activations are usual
profile = "embedded"  # embedded: at most 1,000 test images to choose from; paper: all, and a record

# %% tags=["hide-input"]
from dataclasses import replace
from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnlib import coverage, fuzzing
from dnnlib.book import plots, records
from dnnlib.book.comparisons import sizes
from dnnlib.book.experiments import Experiment
from dnnlib.book.intervals import interval
from dnnlib.book.statements import says
from dnnlib.book.tables import wide
from dnnlib.book.words import shown
from dnnlib.data import load, profile_limit
from dnnlib.fuzzing import outcomes
from dnnlib.neurons import activations
from dnnlib.training import faulty

plots.style()
run = Experiment("deepsensor_sensitivity/start", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, learning_rate=learning_rate, seed=seed, swarm="paper",
                 inputs=inputs, iterations=iterations, population=population, near=near,
                 references=references)

# %% [markdown]
# ## In one picture
#
# Compare the starts: at random, or at the input (seed). Is the same one higher for all three kinds
# of error, and does it also gain more coverage? A constant fitness shows what a random start does
# by itself.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 6 of the paper from the records, without a bound; means over all networks and random seeds.", "name": "fig-deepsensor-start-records"}}
def draw(rows: pd.DataFrame) -> None:
    """Fig. 6 from a run's rows, or those of records: means over the random seeds."""
    rows = rows.query("budget == 'none'")
    gains = rows.query("quantity == 'gain'")
    plots.bar_panels({"test errors": (outcomes.error_shares(rows), "errors", "% of the examples"),
                      "coverage": (gains, "criterion", "points gained")}, hue="start")


kept = run.recorded()
plots.nothing() if kept.empty else draw(kept)
plt.show()

# %% [markdown]
# ## Two starts
#
# III.D puts the particles at the input, with "the change of the pixel value" as their velocity:
# zero there, so that they would never move. IV.F starts them at random. A start at the input thus
# needs a velocity from elsewhere: the released code draws it uniformly from [0, 0.7], which makes
# every pixel brighter (`seed`, as the papers call the input). With the same speeds in both
# directions, [-0.7, 0.7], it is `seed, signed`. A grey pixel of 0.5, three particles and one move,
# with no pull from any best position:

# %% tags=["nbval-check-output"]
still = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(1, 2))
starts = {"random": {}, "seed": {"start": "input", "velocity": (0.0, 0.7)},
          "seed, signed": {"start": "input", "velocity": (-0.7, 0.7)}}
for name, options in starts.items():
    seen = []
    fuzzing.Swarm(population=3, c1=0.0, c2=0.0, inertia=(0.9, 0.9), **options,
                  fitness=lambda *_: lambda x, of: seen.append(x.flatten()) or x.sum((1, 2, 3))
                  ).run(still, torch.full((1, 1, 1, 1), 0.5), torch.tensor([0]), iterations=2,
                        generator=torch.Generator().manual_seed(0))
    print(f"{name}: {[[round(v, 2) for v in x.tolist()] for x in seen]}")

# %% [markdown]
# ## Three kinds of error
#
# As in [the chapter before](09_thresholds): a well trained network, one trained on polluted data,
# of which only the polluted class counts, and an overfitted one, each with inputs that it gets
# right.

# %% tags=["hide-input"]
data, train = load(dataset, limit=profile_limit(profile)), load(dataset, "train")
models = faulty.by_error(model_name, dataset, recipe_name=recipe, seed=seed,
                         learning_rate=learning_rate)
targets = faulty.targets(dataset)
benign = fuzzing.benign_for_each(models, data.images, data.labels, without=targets, count=inputs,
                                 seed=seed)
print(data)

# %% [markdown]
# ## The swarms
#
# All else is the paper's. Table II and Fig. 6 name no bound on the distance (`none`); the bound of
# IV.C (`paper`) brings a random start back to the neighbourhood of the input. The control is a
# random start with a constant fitness, of which nothing but the start remains.

# %%
bounds = {"none": None, "paper": near}
swarms = {start: fuzzing.Swarm.paper(population=population, **options)
          for start, options in starts.items()}
swarms["random, constant"] = replace(swarms["random"], fitness=fuzzing.Constant())
found = {kind: fuzzing.at_bounds(model, *benign[kind], swarms, bounds, iterations=iterations,
                                 seed=seed) for kind, model in models.items()}

# %% [markdown]
# ## Test errors
#
# Among the examples of the last iteration, one for each input; *L2* is their mean distance from it.

# %% tags=["hide-input"]
errors = {(kind, *where): outcomes.hits(campaign, targets[kind])
          for kind, campaigns in found.items() for where, campaign in campaigns.items()}

# %% tags=["hide-input"]
for (kind, budget, start), wrong in errors.items():
    run.add({"test_errors": wrong[-1].sum(), "test_errors_all": wrong.sum(),
             "l2": found[kind][budget, start].l2[-1].mean()},
            budget=budget, errors=kind, start=start)
wide(run.live, "quantity != 'test_errors_all'", index=["budget", "start"],
     columns=["quantity", "errors"])

# %% [markdown]
# ## Coverage
#
# What the examples of the well trained network add to the coverage of their inputs, with the
# options of [the chapter on coverage](06_coverage).

# %% tags=["hide-input"]
model, x = models["adversarial"], benign["adversarial"][0]
usual = coverage.boundaries(activations.record(model, train.images[:references]).values)
before = outcomes.covered(model, x, usual)
gains = {place: outcomes.covered(model, torch.cat([x, campaign.images]), usual) - before
         for place, campaign in found["adversarial"].items()}
for (budget, start), gain in gains.items():
    run.add(outcomes.each("criterion", gain), budget=budget, start=start, quantity="gain")
for budget in bounds:
    run.add(outcomes.each("criterion", gains[budget, "random"] - gains[budget, "seed"]), budget=budget,
            quantity="random_less_fixed")

# %% tags=["hide-input"]
wide(run.live, "quantity == 'gain'", index=["budget", "start"], columns="criterion", digits=2)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 6 for the run above, without a bound: test errors of the three kinds (left) and points of coverage gained (right), for each start.", "name": "fig-deepsensor-start"}}
draw(run.live)
plt.show()

# %% [markdown]
# ## What the claim asks for
#
# The test errors of a random start over those of a start at the input, with the released code's
# velocity (*random over fixed*) and with the signed one (*random over signed*). Where that start
# finds no error it is counted as one, so that the ratio is at least what is printed.

# %% tags=["hide-input"]
for kind, budget in product(models, bounds):
    count = {start: int(errors[kind, budget, start][-1].sum()) for start in starts}
    run.add({"random_over_fixed": count["random"] / max(1, count["seed"]),
             "random_over_signed": count["random"] / max(1, count["seed, signed"])},
            budget=budget, errors=kind)

# %% tags=["hide-input"]
run.save(data)
wide(run.live, "quantity in ('random_over_fixed', 'random_over_signed')",
     index=["budget", "errors"], columns="quantity", digits=2)

# %% [markdown]
# ## Over all records
#
# Percent of the examples that are test errors, then points of coverage gained; means over the
# random seeds. Fig. 6 prints no numbers that could stand beside them.

# %% tags=["remove-input"]
from dnnlib.book.practice import bet

bet("deepsensor-sensitivity-start")

# %% tags=["hide-input"]
ours = run.recorded()
CELL = ["dataset", "model", "budget", "start"]
display(wide(outcomes.error_shares(ours), index=CELL, columns="errors"))
wide(ours, "quantity == 'gain'", index=CELL, columns="criterion")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** A random start without a bound is an image of random pixels. Such images lie
# far from their inputs and are mostly misread before the swarm makes a single move; the row
# `random, constant` says how many. So a random start may well find more errors, but that is no
# evidence for escaped local optima: the two starts differ in distance before they differ in search.
# The rows under the bound `paper` put them at the same distance, and there the comparison is one of
# searches. Coverage need not follow the errors.

# %% tags=["hide-input", "statements"]
kept = records.frame("deepsensor_sensitivity/start")
CELL, KINDS = ["dataset", "model", "seed"], {
    "adversarial": "in the well trained network", "polluted": "after pollution",
    "overfitted": "in the overfitted network"}
times = {kind: interval(values, "ratio") for kind, values in kept.query(
    "quantity == 'random_over_fixed' and budget == 'none'").groupby("errors")["value"]}
mean = kept.query("quantity == 'random_over_fixed' and budget == 'none'").groupby("errors")["value"].mean()
shares = outcomes.error_shares(kept)
rates = shares[shares["budget"] == "none"].pivot_table(
    index=CELL, columns=["start", "errors"], values="value")
sure = [kind for kind in KINDS if times[kind][0] > 1]
rest = [kind for kind in KINDS if kind not in sure]
first = kept["seed"].min()
says(f"The records are of {sizes(kept)}"
     + (f", which begin with {first} ([why](04_faulty_training))." if first else "."),
     (f"Without a bound a random start finds {mean[sure].min():.0f} to {mean[sure].max():.0f} times the errors "
      f"of a start at the input {' and '.join(KINDS[kind] for kind in sure)}, as claimed.", len(sure) > 0)
     if sure else "Without a bound a random start is not surely better for any kind of error.",
     *([f"For errors {' and '.join(KINDS[kind] for kind in rest)} the interval includes equality."]
       if rest else []))
lead = {kind: interval(rates["random"][kind] - rates["random, constant"][kind]) for kind in KINDS}
fewer, more = ([KINDS[kind] for kind in KINDS if test(*lead[kind])] for test in (
    lambda low, high: high < 0, lambda low, high: low > 0))
says(*([f"But {' and '.join(fewer)} the same start under a constant fitness, which never moves, finds "
        "*more* errors still: it is the start that counts, and not the search."] if fewer else []),
     *([f"Only {' and '.join(more)} does the search add to what its start brings."] if more else []))
bounded = shares[shares["budget"] == "paper"]
says((f"Within the bound no start finds more than {bounded['value'].max():.1f} % errors: at the same distance "
      "there is next to nothing to compare.", bounded["value"].max() < 5))
gain = kept[(kept["quantity"] == "gain") & (kept["budget"] == "none")].pivot_table(
    index=CELL, columns=["start", "criterion"], values="value")
ends = {name: interval(gain["random"][name] - gain["seed"][name]) for name in gain["random"]}
above, under = ([shown(name) for name, (low, high) in ends.items() if test(low, high)] for test in (
    lambda low, high: low > 0, lambda low, high: high < 0))
says(f"Coverage does not follow the errors. Paired by seed, the random start gains more in "
     f"{' and '.join(above) or 'no criterion'} and less in {' and '.join(under) or 'none'}, of the "
     f"{len(ends)} criteria: not in each of them, as the paper has it."
     if len(above) < len(ends) else "The random start gains more in each criterion, as the paper has it.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** With the start at the input, what is the fitness in the first iteration, and what
# are its examples?
#
# ```{admonition} Solution
# :class: dropdown
# All particles are the input, so that $\Delta x = 0$ and the fitness is 0 (III.C). The example is
# the input itself, which the network gets right: one of the twenty iterations finds no error by
# construction.
# ```
#
# **2. Think.** Design a start that is random, yet as near to the input as you like.
#
# ```{admonition} Solution
# :class: dropdown
# Give the swarm a budget: `fuzzing.Budget(l2=1.0)` brings uniform images back to the ball around
# the input, `fuzzing.Budget(linf=0.1)` draws every pixel within 0.1 of the input's. The velocity,
# start minus input, shrinks with it.
# ```
#
# **3. Code.** Write `my_start(x, u, radius)`: a random start near the input. The random image `u`
# is brought to the given L2 distance from `x`, in a straight line, if it is farther. The cell says
# whether it is right.

# %%
my_start = None  # your function of two tensors (N, pixels) and a number

# %% tags=["hide-input"]
from dnnlib.book.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def start(x, u, radius):
        return fuzzing.Budget(l2=radius).project(u.view(len(u), 1, 1, -1), x.view(len(x), 1, 1, -1)
                                                 ).view_as(u)

    middle, far = torch.full((2, 4), 0.5), torch.tensor([[0.5, 0.6, 0.5, 0.5], [0.0, 1.0, 0.0, 1.0]])
    check(answer, start, (middle, far, 0.5), (middle, far, 0.05))


is_right(my_start)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_start(x, u, radius):
#     way = (u - x).norm(dim=1, keepdim=True)
#     return x + (u - x) * (radius / way).clamp(max=1)
#
# is_right(my_start)
# ~~~
#
# With such a start the two swarms differ in how they search, and no longer in how far they are.
# ```
