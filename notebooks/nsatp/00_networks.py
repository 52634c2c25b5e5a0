# %% [markdown]
# # The networks of NSATP
#
# **What the paper fixes** (NSATP IV.B, Tables I and II). Two small convolutional networks, Net-1 and
# Net-2, on MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, with a learning rate, a batch size and a
# number of epochs for each dataset.
#
# **What you will learn.** How much a table of layers leaves open, and how to check that a network
# in code is the network in a table.

# %%
import pandas as pd
from torch import nn

from dnnlib import models, published, training
from dnnlib.data.sources import SOURCES

# %% [markdown]
# ## Table I: the layers
#
# As printed; `-` is a row that Net-2 does not have.

# %% tags=["nbval-check-output"]
printed = published.table("nsatp", 1)
printed.pivot(index=["model", "layer", "type"], columns="dataset", values="value")[
    ["mnist", "fashion_mnist", "cifar10", "cifar100"]]

# %% [markdown]
# Padding and stride are missing. We add no padding, since none is mentioned. Two pools of 3 x 3 with
# stride 3 would then shrink 28 x 28 to nothing, so the pools of Net-1 have stride 2 and overlap. In
# the code each ReLU comes after its pool: the two commute, and the pooled map is smaller.

# %% tags=["nbval-check-output"]
def layers(model):
    """The layers that hold weights or pool, as the table writes them."""
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            yield "{}×{}×{}".format(*layer.kernel_size, layer.out_channels)
        elif isinstance(layer, nn.MaxPool2d):
            size = layer.kernel_size
            yield f"{size}×{size}"
        elif isinstance(layer, nn.Linear):
            yield str(layer.out_features)


for name in ("net1", "net2"):
    for dataset in ("mnist", "fashion_mnist", "cifar10", "cifar100"):
        source = SOURCES[dataset]
        built = models.build(name, shape=source.shape, classes=source.classes)
        table = printed.query("model == @name and dataset == @dataset and value != '-'")
        assert list(layers(built)) == list(table["value"].astype(str)), (name, dataset)
        print(f"{name} on {dataset}: {len(table)} layers as in Table I, "
              f"{models.count(built).parameters:,} parameters")

# %% [markdown]
# The motivation section uses a third network, LeNet-5. The sizes of all networks of the five papers,
# beside the published ones:

# %% tags=["nbval-check-output"]
models.table().astype(object).fillna("")

# %% [markdown]
# ## Table II: the training
#
# The optimiser is not named; the plainest reading is gradient descent without momentum, which the
# recipe `nsatp` uses. Convolutions are trained in bfloat16 where the recipe says so; every
# number in the book is measured in float32.

# %% tags=["nbval-check-output"]
recipes = pd.DataFrame([{"dataset": name, **vars(training.recipe("nsatp", name))}
                        for name in ("mnist", "fashion_mnist", "cifar10", "cifar100", "digits")])
compared = published.table("nsatp", 2).merge(recipes, on="dataset", suffixes=(" (paper)", ""))
for field in ("learning_rate", "batch_size", "epochs"):
    assert (compared[field] == compared[f"{field} (paper)"]).all(), field
recipes.set_index("dataset")

# %% [markdown]
# The embedded digits are not in the paper; they use the book's default recipe.
#
# ## Exercise
#
# Keras pads nothing and strides by the pool size unless told otherwise. What happens to a 28 x 28
# image in Net-1 with those defaults?
#
# ```{admonition} Solution
# :class: dropdown
# The first convolution gives 24 x 24, the pool 8 x 8, the second convolution 4 x 4, and the third
# has a 5 x 5 kernel and nothing to slide over. So the authors' code must differ from the defaults
# somewhere: in its padding, in its strides, or in both.
# ```
