# %% [markdown]
# # What does a Shapley value cost?
#
# **The claim** (DeepSensor II, Section 7). DeepSensor is slower than the others: it takes 260 s for
# 100 examples in LeNet-5, while they take 168 s on average, since "each neuron needs to be
# calculated N! times".

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 10  # benign inputs, each with one generated example; the paper has 100
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
near = 2.0  # a bound on the L2 distance under which errors are counted, too
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import math
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display.campaign_plots import fuzzer_bars, seconds_against_passes
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.plots import nothing, style
from dnnbook.display.tables import beside, wide
from dnnbook.records import evidence, records
from dnnbook.records.records import timed
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import table_of
from dnnbook.words import headed, out_of, shown
from dnnlib import fuzzing
from dnnlib.neurons import shapley
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.perturb import mutations

style()
run = Experiment("deepsensor_excitable/cost", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, inputs=inputs, iterations=iterations,
                 population=population, near=near, others=others, references=references, held_out=held_out)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-cost")

# %% tags=["hide-input", "statements"]
rows = at_best(records.existing("deepsensor_excitable/cost"), "dataset", "model")
taken = table_of(rows, ["excitable", "sensitive", "deepxplore", "dlfuzz", "deephunter"], quantity="passes", budget="none")
dearer = (taken["excitable"] / taken["sensitive"]).mean()
gradients = round(dearer / 3)
parts = taken[["deepxplore", "dlfuzz", "deephunter"]].div(taken["excitable"], axis=0)
says((f"**The answer.** Much, but no factorial. A gradient takes three passes and serves all neurons at once. With {gradients} of them "
      f"for each particle, the excitable swarm takes {dearer:.1f} times as many passes as the sensitive one.", abs(dearer - 3 * gradients) < 0.5),
     (f"The rivals take about {100 * parts.max(axis=None):.0f} % of its passes, or less. So the paper is right that excitable neurons "
      "are expensive, but wrong about why.", parts.max(axis=None) < 1),
     f"The verdict on the claim about seconds is *{evidence.state('deepsensor-excitable-cost')}*.")

# %% [markdown]
# ## In one picture
#
# The scale is logarithmic: each horizontal line stands for ten times as much as the one below.
# Compare the price of the {term}`swarm` that is guided by excitable neurons with the prices of the
# sensitive swarm and of the rivals.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Seconds for 100 examples of each fuzzer without a bound, from the records: mean over the random seeds; lines give the range. They differ from machine to machine; compare within the figure.", "name": "fig-excitable-cost-records"}}
kept = run.recorded()
if kept.empty:
    nothing()
else:
    figure = fuzzer_bars(at_best(kept[(kept["quantity"] == "seconds") & (kept["budget"] == "none")],
                                 "dataset", "model"),
                         group=["dataset", "model"], ylabel="seconds for 100 examples")
    figure.axes[0].set_yscale("log")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** What N! would take, and what an estimate takes. What each {term}`swarm` and each
# rival costs in seconds and in {term}`passes <pass>`; and what the more expensive {term}`fitness` buys.

# %% [markdown]
# ## N! and what can be done
#
# What do the {term}`Shapley values <Shapley value>` of $N$ neurons in one input cost, in passes
# through the network? A coalition takes two passes, for the input and its changed copy, and a
# gradient takes two more than its pass. All $N!$ orders go through $N$ coalitions each. But orders
# share coalitions, and there are only $2^N$ coalitions. The costs, as powers of ten:

# %% tags=["nbval-check-output"]
def powers(neurons: int) -> dict[str, float]:
    """Passes for one input, as powers of ten."""
    orders = math.lgamma(neurons + 1) / math.log(10)
    return {"all orders": orders + math.log10(2 * neurons),
            "all coalitions": math.log10(2) * (neurons + 1),
            "10 permutations": math.log10(2 * (10 * (neurons - 1) + 2)),
            "diagonal, 8 points": math.log10(2 * (3 * 8 + 2)),
            "diagonal, 1 point": math.log10(2 * (3 * 1 + 2))}


print(pd.DataFrame({n: powers(n) for n in (12, 52, 268, 94059)}).map(
    lambda power: f"{power:.1f}").to_string())

