# %% [markdown]
# # What does a test example cost?
#
# **The claim** (DeepSensor IV.H, Table VI). DeepSensor needs less time than each other
# {term}`fuzzer` to generate 100 test examples: with LeNet-5 101 s, against 102 to 223 s. It says that
# this holds especially with larger networks.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 20  # benign inputs, each with one generated example; the paper has 100
iterations = 20  # of every fuzzer
population = 20  # particles to an input; the second paper on DeepSensor has 100
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import math

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots, tables
from dnnbook.display.campaign_plots import fuzzer_bars, seconds_against_passes
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.records import records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import always_most, table_of
from dnnbook.words import span
from dnnlib import fuzzing

plots.style()
run = Experiment("deepsensor_sensitivity/time", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, budget="none", inputs=inputs, iterations=iterations,
                 population=population, others=others, references=references, held_out=held_out)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-time")

# %% tags=["hide-input", "statements"]
from dnnbook.published.printed import printed

RIVALS = ["deepxplore", "dlfuzz", "deephunter"]
every = records.frame("deepsensor_sensitivity/time")
costs = at_best(every[every["fuzzer"].notna()], "dataset", "model")
seconds, passes, price = (table_of(costs, [*RIVALS, "paper", "released"], quantity=quantity)
                          for quantity in ("seconds", "passes", "passes_per_error"))
theirs = printed({claim.id: claim for claim in published.claims()}["deepsensor-sensitivity-time"])["value"]
slower, cheap = seconds["paper"] / seconds[RIVALS].max(axis=1), price.mean()
sized = costs["population"].dropna().unique()
says((f"**The answer.** With DeepSensor, the most: the swarm takes {span(slower, 1)} times as many seconds as the slowest rival. In the paper "
      "it is the fastest.", slower.min() > 1.5 and (theirs > 1).all()),
     (f"It has {100} particles, as in the second paper. The first names no number, and the time grows with it.", {*sized} == {100}))

# %% tags=["hide-input", "statements"]
says(("The released swarm, which has a single particle, is the fastest of the papers' fuzzers with every random "
      "seed. So Table VI may come from such a program.", always_most(-seconds.drop(columns="paper"), "released")),
     (f"For an error, DLFuzz needs {cheap.min():.0f} passes on average, and the swarm of the text {cheap['paper']:.0f}.",
      cheap.idxmin() == "dlfuzz"))

# %% [markdown]
# ## In one picture
#
# The scale is logarithmic: each horizontal line stands for ten times as much as the one below. Look
# at where DeepSensor stands with the swarm that the paper describes, and where it stands with the
# single {term}`particle` of the released code.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Seconds for 100 inputs of each fuzzer, from the records. Each rival in its best setting: mean over the random seeds; lines give the range. They differ from machine to machine; compare within the figure.", "name": "fig-deepsensor-time-records"}}
kept = run.recorded()
figure = plots.nothing() if kept.empty else fuzzer_bars(
    at_best(kept, "dataset", "model").query("quantity == 'seconds'"), group=["dataset", "model"],
    ylabel="seconds for 100 inputs")
if not kept.empty:
    figure.axes[0].set_yscale("log")
run.show(recorded=True)

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]
print(f"{len(x)} inputs of {data}")

# %% [markdown]
# **What you will learn.** Why seconds compare programs, while passes through the network compare
# methods; and what the population of a {term}`swarm` costs.
#
# ## Counting passes
#
# A **pass** is one image sent through one network; a gradient counts as two more. This is what each
# example costs, in $T$ iterations:
#
# | fuzzer | passes | where they go |
# |---|---|---|
# | DeepSensor, population $P$ | $T (P + 1)$ | every particle is scored, the best one is judged |
# | DeepXplore, $M$ networks | $4 M T$ | a gradient, and a look at the new image, in each network |
# | DLFuzz | $4 T$ | the same in one network |
# | DeepHunter | $T$ | one mutant; and once, the images that give the boundaries |
#
# The released {term}`reading` of the swarm takes $3 T$ passes: for a particle, for its input beside
# it, and for the judging. Two inputs and three iterations of a swarm with five particles make
# $2 \cdot 3 \cdot (5 + 1)$ passes. Before that, one pass finds the layers, and one pass for each
# input tells what it activates:

# %% tags=["nbval-check-output"]
few = fuzzing.Swarm.paper(population=5).run(
    model, x[:2], labels[:2], iterations=3, generator=torch.Generator().manual_seed(seed))
print("passes:", few.passes, "=", 2 * 3 * (5 + 1), "+", few.passes - 2 * 3 * (5 + 1))

# %% [markdown]
# ## Seconds and passes
#
# Every fuzzer runs twice, and the faster run counts. All inputs go through the network together, while the
# original programs take one after another. The rivals run in the setting of the `paper` and in the `best` of
# their authors' settings. That is [chosen by test errors](02_test_errors) before the clock starts. `released`
# is the authors' swarm, which has a single particle.

# %%
known = studies.known_images(dataset, data, chosen, references)
rivals = studies.rivals(oracles, known, best=(data.images, data.labels),
                        count=held_out)
fuzzers = {FuzzerKey("deepsensor", "paper"): fuzzing.Swarm.paper(population=population),
           FuzzerKey("deepsensor", "released"): fuzzing.Swarm.released(),
           **studies.settled(rivals, model, x, iterations=iterations),
           FuzzerKey("noise"): fuzzing.fuzzer("noise")}
measured = {key: records.timed(lambda: fuzzer.run(
    model, x, labels, iterations=iterations, generator=torch.Generator().manual_seed(seed)))
    for key, fuzzer in fuzzers.items()}

