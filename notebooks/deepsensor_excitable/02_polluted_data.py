# %% [markdown]
# # Do excitable neurons find what pollution left behind?
#
# **The claim** (DeepSensor II, 6.1.2, Tables 2 and 4). In polluted data, some training images have
# a patch and a wrong label, the same label for all: the *polluted class*. In networks trained on
# such data the {term}`swarm` finds about five times as many errors as the other
# {term}`fuzzers <fuzzer>`: "defects placed during training are likely to be captured by excitable
# neurons".

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
alpha = 10  # percent of the training images that are polluted
patches = "each"  # reading: each polluted image has a patch of its own, or `one` for all
retrained = True  # the polluted network: trained on from the clean one; reading: False, a new one
seed = 0  # of the training, and of all else that is random
inputs = 20  # benign inputs to start from; the paper has 1,000
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
from dnnbook.display.campaign_plots import fuzzer_bars
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import (
    always_most,
    lead_of,
    mean_of,
    seeds_of,
    sides_of,
    table_of,
)
from dnnbook.training import faulty, pollution
from dnnbook.words import out_of, rounded_down, rounded_up, span
from dnnlib import fuzzing, inference
from dnnlib.neurons import excitable, shapley

plots.style()
run = Experiment("deepsensor_excitable/polluted", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, alpha=alpha, patches=patches, retrained=retrained, seed=seed,
                 inputs=inputs, iterations=iterations, population=population, points=points,
                 others=others, references=references, held_out=held_out, budget="none")

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-polluted")

# %% tags=["hide-input", "statements"]
every = records.existing("deepsensor_excitable/polluted")
rows = at_best(every[every["patches"] == "each"], "dataset", "model", "alpha")
shares = outcomes.error_shares(rows)
guided, unguided, random = (seeds_of(shares, "alpha", who=who, network="polluted") for who in ("excitable", "constant", "noise"))
lead = evidence.spread(guided - unguided)
over = evidence.spread(seeds_of(rows, "alpha", who="excitable", quantity="errors_over", baseline="mean"), "ratio")
says((f"**The answer.** The swarm ends at the polluted class for {guided.mean():.0f} % of the inputs on average. But a constant "
      f"fitness and noise end there too, for {unguided.mean():.0f} and {random.mean():.0f} %.",
      lead["mean"].abs().max() < 3 and min(unguided.mean(), random.mean()) > guided.mean() - 3),
     ("So excitable neurons find nothing there that chance does not find, if each polluted image has a patch of its own.",
      lead["mean"].abs().max() < 3),
     (f"The swarm finds {span(over['mean'], 1)} times as many such errors as the rivals do on average; the paper has "
      "about five times as many.", over["high"].max() < 5))

