# %% [markdown]
# # Do excitable neurons tell how far a network was trained?
#
# **The claims** (DeepSensor II, 6.1.2, Tables 2 and 5). However far a network was trained, the
# {term}`swarm` finds more errors in it than each other {term}`fuzzer`. It also finds more errors in
# under- and overfitted networks than in well trained ones. The paper conjectures that such networks
# "are more likely to change model loss due to incomplete training".

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
learning_rate = 0.02  # of the other two; the paper has none
seed = 0  # of the training, and of all else that is random
inputs = 12  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 5  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value; with one, most neurons above 0.5 nats are missed
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import pandas as pd
import torch

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.campaign_plots import errors_within_distance, fuzzer_bars
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import change_of, seeds_of, sides_of, table_of
from dnnbook.training import faulty
from dnnbook.words import out_of, rounded_down, rounded_up, span
from dnnlib import fuzzing, inference
from dnnlib.neurons import excitable, shapley

plots.style()
run = Experiment("deepsensor_excitable/incomplete", profile, dataset=dataset,
                 model_name=model_name, recipe=recipe, learning_rate=learning_rate, seed=seed,
                 inputs=inputs, iterations=iterations, population=population, points=points,
                 others=others, references=references, held_out=held_out, budget="none")

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-incomplete")

# %% tags=["hide-input", "statements"]
rows = at_best(records.existing("deepsensor_excitable/incomplete"), "dataset", "model")
ends = table_of(outcomes.error_shares(rows), ["excitable", "constant", "dlfuzz"], "training")
guided, gradient = (ends[who].groupby("training").mean() for who in ("excitable", "dlfuzz"))
lead = evidence.spread(ends["excitable"] - ends["constant"])
unclear = evidence.cells_that("open", "deepsensor-excitable-incomplete")
states = {what: evidence.state(f"deepsensor-excitable-incomplete{what}") for what in ("", "-more")}
says((f"**The answer.** The swarm finds errors for {span(guided)} % of the inputs, and a swarm "
      "with a constant fitness hardly fewer.", lead["mean"].abs().max() < 10 and guided.min() > 80),
     (f"Its lead is {span(lead['mean'], 1)} points, and more than chance in {out_of(len(sides_of(lead).ahead), len(lead))} "
      "networks. So it tells little about training.", lead["mean"].abs().max() < 10),
     (f"DLFuzz finds errors for at least {rounded_down(gradient.min())} %.", (gradient > guided).all()),
     (f"The verdict on 'more than each rival' is *{states['']}*; the pairs of a network and a rival that stay open are mostly DLFuzz's.",
      len([cell for cell in unclear if "dlfuzz" in cell]) > len(unclear) / 2),
     f"The verdict on 'more in faulty networks' is *{states['-more']}*.")

