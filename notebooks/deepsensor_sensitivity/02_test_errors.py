# %% [markdown]
# # Who finds the most test errors?
#
# **The claim** (DeepSensor IV.B.1, Table II). From 1,000 {term}`benign inputs <benign input>`, in
# 20 iterations, DeepSensor finds more {term}`test errors <test error>`, in more
# {term}`error categories <error category>`, than {term}`DeepXplore`, {term}`DLFuzz` and
# {term}`DeepHunter`. In LeNet-5 on MNIST, 18,349 of 20,000 examples are errors. The examples
# "closely resemble" their inputs (IV.G.2, Fig. 8).
#
# How far from its image must an example be before the network gets it wrong? Move the slider. Each picture is
# the last example that a method made within that {term}`L2 distance`. A frame means that the network gives it
# another class than the image has. DeepSensor is a {term}`swarm` of images. With a constant {term}`fitness`
# it searches for nothing. The five images are every second of ten, in the order of how many errors the swarm
# makes of them within 10.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 10  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
near = 1.0  # a bound on the L2 distance, that of the first paper; 2 on ImageNet
distances = "4 8 12"  # other bounds on the L2 distance
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 4  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
beside = ""  # one more fuzzer, of `dnnlib fuzz` or your own: FILE.py:CLASS; '' for none
keep = False  # take the swarms, and rivals as in the paper, from this cell's record; run the rest
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace

import pandas as pd
import torch

from dnnbook import interactive, published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load
from dnnbook.display import plots
from dnnbook.display.campaign_plots import errors_against_distance
from dnnbook.display.colours import colours
from dnnbook.display.comparisons import SIZES, at_best, of_rivals, rows_kept
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import (
    lead_of,
    mean_of,
    printed_rates,
    seeds_of,
    sides_of,
    written,
)
from dnnbook.words import listed, networks, rounded_up, shown, span
from dnnlib import fuzzing, inference
from dnnlib.fuzzing.ascent import layout, respond
from dnnlib.fuzzing.dlfuzz import heavy

plots.style()
run = Experiment("deepsensor_sensitivity/test_errors", profile, dataset=dataset,
                 model_name=model_name, recipe=recipe, seed=seed, inputs=inputs,
                 iterations=iterations, population=population, near=near, distances=distances,
                 others=others, references=references, held_out=held_out, beside=beside, drawn={"keep": keep})

data = load(dataset)
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
if profile == "embedded":
    ten = studies.benign(model, data.images, data.labels, seed=seed)[:10]
    guided = fuzzing.Swarm.paper(population=population)
    soon = studies.campaigns(model, data.images[ten], data.labels[ten], iterations=iterations, seed=seed,
                             fuzzers={"guided": replace(guided, budget=fuzzing.Budget(l2=10))})
    few = ten[soon["guided"].errors.sum(0).argsort(descending=True, stable=True)[::2]]
    methods = {"noise": (fuzzing.fuzzer("noise", scale=1.0), "fuzzer == 'noise'"),
               "DeepSensor": (guided, "swarm == 'paper'"),
               "DeepSensor, constant": (replace(guided, fitness=fuzzing.Constant()),
                                        "swarm == 'constant'"),
               "DLFuzz": (fuzzing.fuzzer("dlfuzz"), "fuzzer == 'dlfuzz' and setting == 'paper'")}
    few_found = {l2: studies.campaigns(
        model, data.images[few], data.labels[few], iterations=iterations, seed=seed,
        fuzzers={name: replace(fuzzer, budget=fuzzing.Budget(l2=l2))
                 for name, (fuzzer, _) in methods.items()})
        for l2 in (0.5, 1, 2, 3, 4, 6, 8, 10, 12, 14)}
    plotted = run.recorded("quantity == 'error_rate' and bound.notna() and dataset == 'mnist' and "
                           "model == 'lenet5'")
    display(interactive.distance_slider(
        model, data.images[few], data.labels[few], few_found, classes=data.classes,
        curves={name: plotted.query(where).groupby("bound")["value"].mean().to_dict()
                for name, (_, where) in methods.items() if len(plotted)},
        source="From the records: LeNet-5 on MNIST, mean over the seeds.", colours=colours(methods)))
    if plotted.empty:
        print("no records yet: the figure has no curves")

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-errors")