# %% [markdown]
# ## In one picture
#
# A fuzzer that found what pollution left behind has a higher bar in the polluted network than in
# the clean one beside it. Look for such pairs, and check whether a constant {term}`fitness` has
# them as well.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the last examples that are given the polluted class, in the polluted and in the clean network, from the records, by the share of polluted images. Each rival in its best setting: mean over the random seeds, lines give the range.", "name": "fig-excitable-polluted"}}
kept = run.recorded(patches=patches)
plots.nothing() if kept.empty else fuzzer_bars(
    outcomes.error_shares(at_best(kept, "dataset", "model", "alpha")).sort_values("alpha", kind="stable").assign(
        share=lambda table: table["alpha"].astype(str) + " %"),
    group=["dataset", "model", "share", "network"], ylabel="given the polluted class (%)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to test the reason as well as the count. Does a patch that a network has
# learned make more of its neurons {term}`excitable <excitable neuron>`? And is a swarm that seeks such
# neurons led to the polluted class?

# %% [markdown]
# ## The same numbers, again
#
# We compare Table 4 with [the first paper's](../deepsensor_sensitivity/04_faulty_training) Table
# III:

# %% tags=["hide-input", "nbval-check-output"]
table_4 = published.table("deepsensor_excitable", 4)
both = table_4.merge(published.table("deepsensor_sensitivity", 3), validate="1:1",
                     on=["dataset", "model", "alpha", "fuzzer", "quantity"], suffixes=("", " before"))
print(f"{(both['value'] == both['value before']).sum()} of {len(table_4)} are the same")

# %% [markdown]
# In the first paper an error is an example that is *given the polluted class*; this paper counts
# "test errors". As the numbers are the same, they must count the same thing. We call it *test
# errors*. Errors of any class are called *wrong*.
#
# ## Did the network learn the patch?
#
# The paper *re*trains networks with polluted data: the clean network is trained on, at a rate of 0.001,
# which is ours ([why](../deepsensor_sensitivity/04_faulty_training)). In another {term}`reading`
# (`retrained` False) the polluted network is a new one.
#
# We stamp test images of the other classes with a patch. This is the share of them that are given
# the polluted class, in percent:

# %%
models = {name: faulty.trained(kind, model_name, dataset, recipe_name=recipe, alpha=alpha,
                               patches=patches, retrained=retrained, seed=seed,
                               device=device)
          for name, kind in (("polluted", "polluted"), ("clean", "well_trained"))}
data = load(dataset, limit=profile_limit(profile))

# %% [markdown]
# We stamp all test images, and take inputs of the other classes for each network:

# %%
setting = pollution.setting(dataset)
again = seed if patches == "one" else 1000 + seed  # the same patch, or patches never seen
stamped = pollution.stamp(data.images, sizes=setting["sizes"], patches=patches, seed=again)
benign = {name: studies.benign(model, data.images, data.labels, without=setting["label"],
                               seed=seed)[:inputs] for name, model in models.items()}

# %%
for name, model in models.items():
    given = inference.predict(model, stamped[data.labels != setting["label"]]).argmax(1)
    run.add({"accuracy": 100 * inference.accuracy(model, data.images, data.labels),
             "stamped_given_class": 100 * (given == setting["label"]).double().mean()},
            network=name, training=name)

# %% tags=["hide-input"]
wide(run.live, "quantity in ('accuracy', 'stamped_given_class')", index="network", columns="quantity")

# %% [markdown]
# ## Does the patch make neurons excitable?
#
# The paper's reason is that the neurons that the patch activates contribute more to the change of
# loss:
#
# $$\sum_n \psi_n = \Delta L = L(\text{stamped}, y) - L(\text{input}, y) .$$
#
# So we stamp the inputs themselves and take the {term}`Shapley values <Shapley value>`, in the
# polluted and in the clean network. Beside the patch, we do the same with noise as long as the
# patch. The table has the mean share of excitable neurons (at 0.5 {term}`nats <nat>`), in percent,
# and the mean change of loss, in nats:

# %%
generator = torch.Generator().manual_seed(seed)
moved = {}
for name in models:
    x = data.images[benign[name]]
    patch = stamped[benign[name]] - x
    noise = torch.randn(x.shape, generator=generator)
    noise *= (patch.flatten(1).norm(dim=1) / noise.flatten(1).norm(dim=1)).view(-1, 1, 1, 1)
    moved[name] = {"patch": x + patch, "noise": (x + noise).clamp(0, 1)}

# %% [markdown]
# Of both changes we take the share of excitable neurons, and the sum of all values:

# %%
for name, changes in moved.items():
    x, labels = data.images[benign[name]], data.labels[benign[name]]
    for change, x_moved in changes.items():
        psi = shapley.diagonal(shapley.Game(models[name], x, x_moved, labels))
        run.add({"excitable": 100 * excitable.excitable(psi.values).double().mean(),
                 "change_of_loss": psi.total.mean()}, network=name, change=change)

# %% tags=["hide-input"]
wide(run.live, "change.notna()", index="change", columns=["quantity", "network"], digits=2,
     order={"quantity": ["excitable", "change_of_loss"]})

# %% [markdown]
# ## The fuzzers
#
# The inputs are test images of the *other* classes. The swarm runs with four fitnesses. Everything runs again
# on a **clean** network, which never saw the pollution. An example that it gives the polluted class is not an
# error of that kind.

# %%
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)
baselines = studies.rivals(oracles, load(dataset, "train").images[:references],
                           best=(data.images, data.labels), count=held_out,
                           target=setting["label"], last=True)
swarms = studies.swarms(fuzzing.Swarm.paper(population=population), points=points, seed=seed)
fuzzers = swarms | baselines | {FuzzerKey("noise"): fuzzing.Noise(scale=1.0)}

# %%
found = studies.in_each(models, {name: (data.images[places], data.labels[places])
                                 for name, places in benign.items()},
                        fuzzers, iterations=iterations, seed=seed)
measured = outcomes.table(found, outcomes.last_examples, target=setting["label"])
for (name, key), campaign in found.items():
    run.add(measured.loc[name, key].to_dict() | {"passes": campaign.passes}, network=name,
            method=str(key), **key.columns)

# %% tags=["hide-input"]
print(f"{inputs} inputs of {data}")
wide(run.live, "method.notna()", index="method", columns=["quantity", "network"],
     order={"quantity": ["test_errors", "wrong", "l2"]})

# %% [markdown]
# ## What the claim asks for
#
# We divide DeepSensor's errors by those of each baseline and by their mean, where a number below 1
# counts as 1. We do this for examples that are given the polluted class, and for examples of any
# wrong class. We also divide its errors by its own errors in the clean network; this ratio is far
# above 1 if DeepSensor finds pollution. In the paper, its errors over the mean of the baselines
# are:

# %% tags=["hide-input", "nbval-check-output"]
printed = table_4.pivot(index=["model", "alpha"], columns="fuzzer", values="value")
print(pd.Series({key: outcomes.over(line["deepsensor"], line.drop("deepsensor"))["mean"]
                 for key, line in printed.iterrows()}).round(2).to_string())

# %%
for quantity, ratio in (("test_errors", "errors_over"), ("wrong", "wrong_over"),
                        ("test_errors_all_iterations", "errors_over_all_iterations")):
    run.add(outcomes.times(measured[quantity]["polluted"], swarms, list(baselines), ratio,
                           network="polluted"))
for key in swarms:
    polluted, clean = (measured["test_errors"][name, key] for name in models)
    run.add({"over_clean": polluted / max(1, clean)}, **key.columns)

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live.fillna({"baseline": "itself"}), "quantity in ('errors_over', 'wrong_over', 'over_clean')",
     index=["swarm", "setting"], columns=["quantity", "baseline"], digits=2)

# %% [markdown]
# ## Table 2, beside the paper's: accuracy
#
# Our accuracies are on the whole test set. The paper does not say on which images it measured its
# own.

# %% tags=["hide-input"]
table_2 = published.table("deepsensor_excitable", 2).query(
    "training == 'polluted' and quantity == 'accuracy'").astype({"alpha": int})
run.beside(table_2, "quantity == 'accuracy' and training == 'polluted'", patches=patches, digits=1,
           on=["dataset", "model", "training", "alpha", "quantity"])

# %% [markdown]
# ## Table 4, beside the paper's
#
# Test errors in percent of the inputs; the paper has 1,000 inputs, and we have fewer. Our columns
# are the mean [least, greatest] over the random seeds, and this run.

# %% tags=["hide-input"]
WHERE = "network == 'polluted' and (swarm == 'excitable' or setting == 'paper')"
run.beside(table_4.assign(value=table_4["value"] / 10), WHERE, take=outcomes.error_shares,
           patches=patches, digits=1, on=["dataset", "model", "alpha", "fuzzer"])

# %% [markdown]
# From the {term}`records <record>`, also in percent: every swarm and fuzzer in the polluted and in
# the clean network.

# %% tags=["hide-input"]
ours = run.recorded(patches=patches).sort_values("alpha", kind="stable")
wide(outcomes.error_shares(ours), index="method", columns=["dataset", "model", "alpha", "network"])

# %% [markdown]
# The records also have the test errors among the examples of all iterations, the median distance of the last ones,
# and the passes. Below them are the swarm's errors of all iterations, divided by the rivals'.

# %% tags=["hide-input", "hide-output"]
display(wide(ours, "quantity in ('test_errors_all_iterations', 'l2', 'passes')", index=["alpha", "method"],
             columns=["dataset", "model", "network", "quantity"]))
wide(ours, "quantity == 'errors_over_all_iterations'", index=["alpha", "swarm", "setting", "baseline"],
     columns=["dataset", "model"], digits=2)

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says("In these records each polluted image has a patch of its own, as the text has it. They cover "
     f"{sizes(rows)}.", f"The rivals ran {of_rivals(rows)}.", *evidence.left_out(rows), evidence.estimator(rows))

# %% [markdown]
# **What it means.** Excitable neurons ask for a large loss of the true class, not for one class in
# particular.

# %% tags=["hide-input", "statements"]
learned = mean_of(rows, "alpha", network="polluted", quantity="stamped_given_class")
excited, by_any = (seeds_of(rows, "alpha", network="polluted", quantity="excitable", change=change).groupby("alpha").mean()
                   for change in ("patch", "noise"))
clean = seeds_of(shares, "alpha", who="excitable", network="clean")
says(("The networks learn such patches only in part. On average, depending on how much is polluted, they give the polluted class to "
      f"{span(learned)} % of the stamped images of other classes.", learned.max() < 50),
     (f"On average, the patch makes {span(excited, 2)} % of their neurons excitable, and noise of the same length {span(by_any, 2)} %. "
      "Noise makes more of them excitable than the patch does, except where the least is polluted. So the first step of the "
      "paper's explanation fails.",
      excited.max() < 1 and (by_any > excited).iloc[1:].all() and by_any.iloc[0] <= excited.iloc[0]),
     (f"Yet the pollution counts: in the clean network the swarm ends at the polluted class for at most {rounded_up(clean.max())} % of "
      "the inputs.", guided.min() > clean.max()))

