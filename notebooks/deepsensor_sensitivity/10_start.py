# %% [markdown]
# # Does it matter where the particles start?
#
# **The claim** (DeepSensor IV.F, Fig. 6). {term}`Swarms <swarm>` that start at random positions find
# more {term}`test errors <test error>` than swarms that start at the input, whatever the cause of the
# errors. They also raise six coverage criteria more. The paper concludes that a random start escapes
# local optima.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
learning_rate = 0.02  # of the overfitted network; the paper has none
retrained = True  # the polluted network: trained on from the clean one; reading: False, a new one
seed = 0  # of the training, and of all else that is random
inputs = 20  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 5  # particles to an input; the second paper on DeepSensor has 100
near = 1.0  # a bound on the L2 distance, that of the first paper; 2 on ImageNet
references = 1000  # training images that say which activations are usual
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace
from itertools import product

import pandas as pd
import torch

from dnnbook import studies
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.comparisons import sizes
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import outcomes
from dnnbook.studies.findings.deepsensor import change_of, seeds_of, sides_of
from dnnbook.training import faulty
from dnnbook.words import listed, rounded_up, span
from dnnlib import coverage, fuzzing
from dnnlib.neurons import activations

plots.style()
run = Experiment("deepsensor_sensitivity/start", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 learning_rate=learning_rate, retrained=retrained, seed=seed, swarm="paper", inputs=inputs,
                 iterations=iterations, population=population, near=near, references=references)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-start")

# %% tags=["hide-input", "statements"]
CLEAN = ["adversarial", "overfitted"]  # errors in networks trained on clean data
every = records.frame("deepsensor_sensitivity/start")
free, bounded = (seeds_of(outcomes.error_shares(every), "start", "errors", budget=budget) for budget in ("none", "paper"))
over_fixed, over_signed = (seeds_of(every, "errors", quantity=f"random_over_{start}", budget="none")
                           for start in ("fixed", "signed"))
guidance = evidence.spread(change_of(free, "start", "random", "random, constant"))
says((f"**The answer.** Without a bound, a random start finds {span(over_fixed.groupby('errors').mean())} times the errors of a "
      "start at the input on average, by the cause of the errors, and more with each random seed.", over_fixed.min() > 1),
     ("But it is the start that counts there, and not the search. In networks that were trained on clean data, the same "
      "start with a constant fitness, which looks at no neuron, finds more errors still.",
      guidance.loc[CLEAN, "high"].max() < 0),
     (f"Within the bound, no start has more than {bounded.max():.1f} % errors, so there is nothing to compare.",
      bounded.max() < 5))

# %% [markdown]
# ## In one picture
#
# Compare the two starts: at random, or at the input (seed). Is the same one higher for all three kinds
# of error, and does it also gain more coverage? The swarm with a constant {term}`fitness` shows what a
# random start does by itself.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 6 of the paper from the records, without a bound; means over all networks and random seeds.", "name": "fig-deepsensor-start-records"}}
def draw(rows: pd.DataFrame) -> None:
    """Fig. 6 from a run's rows, or those of records: means over the random seeds."""
    rows = rows.query("budget == 'none'")
    alone = rows.query("quantity == 'gain_alone'")
    gains = rows.query("quantity == 'gain'") if alone.empty else alone  # older records have one
    plots.bar_panels({"test errors": (outcomes.error_shares(rows), "errors", "% of the examples"),
                      "coverage": (gains, "criterion", "points gained")}, hue="start")


kept = run.recorded()
plots.nothing() if kept.empty else draw(kept)
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** To ask what the start itself brings, before any optimisation; and to tell a
# better search from a longer way.
#
# ## Two starts
#
# III.D first puts the {term}`particles <particle>` at the input, with "the change of the pixel value" as their
# velocity. This change is zero there, so they would never move. Its end and IV.F start them at random. A start at
# the input therefore needs a velocity from elsewhere. The released code draws it uniformly from
# [0, 0.7], which makes every pixel brighter; this is the start `seed`, as the papers call the input.
# With the same speeds in both directions, [-0.7, 0.7], the start is `seed, signed`. An example with a
# grey pixel of 0.5, three particles and one move, without a pull from any best position:

# %% tags=["nbval-check-output"]
still = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(1, 2))
starts = {"random": {}, "seed": {"start": "input", "velocity": (0.0, 0.7)},
          "seed, signed": {"start": "input", "velocity": (-0.7, 0.7)}}
for name, options in starts.items():
    seen = []
    fuzzing.Swarm(population=3, c1=0.0, c2=0.0, inertia=(0.9, 0.9), **options,
                  fitness=lambda *_: lambda x, of: seen.append(x.flatten()) or x.sum((1, 2, 3))
                  ).run(still, torch.full((1, 1, 1, 1), 0.5), torch.tensor([0]), iterations=2,
                        generator=torch.Generator().manual_seed(0))
    print(f"{name}: {[[round(v, 2) for v in x.tolist()] for x in seen]}")

