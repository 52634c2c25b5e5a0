# %% [markdown]
# # Do excitable neurons find more test errors?
#
# **The claim** (DeepSensor II, 6.1.1, Tables 1 and 3). A {term}`swarm` that makes as many neurons
# as possible {term}`excitable <excitable neuron>` finds about 1.2 times as many
# {term}`test errors <test error>` as {term}`DeepXplore`, {term}`DLFuzz` and {term}`DeepHunter`. They
# are of more {term}`error categories <error category>`. They are near their inputs and resemble them
# (Fig. 9).

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 6  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 5  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value: half the engine's 4, for half the passes
near = 1.0  # a bound on the L2 distance, that of the first paper; 2 on ImageNet
distances = "4 8"  # other bounds on the L2 distance
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
keep = False  # take the swarms, and rivals as in the paper, from this cell's record; run the rest
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace

import pandas as pd
import torch

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load
from dnnbook.display import plots
from dnnbook.display.campaign_plots import errors_against_distance
from dnnbook.display.comparisons import SIZES, at_best, of_rivals, rows_kept
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import (
    lead_of,
    mean_of,
    printed_rates,
    same_numbers,
    seeds_of,
    sides_of,
    table_of,
)
from dnnbook.words import listed, networks, rounded_down, rounded_up, span
from dnnlib import fuzzing, inference

plots.style()
run = Experiment("deepsensor_excitable/test_errors", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed, inputs=inputs, iterations=iterations, population=population, points=points, near=near,
                 distances=distances, others=others, references=references, held_out=held_out, drawn={"keep": keep})

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-errors")

# %% tags=["hide-input", "statements"]
CELLS = ["dataset", "model"]
rows = at_best(records.existing("deepsensor_excitable/test_errors"), *CELLS)
rates = rows[rows["quantity"] == "error_rate"]
small, gradient = (evidence.spread(seeds_of(rates, *CELLS, who=who, budget="near"))["mean"] for who in ("excitable", "dlfuzz"))
over, over_8 = (evidence.spread(seeds_of(rows, *CELLS, "baseline", who="excitable", quantity="errors_over", budget=budget),
                                "ratio")["mean"] for budget in ("none", "8"))
average, hardest = (over.xs(name, level="baseline") for name in ("mean", "dlfuzz"))
fewer, fewer_8 = (networks(ratios[ratios < 1].index) for ratios in (hardest, over_8.xs("mean", level="baseline")))
says(("**The answer.** Without a bound on the distance, the swarm finds more errors than the three rivals do on average"
      f"{f', but with {fewer} fewer than DLFuzz' if fewer else ''}.", average.min() > 1),
     (f"Within a distance of {8} it finds fewer than this average with {fewer_8}. Near the inputs, it finds far fewer than "
      "DLFuzz.", bool(fewer_8) and (gradient > 2 * small).all()))

# %% tags=["hide-input", "statements"]
free, unguided = (mean_of(rates, *CELLS, who=who, budget="none")["mnist"] for who in ("excitable", "constant"))
first, second = (published.table(paper, number).query("fuzzer == 'deepsensor'")
                 for paper, number in (("deepsensor_sensitivity", 2), ("deepsensor_excitable", 3)))
says((f"Without a bound on the distance, {span(unguided)} % of random images are errors too, on MNIST.",
      unguided.min() > 85),
     (f"Held within the first paper's bound, the excitable swarm makes at most {rounded_up(small.max(), 1)} % errors; DLFuzz, which "
      f"follows a gradient, makes at least {rounded_down(gradient.min())} %.", (gradient > 2 * small).all()),
     ("The paper's own counts cannot tell: they are those that its first paper prints for another fitness.",
      same_numbers(second, first)))

