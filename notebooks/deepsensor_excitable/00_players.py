# %% [markdown]
# # Which neurons carry the change of loss?
#
# **The claim** (DeepSensor II, Section 1, Fig. 1; Definitions 1 to 3). Each neuron is credited with a part
# of the change of loss under a perturbation, its {term}`Shapley value`. A neuron with a value above
# $\lambda = 0.5$ is {term}`excitable <excitable neuron>`. In 500 pairs of a benign "9" and one of its
# corner cases, the corner cases have many more excitable neurons.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
small = "lenet1"  # the network in which the estimators are compared
layer = "4"  # of the small network: the layer whose exact values can be had, at most 16 neurons
estimator_inputs = 4  # images, each with a mutant of it, on which the estimators are compared
permutations = 200  # of the reference for the whole small network
estimator = "diagonal"  # of the values that are counted, or `permutation`, by as many permutations
inputs = 40  # benign images of each class, at most
seed_class = 9  # the class of Fig. 1: its place among the classes
other_class = 1  # the class shown beside it
iterations = 20  # of DeepHunter, which makes the corner cases, and of the swarm
population = 20  # particles to an input; the second paper on DeepSensor has 100
references = 1000  # training images that give DeepHunter its neuron boundaries
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import itertools
import math
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import nn

from dnnbook import interactive, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load
from dnnbook.display import campaign_plots, plots
from dnnbook.display.comparisons import sizes
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies.findings.deepsensor import (
    mean_of,
    of_estimators,
    of_the_most,
    seeds_of,
    times_as_many,
)
from dnnbook.words import listed, rounded_down, rounded_up, shown, span
from dnnlib import fuzzing, inference, models
from dnnlib.neurons import activations, excitable, shapley
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.perturb import mutations

plots.style()
run = Experiment("deepsensor_excitable/players", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, small=small, layer=layer, estimator_inputs=estimator_inputs,
                 permutations=permutations, estimator=estimator, inputs=inputs, seed_class=seed_class,
                 iterations=iterations, population=population, references=references, drawn={"other_class": other_class})

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-neurons")

# %% tags=["hide-input", "statements"]
rows = records.existing("deepsensor_excitable/players")
diagonal = rows[rows["estimator"] == "diagonal"]
ratio = evidence.spread(times_as_many(diagonal, "noise", "scale"), "ratio")
nats, scaled = ratio.loc["none"], ratio.loc["total"]
change = mean_of(diagonal, "group", quantity="total")
says(("**The answer.** Yes, but this is close to true by definition. An error has a high loss, and the Shapley values "
      "add up to the change of the loss.", nats["low"] > 1 and change["error"] > 2 * change["noise"]),
     (f"In nats, errors have {nats['mean']:.1f} times as many excitable neurons as noise of the same length. Their loss "
      f"changes {change['error'] / change['noise']:.1f} times as much.",
      nats["low"] > 1 and change["error"] > 2 * change["noise"]),
     (f"On a scale where a common factor cancels, errors have {scaled['mean']:.2f} times as many. This "
      + ("is more than chance." if scaled["low"] > 1 else "may be chance."), scaled["high"] < nats["low"]))

# %% [markdown]
# **First, look.** Choose a mutation of an image, and its strength. Each pair of pictures is one map of a
# layer, before and after the mutation. The number below is the map's *Shapley value*: its share, in nats,
# of what the mutation adds to the loss; orange adds, blue takes away. A map with more than the threshold is
# framed: it is *excitable*. The strongest rotation breaks all of these images, and the weakest none. How many maps are
# framed when the network still sees the right class, and how many when it does not?

# %% tags=["hide-input"]
data = load(dataset)
few = training.trained(small, dataset, recipe_name=recipe, seed=seed, device=device)
if profile == "embedded" and interactive.runs(few) and not isinstance(few.get_submodule(layer), nn.Linear):
    def mutants(of, name):
        return torch.stack([mutations.mutate(data.images[of], name, strength=s, seed=seed).images
                            for s in mutations.STRENGTHS])

    candidates = studies.benign(few, data.images, data.labels, seed=seed)[:200]
    lost = torch.stack([inference.predict(few, after).argmax(1) != data.labels[candidates]
                        for after in mutants(candidates, "rotation")])
    lit = candidates[lost[-1] & ~lost[0]][:4]  # the weakest rotation leaves their class, the strongest does not
    mutated = {name: mutants(lit, name) for name in ("rotation", "shear", "blur")}
    shares = {name: torch.stack([shapley.exact(shapley.Game(
        few, data.images[lit], after, data.labels[lit], layers=[layer])).values for after in found])
        for name, found in mutated.items()}
    display(interactive.lighting_up(few, data.images[lit], data.labels[lit], mutated, layers=[layer],
                                    values=shares, threshold=0.5, classes=data.classes))

