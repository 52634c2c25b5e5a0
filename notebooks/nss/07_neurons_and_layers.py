# %% [markdown]
# # RQ3 and RQ4: how many neurons, and which layer?
#
# **The claims** (NSS IV.D and IV.E, Tables IX and X). More neurons find more faults, from the most
# sensitive 1 % to all of them; and among the layers the last of the encoder finds most.
#
# **What you will learn.** How to tell an effect from the noise between seeds; and whether these two
# options matter beside the one of [the chapter on fault detection](02_fault_detection).

# %%
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from dnnlib import inference, published, selection, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load, profile_limit
from dnnlib.measures import faults
from dnnlib.neurons import activations
from dnnlib.perturb import mutations
from dnnlib.selection import nss

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet1_nss"  # lenet1_nss, lenet5_nss or resnet20
recipe = "nss"  # nss: trained to about the accuracy of Table I; nss_second: the other stage
seed = 0  # of the training and of the mutations
profile = "embedded"  # embedded: at most 1,000 candidates; paper: the whole test set, and a record

# %% [markdown]
# ## Layers
#
# Table X has "Layer1", "Layer2" and the last two of the encoder. The paper does not say what it counts
# as a layer. Here: activations and pools in the LeNets, the stem and the residual blocks in ResNet-20.

# %%
layers = {"lenet1_nss": {1: "1", 2: "2", -2: "4", -1: "5"},
          "lenet5_nss": {1: "1", 2: "2", -2: "4", -1: "5"},
          "resnet20": {1: "2", 2: "3", -2: "10", -1: "11"}}[model]
data = load(dataset, limit=profile_limit(profile))
network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
candidates = mutations.mutate(data.images, seed=seed).images
again = mutations.mutate(candidates, seed=1000 + seed).images
wrong = (inference.predict(network, candidates).argmax(1) != data.labels).numpy()

# %% [markdown]
# ## Fault detection rate, by share of the neurons and by layer
#
# Shares of 1 to 100 % in each layer; the rate is 20 % of the candidates.

# %%
shares = (1, 5, 10, 20, 100)
rows = []
for pair, before in (("remutated", candidates), ("original", data.images)):
    after = again if pair == "remutated" else candidates
    for number, layer in layers.items():
        x, x_mutated = (activations.record(network, images, layers=[layer], neuron="unit").values
                        for images in (before, after))
        moved = nss.sensitivities(x, x_mutated)
        for share in shares:
            columns = nss.sensitive(moved, max(share / 100, 1 / moved.shape[1]))
            order = selection.by_score(moved[:, columns].double().sum(1))
            rows.append({"pair": pair, "difference": "l1", "layer": number, "share": share,
                         "rate": 20, "quantity": "fdr",
                         "value": 100 * faults.fault_detection_rate(wrong, order, 0.2)})
live = pd.DataFrame(rows)
print(f"random order expects {wrong.mean():.1%}")
live.pivot(index=["pair", "layer"], columns="share", values="value").round(1)

# %%
fdr = live.set_index(["pair", "layer", "share"])["value"]
for pair in ("remutated", "original"):
    gain = fdr[pair, -1, 100] - fdr[pair, -1, 1]
    lead = fdr[pair, -1, 20] - max(fdr[pair, layer, 20] for layer in layers if layer != -1)
    row = {"pair": pair, "difference": "l1", "rate": 20}
    rows += [row | {"layer": -1, "quantity": "all_over_one_percent", "value": gain},
             row | {"share": 20, "quantity": "last_layer_lead", "value": lead}]
if profile == "paper":
    records.save(records.Record(
        "nss/neurons", dict(dataset=dataset, model=model, recipe=recipe, seed=seed), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Table IX, beside the paper's: how many neurons
#
# Of the last layer, with the pair of the text; then with the known original. CIFAR-10 is a JPEG copy.

# %%
ours = records.frame("nss/neurons", recipe="nss")
last = ours.query("quantity == 'fdr' and layer == -1") if len(ours) else ours
on = ["dataset", "model", "share"]
compare.beside(published.table("nss", 9), last.query("pair == 'remutated'") if len(last) else last,
               on=on, digits=1)

# %%
if len(last):
    display(last.pivot_table(index=["dataset", "model", "pair"], columns="share", values="value",
                             aggfunc="mean", sort=False).round(1))

# %% [markdown]
# ## Table X, beside the paper's: which layer
#
# With a fifth of the neurons.

# %%
fifth = ours.query("quantity == 'fdr' and share == 20") if len(ours) else ours
on = ["dataset", "model", "layer"]
compare.beside(published.table("nss", 10),
               fifth.query("pair == 'remutated'") if len(fifth) else fifth, on=on, digits=1)

# %% mystnb={"figure": {"caption": "Fault detection rate at 20 % by share of neurons (last layer, left) and by layer (a fifth of the neurons, right). Full lines: the original is known; broken: the text's pair. Mean over the seeds, with the range.", "name": "fig-nss-neurons"}}
if len(ours):
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
    for axis, part, x in ((axes[0], last, "share"), (axes[1], fifth, "layer")):
        drawn = part.assign(cell=part["dataset"] + " " + part["model"], x=part[x].astype(str))
        sns.lineplot(drawn, x="x", y="value", hue="cell", style="pair", ax=axis, marker="o",
                     style_order=["original", "remutated"], errorbar=("pi", 100),
                     legend=x == "layer")
        axis.set(xlabel={"share": "neurons (%)", "layer": "layer"}[x], ylabel="FDR at 20 % (%)")
    axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
else:
    plots.nothing()
plt.show()

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("nss", experiment="nss/neurons")

# %% [markdown]
# **What it means.** With the pair of the text, neither the share nor the layer matters: every cell is
# near random order, and differences between columns are of the size of the spread between seeds. With
# the known original the paper's first tendency appears, from 1 % to a fifth of the neurons, and then
# levels off; the layers differ by a few points, not always in favour of the last.

# %% [markdown]
# ## Exercise
#
# Why is a score over all neurons not simply a better score than one over a tenth of them?
#
# ```{admonition} Solution
# :class: dropdown
# More terms average out noise, but they are not equally informative: summing in neurons that hardly
# respond adds little, and summing in neurons that respond to every mutation alike adds a constant.
# ```