# %% [markdown]
# LeNet-1, LeNet-5 and ResNet-50 have 52, 268 and 94,059 neurons, as the papers count them. The outputs of the softmax
# are among these, but do not play, so there are fewer players below. Even all
# coalitions of LeNet-1 take about $10^{16}$ passes, and the paper takes 2.6 s for an example in LeNet-5. So the
# authors ran an estimate that they do not name, or computed another quantity.
#
# The cost of the diagonal ([an estimate by gradients](00_players)) does not depend on the number of
# neurons. In the swarm it is cheaper still: the gradients of the {term}`benign input` are computed
# only once, and nobody asks what the ends are worth. A {term}`particle` takes **three passes for
# each point**, while with sensitive neurons it takes **one**.

# %% tags=["hide-input"]
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]
print(f"{len(x)} inputs of {data}")

# %% [markdown]
# Take two inputs and three iterations of a swarm with five particles. Each particle is scored with
# a gradient, and the best one is judged. Before that, the layers and the gradients of the inputs
# are found:

# %% tags=["nbval-check-output"]
few = fuzzing.Swarm.paper(population=5, fitness=ExcitableNeurons(points=1)).run(
    model, x[:2], labels[:2], iterations=3, generator=torch.Generator().manual_seed(seed))
print("passes:", few.passes, "=", 2 * 3 * (3 * 5 + 1), "+", few.passes - 2 * 3 * (3 * 5 + 1))

# %% [markdown]
# ## The estimators, in seconds
#
# All numbers are for one input and all neurons of the network. The input is perturbed by a
# {term}`benign mutation`.

# %% tags=["hide-input"]
moved = mutations.mutate(x, "rotation", seed=seed).images
game = shapley.Game(model, x[:4], moved[:4], labels[:4])
generator = torch.Generator().manual_seed(seed)
estimates = {
    "leave one out": lambda: shapley.leave_one_out(game),
    "10 permutations": lambda: shapley.permutation(game, permutations=10, generator=generator),
    "diagonal, 8 points": lambda: shapley.diagonal(game),
    "diagonal, 1 point": lambda: shapley.diagonal(game, points=1)}
estimated = {name: timed(estimate) for name, estimate in estimates.items()}
print(f"{game.players} neurons; exact values take 10 to the power of "
      f"{powers(game.players)['all coalitions']:.0f} passes")

# %% tags=["hide-input"]
for name, (seconds, got) in estimated.items():
    run.add({"estimate_seconds": seconds / 4, "estimate_passes": got.passes / 4}, estimator=name)
wide(run.live, "quantity == 'estimate_passes'", index="estimator", columns="quantity")

# %% [markdown]
# The records hold the passes and the seconds for one input of a larger run. These are means over the random
# seeds:

# %% tags=["hide-input"]
wide(run.recorded("quantity in ('estimate_passes', 'estimate_seconds')"),
     index=["dataset", "model", "estimator"], columns="quantity", digits={"estimate_passes": 0, "estimate_seconds": 3})

# %% [markdown]
# ## The fuzzers, in passes and seconds
#
# Every fuzzer runs twice, and the faster run counts. `excitable_8` takes eight quadrature points.
# The three other swarms are those of [the first paper](../deepsensor_sensitivity/11_time).

# %%
swarm = fuzzing.Swarm.paper(population=population)
swarms = studies.swarms(swarm, points=4, seed=seed)
swarms[FuzzerKey("deepsensor", "excitable_8")] = replace(swarm, fitness=ExcitableNeurons(points=8))
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)
known = studies.known_images(dataset, data, chosen, references)
baselines = studies.rivals(oracles, known, best=(data.images, data.labels),
                           count=held_out)
fuzzers = (swarms | studies.settled(baselines, model, x, iterations=iterations)
           | {FuzzerKey("noise"): fuzzing.Noise(scale=1.0)})

# %%
runs = {key: timed(lambda: fuzzer.run(model, x, labels, iterations=iterations,
                                      generator=torch.Generator().manual_seed(seed)))
        for key, fuzzer in fuzzers.items()}
close = studies.at_bounds(model, x, labels, fuzzers, {"near": near}, iterations=iterations,
                          seed=seed)

