# %% [markdown]
# # Does it matter how the swarm is built?
#
# **The question.** The paper describes its {term}`swarm` in 23 short lines, and leaves much of it open (III.D, IV.B,
# Algorithm 1). [The swarm by hand](13_swarm_by_hand) lists places where the listing is open. It does not even
# name other choices, such as the number of particles. Would the swarm find other errors if we had chosen otherwise?

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 12  # benign inputs to start from
iterations = 20  # of every swarm but one
population = 20  # particles to an input; the second paper on DeepSensor has 100
near = 8.0  # a bound on the L2 distance, within which the swarms are compared again
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace

import pandas as pd
import torch

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.comparisons import sizes
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import outcomes
from dnnbook.studies.findings.deepsensor import ahead_of_one, each_seed, printed_rates, seeds_of
from dnnbook.words import listed
from dnnlib import fuzzing
from dnnlib.fuzzing import Swarm
from dnnlib.neurons.sensitivity import SensitiveNeurons

plots.style()
run = Experiment("deepsensor_sensitivity/choices", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed, inputs=inputs, iterations=iterations, population=population, near=near)

# %% tags=["hide-input", "statements"]
every = records.existing("deepsensor_sensitivity/choices")
free, bounded = (seeds_of(every, "choice", quantity="error_rate", budget=budget).unstack("choice")
                 for budget in ("none", "near"))
added = evidence.corrected(ahead_of_one(bounded, "as the text", "no search"))
one, ten, many = (bounded[name] for name in ("one particle", "ten particles", "as the text"))
says((f"**The answer.** Yes. Within an L2 distance of {every['near'].max():g}, {len(added)} choices find fewer errors "
      "than the text's, and the seeds show none that finds more.", added.max() < 0),
     ("The population alone decides much: one particle finds exactly the errors of the start that nothing moves, and a hundred "
      f"find {many.mean() / one.mean():.1f} times as many.", (one == bounded["no search"]).all() and (one < ten).all()
      and (ten < many).all()))

# %% tags=["hide-input", "statements"]
searching = [name for name in free if name not in ("no search", "released script")]
lost = each_seed(free[searching], free["no search"]).behind
more = each_seed(bounded[searching], bounded["no search"]).ahead
says((f"Without a bound, most starts are errors already ({free['no search'].mean():.0f} %), and with most choices the search "
      "loses some. So judge a swarm within a bound.", len(more) > len(searching) / 2 and len(lost) > len(searching) / 2
      and free["no search"].mean() > 50))

# %% [markdown]
# ## In one picture
#
# Each line is a swarm with one choice changed; only *released script* changes several. The dot is the share of its
# examples that are {term}`test errors <test error>`, as a mean over the random seeds. The two lines to compare with
# are
# *as the text*, and *no search*: the start that nothing moves.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Test errors of the swarm with one choice changed, without a bound and within one, from the records. Mean over the random seeds; lines give the range.", "name": "fig-swarm-choices-records"}}
BOUNDS = {"none": "without a bound", "near": f"within L2 = {near:g}"}


def errors_by_choice(rows: pd.DataFrame) -> None:
    """Percent of the examples of all iterations that are errors, a line for each choice."""
    rates = rows[rows["quantity"] == "error_rate"]
    plots.dots(rates.assign(bound=rates["budget"].map(BOUNDS)), row="choice", panel=["bound"],
               xlabel="test errors (%)")


kept = run.recorded()
plots.nothing() if kept.empty else errors_by_choice(kept)
run.show(recorded=True)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

last = {name: Swarm(inertia=ends).inertias(20)[-1] for name, ends in (
    ("From 0.4 to 0.9, as printed", (0.4, 0.9)), ("From 0.9 to 0.4", (0.9, 0.4)))}
quiz("The inertia is the share of its last step that a particle keeps. With which inertia do particles come to rest?",
     {name: share < 0.5 for name, share in last.items()},
     "A particle comes to rest if it keeps less and less of its steps. Where the two pulls move it on, it still "
     "flies. The chapter tests whether this matters for errors.")