# %% [markdown]
# ## Three kinds of error
#
# As in [the chapter before](09_thresholds), there are three networks: a well trained one, one that was
# trained on polluted data, and an overfitted one. Each has inputs that it gets right. In the polluted
# network only examples that get the polluted class count as errors.

# %%
data, train = load(dataset, limit=profile_limit(profile)), load(dataset, "train")
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
# Everything else is as in the paper. Table II and Fig. 6 name no bound on the {term}`L2 distance` (`none`).
# The bound of IV.C (`paper`) brings a random start back to the neighbourhood of the input. The control
# is a random start with a constant fitness: such a swarm shows its start to the end.

# %%
bounds = {"none": None, "paper": near}
swarms = {start: fuzzing.Swarm.paper(population=population, **options)
          for start, options in starts.items()}
swarms["random, constant"] = replace(swarms["random"], fitness=fuzzing.Constant())
found = {kind: studies.at_bounds(model, *benign[kind], swarms, bounds, iterations=iterations,
                                 seed=seed) for kind, model in models.items()}

# %% [markdown]
# ## Test errors
#
# We count errors among the examples of the last iteration, one for each input. *L2* is the mean distance
# of these examples from their inputs.

# %%
errors = {(kind, *where): outcomes.hits(campaign, targets[kind])
          for kind, campaigns in found.items() for where, campaign in campaigns.items()}
for (kind, budget, start), wrong in errors.items():
    run.add({"test_errors": wrong[-1].sum(), "test_errors_all": wrong.sum(),
             "l2": found[kind][budget, start].l2[-1].mean()},
            budget=budget, errors=kind, start=start)

# %% tags=["hide-input"]
wide(run.live, "quantity in ('test_errors', 'l2')", index=["budget", "start"], columns=["quantity", "errors"])

# %% [markdown]
# ## Coverage
#
# We count as in [the chapter on coverage](06_coverage), and with its options: IV.C takes the coverage of inputs
# and of examples, so the gain is that of the examples alone, less that of their inputs (`gain_alone`). The claim
# is judged by it. `gain` counts examples and inputs together; it cannot be negative. The two need not agree:
# one start may win by the first count and lose by the second.

# %%
model, x = models["adversarial"], benign["adversarial"][0]
usual = coverage.boundaries(activations.record(model, train.images[:references]).values)
before = outcomes.covered(model, x, usual)

# %% [markdown]
# The gain is what the examples cover less what their inputs cover:

# %%
for ending, inputs_too in (("_alone", x[:0]), ("", x)):
    gains = {place: outcomes.covered(model, torch.cat([inputs_too, campaign.images]), usual) - before
             for place, campaign in found["adversarial"].items()}
    for (budget, start), gain in gains.items():
        run.add(outcomes.each("criterion", gain), budget=budget, start=start, quantity=f"gain{ending}")
    for budget in bounds:
        run.add(outcomes.each("criterion", gains[budget, "random"] - gains[budget, "seed"]),
                budget=budget, quantity=f"random_less_fixed{ending}")

# %% tags=["hide-input"]
wide(run.live, "quantity in ('gain_alone', 'gain')", index=["quantity", "budget", "start"], columns="criterion",
     digits=2)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 6 for the run above, without a bound. Test errors of the three kinds (left) and points of coverage gained (right), for each start.", "name": "fig-deepsensor-start"}}
draw(run.live)
run.show()

# %% [markdown]
# ## What the claim asks for
#
# We divide the test errors of a random start by those of a start at the input. We do so once with the
# released code's velocity (*random over fixed*) and once with the signed one (*random over signed*). If the
# start at the input finds no error, we count one; the true ratio is then at least the printed one.

# %%
for kind, budget in product(models, bounds):
    count = {start: int(errors[kind, budget, start][-1].sum()) for start in starts}
    run.add({"random_over_fixed": count["random"] / max(1, count["seed"]),
             "random_over_signed": count["random"] / max(1, count["seed, signed"])},
            budget=budget, errors=kind)

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live, "quantity in ('random_over_fixed', 'random_over_signed')",
     index=["budget", "errors"], columns="quantity", digits=2)

# %% [markdown]
# ## Over all records
#
# The tables show the percentage of examples that are test errors, and then the points of coverage
# gained; both are means over the random seeds. Fig. 6 prints no numbers to compare them with.

# %% tags=["hide-input", "statements"]
first = every["seed"].min()
says(f"Our records cover {sizes(every)}.",
     *([f"The random seeds are those of [the chapter on faulty training](04_faulty_training), from {first} on."] if first else []))

