# %% [markdown]
# # Do corner cases make more neurons sensitive?
#
# **The claim** (DeepSensor I, Fig. 1; III.A and III.C, Eqs. 1 and 2). A neuron is
# {term}`sensitive <sensitive neuron>` when its activation changes a lot for the distance that the
# input moved. In 500 pairs of a benign "9" and one of its *corner cases*, an example that the network
# gets wrong, the corner cases have many more sensitive neurons. So DeepSensor looks for inputs with
# many of them.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 40  # benign images of each class, at most
seed_class = 9  # the class of Fig. 1: its place among the classes
other_class = 1  # the class shown beside it
iterations = 20  # of DeepHunter, which makes the corner cases
references = 1000  # training images that give DeepHunter its neuron boundaries
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load
from dnnbook.display import campaign_plots, plots
from dnnbook.display.comparisons import sizes
from dnnbook.display.tables import wide
from dnnbook.records import records
from dnnbook.records.intervals import interval
from dnnbook.words import span
from dnnlib import fuzzing, models
from dnnlib.neurons import activations, sensitivity

plots.style()
run = Experiment("deepsensor_sensitivity/sensitive_neurons", profile, dataset=dataset,
                 model_name=model_name, recipe=recipe, seed=seed, inputs=inputs,
                 seed_class=seed_class, iterations=iterations, references=references,
                 drawn={"other_class": other_class})

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-neurons")

# %% tags=["hide-input", "statements"]
kept = records.frame("deepsensor_sensitivity/sensitive_neurons")


def times(group: str) -> pd.DataFrame:
    """By threshold: mean and interval of the sensitive neurons of errors over those of a group."""
    rows = kept[kept["quantity"] == f"error_over_{group}"].groupby("lambda")["value"]
    return pd.DataFrame({threshold: dict(zip(["mean", "low", "high"], [
        values.mean(), *interval(values, "ratio")])) for threshold, values in rows}).T


over_noise, over_right = times("noise"), times("right")
says((f"**The answer.** Yes: at every threshold $\\lambda$, corner cases have {span(over_noise['mean'], 1)} times as many "
      "sensitive neurons as the same images under noise.", (over_noise["low"] > 1).all()),
     (f"They also have {span(over_right['mean'], 1)} times as many as mutants that kept their class, so part of the gap "
      "seems to come with being an error.", (over_right["low"] > 1).all()),
     "But DeepSensor needs the converse, that images with many sensitive neurons are errors: [the next "
     "chapter](02_test_errors) tests that.")

# %% [markdown]
# **What you will learn.** The two equations, by hand. What an input must be compared with before one can say
# that it has *more* sensitive neurons. And what a t-SNE picture shows.
#
# ## Benign images, and their corner cases
#
# The paper does not say how it found its corner cases. We take mutants by {term}`DeepHunter` that
# lost the class of their {term}`benign image <benign input>`; no step in making them looks at
# sensitivity. We keep the first one of each image.

# %% tags=["hide-input"]
data = load(dataset)
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
right = studies.benign(model, data.images, data.labels, seed=seed)
mine, others = (right[data.labels[right] == c][:inputs] for c in (seed_class, other_class))
x, labels = data.images[mine], data.labels[mine]

# %%
hunter = fuzzing.fuzzer("deephunter", reference=load(dataset, "train").images[:references])
pairs = studies.corner_cases(hunter, model, x, labels, iterations=iterations, seed=seed)

# %% tags=["hide-input"]
run.add({"pairs": len(pairs["error"][0])})
lengths = {group: (after - before).flatten(1).norm(dim=1)
           for group, (before, after) in pairs.items()}
print(data)
print(f"{len(lengths['error'])} of {len(x)} images of class {data.classes[seed_class]!r} have a "
      f"corner case, at a median L2 distance of {lengths['error'].median():.1f}")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Benign images (upper row) under noise, and their corner cases (lower row), with the class that the network gives (Fig. 1 of the paper).", "name": "fig-deepsensor-pairs", "classes": "bitmap"}}
campaign_plots.corner_sheet(model, pairs, data.classes)
run.show()