# %% [markdown]
# **What you will learn.** How to test such choices: change one at a time, keep the inputs and the random
# seeds, and look at the difference.
#
# ## The choices
#
# The first line is the text as we read it; the other chapters have it too, on CIFAR-10 and ImageNet with ten
# or five particles. Each line below changes one thing, except the last:
#
# - *inertia falls*: from 0.9 to 0.4, as in other swarms. The paper's Eq. 3 rises.
# - *a number for each pixel*: $rand(\cdot)$ of Eq. 4 is drawn for each pixel, and not once for each particle.
# - *current image shown*: the fittest image of an iteration, and not the best one so far.
# - *absolute change*: a neuron whose activation falls counts as well. Eq. 1 has a sign.
# - *activations scaled*: each layer's activations are brought to $[0, 1]$ first, as in DeepXplore.
# - *one particle*, *ten particles*: the paper names no population. The second paper has 100.
# - *half the iterations*: IV.B has 10 iterations where IV.A has 20.
# - *released script*: what else the authors' code does, together, but for a coverage term whose function the
#   repository lacks.

# %%
text = Swarm.paper(population=population)
choices = {"as the text": text,
           "inertia falls": replace(text, inertia=(0.9, 0.4)),
           "a number for each pixel": replace(text, random="pixel"),
           "current image shown": replace(text, report="current"),
           "absolute change": replace(text, fitness=SensitiveNeurons(signed=False)),
           "activations scaled": replace(text, fitness=SensitiveNeurons(scale="activations")),
           "one particle": replace(text, population=1),
           "ten particles": replace(text, population=10),
           "released script": Swarm.released(),
           "no search": replace(text, fitness=fuzzing.Constant())}

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]
print(data)

# %%
bounds = {"none": None, "near": near}
found = studies.at_bounds(model, x, labels, choices, bounds, iterations=iterations, seed=seed)
half = studies.at_bounds(model, x, labels, {"half the iterations": text}, bounds,
                         iterations=iterations // 2, seed=seed)
with torch.no_grad():
    score = text.fitness(model, x, labels)

# %% [markdown]
# ## Test errors, and what was searched for
#
# The table has the test errors among the examples of all iterations, and among the last ones, in percent. It
# also has the share of neurons that the last examples make {term}`sensitive <sensitive neuron>`, in percent,
# counted as the text counts them. Then come the median {term}`L2 distance` of the last examples and the
# {term}`passes <pass>` through the network.

# %%
for budget in bounds:
    for choice in (*list(choices)[:-1], "half the iterations", "no search"):
        campaign = (found | half)[budget, choice]
        wrong = campaign.predicted != campaign.labels[campaign.origin]  # (iterations, inputs)
        run.add({"error_rate": 100 * wrong.double().mean(),
                 "last_error_rate": 100 * wrong[-1].double().mean(),
                 "reached": outcomes.reached(campaign, score), "l2": campaign.l2[-1].median(),
                 "passes": campaign.passes}, choice=choice, budget=budget)

# %% tags=["hide-input"]
run.save(data, device=device)
QUANTITIES = ["error_rate", "last_error_rate", "reached", "l2", "passes"]
wide(run.live, index=["budget", "choice"], columns="quantity", order={"quantity": QUANTITIES})

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Test errors of the swarm with one choice changed, in the run above.", "name": "fig-swarm-choices"}}
errors_by_choice(run.live)
run.show()

# %% [markdown]
# ## Over all records
#
# Means over the random seeds:

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(every)}.")

# %% tags=["hide-input"]
wide(run.recorded(), index=["dataset", "model", "budget", "choice"], columns="quantity",
     order={"quantity": QUANTITIES})

# %% [markdown]
# ## What it means
#
# The table has the errors of each choice, in percent, on the same inputs and with the same random seeds. It
# also has what it adds to *as the text*, in points, where that remains after Holm's correction over all
# choices.

