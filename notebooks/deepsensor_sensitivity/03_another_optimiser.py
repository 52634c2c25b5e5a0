# %% [markdown]
# # Would another optimiser do as well?
#
# **The question.** DeepSensor chose particle swarms "due to [their] excellent optimization
# performance" (II.D) and compares them with no other optimiser. Does it matter which one maximises
# the share of {term}`sensitive neurons <sensitive neuron>`, the swarm or, say, a
# {term}`differential evolution`? And does a larger share mean more errors?

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 12  # benign inputs to start from
iterations = 20  # generations
population = 10  # images scored in each
l2 = 8.0  # a bound on the L2 distance of an example from its input; 2 on ImageNet

# %% tags=["hide-input"]
from dataclasses import dataclass

import matplotlib.pyplot as plt
import pandas as pd
import torch
from scipy.optimize import differential_evolution

from dnnbook import interactive, studies, training
from dnnbook.chapters import declared
from dnnbook.chapters.statements import says
from dnnbook.data import load
from dnnbook.display import plots, whose
from dnnbook.records import records
from dnnbook.studies.findings.deepsensor import always_most, seeds_of, table_of
from dnnbook.words import networks, span
from dnnlib import fuzzing
from dnnlib.fuzzing.protocol import Log
from dnnlib.neurons import activations, shapley
from dnnlib.neurons.sensitivity import SensitiveNeurons

plots.style()

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

quiz("Suppose that the evolution reaches a larger share of sensitive neurons than the swarm. What "
     "follows for its test errors?",
     {"It must find more of them": False, "It may find more or fewer": True,
      "It must find fewer": False},
     "The share of sensitive neurons is what both search for; whether an image with many of them "
     "is an error is another question, and the columns of test errors answer it.")

# %% tags=["hide-input", "statements"]
kept = records.existing("deepsensor_excitable/optimisers")
sensed, NAMES = kept[kept["fitness"] == "sensitive"], ["swarm", "genetic algorithm", "ant colony", "differential evolution"]
near_rates = table_of(sensed, NAMES, quantity="error_rate", budget="near")
ratio = seeds_of(sensed, who="differential evolution", quantity="errors_over_swarm", budget="near")
free, reached = (table_of(sensed, ["swarm", "no search"], quantity=quantity, budget="none") for quantity in ("error_rate", "reached"))
says((f"**The answer.** It matters within a bound: up to an L2 distance of {kept['near'].max():g}, differential "
      f"evolution finds {span(ratio, 1)} times the errors of the swarm.", ratio.min() > 1.5
      and always_most(near_rates, "differential evolution")),
     ("But a larger share need not mean more errors. Without a bound, the swarm makes more neurons sensitive than the "
      "random start, and has fewer errors.", (reached["swarm"] > reached["no search"]).all()
      and (free["swarm"] < free["no search"]).all()),
     "These records are those of [a chapter on the second paper](../deepsensor_excitable/13_optimisers), with "
     f"{networks(kept[['dataset', 'model']].drop_duplicates().itertuples(index=False))}; below is a small run.")

# %% tags=["hide-input"]
declared.check("deepsensor_sensitivity/03", dataset=dataset, model_name=model_name, recipe=recipe,
               seed=seed, inputs=inputs, iterations=iterations, population=population, l2=l2)
data = load(dataset)
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]

# %% [markdown]
# **What you will learn.** How to write a {term}`fuzzer` of your own, here around SciPy's
# {term}`differential evolution`; and how to keep two questions apart: how well a search optimises,
# and what its objective is worth.
#
# ## The swarm in flight
#
# Each point is a {term}`particle`, that is, an image, seen from the input (the star). We draw the
# plane in which the particles are most spread out. Press *Play*, or go step by step, and switch
# what the {term}`swarm` searches for. Under every {term}`fitness` the particles start at the same
# random images, brought within the bound. Does the best fitness ever rise, and when for the last time?
# Where it never rises, the picture says so: then nothing that the flight finds draws the swarm. A random fitness
# rises too, though it knows nothing about the network.