# %% [markdown]
# ## In one picture
#
# Each network has two panels. In the first, look at how far from its input an example must be before the swarm finds as
# many errors as the paper printed (broken line). In the second, look for a distance at which the swarm
# guided by excitable neurons is ahead of the swarms that look at less, or at nothing.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the examples that are test errors, against the bound on their L2 distance, from the records; mean over the random seeds. Two panels for each network: the fuzzers, then the swarm with six fitnesses. Lines join the bounds that were run and say nothing of those between: LeNet-4 was not run at 4. Broken line: DeepSensor's share in Table 3.", "name": "fig-excitable-distance-records"}}
EXCITABLE = FuzzerKey("deepsensor", "excitable")
PANELS = [[EXCITABLE, *(FuzzerKey(rival, setting=setting) for setting in ("paper", "best")
                        for rival in ("deepxplore", "dlfuzz", "deephunter")), FuzzerKey("noise")],
          [EXCITABLE, *(FuzzerKey("deepsensor", name) for name in (
              "excitable_scaled", "sensitive", "constant", "random", "sensitive_same_passes"))]]
table_3 = published.table("deepsensor_excitable", 3)
printed = table_3.query("quantity == 'test_errors'").pivot(index="model", columns="fuzzer", values="value")


def goal(name: str) -> float:
    """DeepSensor's share of errors that Table 3 prints for a network, or for LeNet-5, in %."""
    return printed["deepsensor"].get(name, printed.loc["lenet5", "deepsensor"]) / 200


plotted = run.recorded()
plots.nothing() if plotted.empty else errors_against_distance(plotted, PANELS, goal=goal)
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to find out whether a more expensive {term}`fitness` guides a swarm any
# better: compare it with a cheaper one, at the same distance and for the same number of
# {term}`passes <pass>`.

# %% [markdown]
# ## The same numbers
#
# This paper has another method, larger swarms and other hardware than
# [the first one](../deepsensor_sensitivity/02_test_errors). How many numbers of its Table 3 differ
# from the first one's Table II?

# %% tags=["hide-input", "nbval-check-output"]
both = table_3.merge(published.table("deepsensor_sensitivity", 2), validate="1:1",
                     on=["dataset", "model", "fuzzer", "quantity"], suffixes=("", " before"))
same = both["value"] == both["value before"]
of_deepsensor = both["fuzzer"] == "deepsensor"
print(f"{same.sum()} of {len(table_3)} are the same, "
      f"{(same & of_deepsensor).sum()} of {of_deepsensor.sum()} for DeepSensor")

# %% [markdown]
# So Table 3 cannot say what excitable neurons change. Nor does it give the factor of the text. In
# the printed table, DeepSensor's test errors over the mean of the three others are:

# %% tags=["hide-input", "nbval-check-output"]
print(pd.Series({name: outcomes.over(line["deepsensor"], line.drop("deepsensor"))["mean"]
                 for name, line in printed.iterrows()}).round(2).to_string())

# %% [markdown]
# ## The network and its inputs
#
# Test images that the network classifies correctly, drawn at random.

# %%
data = load(dataset)
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
accuracy = inference.accuracy(model, data.images, data.labels)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]
print(data)
print(f"accuracy {accuracy:.1%}; {len(x)} inputs, {len(x) * iterations} examples a fuzzer")

