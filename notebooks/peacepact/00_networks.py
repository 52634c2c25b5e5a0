# %% [markdown]
# # Is PEACEPACT's network the one of NSATP?
#
# PEACEPACT is a smaller version of NSATP. It ranks by one distance, {term}`PD`; NSATP compares three. It
# uses patches of random values; NSATP names both random pixels and a search for patches that succeed. Both papers test a network called
# Net-1. Is it the same network?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Both papers' Net-1 for MNIST, built from their tables. A bar is a layer; the more values it passes on, the higher it is (on a logarithmic scale). PEACEPACT's table ends before the layer that gives the ten classes; it is ours.", "name": "fig-peacepact-networks"}}
import matplotlib.pyplot as plt
import torch
from torch import nn

from dnnbook import published, training
from dnnbook.data.sources import SOURCES
from dnnbook.display import fragility_plots, plots
from dnnbook.display.tables import headed
from dnnbook.words import shown
from dnnlib import models

plots.style()
fragility_plots.layers({"NSATP's Net-1": models.build("net1"),
                        "PEACEPACT's Net-1": models.build("net1_peacepact")}, (1, 28, 28))
plt.show()

# %% [markdown]
# **What the paper fixes** (PEACEPACT IV.A, Tables I to III). The paper uses four datasets, one network
# called Net-1, and the same training parameters as NSATP.
#
# **What you will learn.** One name can stand for two networks, and you can notice this by counting
# layers and parameters.

# %% [markdown]
# ## Table I: the datasets
#
# The paper prints the size of each dataset. Our training and test sets together have the same sizes.

# %% tags=["hide-input", "nbval-check-output"]
printed = published.table("peacepact", 1)
for row in printed.itertuples():
    source = SOURCES[row.dataset]
    assert sum(source.sizes.values()) == row.samples, row.dataset
    assert f"{source.shape[1]}×{source.shape[2]}" == row.size
    assert source.classes == row.categories
headed(printed.set_index("dataset"))

# %% [markdown]
# ## Table II: Net-1, again

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

counted = {name: models.count(models.build(name)).parameters for name in ("net1", "net1_peacepact")}
quiz("Which of the two networks has more parameters?",
     {"NSATP's, of fewer layers": counted["net1"] > counted["net1_peacepact"],
      "PEACEPACT's, of more layers": counted["net1"] < counted["net1_peacepact"]},
     f"Built as NSATP's table says it has {counted['net1']:,} parameters, as PEACEPACT's table says "
     f"{counted['net1_peacepact']:,}.")

# %% tags=["hide-input", "nbval-check-output"]
published.table("peacepact", 2)[["layer", "type", "value"]].set_index("layer")

# %% [markdown]
# NSATP's Net-1 has two pools and two hidden dense layers. PEACEPACT's Net-1 has three of each, and the
# table does not list an output layer. Each round of a 5 x 5 convolution and a 3 x 3 pool shrinks the
# image. Without padding, 28 x 28 pixels are used up before the third round ends, so we give the
# convolutions "same" padding:

# %% tags=["hide-input", "nbval-check-output"]
for name in ("net1", "net1_peacepact"):
    model = models.build(name)
    kinds = [type(layer) for layer in model]
    print(f"{shown(name)}: {kinds.count(nn.Conv2d)} convolutions, {kinds.count(nn.MaxPool2d)} pools, "
          f"{kinds.count(nn.Linear)} dense layers, {models.count(model).parameters:,} parameters")

# %% [markdown]
# The fits and {term}`correlations <correlation>` that PEACEPACT prints for Net-1 equal those that NSATP
# prints for *its* Net-1, to the last digit. But the claims are about the network in PEACEPACT's table, so
# the chapters on correlation and on random order run that network, `net1_peacepact`. NSATP's Net-1 is another {term}`reading`:
# `-p model_name net1`.

# %% tags=["hide-input", "nbval-check-output"]
for ours, theirs, number in ((4, 3, "fits"), (5, 4, "correlations")):
    a = published.table("peacepact", ours)
    b = published.table("nsatp", theirs).query("model == 'net1' and distance == 'pd'")
    print(f"{number}: equal to NSATP's Net-1:", list(a["value"]) == list(b["value"]))

# %% [markdown]
# ## Table III: the training

# %% tags=["hide-input", "nbval-check-output"]
table_3 = published.table("peacepact", 3)
for row in table_3.itertuples():
    recipe = training.recipe("nsatp", row.dataset, "net1_peacepact")
    assert (recipe.learning_rate, recipe.batch_size, recipe.epochs) == (
        row.learning_rate, row.batch_size, row.epochs)
    assert recipe.precision == ("bfloat16" if row.dataset in ("cifar10", "cifar100") else "float32")
headed(table_3.set_index("dataset"))

# %% [markdown]
# The table does not say how precise the numbers are that the network computes with. Ours learn in `float32`, with
# one exception: on CIFAR-10 and CIFAR-100, the convolutions of PEACEPACT's Net-1 use `bfloat16`, numbers of half the size.
# The trained network is then tested in `float32`, as all others are.

# %% [markdown]
# ## Exercises
#
# **1. Think.** How large would an image have to be for PEACEPACT's Net-1 without padding, with
# pools of stride 2?
#
# ```{admonition} Solution
# :class: dropdown
# Go backwards from one pixel after the last pool. This pool needs 3 pixels, the convolution before it 7,
# the second pool 15, its convolution 19, the first pool 39, and the first convolution 43. CIFAR's 32
# pixels are too few.
# ```
#
# **2. Think.** PEACEPACT prints the correlations that NSATP prints for another network. Give two
# explanations. How could you find out which one is true?
#
# ```{admonition} Solution
# :class: dropdown
# Either the authors took the numbers of NSATP's Net-1, or the table of layers is wrong and the network
# is NSATP's. The authors' code or weights would show which. A run of both networks would also show it,
# if the results of the two differ by more than the results of different seeds. The chapters on
# [correlation](02_correlation) and on [random order](03_against_random) include both networks.
# ```
#
# **3. Code.** Write `my_size(pixels, kernel, stride)`: how many pixels a side has after a
# convolution or a pool without padding. The cell says whether it is right.

# %%
my_size = None  # your function

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def size_after(pixels, kernel, stride):
        layer = nn.MaxPool2d(kernel, stride)
        return layer(torch.zeros(1, 1, pixels, pixels)).shape[-1]

    check(answer, size_after, (28, 5, 1), (24, 3, 3), (24, 3, 2))


is_right(my_size)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_size(pixels, kernel, stride):
#     return (pixels - kernel) // stride + 1
#
# is_right(my_size)
# ~~~
#
# Exercise 1 applies this function backwards.
# ```