# %% tags=["hide-input", "records"]
columns, counted = {}, records.frame("deepsensor_sensitivity/choices")
for bound in ("none", "near") if len(counted) else ():
    where = "no bound" if bound == "none" else f"L2 {counted['near'].max():g}"
    found_by = seeds_of(counted, "choice", quantity="error_rate", budget=bound).unstack("choice")
    columns[f"errors, {where}"] = found_by.mean().map("{:.1f}".format)
    columns[f"added, {where}"] = evidence.corrected(ahead_of_one(found_by, "as the text", "no search")).map("{:+.1f}".format)
pd.DataFrame(columns).fillna("").rename_axis("choice, from the records")

# %% tags=["hide-input", "statements"]
says((f"*Size.* Within the bound, ten particles find {ten.mean():.1f} %, and a hundred {many.mean():.1f} %. So results "
      "depend on a number that the paper does not name.", (ten < many).all()),
     ("*Scale.* With scaled activations, the swarm finds exactly the errors of the start, with and without a bound. "
      "Scaled activations lie between 0 and 1. So beyond a distance of 2, no neuron can change by more than half a unit for each "
      "unit of distance, and the fitness is zero.",
      all((each["activations scaled"] == each["no search"]).all() for each in (free, bounded))))

# %% tags=["hide-input", "statements"]
table_2 = printed_rates(published.table("deepsensor_sensitivity", 2), 20_000)  # of 1,000 seeds and 20 iterations
share, script = table_2.loc["lenet5", "deepsensor"], seeds_of(every, who="released script", quantity="l2", budget="none")
alike = [name for name in searching if bounded[name].equals(bounded["no search"])]
says((f"*The script.* As released, the search starts at the input and stays near it, {script.mean():.1f} away at the "
      f"median. It finds {free['released script'].mean():.1f} % errors, where the paper prints {share:.0f} %.",
      share > 10 * free["released script"].max() and script.max() < 4),
     (f"*Bound or no bound.* Of {len(searching)} choices that search from random images, {len(lost)} have fewer errors than "
      f"their start without a bound. Within it {len(more)} have more, with every seed; {listed(f'*{name}*' for name in alike)} "
      "find exactly its errors.", len(more) > len(searching) / 2 and len(lost) > len(searching) / 2 and len(alike) == 2))

# %% [markdown]
# ## Exercises
#
# **1. Think.** The released script has one particle. What do the two pulls of Eq. 4 pull to then?
#
# ```{admonition} Solution
# :class: dropdown
# With one particle, its own best place is also the best place of the swarm. So both pull to this one place. They
# are zero while the particle stands there; then only the inertia moves it.
# ```
#
# **2. Try.** Change two choices at once: `replace(text, inertia=(0.9, 0.4), random="pixel")`. Is the change
# the sum of the two single ones?
#
# ```{admonition} Solution
# :class: dropdown
# Add the line to `choices`, run the chapter again and compare the differences from *as the text*. If they do
# not add up, the two choices act on each other, and a table of single changes cannot tell you what a swarm
# with many changes does. The line *released script* is such a swarm.
# ```
#
# **3. Think.** You test nine choices, each with an error of 5 %. Suppose that none of them matters. How likely
# is it that at least one seems to matter?
#
# ```{admonition} Solution
# :class: dropdown
# If the tests are independent, $1 - 0.95^9$, which is 37 %. So one choice with an interval just beside zero is
# weak evidence. Look for choices whose interval is far from zero, or that matter with and without a bound.
# ```
#
# **4. Code.** Write `my_inertia(first, last, iterations)`: the inertia of each iteration (Eq. 3), linear from
# `first`; the last iteration is one step before `last`. The cell says whether it is right.

# %%
my_inertia = None  # your function of two numbers and a count, which gives a list

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda first, last, iterations: Swarm(inertia=(first, last)).inertias(iterations),
          (0.4, 0.9, 5), (0.9, 0.4, 20))


is_right(my_inertia)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_inertia(first, last, iterations):
#     return [first + (last - first) * g / iterations for g in range(iterations)]
#
# is_right(my_inertia)
# ~~~
#
# Two numbers in the other order make a swarm that calms down out of one that gets wilder.
# ```