# %%
cost = pd.DataFrame({key: outcomes.per_hundred(campaign, seconds)
                     for key, (seconds, campaign) in measured.items()}).T
cost["passes_per_error"] = cost["passes"] / cost["test_errors"].where(cost["test_errors"] > 0)
for key, line in cost.iterrows():
    run.add(line.to_dict(), **key.columns)

# %% tags=["hide-input"]
tables.headed(cost.drop(columns="seconds").sort_values("passes").map(
    lambda value: "-" if math.isnan(value) else f"{value:.1f}"))

# %% [markdown]
# The table is for 100 inputs. Each of them gives an image in every iteration, and the table counts the
# {term}`test errors <test error>` among all of these.
# With fewer inputs it is scaled up, including DeepHunter's images for the boundaries. Seconds
# differ from machine to machine, so those of this run are drawn, and only those of the records printed. On the
# broken line, a pass takes as long as in DeepSensor:

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Seconds and passes for 100 inputs of each fuzzer of the run above. On the broken line a pass takes the time that it takes in the swarm.", "name": "fig-deepsensor-time"}}
figure, axis = plt.subplots(figsize=(5.5, 3.6))
seconds_against_passes(axis, cost, alike=FuzzerKey("deepsensor", "paper"))
axis.legend(fontsize=8)
run.show()

# %% [markdown]
# ## What the claim asks for
#
# The claim asks for the baselines' seconds as multiples of DeepSensor's. They are above 1 if
# DeepSensor is faster. We compute the same for passes, which do not depend on the program.

# %%
for key in (FuzzerKey("deepsensor", "paper"), FuzzerKey("deepsensor", "released")):
    for rival in rivals:
        run.add({"times_deepsensor": cost["seconds"][rival] / cost["seconds"][key],
                 "times_passes": cost["passes"][rival] / cost["passes"][key]},
                swarm=key.reading, baseline=rival.fuzzer, setting=rival.setting)

# %% tags=["hide-input"]
run.save(data, device=device)
tables.wide(run.live, "quantity == 'times_passes'", index=["swarm", "setting"], columns="baseline", digits=3)

# %% [markdown]
# ## Table VI, beside the paper's
#
# Seconds for 100 examples, one for each input: the paper's were measured on a Tesla V100, and ours on a processor, mean
# [least, greatest] over the random seeds. Compare within a column only.

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(every)}.", f"The rivals ran {of_rivals(costs[costs['fuzzer'].isin(RIVALS)])}.")

# %% tags=["hide-input"]
table_6 = published.table("deepsensor_sensitivity", 6)
tables.beside(table_6, run.recorded("quantity == 'seconds' and (swarm == 'paper' or setting == 'paper')"),
              on=["dataset", "model", "fuzzer"], settings=run.settings)

# %% [markdown]
# What can be compared are multiples of DeepSensor's own numbers. Here they are for the paper's
# seconds, our seconds, and our passes, for the swarm that the paper describes:

# %% tags=["hide-input"]
printed = table_6.astype({"value": float}).assign(quantity="paper", baseline=table_6["fuzzer"])
swarm = printed["value"].where(printed["fuzzer"] == "deepsensor")
printed["value"] /= swarm.groupby([printed["dataset"], printed["model"]]).transform("max")
printed["value"] = printed["value"].round(2)
ours = run.recorded("swarm == 'paper' and quantity in ('times_deepsensor', 'times_passes')")
tables.wide(pd.concat([printed, ours]), "baseline != 'deepsensor'", digits=3,
            index=["quantity", "setting", "dataset", "model"], columns="baseline").rename_axis(
    index={"quantity": "numbers"})

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** In each iteration a swarm sends as many images through the network as it has
# particles. {term}`DeepHunter` sends one image, and {term}`DLFuzz` computes one gradient. So counted
# in passes, a swarm of this size cannot be the cheapest of them. Seconds also depend on the program: the
# original programs of {term}`DeepXplore` and DLFuzz build a new graph of operations for each input.
# The column *passes for an error* is the fairer price. But an error far from its input is cheap, and [the
# chapter on test errors](02_test_errors) says how far away these errors are.

# %% tags=["hide-input", "statements"]
more = (passes["paper"] / passes[RIVALS].max(axis=1)).mean()
says((f"The swarm of the text makes {more:.1f} times as many passes as the rival that makes the most.", more > 1))

# %% [markdown]
# ## Exercises
#
# **1. Think.** The paper's 101 s for 100 examples in LeNet-5 are 51 ms for each of 20 iterations.
# Suppose that a V100 takes a millisecond for a batch of 100 digits. What may the rest be?
#
# ```{admonition} Solution
# :class: dropdown
# It may be overhead: one example after another, a call to the framework for each layer's activations,
# copies between graphics card and processor. Where overhead dominates, time counts calls, not passes, and
# a population that goes through the network in one batch looks free.
# ```
#
# **2. Think.** Name two ways to make the swarm cheaper without changing what it finds.
#
# ```{admonition} Solution
# :class: dropdown
# Compute only once what the inputs activate, not for each particle (the engine does this). Keep the
# classes from the passes that score the particles: judging the best one of an iteration then needs
# no pass of its own.
# ```
#
# **3. Code.** Write `my_passes(population, iterations)`: the number of passes through the network
# for one input, if each particle is scored once in each iteration, and the input itself goes
# through once. The cell says whether it is right.

# %%
my_passes = None  # your function of two counts

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda population, iterations: population * iterations + 1, (100, 20), (1, 5))


is_right(my_passes)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_passes(population, iterations):
#     return iterations * population + 1
#
# is_right(my_passes)
# ~~~
#
# To score a population of 100 takes a hundred times as many passes as to score one particle, even if
# a batch hides it.
# ```
