# %% [markdown]
# # Which of your images should be labelled first?
#
# You have a classifier and many images that nobody has labelled, and you can pay for the labels of a
# few. Which few? The methods that NSS compares answer that for any PyTorch model, by the command
# `dnnlib rank` or by a few lines of Python. This chapter shows both, and how to find out which method
# is worth its cost on *your* model.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # a name from `dnnlib models`, trained here; with imagenet, mobilenet
methods = "gini,nss,dsa"  # names of selectors, with commas
top = 0.05  # the share of the images to label
seed = 0  # of the training, and of all else that is random
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from dnnbook import training
from dnnbook.chapters import folders
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots, whose
from dnnbook.display.tables import headed
from dnnbook.records import records
from dnnbook.words import rounded_down, rounded_up
from dnnlib import checks, custom, files, inference
from dnnlib.custom.comparing_picture import figure
from dnnlib.custom.worth import selectors_table

plots.style()
pretrained = dataset == "imagenet"  # images and weights are there, training images are not
possible = [name for name in checks.words(methods, "methods") if not (pretrained and custom.needs_reference(name))]
run = Experiment("nss/your_own_model", profile, dataset=dataset, model_name=model_name, seed=seed,
                 methods=methods, top=top)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

asked = records.frame("nss/your_own_model", dataset="imagenet",
                      methods="gini,margin,nss,nac,random")
if len(asked):
    asked = asked.query("quantity == 'fault_detection_rate' and rate == 0.05")
    asked = asked.groupby("method")["value"].mean().drop("best possible")
    display(quiz("MobileNet, on photographs, a twentieth labelled: which of these finds the most faults?",
                 {"the DeepGini impurity of its softmax vector": asked["gini"] == asked.max(),
                  "the difference of its two largest probabilities": asked["margin"] == asked.max()
                  and asked["gini"] < asked.max(),
                  "NSS's movement of sensitive neurons": asked["nss"] == asked.max(),
                  "chance": asked["random"] == asked.max()},
                 f"Faults among the selected: DeepGini {100 * asked['gini']:.0f} %, the margin "
                 f"{100 * asked['margin']:.0f} %, NSS {100 * asked['nss']:.0f} %, chance "
                 f"{100 * asked['random']:.0f} %."))

# %% tags=["hide-input", "statements"]
photographs = records.frame("nss/your_own_model", dataset="imagenet", methods="gini,margin,nss,nac,random")
by_chance = photographs.query("quantity == 'error_rate'")["value"].mean()
ends = photographs.groupby(["quantity", "method", "rate"])["value"].mean()
times = ends["fault_detection_rate"].unstack("rate") / by_chance
SOFTMAX, NEURONS = ["gini", "margin"], ["nss", "nac"]
says(
    ("**The answer.** Those of which the model is least sure: `gini` and `margin` find at least "
     f"{rounded_down(times.loc[SOFTMAX].min(axis=None), 1)} times as many faults as random order finds on average.",
     times.loc[SOFTMAX].min(axis=None) > 3),
    ("`nss` and `nac`, which watch neurons, are not clearly better than random order here.",
     ends.loc["low", NEURONS].max() <= by_chance and ends.loc["high", NEURONS].min() >= by_chance),
    ("This is only one network, on photographs, and one random draw.",
     photographs["seed"].nunique() == 1))

# %% tags=["hide-input"]
place = tempfile.TemporaryDirectory()
work = Path(place.name)
data = load(dataset, limit=profile_limit(profile))
if pretrained:
    photos_folder, reference_folder = files.data_dir() / "imagenet" / "val", None
    weights = files.data_dir() / "weights" / "mobilenet_v1_0.75_224.safetensors"
    options = {"width": 0.75}
else:
    photos_folder = folders.save_photos(data, work / "photos")
    (photos_folder / "unreadable.png").write_text("this is no picture")
    reference_folder = folders.save_photos(load(dataset, "train", limit=2000), work / "training")
    weights = work / "w.safetensors"
    trained = training.trained(model_name, dataset, seed=seed, device=device)
    files.save_tensors(weights, trained.state_dict())
    options = {"channels": data.shape[0], "size": data.shape[1], "classes": len(data.classes)}

# %% [markdown]
# ## In Python
#
# The model, the images, the ranking. Here the images are PNG files, in a folder for each true
# class; no method looks at the classes.

