# %% [markdown]
# # What counts as a neuron in DeepSensor's networks?
#
# **What the paper fixes** (DeepSensor IV.A, Table I). Seven networks on MNIST, CIFAR-10 and
# ImageNet. For each of them the paper gives the numbers of parameters, layers and
# {term}`neurons <neuron>`, and an accuracy "on the benign examples we need in the experiment, not
# on all examples".
#
# **What you will learn.** What this paper counts as a neuron, which we find out by counting; and
# what the activation of a neuron is. [The chapter on neurons](../../book/neuron) says more.

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

from dnnbook import published, training
from dnnbook.chapters import declared
from dnnbook.chapters.statements import says
from dnnbook.data import load
from dnnbook.display import plots, whose
from dnnbook.display.tables import beside, headed
from dnnbook.records import records
from dnnlib import inference, models
from dnnlib.neurons import activations

plots.style()

# %% tags=["parameters"]
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
seed = 0  # of the training, and of all else that is random
recipe = "default"  # how the network is trained

# %% [markdown]
# ## What LeNet-5 makes of one image
#
# Every square in a column is a map, and every stripe is a unit of a dense layer. Bright means a
# large activation. Look at how the picture falls apart into strokes, and the strokes into ten
# numbers, one for each class. Which of these things is a neuron?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "One test image and the activations of LeNet-5, layer by layer. First come maps of convolutions and pools, then dense units, the last ten of them the logits. Each layer has a scale of its own.", "name": "fig-deepsensor-networks", "classes": "bitmap"}}
declared.check("deepsensor_sensitivity/00", dataset=dataset, seed=seed, recipe=recipe)
lenets = {name: training.trained(name, dataset, recipe_name=recipe, seed=seed)
          for name in ("lenet1", "lenet4", "lenet5")}
data = load(dataset)


def drawn(maps: torch.Tensor) -> torch.Tensor:
    """Maps (C, H, W) in two columns, or units (N,) as stripes: a picture (height, width)."""
    if maps.ndim == 1:
        return maps[:, None]
    framed = nn.functional.pad(maps, (1, 1, 1, 1), value=float(maps.max()))
    columns = 2 - len(maps) % 2  # as of three colours: one
    return torch.cat([torch.cat([*part], dim=0) for part in framed.chunk(columns)], dim=1)


named = models.neuron_layers(lenets["lenet5"])
x, columns = data.images[:1], [("one image", data.images[0])]
with torch.no_grad():
    for name, module in lenets["lenet5"].named_children():
        x = module(x)
        if name in named:
            columns.append((f"{x.shape[1]} {'maps' if x.ndim == 4 else 'units'}", x[0]))
figure, axes = plt.subplots(1, len(columns), figsize=(9.5, 3.2))
for axis, (title, maps) in zip(axes, columns):
    axis.imshow(drawn(maps), cmap="gray", aspect="auto" if maps.ndim == 1 else "equal")
    axis.set_title(title, fontsize=9)
    axis.set(xticks=[], yticks=[])
    axis.grid(False)
whose.show(whose.run_of(dataset, "lenet5", seed, recipe=recipe))

# %% [markdown]
# ## LeNet-1, layer by layer
#
# A neuron is a channel of a map or a unit of a dense layer. Convolutions, pools, dense layers, the
# {term}`logits <logit>` *and* the softmax count; a convolution and its ReLU are one layer. That is
# the rule of {term}`DeepXplore`:

# %% tags=["nbval-check-output"]
blank = torch.zeros(1, 1, 28, 28)
model = models.build("lenet1")
found = activations.record(model, blank)
for name, (neurons,) in zip(found.layers, found.shapes):
    kind = type(model.get_submodule(name)).__name__ if name != "softmax" else name
    print(f"{kind:10}{neurons:3} neurons")
print(f"{'sum':10}{found.values.shape[1]:3} neurons; Table I has 52")

# %% [markdown]
# ## Table I, beside our counts
#
# The paper counts the layers that have neurons, and also "flatten". Nothing has to be trained for
# this count:

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

dense, maps = 120 + 84, 2 * (6 + 16)
quiz("LeNet-5 has 268 neurons: channels of its convolutions and pools, units of its dense layers, "
     "and the outputs. Where are most of them?",
     {"In the convolutions and pools": maps > 268 / 2, "In the dense layers": dense > 268 / 2},
     f"{dense} are units of the dense layers and {maps} are channels of convolutions and pools.")

# %% tags=["hide-input"]
table_1 = published.table("deepsensor_sensitivity", 1)
ours = {}
for name in table_1["model"].unique():
    with torch.device("meta"):  # sizes only
        model = models.build(name)
    layers = len(models.neuron_layers(model)) + model.spec.softmax
    layers += sum(isinstance(module, nn.Flatten) for module in model.modules())
    ours[name] = {"layers": layers, **models.count(name)._asdict()}

