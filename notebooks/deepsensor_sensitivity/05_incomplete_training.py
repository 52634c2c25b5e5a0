# %% [markdown]
# # Are networks trained too little or too long easier to break?
#
# **The claims** (DeepSensor IV.B.3, Tables IV and V). However far a network was trained, DeepSensor
# finds more errors in it than each of the other {term}`fuzzers <fuzzer>`. It also finds more errors
# in underfitted and overfitted networks than in well trained ones. The other fuzzers show no such
# difference.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
learning_rate = 0.02  # of the other two; the paper has none
seed = 0  # of the training, and of all else that is random
inputs = 40  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import asdict

import pandas as pd

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.campaign_plots import errors_within_distance, fuzzer_bars
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import (
    change_of,
    lead_of,
    mean_of,
    seeds_of,
    sides_of,
    with_swarm,
)
from dnnbook.training import faulty
from dnnbook.words import listed, shown, span
from dnnlib import inference

plots.style()
run = Experiment("deepsensor_sensitivity/incomplete", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, learning_rate=learning_rate, seed=seed, inputs=inputs, iterations=iterations,
                 population=population, others=others, references=references, held_out=held_out, budget="none")

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-incomplete")

# %% tags=["hide-input", "statements"]
every = records.frame("deepsensor_sensitivity/incomplete")
ORDER, FUZZERS = ["underfitted", "well_trained", "overfitted"], ["deepsensor", "deepxplore", "dlfuzz", "deephunter"]
shares = at_best(outcomes.error_shares(every), "dataset", "model", "training", "seed")
errors = seeds_of(with_swarm(shares, "paper"), "fuzzer", "training")
later = evidence.spread(change_of(errors, "training", "overfitted", "well_trained")).loc[FUZZERS]
guidance = evidence.spread(lead_of(shares, "paper", "constant", "training")).loc[ORDER]
says(("**The answer.** With each rival in its best setting, DLFuzz finds the most errors, however far the network was trained, "
      "and not DeepSensor.",
      (errors[FUZZERS].groupby(["fuzzer", "training"]).mean().unstack().idxmax() == "dlfuzz").all()),
     ("In none of the three networks can DeepSensor's count be credited to its neurons. A swarm that looks at none finds "
      "more, or the seeds do not decide.", guidance["low"].max() <= 0),
     ("The seeds show for no fuzzer that the overfitted network is easier to break than the well trained one.",
      later["low"].max() <= 0 and later.loc["deepsensor", "high"] < 0))

# %% [markdown]
# ## In one picture
#
# Compare each colour in the three networks. Then compare DeepSensor with its twin, a {term}`swarm`
# with a constant {term}`fitness`, which looks at no neuron.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the examples that are test errors, by how far the network was trained. Each rival in its best setting: mean over the random seeds; lines give the range.", "name": "fig-deepsensor-incomplete-records"}}
kept = run.recorded()
plots.nothing() if kept.empty else fuzzer_bars(
    outcomes.error_shares(at_best(kept, "dataset", "model")), group=["dataset", "model", "training"],
    ylabel="% of the examples")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to make the three networks when the paper gives only half of the recipe. And
# what a count can still tell when it is close to its greatest possible value.
#
# ## Three networks
#
# Table V heads its column "retrained", but the text says that underfitted and overfitted networks were
# *trained*. One epoch could not make a well trained network underfitted. So all three are new networks.
#
# Table V gives epochs, batch sizes and accuracies: underfitted networks have 76 to 79 %,
# overfitted ones 98 to 99.9 %. It gives no learning rate. We use 0.02 with momentum, which is meant to bring LeNet-5
# on MNIST near 80 % in one epoch; Table V below shows how near it comes. An epoch of the embedded
# images has only a few batches of 512, so with them the underfitted network gets two epochs of
# smaller batches.

# %%
STATES = ["underfitted", "well_trained", "overfitted"]
options = {"recipe_name": recipe, "learning_rate": learning_rate}
models = {state: faulty.trained(state, model_name, dataset, seed=seed, device=device, **options)
          for state in STATES}

# %% tags=["hide-input"]
headed(pd.DataFrame({state: asdict(faulty.recipe(state, model_name, dataset, **options))
                     for state in STATES}).T[["learning_rate", "batch_size", "epochs"]])

# %%
data, train = load(dataset, limit=profile_limit(profile)), load(dataset, "train")
for state, model in models.items():
    for quantity, part in (("accuracy", data), ("train_accuracy", train)):
        share = inference.accuracy(model, part.images[:10_000], part.labels[:10_000])
        run.add({quantity: 100 * share}, training=state)

