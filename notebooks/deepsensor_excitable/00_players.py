# %% [markdown]
# # Neurons as players
#
# **The claim** (DeepSensor II, Section 1, Fig. 1; Definitions 1 to 3). When an input is perturbed,
# the loss changes, and the neurons share out that change by their Shapley values; a neuron with a
# value above $\lambda = 0.5$ is *excitable*. Over 500 pairs of a benign "9" and one of its corner
# cases, the corner cases have many more excitable neurons.
#
# **What you will learn.** A Shapley value by hand; what it costs to estimate one, and how one sees
# that an estimate is good; and how much of a count of excitable neurons is the change of loss
# itself.

# %%
from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from scipy import stats
from sklearn.manifold import TSNE

from dnnlib import fuzzing, inference, models, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load
from dnnlib.neurons import activations, excitable, shapley
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.perturb import mutations

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how it is trained: a name of `training.RECIPES`
seed = 0  # of the training, of the choice of images and of all that is random
small = "lenet1"  # the network in which the estimators are compared
layer = "4"  # of the small network: the layer whose exact values can be had, at most 16 neurons
inputs = 4  # images on which the estimators are compared
orders = 200  # permutations of the reference for the whole small network
seeds_count = 40  # benign images, at most so many of each class
seed_class = 9  # the class of Fig. 1: its place among the classes
other_class = 1  # the class shown beside it
iterations = 20  # of DeepHunter, which makes the corner cases, and of the swarm
population = 20  # particles of the swarm of Fig. 3; the paper has 100
references = 1000  # training images that give DeepHunter its neuron boundaries
profile = "embedded"  # embedded: a look; paper: also a record

# %% [markdown]
# ## A game by hand
#
# Players form a coalition $s$, which is worth $\varsigma(s)$. What player $n$ adds to it is its
# marginal contribution (4), and the Shapley value is its mean over all coalitions (5), weighted so
# that all orders in which the players can join are equally likely:
#
# $$m(n, s) = \varsigma(s) - \varsigma(s \setminus \{n\}) \quad (4), \qquad
# \psi(n) = \sum_{s \ni n} \frac{(|s|-1)!\,(N-|s|)!}{N!}\, m(n, s) \quad (5).$$
#
# Three neurons $a$, $b$, $c$. Alone, only $a$ raises the loss, by 1; $a$ and $b$ together by 4; $c$
# changes nothing.

# %% tags=["nbval-check-output"]
class Three:
    """A game as the estimators take it: the worth of coalitions given as gates (K, 3)."""

    players = 3

    def value(self, coalitions):
        a, b, _ = torch.as_tensor(coalitions, dtype=torch.float64).unbind(-1)
        return (a + 3 * a * b).view(1, -1)


for order in permutations(range(3)):
    joined = torch.tensor([[n in order[:k] for n in range(3)] for k in range(4)])
    adds = dict(zip(order, Three().value(joined)[0].diff().tolist()))
    print(" then ".join("abc"[n] for n in order), "  adds:",
          *(f"{'abc'[n]} {adds[n]:.0f}" for n in range(3)))
psi = shapley.exact(Three()).values[0]
print("Shapley values:", *(f"{'abc'[n]} {psi[n]:.1f}" for n in range(3)))

# %% [markdown]
# The values are the means of the columns, and they add up to 4, what all are worth (*efficiency*).
# $c$ gets nothing. $b$ is paid for what it does together with $a$, half of the 3 that neither does
# alone. Switch off one neuron at a time instead, and $a$ would be given 4, $b$ 3: seven in all,
# three too many.

# %% [markdown]
# ## A game of neurons
#
# In the network, the worth of a coalition is the change of loss from the benign image $x$ to
# $x + \Delta x$ when all other neurons are switched off, in both passes (Definition 1):
# `shapley.Game`. The exact values take $2^N$ coalitions, so they can be had for one layer of a small
# network. The inputs are test images that a benign mutation makes the network get wrong, so that
# there is a loss to share out.