# %% [markdown]
# ## Benign images, and their corner cases
#
# A corner case is a mutant by {term}`DeepHunter` that lost the class of its image. No step in
# making it looks at the neurons. Noise of the same length does not have to change the class:

# %% tags=["hide-input"]
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
right = studies.benign(model, data.images, data.labels, seed=seed)
mine, others = (right[data.labels[right] == c][:inputs] for c in (seed_class, other_class))
x, labels = data.images[mine], data.labels[mine]
hunter = fuzzing.fuzzer("deephunter", reference=load(dataset, "train").images[:references])
cases = studies.corner_cases(hunter, model, x, labels, iterations=iterations, seed=seed)
run.add({"pairs": len(cases["error"][0])})
lengths = {group: (after - before).flatten(1).norm(dim=1)
           for group, (before, after) in cases.items()}
print(data)
print(f"{len(lengths['error'])} of {len(x)} images of class {data.classes[seed_class]!r} have a "
      f"corner case, at a median L2 distance of {lengths['error'].median():.1f}")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Benign images (upper row) under noise, and their corner cases (lower row), with the class that the network gives (Fig. 1 of the paper).", "name": "fig-excitable-pairs", "classes": "bitmap"}}
campaign_plots.corner_sheet(model, cases, data.classes)
run.show()

# %% [markdown]
# ## What there is to share out
#
# The loss of $m$ images $x_i$ with labels $y_i$ is the mean cross-entropy of the network $f$ (1). A
# network is robust if a small perturbation changes its output only a little (2). What a
# perturbation $\Delta x$ adds to the loss is the *change of loss* (3), in {term}`nats <nat>`:
#
# $$\mathcal L(x, y) = -\frac{1}{m} \sum_{i=1}^{m} y_i \log f(x_i) \quad (1), \qquad
# \lVert\Delta x\rVert_p \le \epsilon \;\Rightarrow\; \lVert f(x + \Delta x) - f(x)\rVert \le \delta
# \quad (2),$$
#
# $$\Delta\mathcal L(x, \Delta x) = \mathcal L(x + \Delta x, y) - \mathcal L(x, y) \quad (3).$$
#
# The paper prints (2) with an arrow in both directions, but two inputs need not be alike because
# their outputs are. And where the paper writes out (3), the lines have the opposite sign.
#
# ## A game by hand
#
# Players form a coalition $s$, which is worth $\varsigma(s)$. What player $n$ adds to the coalition
# is its marginal contribution (4). The Shapley value is the mean of this contribution over all
# coalitions (5), weighted so that all orders in which the players can join are equally likely:
#
# $$m(n, s) = \varsigma(s) - \varsigma(s \setminus \{n\}) \quad (4), \qquad
# \psi(n) = \sum_{s \ni n} \frac{(|s|-1)!\,(N-|s|)!}{N!}\, m(n, s) \quad (5).$$
#
# Take three neurons $a$, $b$ and $c$. Alone, only $a$ raises the loss, by 1; $a$ and $b$ together
# raise it by 4; $c$ changes nothing.

# %%
def by_eq_5(game):
    """The Shapley values (inputs, N) of a game, from all its coalitions."""
    N = game.players
    coalitions = torch.cartesian_prod(*[torch.tensor([False, True])] * N).view(-1, N)
    worth, size = torch.as_tensor(game.value(coalitions)).double(), coalitions.sum(1).tolist()
    weight = torch.tensor([1 / (s * math.comb(N, s)) if s else 0 for s in size],  # (s - 1)! (N - s)! / N!
                          dtype=torch.float64)
    psi = []
    for n in range(N):
        inside = coalitions[:, n]  # the coalitions with n; those without it stand in the same order
        m = worth[:, inside] - worth[:, ~inside]  # Eq. 4
        psi.append(m @ weight[inside])  # Eq. 5
    return torch.stack(psi, 1)


