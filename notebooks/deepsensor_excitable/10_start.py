# %% [markdown]
# # Does a random start help to find excitable neurons?
#
# **The claim** (DeepSensor II, 4.3, 6.5.3, Fig. 11). {term}`Swarms <swarm>` whose
# {term}`particles <particle>` start at random positions find more {term}`test errors <test error>`
# than swarms that start at the input, whatever the cause of the errors: "more excitable neurons can
# be found", and local optima are avoided.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
learning_rate = 0.02  # of the overfitted network; the paper has none
retrained = True  # the polluted network: trained on from the clean one; reading: False, a new one
seed = 0  # of the training, and of all else that is random
inputs = 8  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 3  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value; with one, most neurons above 0.5 nats are missed
near = 10.0  # a bound on the L2 distance, at which both starts are compared
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import pandas as pd
import torch

from dnnbook import studies
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display.comparisons import sizes
from dnnbook.display.plots import bar_panels, nothing, style
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import outcomes
from dnnbook.studies.findings.deepsensor import lead_of, seeds_of, sides_of, table_of
from dnnbook.training import faulty
from dnnbook.words import out_of, rounded_down, rounded_up, span
from dnnlib import fuzzing
from dnnlib.neurons.excitable import ExcitableNeurons

style()
run = Experiment("deepsensor_excitable/start", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 learning_rate=learning_rate, retrained=retrained, seed=seed, inputs=inputs, iterations=iterations,
                 population=population, points=points, near=near)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-start")

# %% tags=["hide-input", "statements"]
rows = records.existing("deepsensor_excitable/start")
error_shares = outcomes.error_shares(rows)
CLEAN = ["adversarial", "overfitted"]  # errors in networks trained on clean data
from_random, at_input, at_signed = (seeds_of(error_shares, "errors", who="excitable", start=start, budget="none")
                                    for start in ("random", "seed", "seed, signed"))
unguided, few = (seeds_of(part, "errors", who="constant", start="random", budget="none")
                 for part in (error_shares, rows[rows["quantity"] == "excitable"]))
at_random, at_inputs, signed = (found.groupby("errors").mean() for found in (from_random, at_input, at_signed))
says(("**The answer.** Yes, for each cause of errors. Without a bound and in the mean over the seeds, a random start gives errors for "
      f"{span(at_random)} % of the inputs. A start at the input gives {span(at_inputs)} % with the released code's velocity, and "
      f"{span(signed)} % with the signed one.", (from_random > at_input).all() and (from_random > at_signed).all()))

# %% tags=["hide-input", "statements"]
says(("But this needs no excitable neurons. In the two networks trained on clean data, a constant fitness has errors for at least "
      f"{rounded_down(unguided[CLEAN].min())} % too, and at most {rounded_up(few[CLEAN].max(), 2)} % of the neurons are excitable there.",
      unguided[CLEAN].min() > 70 and few[CLEAN].max() < 0.5),
     "Without a bound, a random start is a random image, and mostly an error before the first move.",
     f"The verdict on the claim is *{evidence.state('deepsensor-excitable-start')}*.")

# %% [markdown]
# ## In one picture
#
# For each swarm, compare its start at random with its start at the input. First without a bound (left), then
# with both held within the same bound (right).

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 11 of the paper from the records; means over all networks and random seeds.", "name": "fig-excitable-start-records"}}
def errors_by_start(rows: pd.DataFrame) -> None:
    """Fig. 11: percent of the inputs whose last example is an error, without a bound and within."""
    shares = outcomes.error_shares(rows)
    shares["swarm"] += ", " + shares["start"]
    bar_panels({f"bound: {budget}": (shares[shares["budget"] == budget], "errors",
                                     "test errors (%)") for budget in ("none", "near")}, hue="swarm")


kept = run.recorded()
nothing() if kept.empty else errors_by_start(kept)
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to ask whether a random start finds more
# {term}`excitable neurons <excitable neuron>`, and whether that is why there are more errors. With the same
# distance for both starts, and without.

# %% [markdown]
# ## What the fitness says at the start
#
# Section 4.2 puts the particles at the input, and Section 4.3 puts them at random positions. A
# start at the input needs [a velocity from elsewhere](../deepsensor_sensitivity/10_start). At the
# input the loss has not changed,
#
# $$x_p = x \;\Rightarrow\; \Delta L = 0 \;\Rightarrow\; \psi_n = 0 \text{ for all } n
# \;\Rightarrow\; \text{Fitness} = 0 ,$$
#
# and so the {term}`fitness` is "0 at the beginning" (4.1.2). At a random image it is not. For
# example, take a small network without training, one grey input, and random images further and
# further from it:

# %% tags=["nbval-check-output"]
with torch.random.fork_rng(devices=[]):
    torch.manual_seed(1)
    small = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(288, 10))
