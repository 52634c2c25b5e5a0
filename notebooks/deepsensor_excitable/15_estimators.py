# %% [markdown]
# # Does it matter how the swarm estimates Shapley values?
#
# **The question.** The paper does not say how its {term}`swarm` gets the {term}`Shapley values <Shapley value>` of all
# neurons (DeepSensor II, Section 4). This book takes a cheap estimate by a few gradients, part of whose error stays
# ([the first chapter](00_players)). Does the swarm find other errors if it is guided by random orders, which are
# right on average?

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1"  # lenet1, whose 42 neurons make permutations affordable; lenet4, lenet5
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 8  # benign inputs to start from
iterations = 10  # of every swarm; the paper has 20
population = 5  # particles to an input; the second paper on DeepSensor has 100
permutations = 4  # orders of the last guide, an even number; ten in the records
judged = 10  # orders of the values by which all swarms are judged; 40 in the records
near = 8.0  # a bound on the L2 distance, within which the swarms are compared again
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace

import pandas as pd
import torch

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.comparisons import sizes
from dnnbook.display.tables import wide
from dnnbook.records import records
from dnnbook.records.intervals import interval
from dnnbook.studies import outcomes
from dnnbook.studies.findings.deepsensor import of_estimators, table_of
from dnnbook.words import rounded_down, span
from dnnlib import fuzzing
from dnnlib.fuzzing import Swarm
from dnnlib.neurons.excitable import ExcitableNeurons

plots.style()
run = Experiment("deepsensor_excitable/estimators", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, inputs=inputs, iterations=iterations, population=population,
                 permutations=permutations, judged=judged, near=near)

# %% tags=["hide-input", "statements"]
rows = records.existing("deepsensor_excitable/estimators")
GUIDES = ["no search", "1 gradient", "4 gradients", "16 gradients", "orders"]
inside = table_of(rows, GUIDES, quantity="error_rate", budget="near")
sent = table_of(rows, GUIDES, quantity="passes", budget="near").mean()
ahead = inside.sub(inside["orders"], axis=0)[["4 gradients", "16 gradients"]]
low, high = interval(ahead["4 gradients"])
says((f"**The answer.** Orders, the dearest estimate, do not find the most errors here. Within a bound they have "
      f"{inside['orders'].mean():.0f} % errors, and four gradients {inside['4 gradients'].mean():.0f} %.",
      ahead.min(axis=None) > 0),
     (f"Four and sixteen gradients find more than the orders with every random seed, but the interval of the mean lead of four "
      f"is {low:.0f} to {high:.0f} points" + (": more than chance." if low > 0 else ", so it may be chance."),
      ahead.min(axis=None) > 0),
     (f"Yet the orders take {sent['orders'] / sent['4 gradients']:.0f} times the passes of four gradients.",
      sent["orders"] > 10 * sent["4 gradients"]))

# %% [markdown]
# ## In one picture
#
# Each line is a swarm with another guide, from the cheapest estimate to the dearest. The dot is the share of its
# examples that are {term}`test errors <test error>`. *No search* is the random start that nothing moves. The lines
# show the range over the random seeds.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Test errors of the swarm by the estimate that guides it, without a bound and within one, from the records. Mean over the random seeds; lines give the range.", "name": "fig-estimators-records"}}
BOUNDS = {"none": "without a bound", "near": f"within L2 = {near:g}"}


def errors_by_guide(rows: pd.DataFrame) -> None:
    """Percent of the examples of all iterations that are errors, a line for each guide."""
    rates = rows[rows["quantity"] == "error_rate"]
    plots.dots(rates.assign(bound=rates["budget"].map(BOUNDS)), row="guide", panel=["bound"],
               xlabel="test errors (%)")


kept = run.recorded()
plots.nothing() if kept.empty else errors_by_guide(kept)
run.show(recorded=True)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

neurons, orders = 42, 10
passes = {"four gradients": 4 * 3, "ten orders": orders * (neurons - 1) + 2}
quiz("A gradient counts as three passes. Of 42 neurons, what takes more passes for one image: four gradients, or ten "
     "orders in which the neurons join?",
     {name: count == max(passes.values()) for name, count in passes.items()},
     f"Four gradients are {passes['four gradients']} passes. In an order, each neuron that joins takes a pass: "
     f"{passes['ten orders']} in all.")

# %% [markdown]
# **What you will learn.** How to find out whether a search depends on the estimate that it maximises, and what the
# estimates cost.

# %% [markdown]
# ## The guides
#
# - *1, 4 or 16 gradients*: the book's estimate. All neurons are turned up together from 0 to 1, and the gradient of
#   the loss is taken at a few places on the way. More places make the integral exact, but it is the integral along
#   the diagonal only.
# - *orders*: neurons join one by one, in a random order, and each gets what the loss changes when it joins. The mean
#   over enough orders is the Shapley value. An image takes about as many passes as there are neurons, for each order.
# - *no search*: the fitness is the same for all images.
#
# Everything else is the same: the inputs, the start, and all random numbers.

# %%
text = Swarm.paper(population=population)
guides = {f"{points} gradient{'s' * (points > 1)}": ExcitableNeurons(points=points) for points in (1, 4, 16)}
guides["orders"] = ExcitableNeurons(permutations=permutations, seed=seed)
guides["no search"] = fuzzing.Constant()
swarms = {name: replace(text, fitness=fitness) for name, fitness in guides.items()}

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]
print(data)

# %%
found = studies.at_bounds(model, x, labels, swarms, {"none": None, "near": near},
                          iterations=iterations, seed=seed)