# %%
data = load(dataset)
few = training.trained(small, dataset, recipe_name=recipe, seed=seed)
moved = mutations.mutate(data.images, seed=seed).images
mine = fuzzing.benign(few, data.images, data.labels, seed=seed)
mine = mine[inference.predict(few, moved[mine]).argmax(1) != data.labels[mine]][:inputs]
game = (few, data.images[mine], moved[mine], data.labels[mine])
games = {"layer": shapley.Game(*game, layers=[layer]), "network": shapley.Game(*game)}
truth = {"layer": shapley.exact(games["layer"]),
         "network": shapley.permutation(games["network"], permutations=orders,
                                        generator=torch.Generator().manual_seed(1000 + seed))}
for where, game in games.items():
    error = truth[where].error
    print(f"{where}: {game.players} players, reference by {truth[where].passes // len(mine):,} "
          "passes an image, " + ("exact" if error is None else f"standard error {error.mean():.2f}")
          + f", {truth[where].total.mean():.1f} nats to share out")

# %% [markdown]
# ## Accuracy against cost
#
# - **permutation**: the mean contribution over some random orders, each with its reverse;
# - **diagonal**: all gates at $t$ at once, the gradient there, integrated over $t$ in $[0, 1]$; a
#   few gradients give all neurons;
# - **leave one out**: each neuron missing once; no Shapley value, and what many would try first.
#
# `error` is the distance to the reference over the reference's length, `rank` Spearman's
# correlation of the two, `gap` how far the values miss the change of loss that they should add up
# to, as a share of it. The gap needs no reference: it is the error bar that every estimate brings.

# %%
generator = torch.Generator().manual_seed(seed)
tried = [("leave one out", 1, shapley.leave_one_out, {})]
tried += [("diagonal", n, shapley.diagonal, {"points": n}) for n in (1, 2, 4, 8, 16)]
tried += [("permutation", n, shapley.permutation, {"permutations": n, "generator": generator})
          for n in (2, 4, 10, 20, 50)]
rows = []
for where, game in games.items():
    true = truth[where].values
    for estimator, setting, estimate, options in tried:
        got = estimate(game, **options)
        measured = {
            "passes": got.passes / len(mine),
            "error": float(((got.values - true).norm(dim=1) / true.norm(dim=1)).mean()),
            "rank": float(np.mean([stats.spearmanr(a, b).statistic
                                   for a, b in zip(got.values, true)])),
            "gap": float(got.gap.abs().sum() / got.total.abs().sum())}
        rows += [{"players": where, "estimator": estimator, "setting": setting,
                  "quantity": quantity, "value": value} for quantity, value in measured.items()]
accuracy = pd.DataFrame(rows).pivot(index=["players", "estimator", "setting"], columns="quantity",
                                    values="value")[["passes", "error", "rank", "gap"]]
accuracy.round(3)

# %% mystnb={"figure": {"caption": "Error of estimated Shapley values against the passes through the network for each image, a gradient counting as two more. Left: one layer, against exact values; right: all neurons of the small network, against a reference by many permutations. Broken lines: the gap to efficiency of the diagonal.", "name": "fig-excitable-estimators"}}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
for axis, (where, part) in zip(axes, accuracy.groupby("players")):
    for i, (estimator, line) in enumerate(part.groupby("estimator")):
        line = line.sort_values("passes")
        axis.loglog(line["passes"], line["error"], "o-", ms=4, color=f"C{i}", label=estimator)
        if estimator == "diagonal":
            axis.loglog(line["passes"], line["gap"], "--", color=f"C{i}", lw=1)
    axis.set(xlabel="passes for an image", title=f"{where}, {games[where].players} players")
axes[0].set_ylabel("error")
axes[0].legend()
plt.show()