# %% tags=["hide-input", "statements"]
CELL, LENETS, RIVALS = ["dataset", "model"], ["lenet1", "lenet4", "lenet5"], ["deepxplore", "dlfuzz", "deephunter"]
every = records.frame("deepsensor_sensitivity/test_errors")
error_rates = at_best(every[every["quantity"] == "error_rate"], *CELL)
ahead = {name: evidence.spread(lead_of(error_rates, "paper", name, *CELL, budget="none")) for name in RIVALS}
guidance = {budget: evidence.spread(lead_of(error_rates, "paper", "constant", "model", budget=budget))
            for budget in ("none", "paper", "8", "16")}
fewer_on_average = ahead["dlfuzz"]["mean"].groupby("model").max() < 0
says(("**The answer.** Without a bound on the distance, and in the mean over the seeds, DeepSensor finds more errors than "
      "DeepXplore and DeepHunter with every network that we ran. It finds fewer than DLFuzz with all of them but "
      f"{listed(fewer_on_average.index[~fewer_on_average])}; this is more than chance with "
      f"{listed([model for _, model in sides_of(ahead['dlfuzz']).behind])}.",
      all((ahead[name]["mean"] > 0).all() for name in ("deepxplore", "deephunter"))
      and (ahead["deephunter"]["low"] > 0).all() and (~fewer_on_average).sum() == 1))

# %% tags=["hide-input", "statements"]
in_print = printed_rates(published.table("deepsensor_sensitivity", 2), 20_000).loc[LENETS]
unguided, climbs = (mean_of(error_rates, "model", who=who, budget=budget)[LENETS]
                    for who, budget in (("constant", "none"), ("dlfuzz", "2")))
near_1, near_2 = (mean_of(error_rates, "model", who="paper", budget=budget)[LENETS] for budget in ("paper", "2"))
says((f"On the LeNets, a swarm that looks at no neuron has more errors still: {span(unguided)} %, close to the paper's "
      "count for DeepSensor.", (unguided - in_print["deepsensor"]).abs().max() < 5
      and (guidance["none"].loc[LENETS, "high"] < 0).all()),
     (f"What decides is the distance: within {2}, at most {rounded_up(near_2.max(), 1)} % of the guided swarm's examples are "
      "errors, in the mean.", near_2.max() < 2 and near_1.max() < 2),
     (f"DLFuzz, which follows a gradient, has {span(climbs)} % there.", climbs.min() > 50))

# %% [markdown]
# **What you will learn.** How to compare {term}`fuzzers <fuzzer>` at the same distance. How far an example
# must be for counts like the paper's. And how to find out whether a search is guided at all.
#
# ## Inputs
#
# Test images that the network classifies correctly, drawn at random.

# %% tags=["hide-input"]
accuracy = inference.accuracy(model, data.images, data.labels)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]
print(data)
print(f"accuracy {accuracy:.1%}; {len(x)} inputs, {len(x) * iterations} examples a fuzzer")

# %% [markdown]
# ## What is counted
#
# Every iteration makes as many examples as there are inputs. It makes one from each, but DeepHunter draws
# from its queue, some inputs several times and some not at all. A **test error** is an example whose class is
# not its input's. The **error categories** are the different wrong classes of an input, summed over the
# inputs. No method stops at its first error: otherwise 1,000 inputs could not give nearly 20,000 errors. An
# example with two inputs and three iterations:

# %% tags=["nbval-check-output"]
origin = torch.tensor([[0, 1], [0, 1], [0, 1]])
by_hand = fuzzing.Campaign(
    labels=torch.tensor([4, 9]), predicted=torch.tensor([[4, 7], [9, 7], [9, 3]]), origin=origin,
    l2=torch.tensor([[0.5, 0.9], [1.5, 2.0], [2.5, 3.0]]), linf=torch.zeros(3, 2),
    images=torch.zeros(2, 1, 1, 1), passes=6, seconds=0.0)
print(f"{int(by_hand.errors.sum())} test errors in {by_hand.categories()} categories, "
      f"{by_hand.within(l2=1.0)} of them within L2 = 1")