# %% tags=["hide-input", "statements"]
other = evidence.spread(lead_of(shares, "excitable", "sensitive", "alpha", network="polluted"))
passes = table_of(rows, ["sensitive", "excitable"], "alpha", network="polluted", quantity="passes")
rivals = table_of(shares, ["deephunter", "deepxplore", "dlfuzz"], "alpha", network="polluted")
says((f"Sensitive neurons, which take fewer passes, lead there for {span(other['mean'])} points less.",
      other["mean"].min() > -1 and (passes["sensitive"] < passes["excitable"]).all()),
     (f"Of the rivals, DeepHunter ends there for the fewest, {span(rivals['deephunter'])} %.",
      always_most(-rivals, "deephunter")))

# %% tags=["hide-input", "statements"]
same_patch = at_best(every[every["patches"] == "one"], "dataset", "model", "alpha")
spoiled = seeds_of(same_patch, "alpha", network="polluted", quantity="stamped_given_class")
led = evidence.spread(lead_of(outcomes.error_shares(same_patch), "excitable", "constant", "alpha", network="polluted"))
by_swarm = mean_of(outcomes.error_shares(same_patch), "swarm", "alpha", network="polluted")
by_patch, by_noise = (seeds_of(same_patch, "alpha", network="polluted", quantity="excitable", change=change)
                      for change in ("patch", "noise"))
says((f"If all polluted images have the same patch, which is another reading, the networks learn it: {span(spoiled)} % of the "
      f"stamped images get the polluted class. The swarm then leads a constant fitness by {span(led['mean'])} points on average, "
      f"which is more than chance for {out_of(len(sides_of(led).ahead), len(led))} shares polluted.",
      spoiled.min() > 50 and led["mean"].min() > 0),
     ("Sensitive neurons end at the polluted class less often there, on average.",
      (by_swarm["sensitive"] < by_swarm["excitable"]).all()))

# %% tags=["hide-input", "statements"]
says((f"Here the patch makes at least {rounded_down(by_patch.min(), 1)} % of the neurons excitable, and noise of the same length at "
      f"most {rounded_up(by_noise.max(), 2)} %. So in this reading the first step of the paper's explanation holds.",
      by_patch.min() > 10 * by_noise.max()))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Which class would a fitness have to name to find this pollution?
#
# ```{admonition} Solution
# :class: dropdown
# It would have to name the polluted class, which a tester does not know. So try all classes, with a
# small bound and few iterations, and look for the class that is reached most often:
#
# ~~~python
# def towards(c):
#     return lambda model, inputs, labels: lambda x, of: model(x).softmax(1)[:, c]
#
# x, labels = data.images[benign["polluted"]], data.labels[benign["polluted"]]
# near = fuzzing.Budget(l2=2.0)
# for c in range(len(data.classes)):
#     swarm = fuzzing.Swarm.paper(population=population, fitness=towards(c), budget=near)
#     found = swarm.run(models["polluted"], x, labels, iterations=5,
#                       generator=torch.Generator().manual_seed(0))
#     print(c, int((found.predicted[-1] == c).sum()), "given,", int((labels == c).sum()), "are")
# ~~~
# ```
#
# **2. Try.** Which neurons does the patch use? Compare the most excitable ones of two stamped
# images.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# x, labels = data.images[benign["polluted"]], data.labels[benign["polluted"]]
# game = shapley.Game(models["polluted"], x, stamped[benign["polluted"]], labels)
# top = shapley.diagonal(game).values.topk(10).indices
# print(len(set(top[0].tolist()) & set(top[1].tolist())), "of 10")
# ~~~
#
# If the patch works through the same neurons in both images, most of the ten are the same. By
# default each polluted image has a patch of its own. For comparison, take `-p patches one`, or noise.
# ```
#
# **3. Think.** Suppose that in a clean network a swarm's examples fall into one class more often
# than into others. How can this be mistaken for a trace of pollution, and which control shows the
# mistake?
#
# ```{admonition} Solution
# :class: dropdown
# If the polluted class is by chance the one that noise falls into, the count is high without any
# pollution. Run the same swarm on a network that was trained on clean data. Its count shows how much
# can come without any pollution.
# ```
#
# **4. Code.** Write `my_most(predicted, labels, classes)`: the class to which most inputs of
# *other* classes were moved. The cell says whether it is right.

# %%
my_most = None  # your function of two tensors (N,) and the number of classes

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def most(predicted, labels, classes):
        return predicted[predicted != labels].bincount(minlength=classes).argmax()

    given, own = torch.tensor([8, 8, 8, 3, 3]), torch.tensor([8, 8, 1, 2, 4])
    check(answer, most, (given, own, 10), (given, own.flip(0), 10))


is_right(my_most)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_most(predicted, labels, classes):
#     return max(range(classes), key=lambda k: int(((predicted == k) & (labels != k)).sum()))
#
# is_right(my_most)
# ~~~
#
# Without the condition that an input has another class, a class with many inputs could look
# polluted.
# ```
