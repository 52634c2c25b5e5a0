# %% [markdown]
# # Does a worse network have more sensitive neurons?
#
# **The claim** (NSS RQ1, IV.B, Fig. 3). Train a network to two stages of accuracy. The one with more errors
# has the more sensitive neurons, whatever the strength of the mutation; sensitivity rises with the
# strength; and a tenth of the neurons is far more sensitive than the rest.
#
# **What you will learn.** How to compare two networks by their inner movement, and why such a comparison
# depends on the scale of the activations.

# %% tags=["parameters"]
dataset = "mnist_small"  # a name from `dnnlib data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
seed = 0  # of the trainings, of the mutations and of the random neurons
share = 10  # percent of the neurons that count as sensitive
profile = "embedded"  # embedded: at most 1,000 images; paper: 2,000 images, and a record

# %% tags=["hide-input"]
from itertools import product

import matplotlib.pyplot as plt
import torch

from dnnlib import inference, published, training
from dnnlib.book import plots, records, verdicts
from dnnlib.book.experiments import Experiment
from dnnlib.book.intervals import over_seeds
from dnnlib.book.statements import says
from dnnlib.book.tables import wide
from dnnlib.book.words import networks, shown
from dnnlib.data import load, profile_limit
from dnnlib.neurons import activations
from dnnlib.perturb import mutations
from dnnlib.selection import nss

plots.style()
limit = profile_limit(profile) or 2000  # the mean over 2,000 images is exact enough
run = Experiment("nss/sensitivity", profile, dataset=dataset, model_name=model_name, seed=seed,
                 share=share)
run.parameters["limit"] = limit  # follows from the profile

# %% [markdown]
# ## Two stages
#
# One training stops near the accuracy of Table I, the other is longer (for CIFAR-10 shorter). Which of
# the two is the worse, the test set says.

# %% tags=["hide-input"]
data = load(dataset, limit=limit)
stages = []
for recipe in ("nss", "nss_second"):
    model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed)
    stages.append((inference.accuracy(model, data.images, data.labels), model))
stages = dict(zip(("worse", "better"), sorted(stages, key=lambda pair: pair[0])))
for state, (accuracy, _) in stages.items():
    print(f"{state}: accuracy {accuracy:.1%}")

# %% [markdown]
# ## Sensitivity against strength
#
# For each strength from 1 to 5, the mean of $|N_i(x) - N_i(x')|$ over images and over the tenth of the
# neurons that moves most, and over as many random ones. Two readings of the difference (`l1` as in
# the text, `squared_normalised` as in the code) and of what a strength is (`paper`: the fifths of
# Table III; `released`: the code's own lists).

# %%
def activated(model, images):
    """Activations (N, neurons) in the last layer that still has a map."""
    return activations.record(model, images, layers=[nss.last_map(model, images)],
                              neuron="unit").values


def sensitivity(before, after, difference, anyone):
    """The mean over the most sensitive neurons, and over as many of ``anyone``."""
    moved = nss.sensitivities(before, after, difference=difference)
    chosen = nss.sensitive(moved, share / 100)
    return {"sensitive": moved[:, chosen].mean(), "random": moved[:, anyone[:len(chosen)]].mean()}


# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(seed)
for state, (_, model) in stages.items():
    clean = activated(model, data.images)
    anyone = torch.randperm(clean.shape[1], generator=generator)
    for reading, strength in product(mutations.READINGS, mutations.STRENGTHS):
        after = activated(model, mutations.mutate(
            data.images, strength=strength, seed=seed, reading=reading).images)
        for difference in nss.DIFFERENCES:
            for neurons, value in sensitivity(clean, after, difference, anyone).items():
                run.add({"sensitivity": value}, state=state, mutations=reading, strength=strength,
                        difference=difference, neurons=neurons)
wide(run.live, "difference == 'l1' and mutations == 'paper'", index="strength",
     columns=["neurons", "state"], digits=4)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean sensitivity against the strength of the mutation, for the two networks of the run above: their most sensitive tenth of neurons, and random ones.", "name": "fig-nss-sensitivity"}}
