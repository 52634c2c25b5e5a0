# %% [markdown]
# # Which small changes does your model get wrong?
#
# You have a classifier and images. Which small changes of these images does it get wrong? The fuzzers
# that this part compares answer that for any PyTorch model, by the command `dnnlib fuzz` or by a few
# lines of Python.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # a name from `dnnlib models`, trained here; with imagenet, mobilenet
methods = "dlfuzz,deepxplore,deepsensor"  # names of fuzzers, with commas; noise stands beside them
l2 = 2.0  # a bound on the L2 distance of an example from its input; 2 on ImageNet
iterations = 20  # inputs made of each benign image
population = 20  # particles to an input; the second paper on DeepSensor has 100
inputs = 100  # benign images to start from
seed = 0  # of the training, and of all else that is random
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from dnnbook import training
from dnnbook.chapters import folders
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots, whose
from dnnbook.display.tables import headed
from dnnbook.records import records
from dnnlib import checks, custom, files, inference
from dnnlib.custom.comparing_picture import figure
from dnnlib.custom.worth import fuzzers_table

plots.style()
run = Experiment("deepsensor_sensitivity/your_own_model", profile, dataset=dataset,
                 model_name=model_name, methods=methods, seed=seed, l2=l2,
                 iterations=iterations, population=population, inputs=inputs)

place = tempfile.TemporaryDirectory()
work = Path(place.name)
data = load(dataset, limit=profile_limit(profile))
if dataset == "imagenet":
    photos_folder = files.data_dir() / "imagenet" / "val"
    weights = files.data_dir() / "weights" / "mobilenet_v1_0.75_224.safetensors"
    options = {"width": 0.75}
else:
    photos_folder = folders.save_photos(data, work / "photos")
    weights = work / "w.safetensors"
    trained = training.trained(model_name, dataset, seed=seed, device=device)
    files.save_tensors(weights, trained.state_dict())
    options = {"channels": data.shape[0], "size": data.shape[1], "classes": len(data.classes)}
first, *_ = checks.words(methods, "methods")

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

asked = records.frame("deepsensor_sensitivity/your_own_model", dataset="imagenet")
if len(asked):
    asked = 100 * asked[asked["quantity"] == "broken"].groupby("method")["value"].mean()
    asked = asked.rename({"sensitivity": "deepsensor"})
    display(quiz("Photographs, and an L2 distance that hardly anyone sees: which method breaks most images?",
                 {"DLFuzz, which follows a gradient": asked["dlfuzz"] == asked.max(),
                  "DeepSensor's swarm": asked["deepsensor"] == asked.max(),
                  "noise": asked["noise"] == asked.max()},
                 f"DLFuzz breaks {asked['dlfuzz']:.0f} %, the swarm {asked['deepsensor']:.0f} % and noise "
                 f"{asked['noise']:.0f} % of the images."))

# %% tags=["hide-input", "statements"]
kept = records.frame("deepsensor_sensitivity/your_own_model", dataset="imagenet")
broken = 100 * kept[kept["quantity"] == "broken"].groupby("method")["value"].mean().rename(
    {"sensitivity": "deepsensor"})
says((f"**The answer.** Begin with `dlfuzz`: within an L2 distance of {kept['l2'].max():g}, it found a failing input for "
      f"{broken['dlfuzz']:.0f} % of the photographs. The other fuzzers found one for few of them, although DeepXplore "
      "follows a gradient, too.", broken["dlfuzz"] > 50 and broken.drop("dlfuzz").max() < 10),
     ("The swarm of sensitive neurons found no more than noise did.", broken["deepsensor"] <= broken["noise"]))

# %% [markdown]
# **What you will learn.** How a folder of images becomes failing inputs, as files that you can keep as tests.
# What it takes that a file really fails, and which fuzzer to begin with.
#
# ## In Python
#
# The model, the images, the search. The images are PNG files, in a folder for each class.

# %%
model = custom.load_model(model_name, weights, **options).to(inference.device(device))
photos = custom.read_photos(photos_folder, model)
found = custom.fuzz(model, photos, work / "failures", by=first, l2=l2, iterations=iterations,
                    labels="folders", limit=inputs, seed=seed)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Images and their nearest failing inputs by the first method, with the class that the network gives them. In the lower row, gray is no change.", "name": "fig-deepsensor-own-sheet", "classes": "bitmap"}}
parts = custom.pictures(found, photos, work / "failures")
plots.sheet(parts) if parts else plots.nothing()
run.show()

# %% tags=["hide-input"]
outcomes = found.inputs["outcome"].value_counts()
tried, fail = outcomes.get("broken", 0) + outcomes.get("held", 0), outcomes.get("broken", 0)
says(f"Of {tried} images that the network gets right, {fail} have a failing input within an L2 "
     f"distance of {l2:g}. Each failing input is a row of a table, and a file:")
