# %% [markdown]
# # How many neurons, and which layer?
#
# **The claims** (NSS RQ3 and RQ4, IV.D and IV.E, Tables IX and X). The more neurons {term}`NSS` uses, from the most
# sensitive 1 % to all of them, the more {term}`faults <fault>` it tends to find. Among the layers, the last of the
# encoder generally finds most.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I; nss_second: its other stage
seed = 0  # of the training, and of all else that is random
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch

from dnnbook import published, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies.findings.nss import by_option, lenets
from dnnbook.words import networks, shown, span
from dnnlib import inference, selection
from dnnlib.measures import faults
from dnnlib.neurons import activations
from dnnlib.perturb import mutations
from dnnlib.selection import nss

plots.style()
run = Experiment("nss/neurons", profile, dataset=dataset, model_name=model_name, recipe=recipe, seed=seed)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("nss-neurons-more")

# %% tags=["hide-input", "records"]
CELL = ["dataset", "model"]
rows = records.frame("nss/neurons", recipe="nss")
known_layers, known_shares = (by_option(rows, option, "original").groupby(CELL).mean() for option in ("layer", "share"))
paper_layers, paper_shares = (published.table("nss", number).set_index([*CELL, name])["value"].unstack(name).reindex(known_layers.index)
                              for number, name in ((10, "layer"), (9, "share")))

# %% tags=["hide-input", "statements"]
shallow, deep = lenets(known_layers.index), known_layers.index.difference(lenets(known_layers.index))
of_share, of_layer = (found.max(axis=1) - found.min(axis=1) for found in (known_shares, known_layers))
chance = evidence.by_seed(records.frame("nss/fault_detection", recipe="nss", candidates="random"),
                          "quantity == 'fdr' and method == 'random, expected' and rate == 20", *CELL)
fresh = evidence.by_seed(rows, "quantity == 'fdr' and pair == 'remutated'", "layer", "share", *CELL)
above = (fresh - chance).groupby([*CELL, "layer", "share"]).mean()
says(
    ("**The answer.** If the original is known, the share of the neurons matters more with the LeNets, and the layer with "
     "the deeper networks.", (of_share > of_layer)[shallow].all() and (of_share < of_layer)[deep].all()),
    ("Neither option replaces the known original. As the text describes it, NSS stays between "
     f"{-above.min():.0f} points below random order and {above.max():.0f} above it, whatever "
     "the layer and the share are.", above.abs().max() < 10),
    "The fault detection rate of random order is taken from [the chapter on fault detection](02_fault_detection). Some of its "
    "networks were trained again since.")

# %% [markdown]
# **In one picture.** Do the lines rise, with more neurons (left) or from layer to layer (right)? The broken lines are
# the method of the text: how far are they below the solid ones?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fault detection rate at 20 % by share of neurons (last layer, left) and by layer (a fifth of the neurons, right). Full lines: the original is known; broken: the text's pair. Mean over the seeds, with the range.", "name": "fig-nss-neurons"}}
LAST, FIFTH = ("quantity == 'fdr' and " + which for which in ("layer == -1", "share == 20"))
if (kept := run.recorded(recipe="nss")).empty:
    plots.nothing()
else:
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
    for axis, which, x, label in ((axes[0], LAST, "share", "neurons (%)"), (axes[1], FIFTH, "layer", "layer")):
        drawn = kept.query(which).astype({x: int})
        drawn = drawn.assign(x=drawn[x].astype(str), against=drawn["pair"].map(shown),
                             network=drawn["dataset"].map(shown) + ", " + drawn["model"].map(shown))
        sns.lineplot(drawn, x="x", y="value", hue="network", style="against", ax=axis, marker="o",
                     style_order=[shown("original"), shown("remutated")], errorbar=("pi", 100), legend=x == "layer")
        axis.set(xlabel=label, ylabel="FDR at 20 % (%)")
    axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to tell an effect from the noise between seeds, and whether these two options matter,
# compared with the option in [the chapter on fault detection](02_fault_detection).
#
# ## Layers
#
# Table X has "Layer1", "Layer2" and the last two of the encoder. The paper does not say what it
# counts as a layer. We count activations and pools in the LeNets and VGG16, and the stem and the
# residual blocks in ResNet-20.

# %%
layers = {"lenet1_nss": {1: "1", 2: "2", -2: "4", -1: "5"},
          "lenet5_nss": {1: "1", 2: "2", -2: "4", -1: "5"},
          "resnet20": {1: "2", 2: "3", -2: "10", -1: "11"},
          "vgg16": {1: "2", 2: "5", -2: "42", -1: "43"}}[model_name]

