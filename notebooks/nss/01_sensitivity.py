# %% [markdown]
# # Does a worse network have more sensitive neurons?
#
# **The claim** (NSS RQ1, IV.B, Fig. 3). Of two stages of training, the {term}`neurons <neuron>` are more sensitive at
# the one with more errors, {term}`NSS` says, however strong the mutation is. They are more sensitive to stronger
# mutations. And a tenth of the neurons is significantly more sensitive than as many random ones.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
seed = 0  # of the training, and of all else that is random
share = 10  # percent of the neurons that count as sensitive
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from itertools import product

import torch

from dnnbook import training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies.findings.nss import everywhere, sensitive_over_random
from dnnbook.words import networks, rounded_down, rounded_up, shown
from dnnlib import inference
from dnnlib.neurons import activations
from dnnlib.perturb import mutations
from dnnlib.selection import nss

plots.style()
limit = profile_limit(profile) or 2000  # the mean over 2,000 images is exact enough
run = Experiment("nss/sensitivity", profile, dataset=dataset, model_name=model_name, seed=seed, share=share)
run.parameters["limit"] = limit  # follows from the profile

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("nss-sensitivity-worse")

# %% tags=["hide-input", "records"]
CELL = ["dataset", "model"]

# %% tags=["hide-input", "statements"]
rows = records.frame("nss/sensitivity").query("mutations == 'paper'")
of_worse, of_strength = (evidence.verdict(f"nss-sensitivity-{name}") for name in ("worse", "strength"))
outcome = of_worse.cells.set_index(CELL)["outcome"]
holds, below = everywhere(outcome == "holds"), everywhere(outcome == "fails")
lead = sensitive_over_random(rows)
says(
    (f"**The answer.** It depends on the network. With {networks(holds)}, the worse network has the more sensitive neurons, "
     "at every strength.", {cell[1] for cell in holds} == {"resnet20", "lenet5_nss"}),
    (f"With {networks(below)}, the result is the opposite, by more than chance. After the correction for many tests, "
     f"{of_worse.sure_fails} of these {of_worse.fails} cells are left.",
     {cell[1] for cell in below} == {"lenet1_nss", "vgg16"} and of_worse.sure_fails < of_worse.fails),
    (f"The other two claims hold. Sensitivity rises with the strength, and the most sensitive tenth is at least "
     f"{rounded_down(lead.min(), 1)} times as sensitive as random neurons.",
     of_strength.holds == of_strength.run and lead.min() > 1))

# %% [markdown]
# **In one picture.** The worse network is orange, the better one blue.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The paper's Fig. 3 from the records: mean sensitivity of the most sensitive tenth (full lines) and of random neurons (broken). Of the worse network (orange) and the better (blue). One line for each seed.", "name": "fig-nss-sensitivity-records"}}
def against_strength(rows, panel, **line):
    """The sensitivity of both networks: a panel for each value of ``panel``, a line a seed."""
    rows = rows if rows.empty else rows.query("quantity == 'sensitivity' and mutations == 'paper'")
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


against_strength(run.recorded("difference == 'l1'"), CELL, lw=1)
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to compare two networks by how far their neurons move, and why such a comparison
# depends on the scale of the activations.
#
# ## Two stages
#
# One training stops near the accuracy of Table I. The other one is longer, or, for CIFAR-10 and for the part of SVHN,
# shorter. Except on that part, the two also differ in other settings, such as the momentum, the learning rate or the
# changes made to training images.
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
# of $|N_i(x) - N_i(x')|$ over the images and over the neurons that move most: `share` percent of them, a
# tenth in the paper. We do the same for as many random neurons. There are two {term}`readings <reading>` of the
# difference: `l1` as in the text, and `squared_normalised` as in the code. There are also two readings of the
# strength: in `paper`, the ranges of Table III are divided into fifths; `released` has the code's own lists.

# %%
def activated(model, images):
    """Activations (N, neurons) in the last layer that still has a map."""
    return activations.record(model, images, layers=[nss.last_map(model, images)],
                              neuron="unit").values


# %%
def sensitivity(before, after, difference, anyone):
    """The mean over the most sensitive neurons, and over as many of ``anyone``."""
    moved = nss.sensitivities(before, after, difference=difference)
    chosen = nss.sensitive(moved, share / 100)
    return {"sensitive": moved[:, chosen].mean(), "random": moved[:, anyone[:len(chosen)]].mean()}


# %%
generator = torch.Generator().manual_seed(seed)
clean = {state: activated(model, data.images) for state, (_, model) in stages.items()}
anyone = {state: torch.randperm(x.shape[1], generator=generator) for state, x in clean.items()}

# %%
moved = {}
for reading, strength in product(mutations.READINGS, mutations.STRENGTHS):
    x = mutations.mutate(data.images, strength=strength, seed=seed, reading=reading).images
    for state, (_, model) in stages.items():
        after = activated(model, x)
        moved[state, reading, strength] = {
            how: sensitivity(clean[state], after, how, anyone[state]) for how in nss.DIFFERENCES}