# %% [markdown]
# ## The two equations
#
# An input $x$ is moved by $\Delta x$. The sensitivity of neuron $n$ with activation $\varphi_n$,
# and the share of sensitive neurons, which is DeepSensor's {term}`fitness`, are
#
# $$NS_n(x, \Delta x) = \frac{\varphi_n(x + \Delta x) - \varphi_n(x)}{\lVert\Delta x\rVert_2},
# \qquad \mathrm{Fitness} = \frac{|\{n : NS_n > \lambda\}|}{\text{number of neurons}} .$$
#
# An example with four neurons and an input that moved by 2: the first neuron changes by 1.5, which
# is 0.75 for each unit of distance.

# %% tags=["nbval-check-output"]
before, after = [0.5, 1.0, 2.0, 0.0], [2.0, 1.8, 0.0, 0.0]
ns = sensitivity.neuron_sensitivity(before, after, torch.tensor(2.0))
print("sensitivities:", [round(v, 2) for v in ns.tolist()])
print("share above 0.5:", sensitivity.sensitive_share(ns, 0.5).item())

# %% [markdown]
# Two things to note. First, the third neuron changes most but does not count: Eq. 1 is signed, so a
# neuron that falls silent is not sensitive. Second, the distance is in the denominator: a
# perturbation that is twice as long and changes a neuron twice as much scores the same. An
# untouched input would give 0/0; it counts as 0 (III.C).

# %% [markdown]
# ## What to compare with
#
# A benign image alone has no $\Delta x$, and so it has no sensitive neurons. The paper compares
# with benign examples but does not say how they were perturbed. We give two answers:
#
# - **noise**: the same image with Gaussian noise, at the same {term}`L2 distance` as its corner
#   case;
# - **right**: a mutant by DeepHunter of the same image that kept its class. Among these we take the
#   one whose distance is nearest to that of the corner case. It was made in the same way but is
#   still classified correctly.