# %% tags=["hide-input"]
ours = run.recorded()
CELL = ["dataset", "model", "budget", "start"]
display(wide(outcomes.error_shares(ours), index=CELL, columns="errors"))
wide(ours, "quantity in ('gain_alone', 'gain')", index=["quantity", *CELL], columns="criterion")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** A random start without a bound is an image of random pixels. Such images lie far
# from their inputs, and the network mostly misreads them before the swarm makes a single move. So more
# errors do not show that the search escaped local optima: the two starts differ in distance before they
# differ in search.

# %% tags=["hide-input", "statements"]
fixed, signed = (ratio.groupby("errors").mean() for ratio in (over_fixed, over_signed))
says(("With the signed velocity, the factor falls with each cause of errors: to "
      f"{span(signed[CLEAN])} in the networks trained on clean data, and to {signed['polluted']:.0f} in the polluted one. "
      "These are means of the ratios of each seed.", 1 < signed.min() and (signed < fixed).all()),
     ("In the polluted network, the constant fitness is not clearly ahead of the guided swarm, nor behind it.",
      guidance.loc["polluted", "low"] < 0 < guidance.loc["polluted", "high"]))

# %% tags=["hide-input", "statements"]
new = records.frame("deepsensor_sensitivity/start", retrained=False)  # another reading
new = seeds_of(outcomes.error_shares(new), "start", budget="paper", errors="polluted")
says(("Another reading trains a new network on the polluted data, from the beginning. There, within the bound, a start at the "
      f"input leads to the polluted class for {span(new['seed'])} % of the "
      f"inputs, a random one for {span(new['random'])} %, and a constant fitness for at most "
      f"{rounded_up(new['random, constant'].max(), 1)} %. So in such a network sensitive neurons do guide the swarm towards the "
      "pollution at a small distance, and they need no random start for it.", (new["seed"] > new["random"]).all()
      and new["random"].min() > 10 and new["random, constant"].max() < 5))

# %% tags=["hide-input", "statements"]
alone, ahead = (change_of(seeds_of(every, "start", "criterion", quantity=quantity, budget="none"), "start", "random", "seed")
                for quantity in ("gain_alone", "gain"))
mean, ends, corrected = alone.groupby("criterion").mean(), sides_of(evidence.spread(ahead)), len(evidence.corrected(ahead))
says(("Coverage does not follow the errors. Counted of the examples alone, as the paper has it, the random start gains more "
      f"on average in {listed(mean.index[mean > 0])}, and less in "
      f"{listed(mean.index[mean < 0])}.", 0 < (mean > 0).sum() < len(mean)),
     (f"Counted with the inputs, the random start gains more in {listed(ends.ahead)} and "
      f"less in {listed(ends.behind)}, each by its own interval.", len(ends.ahead) < len(mean)),
     f"After Holm's correction over {len(mean)} criteria, {corrected or 'none'} of these remain{'s' if corrected < 2 else ''}.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** With the start at the input, what is the fitness in the first iteration, and what
# are its examples?
#
# ```{admonition} Solution
# :class: dropdown
# All particles are the input, so $\Delta x = 0$ and the fitness is 0 (III.C). The example is
# the input itself, which the network gets right. So the first iteration finds no error by construction.
# ```
#
# **2. Think.** Design a start that is random, yet as near to the input as you like.
#
# ```{admonition} Solution
# :class: dropdown
# Give the swarm a budget: `fuzzing.Budget(l2=1.0)` brings uniform images back to the ball around
# the input, `fuzzing.Budget(linf=0.1)` draws every pixel within 0.1 of the input's. The velocity
# is the start minus the input, so it shrinks as well.
# ```
#
# **3. Code.** Write `my_start(x, u, radius)`: a random start near the input. If the
# random image `u` is farther from `x` than the given L2 distance, it is moved towards `x` in a straight
# line until it is at that distance. The cell says whether it is right.

# %%
my_start = None  # your function of two tensors (N, pixels) and a number

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def start(x, u, radius):
        return fuzzing.Budget(l2=radius).project(u.view(len(u), 1, 1, -1), x.view(len(x), 1, 1, -1)
                                                 ).view_as(u)

    middle, far = torch.full((2, 4), 0.5), torch.tensor([[0.5, 0.6, 0.5, 0.5], [0.0, 1.0, 0.0, 1.0]])
    check(answer, start, (middle, far, 0.5), (middle, far, 0.05))


is_right(my_start)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_start(x, u, radius):
#     way = (u - x).norm(dim=1, keepdim=True)
#     return x + (u - x) * (radius / way).clamp(max=1)
#
# is_right(my_start)
# ~~~
#
# Such a start is near, but a start at the input is still nearer: its distance is 0. The start alone also
# does not keep a swarm near. For that, every move needs a bound, such as `fuzzing.Budget(l2=radius)`.
# ```