# %% tags=["hide-input"]
cost = pd.DataFrame({key: outcomes.per_hundred(campaign, seconds)
                     for key, (seconds, campaign) in runs.items()}).T
within = pd.DataFrame({key: outcomes.per_hundred(close["near", key]) for key in runs}).T
for budget, table in {"none": cost, "near": within}.items():
    for key, line in table.iterrows():
        run.add(line.to_dict(), budget=budget, **key.columns)
cost["test_errors_near"] = within["test_errors"]
headed(cost.drop(columns="seconds").sort_values("passes").round(1))

# %% [markdown]
# The table is for 100 examples. It counts the {term}`test errors <test error>` of all iterations,
# without a bound on the distance and within an {term}`L2 distance` of `near`. Seconds differ from
# machine to machine, so they are drawn:

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Left: seconds and passes for 100 examples of each fuzzer of the run above. On the broken line a pass takes the time that it takes in the sensitive swarm. Right: test errors within the bound, against passes.", "name": "fig-excitable-cost"}}
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6))
seconds_against_passes(axes[0], cost, alike=FuzzerKey("deepsensor", "sensitive"))
for key, line in cost.iterrows():
    axes[1].semilogx(line["passes"], line["test_errors_near"],
                     "o" if key in swarms else "s", label=shown(str(key)))
axes[1].set(xlabel="passes for 100 inputs", ylabel=f"test errors within L2 = {near:g}")
axes[1].xaxis.set_minor_formatter(plt.NullFormatter())
axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
run.show()

# %% [markdown]
# ## What the claim asks for
#
# The claim asks for the others' seconds as multiples of the swarm's. They are above 1 if the swarm
# is faster. We compute the same for passes. `mean` is the mean of the three rivals; `sensitive` and
# `constant` are swarms of the same size.

# %% tags=["hide-input"]
against = {(key.fuzzer, key.setting): cost.loc[key] for key in baselines}
for setting in ("paper", "best") if held_out else ("paper",):
    same = [key for key in baselines if key.setting == setting]
    against["mean", setting] = cost.loc[same].mean()
against |= {(name, ""): cost.loc[FuzzerKey("deepsensor", name)] for name in ("sensitive", "constant")}
for key in swarms:
    for (baseline, setting), theirs in against.items():
        if baseline != key.reading:
            times = theirs / cost.loc[key]
            run.add({"times_deepsensor": times["seconds"], "times_passes": times["passes"]},
                    budget="none", baseline=baseline, **key.columns,
                    **({"setting": setting} if setting else {}))
run.save(data, device=device)
wide(run.live, "quantity == 'times_passes'", index=["swarm", "setting"], columns="baseline",
     digits=3)

# %% [markdown]
# ## Section 7, beside the paper's
#
# Seconds for 100 examples: the paper's were measured on an RTX 3090, and ours on a processor, mean
# [least, greatest] over the random seeds. Compare within a column only. `mean` is the mean of the
# rivals.

# %% tags=["hide-input"]
ours = run.recorded().astype({"value": float})
CELL = ["dataset", "model"]
printed = published.table("deepsensor_excitable", 8).query("place == '7'")
seconds = ours.query("quantity == 'seconds' and budget == 'none'")
rivals = seconds[seconds["setting"] == "paper"]
rivals = rivals.groupby([*CELL, "seed"], as_index=False)["value"].mean().assign(fuzzer="mean")
beside(printed, pd.concat([seconds.query("swarm == 'excitable'"), rivals]), on=[*CELL, "fuzzer"],
       digits=1, settings=run.settings)

# %% [markdown]
# The rivals' mean is, to within 0.1 s, that of their seconds in Table VI of the first paper, measured on another
# computer. There the cheaper method takes 101.4 s on LeNet-5; in this paper the more expensive one
# takes 259.7 s. The next table has multiples of DeepSensor's own numbers, the paper's and ours, in
# seconds and passes:

# %% tags=["hide-input"]
paper = printed.pivot(index=CELL, columns="fuzzer", values="value").astype(float)
paper = paper["mean"].div(paper["deepsensor"]).rename("value").reset_index()
multiples = ours.query("swarm == 'excitable' and quantity in ('times_deepsensor', 'times_passes')")
wide(pd.concat([paper.assign(quantity="paper", baseline="mean"), multiples]),
     index=["quantity", "setting", *CELL], columns="baseline",
     digits={"paper": 2, "times_deepsensor": 3, "times_passes": 3})

