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
from dataclasses import replace

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
from dnnbook.records import records, verdicts
from dnnbook.records.intervals import over_seeds
from dnnbook.words import networks, shown, span
from dnnlib import inference, selection
from dnnlib.measures import faults
from dnnlib.neurons import activations
from dnnlib.perturb import mutations
from dnnlib.selection import nss

plots.style()
run = Experiment("nss/neurons", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("nss-neurons-more")

# %% tags=["hide-input", "records"]
CELL = ["dataset", "model"]

# %% tags=["hide-input", "statements"]
rates = records.frame("nss/neurons", recipe="nss").query("quantity == 'fdr'").set_index(
    ["pair", *CELL, "seed", "layer", "share"])["value"]
by_layer, by_share = rates.xs(20, level="share").unstack("layer"), rates.xs(-1, level="layer").unstack("share")
of_layers, of_shares = (found.loc["original"].groupby(CELL).mean() for found in (by_layer, by_share))
paper_layers, paper_shares = (published.table("nss", number).set_index([*CELL, name])["value"].unstack(name).loc[of_layers.index]
                              for number, name in ((10, "layer"), (9, "share")))
lenets = [cell for cell in of_layers.index if cell[1].startswith("lenet")]
deep = of_layers.index.difference(lenets)
chance = records.frame("nss/fault_detection", recipe="nss", candidates="random").query(
    "quantity == 'fdr' and method == 'random, expected' and rate == 20").set_index([*CELL, "seed"])["value"]
from_chance = rates["remutated"].unstack(["layer", "share"]).sub(chance, axis=0).groupby(CELL).mean()
of_share, of_layer = (found.max(axis=1) - found.min(axis=1) for found in (of_shares, of_layers))
says(
    ("**The answer.** If the original is known, the share of the neurons matters more with the LeNets, and the layer with "
     "the deeper networks.", (of_share > of_layer)[lenets].all() and (of_share < of_layer)[deep].all()),
    ("Neither option replaces the known original. As the text describes it, NSS stays between "
     f"{-from_chance.min(axis=None):.0f} points below random order and {from_chance.max(axis=None):.0f} above it, whatever "
     "the layer and the share are.",
     from_chance.abs().max(axis=None) < 10))

# %% [markdown]
# **In one picture.** Do the lines rise, with more neurons (left) or from layer to layer (right)? The broken lines are
# the method of the text: how far are they below the solid ones?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fault detection rate at 20 % by share of neurons (last layer, left) and by layer (a fifth of the neurons, right). Full lines: the original is known; broken: the text's pair. Mean over the seeds, with the range.", "name": "fig-nss-neurons"}}
LAST, FIFTH = ("quantity == 'fdr' and " + which for which in ("layer == -1", "share == 20"))
if (kept := run.recorded(recipe="nss")).empty:
    plots.nothing()
else:
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
    for axis, which, x, label in ((axes[0], LAST, "share", "neurons (%)"),
                                  (axes[1], FIFTH, "layer", "layer")):
        drawn = kept.query(which).astype({x: int})
        drawn = drawn.assign(x=drawn[x].astype(str), against=drawn["pair"].map(shown),
                             network=drawn["dataset"].map(shown) + ", " + drawn["model"].map(shown))
        sns.lineplot(drawn, x="x", y="value", hue="network", style="against", ax=axis, marker="o",
                     style_order=[shown("original"), shown("remutated")], errorbar=("pi", 100),
                     legend=x == "layer")
        axis.set(xlabel=label, ylabel="FDR at 20 % (%)")
    axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to tell an effect from the noise between seeds, and whether these two options matter, compared
# with the option in [the chapter on fault detection](02_fault_detection).
#
# ## Layers
#
# Table X has "Layer1", "Layer2" and the last two of the encoder. The paper does not say what it
# counts as a layer. We count activations and pools in the LeNets and VGG16, and the stem and the
# residual blocks in ResNet-20.

# %% tags=["hide-input"]
layers = {"lenet1_nss": {1: "1", 2: "2", -2: "4", -1: "5"},
          "lenet5_nss": {1: "1", 2: "2", -2: "4", -1: "5"},
          "resnet20": {1: "2", 2: "3", -2: "10", -1: "11"},
          "vgg16": {1: "2", 2: "5", -2: "42", -1: "43"}}[model_name]
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


pairs = {"remutated": (candidates, again), "original": (data.images, candidates)}
fdr = {(pair, number): faults.detection_table(wrong, orders(*images, layer), [20])[20]
       for pair, images in pairs.items() for number, layer in layers.items()}

# %% tags=["hide-input"]
for (pair, layer), found in fdr.items():
    for share, value in found.items():
        run.add({"fdr": value}, pair=pair, difference="l1", layer=layer, share=share, rate=20)
print(f"random order expects {wrong.mean():.1%}")
wide(run.live, "quantity == 'fdr'", index=["pair", "layer"], columns="share")

# %% tags=["hide-input"]
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
run.beside(published.table("nss", 9), LAST + " and pair == 'remutated'", on=[*CELL, "share"],
           digits=1, recipe="nss")

# %% tags=["hide-input"]
ours = run.recorded(recipe="nss")
wide(ours, LAST, index=[*CELL, "pair"], columns="share")

# %% tags=["hide-input", "statements"]
rise, steps = of_shares[20] - of_shares[1], paper_shares[20] - paper_shares[1]
inner = rates.xs(-2, level="layer").unstack("share").loc["original"].groupby(CELL).mean().loc[lenets]
onwards = over_seeds((by_share[100] - by_share[20])["original"], CELL)
says(
    ("If the original is known, the FDR is lowest with the most sensitive 1 % of the neurons, in the mean of every network.",
     of_shares.idxmin(axis=1).eq(1).all()),
    (f"From 1 % to 20 % of the neurons it rises by {span(rise[deep])} points with the deeper networks.", (rise > 0).all()),
    f"In the paper it rises by {span(steps[deep])} points with these.",
    (f"With the LeNets it rises by {span(rise[lenets])} points. For these, Table IX has at 20 % the values that Table X has "
     f"for the last layer but one. In that layer ours rises by {span(inner[20] - inner[1])} points, and the paper's by "
     f"{span(steps[lenets])}.", (paper_shares[20] - paper_layers[-2])[lenets].abs().max() < 0.06),
    (f"From 20 % to all neurons it changes by {onwards['mean'].min():+.1f} to {onwards['mean'].max():+.1f} points. The "
     f"fall is more than chance with {networks(onwards.query('high < 0').index)}, and the rise with "
     f"{networks(onwards.query('low > 0').index)}.", (onwards["high"] < 0).any() and (onwards["low"] > 0).any()))

# %% [markdown]
# ## Table X, beside the paper's: which layer
#
# The tables use a fifth of the neurons. The second one has the known original, at the first layer and at the last.

# %% tags=["hide-input"]
run.beside(published.table("nss", 10), FIFTH + " and pair == 'remutated'", on=[*CELL, "layer"],
           digits=1, recipe="nss")

# %% tags=["hide-input", "statements"]
headed(pd.DataFrame({"first layer": of_layers[1].round(1), "paper's first": paper_layers[1],
                     "last layer": of_layers[-1].round(1), "paper's last": paper_layers[-1]}))

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts({"had the original been known": {"pair": "original"}})

# %% tags=["hide-input", "statements"]
gap = {pair: over_seeds((by_layer[-1] - by_layer[1])[pair], CELL) for pair in ("original", "remutated")}
printed_gap = paper_layers[-1] - paper_layers[1]
says(
    (f"**What it means.** If the original is known, the deeper networks gain {span(gap['original'].loc[deep, 'mean'])} "
     "points from the first layer to the last. Each gap is more than chance, and the paper has such gaps, too.",
     (gap["original"].loc[deep, "mean"] > 5).all() and (printed_gap[deep] > 5).all() and len(deep) > 1
     and (gap["original"].loc[deep, "low"] > 0).all()),
    ("With the LeNets the two differ by less than 5 points, as in the paper.",
     gap["original"].loc[lenets, "mean"].abs().max() < 5 and printed_gap[lenets].abs().max() < 5),
    ("If NSS runs as the text describes it, there is no such gap. The last layer is clearly better than the first with no "
     f"network, and clearly worse with {networks(gap['remutated'].query('high < 0').index)}.",
     (gap["remutated"]["low"] <= 0).all() and (gap["remutated"]["high"] < 0).any()),
    ("This is the strongest sign in this book that the paper's numbers were made with the known original. But the "
     "layer that the released code takes for ResNet-20, the first, would not give them.",
     (gap["original"].loc[deep, "low"] > 0).all() and (gap["remutated"]["low"] <= 0).all()
     and (of_layers[1] < paper_layers[-1] - 5)[[cell for cell in deep if cell[1] == "resnet20"]].all()))

# %% tags=["hide-input", "statements"]
everyone = over_seeds((by_share[100] - by_share[1])["remutated"], CELL)
claims = {claim.id: claim for claim in published.claims("nss")}
more, last_layer = (verdicts.verdict(claims[key]) for key in ("nss-neurons-more", "nss-layer-last"))
more_known, last_known = (
    verdicts.verdict(replace(found.claim, where=found.claim.where | {"pair": "original"}))
    for found in (more, last_layer))
says(
    ("Whether more than a fifth of the neurons help depends on the network.",
     (onwards["high"] < 0).any() and (onwards["low"] > 0).any()),
    ("If NSS runs as the text describes it, more neurons do not help. All neurons find clearly fewer faults than the most "
     f"sensitive 1 % with {networks(everyone.query('high < 0').index)}, and clearly more with no network.",
     (everyone["high"] < 0).any() and (everyone["low"] <= 0).all()),
    f"As the text describes NSS, the verdicts are *{more.state}* for the share of the neurons and *{last_layer.state}* for the "
    f"layer. With the known original they are *{more_known.state}* and *{last_known.state}*.",
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