# %% [markdown]
# ## DeepSensor's swarm
#
# Around each input flies a swarm of {term}`particles <particle>`. Each particle is an image. It is
# drawn to the best image that it has been itself, and to the best image that any of them has been.
# The *fitness* says how good an image is: it is the share of neurons that are
# {term}`sensitive <sensitive neuron>` between the input and that image. [The swarm by
# hand](13_swarm_by_hand) explains Algorithm 1 and Eqs. 2 to 5 line by line; Eq. 1 is in [the
# chapter before](01_sensitive_neurons).
#
# ```{figure} ../../book/assets/deepsensor_overview.svg
# :alt: From top to bottom. A benign input. The particles are 100 images, at first random ones. Each goes into the network: how far does every neuron move, for each unit of distance from the input? Neurons for which this is above lambda are sensitive, and their share among all neurons is the fitness. An arrow leads back to the particles, as the swarm moves towards the best so far. When the share is above epsilon, or after the last iteration, the best of all particles is the test example.
# :width: 416px
# :name: fig-deepsensor-overview
#
# How DeepSensor makes a test example from a benign input, drawn after Fig. 2, Algorithm 1 and Section
# III of the paper.
# ```
#
# ## What the rivals climb
#
# **DeepXplore** and **DLFuzz** have no swarm. They move each image along the gradient of an
# objective, that is, in the direction in which the objective rises most. Let $z_c$ be the
# {term}`logit` of class $c$, and $a_n$ the activation of neuron $n$:
#
# - DeepXplore compares several networks $k$ that do the same task. The network under test, $t$,
#   should move away from the input's class $c$ while the others keep it. Besides, in each network
#   one neuron that was not active yet should fire:
#   $\sum_{k \ne t} z_{k,c} - \lambda_1 z_{t,c} + \lambda_2 \sum_k a_{k,n(k)}$.
# - DLFuzz has only one network. The network should move from $c$ to the runners-up $j$, and ten
#   neurons should fire: $\tfrac12 \sum_j z_j - z_c + \tfrac12 \sum_n a_n$.

# %%
def deepxplore(x, c, models, neurons, lambda1=1.0, lambda2=0.1):
    """The objective for images of class c; the first of the models is under test."""
    seen = [respond(each, x) for each in models]
    z, a = [each.logits[:, c] for each in seen], [each.raw for each in seen]
    return sum(z[1:]) - lambda1 * z[0] + lambda2 * sum(a_k[:, n] for a_k, n in zip(a, neurons))


def dlfuzz(x, c, model, runners_up, neurons):
    """The objective for images of class c."""
    z, a, _ = respond(model, x)
    return z[:, runners_up].sum(1) / 2 - z[:, c] + a[:, neurons].sum(1) / 2


# %% [markdown]
# Here is one step of each method for the first input. The gradient is divided by its root mean
# square. DeepXplore may only change the light here, so every pixel gets the gradient's mean. The
# engine's first example is the same image. The table shows what the step does to the network under test. The
# campaigns below are the engine's, which moves all images at once:

# %% tags=["hide-input"]
models = [model, *training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)]
home = inference.device_of(model)
draws = torch.Generator().manual_seed(seed)  # as the engine draws: a neuron of each network
responses = [respond(each, x[:1].to(home)) for each in models]
aims = [int(torch.randint(seen.raw.shape[1], (1,), generator=draws)) for seen in responses]
runners_up = responses[0].logits[0].index_fill(0, labels[0].to(home), -torch.inf).topk(len(data.classes) - 1).indices[:4]
heaviest = heavy(layout(model, x.to(home)).weights)  # DLFuzz's third strategy: neurons with large weights


def direction(objective, *about):
    """The gradient of an objective at the first input, with a root mean square of 1."""
    pixels = x[:1].to(home, copy=True).requires_grad_()
    gradient, = torch.autograd.grad(objective(pixels, int(labels[0]), *about).sum(), pixels)
    return (gradient / (gradient.square().mean().sqrt() + 1e-5)).cpu()


# %%
lit = (x[:1] + 10 * direction(deepxplore, models, aims).mean()).clamp(0, 1)
moved = (x[:1] + 0.02 * direction(dlfuzz, model, runners_up, heaviest)).clamp(0, 1)

# %% tags=["hide-input"]
one = {"constraint": "light", "threshold": 1.0, "others": models[1:],
       "reading": "differential" if models[1:] else "single"}
for mine, fuzzer in ((lit, fuzzing.DeepXplore(**one)),
                     (moved, fuzzing.DLFuzz(strategy="weight", neurons=len(heaviest)))):
    example = fuzzer.run(model, x[:1], labels[:1], iterations=1,
                         generator=torch.Generator().manual_seed(seed)).images
    compared(mine, example, type(fuzzer).__name__, of="inputs", tolerance=1e-3, but="the campaigns below")

# %% tags=["hide-input"]
climbed = torch.cat([x[:1], lit, moved])
own = respond(model, climbed.to(home)).logits.detach().cpu()
pd.DataFrame({"logit of its class": own[:, labels[0]],
              "largest other logit": own.index_fill(1, labels[0], -torch.inf).amax(1),
              "L2": (climbed - x[0]).flatten(1).norm(dim=1)},
             index=["first input", "DeepXplore", "DLFuzz"]).round(3)

