# %% [markdown]
# # How does NSS choose what to label?
#
# **The paper.** *Neuron sensitivity guided test case selection* (NSS) orders unlabelled images by how far
# the inner activations of a network move when the image is mutated a little. Images that move the
# "sensitive" neurons most are labelled first, in the hope that they are the ones the network gets wrong.
#
# **What you will learn.** The score, on the paper's own example (Table II). The seven benign mutations (Table
# III). How the sensitive neurons are found; and which places the paper leaves open.

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnbook import interactive, published, training
from dnnbook.chapters import declared
from dnnbook.chapters.yours import compared
from dnnbook.data import load
from dnnbook.display import plots, whose
from dnnbook.display.tables import headed
from dnnlib import coverage, inference, selection
from dnnlib.measures import faults
from dnnlib.neurons import activations, relevance
from dnnlib.perturb import mutations
from dnnlib.selection import npc, nss, surprise

plots.style()

# %% tags=["parameters"]
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
seed = 0  # of the training, and of all else that is random
share = 10  # percent of the neurons that count as sensitive

# %% [markdown]
# **First, look.** Choose a mutation of an image, and its strength. Each pair of pictures shows one
# map of the network before and after the mutation; here a {term}`neuron` is one value of a map.
# Neurons that change by more than the threshold are orange. Notice that a mutation can move many
# neurons even when you still see the same class. The score of {term}`NSS` is a sum of such changes.

# %% tags=["hide-input"]
declared.check("nss/00", dataset=dataset, model_name=model_name, seed=seed, share=share)
data = load(dataset, limit=200)
model = training.trained(model_name, dataset, recipe_name="nss", seed=seed)
if interactive.runs(model):
    few = data.images[:5]
    mutated = {name: torch.stack([mutations.mutate(few, name, strength=s, seed=seed).images
                                  for s in mutations.STRENGTHS]) for name in mutations.OPERATORS}
    display(interactive.lighting_up(model, few, data.labels[:5], mutated, classes=data.classes,
                                    layers=[nss.last_map(model, few)]))

# %% [markdown]
# ## The score
#
# ```{figure} ../../book/assets/nss_sensitivity.svg
# :alt: From top to bottom. A clean image x and its mutation x', turned or blurred, go through one network in two passes. The activations of three neurons are 0.4, 0.5, 0.1 for the clean image and 0.3, 0.3, 0.1 for the mutated one. The sensitivity of each neuron is the absolute difference, 0.1, 0.2 and 0.0.
# :width: 416px
# :name: fig-nss-drawn-sensitivity
#
# Neuron sensitivity, drawn after Fig. 1 of the paper with three neurons.
# ```
#
# For a {term}`candidate` $x$ and its mutation $x'$, the sensitivity of neuron $i$ is
# $S_i = |N_i(x) - N_i(x')|$, and the score of the candidate is the sum over the sensitive neurons:
#
# $$\mathrm{TNSScore}(x) = \sum_{i \in \text{sensitive}} |N_i(x) - N_i(x')| .$$
#
# Table II has four candidates and two neurons:

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

strongest = nss.tns_score([[0.4, 0.5], [0.4, 0.5]], [[0.3, 0.4], [0.3, 0.3]], share=1.0).argmax()
quiz("A mutation moves two neurons of image A from (0.4, 0.5) to (0.3, 0.4), and those of image B "
     "from (0.4, 0.5) to (0.3, 0.3). Which one does NSS label first?",
     {"A": strongest == 0, "B": strongest == 1},
     "The score adds up how far the neurons moved, 0.2 for A and 0.3 for B. Most movement comes "
     "first.")

# %% tags=["hide-input"]
printed = published.table("nss", 2).pivot_table(index="test", columns=["quantity", "neuron"],
                                                values="value")
before, after = (torch.tensor(printed[q].to_numpy()) for q in ("clean", "mutated"))

# %% tags=["nbval-check-output"]
score = compared((before - after).abs().sum(1), nss.tns_score(before, after, share=1.0),
                 "nss.tns_score", of="candidates")
print("scores:", [round(s, 2) for s in score.tolist()])
print("order: ", [list(printed.index)[i] for i in selection.by_score(score)])

# %% [markdown]
# That is the order of the paper: $x_3, x_1, x_4, x_2$.
#
# ## The seven mutations
#
# A {term}`benign mutation` should not change the class of an image. Table III gives the parameters
# and their ranges. It does not say in which direction an image is shifted, or which kernel the blur
# has. We take the values as they are printed, without signs: shifts go to the right and down, and rotation and
# shear have one direction each. The released code draws shifts of either sign. In some points the released code differs from the table (`reading="released"`).