# %% [markdown]
# ## Test errors, and what was reached
#
# Every swarm raises its own estimate. So that none is its own judge, we judge the last examples of all swarms
# by other, and more, orders. The table has the test errors among the examples of all iterations, in percent.
# It also has the share of neurons that the last examples make {term}`excitable <excitable neuron>`, in
# percent, by that judge; the median
# {term}`L2 distance` of the last examples; and the {term}`passes <pass>` through the network.

# %%
with torch.no_grad():
    judge = ExcitableNeurons(permutations=judged, seed=seed + 1)(model, x, labels)
for (budget, guide), campaign in found.items():
    wrong = campaign.predicted != campaign.labels[campaign.origin]  # (iterations, inputs)
    run.add({"error_rate": 100 * wrong.double().mean(),
             "last_error_rate": 100 * wrong[-1].double().mean(),
             "reached": outcomes.reached(campaign, judge), "l2": campaign.l2[-1].median(),
             "passes": campaign.passes}, guide=guide, budget=budget)

# %% tags=["hide-input"]
run.save(data, device=device)
QUANTITIES = ["error_rate", "last_error_rate", "reached", "l2", "passes"]
wide(run.live, index=["budget", "guide"], columns="quantity", order={"quantity": QUANTITIES})

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Test errors of the swarm by the estimate that guides it, in the run above.", "name": "fig-estimators"}}
errors_by_guide(run.live)
run.show()

# %% [markdown]
# ## Over all records
#
# Means over the random seeds:

# %% tags=["hide-input"]
wide(run.recorded(), index=["dataset", "model", "budget", "guide"], columns="quantity",
     order={"quantity": QUANTITIES})

# %% [markdown]
# ## What it means
#
# Compare each guide with *orders*, on the same inputs and with the same random seeds.

# %% tags=["hide-input", "statements"]
miss = of_estimators(records.frame("deepsensor_excitable/players", estimator="diagonal"))["error"]
rough = miss["permutation", rows["permutations"].max()]
says(f"Our records cover {sizes(rows)}. *Orders* are {rows['permutations'].max():.0f}; the judge has "
     f"{rows['judged'].max():.0f} others.")
says((f"So few orders are no exact values either. In [the first chapter](00_players), and in a network of this kind, they "
      f"miss the true values by {100 * rough:.0f} % of their length, and four gradients by {100 * miss['diagonal', 4]:.0f} %.",
      rough < miss["diagonal", 4]),
     (f"Fifty orders miss them by {100 * miss['permutation', 50]:.0f} %; we have not guided a swarm by so many.",
      miss["permutation", 50] < rough))

# %% tags=["hide-input", "statements"]
more = ["4 gradients", "16 gradients"]
reach, far = (table_of(rows, GUIDES, quantity="reached", budget=budget).mean() for budget in ("near", "none"))
says((f"Within the bound and on average, the judge sees no loss with four gradients: they make "
      f"{reach['4 gradients']:.1f} % of the neurons excitable, and orders {reach['orders']:.1f} %.",
      reach["4 gradients"] >= reach["orders"] > reach["no search"]),
     f"Without a bound it is {far['4 gradients']:.1f} % against {far['orders']:.1f} %.",
     (f"One gradient is too few: with every seed it finds fewer errors than more gradients do, on average {inside['1 gradient'].mean():.0f} % "
      f"against {span(inside[more].mean())} %. The start alone has {inside['no search'].mean():.0f} %.",
      (inside["1 gradient"] < inside[more].min(axis=1)).all()),
     "We have not tested why gradients lead to more errors than orders do.")

# %% tags=["hide-input", "statements"]
free = table_of(rows, GUIDES, quantity="error_rate", budget="none").mean()
says((f"Without a bound, the guide hardly matters: the random start has {free['no search']:.0f} % errors "
      f"already, and every swarm at least {rounded_down(free.drop('no search').min())} %.", free.min() > 80))

# %% [markdown]
# ## Exercises
#
# **1. Think.** Why does the judge use other orders than the guide?
#
# ```{admonition} Solution
# :class: dropdown
# A search finds images that its own estimate likes. Some of them are liked only because the estimate is wrong there.
# If the judge had the same orders, it would make the same mistakes, and would take them for a success.
# ```
#
# **2. Try.** Give the guide two orders and then twenty. Does the judge see a difference in what is reached?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for orders in (2, 20):
#     swarm = replace(text, fitness=ExcitableNeurons(permutations=orders, seed=seed),
#                     budget=fuzzing.Budget(l2=near))
#     examples = swarm.run(model, x, labels, iterations=iterations, generator=torch.Generator().manual_seed(seed))
#     print(orders, outcomes.reached(examples, judge))
# ~~~
#
# Two orders are one order and its reverse, so the values are rough. If twenty orders hardly reach more, then the
# swarm does not need exact values.
# ```
#
# **3. Think.** An estimate is wrong by the same factor for every image. Does that change what the swarm finds?
#
# ```{admonition} Solution
# :class: dropdown
# It can. The swarm does not add up the values, but counts those above 0.5 nats. If all values double, more neurons
# are above the threshold, and the images may come in another order.
# ```
#
# **4. Code.** Write `my_passes(neurons, orders)`: the passes for one image. An order takes a pass for each
# neuron but the last, and the two ends, no neuron and all neurons, are computed once. The cell says whether
# it is right.

# %%
my_passes = None  # your function of two counts

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda neurons, orders: orders * (neurons - 1) + 2, (42, 10), (1, 5), (3, 1))


is_right(my_passes)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_passes(neurons, orders):
#     return orders * (neurons - 1) + 2
#
# is_right(my_passes)
# ~~~
#
# With four gradients, the passes do not depend on the number of neurons. So the larger the network, the larger is the
# advantage of gradients.
# ```