# %% [markdown]
# ## The fuzzers
#
# Where the paper and the released code differ, we run both {term}`readings <reading>`:
#
# - **DeepSensor**, swarm `paper`: random starts, Eqs. 1 to 5, $\omega$ from 0.4 to 0.9 and
#   $\lambda = 0.5$; swarm `released`: the authors' script, with one particle that starts at the
#   input, but for a coverage term whose function the repository lacks.
# - **DeepXplore**, **DLFuzz** and **DeepHunter**, each twice: in the `paper`'s setting, and in the
#   `best` of the settings that its authors released. The best one is chosen below. The paper takes DLFuzz's
#   best strategy and does not name it; the setting `paper` has the first, `frequent`.
# - **DeepXplore**, `single`: without other networks to compare with. Where no other networks are at
#   hand, DeepXplore's other settings run in this way too.
# - The paper's swarm with a fitness that is **constant**, and with one that is **random**: they
#   show what the swarm does without any sensitivity.
# - Gaussian **noise**, as strong as the bound allows.

# %% tags=["hide-input"]
left = torch.ones(len(data), dtype=torch.bool).index_fill(0, chosen, False)
known = studies.known_images(dataset, data, chosen, references)
single = {FuzzerKey("deepxplore", "single"): fuzzing.fuzzer("deepxplore", reading="single")} if models[1:] else {}

# %%
swarm = fuzzing.Swarm.paper(population=population)
readings = {"paper": swarm, "released": fuzzing.Swarm.released(),
            "constant": replace(swarm, fitness=fuzzing.Constant()),
            "random": replace(swarm, fitness=fuzzing.RandomFitness(seed=seed))}
rivals = studies.rivals(models[1:], known, best=(data.images[left], data.labels[left]),
                        count=held_out)
fuzzers = {FuzzerKey("deepsensor", name): each for name, each in readings.items()} | single | rivals
fuzzers[FuzzerKey("noise")] = fuzzing.fuzzer("noise", scale=1.0)
fuzzers |= studies.one_more_fuzzer(beside, reference=known)

# %% [markdown]
# All fuzzers run at all bounds on the L2 distance. Table II names no bound (`none`); Section IV.C
# has one (`paper`), for coverage.

# %% tags=["hide-input"]
cell = {name: value for name, value in run.parameters.items() if name != "held_out"} | {"beside": ""}
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
bounds = studies.bounds(distances, paper=near)
found = studies.at_bounds(model, x, labels, running, bounds, iterations=iterations, seed=seed)
measured = pd.concat([kept, outcomes.table(found, outcomes.every_example, near=near)])

# %% tags=["hide-input", "hide-output"]
run.add(outcomes.tidy(measured, bounds))
SHOWN = ["error_rate", "categories_per_seed", "l2", "share_near", "passes",
         "errors_per_1000_passes"]
headed(measured.loc["none", SHOWN].round(2))

# %% [markdown]
# The folded table is of this run, without a bound. *Errors* are in percent of all examples, so that runs with
# different numbers of inputs can be compared. *L2* is the mean distance, and *share of errors near* is the share of
# the errors within the distance `near`. A {term}`pass` is one image sent through the network; a gradient counts as
# two passes more. DeepSensor pays for its whole swarm but shows only one of its particles.

# %% [markdown]
# ## The rivals at their best
#
# Each rival's authors released several settings. The paper names one of DeepXplore's and none of
# DLFuzz's. So every setting runs on `held_out` *other* inputs, at each bound anew, and `best` is
# the setting with the most test errors there. The folded table shows which setting that is without a
# bound, and what each setting then finds from the first 200 of the measured inputs. Two endings of
# the names need a word. With `free`, images leave [0, 1] during the search and are clipped before
# they are judged. With `unclipped`, they are clipped only when they are saved, as in the released
# program. What is counted then are not images, so `best` is not chosen among these settings.

# %% tags=["hide-input", "hide-output"]
for budget, bound in bounds.items():
    run.add(studies.choices(rivals, model, x, iterations=iterations, bound=bound), budget=budget,
            bound=bound)
settings = studies.every_setting(models[1:], known)
run.add(outcomes.tidy(outcomes.table(
    {("none", key): campaign for key, campaign in studies.campaigns(
        model, x[:200], labels[:200], settings, iterations=iterations, seed=seed).items()},
    outcomes.every_example, near=near), bounds))