# %%
model = custom.load_model(model_name, weights, **options).to(inference.device(device))
photos = custom.read_photos(photos_folder, model)
reference = custom.read_photos(reference_folder, model) if reference_folder else None
table = custom.rank(model, photos, ",".join(possible), reference=reference, top=top, seed=seed)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "What each method would have labelled first: rank, score and file. The command writes such a sheet beside its table.", "name": "fig-nss-first-sheet", "classes": "bitmap"}}
plots.sheet(custom.first(table, photos, limit=16))
run.show()

# %% [markdown]
# The table has a row for each image, in the order of the first method. Scores can be compared within a method
# only. `gini` is the impurity of the softmax vector, `nss` a sum of changes of activations, `dsa` a quotient
# of distances. A file that is no picture stands at the end, with a note instead of ranks.

# %% tags=["hide-input"]
columns = ["path", "predicted", "confidence",
           *(f"{name}_{what}" for name in possible for what in ("score", "rank")), "note"]
headed(pd.concat([table.head(6), table[table["note"] != ""].head(1)])[columns])

# %% [markdown]
# ## Which method is worth its cost?
#
# Nobody can say so of unlabelled images; of these the true classes are known. The fault detection rate
# of a selection $S$ is the share of it that the network gets wrong,
#
# $$\mathrm{FDR}(S) = \frac{|\{x \in S : x \text{ is classified wrongly}\}|}{|S|} .$$
#
# For a random $S$ it is the network's error rate, on average; where all faults fit into $S$, it cannot
# exceed their number divided by $|S|$ (*best possible*). The command `dnnlib compare`, or one line of
# Python, measures it for each method, with Wilson's interval of 95 %.

# %%
compared = custom.compare(model, photos, ",".join(possible), reference=reference, seed=seed)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Faults among the images that each method puts first, with intervals of 95 %, beside random order and the best order there is.", "name": "fig-nss-own-compared"}}
whose.signed(figure(compared), str(run))

# %% tags=["hide-input"]
for row in compared.selectors.to_dict("records"):
    run.add({"fault_detection_rate": row["found"] / 100, "low": row["low"] / 100,
             "high": row["high"] / 100, "passes": row["passes"]},
            method=row["method"], rate=row["rate"] / 100)
run.add({"error_rate": compared.wrong / compared.images})
run.save(data, device=device)


says(f"Of {compared.images:,} images the network gets {compared.wrong} wrong. "
     + compared.sentences[0])
headed(selectors_table(compared.selectors).drop(columns="seconds"))

# %% [markdown]
# The sentence names a method only if an exact test tells it from random order, and it holds for all methods
# at once. The more of them you compare, the larger a lead must be. Passes are over an image; those over
# training images are shared out among the images.

# %% [markdown]
# ## What the command needs
#
# **A model**: a Python file with a function that takes nothing and returns a `torch.nn.Module`. The
# module gets images (N, C, H, W) and gives logits. If it gives probabilities, say `--probabilities`.
# The function may also return the transform of its images beside it.
#
# ```python
# # my_model.py
# from torchvision.models import resnet18, ResNet18_Weights
#
# def build():
#     return resnet18(num_classes=10), ResNet18_Weights.DEFAULT.transforms()
# ```
#
# This network needs no file at all: `--model torchvision:resnet18 --classes 10`. The page
# [Your own model](../../book/own_model.md) has all other ways in: timm, TorchScript, ONNX, or only the
# outputs that another framework saved.
#
# **Its weights**: `--weights w.pth`, the state dict, unless the function loads them. A pickle that
# holds more than tensors is refused, since opening one can run any code.
#
# **A folder of images**, in sub-folders or not, or a list of paths. What cannot be read is skipped,
# and listed, and the command ends with exit code 3; with `--strict` it stops at once instead.
#
# ```text
# dnnlib rank --model my_model.py:build --images photos --size 224 --by nss,gini --top 5%
# ```
#
# `--top` is what you can afford to label, a share or a count. Methods that compare with training
# images, such as KMNC and DSA, need a folder of those, `--reference`. `dnnlib rank --help` has the
# rest. `dnnlib compare` takes the same model, and images in a sub-folder for each class. In place of `--top` it
# has `--rates`.
#
# ## A run of it
#
# As you would run it on the folder above, without the progress bars.

# %% tags=["hide-input"]
if not pretrained:
    print(folders.command(work, "rank", {
        "model": model_name, "weights": "w.safetensors", "images": "photos",
        "reference": "training", "by": methods, "top": top, "seed": seed, **options}))