# %% [markdown]
# ## What guides the swarm
#
# The swarm is the same as in [the first paper](../deepsensor_sensitivity/02_test_errors). Only its
# fitness is new:
#
# $$\text{Fitness}(\hat x) = \frac{\text{number of neurons with } \psi_n(\hat x) > \lambda}
# {\text{number of neurons}} \quad (6),$$
#
# where $\psi_n$ is the {term}`Shapley value` of neuron $n$ in the game that shares out the change
# of loss from the input to $\hat x$. The {term}`particles <particle>` move as in the first paper.
# Its equations for inertia, velocity and position come back under new numbers:
#
# $$\omega^g = (\omega_\text{initial} - \omega_\text{end})\,\frac{G_k - g}{G_k} + \omega_\text{end}
# \quad (7)$$
#
# $$v \leftarrow \omega^g v + c_1 r_1\,(p_\text{best} - x_p) + c_2 r_2\,(g_\text{best} - x_p)
# \quad (8), \qquad x_p \leftarrow x_p + v \quad (9).$$
#
# ```{figure} ../../book/assets/deepsensor_workflow.svg
# :alt: From top to bottom. A benign input. Small perturbations give 100 intermediate examples, the particles. Each goes into the network, where every neuron gets a Shapley value, its part in the change of the loss. Neurons with a value above lambda are excitable, and their share among all neurons is the fitness. An arrow leads back to the perturbations, as the swarm moves towards the best so far. When the share is above epsilon, or after the last iteration, the best of all particles is the test example.
# :width: 416px
# :name: fig-excitable-workflow
#
# How DeepSensor makes a test example from a benign input, drawn after Fig. 2 and Section 4 of the
# paper.
# ```
#
# Other fitnesses run beside this one:
#
# - `excitable_scaled`: $\psi$ in units of its mean absolute value, not in {term}`nats <nat>`;
# - `sensitive`: the first paper's fitness; and `sensitive_same_passes`, the same fitness with as
#   many particles as the passes of the excitable swarm pay for. A Shapley value takes `points`
#   gradients of three passes each, while a sensitivity takes one pass;
# - `constant` and `random`: what a swarm does when it is not guided at all.
#
# The rivals run in the setting of the `paper`, and in the `best` of the settings that their authors
# released, which is chosen on `held_out` other inputs ([why, and
# which](../deepsensor_sensitivity/02_test_errors)).

# %%
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)
left = torch.ones(len(data), dtype=torch.bool).index_fill(0, chosen, False)
known = studies.known_images(dataset, data, chosen, references)

# %%
swarm = fuzzing.Swarm.paper(population=population)
swarms = studies.swarms(swarm, "excitable excitable_scaled sensitive constant random",
                        points=points, seed=seed)
swarms[FuzzerKey("deepsensor", "sensitive_same_passes")] = replace(swarm, population=3 * points * population)
baselines = studies.rivals(oracles, known,
                           best=(data.images[left], data.labels[left]), count=held_out)
fuzzers = swarms | baselines | {FuzzerKey("noise"): fuzzing.Noise(scale=1.0)}

# %% [markdown]
# All fuzzers run at all bounds on the {term}`L2 distance`. The paper names no bound (`none`);
# `near` is the bound of the first paper.

# %% tags=["hide-input"]
cell = {name: value for name, value in run.parameters.items() if name != "held_out"}
kept = None
if keep:
    before, = records.find(run.name, **cell)
    outcomes.same_network(before.rows, 100 * accuracy)
    kept = outcomes.untidy(run.recorded("fuzzer.notna() and fuzzer != 'noise'", **cell))
    kept = kept[kept.index.isin(list(fuzzers), level="key")]
    run.add({"rows_kept": len(kept)}, commit=before.provenance["commit"])
running = {key: each for key, each in fuzzers.items()
           if kept is None or key not in kept.index.get_level_values("key")}

# %%
bounds = studies.bounds(distances, near=near)
found = studies.at_bounds(model, x, labels, running, bounds, iterations=iterations, seed=seed)
measured = pd.concat([kept, outcomes.table(found, outcomes.every_example, near=near)])
run.add(outcomes.tidy(measured, bounds))

# %% tags=["hide-input"]
for budget, bound in bounds.items():
    run.add(studies.choices(baselines, model, x, iterations=iterations, bound=bound), budget=budget, bound=bound)
SHOWN = ["error_rate", "categories_per_seed", "l2", "share_near", "passes", "errors_per_1000_passes"]
headed(measured.loc["none", SHOWN].round(2))

# %% [markdown]
# Errors are in percent of the examples of all iterations, and distances are means of L2. *Share of
# errors near* is the share of the errors within `near`. Folded: what all fuzzers find within that bound, and the
# errors of this run against the distance. The figure from the records stands at the top.

# %% tags=["hide-input", "hide-output"]
headed(measured.loc["near", ["error_rate", "categories_per_seed", "passes", "errors_per_1000_passes"]].round(2))