SETTINGS = ("budget == 'none' and setting.notna() and setting not in ('paper', 'best') and "
            "quantity in ('error_rate', 'l2', 'categories_per_seed', "
            "'held_out_error_rate', 'chosen')")
wide(run.live, SETTINGS, index=["fuzzer", "setting"], columns="quantity")

# %% [markdown]
# ## Errors against distance
#
# Visibility does not depend on the fuzzer, so all get the same distance limit. In which panel does a line of the swarm
# leave that of noise, and at which distance? The figure of this run is folded below that of the records.

# %% tags=["hide-input"]
table_2 = published.table("deepsensor_sensitivity", 2)
printed = table_2.query("quantity == 'test_errors'").pivot(
    index="model", columns="fuzzer", values="value") / 200  # percent of 20,000
BLIND = [FuzzerKey("deepsensor", name) for name in ("constant", "random")]
PANELS = [[key for key in fuzzers if key not in BLIND],
          [FuzzerKey("deepsensor", "paper"), *BLIND, FuzzerKey("noise")]]


def goal(name: str, fuzzer: str = "deepsensor") -> float:
    """The share of errors that Table II prints for a network, or for LeNet-5."""
    return printed.loc[name if name in printed.index else "lenet5"].get(
        fuzzer, printed.loc["lenet5", "deepsensor"])


# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the examples that are test errors, against the bound on their L2 distance, from the records; mean over the seeds. Two panels for each network: all fuzzers, then the swarm with three fitnesses. Broken line: DeepSensor's share in Table II, dotted line: the bound of IV.C.", "name": "fig-deepsensor-distance-records"}}
errors_against_distance(run.recorded(), PANELS, goal=goal, near=True)
run.show(recorded=True)

# %% tags=["hide-input", "hide-output"] mystnb={"figure": {"caption": "The same for the run above. Left: all fuzzers; right: the swarm with three fitnesses.", "name": "fig-deepsensor-distance"}}
errors_against_distance(run.live, PANELS, goal=goal, near=True)
run.show()

# %% [markdown]
# ## The distance that the published counts need
#
# At which distance does a line of the figure first reach the fuzzer's own count of Table II (for
# noise: DeepSensor's count)? Between two bounds we interpolate. `-` means that the line does not
# reach the count within the largest bound. The paper's Fig. 8 prints no distance, and shows examples that can
# hardly be told from their inputs. The only bound in the paper is `near`. The last column has the test errors
# within it. The table is folded, because this run is small; the records follow below.

# %% tags=["hide-input", "hide-output"]
rates = measured["error_rate"].drop("none", level="budget").rename(index=bounds, level=0)
reach = {key: outcomes.distance_needed(rates.xs(key, level="key"), goal(model_name, key.fuzzer))
         for key in fuzzers}
for key, value in reach.items():
    run.add({"distance_needed": value}, **key.columns)
norm = float(x.flatten(1).norm(dim=1).mean())
print(f"an input's own L2 norm is {norm:.1f} on average: the distance to a black image")
headed(pd.DataFrame({"distance needed": pd.Series(reach).map(lambda v: "-" if pd.isna(v) else f"{v:.1f}"),
                     f"errors within {near:g} (%)": measured["error_rate"].loc["paper"].round(2)}))

# %% [markdown]
# ## Is the swarm guided?
#
# Under a constant fitness nothing ever improves, so each swarm shows the start of its first
# particle: a random image within the bound. What sensitivity adds is the difference from that
# swarm, in points. The folded table has the test errors of all swarms, in percent of this run's examples.

# %% tags=["hide-input", "hide-output"]
swarms = {key: measured["error_rate"].xs(key, level="key")
          for key in fuzzers if key.fuzzer == "deepsensor"}
for budget in bounds:
    run.add({f"over_{key.reading}": swarms[FuzzerKey("deepsensor", "paper")][budget] - swarms[key][budget]
             for key in BLIND}, fuzzer="deepsensor", budget=budget, bound=bounds[budget])
headed(pd.DataFrame(swarms).round(1))

# %% [markdown]
# ## What the claims ask for
#
# The table divides DeepSensor's errors by those of each baseline, and by the mean of the three, in
# the paper's setting and at their best. A baseline that finds no error counts as if it had found
# one. It is folded, because this small run decides nothing; the verdict has the same ratios from the records.

# %% tags=["hide-input", "hide-output"]
run.add(row for quantity, ratio in (("test_errors", "errors_over"),
                                    ("error_categories", "categories_over"))
        for row in outcomes.ratios(measured[quantity], swarms, list(rivals), ratio, bounds))