# %% tags=["hide-input"]
wide(run.live, "quantity in ('accuracy', 'train_accuracy')", index="training", columns="quantity")

# %% [markdown]
# ## The fuzzers
#
# The inputs are test images that the network under test classifies correctly, so they differ a
# little between the three networks. {term}`DeepXplore` compares the network with well trained ones.
# Each rival runs in the setting of the `paper` and in its `best` setting ([why](02_test_errors)),
# which is chosen for each network on other inputs. The control is a swarm whose fitness is
# constant: it looks at no neuron.

# %%
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)
rivals = studies.rivals(oracles, train.images[:references], best=(data.images, data.labels),
                        count=held_out, last=True)
fuzzers = studies.lineup(population, rivals)
chosen = studies.benign_for_each(models, data.images, data.labels, count=inputs, seed=seed)
found = studies.in_each(models, chosen, fuzzers, iterations=iterations, seed=seed)

# %% tags=["hide-input"]
print(*(f"{shown(state)}: {len(labels)} inputs" for state, (_, labels) in chosen.items()), sep="\n")

# %% [markdown]
# ## Test errors
#
# Each fuzzer makes as many examples as there are inputs, in its last iteration. An error is an example that
# the network gives another class than its input. So no count can exceed the number of inputs.

# %%
measured = outcomes.table(found, outcomes.last_examples)
run.add(outcomes.lines(measured, "training"))

# %% tags=["hide-input"]
for state, (x, _) in chosen.items():
    run.add(studies.choices(rivals, models[state], x, iterations=iterations), training=state)
COLUMNS = {"training": STATES, "quantity": ["test_errors", "l2"]}
wide(run.live, index=["fuzzer", "swarm", "setting"], columns=["quantity", "training"], order=COLUMNS)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Test errors among the last examples of the run above, counted up to a given L2 distance from the input.", "name": "fig-deepsensor-incomplete-distance"}}
errors_within_distance(found, thick=FuzzerKey("deepsensor", "paper"))
run.show()

# %% [markdown]
# ## What the claims ask for
#
# We divide DeepSensor's errors by those of each baseline, and by its own errors in the well trained
# network. By hand, from Table IV for LeNet-5:

# %% tags=["hide-input", "nbval-check-output"]
RIVALS = ["deepxplore", "dlfuzz", "deephunter"]
table_4 = published.table("deepsensor_sensitivity", 4)
printed = table_4.query("model == 'lenet5'").pivot(index="training", columns="fuzzer", values="value").loc[STATES]
print((printed["deepsensor"] / printed[RIVALS].mean(axis=1)).round(2).to_string())
print("over well trained:", (printed["deepsensor"] / printed["deepsensor"]["well_trained"]).round(2).to_dict())

# %%
count = pd.Series({where: int((made.predicted[-1] != made.labels[made.origin[-1]]).sum())
                   for where, made in found.items()})  # last examples of another class
for key in (key for key in fuzzers if key.fuzzer == "deepsensor"):
    for state in STATES:
        run.add(outcomes.times(count[state], [key], list(rivals), "errors_over", least=0,
                               training=state))
        itself = outcomes.over(count[state, key], {"": count["well_trained", key]}, least=0)
        run.add({"over_well_trained": itself["mean"]}, training=state, swarm=key.reading)

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live.fillna({"baseline": "well trained, itself"}), "swarm == 'paper' and "
     "quantity in ('errors_over', 'over_well_trained')", index=["setting", "training"],
     columns="baseline", digits=2)

# %% [markdown]
# ## Table V, beside the paper's: accuracy
#
# Our accuracies are on test images, and in the lower table on training images. The paper does not
# say on which images it measured its own.

# %% tags=["hide-input"]
table_5 = published.table("deepsensor_sensitivity", 5)
printed = table_5.query("training != 'polluted' and quantity == 'accuracy'")
for quantity in ("accuracy", "train_accuracy"):
    display(run.beside(printed, f"quantity == '{quantity}'", on=["dataset", "model", "training"], digits=1))

# %% [markdown]
# ## Table IV, beside the paper's
#
# Errors are in percent of the examples. Our columns are the mean [least, greatest] over the random
# seeds, and this run. The rivals run in the paper's setting.

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(every)}.")

# %% tags=["hide-input"]
run.beside(table_4.assign(value=table_4["value"] / 10), "swarm == 'paper' or setting == 'paper'",
           take=outcomes.error_shares, on=["dataset", "model", "training", "fuzzer"], digits=1)

# %% [markdown]
# All swarms, and noise, from the {term}`records <record>`, with the median distance of their
# examples:

# %% tags=["hide-input"]
ours = run.recorded("fuzzer.notna()")
wide(ours, index=["dataset", "model", "fuzzer", "swarm", "setting"],
     columns=["quantity", "training"], order=COLUMNS)

# %% [markdown]
# The records also have the test errors among the examples of all iterations. Below them are the settings that each
# rival was tried in, with the errors on the inputs of the choice.

# %% tags=["hide-input", "hide-output"]
display(wide(ours, "quantity == 'test_errors_all_iterations'", index=["dataset", "model", "fuzzer", "swarm", "setting"],
             columns="training"))
wide(ours, "quantity in ('held_out_error_rate', 'chosen')", index=["dataset", "model", "training", "fuzzer", "setting"],
     columns="quantity")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** An example with nothing left of its input is an error unless it happens to fall
# into the input's class. Which fuzzer or network then has the higher count depends on the class that the
# network gives to noise. The constant fitness is the yardstick: only what DeepSensor finds beyond
# it is due to the {term}`sensitive neurons <sensitive neuron>`.

# %% tags=["hide-input", "statements"]
goal = published.table("deepsensor_sensitivity", 4).query("model == 'lenet5' and fuzzer == 'deepsensor'")["value"] / 10
constant = seeds_of(shares, "training", who="constant")
unguided = constant.groupby("training").mean()
right = mean_of(every[every["quantity"].isin(["accuracy", "train_accuracy"])], "quantity", "training")
fell = later.loc["deepsensor"]
says((f"With a constant fitness, {span(unguided)} % of the examples are errors, however far the network was "
      f"trained; the paper prints {span(goal)} % for DeepSensor.", unguided.max() - unguided.min() < 5 and constant.min() > 50),
     ("The overfitted and the well trained network have nearly the same accuracy, on test and on training images. "
      f"DeepSensor finds fewer errors in the first, by {-fell['high']:.0f} to {-fell['low']:.0f} "
      "points (95 % interval).", fell["high"] < 0
      and change_of(right, "training", "overfitted", "well_trained").abs().max() < 0.2))

# %% tags=["hide-input", "statements"]
easier = sides_of(evidence.spread(change_of(errors, "training", "underfitted", "well_trained")).loc[FUZZERS]).ahead
in_start = evidence.spread(change_of(constant, "training", "underfitted", "well_trained")).loc[0]
says((f"The underfitted network is easier to break than the well trained one for {listed(easier)}.",
      "deepsensor" in easier),
     ("For DeepSensor this does not say that the network is weaker. In the well trained one, its swarm loses errors that "
      "its start had, and in the underfitted one it hardly loses any.", in_start["low"] <= 0
      and guidance.loc["well_trained", "high"] < 0 and guidance.loc["underfitted", "mean"] > -1),
     f"All rivals ran {of_rivals(shares[shares['fuzzer'].isin(FUZZERS[1:])])}.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** Suppose every example is classified at random among ten classes. How many of 1,000
# are errors, and how far does that number vary?
#
# ```{admonition} Solution
# :class: dropdown
# 900 on average, with a standard deviation of $\sqrt{1000 \cdot 0.9 \cdot 0.1} = 9.5$: between
# 881 and 919 in most runs. If instead all examples are given one class, the errors are the inputs
# that are not of that class: again about 900, for balanced inputs.
# ```
#
# **2. Think.** The paper conjectures that incompletely trained networks have more sensitive
# neurons. Test it without a fuzzer.
#
# ```{admonition} Solution
# :class: dropdown
# Move the same test images by the same noise, record the activations of the three networks, and
# take `sensitivity.sensitive_share` at 0.5. Longer training may also make the weights larger, and so
# the activations. Eq. 1 does not divide by their size, so look at the size of the activations, too.
# ```
#
# **3. Code.** Write `my_chance(n, classes)`: the mean and the standard deviation of the number of
# errors if `n` examples are classified at random. The cell says whether it is right.

# %%
my_chance = None  # your function of two counts, giving (mean, deviation)

# %% tags=["hide-input"]
from scipy import stats

from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def chance(n, classes):
        errors = stats.binom(n, 1 - 1 / classes)
        return errors.mean(), errors.std()

    check(answer, chance, (1000, 10), (1000, 100))


is_right(my_chance)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_chance(n, classes):
#     wrong = 1 - 1 / classes
#     return n * wrong, (n * wrong * (1 - wrong)) ** 0.5
#
# is_right(my_chance)
# ~~~
#
# Counts near 900 of 1,000 are what blind chance gives with ten classes.
# ```