# %% tags=["nbval-check-output"]
class Three:
    """A game as the estimators take it: the worth of coalitions given as gates (K, 3)."""

    players = 3

    def value(self, coalitions):
        a, b, _ = torch.as_tensor(coalitions, dtype=torch.float64).unbind(-1)
        return (a + 3 * a * b).view(1, -1)


for order in itertools.permutations(range(3)):
    joined = torch.tensor([[n in order[:k] for n in range(3)] for k in range(4)])
    adds = dict(zip(order, Three().value(joined)[0].diff().tolist()))
    print(" then ".join("abc"[n] for n in order), "  adds:",
          *(f"{'abc'[n]} {adds[n]:.0f}" for n in range(3)))
psi = by_eq_5(Three())[0]
print("Shapley values:", *(f"{'abc'[n]} {psi[n]:.1f}" for n in range(3)))

# %% [markdown]
# The values are the means of the columns. They add up to 4, which is what all players together are
# worth (*efficiency*). $c$ gets nothing. $b$ is paid for what it does together with $a$: half of
# the 3 that neither of them does alone. If we switched off one neuron at a time instead, $a$ would
# get 4 and $b$ would get 3: seven in all, three too many.

# %% [markdown]
# ## A game of neurons
#
# In the network, the worth of a coalition is the change of loss from the benign image $x$ to
# $x + \Delta x$ when all other neurons are switched off in both {term}`passes <pass>` (Definition
# 1). This is `shapley.Game`. The exact values take $2^N$ coalitions, so we can compute them for one
# layer of a small network. The inputs are test images that the network gets wrong after a
# {term}`benign mutation`, so that there is a loss to share out.

# %% tags=["hide-input"]
moved = mutations.mutate(data.images, seed=seed).images
broken = studies.benign(few, data.images, data.labels, seed=seed)
broken = broken[inference.predict(few, moved[broken]).argmax(1) != data.labels[broken]][:estimator_inputs]
game = (few, data.images[broken], moved[broken], data.labels[broken])
games = {"layer": shapley.Game(*game, layers=[layer]), "network": shapley.Game(*game)}
exact = shapley.exact(games["layer"])
exact_values = compared(by_eq_5(games["layer"]), exact.values, "shapley.exact", of="inputs", tolerance=1e-4)
truth = {"layer": replace(exact, values=exact_values),
         "network": shapley.permutation(games["network"], permutations=permutations,
                                        generator=torch.Generator().manual_seed(1000 + seed))}
for where, game in games.items():
    error = truth[where].error
    print(f"{where}: {game.players} players, reference by {truth[where].passes // len(broken):,} "
          "passes an image, " + ("exact" if error is None else f"standard error {error.mean():.2f}")
          + f", {truth[where].total.mean():.1f} nats to share out")

# %% [markdown]
# ## Accuracy against cost
#
# - **permutation**: the mean contribution over some random orders, each of them also in reverse;
# - **diagonal**: open all neurons to the same degree $t$, from shut (0) to open (1), take the
#   gradient there, and integrate it over $t$ in $[0, 1]$; a few gradients give the values of all
#   neurons;
# - **leave one out**: leave each neuron out once. This gives no Shapley value, but it is what many
#   would try first.
#
# `error` is the distance from the reference, divided by the reference's length. `rank` is the
# {term}`rank correlation` of the two. `gap` says by how much the values miss the change of loss
# that they should add up to, as a share of it. The gap needs no reference. It is a warning and not an
# error bar: a large gap shows that the values are wrong, and a gap of 0 shows nothing. The table is folded; the figure
# below it draws the errors.

# %% tags=["hide-input"]
def estimates(game: shapley.Game):
    """Shapley values of a game by each estimator and setting, one after the other."""
    yield "leave one out", 1, shapley.leave_one_out(game)
    for n in (1, 2, 4, 8, 16):
        yield "diagonal", n, shapley.diagonal(game, points=n)
    for n in (2, 4, 10, 20, 50):
        yield "permutation", n, shapley.permutation(game, permutations=n, generator=generator)