headed(found.failures.head(6))

# %% [markdown]
# That the files fail can be checked without this library's help: open one, and ask the network.

# %% tags=["hide-input"]
files_fail = []
for case in found.failures.itertuples():
    pixels = np.asarray(Image.open(work / "failures" / case.file).convert(
        "L" if photos.images.shape[1] == 1 else "RGB"), dtype=np.float32) / 255
    x = photos.images.new_tensor(pixels).reshape(1, *pixels.shape[:2], -1).permute(0, 3, 1, 2)
    given = inference.predict(model, x).argmax(1).item()
    files_fail.append(sorted({p.split("/")[0] for p in photos.paths})[given] != case.label)
print(f"{sum(files_fail)} of {len(files_fail)} files fail")

# %% [markdown]
# ## Which method is worth its cost?
#
# Images with small noise of the same length cost one pass each, and some of them fail too. So a fuzzer
# is worth its passes if it breaks more images than noise that may use as many. The command `dnnlib
# compare --fuzz`, or one call in Python, tries each from the same images, at the same distance. Its random
# numbers are others, and it judges images before they are rounded to files, so its shares can differ by several
# points from those above.

# %%
compared = custom.compare(model, photos, "gini", fuzz=methods, l2=l2, iterations=iterations,
                          population=population, limit=inputs, seed=seed)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Images that each fuzzer breaks within the distance, with intervals of 95 % over the images, beside noise.", "name": "fig-deepsensor-own-compared"}}
whose.signed(figure(replace(compared, selectors=compared.selectors[:0])), str(run))

# %% tags=["hide-input"]
OLDER = {"deepsensor": "sensitivity"}  # its name in older records
for row in compared.fuzzers.to_dict("records"):
    run.add({"broken": row["broken"] / 100, "low": row["low"] / 100, "high": row["high"] / 100,
             "noise_passes": row["noise_passes"] / 100, "passes": row["passes"]},
            method=OLDER.get(row["fuzzer"], row["fuzzer"]))
run.add({"broken": compared.fuzzers["noise"].iloc[0] / 100}, method="noise")  # as many examples
run.save(data, device=device)


says(compared.sentences[1])
headed(fuzzers_table(compared.fuzzers).drop(columns="seconds"))

# %% [markdown]
# ## What the command needs
#
# **A model, its weights and a folder of images**, as [`dnnlib rank` does](../nss/08_your_own_model). The
# model is a Python file with a function that returns a `torch.nn.Module`, weights in a safetensors file, and
# images in sub-folders or not.
#
# ```text
# dnnlib fuzz --model my_model.py:build --weights w.safetensors --images photos \
#             --by deepsensor --l2 2 --iterations 20 --out failures
# ```
#
# **A method**, `--by`: `deepsensor` is the swarm of sensitive neurons, `noise` tells what chance does.
# `dlfuzz` and `deepxplore` (on one model) follow gradients; `deephunter` needs a folder of training images,
# `--reference`. `--layers` chooses the layers whose neurons count; `dnnlib layers` lists them.
#
# **A distance**, `--l2` or `--linf` or both, from the image that an input was made from; the tables
# call that image its *input*. Pixels are in [0, 1]. Without a bound, an input may look like nothing
# at all, and its label means nothing.
#
# **What is right.** `--labels folders` takes the sub-folders, in order of name, as the model's
# classes. Images that the model gets wrong to begin with are then dropped, and listed. The default
# takes the model's own prediction for the image, for images that nobody has labelled: an error is
# then a changed prediction. The table says which of the two it was.

# %% [markdown]
# ## The command
#
# Run as you would run it, with the first of the methods. Only the progress bar over the images,
# with the time left, is left out.

# %% tags=["hide-input"]
if dataset != "imagenet":
    print(folders.command(work, "fuzz", {
        "model": model_name, "weights": "w.safetensors", "images": "photos", "by": first, "l2": l2,
        "iterations": iterations, "labels": "folders", "limit": inputs, "seed": seed,
        "out": "failures", **options}))

# %% [markdown]
# Of each image and each wrong class, the folder holds the nearest failing input that was found.
# `failures.csv` has a row for each of them, `inputs.csv` one for each image of your folder, and
# `sheet.png` shows some.
#
# **What it takes that a file fails.** A fuzzer works with numbers, a PNG file has 256 levels.
# Rounding moves each pixel by up to 1/510, which may undo an error, or lead out of the distance
# that you chose. So the rounded image is judged. If rounding takes it beyond the distance, the pixels
# that were rounded up the most are rounded down instead. The wrong class must lead by 0.0001 in
# probability: this is more than rounding errors inside the network amount to.
#
# **If it is interrupted**, the same command goes on where it was. Images are fuzzed in blocks of
# `--block`. Which images are in a block is fixed before the first, and a block's random numbers
# depend on the random seed and its place alone. So nothing is lost or done twice, and the files are
# those of a run that nobody interrupted. A folder holds one run: with other options, other weights
# or other images the command refuses to go on in it, and says what differs.

