# %% [markdown]
# # Does a worse network have more sensitive neurons?
#
# **The claim** (NSS RQ1, IV.B, Fig. 3). Train a network to two stages of accuracy. {term}`NSS` says three
# things about its {term}`neurons <neuron>`. At the stage with more errors the neurons are more sensitive,
# however strong the mutation is. They are more sensitive to stronger mutations. And a tenth of the neurons
# is significantly more sensitive than as many random ones.
#
# **What you will learn.** How to compare two networks by how far their neurons move, and why such a
# comparison depends on the scale of the activations.

# %% tags=["parameters"]
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
seed = 0  # of the training, and of all else that is random
share = 10  # percent of the neurons that count as sensitive
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from itertools import product

import matplotlib.pyplot as plt
import torch

from dnnbook import published, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.tables import wide
from dnnbook.records import records, verdicts
from dnnbook.records.intervals import over_seeds
from dnnbook.words import networks, shown
from dnnlib import inference
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
# One training stops near the accuracy of Table I. The other one is longer, or, for CIFAR-10, shorter. The two
# also differ in other settings, such as the momentum, the learning rate or the changes made to training images.
# The test set tells which of the two networks is worse.

# %% tags=["hide-input"]
data = load(dataset, limit=limit)
stages = []
for recipe in ("nss", "nss_second"):
    model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
    stages.append((inference.accuracy(model, data.images, data.labels), model))
stages = dict(zip(("worse", "better"), sorted(stages, key=lambda pair: pair[0])))
for state, (accuracy, _) in stages.items():
    print(f"{state}: accuracy {accuracy:.1%}")

# %% [markdown]
# ## Sensitivity against strength
#
# The {term}`mutations <benign mutation>` have strengths from 1 to 5. For each strength, we take the mean
# of $|N_i(x) - N_i(x')|$ over the images and over the tenth of the neurons that moves most. We do the same
# for as many random neurons. There are two {term}`readings <reading>` of the difference: `l1` as in the
# text, and `squared_normalised` as in the code. There are also two readings of the strength: in `paper`,
# the ranges of Table III are divided into fifths; `released` has the code's own lists.

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
    figure, axes = plots.panels(len(groups), width=max(3, 6 / len(groups)), height=2.8)
    for axis, (name, group) in zip(axes, groups):
        for (state, neurons, _), part in group.groupby(["state", "neurons", "seed"]):
            axis.plot(part["strength"], part["value"], ls="-" if neurons == "sensitive" else "--",
                      color="C3" if state == "worse" else "C0", label=f"{state}, {neurons}", **line)
        axis.set_title(", ".join(map(shown, name)), fontsize=9)
        axis.set(xlabel="strength of the mutation", ylabel="mean sensitivity")
    handles, labels = axes[0].get_legend_handles_labels()
    first = dict(zip(labels, handles))  # of the lines of all seeds
    figure.legend(first.values(), first, fontsize=8, loc="outside lower center", ncols=4)


against_strength(run.live, ["difference"], marker="o")
plt.show()

# %% [markdown]
# ## What the claims ask for
#
# We compute three numbers. The first is the sensitivity of the worse network, divided by that of the
# better one. The second is the sensitivity of the most sensitive neurons, divided by that of random ones.
# If the paper is right, both are above 1. The third is the smallest step in sensitivity from one strength
# to the next. If sensitivity always rises, it is above 0.

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
run.save(data, device=device)
wide(run.live, "quantity == 'worse_over_better'", index=ON, columns="strength", digits=2)

# %% [markdown]
# ## Over all records
#
# The table shows the first ratio, worse network to better network, with the strengths of Table III. It
# stands there for the text's difference (`l1`) and for the code's (`squared_normalised`). CIFAR-10 is a
# JPEG copy.

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

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
# Later chapters ask whether the original of an image is known. Here it always is, because we compare
# clean images with mutations of them.
#
# **What it means.**