# %% tags=["hide-input"]
if max(data.shape[1:]) <= 32:
    flying = studies.swarms(fuzzing.Swarm(population=population, budget=fuzzing.Budget(l2=l2)),
                            "sensitive excitable constant random", seed=seed)
    counted = {"sensitive": activations.record(model, x[:1]).values.shape[1],
               "excitable": shapley.Game(model, x[:1], 1 - x[:1], labels[:1]).players}
    display(interactive.swarm_movie(
        model, x[0], int(labels[0]), {key.reading: swarm for key, swarm in flying.items()},
        iterations=iterations, classes=data.classes, seed=seed,
        neurons=counted))

# %% [markdown]
# ## A fuzzer of your own
#
# A fuzzer is a frozen dataclass with a method `run`; a `Log` keeps count. Differential evolution
# makes a new candidate from its best member and two others, $x_\text{best} + F (x_1 - x_2)$. It
# mixes the candidate pixel by pixel with an old member and keeps the better of the two. It starts
# at random images, as the swarm does, and in each iteration it shows its best image so far. SciPy
# minimises, so it needs a cost:

# %% tags=["hide-input"]
def cost_of(score, budget, clean, i, bests):
    """The cost of candidates (pixels, N) for input number ``i``; ``bests`` gets the best so far."""
    reached = [-1.0]

    def cost(candidates):
        x = torch.from_numpy(candidates.T).float().to(clean.device).view(-1, *clean.shape)
        x = budget.project(x, clean.expand_as(x))
        found = score(x, torch.full((len(x),), i, device=x.device))
        bests.append(x[found.argmax()] if float(found.max()) > max(reached) else bests[-1])
        reached.append(float(found.max()))
        return -found.cpu().double().numpy()

    return cost


# %% tags=["hide-input"]
@torch.no_grad()
def evolve(search, score, clean, i, iterations, generator):
    """The best image (C, H, W) after each generation, for input number ``i``."""
    bests = []
    start = torch.rand(search.population, clean.numel(), generator=generator).numpy()
    differential_evolution(
        cost_of(score, search.budget, clean, i, bests), [(0, 1)] * clean.numel(), init=start,
        maxiter=iterations - 1, atol=-1, tol=0, recombination=search.recombination, polish=False,
        vectorized=True, updating="deferred",
        seed=int(torch.randint(2**31, (), generator=generator)))
    return bests


# %%
@dataclass(frozen=True, kw_only=True)
class Evolution:
    """SciPy's differential evolution in the place of the swarm; the same fitness and passes."""
    budget: fuzzing.Budget
    population: int
    recombination: float = 0.7  # SciPy's default

    def run(self, model, x, labels, *, iterations, generator, watch=None):
        log = Log(model, x, labels, watch)
        score = SensitiveNeurons()(model, log.inputs, log.labels)
        log.passes += len(x) * (1 + iterations * self.population)
        found = [evolve(self, score, clean, i, iterations, generator)
                 for i, clean in enumerate(log.inputs)]
        for best in zip(*found):
            log.add(torch.stack(best))
        return log.campaign()


# %% [markdown]
# ## Three searches, the same budget
#
# We compare the swarm, the evolution, and the swarm with a constant fitness, which shows one of its
# random starts and searches for nothing. No image is farther than `l2` from its input. The first
# two searches send nearly the same number of images through the network ({term}`passes <pass>`).

# %%
budget = fuzzing.Budget(l2=l2)
fuzzers = {"swarm": fuzzing.Swarm(population=population, budget=budget),
           "evolution": Evolution(population=population, budget=budget),
           "no search": fuzzing.Swarm(population=population, budget=budget,
                                      fitness=fuzzing.Constant())}

