# %% [markdown]
# # Do generated examples look like their inputs?
#
# **The claim** (DeepSensor II, 6.3.2, Figs. 8 and 9). In a t-SNE picture {term}`DeepHunter`'s
# examples overlap with the class that they were made from, and {term}`DeepSensor`'s examples stand
# apart from it. And DeepSensor's examples "closely resemble original images, with perturbation
# nearly imperceptible to human eyes".

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 40  # benign images of each class, at most
seed_class = 1  # the class that examples are made from: its place among the classes
other_class = 2  # the class shown beside it
iterations = 20  # of every fuzzer
population = 5  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value
near = 1.0  # a bound on the L2 distance, that of the first paper; 2 on ImageNet
far = 8.0  # another bound
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
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
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey
from dnnbook.studies.findings.deepsensor import seeds_of, table_of
from dnnbook.words import rounded_down, rounded_up, shown, span
from dnnlib import fuzzing, models
from dnnlib.neurons import activations

plots.style()
run = Experiment("deepsensor_excitable/examples", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, inputs=inputs, seed_class=seed_class,
                 other_class=other_class, iterations=iterations, population=population,
                 points=points, near=near, far=far, others=others, references=references)

# %% tags=["hide-input", "statements"]
rows = records.existing("deepsensor_excitable/examples")
SWARMS = ["excitable", "constant"]
distances, distances_8 = (table_of(rows, SWARMS, "dataset", quantity="distance_over_deephunter", budget=budget)
                          for budget in ("none", "8"))
of_data = {data: distances.loc[data] for data in ("mnist", "cifar10")}
far_away, far_unguided = ({data: span(found[swarm], 1) for data, found in of_data.items()} for swarm in SWARMS)
says((f"**The answer.** Not those that stand apart. Without a bound, the excitable swarm's examples lie {far_away['mnist']} times as far "
      f"from the benign images, in the hidden layer, as DeepHunter's on MNIST, and {far_away['cifar10']} times on CIFAR-10; this is "
      f"*{evidence.state('deepsensor-excitable-clusters')}*.", distances["excitable"].min() > 1),
     (f"But the swarm that nothing guides lies {far_unguided['mnist']} times as far on MNIST, and exactly as far as the excitable one on "
      "CIFAR-10. So most of the distance, or all of it, comes from the random start, and not from the neurons.",
      (of_data["mnist"]["constant"] - 1 > (of_data["mnist"]["excitable"] - 1) / 2).all()
      and (of_data["cifar10"]["constant"] == of_data["cifar10"]["excitable"]).all()))

# %% tags=["hide-input", "statements"]
told = seeds_of(rows, "dataset", who="excitable", quantity="told_apart", budget="1")
errors = seeds_of(rows, "dataset", who="excitable", quantity="last_error_rate", budget="1")
says((f"Within an L2 distance of {1} in the image, where examples look like their inputs, the test tells at most {rounded_up(100 * told.max())} % of "
      f"the points apart; of two sets that are alike, it tells about half. {f'At most {rounded_up(errors.max())} %' if errors.max() else 'None'} of "
      "the excitable swarm's examples are errors there.", told.max() < 0.75 and errors.max() < 5))  # nearer to half than to all

# %% [markdown]
# **What you will learn.** How to test whether two sets of images can be told apart. And what the test says
# about swarms that are guided by {term}`excitable neurons <excitable neuron>`, by
# {term}`sensitive neurons <sensitive neuron>`, or by no neurons at all.

# %% [markdown]
# ## Examples from one class
#
# We take the last example of each input, made by the {term}`fuzzers <fuzzer>` of [the chapter on
# test errors](01_test_errors) at three bounds.

# %% tags=["hide-input"]
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
right = studies.benign(model, data.images, data.labels, seed=seed)
chosen = {c: right[data.labels[right] == c][:inputs] for c in (seed_class, other_class)}
benign = {c: data.images[places] for c, places in chosen.items()}
x = benign[seed_class]
known = studies.known_images(dataset, data, torch.cat([*chosen.values()]), references)
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)

# %% tags=["remove-input"]
says(f"The inputs are {len(x)} images of class {data.classes[seed_class]!r}. Beside them stand images of class "
     f"{data.classes[other_class]!r}.")

# %%
swarm = fuzzing.Swarm.paper(population=population)
fuzzers = {**studies.swarms(swarm, "excitable sensitive constant", points=points),
           **studies.rivals(oracles, known)}
bounds = {"none": None, f"{far:g}": far, f"{near:g}": near}
runs = studies.at_bounds(model, x, torch.full((len(x),), seed_class), fuzzers, bounds,
                         iterations=iterations, seed=seed)