# %% tags=["hide-input"] mystnb={"figure": {"caption": "One image under each of the seven mutations, strength rising from left to right in five steps over the range of Table III.", "name": "fig-nss-mutations", "classes": "bitmap"}}
sheet = {f"{name} {s}": mutations.mutate(data.images[:1], name, strength=s, seed=seed).images
         for name in mutations.OPERATORS for s in mutations.STRENGTHS}
plots.images(torch.cat([*sheet.values()]), [*sheet], columns=5)
whose.show(whose.run_of(dataset, model_name, seed, share=share))

# %% tags=["hide-input"]
headed(published.table("nss", 3).set_index(["operator", "parameter", "quantity"])[["printed"]])

# %% [markdown]
# ## The sensitive neurons
#
# A network has thousands of scalar activations. NSS looks at the last layer that still has a map,
# where a neuron is one scalar. It sums over those of these neurons that move most over all
# candidates (Algorithm 1): `share` percent of them, a tenth in the paper.
#
# ```{figure} ../../book/assets/nss_workflow.svg
# :alt: From top to bottom. Unlabelled candidates, and a mutation of each. Stage 1, sensitive neurons: sum the sensitivity of every neuron over all candidates and keep the largest k percent. Stage 2, the score of a candidate, TNSScore: the sum of its sensitivities over these neurons; a second arrow leads here from the candidates. Sort by score, largest first. Label the first N.
# :width: 416px
# :name: fig-nss-workflow
#
# The two stages of NSS, drawn after Fig. 2 and Algorithms 1 and 2 of the paper.
# ```
#
# Each of the two algorithms draws a mutation of its own in the paper. Here, and in our records, one draw serves
# both, so that a candidate is passed through the network twice and not three times. Below, we try both.

# %% tags=["hide-input"]
candidates = mutations.mutate(data.images, seed=seed).images
again, third = (mutations.mutate(candidates, seed=1000 * k + seed).images for k in (1, 2))
layer = nss.last_map(model, candidates)
x, x_mutated, x_third = (activations.record(model, images, layers=[layer], neuron="unit").values
                         for images in (candidates, again, third))

# %% [markdown]
# `x` and `x_mutated` hold the activations of every candidate and of its mutation, with a row for
# each candidate. The whole method is three lines:

# %%
moved = (x - x_mutated).abs()  # S_i
chosen = moved.sum(0).argsort(descending=True)[:x.shape[1] * share // 100]  # Algorithm 1
my_tns = moved[:, chosen].sum(1)  # Algorithm 2

# %%
tns = compared(my_tns, nss.tns_score(x, x_mutated, share=share / 100), "nss.tns_score",
               of="candidates", tolerance=1e-4)
print(f"layer {layer!r}: {moved.shape[1]} neurons, of which {len(chosen)} are used")

# %% tags=["hide-input"]
wrong = (inference.predict(model, candidates).argmax(1) != data.labels).numpy()
tried = faults.detection_table(wrong, {
    "NSS, one draw for both": selection.by_score(tns),
    "NSS, a draw for each": selection.by_score((x - x_third).abs()[:, chosen].sum(1)),
    "NAC, raw": selection.selector("nac").order(model, candidates),
    "NAC, each layer scaled": selection.selector("nac", activation="scaled").order(model, candidates)}, (5, 10, 20))
tried.rename_axis("faults (%) among the first", axis=1).round(1)

# %% [markdown]
# NAC's authors scale each layer to [0, 1] for each input; our NAC takes the activations as they are. With so few
# images, the differences in this table may be chance. We tried the same on all test images of MNIST, with both
# LeNets and three seeds (`python benchmarks/draws.py`). A draw for each algorithm changed the share of faults by at most 5.2
# points, in both directions, and NSS stayed below random order. Scaling changed that of NAC by at most 1.6. So in these
# cells no conclusion changes; we did not try the others.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean sensitivity of all neurons of the layer, most sensitive first. The shaded ones enter the score.", "name": "fig-nss-sensitive"}}
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(moved.mean(0).sort(descending=True).values)
axis.axvspan(0, len(chosen), alpha=0.2)
axis.set(xlabel="neuron, most sensitive first", ylabel="mean |N(x) - N(x')|")
whose.show(whose.run_of(dataset, model_name, seed, share=share))

# %% [markdown]
# ## What comes first
#
# The candidates with the highest and the lowest scores, with the true class and the predicted one:

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Candidates that NSS would have labelled first (upper row) and last (lower row): true class, and the predicted one after the arrow.", "name": "fig-nss-first", "classes": "bitmap"}}
ranking = selection.by_score(tns)
predicted = inference.predict(model, candidates).argmax(1)
ends = torch.cat([ranking[:8], ranking[-8:]])
plots.images(candidates[ends], [f"{data.classes[data.labels[i]]} → {data.classes[predicted[i]]}"
                                for i in ends.tolist()])
whose.show(whose.run_of(dataset, model_name, seed, share=share))

# %% [markdown]
# ## What the paper leaves open
#
# | question | text | released code | here |
# |---|---|---|---|
# | what is a candidate compared with? | a fresh mutation of itself | the clean image it was made from | `pair`: `remutated` (default), `original` |
# | how is the distance measured? | absolute difference, summed | squared, over the largest clean activation, mean | `difference`: `l1` (default), `squared_normalised` |
# | which mutation? | one of seven, drawn at random | one of seven, by position in the batch | `mutation`: `random` (default), or a name |
# | which layer? | the last of the encoder | the last pool; for ResNet-20 the first layer | `layer`: the last map (default), or a name |
# | how many neurons? | 10 % | 10 % | `share` |
#
# Of these we varied all but the mutation. What comes of it is in the chapters on
# [fault detection](02_fault_detection) and on [neurons and layers](07_neurons_and_layers).
#
# ## The others, in a few lines each
#
# The paper compares NSS with seven ways to select. Random order and {term}`DeepGini`, one minus the
# sum of the squared probabilities, need no explanation. Here we apply the ideas of the others to
# the candidates above, and look at the faults that two of them find.
#
# **DSA**, distance-based surprise adequacy: how surprising is a candidate, compared with the training images?
# Take its activations in the last hidden layer (its *trace*). Find the nearest training image $x_a$ of the
# class that the network gives the candidate. The candidate is surprising if $x_a$ is far, at a distance
# $d_a$, and if another class is close to $x_a$, at a distance $d_b$: $DSA = d_a / d_b$.

# %% tags=["hide-input"]
train = load(dataset, "train").images[:1000]
hidden = surprise.last_hidden(model, candidates)
(known, known_classes), (traces, classes) = (
    (found.values, given) for found, given in (
        activations.record_classes(model, images, layers=[hidden]) for images in (train, candidates)))


# %%
def dsa(trace, given):
    """d_a / d_b of one candidate, for the class that it is given."""
    same, other = known[known_classes == given], known[known_classes != given]
    x_a = same[(same - trace).norm(dim=1).argmin()]
    return (x_a - trace).norm() / (other - x_a).norm(dim=1).min()

my_dsa = torch.stack([dsa(*pair) for pair in zip(traces, classes)])
surprising = compared(my_dsa, surprise.DSA(reference=train).score(model, candidates),
                      "surprise.DSA", of="candidates", tolerance=1e-4)

# %% [markdown]
# **KMNC**, k-multisection neuron coverage: cut the range that a neuron has on training images into $k$
# sections. For each neuron, a candidate covers the section that the activation falls into; if the activation
# is outside of the range, it covers none. {term}`NAC` is the same with one section: all values above a
# threshold. We take the activations as they are (`activation="raw"`), as the words of NSS have it. NAC's
# authors first scale each layer to [0, 1] for each input (`activation="scaled"`), which is another order.

# %% tags=["hide-input"]
k = 10  # the paper has 1,000; with few sections one sees more
usual, a = (activations.record(model, images).values for images in (train, candidates))

# %%
low, high = usual.min(0).values, usual.max(0).values
section = ((a - low) * k / (high - low)).floor().clamp(max=k - 1)
outside = (a < low) | (a > high) | (low == high)
covered = coverage.kmnc(a, coverage.boundaries(usual), k)
bins = compared(section.masked_fill(outside, -1), covered.bins, "coverage.kmnc", of="candidates")

# %% [markdown]
# **CAM**, coverage-additional order, turns any coverage into an order: always take the candidate
# that covers most of what is not covered yet. Once no candidate adds anything, the rest follow in
# random order.

# %%
items = [{(n, s) for n, s in enumerate(row) if s >= 0} for row in bins.int().tolist()]
picked, done = [], set()
while any(new := [len(each - done) for each in items]):
    best = new.index(max(new))  # of equals the first
    picked.append(best)
    done |= items[best]

# %%
cam = compared(torch.tensor(picked), coverage.cam(covered, fill=None), "coverage.cam", of="places")
print(f"{len(cam)} of {len(items)} candidates cover all that all of them cover")

# %% [markdown]
# What the two scores find among the first candidates, beside NSS. As above, a difference may be chance.

# %% tags=["hide-input"]
rest = torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))
faults.detection_table(wrong, {
    "DSA": selection.by_score(surprising), "KMNC, by CAM": torch.cat([cam, rest[~torch.isin(rest, cam)]]),
    "NSS": selection.by_score(tns)}, (5, 10, 20)).rename_axis("faults (%) among the first", axis=1).round(1)