# %% [markdown]
# ## Errors for the money, over all records
#
# Test errors for 1,000 passes, within `near` and without a bound; means over the seeds.

# %% tags=["hide-input"]
part = ours[ours["quantity"].isin(["test_errors", "passes"])].fillna({"swarm": "", "setting": ""})
errors, passes = (part[part["quantity"] == quantity].groupby(
    [*CELL, "fuzzer", "swarm", "setting", "budget"], sort=False)["value"].mean()
    for quantity in ("test_errors", "passes"))
wide((1000 * errors / passes).reset_index(), index=[*CELL, "fuzzer", "swarm", "setting"], columns="budget",
     digits=2)

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(rows)}.", f"The rivals ran {of_rivals(rows)}.",
     evidence.estimator(rows.assign(points=gradients)))

# %% [markdown]
# **What it means.** A price says nothing without what it buys.

# %% tags=["hide-input", "statements"]
possible = 100 * rows["iterations"].max()
every_error = table_of(rows, ["excitable_8", "excitable", "constant"], quantity="test_errors", budget="none")
bounded = table_of(rows, ["excitable", "excitable_8", "dlfuzz"], quantity="test_errors", budget="near")
none = (bounded["excitable"] == 0).sum()
says((f"Without a bound, the swarm finds nearly all of the {possible:,.0f} errors that are possible. With a constant fitness "
      f"it finds {every_error['constant'].mean():,.0f} on average. So this count cannot show what more gradients buy.",
      every_error[["excitable", "excitable_8"]].min(axis=None) > 1980 and every_error["constant"].max() < 1980),
     (f"Within the bound it finds {bounded['excitable'].mean():.0f} errors on average, and none in "
      f"{out_of(none, len(bounded))} runs; eight gradients find the same. DLFuzz finds "
      f"{bounded['dlfuzz'].mean():,.0f}.", bounded["excitable"].max() < bounded["dlfuzz"].min() and none > 0
      and bounded["excitable"].equals(bounded["excitable_8"])),
     "So before you pay for a fitness, compare errors within a bound and for the same passes.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** With the passes of the excitable swarm, how many particles may the sensitive swarm
# have?
#
# ```{admonition} Solution
# :class: dropdown
# With $k$ gradients for each value, an iteration takes $3kP + 1$ passes for the excitable swarm and
# $P' + 1$ for the sensitive one, so $P' = 3kP$. [The chapter on test errors](01_test_errors) has
# such a swarm, `sensitive_same_passes`.
# ```
#
# **2. Try.** How long would exact values take for a network of 16 neurons, and how long for 40?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# rate = sum(seconds for seconds, _ in runs.values()) / sum(c.passes for _, c in runs.values())
# for n in (16, 40):
#     print(n, "neurons:", 10 ** powers(n)["all coalitions"] * rate / 3600, "hours an input")
# ~~~
#
# Each further neuron doubles the time: that is why `shapley.exact` stops at 16.
# ```
#
# **3. Think.** An estimate from one gradient costs three passes instead of N!. What does the
# paper's sentence on N! then say about its own method?
#
# ```{admonition} Solution
# :class: dropdown
# That its values cannot be exact. The 260 seconds are those of LeNet-5. The first table of this
# chapter shows, for its 268 neurons, how many passes all orders take, and how many all coalitions
# take. No computer makes so many. So the seconds bought an estimate, or another quantity, and the
# paper does not say which.
# ```
#
# **4. Code.** Write `my_orders(n)`: how many orders of `n` neurons there are, and how many
# coalitions. The cell says whether it is right.

# %%
my_orders = None  # your function of a count, giving (orders, coalitions)

# %% tags=["hide-input"]
from itertools import permutations, product

from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def counted(n):
        return len(list(permutations(range(n)))), len(list(product((0, 1), repeat=n)))

    check(answer, counted, (3,), (6,))


is_right(my_orders)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_orders(n):
#     return math.factorial(n), 2 ** n
#
# is_right(my_orders)
# ~~~
#
# The definition goes through orders, but the worth depends on the coalition alone: 2 to the n is
# enough.
# ```