# %% [markdown]
# Permutations have no gap and still err, by chance: more of them help, as one over the root. The
# diagonal errs by design (neurons that act together share by slopes, not by orders), so more points
# close its gap and leave an error. A gap proves an estimate wrong; no gap proves nothing. To order
# the neurons of a whole network, compare `rank` of two gradients with that of the permutations that
# take a hundred times their passes.

# %% [markdown]
# ## Benign images and corner cases
#
# Now the network of the paper. The corner cases and what they are compared with are those of
# [the first paper's chapter](../deepsensor_sensitivity/01_sensitive_neurons): **error**, the first
# mutant by DeepHunter that lost its class; **noise** of the same L2 length on the same image;
# **right**, the mutant nearest in length that kept its class. A benign image *by itself* has no
# perturbation, no change of loss to share out, and no excitable neuron.

# %%
network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
right = fuzzing.benign(network, data.images, data.labels, seed=seed)
mine, others = (right[data.labels[right] == c][:seeds_count] for c in (seed_class, other_class))
benign, labels = data.images[mine], data.labels[mine]
hunter = fuzzing.fuzzer("deephunter", reference=load(dataset, "train").images[:references])
pairs = fuzzing.corner_cases(hunter, network, benign, labels, iterations=iterations, seed=seed)
corner = pairs["error"][1]
length = (corner - pairs["error"][0]).flatten(1).norm(dim=1)
print(data)
print(f"{len(corner)} of {len(benign)} images of class {data.classes[seed_class]!r} have a corner "
      f"case, at a median L2 distance of {length.median():.1f}")


# %%
def values(x: torch.Tensor, moved: torch.Tensor, label: int) -> shapley.Shapley:
    """Shapley values of all neurons for images of one class."""
    return shapley.diagonal(shapley.Game(network, x, moved, torch.full((len(x),), label)))


found = {group: values(*pair, seed_class) for group, pair in pairs.items()}

# %%
thresholds = (0.1, 0.3, 0.5, 0.7, 0.9)
many = {(scale, t, group): excitable.excitable(got.values, t, scale=scale).sum(1)
        for scale in excitable.SCALES for t in thresholds for group, got in found.items()}
for (scale, t, group), count in many.items():
    where = {"fuzzer": "deephunter", "scale": scale, "lambda": t}
    mean = float(count.double().mean())
    rows.append(where | {"group": group, "quantity": "excitable_neurons", "value": mean})
    if group != "error":  # none at all counts as one in the whole group
        errors = float(many[scale, t, "error"].double().mean())
        rows.append(where | {"quantity": f"error_over_{group}",
                             "value": errors / max(mean, 1 / len(count))})
for group, (x, moved) in pairs.items():
    rows += [{"group": group, "quantity": "l2",
              "value": float((moved - x).flatten(1).norm(dim=1).mean())},
             {"group": group, "quantity": "total", "value": float(found[group].total.mean())}]
live = pd.DataFrame(rows)
live.query("quantity == 'excitable_neurons'").pivot(
    index=["scale", "lambda"], columns="group", values="value").round(1)

# %% [markdown]
# Mean numbers of excitable neurons; `none` is $\psi$ in nats, as printed, `total` $\psi$ over its
# mean absolute value, which takes away how large the change of loss is.
#
# An error *is* a large change of loss, and the values in nats add up to it. So compare counts at the
# same change:

# %% mystnb={"figure": {"caption": "Number of excitable neurons of each image against the change of its loss, which the Shapley values share out: values in nats (left) and over their mean absolute value (right), both with a threshold of 0.5.", "name": "fig-excitable-loss"}}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
for axis, scale in zip(axes, excitable.SCALES):
    for group, colour in (("right", "0.7"), ("noise", "C0"), ("error", "C3")):
        axis.scatter(found[group].total, many[scale, 0.5, group], s=12, alpha=0.6, color=colour,
                     label=group)
    axis.set(xlabel="change of loss (nats)", ylabel="excitable neurons", title=f"scale: {scale}",
             xscale="symlog")
axes[0].legend()
plt.show()

# %% [markdown]
# Spearman's correlation of the count with the change of loss, over all images of the three groups,
# and within the errors:

# %%
total = torch.cat([got.total for got in found.values()])
for scale in excitable.SCALES:
    count = torch.cat([many[scale, 0.5, group] for group in found])
    for group, a, b in (("all", total, count),
                        ("error", found["error"].total, many[scale, 0.5, "error"])):
        varies = a.unique().numel() > 1 and b.unique().numel() > 1
        rows.append({"scale": scale, "lambda": 0.5, "group": group, "quantity": "count_with_loss",
                     "value": stats.spearmanr(a, b).statistic if varies else np.nan})
pd.DataFrame(rows).query("quantity == 'count_with_loss'").pivot(
    index="scale", columns="group", values="value").round(2)

# %% [markdown]
# ## Fig. 1: some pairs, and t-SNE
#
# Colours on the right are numbers of excitable neurons; there benign images are under noise as long
# as the median corner case.

# %% mystnb={"figure": {"caption": "Benign images (upper row) under noise, and their corner cases (lower row), with the class that the network gives and the number of excitable neurons.", "name": "fig-excitable-pairs"}}
shown = slice(0, min(6, len(corner)))
parts = {}
for title, group in (("benign, under noise", "noise"), ("corner cases", "error")):
    moved = pairs[group][1][shown]
    given = inference.predict(network, moved).argmax(1)
    parts[title] = (moved, [f"{data.classes[c]}\n{n} excitable" for c, n in zip(
        given.tolist(), many["none", 0.5, group][shown].tolist())])
plots.sheet(parts, columns=6)
plt.show()

# %% mystnb={"figure": {"caption": "t-SNE of the last hidden layer for two benign classes and for corner cases of the first (left), and the number of excitable neurons of each point (right).", "name": "fig-excitable-tsne"}}
hidden = list(models.neuron_layers(network))[-2]
groups = {f"class {data.classes[seed_class]}": benign,
          f"class {data.classes[other_class]}": data.images[others], "corner cases": corner}