# %% [markdown]
# ## Fig. 9
#
# For three inputs, the figure shows the input, its example, and the perturbation $|\rho|$ magnified ten
# times. The examples are those of the {term}`swarm` guided by excitable neurons at three bounds. Others are
# of the swarm that nothing guides, and of {term}`DLFuzz` at the smallest bound. Errors are shown first.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Inputs of one class (each first), an example of each (second) and what was added, magnified ten times (third). Titles: class, and the L2 distance to the input.", "name": "fig-excitable-examples", "classes": "bitmap"}}
EXCITABLE, SENSITIVE, CONSTANT = (FuzzerKey("deepsensor", name)
                                  for name in ("excitable", "sensitive", "constant"))
parts = {}
for bound, key in [*((bound, EXCITABLE) for bound in bounds), ("none", CONSTANT),
                   (list(bounds)[-1], FuzzerKey("dlfuzz", setting="paper"))]:
    each = runs[bound, key]
    parts[f"{shown(str(key))}; bound: {bound}"] = [
        (x[each.origin[-1, i]], each.images[i], data.classes[seed_class],
         data.classes[each.predicted[-1, i]])
        for i in each.errors[-1].int().argsort(descending=True, stable=True)[:3]]
campaign_plots.magnified(parts)
run.show()

# %% [markdown]
# In numbers:

# %% tags=["hide-input"]
def in_order(run: fuzzing.Campaign) -> torch.Tensor:
    """The last examples (S, C, H, W), in the order of the inputs."""
    return run.images[run.origin[-1].argsort()]


def described(run: fuzzing.Campaign, unguided: fuzzing.Campaign) -> dict[str, float]:
    """Of the last examples: errors and distances, how much is to be seen, and guided at all?"""
    given, change = run.predicted[-1], (run.images - x[run.origin[-1]]).abs()
    same = (in_order(run) == in_order(unguided)).flatten(1).all(1)
    either = (given == seed_class) | (given == other_class)
    return {"test errors (%)": 100 * run.errors[-1].double().mean(),
            "shown by the paper (%)": 100 * either.double().mean(),
            "L2": run.l2[-1].median(), "L-infinity": run.linf[-1].median(),
            "pixels changed by 0.1 (%)": 100 * (change >= 0.1).double().mean(),
            "as constant (%)": 100 * same.double().mean()}


headed(pd.DataFrame({(bound, key): described(each, runs[bound, CONSTANT])
                     for (bound, key), each in runs.items()}, dtype=float).T.rename_axis(
    ["bound", "examples"]).round(1))

# %% [markdown]
# Distances are medians. The paper shows only examples that the network gives one of the two classes. A change
# of 0.1 fills a pixel when it is magnified ten times. *As constant* counts the examples that are
# the same, pixel by pixel, as those of a {term}`fitness` that never changes: no position of these
# swarms scored better than the one that the first {term}`particle` started from.
#
# ## Fig. 8
#
# The figure shows the activations before the {term}`logits <logit>`.

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

quiz("A test calls two equally large sets of images apart if the nearest neighbours of an image "
     "are of its own set. Both sets are drawn from the same images: which share does it give?",
     {"About none": False, "About one half": True, "About all": False},
     "A neighbour is then of either set with the same probability. One half is the test's zero.")

# %% tags=["hide-input"]
hidden = list(models.neuron_layers(model))[-2]


def latent(x: torch.Tensor) -> np.ndarray:
    """Hidden activations (N, units) of images."""
    return activations.record(model, x, layers=[hidden], neuron="unit").values.numpy()


# %% tags=["hide-input"] mystnb={"figure": {"caption": "t-SNE of the last hidden layer: two benign classes, and the last examples of each input. Without a bound (left) and at the larger bound (right). Triangles, which the paper leaves out, are examples that the network gives neither of the two classes.", "name": "fig-excitable-examples-tsne"}}
CLOUDS = [FuzzerKey("deephunter", setting="paper"), EXCITABLE, SENSITIVE, CONSTANT]
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2))
home = f"class {data.classes[seed_class]}"
for axis, bound in zip(axes, bounds):
    groups = {f"class {data.classes[c]}": images for c, images in benign.items()}
    groups |= {shown(str(key)): runs[bound, key].images for key in CLOUDS}
    places = campaign_plots.clouds(axis, model, groups, latent, list(benign), seed=seed)
    for key in CLOUDS:
        run.add({"silhouette": campaign_plots.silhouette(places, home, shown(str(key)))},
                budget=bound, **key.columns)
    axis.set(title=f"bound on L2: {bound}")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
run.show()

# %% [markdown]
# ## Told apart
#
# [The first paper's chapter](../deepsensor_sensitivity/08_examples) measures how far examples are
# from the data. Here the question is whether two sets differ at all. Take the same number of points
# from each set. For how many of them does the nearest other point belong to the same set? For about
# half of them if both sets are drawn alike, and for nearly all if the sets are two clusters.