# %% [markdown]
# ## A network that others trained, on photographs
#
# The same cells, run with
#
# ```text
# dnnbook run deepsensor_sensitivity/12 -p dataset imagenet -p model_name mobilenet \
#                                       -p population 5 -p profile paper
# ```
#
# MobileNet of width 0.75 with Keras's weights, on photographs of ImageNet, one of a class. The
# photographs are not ours to print.

# %% tags=["hide-input"]
ours = run.recorded(dataset="imagenet")
if ours.empty:
    print("no records yet")
else:
    means = ours.pivot_table(index="method", columns="quantity", values="value")
    shares = 100 * means[["broken", "low", "high", "noise_passes"]]
    rows = shares.assign(noise=shares.loc["noise", "broken"], passes=means["passes"], seconds=0)
    rows = rows.drop("noise").rename({old: name for name, old in OLDER.items()})
    table = fuzzers_table(rows.rename_axis("fuzzer").reset_index())
    display(headed(table.drop(columns="seconds")))

# %% [markdown]
# ## Readings
#
# The command has one reading of each fuzzer, that of its paper where there is a choice. DeepXplore runs on
# one model, since you may have no second one for the same task. DLFuzz and DeepXplore share what their images
# cover. The originals take one image after the other, here a block runs at once, and which images it holds
# can matter: DLFuzz raises the neurons that are active most often, and in a block of few images of one class
# these may speak for the class. So blocks are dealt at random, and hold 32 images unless you say otherwise; a
# swarm's, which share nothing, hold 4.
#
# **What it means.** To test a model of your own, begin with `dlfuzz`. The swarm needs no gradient, but
# the fuzzer that you compare it with is then `noise`.

# %% tags=["hide-input", "statements"]
free = records.frame("deepsensor_sensitivity/test_errors").query(
    "quantity == 'error_rate' and budget == 'none' and model == 'mobilenet'")
far, unguided = (free[free["swarm"] == name]["value"] for name in ("paper", "constant"))
says(f"The photographs were {kept['limit'].max()}, and the network was MobileNet, of width {0.75}.",
     f"There were {kept['population'].max()} particles in the swarm, {kept['iterations'].max()} iterations and "
     f"{kept['seed'].nunique()} random seed{'s' * (kept['seed'].nunique() > 1)}.",
     ("Without a bound, [the chapter on test errors](02_test_errors) has errors everywhere with this network. But the "
      "swarm does not find them: a constant fitness has as many.", min(far.min(), unguided.min()) == 100))

# %% [markdown]
# ## Exercises
#
# **1. Think.** You have no labels, and the network is wrong on some of your images. What does a
# failing input of such an image tell?
#
# ```{admonition} Solution
# :class: dropdown
# Only that the prediction changed within the distance: it may even have become right. That the
# decision is not stable is still worth knowing, but before you keep the file as a test with a
# label, look at the image that it was made from. `label_from` is `prediction` in such rows, as a
# reminder.
# ```
#
# **2. Think.** How far does rounding to 256 levels move an image of 28 × 28 pixels, and one of 3 ×
# 224 × 224? By how much would it lengthen a step of L2 length 2?
#
# ```{admonition} Solution
# :class: dropdown
# A pixel's rounding error is about uniform in ±1/510, with a standard deviation of
# $1/(255\sqrt{12}) \approx 0.00113$. Over $n$ pixels its L2 norm is about $0.00113 \sqrt{n}$: 0.03
# for 784 pixels, 0.44 for 150,528. As it is about orthogonal to the step, the sum has a length of
# $\sqrt{4 + 0.001}$, hardly more than 2, or $\sqrt{4 + 0.19} \approx 2.05$, outside the distance.
# So with a photograph, a step that ends at the bound is too long after rounding, and some pixels'
# steps must be shortened.
# ```
#
# **3. Code.** Write `my_file(x)`: the values that an image has after it was written to a PNG file
# with 256 levels and read again. The cell says whether it is right.

# %%
my_file = None  # your function of an array with values in [0, 1]

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda x: np.asarray(Image.fromarray(
        (255 * x).round().astype(np.uint8))) / 255, (np.linspace(0, 1, 12).reshape(3, 4),))


is_right(my_file)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_file(x):
#     return np.round(x * 255) / 255
#
# is_right(my_file)
# ~~~
#
# What fails is what can be kept: a file, and not the numbers it was made from.
# ```