# %% tags=["hide-input", "hide-output"] mystnb={"figure": {"caption": "Share of the examples that are test errors, against the bound on their L2 distance, for the run above. Broken line: DeepSensor's share in Table 3. Left: the fuzzers; right: the swarm with six fitnesses.", "name": "fig-excitable-distance"}}
errors_against_distance(run.live, PANELS, goal=goal)
run.show()

# %% [markdown]
# ## What excitable neurons add
#
# By how many points of the error rate is the swarm guided by excitable neurons ahead of each other
# swarm, from the same inputs and within the same bound? The sensitive swarm with as many passes is
# the comparison at the same cost.

# %%
for budget in bounds:
    rate = measured["error_rate"][budget]
    run.add({f"over_{key.reading}": rate[EXCITABLE] - rate[key] for key in swarms
             if key != EXCITABLE}, fuzzer="deepsensor", budget=budget, bound=bounds[budget])

# %% tags=["hide-input"]
AHEAD = "quantity.str.startswith('over_')"
wide(run.live, AHEAD, index="quantity", columns="budget")

# %% [markdown]
# ## What the claims ask for
#
# The table divides DeepSensor's errors and categories by those of each baseline, and by the mean of
# the three. A baseline that finds none counts as if it had found one. It is folded, because this small run decides
# nothing; the verdict has the same ratios from the records.

# %%
run.add(row for quantity, ratio in (("test_errors", "errors_over"),
                                    ("error_categories", "categories_over"))
        for row in outcomes.ratios(measured[quantity], swarms, list(baselines), ratio, bounds))

# %% tags=["hide-input", "hide-output"]
run.add({"parameters": sum(p.numel() for p in model.parameters()), "accuracy": 100 * accuracy})
run.save(data, device=device)
wide(run.live, "budget == 'none' and baseline.notna()", index=["quantity", "swarm", "setting"],
     columns="baseline", digits=2)

# %% [markdown]
# ## Table 1, beside the paper's
#
# Parameters, and accuracy in percent of the test images. MobileNet has width 0.75 and is measured on a photograph of
# each class. Many of these were among its training images, so its accuracy is too high. VGG16's CIFAR-10 is a JPEG
# copy. ResNet-20 and MobileNet are one network each, which all seeds share.

# %% tags=["hide-input", "statements"]
of_neurons = [published.table(paper, 1).query("quantity == 'neurons'")
              for paper in ("deepsensor_excitable", "deepsensor_sensitivity")]
says(("For the image networks, the paper prints the same numbers of neurons as the first paper, and [our count "
      "agrees with them](../deepsensor_sensitivity/00_networks).", same_numbers(*of_neurons)))

# %% tags=["hide-input"]
table_1 = published.table("deepsensor_excitable", 1)
SIZE = "quantity in ('parameters', 'accuracy')"
run.beside(table_1.query(SIZE + " and dataset != 'vctk'"), SIZE, on=["dataset", "model", "quantity"], digits=1)

# %% [markdown]
# ## Table 3, beside the paper's
#
# Without a bound: test errors in percent of all examples, and error categories for each input; mean
# [least, greatest] over the random seeds. The rivals run in the paper's setting. DeepHunter's neuron boundaries
# come from training images, and with MobileNet from other photographs. Folded are the sizes of the runs in our
# records, and, at the end, the rivals at their best.

# %% tags=["hide-input", "statements"]
alone = rows.groupby(CELLS)["others"].agg(lambda names: (names == "").all())
says((f"With {networks(alone.index[alone])}, DeepXplore has no other networks to compare with.", 0 < alone.sum() < len(alone)))

# %% tags=["hide-input", "hide-output"]
runs = run.recorded().groupby(["dataset", "model"], sort=False)
headed(pd.DataFrame({word: runs[name].nunique() if name == "seed" else runs[name].min() for name, word in SIZES.items()}))

# %% tags=["hide-input"]
TEXT = "budget == 'none' and (swarm == 'excitable' or setting == 'paper') and quantity == "
ON = ["dataset", "model", "fuzzer", "quantity"]
errors = table_3[table_3["quantity"] == "test_errors"]
run.beside(errors.assign(quantity="error_rate", value=errors["value"] / 200), TEXT + "'error_rate'",
           on=ON, digits=1)