# %% tags=["nbval-check-output"]


def told_apart(a: np.ndarray, b: np.ndarray) -> float:
    """The share of points (N, d) of two sets, as many of each, whose neighbour is of their set."""
    n = min(len(a), len(b))
    both = np.concatenate([a[:n], b[:n]])
    neighbour = NearestNeighbors(n_neighbors=2).fit(both).kneighbors(both)[1][:, 1]
    return float(((neighbour < n) == (np.arange(2 * n) < n)).mean())


normal = np.random.default_rng(0).normal(size=(2, 500, 2))
for moved_by in (0, 1, 4):
    print(f"moved by {moved_by}: {told_apart(normal[0], normal[1] + moved_by):.2f}")

# %% [markdown]
# ## Two clusters, or one?
#
# Here is `told_apart` in the hidden layer itself, where no picture can deceive. Swarms with the
# same random numbers start from the same positions, and an example lies near its input. No point
# should have its twin in the other set, so one set is made from every second input and the other
# set from the rest.

# %% tags=["hide-input"]
def by_input(bound: str, key: FuzzerKey | None) -> np.ndarray:
    """Hidden activations of a fuzzer's examples, or of the inputs, in the order of the inputs."""
    return latent(x if key is None else in_order(runs[bound, key]))


def apart(bound: str, a: FuzzerKey | None, b: FuzzerKey | None) -> float:
    """How well two sets are told apart; None: the benign inputs themselves."""
    return told_apart(by_input(bound, a)[::2], by_input(bound, b)[1::2])


# %% tags=["hide-input"]
PAIRS = [(EXCITABLE, None), (FuzzerKey("deephunter", setting="paper"), None), (EXCITABLE, FuzzerKey("deephunter", setting="paper")),
         (EXCITABLE, SENSITIVE), (EXCITABLE, CONSTANT), (SENSITIVE, CONSTANT)]
half = len(x) // 2
print(f"{half} points of each set; alike they give 0.50, give or take {(4 * 2 * half) ** -0.5:.2f}")
headed(pd.DataFrame({(str(a), str(b or "class")): {bound: apart(bound, a, b) for bound in bounds}
                     for a, b in PAIRS}).T.rename_axis(["examples", "others"]).rename_axis(
    columns="bound").round(2))

# %% [markdown]
# The deviation is that of the same number of coin tosses. It is a little less than the true
# deviation, because neighbours are often mutual.
#
# ## What the claim asks for
#
# The claim asks for the median distance of the examples to the nearest
# {term}`benign image <benign input>` of either class, in the hidden layer. We divide DeepSensor's
# distance by DeepHunter's.

# %% tags=["hide-input"]
HUNTER = FuzzerKey("deephunter", setting="paper")
neighbours = NearestNeighbors(n_neighbors=1).fit(latent(torch.cat(list(benign.values()))))
for bound in bounds:
    away = {key: float(np.median(neighbours.kneighbors(by_input(bound, key))[0]))
            for key in (HUNTER, EXCITABLE, SENSITIVE, CONSTANT)}
    for key, distance in away.items():
        run.add({"distance": distance, "told_apart": apart(bound, key, None),
                 "last_error_rate": 100 * runs[bound, key].errors[-1].double().mean(),
                 "l2": runs[bound, key].l2[-1].median()},
                budget=bound, **key.columns)
        if key != HUNTER:
            run.add({"distance_over_deephunter": distance / away[HUNTER]},
                    budget=bound, **key.columns)
run.save(data, device=device)
wide(run.live, "quantity == 'distance_over_deephunter'", index="swarm", columns="budget")

# %% tags=["hide-input"]
def far_off(bound: str, key: FuzzerKey) -> float:
    """How well the examples are told apart from their class, in percent of the points."""
    return 100 * apart(bound, key, None)


small = list(bounds)[-1]
errors = 100 * runs[small, EXCITABLE].errors[-1].double().mean()
says(f"In the run above, {far_off('none', EXCITABLE):.0f} % of the points are told apart without a bound when "
     f"excitable neurons guide, and {far_off('none', CONSTANT):.0f} % when nothing does; within an L2 distance "
     f"of {small} it is {far_off(small, EXCITABLE):.0f} %, where alike sets have about 50. At that distance "
     f"{errors:.0f} % of the guided examples are test errors. [How many there are](01_test_errors) at each "
     "distance over all records is counted in another chapter.")

# %% [markdown]
# ## Over all records

# %% tags=["hide-input"]
ours = run.recorded("quantity != 'distance_over_deephunter'")
wide(ours, index=["dataset", "model", "budget", "fuzzer", "swarm"], columns="quantity")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(rows)}, inputs of one class.", evidence.estimator(rows))

# %% [markdown]
# **What it means.** To see whether excitable neurons lead to a cluster, do not compare with DeepHunter, but with
# a swarm that has the same start and that nothing guides.