run.add({"accuracy": 100 * accuracy})
run.save(data, device=device)
wide(run.live, "swarm in ('paper', 'released') and baseline.notna()",
     index=["quantity", "swarm", "setting", "baseline"], columns="budget", digits=2)

# %% [markdown]
# ## Table II, beside the paper's
#
# As in the paper, there is no bound here. The tables show test errors in percent of all examples,
# and error categories for each input. Our numbers are those of DeepSensor's swarm `paper` and of
# the rivals in the paper's setting (DeepXplore without other networks where there were none): mean
# [least, greatest] over the random seeds. VGG16's CIFAR-10 is a JPEG copy. Others trained ResNet-20 and MobileNet,
# which has width 0.75: with these two, the inputs and the search differ from seed to seed, not the weights. We ran
# what two processor cores allow: the folded table has the inputs, particles, iterations and random seeds.

# %% tags=["hide-input", "hide-output"]
runs = run.recorded().groupby(["dataset", "model"], sort=False)
headed(pd.DataFrame({word: runs[name].nunique() if name == "seed" else runs[name].min() for name, word in SIZES.items()})
       .rename_axis(columns="from the records"))

# %% tags=["hide-input", "hide-output", "statements"]
says(*rows_kept(every))

# %% tags=["hide-input"]
TEXT = "budget == 'none' and (swarm == 'paper' or setting == 'paper') and quantity == "
ON = ["dataset", "model", "fuzzer", "quantity"]
errors = table_2[table_2["quantity"] == "test_errors"]
run.beside(errors.assign(quantity="error_rate", value=errors["value"] / 200), TEXT + "'error_rate'",
           on=ON, digits=1)

# %% tags=["hide-input"]
run.beside(table_2.query("quantity == 'categories_per_seed'"), TEXT + "'categories_per_seed'", on=ON)

# %% [markdown]
# Folded are two more tables. The first has the test errors of the rivals at their best. The second has all
# their settings. It gives the mean distance, the error rate on the other inputs, by which the best setting
# was chosen, and with what share of the random seeds it was chosen.

# %% tags=["hide-input", "hide-output"]
run.beside(errors.query("fuzzer != 'deepsensor'").assign(
    quantity="error_rate", value=lambda table: table["value"] / 200),
    "budget == 'none' and setting == 'best' and quantity == 'error_rate'", on=ON, digits=1)

# %% tags=["hide-input", "hide-output"]
wide(run.recorded(), SETTINGS, index=["dataset", "model", "fuzzer", "setting"], columns="quantity")

# %% tags=["hide-input", "statements"]
unclear, beside_dlfuzz = sides_of(ahead["deepxplore"]), sides_of(ahead["dlfuzz"])
more, fewer = (ahead["dlfuzz"]["mean"][cells] for cells in (beside_dlfuzz.ahead, beside_dlfuzz.behind))
theirs, ours_in_all = (mean_of(every, *CELL, quantity="categories_per_seed", budget="none", **of)
                       for of in ({"who": "dlfuzz", "setting": "best"}, {"who": "paper"}))
says(*([f"DeepSensor's lead over DeepXplore may be chance with {networks(unclear.undecided)}."] if unclear.undecided else []),
     (f"Beside DLFuzz, it finds fewer errors with {listed(model for _, model in beside_dlfuzz.behind)}, by "
      f"{span(-fewer)} points.", len(fewer) > 0),
     (f"It finds more only with {listed(model for _, model in beside_dlfuzz.ahead)}, by {span(more, 1)} points.",
      len(more) == 1),
     *([f"With {networks(beside_dlfuzz.undecided)}, the seeds do not decide."] if beside_dlfuzz.undecided else []),
     (f"DLFuzz also finds more wrong classes for an input with every network that we ran: {span(theirs, 1)}, and DeepSensor "
      f"{span(ours_in_all, 1)}.", (theirs > ours_in_all).all()))

# %% tags=["hide-input", "statements"]
measured_rates = pd.DataFrame({name: mean_of(error_rates, "model", who=name, budget="none")[LENETS] for name in RIVALS})
gap = (in_print[RIVALS] - measured_rates).abs().max()
close, far_off = (gap.index[which] for which in (gap < 10, gap >= 10))
says(f"On the LeNets the rivals ran {of_rivals(error_rates[error_rates['model'].isin(LENETS) & error_rates['fuzzer'].isin(RIVALS)])}.",
     *([f"For {listed(close)}, our error rates come within {gap[close].max():.1f} points of the printed ones."]
       if len(close) else []),
     *([f"For {listed(far_off)} they do not: ours are {span(measured_rates[far_off].stack())} %, the printed ones "
        f"{span(in_print[far_off].stack())} %. So a ratio of DeepSensor to these "
        "rivals says as much about those runs as about DeepSensor."] if len(far_off) else []))