# %% tags=["hide-input", "statements"]
CELL = ["dataset", "model"]
rows = records.frame("nss/sensitivity").query("mutations == 'paper'")
claims = {claim.id: claim for claim in published.claims("nss")}
worse, strength = (verdicts.verdict(claims[f"nss-sensitivity-{name}"]) for name in ("worse", "strength"))
cells = worse.cells.groupby(CELL)
holds = cells["outcome"].agg(lambda outcomes: (outcomes == "holds").all())
below = cells["outcome"].agg(lambda outcomes: (outcomes == "fails").all())
ends = worse.cells.set_index(CELL)
says(
    "Does sensitivity rise with the strength of the mutation? The verdict is "
    f"*{strength.state}*. Is the worse network the more sensitive one? The verdict is *{worse.state}*: "
    f"{verdicts.told(worse)}.",
    ("The networks clearly differ: the intervals of some lie wholly above those of others.",
     ends.loc[below.index[below], "high"].max() < ends.loc[holds.index[holds], "low"].min()),
    (f"With {networks(holds.index[holds])}, the claim holds at every strength.",
     {cell[1] for cell in holds.index[holds]} == {"resnet20", "lenet5_nss"}),
    (f"With {networks(below.index[below])}, the result is the opposite. The worse network has "
     f"{cells['mean'].min()[below].min():.2f} to {cells['mean'].max()[below].max():.2f} times the sensitivity "
     "of the better one, at every strength more than chance. So the neurons of the better network move *more*. With "
     "LeNet-1, its training was longer, but also had momentum and weight decay; we did not test which of these matters.",
     {cell[1] for cell in below.index[below]} == {"lenet1_nss", "vgg16"}),
    "Means of ratios are geometric here, as in the verdicts; those of the table above are arithmetic.")
ratio = over_seeds(rows.query("quantity == 'worse_over_better' and neurons == 'sensitive'").set_index(
    [*CELL, "difference", "strength", "seed"])["value"], [*CELL, "difference", "strength"], "ratio")
code = ratio.xs("squared_normalised", level="difference")
says(
    "The result also depends on how the difference is measured. The code squares each change and divides it "
    "by the largest activation.",
    ("By this measure, the claim holds in no cell of LeNet-5: the ratios are "
     f"{code.xs('lenet5_nss', level='model')['mean'].min():.2f} "
     f"to {code.xs('lenet5_nss', level='model')['mean'].max():.2f}. With ResNet-20, all mean ratios are "
     "still above 1.",
     not (code.xs("lenet5_nss", level="model")["low"] > 1).any()
     and (code.xs("resnet20", level="model")["mean"] > 1).all()))

# %% [markdown]
# We do not know why the networks differ. $|N(x) - N(x')|$ has the unit of the activations, and training
# changes the scale of the activations. Batch normalisation sets this scale anew, so it might explain
# why networks with it differ from those without. But it cannot be the whole reason:

# %% tags=["hide-input", "statements"]
side = worse.cells.assign(above=worse.cells["mean"] > 1).groupby("model")["above"]
every, none = side.all(), ~side.any()
says(("ResNet-20 and VGG16 have it, and all means are above 1 with ResNet-20 and below 1 with VGG16. Neither LeNet has "
      "it, and all means are above 1 with LeNet-5 and below 1 with LeNet-1.",
      set(every.index[every]) == {"resnet20", "lenet5_nss"} and set(none.index[none]) == {"vgg16", "lenet1_nss"}),
     "A comparison by this number mixes two things: the scale of the activations, and how well the network has "
     "learned.")

# %% tags=["hide-input", "statements"]
mean = rows.query("quantity == 'sensitivity' and difference == 'l1'").set_index(
    [*CELL, "state", "strength", "seed", "neurons"])["value"].unstack("neurons")
far = mean["sensitive"] / mean["random"]
by_network = over_seeds(far, CELL, "ratio")["mean"]
says(
    (f"The most sensitive tenth of the neurons is {far.min():.1f} to {far.max():.1f} times as sensitive as "
     "random neurons. It is more sensitive in each network and stage, at each strength and with each seed. "
     "The paper says \"significantly more sensitive\" and gives no factor.", far.min() > 1),
    f"The factor is smallest with {networks([by_network.idxmin()])} and largest with "
    f"{networks([by_network.idxmax()])}.",
    "Some lead is certain in advance: these neurons are chosen by the same number by which we then compare "
    "them.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** Multiply all weights and biases of the layer under study by 2, and divide the weights of the
# next layer by 2, but not its biases. What happens to the predictions, and to the sensitivity?
#
# ```{admonition} Solution
# :class: dropdown
# If a ReLU and then a linear layer follow, the predictions stay the same and the `l1` sensitivity doubles.
# A quantity that can double while no prediction changes cannot by itself measure the quality of a network.
# (This does not work with tanh: it does not pass on a factor.)
# ```
#
# **2. Think.** Which of the two differences does not change under such a factor? Look at the definitions
# before you run the code.
#
# ```{admonition} Solution
# :class: dropdown
# Both change: `squared_normalised` squares (factor 4) and divides by one activation (factor 2), so a
# factor of 2 remains. Dividing the absolute difference by the largest activation would remove it.
# ```
#
# **3. Code.** Write `my_tenth(sensitivity)`: which neurons are among the most sensitive tenth, as
# booleans. The cell says whether it is right.

# %%
my_tenth = None  # your function of a tensor (neurons,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


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
# The tenth is chosen anew for each network. So we may compare two different sets of neurons, and not the
# same neurons at two stages.
# ```