# %% tags=["hide-input", "hide-output"]
generator = torch.Generator().manual_seed(seed)  # of the orders, also when this cell runs again
for where, game in games.items():
    true = truth[where].values
    for by, setting, got in estimates(game):
        run.add({"passes": got.passes / len(broken),
                 "error": ((got.values - true).norm(dim=1) / true.norm(dim=1)).mean(),
                 "rank": np.mean([stats.spearmanr(a, b).statistic
                                  for a, b in zip(got.values, true)]),
                 "gap": got.gap.abs().sum() / got.total.abs().sum()},
                players=where, by=by, setting=setting)
DIGITS = {"passes": 0, "error": 3, "rank": 3, "gap": 3}
wide(run.live, "players.notna()", index=["players", "by", "setting"], columns="quantity", digits=DIGITS)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Error of estimated Shapley values against the passes through the network for each image, a gradient counting as two more. Left: one layer, against exact values; right: all neurons of the small network, against a reference by many permutations. Broken lines: the gap to efficiency of the diagonal.", "name": "fig-excitable-estimators"}}
campaign_plots.errors_of_estimators(run.live[run.live["players"].notna()],
                                    {where: game.players for where, game in games.items()})
run.show()

# %% [markdown]
# Permutations have no gap and still err, by chance. With more of them the error shrinks, as one
# over the square root of their number. The diagonal errs by design: neurons that act together share
# by slopes, not by orders. So more points close its gap but leave an error. A gap proves an
# estimate wrong; no gap proves nothing. If you want to order the neurons of a whole network,
# compare the `rank` of two gradients with the `rank` of the permutations that take a hundred times
# as many passes.

# %% [markdown]
# ## Excitable neurons of corner cases
#
# Now we take the network of the paper and the images from the top of the page. As in [the first paper's
# chapter](../deepsensor_sensitivity/01_sensitive_neurons), we compare three groups. **Error** is the first
# mutant by DeepHunter that lost its class; **noise** of the same
# {term}`L2 length <L2 distance>` on the same image. **Right** is the mutant nearest in length
# that kept its class. A benign image *by itself* has no perturbation, no change of loss to share
# out, and no excitable neuron.

# %% tags=["hide-input", "hide-output"]
def values(before: torch.Tensor, after: torch.Tensor, label: int) -> shapley.Shapley:
    """Shapley values of all neurons for images of one class."""
    game = shapley.Game(model, before, after, torch.full((len(before),), label))
    if estimator == "diagonal":
        return shapley.diagonal(game)
    return shapley.permutation(game, permutations=permutations,
                               generator=torch.Generator().manual_seed(seed))


found = {group: values(*pair, seed_class) for group, pair in cases.items()}
many = {(scale, t): {group: excitable.excitable(got.values, t, scale=scale).sum(1)
                     for group, got in found.items()}
        for scale in excitable.SCALES for t in (0.1, 0.3, 0.5, 0.7, 0.9)}
for (scale, t), counts in many.items():
    where = {"fuzzer": "deephunter", "scale": scale, "lambda": t}
    mean = {group: float(count.double().mean()) for group, count in counts.items()}
    for group, value in mean.items():
        run.add({"excitable_neurons": value}, group=group, **where)
    run.add({f"error_over_{group}": mean["error"] / max(mean[group], 1 / len(counts[group]))
             for group in ("noise", "right")}, **where)  # none counts as one in the whole group
for group, got in found.items():
    run.add({"l2": lengths[group].mean(), "total": got.total.mean()}, group=group)
wide(run.live, "quantity == 'excitable_neurons'", index=["scale", "lambda"], columns="group")

# %% [markdown]
# The folded table shows mean numbers of excitable neurons. The values were estimated by the diagonal with
# 8 gradients (`estimator`). The scale `none` is $\psi$ in nats, as printed. The scale `total` is
# $\psi$ divided by its mean absolute value, so it does not change if all values are multiplied by one
# number. It may still depend on how much the loss changes.
#
# An error *is* a large change of loss, and the values in nats add up to it. So compare counts at the
# same change:

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Number of excitable neurons of each image against the change of its loss, which the Shapley values share out. Values in nats (left) and over their mean absolute value (right), both with a threshold of 0.5.", "name": "fig-excitable-loss"}}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
totals = {group: got.total for group, got in found.items()}
for axis, scale in zip(axes, excitable.SCALES):
    campaign_plots.corner_counts(axis, totals, many[scale, 0.5])
    axis.set(xlabel="change of loss (nats)", ylabel="excitable neurons", title=f"scale: {scale}",
             xscale="symlog")