# %% tags=["hide-input", "statements"]
tried = mean_of(every[every["model"].isin(LENETS)], "setting", "fuzzer", "model", quantity="error_rate", budget="none").unstack()
spots, hunts = (tried.xs(name, level="fuzzer") - in_print[name] for name in ("deepxplore", "deephunter"))
off = spots.abs().max(axis=1)
says((f"On the {200} inputs on which every setting ran, two come near the printed rates of DeepXplore: black spots "
      "(`blackout_unclipped`), the constraint that the paper names, and a rectangle of pixels (`occlusion_unclipped`). "
      f"They are within {off['blackout_unclipped']:.1f} and {off['occlusion_unclipped']:.1f} points.",
      {*off.index[off < 15]} == {"occlusion_unclipped", "blackout_unclipped"}),
     "In both, the network judges inputs before they are cut to pixel values. Such inputs have values that no image "
     "has, so we do not count these settings among its best.",
     (f"For DeepHunter no setting comes near: the highest rate is {tried.xs('deephunter', level='fuzzer').max(axis=None):.0f} %.",
      hunts.max(axis=None) < -50))

# %% tags=["hide-input", "statements"]
photo = mean_of(every, "setting", "fuzzer", model="mobilenet", quantity="error_rate", budget="none")
says("With MobileNet, the rivals at their best have "
     + listed(f"{photo['best', name]:.0f} % errors ({shown(name)})" for name in RIVALS) + ".",
     (f"In the setting that the paper names, DeepXplore has {photo['paper', 'deepxplore']:.0f} %. It may "
      "only blacken small squares there, and this hardly ever changes the class.", photo["paper", "deepxplore"] < 2))

# %% [markdown]
# ## Over all records
#
# Three folded tables have means over the random seeds, from the {term}`records <record>`:
#
# - the distances that the published counts need; with `-`, the largest bound is not enough with some seed;
# - how many points the sensitive fitness is above a constant one and above a random one;
# - errors per 1,000 passes, with the rivals in the paper's setting. DeepSensor's passes grow with its population: 100
#   on MNIST, 10 on CIFAR-10, 5 on ImageNet. So compare within a column.

# %% tags=["hide-input", "hide-output"]
ours = run.recorded().sort_values("bound", kind="stable")  # no bound comes last
ROW = [name for name in ("fuzzer", "swarm", "reading", "setting") if name in ours]
display(wide(ours, "quantity == 'distance_needed'", index=ROW, columns=["dataset", "model"],
             blank="-"))
display(wide(ours, "quantity in ('over_constant', 'over_random')",
             index=["dataset", "model", "quantity"], columns="budget"))
wide(ours, TEXT + "'errors_per_1000_passes'", index="fuzzer", columns=["dataset", "model"])

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% tags=["hide-input", "statements"]
judged = evidence.verdict("deepsensor-sensitivity-errors").cells
full = judged[judged["mean"].isna()].groupby(CELL).size()
says((f"The verdicts on the number of errors leave out {networks(full.index)}: with some seed, all examples are errors there, with "
      "the guide and without it. The sentences below Table II compare their counts with the rivals' all the same.", len(full) > 0))

# %% [markdown]
# **What it means.** A swarm that starts at random pixels shows noise from its first iteration on, and
# the network has to give noise some class. If that is not the input's class, it counts as an error in
# each iteration, although it is far from the imperceptible perturbations of Fig. 8. So three numbers
# belong beside such a count: the distance, the count of the same search without its guide, and the
# passes that the search cost.

# %% tags=["hide-input", "statements"]
at_8, at_16 = sides_of(guidance["8"]), sides_of(guidance["16"])
near_by = guidance["paper"].loc["resnet20"]
says((f"At a distance of {8}, where a digit is already hard to read, sensitive neurons do guide the swarm on MNIST. Paired by "
      f"seed, it has more errors than under a constant fitness, with {listed(at_8.ahead)}.", {*LENETS} == {*at_8.ahead}),
     (f"With {listed(at_8.behind)} it has fewer, by {-guidance['8'].loc[at_8.behind[0], 'mean']:.0f} points; but within a "
      f"distance of 1, it has {near_by['mean']:.0f} points more.",
      at_8.behind == ["resnet20"] and near_by["low"] > 0),
     (f"With {listed(at_8.undecided)} the seeds do not decide.", {*at_8.undecided} == {"vgg16", "mobilenet"}
      and "mobilenet" in at_16.undecided))