# %% tags=["hide-input", "nbval-check-output"]
printed = table_1.pivot(index="model", columns="quantity", values="value")[[*ours["lenet1"]]]
sizes = pd.DataFrame(ours).T.join(printed.astype(int).add_suffix(" (paper)"))
assert all((sizes[what] == sizes[f"{what} (paper)"]).all() for what in ("parameters", "neurons"))
headed(sizes)

# %% [markdown]
# All numbers of parameters and neurons agree, and the number of layers agrees for six networks. For
# ResNet-20 the paper counts 19 layers more: its batch normalisations count as layers but hold no
# neurons. In MobileNet and ResNet-50, batch normalisations do hold neurons. So a neuron is whatever
# a script counted in each Keras model. Within one network that does no harm.

# %% [markdown]
# ## One neuron's activation
#
# A channel's activation is the mean over its positions. There are two scales: raw, or with the
# whole layer brought to [0, 1] for each input (DeepXplore does this for coverage). The paper does
# not say on which scale it computes sensitivity. We take raw activations. On the other scale, a
# threshold of 0.5 means something else.

# %% tags=["hide-input"]
raw, scaled = (activations.record(lenets["lenet5"], data.images[:500], scale=scale)
               for scale in (False, True))

# %% tags=["hide-input"]
pd.DataFrame({f"{title}, {what}": {name: float(getattr(part.layer(name), what)())
                                   for name in part.layers}
              for title, part in (("raw", raw), ("scaled", scaled))
              for what in ("mean", "max")}).rename_axis("layer of LeNet-5").round(2)

# %% [markdown]
# ## Accuracy
#
# Our accuracies are measured on a whole test set, in percent. The column "ours" is about the
# networks in the chapter on [test errors](02_test_errors): mean [least, greatest] over the random
# seeds. MobileNet and ResNet-20 are exceptions: others trained them, so all seeds share their weights.
# MobileNet has width 0.75 and is measured on 1,000 photographs, many of them among its training images.

# %% tags=["hide-input", "statements"]
with torch.device("meta"):
    theirs, paper = models.count(models.build("resnet20", variant="he")), models.count("resnet20")
says(("The ResNet-20 of others has no parameters in its shortcuts: it has "
      f"{theirs.parameters:,} parameters and {theirs.neurons:,} neurons, a little less than the paper's.",
      0.9 < theirs.parameters / paper.parameters < 1 and 0.9 < theirs.neurons / paper.neurons < 1))

# %% tags=["hide-input"]
live = pd.DataFrame([{"dataset": dataset, "model": name, "quantity": "accuracy",
                      "value": 100 * inference.accuracy(model, data.images, data.labels)}
                     for name, model in lenets.items()])
beside(table_1.query("quantity == 'accuracy'"), records.frame("deepsensor_sensitivity/test_errors"),
       on=["dataset", "model", "quantity"], live=live, digits=1, where="quantity == 'accuracy'")

# %% [markdown]
# ## Exercises
#
# **1. Think.** LeNet-5 has two more dense layers than LeNet-1. How many of its 268 neurons are in
# them?
#
# ```{admonition} Solution
# :class: dropdown
# They have 120 and 84 neurons, three quarters of all. The two convolutions and the two pools have
# $2 \cdot (6 + 16) = 44$ maps; the logits and the softmax have 20 neurons. So a share of sensitive
# neurons in LeNet-5 is mostly about dense units.
# ```
#
# **2. Think.** The accuracies of Table I are on chosen images. Name a choice that gives any network
# an accuracy of 98.9 %.
#
# ```{admonition} Solution
# :class: dropdown
# Take 989 images that it classifies correctly and 11 that it does not. An accuracy on a subset
# means something only if we also know how the subset was drawn. The inputs that a {term}`fuzzer`
# starts from are usually all classified correctly: then the accuracy is 100 %.
# ```
#
# **3. Code.** Write `my_neurons(shapes)`: the number of neurons in layers whose outputs have these
# shapes: (C, H, W) for a layer of maps and (units,) for a dense layer. The cell says whether it is
# right.

# %%
my_neurons = None  # your function of a list of tuples

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda shapes: sum(s[0] for s in shapes),
          ([(6, 24, 24), (6, 12, 12), (84,)],), ([(10,)],))


is_right(my_neurons)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_neurons(shapes):
#     return sum(torch.Size(shape)[0] for shape in shapes)
#
# is_right(my_neurons)
# ~~~
#
# Each channel is one neuron, whatever the size of its map (24 × 24 values, for example): its
# activation is a mean over the map.
# ```