# %% [markdown]
# Here are the candidates, and a fresh mutation of each:

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
candidates = mutations.mutate(data.images, seed=seed).images
again = mutations.mutate(candidates, seed=1000 + seed).images
wrong = (inference.predict(model, candidates).argmax(1) != data.labels).numpy()

# %% [markdown]
# ## Fault detection rate, by share of the neurons and by layer
#
# We take 1 to 100 % of the neurons in each layer, and select 20 % of the
# {term}`candidates <candidate>`.

# %%
def orders(before, after, layer):
    """Orders by NSS that sums over each share (%) of a layer's neurons."""
    moved = nss.sensitivities(*(
        activations.record(model, images, layers=[layer], neuron="unit").values
        for images in (before, after)))
    chosen = {share: nss.sensitive(moved, max(share / 100, 1 / moved.shape[1]))
              for share in (1, 5, 10, 20, 100)}
    return {share: selection.by_score(moved[:, columns].sum(1, dtype=torch.float64))
            for share, columns in chosen.items()}


# %%
pairs = {"remutated": (candidates, again), "original": (data.images, candidates)}
fdr = {(pair, number): faults.detection_table(wrong, orders(*images, layer), [20])[20]
       for pair, images in pairs.items() for number, layer in layers.items()}
for (pair, layer), found in fdr.items():
    for share, value in found.items():
        run.add({"fdr": value}, pair=pair, difference="l1", layer=layer, share=share, rate=20)

# %% tags=["hide-input"]
print(f"random order expects {wrong.mean():.1%}")
wide(run.live, "quantity == 'fdr'", index=["pair", "layer"], columns="share")

# %%
for pair in pairs:
    last = fdr[pair, -1]
    run.add({"all_over_one_percent": last[100] - last[1]}, pair=pair, difference="l1", rate=20,
            layer=-1)
    run.add({"last_layer_lead": last[20] - max(fdr[pair, n][20] for n in layers if n != -1)},
            pair=pair, difference="l1", rate=20, share=20)
run.save(data, device=device)

# %% [markdown]
# ## Table IX, beside the paper's: how many neurons
#
# The neurons are those of the last layer. The first table uses the pair of the text; the second has
# the known original, too. VGG16 had a JPEG copy of CIFAR-10.

# %% tags=["hide-input"]
display(run.beside(published.table("nss", 9), LAST + " and pair == 'remutated'", on=[*CELL, "share"],
                   digits=1, recipe="nss"))
wide(kept, LAST, index=[*CELL, "pair"], columns="share")

# %% tags=["hide-input", "statements"]
rise, steps = (table[20] - table[1] for table in (known_shares, paper_shares))
inner = rows.query("quantity == 'fdr' and pair == 'original' and layer == -2").groupby([*CELL, "share"])["value"].mean().unstack()
further = by_option(rows, "share", "original")
onwards = evidence.spread(further[100] - further[20])
says(
    ("If the original is known, the FDR is lowest with the most sensitive 1 % of the neurons, in the mean of every network.",
     known_shares.idxmin(axis=1).eq(1).all()),
    (f"From 1 % to 20 % of the neurons it rises by {span(rise[deep])} points with the deeper networks.", (rise > 0).all()),
    f"In the paper it rises by {span(steps[deep])} points with these.",
    (f"With the LeNets it rises by {span(rise[shallow])} points. For these, Table IX has at 20 % the values that Table X has "
     f"for the last layer but one. In that layer ours rises by {span((inner[20] - inner[1])[shallow])} points, and the paper's by "
     f"{span(steps[shallow])}.", (paper_shares[20] - paper_layers[-2])[shallow].abs().max() < 0.06),
    (f"From 20 % to all neurons it changes by {onwards['mean'].min():+.1f} to {onwards['mean'].max():+.1f} points. The "
     f"fall is more than chance with {networks(onwards.query('high < 0').index)}, and the rise with "
     f"{networks(onwards.query('low > 0').index)}.", (onwards["high"] < 0).any() and (onwards["low"] > 0).any()))

# %% [markdown]
# ## Table X, beside the paper's: which layer
#
# The tables use a fifth of the neurons. The second one, from the records, has the known original, at the first layer and
# at the last.

# %% tags=["hide-input"]
run.beside(published.table("nss", 10), FIFTH + " and pair == 'remutated'", on=[*CELL, "layer"],
           digits=1, recipe="nss")