# %%
def sensitivities(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Eq. 1 for every neuron: (N, neurons)."""
    phi, phi_moved = (activations.record(model, images).values for images in (before, after))
    length = (after - before).flatten(1).norm(dim=1, keepdim=True)
    return ((phi_moved - phi) / length).masked_fill(length == 0, 0)  # an untouched image: 0


found = {group: sensitivities(*pair) for group, pair in pairs.items()}
many = {t: {group: (ns > t).sum(1) for group, ns in found.items()}
        for t in (0.1, 0.3, 0.5, 0.7, 0.9)}

# %% tags=["hide-input"]
engine = sensitivity.neuron_sensitivity(
    *(activations.record(model, images).values for images in pairs["error"]), lengths["error"])
compared(found["error"], engine, "sensitivity.neuron_sensitivity")
for t, counts in many.items():
    mean = {group: float(count.double().mean()) for group, count in counts.items()}
    for group, value in mean.items():
        run.add({"sensitive_neurons": value}, fuzzer="deephunter", group=group, **{"lambda": t})
    run.add({f"error_over_{group}": mean["error"] / max(mean[group], 1 / len(found[group]))
             for group in ("noise", "right")}, fuzzer="deephunter", **{"lambda": t})
for group, length in lengths.items():
    run.add({"l2": length.mean()}, group=group)
run.save(data, device=device)
wide(run.live, "quantity == 'sensitive_neurons'", index="lambda", columns="group")

# %% [markdown]
# The table shows mean numbers of sensitive neurons. (In the claim's ratio, a group without
# sensitive neurons counts as if it had one in all.) The figure shows the numbers by distance, at
# the paper's $\lambda = 0.5$:

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Number of sensitive neurons of each image against the L2 distance it was moved: DeepHunter's wrongly classified examples, noise as long as these, and, of the DeepHunter examples of the same image that kept the class, the one nearest in length.", "name": "fig-deepsensor-sensitive"}}
figure, axis = plt.subplots(figsize=(6, 3.4))
campaign_plots.corner_counts(axis, lengths, many[0.5])
axis.set(xlabel="L2 distance", ylabel="sensitive neurons")
run.show()

# %% [markdown]
# ## Fig. 1: t-SNE
#
# t-SNE places points in a plane so that near neighbours stay near; distances between clusters mean
# little. The points are the activations before the {term}`logits <logit>`, for images of both
# classes and for the corner cases. On the right, the benign images carry noise as long as the
# change of the median corner case.

# %% tags=["hide-input"]
layer = list(models.neuron_layers(model))[-2]  # the last hidden one
plain = torch.cat([x, data.images[others]])
corner = pairs["error"][1]
hidden = activations.record(model, torch.cat([plain, corner]), layers=[layer], neuron="unit")
noisy = studies.with_noise(plain, lengths["error"].median().expand(len(plain)), seed=seed)
sensitive = torch.cat([(sensitivities(plain, noisy) > 0.5).sum(1), many[0.5]["error"]])

# %% tags=["hide-input"] mystnb={"figure": {"caption": "t-SNE of the last hidden layer for two benign classes and for corner cases of the first (left). Right: the number of sensitive neurons of each point (right).", "name": "fig-deepsensor-tsne"}}
campaign_plots.corner_plane(hidden.values, {
    f"class {data.classes[seed_class]}": len(x), f"class {data.classes[other_class]}": len(others),
    "corner cases": len(corner)}, sensitive, label="sensitive neurons", seed=seed)
run.show()

# %% [markdown]
# ## Over all records
#
# The number of sensitive neurons of errors, divided by the number under noise of the same length (the claim),
# and by the number for mutants that kept their class. Means over the random seeds. The paper prints no
# number.

# %% tags=["hide-input", "statements"]
says(f"Our records cover {sizes(kept)}. All images are of one class.")

# %% tags=["hide-input"]
wide(run.recorded(), "quantity in ('error_over_noise', 'error_over_right')",
     index=["dataset", "model", "quantity"], columns="lambda", digits=2)

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** A corner case differs from noise in two ways: it is an error, and it is a
# structured change, such as a rotation or a shift. The group *right* separates the two: its mutants
# were made in the same way but are not errors. Only the part of the gap that remains against
# *right* says something about errors.

# %% tags=["hide-input", "statements"]
least, most = over_noise.index.min(), over_noise.index.max()
length = kept[kept["quantity"] == "l2"].groupby("group")["value"].mean()
says((f"The direction of Fig. 1 is reproduced. At the paper's $\\lambda$ = {0.5}, corner cases have "
      f"{over_noise['mean'][0.5]:.1f} times as many as under noise; the paper prints no number.", over_noise["low"][0.5] > 1),
     (f"At $\\lambda$ = {least:g} the gap to noise is the larger of the two; at {most:g} the gap to the "
      "mutants is larger.", over_noise["mean"][least] > over_right["mean"][least]
      and over_noise["mean"][most] < over_right["mean"][most]),
     (f"But the corner cases lie farther from their images than those mutants do, on average {length['error']:.1f} "
      f"against {length['right']:.1f}.", length["error"] > length["right"]),
     "And we began with images that are errors, and counted their sensitive neurons.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** Count absolute changes: `neuron_sensitivity(..., signed=False)`. Does the order of
# the three groups change?
#
# ```{admonition} Solution
# :class: dropdown
# All counts can only rise, since neurons whose activation falls are added. So compare the ratios, not
# only the counts. Run the chapter to see whether the order changes.
# ```
#
# **2. Think.** Suppose we took the examples of DeepSensor's {term}`swarm` instead of DeepHunter's.
# Why would that prove less?
#
# ```{admonition} Solution
# :class: dropdown
# The swarm maximises the very number that is then compared. It would keep the images with the most
# sensitive neurons, whether they are errors or not.
# ```
#
# **3. Code.** Write `my_sensitivity(before, after, step)`: Eq. 1 for all neurons. This is the
# signed change of the activations for each unit of L2 distance that the input moved. The cell says
# whether it is right.

# %%
my_sensitivity = None  # your function: (neurons,), (N, neurons), distances (N,) above 0

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    clean, moved = torch.tensor([0.5, 0.5]), torch.tensor([[1.5, 0.0], [0.5, 0.75]])
    check(answer, sensitivity.neuron_sensitivity, (clean, moved, torch.tensor([2.0, 0.5])))


is_right(my_sensitivity)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_sensitivity(before, after, step):
#     return (after - before) / step[:, None]
#
# is_right(my_sensitivity)
# ~~~
#
# Sensitivity is a slope: a large change over a long way may score less than a small change over a
# short way.
# ```
