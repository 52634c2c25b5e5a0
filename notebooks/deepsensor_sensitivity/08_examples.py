# %% [markdown]
# # What do the examples look like?
#
# **The claims** (DeepSensor IV.G, Figs. 7 and 8). In a t-SNE picture of "Class 1" and "Class 2",
# {term}`DeepHunter`'s examples overlap with the class that they were made from, and
# {term}`DeepSensor`'s stand apart. And DeepSensor's examples "closely resemble original images, with
# perturbation nearly imperceptible to human eyes".

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 30  # benign images of each class, at most
seed_class = 1  # the class that examples are made from: its place among the classes
other_class = 2  # the class shown beside it
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
near = 1.0  # a bound on the L2 distance, that of the first paper; 2 on ImageNet
far = 8.0  # another bound
references = 1000  # training images that give DeepHunter its neuron boundaries
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.neighbors import NearestNeighbors

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import campaign_plots, plots
from dnnbook.display.comparisons import sizes
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnlib import fuzzing, models
from dnnlib.neurons import activations

plots.style()
run = Experiment("deepsensor_sensitivity/examples", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed, swarm="paper", inputs=inputs, seed_class=seed_class, other_class=other_class,
                 iterations=iterations, population=population, near=near, far=far, references=references)

# %% tags=["hide-input", "statements"]
kept = records.frame("deepsensor_sensitivity/examples").astype({"value": float})
by = kept.groupby(["fuzzer", "budget", "quantity", "model"])["value"]
mean, ends = by.mean().unstack("model")[["lenet5", "resnet20"]], by.agg(["min", "max"])
free, far_off, close = (mean.loc["deepsensor", budget] for budget in ("none", "8", "paper"))
hunter, over = mean.loc["deephunter", "none"], evidence.verdict("deepsensor-sensitivity-clusters").cells
nearer = ends.loc["deepsensor", "paper", "distance_over_deephunter"]["max"]
says(("**The answer.** Without a bound, DeepSensor's examples do stand apart. In the last hidden layer, they are on average {:.1f} "
      "times as far from the benign images as DeepHunter's with LeNet-5 on MNIST, and {:.1f} times with ResNet-20 on "
      "CIFAR-10.".format(*free.loc["distance_over_deephunter"]), (over["low"] > 1).all()),
     ("But then they are far from their inputs, too: the median L2 distance is {:.1f} and {:.1f}.".format(*free.loc["l2"]),
      (free.loc["l2"] > 4).all()),
     ("Within a distance of 1, they are nearer to the benign images than DeepHunter's, which have no bound, with every seed; {:.1f} % "
      "and {:.1f} % are errors.".format(*close.loc["last_error_rate"]), (nearer < 1).all()))

# %% [markdown]
# **What you will learn.** How to measure an overlap that a picture only suggests; and what examples at
# different distances look like, with the distance printed beside them.
#
# ## Examples from one class
#
# We take all examples of all iterations. DeepHunter and DeepSensor run without a bound, as in Table II;
# DeepSensor's {term}`swarm` also runs within two bounds.

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
right = studies.benign(model, data.images, data.labels, seed=seed)
chosen = {c: right[data.labels[right] == c][:inputs] for c in (seed_class, other_class)}
benign = {c: data.images[places] for c, places in chosen.items()}
x = benign[seed_class]
known = studies.known_images(dataset, data, torch.cat([*chosen.values()]), references)

# %% tags=["remove-input"]
says(f"The inputs are {len(x)} images of class {data.classes[seed_class]!r}. Beside them stand images of class "
     f"{data.classes[other_class]!r}.")

# %%
fuzzers = {"DeepHunter": fuzzing.DeepHunter(reference=known)}
for name, bound in (("DeepSensor", None), (f"DeepSensor, L2 ≤ {far:g}", far),
                    (f"DeepSensor, L2 ≤ {near:g}", near)):
    fuzzers[name] = fuzzing.Swarm(population=population, budget=fuzzing.Budget(l2=bound))

# %%
runs, examples = {}, {}
for name, fuzzer in fuzzers.items():
    seen: list[torch.Tensor] = []  # the examples of every iteration
    runs[name] = fuzzer.run(model, x, torch.full((len(x),), seed_class), iterations=iterations,
                            generator=torch.Generator().manual_seed(seed), watch=seen.append)
    examples[name] = torch.stack(seen)

# %% [markdown]
# ## Fig. 8
#
# For three inputs, the figure shows the original, an example, and the perturbation $|\rho|$, magnified ten
# times. The examples are by DeepHunter, and by DeepSensor without a bound and within the two bounds. If an
# input has examples that are errors, one of these is shown.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Inputs of one class (each first), an example of each (second) and what was added, magnified ten times (third), for every fuzzer. Titles: class, and the L2 distance to the input.", "name": "fig-deepsensor-examples", "classes": "bitmap"}}
parts = {}
for name, each in runs.items():
    shown = [max((each.origin == i).nonzero().tolist(), key=lambda place: bool(each.errors[*place]))
             for i in range(min(3, len(x)))]
    parts[name] = [(x[i], examples[name][t, j], data.classes[seed_class],
                    data.classes[each.predicted[t, j]]) for i, (t, j) in enumerate(shown)]