grey = torch.full((1, 1, 8, 8), 0.5)
away = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(0)) - 0.5
score = ExcitableNeurons(threshold=0.001)(small, grey, torch.tensor([3]))
x = torch.cat([grey + share * away for share in (0, 0.01, 0.5, 1)])
print((100 * score(x, torch.zeros(4, dtype=torch.int64))).round().tolist(), "percent excitable")

# %% [markdown]
# ## Three kinds of error
#
# The three kinds are those of [the chapter before](09_thresholds).

# %%
data = load(dataset, limit=profile_limit(profile))
models = faulty.by_error(model_name, dataset, recipe_name=recipe, seed=seed,
                         learning_rate=learning_rate, retrained=retrained,
                         device=device)
targets = faulty.targets(dataset)
benign = studies.benign_for_each(models, data.images, data.labels, without=targets, count=inputs,
                                 seed=seed)
print(data)

# %% [markdown]
# ## The swarms
#
# There are three starts: `random`, `seed`, and `seed, signed`. `seed` is at the input, where every pixel gets
# brighter as in the released code. With `seed, signed`, a pixel may also get darker. There are three
# fitnesses: `excitable`, `sensitive`, and `constant`. From a random start, the constant fitness leaves
# nothing but the start. All swarms run without a bound, as in the paper, and within one (`near`).

# %%
starts = {"random": {}, "seed": {"start": "input", "velocity": (0.0, 0.7)},
          "seed, signed": {"start": "input", "velocity": (-0.7, 0.7)}}
fitnesses = {"excitable": ExcitableNeurons(points=points), "sensitive": fuzzing.Swarm().fitness,
             "constant": fuzzing.Constant()}
swarms = {(name, start): fuzzing.Swarm.paper(population=population, fitness=fitness, **options)
          for name, fitness in fitnesses.items() for start, options in starts.items()
          if name != "constant" or start == "random"}

# %%
bounds = {"none": None, "near": near}
found = {(budget, kind, *key): campaign for kind, model in models.items()
         for (budget, key), campaign in studies.at_bounds(
             model, *benign[kind], swarms, bounds, iterations=iterations, seed=seed).items()}

# %% [markdown]
# ## Test errors, and the neurons behind them
#
# The table is about the last examples, one for each input. It has the number of test errors. Then come the
# share of neurons, in percent, that the examples make excitable, whatever guided the swarm; and their median
# {term}`L2 distance`.

# %%
for (budget, kind, name, start), campaign in found.items():
    score = ExcitableNeurons(points=points)(models[kind], *benign[kind])
    share = 100 * score(campaign.images, campaign.origin[-1]).mean()
    run.add(outcomes.last_examples(campaign, target=targets[kind])
            | {"excitable": share, "passes": campaign.passes},
            fuzzer="deepsensor", swarm=name, budget=budget, errors=kind, start=start)

# %% tags=["hide-input"]
wide(run.live, index=["budget", "swarm", "start"], columns=["quantity", "errors"],
     order={"quantity": ["test_errors", "excitable", "l2"]})

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 11 for the run above: examples that are test errors, for each swarm and start, without a bound (left) and within one (right).", "name": "fig-excitable-start"}}
errors_by_start(run.live)
run.show()

# %% [markdown]
# ## What the claim asks for
#
# We divide the test errors of a random start by those of a start at the input. We do so first with the
# released code's velocity (*the seed's errors*), then with the signed one (*the signed start's errors*). A
# start that finds no error counts as if it had found one.

# %%
count = {key: int(outcomes.hits(campaign, targets[key[1]])[-1].sum())
         for key, campaign in found.items()}
for budget, kind, name in dict.fromkeys(key[:3] for key in found if key[2] != "constant"):
    at_random, *at_inputs = (count[budget, kind, name, start] for start in starts)
    run.add({ratio: at_random / max(1, errors) for ratio, errors in
             zip(("random_over_fixed", "random_over_signed"), at_inputs)},
            fuzzer="deepsensor", swarm=name, budget=budget, errors=kind)

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live, "quantity in ('random_over_fixed', 'random_over_signed')", index=["budget", "errors"],
     columns=["quantity", "swarm"], digits=2)

# %% [markdown]
# ## Over all records
#
# First, the share of the examples that are test errors, and then the share of neurons that the
# examples make excitable. Both are in percent, as means over the random seeds. Fig. 11 prints no
# numbers that we could put beside them.

# %% tags=["hide-input"]
ours = run.recorded()
for table in (outcomes.error_shares(ours), ours[ours["quantity"] == "excitable"]):
    display(wide(table, index=["dataset", "model", "budget", "swarm", "start"], columns="errors"))

