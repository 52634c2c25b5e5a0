# %% [markdown]
# # Which inputs break your model?
#
# You have a network and images. The command `rank` says which of your images you should label first. The
# command `fuzz` finds small changes of your images that your network gets wrong. This page tells you when
# to use which method, and shows what the commands give you. The next two chapters go through both
# commands, step by step.
#
# ```text
# pip install -e .
# dnnlib rank --model torchvision:resnet18 --classes 10 --weights w.pth \
#             --images photos --by gini --top 5%
# dnnlib fuzz --model torchvision:resnet18 --classes 10 --weights w.pth \
#             --images photos --by dlfuzz --l2 2
# ```
#
# Run the first line in a clone of this project; it installs PyTorch too. `photos` is a folder of images, with
# or without sub-folders. `rank` needs no labels. It writes a table with a line for each image, and a sheet of
# pictures. `fuzz` writes the failing inputs as PNG files that you can keep as tests.
#
# Here `gini` is {term}`DeepGini`, which reads the {term}`softmax vector`, and `dlfuzz` is the
# {term}`fuzzer` {term}`DLFuzz`. The option `--l2` bounds the {term}`L2 distance` between an image and its
# failing copy.

# %% tags=["remove-input"]
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from dnnbook import training
from dnnbook.chapters import folders
from dnnbook.chapters.statements import says
from dnnbook.data import load
from dnnbook.display import plots
from dnnbook.records import records
from dnnbook.studies.findings.nss import KNOWN, by_selector
from dnnbook.studies.findings.synthesis import of_each_paper
from dnnbook.words import span
from dnnlib import custom, files

plots.style()
place = tempfile.TemporaryDirectory()
work = Path(place.name)
photos_folder = folders.save_photos(load("mnist_small", limit=400), work / "photos")
weights = work / "w.safetensors"
files.save_tensors(weights, training.trained("lenet5", "mnist_small", seed=0).state_dict())
model = custom.load_model("lenet5", weights, channels=1, size=28, classes=10)
photos = custom.read_photos(photos_folder, model)

# %% tags=["remove-input"] mystnb={"figure": {"caption": "What `rank --by gini` puts first of 400 handwritten digits, for a LeNet-5: rank and score (DeepGini's impurity of the softmax vector), and the file. The folder is the true digit.", "name": "fig-own-rank", "classes": "bitmap"}}
table = custom.rank(model, photos, "gini", top=16)
plots.sheet(custom.first(table, photos, limit=16))
plt.show()

# %% tags=["remove-input"] mystnb={"figure": {"caption": "What `fuzz --by dlfuzz --l2 2` makes of 40 of them: an image, the nearest failing input that was found, and the difference, ten times as strong. Beside it stands the class that the network gives it; gray is no change.", "name": "fig-own-fuzz", "classes": "bitmap"}}
how = custom.Options(by="dlfuzz", l2=2.0, iterations=20, labels="folders", limit=40, seed=0)
found = custom.fuzz(model, photos, work / "failures", how)
parts = custom.pictures(found, photos, work / "failures")
plots.sheet(parts) if parts else plots.nothing()
plt.show()

# %% [markdown]
# ## Which method when
#
# Find your situation in the first column. The numbers in the last column are computed from the
# {term}`records <record>` of the other chapters. Whenever this book is made, each reason with
# numbers is checked against these records again.

# %% tags=["remove-input", "records"]
CELL = ["dataset", "model"]
rates = records.frame("nss/fault_detection", recipe="nss", candidates="random").query("quantity == 'fdr'")
faults = by_selector(rates, *CELL, "rate").groupby([*CELL, "rate"]).mean()
first, fifth = (faults.xs(rate, level="rate") for rate in (5, 20))
kinds = records.frame("nss/diversity", recipe="nss", candidates="random").query(
    "quantity == 'area'").groupby("method")["value"].mean()
