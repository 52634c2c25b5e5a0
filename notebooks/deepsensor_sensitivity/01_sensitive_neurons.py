# %% [markdown]
# # Do corner cases make more neurons sensitive?
#
# **The claim** (DeepSensor I, Fig. 1; III.A and III.C, Eqs. 1 and 2). A neuron is sensitive when
# its activation changes a lot for the distance that the input moved. Over 500 pairs of a benign "9"
# and one of its corner cases, the corner cases have many more sensitive neurons. So inputs with
# many sensitive neurons should be errors, and DeepSensor looks for them.
#
# **What you will learn.** The two equations, by hand; what an input must be compared with before
# one can say that it has *more* sensitive neurons; and what a t-SNE picture shows.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.manifold import TSNE

from dnnlib import fuzzing, inference, models, training
from dnnlib.book import compare, plots, records
from dnnlib.data import load
from dnnlib.neurons import activations, sensitivity

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how it is trained: a name of `training.RECIPES`
seed = 0  # of the training, of the choice of images and of the fuzzer
seeds_count = 40  # benign images, at most so many of each class
seed_class = 9  # the class of Fig. 1: its place among the classes
other_class = 1  # the class shown beside it
iterations = 20  # of DeepHunter, which makes the corner cases
references = 1000  # training images that give DeepHunter its neuron boundaries
profile = "embedded"  # embedded: a look; paper: also a record

# %% [markdown]
# ## The two equations
#
# For an input $x$ moved by $\Delta x$, the sensitivity of neuron $n$ with activation $\varphi_n$,
# and the share of sensitive neurons, DeepSensor's fitness, are
#
# $$NS_n(x, \Delta x) = \frac{\varphi_n(x + \Delta x) - \varphi_n(x)}{\lVert\Delta x\rVert_2},
# \qquad \mathrm{Fitness} = \frac{|\{n : NS_n > \lambda\}|}{\text{number of neurons}} .$$
#
# Four neurons, and an input that moved by 2: the first changes by 1.5, which is 0.75 for each unit.

# %% tags=["nbval-check-output"]
before, after = [0.5, 1.0, 2.0, 0.0], [2.0, 1.8, 0.0, 0.0]
ns = sensitivity.neuron_sensitivity(before, after, torch.tensor(2.0))
print("sensitivities:", [round(v, 2) for v in ns.tolist()])
print("share above 0.5:", sensitivity.sensitive_share(ns, 0.5).item())

# %% [markdown]
# Two things to note. The third neuron changes most, and does not count: Eq. 1 is signed, so a
# neuron that falls silent is not sensitive. And the distance is in the denominator, so a
# perturbation twice as long that changes twice as much scores the same. An untouched input would be
# 0/0; it counts as 0 (III.C).

# %% [markdown]
# ## Benign images, and their corner cases
#
# How the paper found its corner cases is not said. DeepHunter's are mutants of a benign image that
# lost its class; no step in making them looks at sensitivity. We keep the first one of each image.

# %%
data = load(dataset)
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

# %% [markdown]
# ## What to compare with
#
# A benign image alone has no $\Delta x$, hence no sensitive neurons. The paper compares with benign
# examples and does not say how they were perturbed. Two answers:
#
# - **noise**, the same image under Gaussian noise of the same L2 length as its corner case;
# - **right**, of DeepHunter's mutants of the same image that kept their class, the one nearest in
#   length. It is of the same make, and no error.