axes[1].get_legend().remove()
run.show()

# %% [markdown]
# Spearman's correlation of the count with the change of loss, over all images of the three groups,
# and within the errors:

# %% tags=["hide-input"]
for scale in excitable.SCALES:
    counts = many[scale, 0.5]
    for group, a, b in (("all", *(torch.cat([*part.values()]) for part in (totals, counts))),
                        ("error", totals["error"], counts["error"])):
        varies = a.unique().numel() > 1 and b.unique().numel() > 1
        run.add({"count_with_loss": stats.spearmanr(a, b).statistic if varies else np.nan},
                scale=scale, group=group, **{"lambda": 0.5})
wide(run.live, "quantity == 'count_with_loss'", index="scale", columns="group", digits=2)

# %% [markdown]
# ## How many gradients for a count
#
# A {term}`swarm` counts the neurons above 0.5 nats for every {term}`particle`. A single gradient is
# taken at $t = 1/2$. There all neurons are half shut, and the network has lost most of what they do
# together. The folded table is about the corner cases' neurons. `share` says how many are excitable, in
# percent. `agreement` takes the neurons that are found by this number of points or by 32 points,
# and says how many of them are found by both. `gap` is as above.

# %% tags=["hide-input", "hide-output"]
few_cases = [part[:24] for part in cases["error"]]
counted = shapley.Game(model, *few_cases, torch.full((len(few_cases[0]),), seed_class))
settled = excitable.excitable(shapley.diagonal(counted, points=32).values)
for n in (1, 2, 4, 8, 16):
    got = shapley.diagonal(counted, points=n)
    chosen = excitable.excitable(got.values)
    run.add({"share": 100 * chosen.double().mean(),
             "agreement": (chosen & settled).sum() / max(1, int((chosen | settled).sum())),
             "gap": got.gap.abs().sum() / got.total.abs().sum()}, gradients=n)
wide(run.live, "gradients.notna()", index="gradients", columns="quantity", digits=2)

# %% tags=["hide-input"]
shares = run.live.query("gradients.notna() and quantity == 'share'").set_index("gradients")["value"]
says(f"By one gradient, {shares[1]:.1f} % of all neurons are above the threshold here; by four it is {shares[4]:.1f} %, and by "
     f"sixteen {shares[16]:.1f} %.")

# %% [markdown]
# The engine takes four gradients (`ExcitableNeurons(points=4)`). Each further gradient costs three
# more passes for each particle.
#
# ## Fig. 1: t-SNE
#
# Colours on the right show numbers of excitable neurons. There the benign images carry noise as
# long as the change of the median corner case.

# %% tags=["hide-input"]
last = list(models.neuron_layers(model))[-2]  # the last hidden one
corner = cases["error"][1]
hidden = activations.record(model, torch.cat([x, data.images[others], corner]), layers=[last],
                            neuron="unit")
number = []
for plain, label in ((x, seed_class), (data.images[others], other_class)):
    length = lengths["error"].median().expand(len(plain))
    noisy = studies.with_noise(plain, length, seed=seed)
    number.append(excitable.excitable(values(plain, noisy, label).values).sum(1))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "t-SNE of the last hidden layer for two benign classes and for corner cases of the first (left). Right: the number of excitable neurons of each point (right).", "name": "fig-excitable-tsne"}}
campaign_plots.corner_plane(hidden.values, {
    f"class {data.classes[seed_class]}": len(x), f"class {data.classes[other_class]}": len(others),
    "corner cases": len(corner)}, torch.cat([*number, many["none", 0.5]["error"]]),
    label="excitable neurons", seed=seed)
run.show()

# %% [markdown]
# ## Fig. 3: one swarm
#
# The paper shows a swarm around one image of CIFAR-10. Its {term}`fitness`, the share of excitable
# neurons, is 0 at first, stays the same from the 10th iteration on, and ends at 37 %. Our swarms
# fly around the first benign image, one in each scale:

# %% tags=["hide-input"]
flights = {}
for scale in excitable.SCALES:
    fitness, seen = ExcitableNeurons(scale=scale), []
    flown = fuzzing.Swarm.paper(fitness=fitness, population=population).run(
        model, x[:1], labels[:1], iterations=iterations, watch=seen.append,
        generator=torch.Generator().manual_seed(seed))
    score = fitness(model, x[:1], labels[:1])
    flights[scale] = (100 * score(torch.cat(seen), torch.zeros(iterations, dtype=torch.int64)),
                      flown.errors[:, 0])

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of excitable neurons of a swarm's best position, iteration by iteration; full points are test errors. The broken line is where the paper's example ends.", "name": "fig-excitable-swarm"}}
figure, axis = plt.subplots(figsize=(5.5, 3.2))
for i, (scale, (share, wrong)) in enumerate(flights.items()):
    axis.plot(range(1, iterations + 1), share, color=f"C{i}", lw=1, label=f"scale: {scale}")
    axis.scatter(range(1, iterations + 1), share, s=18, edgecolors=f"C{i}",
                 color=[f"C{i}" if e else "white" for e in wrong.tolist()], zorder=3)
    run.add({"last_share": share[-1]}, scale=scale, **{"lambda": 0.5})
run.add({"swarm_gradients": fitness.points})
axis.axhline(37, color="0.5", ls="--", lw=1)
axis.set(xlabel="iteration", ylabel="excitable neurons (%)", ylim=(0, None),
         xticks=range(0, iterations + 1, 5))
axis.legend()
run.show()
run.save(data, device=device)

# %% tags=["hide-input", "statements"]
ends = seeds_of(diagonal, "scale", quantity="last_share")
guides = diagonal[diagonal["quantity"] == "swarm_gradients"]["value"]
vgg = 100 * mean_of(records.frame("deepsensor_excitable/thresholds", model="vgg16"), "swarm",
                    quantity="excitable", threshold=0.5, varied="lambda")
says((f"Over all records, with LeNet-5 and one image in nats, the swarm does not come near Fig. 3. Guided by {span(guides)} "
      f"gradients, it ends with at most {rounded_up(ends['none'].max(), 1)} % of the neurons above the threshold.",
      ends["none"].max() < 20),
     (f"Scaled, it ends with {span(ends['total'])} %, which is nearer.", ends["total"].min() > ends["none"].max()),
     ("[VGG16, the network of Fig. 3](09_thresholds), is farther from it in both units.",
      vgg["excitable"] < ends["none"].min() and vgg["excitable_scaled"] < ends["total"].min()))

# %% [markdown]
# ## Over all records
#
# Two folds. The first has the number of excitable neurons of errors, divided by the number under noise of the same
# length (the claim; the verdict draws it), and by the number for mutants that kept their class. The second has the
# estimators, in the whole small network. All numbers are plain means over the random seeds; the sentences below take
# the geometric mean of ratios, which is a little smaller. The paper prints no number.

# %% tags=["hide-input", "hide-output"]
ours = run.recorded()
wide(ours, "quantity in ('error_over_noise', 'error_over_right')", digits=2,
     index=["dataset", "model", "estimator", "scale", "quantity"], columns="lambda")

# %% tags=["hide-input", "hide-output"]
display(wide(ours, "gradients.notna()", index=["dataset", "model", "quantity"],
             columns="gradients", digits=2))
wide(ours, "players == 'network' and estimator == 'diagonal'", index=["dataset", "small", "by", "setting"],
     columns="quantity", digits=DIGITS)

# %% [markdown]
# ## How exact are few gradients?

# %% tags=["hide-input", "statements"]
by_estimator = of_estimators(diagonal)
by_gradients, by_orders = (by_estimator.loc[name] for name in ("diagonal", "permutation"))
errors, most, orders = 100 * by_gradients["error"], by_gradients.iloc[-1], by_orders.iloc[-1]
says(f"The counts and the verdict use the diagonal ({sizes(diagonal)}).",
     (f"In the small network, its error is {span(errors)} % of the length of the true values, however "
      f"many points it takes. More points close its gap (to {100 * most['gap']:.1f} %), but the "
      "error stays.", errors.min() > 50 and most["gap"] < 0.05),
     (f"It orders the neurons better than it measures them: its rank correlation with the reference is "
      f"{by_gradients['rank'][4]:.2f} with four gradients, and {by_gradients['rank'][1]:.2f} with one.",
      by_gradients["rank"][4] > by_gradients["rank"][1] + 0.1),
     (f"With {by_orders.index[-1]:.0f} permutations, the error is {100 * orders['error']:.0f} %.",
      100 * orders["error"] < errors.min()))