# %% tags=["hide-input", "statements"]
cluster = table_of(rows, ["excitable", "deephunter"], "dataset", quantity="silhouette", budget="none")
errors_8 = table_of(rows, SWARMS, "dataset", quantity="last_error_rate", budget="8")
apart_8 = seeds_of(rows, "dataset", who="constant", quantity="told_apart", budget="8")["mnist"]
farther, wrong = distances_8.loc["mnist"], errors_8.loc["mnist"]
says((f"In the picture without a bound, the silhouette of the swarm's examples and their class is at least "
      f"{rounded_down(cluster['excitable'].min(), 2)}, and that of DeepHunter's at most {rounded_up(cluster['deephunter'].max(), 2)}. It is 0 where two sets "
      "are mixed, and 1 where they are two clusters.", cluster["excitable"].min() > cluster["deephunter"].max()),
     (f"At an L2 distance of {8}, on MNIST, excitable neurons add to the distance from the benign images with each random seed.",
      (farther["excitable"] > farther["constant"]).all()),
     (f"They add errors as well: at least {rounded_down(wrong['excitable'].min())} % of the examples, against at most "
      f"{rounded_up(wrong['constant'].max())} % without guidance.", wrong["excitable"].min() > wrong["constant"].max()),
     (f"A cluster of its own is no sign of errors, though: on MNIST the unguided examples are told apart for "
      f"{100 * apart_8.mean():.0f} % of the points as well, and few of them are errors.",
      apart_8.min() > 0.9 and wrong["constant"].max() < 15))

# %% tags=["hide-input", "statements"]
alike = rows[(rows["dataset"] == "cifar10") & rows["swarm"].isin(SWARMS) & (rows["quantity"] != "silhouette")]
alike = alike.pivot_table(index=["budget", "quantity", "seed"], columns="swarm", values="value")
particles = rows.groupby("dataset")["population"].max().astype(int)
says(("With ResNet-20 on CIFAR-10, the two swarms do not differ in any of these numbers, at any bound, with any random seed.",
      (alike["excitable"] == alike["constant"]).all()),
     (f"But they have {particles['cifar10']} particles there, and {particles['mnist']} on MNIST. So this may be due to the small swarm, and "
      "not to the network.", particles["cifar10"] < particles["mnist"]),
     (f"At a distance of {8}, at least {rounded_down(errors_8.loc['cifar10', 'constant'].min())} % of the unguided examples are errors there.",
      errors_8.loc["cifar10", "constant"].min() > 50))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Take pixels instead of activations. Which pairs do pixels tell apart that the
# network's last layer holds together?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def latent(x):
#     return x.flatten(1).numpy()
#
# for a, b in PAIRS:
#     print(a, b, [round(apart(bound, a, b), 2) for bound in bounds])
# ~~~
#
# Compare each line with the same line of the table above. Pixels count every change alike, and the
# hidden layer counts a change by what the network makes of it.
# ```
#
# **2. Try.** Draw the left picture of Fig. 8 as the paper does, without triangles. What is left of
# DeepSensor's cluster?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for key in CLOUDS:
#     given = runs["none", key].predicted[-1]
#     print(key, {data.classes[c]: int((given == c).sum()) for c in benign}, "of", len(given))
# ~~~
#
# Only the examples that are given one of the two classes are left. They were chosen by the class that
# the network gives, and the network finds this class from the hidden layer. So the choice itself can
# decide whether they look like a cluster.
# ```
#
# **3. Think.** Why does the chapter also compare the fuzzers within a bound on the distance?
#
# ```{admonition} Solution
# :class: dropdown
# Examples that are farther away may stand apart for that reason alone. A bound limits how far all of
# them may go. It does not make their distances equal: look at the column `L2`. Only where these are
# equal, the remaining difference is due to the method, and not to how far it went.
# ```
#
# **4. Code.** Write `my_apart(a, b)`: the share of all points whose nearest neighbour, other than
# themselves, is of their own set. The cell says whether it is right.

# %%
my_apart = None  # your function of two arrays (N, d)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def own(a, b):
        x, which = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
        near = NearestNeighbors(n_neighbors=2).fit(x).kneighbors(x, return_distance=False)[:, 1]
        return (which[near] == which).mean()

    left, right = np.array([[0.0, 0], [0.1, 0], [5, 5.2]]), np.array([[5.0, 5], [6, 6.5], [6, 6]])
    check(answer, own, (left, right), (left, right + 20))


is_right(my_apart)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_apart(a, b):
#     x, which = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
#     away = np.linalg.norm(x[:, None] - x[None], axis=2)
#     np.fill_diagonal(away, np.inf)
#     return (which[away.argmin(1)] == which).mean()
#
# is_right(my_apart)
# ~~~
# ```