# %% [markdown]
# **NPC**, neuron path coverage, follows how a decision was made. Relevance is sent back from the
# class that the network gives, layer by layer, so that each channel gets the share that it
# contributed. In every layer, the *critical path* consists of the fewest channels that together
# hold the share $\alpha$ of the positive relevance. A candidate whose path is like those of the
# training images of its class adds nothing new.

# %% tags=["hide-input"]
sent = relevance.propagate(model, candidates)
layer_by_layer = sent.values.split(sent.widths, dim=1)


# %%
def critical(relevance, alpha=0.7):
    """Which channels of one layer are on the critical path of each candidate: (N, channels)."""
    values, channels = relevance.double().clamp(min=0).sort(dim=1, descending=True, stable=True)
    larger = values.cumsum(1) - values  # what the larger ones hold together
    on_path = larger < alpha * values.sum(1, keepdim=True)
    return torch.zeros_like(on_path).scatter(1, channels, on_path)


my_path = torch.cat([critical(layer) for layer in layer_by_layer], 1)
path = compared(my_path, npc.critical(sent), "npc.critical", of="candidates")

# %% [markdown]
# The number of channels on the path, in each layer:

# %% tags=["hide-input"]
channels = torch.stack([part.sum(1) for part in path.split(sent.widths, dim=1)], 1)
headed(pd.DataFrame({"the first candidate": channels[0], "mean of all": channels.double().mean(0),
                     "of channels": sent.widths}, index=sent.layers).rename_axis("layer").round(1))

# %% [markdown]
# The last one, {term}`ATS`, asks how much of the space of all
# {term}`softmax vectors <softmax vector>` the chosen candidates cover. It has no short form.
#
# ## The options of all selectors
#
# Table IV, as printed:

# %% tags=["hide-input"]
headed(published.table("nss", 4).set_index(["method", "parameter"])[["printed"]])

# %% [markdown]
# ## Exercises
#
# **1. Think.** Order the four candidates of Table II by the released code's difference. Does
# anything change?
#
# ```{admonition} Solution
# :class: dropdown
# `nss.tns_score(before, after, share=1.0, difference="squared_normalised")` divides each squared
# difference by the largest clean activation of the candidate. $x_3$ stays first and $x_2$ last;
# compare the other two by hand: 0.02/0.5 for $x_1$ against 0.0125/0.8 for $x_4$.
# ```
#
# **2. Think.** A mutation that turns every image black would move the neurons far. Would it make a
# good NSS?
#
# ```{admonition} Solution
# :class: dropdown
# It would be another method. $N(x')$ is then the same for all candidates, and the score only measures how
# far the neurons of $x$ are from those of a black image. It says nothing about how $x$ reacts to a small
# change, which is the idea of NSS. Try `mutations.apply(candidates, "brightness", 0.0)`.
# ```
#
# **3. Code.** Write `my_score(before, after)`: the released code's score of a candidate, with all
# its neurons. Divide each squared difference by the candidate's largest clean activation, then take
# the mean. The cell says whether it is right.

# %%
my_score = None  # your function of two tensors (N, neurons), giving (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    clean = torch.tensor([[0.4, 0.5], [0.8, 0.5]])
    moved = torch.tensor([[0.3, 0.4], [0.7, 0.45]])
    check(answer, lambda a, b: nss.tns_score(a, b, share=1.0, difference="squared_normalised"),
          (clean, moved), (moved, clean))


is_right(my_score)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_score(before, after):
#     return ((before - after) ** 2).mean(1) / before.max(1).values
#
# is_right(my_score)
# ~~~
#
# Squares make one large movement count more than many small ones.
# ```