# %% tags=["hide-input", "statements"]
above = mean_of(records.frame("deepsensor_excitable/thresholds"), "model", "gradients",
                who="excitable", quantity="share", scale="none")
some, large = (of_the_most(above[name]) for name in ("lenet5", "vgg16"))
corner_cases = of_the_most(mean_of(diagonal, "gradients", model="lenet5", quantity="share"))
says((f"[How many neurons are above half a nat](09_thresholds)? For the swarm's examples in LeNet-5, one gradient finds "
      f"{some[1]:.0f} % as many as eight do, and two find {some[2]:.0f} %.", some[1] < 50 < some[2] and max(some.index) == 8),
     (f"In VGG16, two find {large[2]:.0f} % as many as eight.", large[2] < 50 and max(large.index) == 8),
     (f"For corner cases in LeNet-5, two find {corner_cases[2]:.0f} % as many as {max(corner_cases.index):g} do, and four "
      f"{corner_cases[4]:.0f} %.", corner_cases[2] < 75 < corner_cases[4]))

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.**

# %% tags=["hide-input", "statements"]
with_loss = seeds_of(diagonal, "scale", "group", **{"lambda": 0.5}, quantity="count_with_loss")
sampled = rows[rows["estimator"] == "permutation"]
says(f"The interval of the ratio is {nats['low']:.1f} to {nats['high']:.1f} in nats, and {scaled['low']:.2f} to "
     f"{scaled['high']:.2f} on the scale `total`. Means of ratios are geometric.",
     ("So a swarm that counts excitable neurons in nats climbs the loss by a detour: the rank correlation of the count "
      f"with the loss is at least {rounded_down(with_loss['none', 'all'].min(), 2)}.", with_loss["none", "all"].min() > 0.7),
     "[The next chapter](01_test_errors) asks whether this detour is worth its passes.")

# %% tags=["hide-input", "statements"]
counted_so = evidence.spread(times_as_many(sampled, "noise", "scale"), "ratio") if len(sampled) else pd.DataFrame()
says(*([(f"With permutations, we counted in {listed(map(shown, sampled['model'].unique()))}, another network. There the "
         f"ratio is {counted_so.loc['none', 'mean']:.1f} in nats and {counted_so.loc['total', 'mean']:.2f} scaled, both more "
         "than chance. Whether the network or the estimator makes the difference is not tested.",
         counted_so["low"].min() > 1)] if len(counted_so) else
       ["As a check, one could also count with permutations; no such count has been recorded yet."]))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Give the game by hand a neuron $d$ that does exactly what $b$ does, so that $a$ with
# $b$, with $d$, or with both is worth 4. What happens to $b$?
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
# **2. Try.** The neurons of a network include the channels of a convolution, and again those of the
# pool behind it. Leave the pools out with `layers=`. Do the errors still have more excitable
# neurons?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# names = [name for name, module in models.neuron_layers(model).items()
#          if not isinstance(module, torch.nn.MaxPool2d)]
# nines = torch.full((len(corner),), seed_class)
# for group in ("error", "noise"):
#     game = shapley.Game(model, *cases[group], nines, layers=names)
#     print(group, excitable.excitable(shapley.diagonal(game).values).sum(1).double().mean())
# ~~~
#
# In a LeNet, a pool passes on what its convolution gave, so the two are a chain: neither is worth
# anything without the other, and both get the same Shapley value. Without the pools the values
# still add up to the change of loss, but there are fewer of them.
# ```
#
# **3. Think.** A neuron has a Shapley value of 0. May it be removed from the network without
# changing anything?
#
# ```{admonition} Solution
# :class: dropdown
# Not necessarily. It may help in some coalitions and harm in others, so that its mean is 0; and the
# value is about this input and its change, not about others. Only a neuron that changes nothing in
# *any* coalition is a null player.
# ```
#
# **4. Code.** There are three neurons. Each of them alone is worth 0, any two of them together are
# worth 0, and all three together are worth 6. Give the Shapley values. The cell says whether it is
# right.

# %%
my_values = None  # a list of three numbers

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, [sum(6.0 for order in itertools.permutations(range(3)) if order[-1] == i) / 6
                   for i in range(3)])


is_right(my_values)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# my_values = [6 / 3] * 3
#
# is_right(my_values)
# ~~~
#
# The neuron that joins last brings all 6, and each neuron is last in a third of the orders.
# ```