# %% [markdown]
# ## In one picture
#
# Follow each colour from the underfitted network to the overfitted one: does it rise or fall? And
# does the colour of the excitable swarm do anything that the colour of the constant fitness does
# not do?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the last examples that are test errors, by how far the network was trained, from the records. Each rival in its best setting: mean over the random seeds, lines give the range.", "name": "fig-excitable-incomplete"}}
CELL = ["dataset", "model", "training"]
kept = run.recorded()
plots.nothing() if kept.empty else fuzzer_bars(
    outcomes.error_shares(at_best(kept, "dataset", "model")), group=CELL, ylabel="test errors (%)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** What training does to the change of loss that neurons share out; and why a
# {term}`fitness` in {term}`nats <nat>` is not the same measure in two networks.

# %% [markdown]
# ## All numbers but one
#
# We compare Table 5 with [the first paper's](../deepsensor_sensitivity/05_incomplete_training)
# Table IV:

# %% tags=["hide-input", "nbval-check-output"]
table_5 = published.table("deepsensor_excitable", 5)
both = table_5.merge(published.table("deepsensor_sensitivity", 4), validate="1:1",
                     on=["dataset", "model", "training", "fuzzer"], suffixes=("", " before"))
differ = both[both["value"] != both["value before"]]
print(f"{len(both) - len(differ)} of {len(table_5)} are the same; not the same:")
print(differ[["model", "training", "fuzzer", "value", "value before"]].to_string(index=False))

# %% [markdown]
# ## Three networks
#
# The networks are made [as in the first paper's
# chapter](../deepsensor_sensitivity/05_incomplete_training), all from new weights, and each has its own inputs: test
# images that it gets right. The table has the accuracy, in percent, and the `loss`, which is the
# mean cross-entropy of these inputs in nats:

# %%
models = {state: faulty.trained(state, model_name, dataset, recipe_name=recipe, seed=seed,
                                learning_rate=learning_rate, device=device)
          for state in ("underfitted", "well_trained", "overfitted")}
data, train = load(dataset, limit=profile_limit(profile)), load(dataset, "train")
benign = studies.benign_for_each(models, data.images, data.labels, count=inputs, seed=seed)


# %%
def loss(model: torch.nn.Module, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy (N,) of images (N, C, H, W), in nats."""
    return -inference.predict(model, x)[torch.arange(len(x)), labels].log()


# %%
for state, model in models.items():
    run.add({"accuracy": 100 * inference.accuracy(model, data.images, data.labels),
             "train_accuracy": 100 * inference.accuracy(model, train.images[:10_000],
                                                        train.labels[:10_000]),
             "loss": loss(model, *benign[state]).mean()}, training=state)

# %% tags=["hide-input"]
wide(run.live, "quantity in ('accuracy', 'train_accuracy', 'loss')", index="training", columns="quantity", digits=3)

# %% [markdown]
# ## Do they change their loss more?
#
# We add the same noise, of {term}`L2 length <L2 distance>` 2, 4 and 8, to each network's inputs.
# The table has the mean change of the loss
#
# $$\Delta L(x, \Delta x) = L(x + \Delta x, y) - L(x, y) \quad (3),$$
#
# in nats. It also has the share of neurons, in percent, whose {term}`Shapley value` is above 0.5
# nats, and the share whose value is above 0.5 in units of the mean (`scaled`). These neurons are
# called {term}`excitable <excitable neuron>`.

# %%
moved = {}
for length in (2.0, 4.0, 8.0):
    noise = torch.randn(data.images[:inputs].shape, generator=torch.Generator().manual_seed(seed))
    noise *= length / noise.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    for state, (x, _) in benign.items():
        moved[state, length] = (x + noise[:len(x)]).clamp(0, 1)

# %%
for (state, length), x_moved in moved.items():
    x, labels = benign[state]
    change = loss(models[state], x_moved, labels) - loss(models[state], x, labels)  # Eq. 3
    psi = shapley.diagonal(shapley.Game(models[state], x, x_moved, labels)).values
    run.add({"change_of_loss": change.mean()}, training=state, length=length)
    for scale in excitable.SCALES:
        run.add({"excitable": 100 * excitable.excitable(psi, scale=scale).double().mean()},
                training=state, length=length, scale=scale)

# %% tags=["hide-input"]
UNITS = {"scale": {"none": "nats", "total": "scaled"}}
wide(run.live.replace(UNITS), "length.notna()", index="training", digits=2,
     columns=["quantity", "scale", "length"], order={"quantity": ["change_of_loss", "excitable"]})

# %% [markdown]
# ## The fuzzers
#
# Each fuzzer makes one example for each input, in its last iteration. An error is an example that
# the network gives another class than its input. So no count can exceed the number of inputs.

# %%
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)
baselines = studies.rivals(oracles, train.images[:references], best=(data.images, data.labels),
                           count=held_out, last=True)
swarms = studies.swarms(fuzzing.Swarm.paper(population=population), points=points, seed=seed)
fuzzers = swarms | baselines | {FuzzerKey("noise"): fuzzing.Noise(scale=1.0)}
found = studies.in_each(models, benign, fuzzers, iterations=iterations, seed=seed)

# %%
measured = outcomes.table(found, outcomes.last_examples)
for (state, key), campaign in found.items():
    run.add(measured.loc[state, key].to_dict() | {"passes": campaign.passes}, training=state,
            method=str(key), **key.columns)

# %% tags=["hide-input"]
wide(run.live, "method.notna()", index="method", columns=["quantity", "training"],
     order={"quantity": ["test_errors", "l2"]})

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Test errors among the last examples of the run above, counted up to a given L2 distance from the input.", "name": "fig-excitable-incomplete-distance"}}
errors_within_distance(found, thick=FuzzerKey("deepsensor", "excitable"))
run.show()

# %% [markdown]
# ## What the claims ask for
#
# We divide DeepSensor's errors by those of each baseline and by their mean, and by its own errors
# in the well trained network. A count of none counts as one.

# %%
errors = measured["test_errors"]
for state in models:
    run.add(outcomes.times(errors[state], swarms, list(baselines), "errors_over", training=state))
    for key in swarms:
        run.add({"over_well_trained": errors[state, key] / max(1, errors["well_trained", key])},
                training=state, **key.columns)

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live.fillna({"baseline": "itself"}), "quantity in ('errors_over', 'over_well_trained')",
     index=["swarm", "setting", "training"], columns="baseline", digits=2,
     order={"swarm": [key.reading for key in swarms]})

# %% [markdown]
# ## Table 2, beside the paper's: accuracy
#
# Our accuracies are on test images, and in the lower table on training images. The paper does not
# say on which images it measured its own.

# %% tags=["hide-input"]
table_2 = published.table("deepsensor_excitable", 2).query("training != 'polluted' and quantity == 'accuracy'")
run.beside(table_2, "quantity == 'accuracy'", on=CELL, digits=1)

# %% tags=["hide-input"]
run.beside(table_2, "quantity == 'train_accuracy'", on=CELL, digits=1)

# %% [markdown]
# ## Table 5, beside the paper's
#
# Test errors in percent of the inputs; the paper has 1,000 inputs, and we have fewer. Our columns
# are the mean [least, greatest] over the random seeds, and this run.

# %% tags=["hide-input"]
run.beside(table_5.assign(value=table_5["value"] / 10), "swarm == 'excitable' or setting == 'paper'",
           take=outcomes.error_shares, on=[*CELL, "fuzzer"], digits=1)

# %% [markdown]
# The first table has all swarms and noise, from the {term}`records <record>`: test errors in
# percent of the inputs, and the median distance of the examples. The second table has the change of
# loss under noise, and the share of excitable neurons in percent.

# %% tags=["hide-input"]
ours = run.recorded()
shown_rows = pd.concat([outcomes.error_shares(ours), ours[ours["quantity"] == "l2"]])
display(wide(shown_rows, "method.notna()", index=["dataset", "model", "method"], columns=["quantity", "training"]))
wide(ours.replace(UNITS), "length.notna()", index=CELL, columns=["quantity", "scale", "length"],
     digits=2, order={"quantity": ["change_of_loss", "excitable"]})

# %% [markdown]
# The records also have the test errors among the examples of all iterations, and the passes:

# %% tags=["hide-input", "hide-output"]
wide(ours, "method.notna() and quantity in ('test_errors_all_iterations', 'passes')",
     index=["dataset", "model", "method"], columns=["quantity", "training"])

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(rows)}.", f"The rivals ran {of_rivals(rows)}.", evidence.estimator(rows))

# %% [markdown]
# **What it means.** A threshold in nats is not a fixed measure: the same noise may change the loss of one network
# more than that of another.

# %% tags=["hide-input", "statements"]
change = seeds_of(rows, "training", "length", quantity="change_of_loss")
neurons = seeds_of(rows, "training", "length", quantity="excitable", scale="none")
lower, above = (evidence.spread(change_of(change, "training", state, "well_trained")) for state in ("underfitted", "overfitted"))
way = table_of(rows, ["dlfuzz", "excitable"], "training", quantity="l2")
farther = way["dlfuzz"] / way["excitable"]
says((f"In each of the three networks, and at each length, noise makes at most "
      f"{rounded_up(neurons.groupby(['training', 'length']).mean().max(), 2)} % of the neurons excitable, in the mean.", neurons.max() < 1),
     (f"Noise changes the loss of the underfitted network most, at the largest length by "
      f"{change['underfitted'].groupby('length').mean().max():.2f} nats on average. "
      + ("This is more than chance." if sides_of(lower).ahead else
         "But the seeds differ so much that this may be chance."),
      (lower["mean"] > above["mean"]).all() and lower["mean"].min() > 0))

# %% tags=["hide-input", "statements"]
says(("As a constant fitness finds nearly as many errors, the order of the networks may only show which class each of them gives to noise.", lead["mean"].abs().max() < 10),
     (f"DLFuzz, which finds errors for nearly all inputs, goes only {span(100 * farther)} % as far from them as the swarm.",
      farther.max() < 0.6 and ends["dlfuzz"].min() > 95))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Make a network surer without changing any of its decisions: multiply its logits by 3.
# How many more neurons become excitable?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# import copy
#
# surer = copy.deepcopy(models["well_trained"])
# last = [layer for layer in surer.modules() if isinstance(layer, torch.nn.Linear)][-1]
# last.weight.data *= 3
# last.bias.data *= 3
# x, labels = benign["well_trained"]
# moved = (x + noise[:len(x)]).clamp(0, 1)
# for model in (models["well_trained"], surer):
#     psi = shapley.diagonal(shapley.Game(model, x, moved, labels)).values
#     print({scale: excitable.excitable(psi, scale=scale).double().mean().item()
#            for scale in excitable.SCALES})
# ~~~
#
# The same images are errors as before, because the largest logit stays the largest. But the losses,
# and so the Shapley values, are others.
# ```
#
# **2. Try.** Suppose that in the overfitted network all 20 of a swarm's last examples are errors,
# and in the well trained one 18 of 20. Is that a difference?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# from scipy.stats import fisher_exact
#
# print(fisher_exact([[20, 0], [18, 2]]).pvalue)
# ~~~
#
# No: such a difference is often due to chance. Table 5 prints 979 and 937 of 1,000 for LeNet-5. With
# so many inputs it is a difference, but perhaps only between the classes that the two networks give
# to noise.
# ```
#
# **3. Think.** An overfitted network is right and very sure on its training images. Why may a
# change of its loss be larger than that of a well trained network, although both make the same
# errors?
#
# ```{admonition} Solution
# :class: dropdown
# The loss is minus the logarithm of a probability. A network whose logits are twice as large is
# surer where it is right and surer where it is wrong. So an example far beyond the same boundary
# costs it about twice as many nats.
# ```
#
# **4. Code.** Write `my_loss(logits, labels, times)`: the loss of each image after all logits were
# multiplied by `times`. The cell says whether it is right.

# %%
my_loss = None  # your function of a tensor (N, classes), one (N,) and a number

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    logits, classes = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
    check(answer, lambda z, y, t: torch.nn.functional.cross_entropy(t * z, y, reduction="none"),
          (logits, classes, 1.0), (logits, classes, 3.0))


is_right(my_loss)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_loss(logits, labels, times):
#     z = times * logits
#     return z.logsumexp(1) - z[torch.arange(len(labels)), labels]
#
# is_right(my_loss)
# ~~~
#
# For the image that was wrong, the loss grows with the factor, though no decision changed.
# ```