# %% tags=["hide-input"]
for (state, reading, strength), differences in moved.items():
    for difference, values in differences.items():
        for neurons, value in values.items():
            run.add({"sensitivity": value}, state=state, mutations=reading, strength=strength,
                    difference=difference, neurons=neurons)
wide(run.live, "quantity == 'sensitivity' and difference == 'l1' and mutations == 'paper'", index="strength",
     columns=["neurons", "state"], digits=4)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean sensitivity against the strength of the mutation, for the two networks of the run above. Their most sensitive neurons, and as many random ones.", "name": "fig-nss-sensitivity"}}
against_strength(run.live, ["difference"], marker="o")
run.show()

# %% [markdown]
# ## What the claims ask for
#
# We compute three numbers. The first is the sensitivity of the worse network, divided by that of the
# better one. The second is the sensitivity of the most sensitive neurons, divided by that of random ones.
# If the paper is right, both are above 1. The third is the smallest step in sensitivity from one strength
# to the next. If sensitivity always rises, it is above 0.

# %%
ON = ["mutations", "difference", "neurons"]
found = run.live.query("quantity == 'sensitivity'").set_index([*ON, "strength", "state"])["value"]
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
# stands there for the text's difference (`l1`) and for the code's (`squared_normalised`). VGG16 had
# a JPEG copy of CIFAR-10. Means are arithmetic here; the verdicts take geometric means of ratios.

# %% tags=["hide-input"]
ours = run.recorded()
display(wide(ours, "quantity == 'worse_over_better' and neurons == 'sensitive' and "
             "mutations == 'paper'", index=[*CELL, "difference"], columns="strength", digits=2))
wide(ours, "quantity == 'accuracy'", index=CELL, columns="state")

# %% [markdown]
# ### A part of SVHN
#
# The whole of SVHN is not at hand. We have 4,434 of its training images and 8,372 of its test images.
# The tables have the same for LeNet-5 trained on this part. No verdict rests on it.

# %% tags=["hide-input"]
by_part = run.recorded(dataset="svhn_part")
display(wide(by_part, "quantity == 'worse_over_better' and neurons == 'sensitive' and "
             "mutations == 'paper'", index=[*CELL, "difference"], columns="strength", digits=2))
wide(by_part, "quantity == 'accuracy'", index=CELL, columns="state")

# %% tags=["hide-input", "statements"]
by_part = records.frame("nss/sensitivity", dataset="svhn_part")
worse = by_part.query("quantity == 'accuracy' and state == 'worse'")["value"]
says((f"One of the three shorter trainings learned nothing: its network gets {worse.min():.0f} % right, as one does that "
      "gives all images the same class.", len(worse) == 3 and (worse < 25).sum() == 1))

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# Later chapters ask whether the original of an image is known. Here it always is, because we compare
# clean images with mutations of them.

# %% tags=["hide-input", "statements"]
of_each = of_worse.cells.set_index(CELL)
less = of_each["mean"].loc[below]
code = evidence.spread(evidence.by_seed(rows, "quantity == 'worse_over_better' and neurons == 'sensitive' and "
                                   "difference == 'squared_normalised'", *CELL, "strength"), "ratio")
lenet5, resnet20 = (code.xs(model, level="model") for model in ("lenet5_nss", "resnet20"))
says(
    f"**What it means.** Is the worse network the more sensitive one? The verdict is *{of_worse.state}*.",
    (f"Where it is the less sensitive one, it has {less.min():.2f} to {less.max():.2f} times the sensitivity of the better one. "
     "The networks clearly differ: the intervals of some lie wholly above those of others.",
     less.max() < 1 and of_each.loc[below, "high"].max() < of_each.loc[holds, "low"].min()),
    "With LeNet-1, the better network was trained longer, but also with momentum and weight decay; we did not test which of "
    "these matters.",
    ("The result also depends on how the difference is measured. The code squares it and divides it by the largest "
     f"activation. Then the claim holds in no cell of LeNet-5, with geometric means of at most {rounded_up(lenet5['mean'].max(), 2)}; with "
     "ResNet-20, all mean ratios are still above 1.", not (lenet5["low"] > 1).any() and (resnet20["mean"] > 1).all()))

# %% tags=["hide-input", "statements"]
above, under = everywhere(of_each["mean"] > 1, ["model"]), everywhere(of_each["mean"] <= 1, ["model"])
says(
    "We do not know why the networks differ. The difference has the unit of the activations, and training changes their "
    "scale.",
    ("Batch normalisation sets this scale anew, but it cannot be the whole reason. ResNet-20 and VGG16 have it, and the "
     "LeNets do not. Of either pair, one network has all means above 1 and the other all below.",
     {*above} == {"resnet20", "lenet5_nss"} and {*under} == {"vgg16", "lenet1_nss"}),
    "For the most sensitive neurons some lead is certain in advance: these neurons are chosen by the same number by which we "
    "then compare them.")

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