# %% tags=["hide-input"]
run.beside(table_3.query("quantity == 'categories_per_seed'"), TEXT + "'categories_per_seed'", on=ON)

# %% tags=["hide-input", "hide-output"]
run.beside(errors.query("fuzzer != 'deepsensor'").assign(
    quantity="error_rate", value=lambda table: table["value"] / 200),
    "budget == 'none' and setting == 'best' and quantity == 'error_rate'", on=ON, digits=1)

# %% [markdown]
# ## Excitable against sensitive, over all records
#
# The points by which excitable neurons are ahead, and the errors found for 1,000 passes, as means
# over the random seeds.

# %% tags=["hide-input"]
ours = run.recorded().sort_values("bound", kind="stable")  # no bound comes last
display(wide(ours, AHEAD, index=["dataset", "model", "quantity"], columns="budget"))
wide(ours, "quantity == 'errors_per_1000_passes'",
     index=["dataset", "model", "fuzzer", "swarm", "setting"], columns="budget")

# %% tags=["hide-input", "statements"]
guided, paid, scaled = (evidence.spread(lead_of(rates, *pair, *CELLS, budget="8")).loc["mnist"] for pair in (
    ("excitable", "constant"), ("excitable", "sensitive_same_passes"), ("excitable_scaled", "excitable")))
passes = table_of(rows[rows["dataset"] == "mnist"], ["sensitive_same_passes", "excitable"], "model", quantity="passes", budget="8")
against = sides_of(paid)
says((f"At a distance of {8}, nearly that of a black image, excitable neurons do guide the swarm. On MNIST it finds "
      f"{span(guided['mean'])} points more errors than with a constant fitness. This is more than chance with "
      f"{listed(sides_of(guided).ahead)}.", guided["mean"].min() > 10 and (guided["low"] > 0).any()),
     ("The swarm of sensitive neurons is the other comparison, with as many passes.",
      ((passes["sensitive_same_passes"] / passes["excitable"] - 1).abs() < 0.01).all()),
     *([f"Excitable neurons find more errors than it does with {listed(against.ahead)}."] if against.ahead else []),
     *([f"They find fewer with {listed(against.behind)}."] if against.behind else []),
     *([f"With {listed(against.undecided)} the seeds do not decide."] if against.undecided else []))

# %% tags=["hide-input", "statements"]
says((f"Values in units of their mean absolute value find {span(scaled['mean'])} points more than nats do. This is more "
      f"than chance with {listed(sides_of(scaled).ahead)}. So on MNIST, at this distance, nats are the weaker unit for the printed "
      "threshold.", (scaled["low"] > 0).sum() >= 2 and scaled["mean"].min() > 0))

# %% tags=["hide-input", "statements"]
colour = rates[rates["dataset"] != "mnist"]
scaled_lead = evidence.spread(lead_of(colour, "excitable_scaled", "constant", *CELLS, budget="8"))
surely = [model for _, model in sides_of(scaled_lead).ahead]
says(f"In the larger networks ({networks(scaled_lead.index)}; VGG16's CIFAR-10 is a JPEG copy), scaled values lead a constant fitness "
     f"at this distance by {span(scaled_lead['mean'], 1)} points. This is more than chance with {listed(surely or ['none of them'])}.")

# %% [markdown]
# The records also have the passes and the different wrong classes of all inputs. Below them are the settings that
# each rival was tried in, with the errors on the inputs of the choice.

# %% tags=["hide-input", "hide-output"]
display(wide(ours, "quantity in ('passes', 'error_categories')",
             index=["dataset", "model", "fuzzer", "swarm", "setting"], columns=["quantity", "budget"]))
wide(ours, "quantity in ('held_out_error_rate', 'chosen')", index=["dataset", "model", "fuzzer", "setting"],
     columns=["quantity", "budget"])

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says(f"The rivals ran {of_rivals(rows)}.", *rows_kept(rows), evidence.estimator(rows))