images = torch.cat(list(groups.values()))
latent = activations.record(network, images, layers=[hidden], neuron="unit").values.numpy()
plane = TSNE(random_state=seed, init="pca", perplexity=min(30, len(latent) // 4)).fit_transform(
    latent)
number = [excitable.excitable(values(x, fuzzing.with_noise(x, length.median().expand(len(x)),
                                                         seed=seed), label).values).sum(1)
          for x, label in ((benign, seed_class), (data.images[others], other_class))]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for name, spot in zip(groups, np.split(plane, np.cumsum([*map(len, groups.values())])[:-1])):
    axes[0].scatter(*spot.T, s=14, label=name)
axes[0].legend()
points = axes[1].scatter(*plane.T, s=14, c=torch.cat([*number, many["none", 0.5, "error"]]),
                         cmap="viridis")
figure.colorbar(points, label="excitable neurons")
for axis in axes:
    axis.set(xticks=[], yticks=[])
plt.show()

# %% [markdown]
# ## Fig. 3: one swarm
#
# The paper shows a swarm around one image of CIFAR-10. Its fitness, the share of excitable neurons,
# is 0 at first, stays the same from the 10th iteration on, and ends at 37 %. Ours, around the first
# benign image, in both scales:

# %% mystnb={"figure": {"caption": "Share of excitable neurons of a swarm's best position, iteration by iteration; full points are test errors. The broken line is where the paper's example ends.", "name": "fig-excitable-swarm"}}
figure, axis = plt.subplots(figsize=(5.5, 3.2))
for i, scale in enumerate(excitable.SCALES):
    fitness, seen = ExcitableNeurons(scale=scale), []
    flown = fuzzing.Swarm.paper(fitness=fitness, population=population).run(
        network, benign[:1], labels[:1], iterations=iterations, watch=seen.append,
        generator=torch.Generator().manual_seed(seed))
    share = 100 * fitness(network, benign[:1], labels[:1])(
        torch.cat(seen), torch.zeros(iterations, dtype=torch.int64))
    wrong = flown.errors[:, 0]
    axis.plot(share, color=f"C{i}", lw=1, label=f"scale: {scale}")
    axis.scatter(np.arange(iterations), share, s=18, edgecolors=f"C{i}",
                 color=[f"C{i}" if e else "white" for e in wrong.tolist()], zorder=3)
    rows.append({"scale": scale, "lambda": 0.5, "quantity": "last_share",
                 "value": float(share[-1])})
axis.axhline(37, color="0.5", ls="--", lw=1)
axis.set(xlabel="iteration", ylabel="excitable neurons (%)", ylim=(0, None))
axis.legend()
plt.show()

# %%
if profile == "paper":
    records.save(records.Record(
        "deepsensor_excitable/players",
        dict(dataset=dataset, model=model, recipe=recipe, seed=seed, small=small, layer=layer,
             inputs=inputs, orders=orders, seeds_count=seeds_count, seed_class=seed_class,
             iterations=iterations, population=population, references=references), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Over all records
#
# Excitable neurons of errors, over those under noise of the same length (the claim) and over those
# of mutants that kept their class; then the estimators, in the whole small network. Means over the
# seeds. The paper prints no number.

# %%
ours = records.frame("deepsensor_excitable/players")
if len(ours):
    ratios = ours[ours["quantity"].str.startswith("error_over")]
    display(ratios.pivot_table(index=["dataset", "model", "scale", "quantity"], columns="lambda",
                               values="value").round(2))
    network_wide = ours[ours["players"] == "network"]
    display(network_wide.pivot_table(index=["dataset", "small", "estimator", "setting"],
                                     columns="quantity", values="value").round(3))

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("deepsensor_excitable", experiment="deepsensor_excitable/players")

# %% [markdown]
# **What it means.** That errors have more excitable neurons than noise is close to true by
# definition. An error has a high loss, efficiency makes the values add up to that, and a sum that is
# larger has more terms above 0.5. What would tell of *neurons* is the count at the same change of
# loss, or in the scale where that change cancels. So a swarm that counts excitable neurons climbs
# the loss, by a detour; whether the detour is worth three passes for each particle is the question
# of [the next chapter](01_test_errors).
#
# The records of MNIST with LeNet-5 agree. In nats, errors have several times the excitable neurons of
# noise of the same length; once the change of loss cancels (`total`), a tenth more.

# %% [markdown]
# ## Exercises
#
# **1.** Give the game by hand a neuron $d$ that does exactly what $b$ does, so that $a$ with $b$, with
# $d$, or with both is worth 4. What happens to $b$?
#
# ```{admonition} Solution
# :class: dropdown
# Its value falls from 1.5 to 0.5, as $d$ can stand in for it, and $d$ gets the same (*symmetry*):
#
# ~~~python
# class Four:
#     players = 4
#     def value(self, coalitions):
#         a, b, _, d = torch.as_tensor(coalitions, dtype=torch.float64).unbind(-1)
#         return (a + 3 * a * (1 - (1 - b) * (1 - d))).view(1, -1)
#
# print(shapley.exact(Four()).values)
# ~~~
#
# Two neurons that do the same can both fall below $\lambda$. A network with twice the width may
# have no excitable neuron at all.
# ```
#
# **2.** The order of the neurons in `network` counts channels of a convolution, and again those of
# the pool behind it. Leave the pools out with `layers=`. Do the errors still have more?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# names = [name for name, module in models.neuron_layers(network).items()
#          if not isinstance(module, torch.nn.MaxPool2d)]
# game = shapley.Game(network, *pairs["error"], labels[parent], layers=names)
# print(excitable.excitable(shapley.diagonal(game).values).sum(1).double().mean())
# ~~~
#
# A pool passes on what its convolution gave, so the two are a chain: neither is worth anything
# without the other, and they share what one would get alone. The sum stays the change of loss, in
# fewer and larger parts.
# ```