# %% tags=["hide-input", "statements"]
colour, photographs = guidance["none"].loc[["resnet20", "vgg16"]], every[every["model"] == "mobilenet"]
start = mean_of(error_rates, "model", who="constant", budget="none")[colour.index]
inside = mean_of(error_rates, "model", who="dlfuzz", budget="paper")[["resnet20", "vgg16", "mobilenet"]]
rate_of, way_of = ({who: seeds_of(photographs, who=who, quantity=quantity, budget="none") for who in ("paper", "constant")}
                   for quantity in ("error_rate", "l2"))
says(("On CIFAR-10 and on ImageNet, as on MNIST, most images at which a search without a bound starts "
      "are errors already. But unlike on MNIST, the guided swarm does not lose them in the mean; with ResNet-20, "
      f"the seeds leave up to {rounded_up(colour.loc['resnet20'].abs().max())} points either way.", start.min() > 80
      and colour.loc["resnet20", "low"] < 0 < colour.loc["resnet20", "high"] and not colour.loc["vgg16"].any()),
     ("With MobileNet every example of the guided swarm is an error, and so is every one under a constant fitness: the "
      "guided swarm finds nothing better than its start, and stays there.", min(rate.min() for rate in rate_of.values()) == 100 and way_of["paper"].equals(way_of["constant"])),
     f"Within the bound of IV.C, DLFuzz has {span(inside)} % errors with these three networks. The table has the errors of a "
     "constant fitness, and what the guided swarm adds to them, in points, with its 95 % interval.")

# %% tags=["hide-input", "records"]
in_all = records.frame("deepsensor_sensitivity/test_errors")
if len(in_all):
    added = {f"added, {where}": written(evidence.spread(lead_of(
        in_all, "paper", "constant", "model", quantity="error_rate", budget=budget)))
        for budget, where in (("none", "no bound"), ("8", "L2 8"), ("16", "L2 16"))}
    blind = mean_of(in_all, "model", who="constant", quantity="error_rate", budget="none")
    display(headed(pd.DataFrame({"constant (%)": blind.map("{:.0f}".format), **added}).fillna("")
                   .rename_axis("network, from the records")))

# %% [markdown]
# ## Exercises
#
# **1. Think.** The inertia of Eq. 3 rises from 0.4 to 0.9; most swarms let it fall. Run
# `fuzzing.Swarm(population=10, inertia=(0.9, 0.4), budget=fuzzing.Budget(l2=4.0))`. What changes?
#
# ```{admonition} Solution
# :class: dropdown
# A particle keeps much of its last step at first, and less of it later. This is meant to let the
# particles travel first and settle later. A particle that leaves the bound is brought back to its
# edge, so the distance tells little. Look at the fitness of the last examples as well:
# `fuzzing.Swarm().fitness(model, x, labels)` gives the function that scores images.
# ```
#
# **2. Think.** Why may the swarm find *fewer* error categories the more errors it finds?
#
# ```{admonition} Solution
# :class: dropdown
# The example of an iteration is the swarm's best position so far. Until the swarm finds a better one,
# each iteration shows the same image, and so the same wrong class. A method that shows a fresh image
# in every iteration, such as noise, can visit more classes: compare the wrong classes per input in the
# table of the fuzzers. Try `report="current"`.
# ```
#
# **3. Code.** Write `my_categories(labels, predicted)`: how many error categories a run found for
# all inputs together. Count each wrong class once for each input. `predicted` is (iterations, N).
# The cell says whether it is right.

# %%
my_categories = None  # your function of tensors (N,) and (iterations, N)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def categories(labels, predicted):
        return sum(len(set(column.tolist()) - {int(label)})
                   for label, column in zip(labels, predicted.T))

    classes, given = torch.tensor([3, 5]), torch.tensor([[3, 1], [8, 1], [8, 2]])
    check(answer, categories, (classes, given), (classes.flip(0), given))


is_right(my_categories)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_categories(labels, predicted):
#     pairs = {(i, int(p)) for row in predicted for i, p in enumerate(row) if p != labels[i]}
#     return len(pairs)
#
# is_right(my_categories)
# ~~~
#
# All errors of one input may be of one category: many errors and many categories are two different
# aims.
# ```