# %%
score = SensitiveNeurons()(model, x, labels)
fitness, campaigns = {}, {}
for name, fuzzer in fuzzers.items():
    examples = []
    campaigns[name] = fuzzer.run(model, x, labels, iterations=iterations, watch=examples.append,
                                 generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        fitness[name] = 100 * torch.stack([score(e, torch.arange(len(e))) for e in examples])

# %% tags=["hide-input"]
pd.DataFrame({name: {"fitness, first": float(fitness[name][0].mean()),
                     "fitness, last": float(fitness[name][-1].mean()),
                     "test errors, first": float(100 * found.errors[0].double().mean()),
                     "test errors, last": float(100 * found.errors[-1].double().mean()),
                     "L2": float(found.l2.mean()), "passes": found.passes}
              for name, found in campaigns.items()}).T.round(1)

# %% [markdown]
# Fitness is in percent of the neurons, and {term}`test errors <test error>` are in percent of the
# inputs.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of sensitive neurons of the example shown after each iteration, mean over the inputs.", "name": "fig-deepsensor-optimisers"}}
figure, axis = plt.subplots(figsize=(5.5, 3.2))
for name, values in fitness.items():
    axis.plot(range(1, iterations + 1), values.mean(1), "o-", ms=3, label=name)
axis.set(xlabel="iteration", ylabel="sensitive neurons (%)", xticks=range(0, iterations + 1, 5))
axis.legend()
whose.show(whose.run_of(dataset, model_name, seed, recipe=recipe, inputs=inputs, population=population, L2=l2))

# %% [markdown]
# **What it means.** The figure shows which search gets more out of nearly the same number of passes. The
# columns of test errors show what that is worth. Judge an optimiser by the first, and DeepSensor's idea by
# the second. If the search without any fitness finds errors as often, this search adds nothing; a stronger
# one still may. [A chapter on the second paper](../deepsensor_excitable/13_optimisers) compares four
# optimisers, over several random seeds.

# %% tags=["hide-input"]
reached = {name: float(values[-1].mean()) for name, values in fitness.items()}
wrong = {name: float(100 * campaign.errors[-1].double().mean())
         for name, campaign in campaigns.items()}
more, less = sorted(["swarm", "evolution"], key=lambda name: -reached[name])
says(f"In the run above the {more} ends with {reached[more]:.1f} % of the neurons sensitive, the {less} "
     f"with {reached[less]:.1f} %, and the start that nothing moved with {reached['no search']:.1f} %. "
     f"Test errors among the last examples: {more} {wrong[more]:.0f} %, {less} {wrong[less]:.0f} %, start "
     f"{wrong['no search']:.0f} %.",
     f"These are {len(x)} inputs, one network and one random seed: raise `inputs` before you believe a "
     "difference of one or two inputs.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** An image has hundreds of pixels, a population ten members. Why can differential
# evolution not reach every image from there?
#
# ```{admonition} Solution
# :class: dropdown
# A child is the best member plus a difference of two others. Without the mixing
# (`recombination=1.0`), all children lie in the nine-dimensional space that the members span,
# except for pixels that leave [0, 1], which SciPy draws anew. Mixing leaves that space. But apart
# from the pixels drawn anew, each pixel of a child still comes from the members' values of this
# pixel: it is the value of the old member, or a sum as above of the values of three members.
# ```
#
# **2. Think.** Give the fitness a gradient instead: what would you maximise, and which fuzzer of
# [the last chapter](02_test_errors) is then nearly the same?
#
# ```{admonition} Solution
# :class: dropdown
# The share of neurons above a threshold has no gradient to follow, but a sum of activations has one.
# {term}`DLFuzz` climbs such a sum, of ten neurons. It also raises the {term}`logits <logit>` of wrong
# classes and lowers that of the right class. Set `runner_up_weight=0` to leave the logits of wrong
# classes out; the logit of the right class stays.
# ```
#
# **3. Code.** Write `my_child(best, a, b, weight)`: a child in differential evolution, the best
# member plus the weighted difference of two others, its pixels brought back to [0, 1]. The cell
# says whether it is right.

# %%
my_child = None  # your function of three tensors of one shape, and a number

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    members = torch.tensor([[0.2, 0.9], [0.5, 0.8], [0.1, 0.3]])
    check(answer, lambda m, a, b, w: (m + w * (a - b)).clamp(0, 1), (*members, 0.5), (*members, 2.0))


is_right(my_child)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_child(best, a, b, weight):
#     return torch.clamp(best + weight * (a - b), min=0, max=1)
#
# is_right(my_child)
# ~~~
#
# While the members differ much, the steps are long. When all members agree, the search is over.
# ```
