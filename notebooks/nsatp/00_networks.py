# %% [markdown]
# # Which networks does NSATP test?
#
# **What the paper fixes** (NSATP IV.B, Tables I and II). NSATP tests two small convolutional
# networks, Net-1 and Net-2, on MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100. The paper gives a
# learning rate, a batch size and a number of epochs for each dataset.
#
# **What you will learn.** How much a table of layers leaves open, and how to check that a network
# in code is the one in the table.
#
# ```{figure} ../../book/assets/nsatp_workflow.svg
# :alt: From top to bottom. A trained network and a set S of examples are ready before. Step 1 puts S into the network, which gives a probability vector for each example. Step 2 measures each vector by PD, PV or PE. Step 3 ranks the values, least decided first. Step 4 puts the examples of S in that order, which gives the ranked examples. In broken lines below: step 5, of other methods, adds noise to them and so makes adversarial examples, to attack the network or to train it again.
# :width: 416px
# :name: fig-nsatp-workflow
#
# The four steps of NSATP, drawn after Fig. 4 and III.B of the paper. The networks are needed in
# step 1.
# ```

# %% tags=["hide-input"]
import pandas as pd
from torch import nn

from dnnbook import published, training
from dnnbook.data.sources import SOURCES
from dnnbook.display.tables import headed
from dnnbook.words import shown
from dnnlib import models

DATASETS = ["mnist", "fashion_mnist", "cifar10", "cifar100"]

# %% [markdown]
# ## Table I: the layers
#
# The table is shown as printed; `-` marks a row that Net-2 does not have.

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

counted = {name: models.count(models.build(name)).parameters for name in ("net1", "net2")}
quiz("Net-1 has more convolutions than Net-2. Which of the two has more parameters?",
     {"Net-1": counted["net1"] > counted["net2"], "Net-2": counted["net2"] > counted["net1"]},
     f"For MNIST, Net-1 has {counted['net1']:,} and Net-2 {counted['net2']:,} parameters.")

# %% tags=["hide-input", "nbval-check-output"]
printed = published.table("nsatp", 1)
headed(printed.pivot(index=["model", "layer", "type"], columns="dataset", values="value")[DATASETS])

# %% [markdown]
# The table does not give padding and stride. We add no padding, since the paper mentions none. Two
# pools of 3 x 3 with stride 3 would then shrink 28 x 28 to nothing, so the pools of Net-1 have
# stride 2 and overlap. In the code each ReLU comes after its pool. Both orders give the same
# result, and the pooled map is smaller.

# %% tags=["hide-input", "nbval-check-output"]
WRITTEN = {nn.Conv2d: lambda layer: "{}×{}×{}".format(*layer.kernel_size, layer.out_channels),
           nn.MaxPool2d: lambda layer: f"{layer.kernel_size}×{layer.kernel_size}",
           nn.Linear: lambda layer: str(layer.out_features)}  # as the table writes them
for name in ("net1", "net2"):
    for dataset in DATASETS:
        source = SOURCES[dataset]
        model = models.build(name, shape=source.shape, classes=source.classes)
        built = [WRITTEN[type(layer)](layer) for layer in model if type(layer) in WRITTEN]
        rows = printed.query("model == @name and dataset == @dataset and value != '-'")
        assert built == rows["value"].astype(str).tolist(), (name, dataset)
        print(f"{shown(name)} on {shown(dataset)}: {len(built)} layers as in Table I, "
              f"{models.count(model).parameters:,} parameters")

# %% [markdown]
# The motivation section uses a third network, LeNet-5. The table below gives the sizes of all
# networks of the five papers, beside the published sizes:

# %% tags=["hide-input", "nbval-check-output"]
with pd.option_context("display.max_colwidth", None):  # the notes as a whole
    display(headed(models.table().astype(object).fillna("")))

# %% [markdown]
# ## Table II: the training
#
# The paper does not name the optimiser. The plainest {term}`reading` is gradient descent without
# momentum, and the recipe `nsatp` uses it. It is slow on colour images. The recipe `nsatp_momentum`
# adds momentum and changes nothing else: run a chapter with `-p recipe nsatp_momentum` to see what
# depends on the accuracy of the network.

# %% tags=["hide-input", "nbval-check-output"]
for row in published.table("nsatp", 2).itertuples():
    recipe = training.recipe("nsatp", row.dataset)
    assert (recipe.learning_rate, recipe.batch_size, recipe.epochs) == (
        row.learning_rate, row.batch_size, row.epochs)
    assert [training.recipe("nsatp", row.dataset, name).precision for name in ("net1", "net2")] == [
        "bfloat16" if row.dataset == "cifar10" else "float32", "float32"]

# %% tags=["hide-input", "nbval-check-output"]
headed(pd.DataFrame([{"dataset": name, **vars(training.recipe("nsatp", name))}
                     for name in [*DATASETS, "mnist_small"]]).set_index("dataset"))

# %% [markdown]
# The embedded part of MNIST has too few images for plain gradient descent, so we train on it with a
# recipe of our own.
#
# The paper does not say how precise the numbers are that a network computes with. Ours learn in `float32`, with
# one exception: on CIFAR-10, the convolutions of Net-1 use `bfloat16`, numbers of half the size. The trained
# network is then tested in `float32`, as all others are.
#
# ## Exercises
#
# **1. Think.** Unless told otherwise, Keras adds no padding, and the stride of a pool is its size.
# What happens to a 28 x 28 image in Net-1 with these defaults?
#
# ```{admonition} Solution
# :class: dropdown
# The first convolution gives 24 x 24, the pool 8 x 8, the second convolution 4 x 4, and the third
# has a 5 x 5 kernel, which does not fit on that map. So the authors' code must differ from the
# defaults somewhere: in its padding, in its strides, or in both.
# ```
#
# **2. Code.** Write `my_parameters(kernel, before, after)`: how many weights and biases a
# convolution with square kernels has, from `before` to `after` channels. The cell says whether it
# is right.

# %%
my_parameters = None  # your function

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def count(kernel, before, after):
        layer = nn.Conv2d(before, after, kernel)
        return sum(p.numel() for p in layer.parameters())

    check(answer, count, (5, 1, 32), (3, 32, 64), (1, 3, 3))


is_right(my_parameters)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_parameters(kernel, before, after):
#     return after * (before * kernel ** 2 + 1)
#
# is_right(my_parameters)
# ~~~
#
# The size of the image does not occur in this formula. It matters in the first dense layer. That is
# why padding and stride change the number of parameters, and the table leaves both out.
# ```