# %% [markdown]
# **What it means.** `constant` shows what random images find, and the sensitive swarm with as many passes
# what these passes buy without Shapley values. Only what `excitable` finds beyond both, where an example
# still looks like its input, is an argument for excitable neurons.

# %% tags=["hide-input", "statements"]
close = seeds_of(rows, *CELLS, who="excitable", quantity="share_near", budget="none").max()
aims = printed_rates(published.table("deepsensor_excitable", 3), 20_000)["deepsensor"]
says((f"Without a bound, at least {rounded_down(free.min())} % of the excitable swarm's examples on MNIST are errors, no fewer than the paper "
      "prints.", (free > aims[free.index]).all()),
     (f"Of all its errors without a bound, with any network, {f'at most {rounded_up(100 * close, 2)} %' if close else 'none'} lie within "
      f"the first paper's bound. That they resemble their inputs is *{evidence.state('deepsensor-excitable-near')}*.", close < 0.05),
     (f"There are {span(hardest, 1)} times as many as DLFuzz's. The average over the rivals says little "
      "about a method, because the weak ones decide it.", average.min() > hardest.max()))

# %% tags=["hide-input", "statements"]
particles = table_of(rows, ["excitable"], *CELLS, "population", budget="8").reset_index().groupby("dataset")["population"].max()
says(("In the larger networks, values in nats hardly guide the swarm: with each seed, at each bound and without one, it "
      "finds exactly as many errors as with a constant fitness.",
      all((lead_of(colour, "excitable", "constant", *CELLS, budget=bound) == 0).all()
          for bound in colour["budget"].dropna().unique())),
     (f"We have not tested why. There are {int(particles.drop('mnist').max())} particles or fewer there, and {int(particles['mnist'])} with the "
      "LeNets. More neurons share the loss, too, so fewer reach the threshold. And the same distance is a smaller change of "
      "a larger image.", particles.drop("mnist").max() < particles["mnist"]))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Shapley values sum to the change of loss. Guide the swarm by that sum alone: is
# counting neurons needed?
#
# ```{admonition} Solution
# :class: dropdown
# For each particle this takes one pass, and not three for each gradient. It needs no threshold:
#
# ~~~python
# from torch.nn.functional import cross_entropy
#
# def loss(model, inputs, labels):
#     return lambda x, of: cross_entropy(model(x), labels[of], reduction="none")
#
# import torch
# generator = torch.Generator().manual_seed(seed)
# by_loss = replace(swarm, fitness=loss, budget=fuzzing.Budget(l2=8.0)).run(
#     model, x, labels, iterations=iterations, generator=generator)
# print(100 * by_loss.errors.double().mean(), measured["error_rate"]["8"])
# ~~~
#
# A count stops growing with a neuron's value once it is above $\lambda$; the loss does not.
# ```
#
# **2. Think.** Give the excitable swarm better Shapley values, from four quadrature points. What
# does it cost, and what does it bring?
#
# ```{admonition} Solution
# :class: dropdown
# `studies.swarms(swarm, "excitable", points=4)` takes twelve passes for every particle. A
# swarm only needs to know which particle has more excitable neurons: compare the error rates before
# paying for precision.
# ```
#
# **3. Code.** Shapley values sum to the change of loss. Write `my_change(before, after, labels)`:
# that change, in nats, from the logits of the input and of its example. The cell says whether it is
# right.

# %%
my_change = None  # your function of two tensors (N, classes) and one (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def change(before, after, labels):
        loss = torch.nn.functional.cross_entropy
        return loss(after, labels, reduction="none") - loss(before, labels, reduction="none")

    logits, classes = torch.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 1.0]]), torch.tensor([0, 1])
    check(answer, change, (logits, logits.flip(1), classes), (logits, logits, classes))


is_right(my_change)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_change(before, after, labels):
#     rows = torch.arange(len(labels))
#     return before.log_softmax(1)[rows, labels] - after.log_softmax(1)[rows, labels]
#
# is_right(my_change)
# ~~~
#
# It is in nats because the logarithm is the natural one: a change of 0.7 halves the probability.
# ```