# %% [markdown]
# ## A network that others trained, on photographs
#
# The same cells, run with
#
# ```text
# dnnbook run nss/08 -p dataset imagenet -p model_name mobilenet \
#                    -p methods gini,margin,nss,nac,random -p profile paper
# ```
#
# MobileNet of width 0.75 with Keras's weights, on 1,000 images of ImageNet, one of each class, in
# percent. This record is of older code, whose intervals of 95 % are over draws of the images with replacement. Many
# of them are training images of that network, so that its error rate is lower than it would be on new ones. The
# photographs are not ours to print.

# %% tags=["hide-input"]
ours = run.recorded(dataset="imagenet", methods="gini,margin,nss,nac,random")
if ours.empty:
    print("no records yet")
else:
    for rate in ours.query("quantity == 'error_rate'")["value"]:
        print(f"error rate {rate:.1%}")
    parts = ours.pivot_table(index=["method", "rate"], columns="quantity", values="value")
    parts = parts.rename(columns={"fault_detection_rate": "found"}).reset_index()
    parts[["rate", "found", "low", "high"]] *= 100
    display(headed(selectors_table(parts.assign(seconds=0)).drop(columns="seconds")))

# %% [markdown]
# ## Readings
#
# `nss` ranks an image by how far a random mutation of it moves the sensitive neurons, as NSS's text says. The
# released code compares each candidate with the clean image that it was made from instead. Whoever has
# unlabelled photographs has no such image, so that `dnnlib rank` cannot offer it.
#
# **What it means.** On the photographs:

# %% tags=["hide-input", "statements"]
says(
    f"`gini` and `margin`, which read the softmax vector, find up to {rounded_up(times.loc[SOFTMAX].max(axis=None), 1)} times as many "
    "faults as random order.",
    (f"`nss` in this reading finds {times.loc['nss'].min():.1f} to {times.loc['nss'].max():.1f} times as many as random order, "
     f"and `nac` {times.loc['nac'].min():.1f} to {times.loc['nac'].max():.1f} times. Their intervals contain the rate of random "
     "order at every share.", ends.loc["low", NEURONS].max() <= by_chance and ends.loc["high", NEURONS].min() >= by_chance),
    (f"Chance alone matters. With 50 random images and an error rate of {100 * by_chance:.0f} %, the share of faults "
     f"typically differs from its mean by about {100 * (by_chance * (1 - by_chance) / 50) ** 0.5:.0f} points.",
     photographs["seed"].nunique() == 1))

# %% [markdown]
# Other data may behave differently: run `dnnlib compare` on yours. Exercise 1 is about data without labels.
#
# ## Exercises
#
# **1. Think.** You can label 50 of your images, and want to know whether `gini` finds more faults
# among your images than a random choice does. How do you spend the labels?
#
# ```{admonition} Solution
# :class: dropdown
# For example, label the first 25 images by `gini` and 25 images drawn at random (`--by gini,random
# --top 25`), and compare the two shares of faults. The random draw also estimates the error rate of your
# network. The first images by `gini` overstate this rate, because `gini` looks for faults. With 25 labels
# for each, you can only see a large difference: if $k$ of 25 images are wrong, the standard error of the
# share $p = k/25$ is $\sqrt{p(1-p)/25}$, which is a tenth at $p = 1/2$.
# ```
#
# **2. Think.** A model with ten classes ends in a softmax. A tool takes the outputs of the model for
# logits, and so applies a second softmax. What is the largest probability that the tool can get, and
# which values can the impurity $1 - \sum p_i^2$ have?
#
# ```{admonition} Solution
# :class: dropdown
# If the model is sure, its output is a one-hot vector. The second softmax turns it into
# $e / (e + 9) \approx 0.232$ and nine times $1 / (e + 9) \approx 0.085$, with an impurity of 0.881. If
# all probabilities are equal, the impurity is 0.9. So the impurity of every image lies between 0.881 and
# 0.9, and the model seems to be sure of no image. A threshold such as ATS's 0.99 then excludes no
# image. This is why `dnnlib rank` checks the outputs first.
# ```
#
# **3. Code.** You label images that you drew at random: `labelled` is their number, and the network
# gets `wrong` of them wrong. Write `my_error(wrong, labelled)`, the standard error of the share of
# faults. The cell says whether it is right.

# %%
my_error = None  # your function of two counts

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda k, n: np.std([1.0] * k + [0.0] * (n - k)) / n ** 0.5, (5, 25), (10, 100))


is_right(my_error)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_error(wrong, labelled):
#     share = wrong / labelled
#     return (share * (1 - share) / labelled) ** 0.5
#
# is_right(my_error)
# ~~~
#
# To halve the standard error, you need four times as many labels.
# ```