campaign_plots.magnified(parts)
run.show()

# %% [markdown]
# The paper shows only examples that the network gives one of the two classes. The table shows how many these are, in
# percent:

# %%
called = {name: {f"called {data.classes[c]!r} (%)":
                 100 * float((each.predicted == c).double().mean()) for c in benign}
          for name, each in runs.items()}

# %% tags=["hide-input"]
pd.DataFrame({name: shares | {"otherwise (%)": 100 - sum(shares.values()), "mean L2": float(runs[name].l2.mean())}
              for name, shares in called.items()}).T.round(1)

# %% [markdown]
# ## Fig. 7
#
# The points are the activations before the {term}`logits <logit>`. We show examples of every predicted
# class; a triangle marks those that are given neither of the two classes. The paper leaves these out. Their share
# over all iterations is called *otherwise* above.

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

quiz("A t-SNE picture shows two sets of images as two clusters far apart. What does that say?",
     {"The nearest neighbours of an image are mostly of its own set": True,
      "The two sets are a large L2 distance apart": False,
      "The network gives the sets two classes": False},
     "t-SNE keeps neighbours. How far clusters lie from each other on the page says little about "
     "distances, and nothing about classes.")

# %%
hidden = list(models.neuron_layers(model))[-2]


# %%
def latent(images: torch.Tensor) -> np.ndarray:
    """Hidden activations (N, units) of images."""
    return activations.record(model, images, layers=[hidden], neuron="unit").values.numpy()


# %% tags=["hide-input"] mystnb={"figure": {"caption": "t-SNE of the last hidden layer: two benign classes, and the last examples of each input by DeepHunter and by DeepSensor. Without a bound (left) and at the larger bound (right). Triangles are examples that the network gives neither of the two classes.", "name": "fig-deepsensor-examples-tsne"}}
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8))
apart = {}  # silhouette, in the first picture where the examples stand
for axis, sensor in zip(axes, list(runs)[1:]):
    groups = {f"class {data.classes[c]}": images for c, images in benign.items()}
    groups |= {name: examples[name][-1] for name in ("DeepHunter", sensor)}
    places = campaign_plots.clouds(axis, model, groups, latent, list(benign), seed=seed)
    axis.legend(fontsize=8)
    home = f"class {data.classes[seed_class]}"
    for name in ("DeepHunter", sensor):
        apart.setdefault(name, campaign_plots.silhouette(places, home, name))
run.show()

# %% [markdown]
# ## A number for the overlap
#
# t-SNE keeps neighbours, not distances. So we measure in the hidden layer itself. How far is an example from
# the nearest benign image of either class, in units of the usual distance between benign neighbours? An
# example with a value near 1 is among the data. And is that neighbour of the class that the example was made
# from? Beside these numbers stands the *silhouette* of the examples and their class in the picture itself. It
# is 0 where the two sets are mixed, and 1 where they are two clusters. We count the last examples, as in the
# picture.

# %%
bench = latent(torch.cat(list(benign.values())))
neighbours = NearestNeighbors(n_neighbors=2).fit(bench)
usual = np.median(neighbours.kneighbors(bench)[0][:, 1])
nearest = {name: neighbours.kneighbors(latent(made[-1]), n_neighbors=1)
           for name, made in examples.items()}

# %%
overlap = {}
for name, (away, who) in nearest.items():
    wrong = runs[name].errors[-1].numpy()
    overlap[name] = {"nearest is of the inputs' class (%)": 100 * (who < len(x)).mean(),
                     "distance": np.median(away) / usual,
                     "distance of errors": np.median(away[wrong]) / usual if wrong.any() else None,
                     "silhouette in the picture": apart[name] if name in apart else None,
                     "test errors (%)": 100 * wrong.mean()}

# %% tags=["hide-input"]
pd.DataFrame(overlap, dtype=float).T.map(lambda v: "-" if pd.isna(v) else f"{v:.1f}")

# %% [markdown]
# We read the claim as follows: DeepSensor's examples lie farther from the benign images than DeepHunter's.

# %% tags=["hide-input"]
BUDGETS = {"DeepHunter": ("deephunter", "none"), "DeepSensor": ("deepsensor", "none"),
           f"DeepSensor, L2 ≤ {far:g}": ("deepsensor", f"{far:g}"),
           f"DeepSensor, L2 ≤ {near:g}": ("deepsensor", "paper")}