# %% [markdown]
# The records also have the test errors among the examples of all iterations, and the passes:

# %% tags=["hide-input", "hide-output"]
wide(ours, "quantity in ('test_errors_all_iterations', 'passes')",
     index=["dataset", "model", "budget", "swarm", "start"], columns=["quantity", "errors"])

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(rows)}, for each kind of error.", *evidence.left_out(rows), evidence.estimator(rows))

# %% [markdown]
# **What it means.** The paper gives a chain of reasons: a random start leads to more excitable neurons, and these
# lead to more errors. Within the bound the starts still differ: one lies at the bound, about as far away as a
# black image; the other lies at the input.

# %% tags=["hide-input", "statements"]
away = seeds_of(rows, "errors", who="excitable", start="seed", budget="none", quantity="l2")[CLEAN].max()
polluted, alone = from_random["polluted"], unguided["polluted"]
says(("In the networks that were trained on clean data, a swarm that starts at the input mostly stays there: the median "
      f"distance of its examples is {'at most ' if round(away, 1) else ''}{away:.1f}.", away < 1),
     (f"In the polluted network a random start ends in the polluted class for {span(polluted)} % of the "
      f"inputs, depending on the random seed, and a start at the input for at most {rounded_up(at_input['polluted'].max())} % "
      f"({rounded_up(at_signed['polluted'].max())} % with the signed velocity). With the same random start a constant fitness ends "
      f"there for {span(alone)} %.", polluted.min() > max(at_input["polluted"].max(), at_signed["polluted"].max())
      and abs((polluted - alone).mean()) < 5))

# %% tags=["hide-input", "statements"]
over_none, over_sensitive = (evidence.spread(lead_of(error_shares, "excitable", other, "errors", start="random", budget="near")[CLEAN])
                             for other in ("constant", "sensitive"))
cost = table_of(rows, ["sensitive", "excitable"], "errors", quantity="passes", start="random", budget="near")
says((f"Within the bound, in the other two networks, excitable neurons find {span(over_none['mean'])} points more "
      "errors than a constant fitness on average. This is more than chance for "
      f"{out_of(len(sides_of(over_none).ahead), len(over_none))} kinds of error.", over_none["mean"].min() > 0),
     (f"Their lead over sensitive neurons, which take fewer passes, is {span(over_sensitive['mean'])} points. This "
      f"lead is more than chance for {out_of(len(sides_of(over_sensitive).ahead), len(over_sensitive))} kinds.",
      over_sensitive["mean"].min() > 0 and (cost["sensitive"] < cost["excitable"]).all()))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Why can a swarm that starts at the input not use its first iteration?
#
# ```{admonition} Solution
# :class: dropdown
# All particles are at the input and score 0, so no position is better than another. The personal
# and the global best are the input, and the velocities that were drawn decide where the swarm goes.
#
# ~~~python
# x, y = benign["adversarial"]
# print(ExcitableNeurons()(models["adversarial"], x, y)(x, torch.arange(len(x))).max())
# ~~~
# ```
#
# **2. Try.** At one and the same distance, is the number of excitable neurons of an example a sign
# of an error?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# campaign = found["near", "adversarial", "excitable", "random"]
# score = ExcitableNeurons()(models["adversarial"], *benign["adversarial"])
# share = score(campaign.images, campaign.origin[-1])
# for wrong in (False, True):
#     print(wrong, share[campaign.errors[-1] == wrong].mean())
# ~~~
#
# You may expect so, because an error has a loss of at least $\log 2$, and the values of the neurons
# add up to the change of the loss. But the count also depends on how many neurons share this
# change. Without errors the last line is NaN.
# ```
#
# **3. Think.** Suppose that a swarm finds more errors and more excitable neurons from a random start
# than from the input. What would show that the neurons are the reason?
#
# ```{admonition} Solution
# :class: dropdown
# A swarm with the same start and the same distance, whose fitness is constant. If it finds as many
# errors, the start is the reason; if the guided swarm finds more, the neurons add something.
# ```
#
# **4. Code.** Write `my_means(share, errors)`: the mean share of excitable neurons of examples that
# are not errors, and of those that are. The cell says whether it is right.

# %%
my_means = None  # your function of a tensor (N,) of shares and one of booleans

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    shares, wrong = torch.tensor([0.1, 0.3, 0.2, 0.6]), torch.tensor([False, True, False, True])
    check(answer, lambda s, e: (float(s[~e].mean()), float(s[e].mean())), (shares, wrong),
          (shares, ~wrong))


is_right(my_means)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_means(share, errors):
#     return [float(share[errors == which].mean()) for which in (False, True)]
#
# is_right(my_means)
# ~~~
#
# Compare at one distance; otherwise the difference may come from how far away the examples are.
# ```