# %% tags=["hide-input"]
None if known_layers.empty else headed(pd.DataFrame({
    "first layer": known_layers[1].round(1), "paper's first": paper_layers[1],
    "last layer": known_layers[-1].round(1), "paper's last": paper_layers[-1]}))

# %% [markdown]
# ### A part of SVHN
#
# The whole of SVHN is not at hand. We have 4,434 of its training images and 8,372 of its test images.
# The tables have LeNet-5 on this part, beside what the paper prints for the whole: first by the share of
# the neurons (Table IX), then by the layer (Table X). No verdict rests on it.

# %% tags=["hide-input"]
for number, which, column in ((9, LAST, "share"), (10, FIFTH, "layer")):
    display(run.beside(published.of_part(published.table("nss", number)), which + " and pair == 'remutated'",
                       on=[*CELL, column], digits=1, dataset="svhn_part", recipe="nss").query("ours != ''"))

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts({"had the original been known": {"pair": "original"}})

# %% tags=["hide-input", "statements"]
known, fresh = (evidence.spread(layers[-1] - layers[1])
                for layers in (by_option(rows, "layer", pair) for pair in ("original", "remutated")))
printed = paper_layers[-1] - paper_layers[1]
says(
    (f"**What it means.** If the original is known, the deeper networks gain {span(known.loc[deep, 'mean'])} "
     "points from the first layer to the last. Each gap is more than chance, and the paper has such gaps, too.",
     known.loc[deep, "mean"].min() > 5 and printed[deep].min() > 5 and len(deep) > 1 and known.loc[deep, "low"].min() > 0),
    ("With the LeNets the two differ by less than 5 points, as in the paper.",
     known.loc[shallow, "mean"].abs().max() < 5 and printed[shallow].abs().max() < 5),
    ("If NSS runs as the text describes it, there is no such gap. The last layer is clearly better than the first with no "
     f"network, and clearly worse with {networks(fresh.query('high < 0').index)}.",
     (fresh["low"] <= 0).all() and (fresh["high"] < 0).any()),
    ("This is the strongest sign in this book that the paper's numbers were made with the known original. But the layer that "
     "the released code takes for ResNet-20, the first, would not give them.", known.loc[deep, "low"].min() > 0
     and (fresh["low"] <= 0).all() and (known_layers[1] < paper_layers[-1] - 5).xs("resnet20", level="model").all()))

# %% tags=["hide-input", "statements"]
harmed = evidence.cells_that("fails", "nss-neurons-more")
text, told = ([evidence.state(claim, pair=pair) for claim in ("nss-neurons-more", "nss-layer-last")]
              for pair in ("remutated", "original"))
says(
    ("Whether more than a fifth of the neurons help depends on the network.",
     (onwards["high"] < 0).any() and (onwards["low"] > 0).any()),
    ("If NSS runs as the text describes it, more neurons do not help. All neurons find clearly fewer faults than the most "
     f"sensitive 1 % with {networks(harmed)}, and clearly more with no network.",
     len(harmed) > 0 and not evidence.cells_that("holds", "nss-neurons-more")),
    f"As the text describes NSS, the verdicts are *{text[0]}* for the share of the neurons and *{text[1]}* for the "
    f"layer. With the known original they are *{told[0]}* and *{told[1]}*.",
    "The claim about the layer asks much: the last layer must be better than each other layer, with every network.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** One score uses all neurons, another only a tenth of them. Why is the first score not
# always the better one?
#
# ```{admonition} Solution
# :class: dropdown
# The noise of single neurons averages out in a sum over many of them. But not every neuron tells you
# something: a neuron that hardly responds adds little to the sum, and a neuron that responds to every
# mutation in the same way adds the same number for every input.
# ```
#
# **2. Code.** Write `my_interval(differences)`: Student's 95 % interval of the mean of three paired
# differences, one for each seed. The quantile for three values is 4.302653. The cell says whether
# it is right.

# %%
my_interval = None  # your function of three numbers, giving (low, high)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    from dnnbook.records.intervals import interval

    check(answer, interval, ([1.0, 2.0, 3.0],), ([0.5, 0.4, 0.6],))


is_right(my_interval)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_interval(differences):
#     mean = sum(differences) / 3
#     spread = (sum((d - mean) ** 2 for d in differences) / 2) ** 0.5
#     half = 4.302653 * spread / 3 ** 0.5
#     return mean - half, mean + half
#
# is_right(my_interval)
# ~~~
#
# With three seeds, the half width of the interval is two and a half times the spread between the
# seeds. You can tell an effect from chance only if it is larger than that.
# ```