def against_strength(rows, panel, **line):
    """The sensitivity of both networks: a panel for each value of ``panel``, a line a seed."""
    rows = rows.query("quantity == 'sensitivity' and mutations == 'paper'")
    if rows.empty:
        return plots.nothing()
    groups = list(rows.groupby(panel, sort=False))
    figure, axes = plt.subplots(1, len(groups), figsize=(max(9, 2.6 * len(groups)), 3),
                                squeeze=False)
    for axis, (name, group) in zip(axes[0], groups):
        for (state, neurons, _), part in group.groupby(["state", "neurons", "seed"]):
            axis.plot(part["strength"], part["value"], ls="-" if neurons == "sensitive" else "--",
                      color="C3" if state == "worse" else "C0", label=f"{state}, {neurons}", **line)
        axis.set_title(", ".join(map(shown, name)), fontsize=9)
        axis.set_xlabel("strength of the mutation")
    axes[0, 0].set_ylabel("mean sensitivity")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    first = dict(zip(labels, handles))  # of the lines of all seeds
    axes[0, -1].legend(first.values(), first, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


against_strength(run.live, ["difference"], marker="o")
plt.show()

# %% [markdown]
# ## What the claims ask for
#
# The sensitivity of the worse network over that of the better (above 1 if the paper is right), that of
# the sensitive neurons over that of random ones (above 1 too), and the least step from one strength to
# the next (above 0 if it always rises).

# %% tags=["hide-input"]
ON = ["mutations", "difference", "neurons"]
found = run.live.set_index([*ON, "strength", "state"])["value"]
ratio = found.xs("worse", level="state") / found.xs("better", level="state")
far = found.xs("sensitive", level="neurons") / found.xs("random", level="neurons")
steps = found.groupby([*ON, "state"]).agg(lambda values: values.sort_index().diff().min())

# %% tags=["hide-input"]
run.add(ratio.reset_index().to_dict("records"), quantity="worse_over_better")
run.add(far.reset_index().to_dict("records"), quantity="sensitive_over_random")
run.add(steps.reset_index().to_dict("records"), quantity="least_step")
for state, (accuracy, _) in stages.items():
    run.add({"accuracy": 100 * accuracy}, state=state)
run.save(data)
wide(run.live, "quantity == 'worse_over_better'", index=ON, columns="strength", digits=2)

# %% [markdown]
# ## Over all records
#
# The ratio of the worse network's sensitivity to the better's, as the text has it (`l1`, strengths of
# Table III), and with the code's normalised difference. CIFAR-10 is a JPEG copy.

# %% tags=["remove-input"]
from dnnlib.book.practice import bet

bet("nss-sensitivity-worse")

# %% tags=["hide-input"]
ours = run.recorded()
CELL = ["dataset", "model"]
display(wide(ours, "quantity == 'worse_over_better' and neurons == 'sensitive' and "
             "mutations == 'paper'", index=[*CELL, "difference"], columns="strength", digits=2))
wide(ours, "quantity == 'accuracy'", index=CELL, columns="state")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 3 of the paper from the records: mean sensitivity of the most sensitive tenth (full lines) and of random neurons (broken), of the worse network (red) and the better (blue). One line for each seed.", "name": "fig-nss-sensitivity-records"}}
against_strength(ours.query("difference == 'l1'"), CELL, lw=1)
plt.show()

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# The two pairs of the later chapters are one here: a clean image is compared with a mutation of it, so
# that the original is known by design.
#
# **What it means.**

# %% tags=["hide-input", "statements"]
CELL = ["dataset", "model"]
rows = records.frame("nss/sensitivity").query("mutations == 'paper'")
claims = {claim.id: claim for claim in published.claims("nss")}
worse, strength = (verdicts.verdict(claims[f"nss-sensitivity-{name}"]) for name in ("worse", "strength"))
cells = worse.cells.groupby(CELL)
holds = cells["outcome"].agg(lambda outcomes: (outcomes == "holds").all())
below = cells["mean"].max() < 1
says(
    f"That sensitivity rises with the strength of a mutation is *{strength.state}*. That the worse network "
    f"is the more sensitive one is *{worse.state}*: {verdicts.counted(worse)}.",
    (f"Of the {worse.run} cells only {worse.sure_holds} that hold and {worse.sure_fails} that fail stand after "
     "Holm's correction, which counts that they were picked among many. But the networks differ.",
     max(worse.sure_holds, worse.sure_fails) <= 2),
    (f"It holds at every strength with {networks(holds.index[holds])}.",
     {cell[1] for cell in holds.index[holds]} == {"resnet20", "lenet5_nss"}),
    (f"With {networks(below.index[below])} it is turned round: the ratio is "
     f"{cells['mean'].min()[below].min():.2f} to {cells['mean'].max()[below].max():.2f}, so longer training "
     "made the neurons move *more*"
     + (f", beyond chance in {worse.fails} of {5 * below.sum()} cells." if worse.fails else "."),
     {cell[1] for cell in below.index[below]} == {"lenet1_nss"}))
ratio = over_seeds(rows.query("quantity == 'worse_over_better' and neurons == 'sensitive'").set_index(
    [*CELL, "difference", "strength", "seed"])["value"], [*CELL, "difference", "strength"], "ratio")
code = ratio.xs("squared_normalised", level="difference")
says(
    ("The measure of the difference decides too. With the code's, each squared change over the largest "
     f"activation, no cell of LeNet-5 holds (ratios {code.xs('lenet5_nss', level='model')['mean'].min():.2f} "
     f"to {code.xs('lenet5_nss', level='model')['mean'].max():.2f}); with ResNet-20 the means stay above 1.",
     not (code.xs("lenet5_nss", level="model")["low"] > 1).any()
     and (code.xs("resnet20", level="model")["mean"] > 1).all()))

# %% [markdown]
# Why the networks differ we do not know. $|N(x) - N(x')|$ is in the unit of the activations, which
# training changes; a batch normalisation, as in ResNet-20, sets their scale anew. But neither LeNet has
# one, and one bears the claim out while the other turns it round. A comparison of two networks by this
# number compares their scales as well as how often they err.

# %% tags=["hide-input", "statements"]
mean = rows.query("quantity == 'sensitivity' and difference == 'l1'").set_index(
    [*CELL, "state", "strength", "seed", "neurons"])["value"].unstack("neurons")
far = mean["sensitive"] / mean["random"]
by_network = over_seeds(far, CELL, "ratio")["mean"]
says(
    (f"The most sensitive tenth of the neurons is {far.min():.1f} to {far.max():.1f} times as sensitive as "
     "random ones, for each network, stage, strength and seed. The paper says \"significantly more "
     "sensitive\" and gives no factor.", far.min() > 1),
    (f"It is least with {networks([by_network.idxmin()])} and most with "
     f"{networks([by_network.idxmax()])}.", by_network.min() < by_network.max()),
    "Some excess is there by construction, since these neurons are chosen by the number that is then compared.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** Multiply all weights and biases of the layer under study by 2 and divide those of
# the next layer by 2. What happens to the predictions, and to the sensitivity?
#
# ```{admonition} Solution
# :class: dropdown
# With ReLU and a linear layer after it, the predictions stay the same and the `l1` sensitivity doubles.
# A quantity that doubles while nothing is predicted differently cannot by itself measure the quality of
# a network. (With tanh in between the scaling does not pass through.)
# ```
#
# **2. Think.** Which of the two differences is free of that factor? Look at its definition before
# you run it.
#
# ```{admonition} Solution
# :class: dropdown
# Neither: `squared_normalised` squares (factor 4) and divides by one activation (factor 2), so 2 remains.
# Dividing the absolute difference by the largest activation would remove it.
# ```
#
# **3. Code.** Write `my_tenth(sensitivity)`: which neurons are among the most sensitive tenth, as
# booleans. The cell says whether it is right.

# %%
my_tenth = None  # your function of a tensor (neurons,)

# %% tags=["hide-input"]
from dnnlib.book.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def tenth(sensitivity):
        return sensitivity >= sensitivity.sort(descending=True).values[len(sensitivity) // 10 - 1]

    values = torch.linspace(0, 1, 20)
    check(answer, tenth, (values,), (values.flip(0),), ((7 * values) % 1,))


is_right(my_tenth)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_tenth(sensitivity):
#     chosen = torch.zeros_like(sensitivity, dtype=torch.bool)
#     chosen[sensitivity.topk(len(sensitivity) // 10).indices] = True
#     return chosen
#
# is_right(my_tenth)
# ~~~
#
# The tenth is chosen anew for each network. So the comparison is between two sets of neurons, not
# of the same neurons at two stages.
# ```