# %%
def sensitivities(x: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """Eq. 1 for every neuron: (N, neurons)."""
    before, after = (activations.record(network, images).values for images in (x, moved))
    return sensitivity.neuron_sensitivity(before, after, (moved - x).flatten(1).norm(dim=1))


found = {group: sensitivities(*pair) for group, pair in pairs.items()}

# %%
thresholds = (0.1, 0.3, 0.5, 0.7, 0.9)
rows = [{"fuzzer": "deephunter", "lambda": t, "group": group, "quantity": "sensitive_neurons",
         "value": float((ns > t).sum(1).double().mean())}
        for group, ns in found.items() for t in thresholds]
counts = pd.DataFrame(rows).pivot(index="lambda", columns="group", values="value")
rows += [{"fuzzer": "deephunter", "lambda": t, "quantity": f"error_over_{group}",
          "value": counts.loc[t, "error"] / max(counts.loc[t, group], 1 / len(found[group]))}
         for t in thresholds for group in ("noise", "right")]
rows += [{"group": group, "quantity": "l2",
          "value": float((moved - x).flatten(1).norm(dim=1).mean())}
         for group, (x, moved) in pairs.items()]
counts.round(1)

# %% [markdown]
# These are mean numbers of sensitive neurons (in the claim's ratio, a group that has none counts as
# having one in all). By distance, at the paper's $\lambda = 0.5$:

# %% mystnb={"figure": {"caption": "Number of sensitive neurons of each image against the L2 distance it was moved: DeepHunter's wrongly classified examples, noise as long as these, and as long a DeepHunter example of the same image that kept its class.", "name": "fig-deepsensor-sensitive"}}
figure, axis = plt.subplots(figsize=(6, 3.4))
many = {group: (ns > 0.5).sum(1) for group, ns in found.items()}
for group, colour in (("right", "0.7"), ("noise", "C0"), ("error", "C3")):
    x, moved = pairs[group]
    axis.scatter((moved - x).flatten(1).norm(dim=1), many[group], s=12, alpha=0.6, color=colour,
                 label=group)
axis.set(xlabel="L2 distance", ylabel="sensitive neurons")
axis.legend()
plt.show()

# %% [markdown]
# ## Fig. 1: some pairs

# %% mystnb={"figure": {"caption": "Benign images (upper row) under noise, and their corner cases (lower row), with the class that the network gives and the number of sensitive neurons.", "name": "fig-deepsensor-pairs"}}
shown = slice(0, min(6, len(corner)))
parts = {}
for title, group in (("benign, under noise", "noise"), ("corner cases", "error")):
    moved = pairs[group][1][shown]
    given = inference.predict(network, moved).argmax(1)
    parts[title] = (moved, [f"{data.classes[c]}\n{n} sensitive"
                            for c, n in zip(given.tolist(), many[group][shown].tolist())])
plots.sheet(parts, columns=6)
plt.show()

# %% [markdown]
# ## Fig. 1: t-SNE
#
# t-SNE places points in a plane so that near neighbours stay near; distances between clusters mean
# little. The points are the activations before the logits, of both classes and of the corner cases.
# On the right, benign images are under noise as long as the median corner case.

# %% mystnb={"figure": {"caption": "t-SNE of the last hidden layer for two benign classes and for corner cases of the first (left), and the number of sensitive neurons of each point (right).", "name": "fig-deepsensor-tsne"}}
hidden = list(models.neuron_layers(network))[-2]
groups = {f"class {data.classes[seed_class]}": benign,
          f"class {data.classes[other_class]}": data.images[others], "corner cases": corner}
images = torch.cat(list(groups.values()))
latent = activations.record(network, images, layers=[hidden], neuron="unit").values.numpy()
plane = TSNE(random_state=seed, init="pca", perplexity=min(30, len(latent) // 4)).fit_transform(
    latent)
plain = images[:-len(corner)]
typical = length.median().expand(len(plain))
noisy = fuzzing.with_noise(plain, typical, seed=seed)
number = torch.cat([(sensitivities(plain, noisy) > 0.5).sum(1), many["error"]])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for name, place in zip(groups, np.split(plane, np.cumsum([*map(len, groups.values())])[:-1])):
    axes[0].scatter(*place.T, s=14, label=name)
axes[0].legend()
points = axes[1].scatter(*plane.T, s=14, c=number, cmap="viridis")
figure.colorbar(points, label="sensitive neurons")
for axis in axes:
    axis.set(xticks=[], yticks=[])
plt.show()

# %%
if profile == "paper":
    records.save(records.Record(
        "deepsensor_sensitivity/sensitive_neurons",
        dict(dataset=dataset, model=model, recipe=recipe, seed=seed, seeds_count=seeds_count,
             seed_class=seed_class, iterations=iterations, references=references), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Over all records
#
# Sensitive neurons of errors, over those under noise of the same length (the claim) and over those
# of mutants that kept their class; mean over the seeds. The paper prints no number.

# %%
ours = records.frame("deepsensor_sensitivity/sensitive_neurons")
if len(ours):
    ratios = ours[ours["quantity"].str.startswith("error_over")]
    display(ratios.pivot_table(index=["dataset", "model", "quantity"], columns="lambda",
                               values="value").round(2))

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("deepsensor_sensitivity", experiment="deepsensor_sensitivity/sensitive_neurons")

# %% [markdown]
# **What it means.** Compared with noise, a corner case differs in two ways: it is an error, and it
# is a structured change, a rotation or a shift. The third group takes these apart: mutants of the
# same make that are no errors. Only what remains of the gap against *them* speaks of errors. And
# even a clear gap is a statement about given errors; that pictures with many sensitive neurons are
# errors in turn is the converse, which [the next chapter](02_test_errors) puts to the test. On MNIST
# with LeNet-5 errors have more sensitive neurons than noise, and, by a smaller factor, more than
# mutants that are right, at every $\lambda$.

# %% [markdown]
# ## Exercises
#
# **1.** Count absolute changes: `neuron_sensitivity(..., signed=False)`. Does the order of the
# three groups change?
#
# ```{admonition} Solution
# :class: dropdown
# All counts can only rise, since neurons that fall silent are added. Compare the
# ratios, not the counts. An error often replaces one set of active neurons by another, so what
# falls is of interest too.
# ```
#
# **2.** Take the examples of DeepSensor's swarm in the place of DeepHunter's. Why would that prove
# less?
#
# ```{admonition} Solution
# :class: dropdown
# The swarm maximises the very number that is then compared. That its examples have many sensitive
# neurons would hold whether they are errors or not.
# ```
