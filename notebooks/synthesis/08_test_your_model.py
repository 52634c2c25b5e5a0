# %% [markdown]
# # Which inputs break your model?
#
# You have a network and images. Two commands say which of your images to label first, and which small
# changes of them your network gets wrong. This page says when to use which method, and shows what comes
# out. The two chapters that follow go through both commands, step by step.
#
# ```text
# pip install -e .
# dnnlib rank --model torchvision:resnet18 --classes 10 --weights w.pth \
#             --images photos --by gini --top 5%
# dnnlib fuzz --model torchvision:resnet18 --classes 10 --weights w.pth \
#             --images photos --by dlfuzz --l2 2
# ```
#
# The first line is for a clone of this project, and brings PyTorch along. `photos` is a folder of images, with or without sub-folders. `rank` needs no labels. It writes a table
# with a line for each image, and a sheet of pictures. `fuzz` writes the failing inputs as PNG files that
# you can keep as tests.

# %% tags=["remove-input"]
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from dnnlib import custom, files, training
from dnnlib.book import folders, plots, records
from dnnlib.book.statements import says
from dnnlib.data import load

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

# %% tags=["remove-input"] mystnb={"figure": {"caption": "What `fuzz --by dlfuzz --l2 2` makes of 40 of them: an image, the nearest failing input that was found with the class that the network gives it, and the difference, ten times as strong; gray is no change.", "name": "fig-own-fuzz", "classes": "bitmap"}}
how = custom.Options(by="dlfuzz", l2=2.0, iterations=20, labels="folders", limit=40, seed=0)
found = custom.fuzz(model, photos, work / "failures", how)
parts = custom.pictures(found, photos, work / "failures")
plots.sheet(parts) if parts else plots.nothing()
plt.show()

# %% [markdown]
# ## Which method when
#
# The last column is computed from the records of the other chapters, and the choice is checked against
# them whenever this book is made.

# %% tags=["remove-input", "records"]
CELL = ["dataset", "model"]
rates = records.frame("nss/fault_detection", recipe="nss", candidates="random").query(
    "quantity == 'fdr' and rate == 20")
text = rates.query("method == 'nss' and difference == 'l1'")


def mean(rows):
    """Faults among the first fifth, in percent, for each network."""
    return rows.groupby(CELL)["value"].mean()


chance, gini, nss, known = (mean(rows) for rows in (
    rates.query("method == 'random'"), rates.query("method == 'gini'"),
    text.query("pair == 'remutated'"), text.query("pair == 'original'")))
kinds = records.frame("nss/diversity", recipe="nss", candidates="random").query(
    "quantity == 'area'").groupby("method")["value"].mean()
near = records.frame("deepsensor_sensitivity/test_errors").query(
    "quantity == 'error_rate' and bound == 2 and dataset == 'mnist'")
near = near[(near["setting"].fillna("paper") == "paper") | (near["fuzzer"] == "noise")]
near = near[(near["fuzzer"] != "deepsensor") | (near["swarm"] == "paper")]
near = near.groupby("fuzzer")["value"].mean()
photographs = records.frame("deepsensor_sensitivity/your_own_model", dataset="imagenet")
photographs = 100 * photographs[photographs["quantity"] == "broken"].groupby("method")["value"].mean()


def between(values, digits: int = 0) -> str:
    """The least and the greatest of some values."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


# %% tags=["remove-input", "statements"]
says(
    "| You have, and want | Use | Because |\n|---|---|---|\n",
    ("| unlabelled images, and labels for a few | `rank --by gini` "
     f"| It finds {between(gini / chance, 1)} times the faults of random order among the first fifth, "
     "by one pass. |\n", (gini / chance).min() > 1.5),
    ("| only the outputs, from any framework | `rank --outputs probs.npy --by gini` "
     "| It needs nothing but the softmax vectors. |\n"),
    ("| many kinds of fault among a few labels | `rank --by ats` "
     f"| Its kinds of fault cover {kinds['ats']:.0f} % of the possible area, DeepGini's {kinds['gini']:.0f} %, "
     f"those of random order {kinds['random']:.0f} %. |\n",
     kinds["ats"] == kinds.max() and kinds["gini"] > kinds["random"]),
    ("| changed copies of images that you also have unchanged | `NSS` in Python, "
     "with `originals` | Told the original, it finds "
     f"{between(known / nss, 1)} times as many faults as without it, and {between(known / gini, 1)} times "
     "as many as DeepGini. |\n", (known / nss).min() > 1.5),
    ("| images that the network gets right, and want failing ones near them "
     "| `fuzz --by dlfuzz --l2 2` "
     f"| Within that distance {near['dlfuzz']:.0f} % of its examples are errors on MNIST, of the swarm's "
     f"{near['deepsensor']:.1f} %; of 100 photographs it breaks {photographs['dlfuzz']:.0f}. |\n",
     near["dlfuzz"] == near.max() and photographs["dlfuzz"] == photographs.max()),
    ("| the same, but a model without gradients (ONNX, TorchScript) | `fuzz --by noise` "
     f"| The swarm of sensitive neurons needs none either, but breaks {photographs['sensitivity']:.0f} of 100 "
     f"photographs, and noise {photographs['noise']:.0f}. |\n",
     photographs["sensitivity"] <= photographs["noise"]),
    ("| a result, and doubts about it | `--by gini,random`, `--by noise` "
     "| A method is worth its cost only if it beats chance on *your* data. |\n"))

# %% [markdown]
# The records are of small image networks, one ImageNet network among them. If you have images of known
# classes, in a folder for each class, `dnnlib compare` tells which of the methods is worth its passes on
# *your* network, or that none surely is:
#
# ```text
# dnnlib compare --model torchvision:resnet18 --classes 10 --weights w.pth --images labelled --by all
# ```
#
# Without such images, a few labels help: see the first exercise of
# [the chapter on ranking](../nss/08_your_own_model.ipynb).
#
# ## Go on
#
# - [Which of your images should be labelled first?](../nss/08_your_own_model.ipynb) A folder, the command,
#   its table, and a test of whether it finds faults.
# - [Which small changes does your model get
#   wrong?](../deepsensor_sensitivity/12_your_own_model.ipynb) What makes a file really fail, and four
#   methods side by side.
# - [All ways in](../../book/own_model.md): code, torchvision and timm, TorchScript, ONNX; how images become
#   tensors; runs that go on after an interruption.
# - [Which method works on which network](../../book/matrix.md), tried.
# - [How large a set may be](../../book/scales.md): memory and time for many images and many classes.