near = of_each_paper(records.frame("deepsensor_sensitivity/test_errors").query(
    "quantity == 'error_rate' and bound == 2 and dataset == 'mnist'"))
photographs = records.frame("deepsensor_sensitivity/your_own_model", dataset="imagenet")
photographs = 100 * photographs[photographs["quantity"] == "broken"].groupby("method")["value"].mean()

# %% tags=["remove-input", "statements"]
gini, known, known_first = fifth["gini"] / fifth["random"], fifth[KNOWN] / fifth["gini"], first[KNOWN] / first["gini"]
to_label = [
    (f"| You have unlabelled images, and can label a few | `rank --by gini` | Among the first fifth, it finds {span(gini, 1)} "
     "times as many faults as random order, for one pass of the network. |\n", gini.min() > 1.5),
    ("| You have only the outputs of a network, from any framework | `rank --outputs probs.npy --by gini` "
     "| It needs nothing but the softmax vectors. |\n"),
    ("| You can label a few images, and want many kinds of fault among them | `rank --by ats` "
     f"| The kinds of fault that it finds cover {kinds['ats']:.0f} % of the possible area. DeepGini's cover "
     f"{kinds['gini']:.0f} %, and those of random order {kinds['random']:.0f} %. |\n",
     kinds["ats"] == kinds.max() and kinds["gini"] > kinds["random"]),
    ("| You have changed copies of images and the unchanged images too, and can label very few | `NSS` in Python, with "
     "`originals` | If it knows the original of each copy, it finds, among the first twentieth, "
     f"{span(known_first, 1)} times as many faults as DeepGini. Among the first fifth, it is {span(known, 1)} times as many: "
     "there, use either. |\n", known_first.min() > 1 and known.max() < 1.2)]

# %% tags=["remove-input", "statements"]
says(
    "| Your situation | Use | Because |\n|---|---|---|\n", *to_label,
    ("| You have images that the network gets right, and want failing inputs near them | `fuzz --by dlfuzz --l2 2` "
     f"| Within that distance on MNIST, {near['dlfuzz']:.0f} % of its examples are errors with its paper's settings. For the "
     f"swarm, it is {near['deepsensor']:.1f} %. It also breaks {photographs['dlfuzz']:.0f} of 100 photographs. |\n",
     near["dlfuzz"] == near.max() and photographs["dlfuzz"] == photographs.max()),
    ("| You want the same, but your model gives no gradients (ONNX, TorchScript) | `fuzz --by noise` "
     "| Such a file gives outputs only. The other fuzzers need its gradients or its layers; noise needs neither. |\n"),
    ("| You have a result, and doubt it | `--by gini,random`, `--by noise` "
     "| A method is worth its cost only if it beats chance on *your* data. |\n"))

# %% [markdown]
# The records come from small networks for images, and from one network for ImageNet. If you know the
# classes of some images, put them into a folder for each class. Then `dnnlib compare` tells you which
# methods are worth their {term}`passes <pass>` on *your* network, or that no method surely is:
#
# ```text
# dnnlib compare --model torchvision:resnet18 --classes 10 --weights w.pth --images labelled --by all
# ```
#
# If you have no such images, label a few: the first exercise of
# [the chapter on ranking](../nss/08_your_own_model.ipynb) shows how to spend the labels.
#
# ## Go on
#
# - [Which of your images should be labelled first?](../nss/08_your_own_model.ipynb) You go from a folder
#   to the command and its table, and test whether it finds faults.
# - [Which small changes does your model get
#   wrong?](../deepsensor_sensitivity/12_your_own_model.ipynb) You see when a saved file really fails, and
#   four methods side by side.
# - [All ways to bring your own network](../../book/own_model.md): from code, torchvision, timm, TorchScript
#   or ONNX. The page also says how images become tensors, and how to continue a run that was interrupted.
# - [Which method works on which network](../../book/matrix.md): we tried every pair.
# - [How large a set may be](../../book/scales.md): memory and time for many images and many classes.