for name, (fuzzer, budget) in BUDGETS.items():
    numbers = overlap[name]
    run.add({"distance": numbers["distance"], "last_error_rate": numbers["test errors (%)"],
             "own_neighbour": numbers["nearest is of the inputs' class (%)"],
             "l2": runs[name].l2[-1].median()}, fuzzer=fuzzer, budget=budget)
    if name in apart:
        run.add({"silhouette": apart[name]}, fuzzer=fuzzer, budget=budget)
    if fuzzer == "deepsensor":
        run.add({"distance_over_deephunter": numbers["distance"] / overlap["DeepHunter"]["distance"]},
                fuzzer=fuzzer, budget=budget)
run.save(data, device=device)
wide(run.live, "quantity == 'distance_over_deephunter'", index="budget", columns="quantity")

# %% [markdown]
# ## Over all records

# %% tags=["hide-input"]
ours = run.recorded("quantity != 'distance_over_deephunter'")
wide(ours, index=["dataset", "model", "fuzzer", "budget"], columns="quantity")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# An example may overlap with the class of its input because it is a poor test, or because it still *is* of
# that class. The picture does not tell which of the two it is; Table II counts only predictions.

# %% [markdown]
# **What it means.** Put a {term}`distance <L2 distance>` under every picture. Then you can check the two
# statements of the paper against each other. One is that nearly all examples are errors, as Table II has it,
# and the other that the perturbations of Fig. 8 cannot be seen.

# %% tags=["hide-input", "statements"]
says(("With each network, a wider bound gives DeepSensor more errors and longer distances. With LeNet-5 and with ResNet-20, "
      "{:.1f} % and {:.1f} % of its examples are errors within a distance of 1; ".format(*close.loc["last_error_rate"])
      + "{:.0f} % and {:.0f} % within 8; ".format(*far_off.loc["last_error_rate"])
      + "{:.0f} % and {:.0f} % without a bound.".format(*free.loc["last_error_rate"]),
      all((close.loc[which] < far_off.loc[which]).all() and (far_off.loc[which] < free.loc[which]).all()
          for which in ("last_error_rate", "l2"))))

# %% tags=["hide-input", "statements"]
rates = [ends.loc["deepsensor", "8", "last_error_rate"].loc[model] for model in ("lenet5", "resnet20")]
says("From seed to seed, those within 8 are {:.0f} to {:.0f} % with LeNet-5, ".format(*rates[0])
     + "and {:.0f} to {:.0f} % with ResNet-20.".format(*rates[1]),
     ("Of DeepHunter's, without a bound, {:.0f} % and {:.0f} % are. ".format(*hunter.loc["last_error_rate"])
      + "With ResNet-20 they are as far from their inputs as DeepSensor's ({:.1f} and {:.1f}): what is changed matters, "
      "not only how far.".format(hunter.loc["l2", "resnet20"], free.loc["l2", "resnet20"]),
      abs(hunter.loc["l2", "resnet20"] / free.loc["l2", "resnet20"] - 1) < 0.1
      and hunter.loc["last_error_rate", "resnet20"] < 0.2 * free.loc["last_error_rate", "resnet20"]),
     "The two networks were run with different numbers of particles, so their numbers are not to be compared with each other.",
     f"The records are of inputs of one class. {sizes(kept)}.",
     "[The chapter on test errors](02_test_errors) has more distances, and inputs of all classes.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** Keep only the examples that are given one of the two classes, as the paper does, and draw
# Fig. 7 again. What does the selection do to the claim?
#
# ```{admonition} Solution
# :class: dropdown
# Take `examples[name][(runs[name].predicted == seed_class) | (runs[name].predicted == other_class)]`. The
# picture then leaves out every example that is called anything else. The column *otherwise* in the table
# above says how many these are. The claim is then about examples that were chosen by the network's answer,
# and no longer about all examples that a fuzzer made.
# ```
#
# **2. Think.** DeepSensor's lead over DeepHunter in LeNet-5 on MNIST is 26 errors of 18,323 in
# Table II. Can Fig. 7 explain it?
#
# ```{admonition} Solution
# :class: dropdown
# Hardly: the lead is 0.14 %, which is fewer examples than two inputs give. If two clusters differed as
# clearly as the paper says, one would expect a far larger difference.
# ```
#
# **3. Code.** Write `my_l2(a, b)`: the L2 distance of each image from its input, for images (N, C,
# H, W). The cell says whether it is right.

# %%
my_l2 = None  # your function of two tensors of images, giving (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    some = torch.linspace(0, 1, 24).view(2, 3, 2, 2)
    check(answer, lambda a, b: (a - b).flatten(1).norm(dim=1), (some, some ** 2),
          (some, some.flip(0)))


is_right(my_l2)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_l2(a, b):
#     return ((a - b) ** 2).sum(dim=(1, 2, 3)).sqrt()
#
# is_right(my_l2)
# ~~~
#
# The distance adds up over the pixels: if 784 pixels change by 0.1 each, it is 2.8; if a patch of 2 × 2
# changes from black to white, it is 2.
# ```
