# %% [markdown]
# # Are uncertain inputs fragile?
#
# **The claim** (NSATP RQ1, IV.D.1, Figs. 5 and 6, Tables III and IV). The more decided a network is about
# an image, the less often a small random patch changes its prediction. This share of the patches is
# called {term}`Eff`. It falls *exponentially*, NSATP says, and the fit has a {term}`correlation` above 0.95 on
# every dataset, network and measure.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "net2"  # net1, net2, or another of `dnnlib models`
seed = 0  # of the training, and of all else that is random
trials = 100  # M, patched copies of each image
patch = "random"  # reading: random, invert or evolved
recipe = "nsatp"  # nsatp: plain gradient descent; nsatp_momentum, for CIFAR
beside = ""  # one more distance: a selector that scores, of the package or your own: FILE.py:CLASS; '' for none
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import pandas as pd
import torch

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.fragility_plots import decays, recorded_decays, scatter
from dnnbook.display.tables import headed, wide
from dnnbook.records import records
from dnnbook.studies import vulnerability
from dnnbook.studies.findings import nsatp as findings
from dnnbook.words import out_of, rounded_down, rounded_up, shown
from dnnlib import inference
from dnnlib.measures import fragility, uncertainty

plots.style()
run = Experiment("nsatp/rq1", profile, dataset=dataset, model_name=model_name, seed=seed,
                 trials=trials, patch=patch, recipe=recipe, beside=beside)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("nsatp-rq1-exponential")

# %% tags=["hide-input", "statements"]
rows = records.frame("nsatp/rq1", trials=100, patch="random", recipe="nsatp")
slope, single, bins = (findings.fit(rows, *of) for of in (("b",), ("correlation",), ("correlation", "bins")))
curve, orders = findings.fit(rows, "correlation", fitted="curve"), findings.rank_correlations(rows)
printed = published.table("nsatp", 4).set_index(findings.CELL)["value"].unstack("distance")
apart = (bins - printed)["pd"].dropna().abs()
says(
    ("**The answer.** Yes: by PD and by PV, the more decided a network is, the less often a small patch changes its "
     f"prediction. This is so on each of the {len(slope)} pairs of a network and a dataset that were run.",
     (slope[["pd", "pv"]] < 0).all(axis=None) and (orders[["pd", "pv"]] < 0).all(axis=None)),
    ("The claimed strength does not hold for single images: whether an exponential is fitted to Eff or a line to its "
     "logarithm, no correlation reaches the paper's 0.95.",
     (single < 0.95).all(axis=None) and (curve < 0.95).all(axis=None)),
    (f"What counts as a point decides. Between averages over intervals of PD, the correlation is at most {rounded_up(apart.max(), 2)} "
     "from the printed one.", apart.max() < 0.06))

# %% [markdown]
# **In one picture.** Grey shows the images of one {term}`seed`; it is darker where there are more images.
# The dots are the mean Eff in each of twenty intervals. The curves are exponentials, fitted to ln Eff of
# the images that change at all. Each seed has its own colour.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Net-2: Eff of the test images against each distance, from the committed runs, with the fitted curves; NSATP's Fig. 5.", "name": "fig-nsatp-rq1-net2"}}
PAPER = {"trials": 100, "patch": "random", "recipe": "nsatp"}
SHOWN = ("quantity in ('scatter', 'bin') or (fit == 'loglinear' and points == 'examples' "
         "and distance != 'certainty' and quantity in ('a', 'b'))")
recorded_decays(run.recorded(SHOWN, model="net2", **PAPER))
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How to measure the noise sensitivity of an input. How to read from a {term}`softmax
# vector` how decided the network was. And why one fit can have a low or a high correlation on the same data.
#
# ## The network and the images
#
# The embedded default is a small part of MNIST: 5,000 images to train on and 1,000 to test. To use
# a whole dataset of the paper, change one parameter.

# %% tags=["hide-input"]
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
accuracy = inference.accuracy(model, data.images, data.labels)
print(data, f"test accuracy {accuracy:.3f}", sep="\n")

# %% [markdown]
# ## Eff: the noise sensitivity of an image
#
# A patch is a block of 2 x 2 pixels at a random place; how it is coloured is the parameter `patch`. Let
# $x_1, \dots, x_M$ be $M$ patched copies of an image $x$. Let $M_e$ be the number of them that get another class
# than $x$. Then
#
# $$\mathrm{Eff}(x) = M_e / M .$$

# %%
measured = vulnerability.measure(model, data, patch=patch, trials=trials, seed=seed)
my_eff = measured.success.double().mean(1)  # M_e / M, one value an image
eff = compared(my_eff, torch.tensor(fragility.eff(measured.success)), "fragility.eff").numpy()
print(f"{len(eff)} images, {trials} patches each: mean Eff {eff.mean():.4f}; "
      f"{(eff > 0).mean():.1%} of the images change at least once")

# %% [markdown]
# ## PD, PV, PE: how decided is a softmax vector?
#
# Sort the vector in descending order, $p'_1 \ge \dots \ge p'_n$. Then
#
# $$\mathrm{PD} = \sum_{i=1}^{n-1} \frac{p'_i - p'_{i+1}}{i}, \qquad
#   \mathrm{PV} = \sum_{i=1}^{n} (p'_i - \tfrac1n)^2, \qquad
#   \mathrm{PE} = -\sum_{i=1}^{n} p'_i \ln p'_i .$$
#
# The more decided the network is, the larger are {term}`PD` and {term}`PV`, and the smaller is
# {term}`PE`. In code, for many vectors at once, with a row for each:

# %%
def difference(p):
    """PD of softmax vectors (N, n)."""
    p = p.sort(dim=1, descending=True).values  # p'
    i = torch.arange(1, p.shape[1])
    return ((p[:, :-1] - p[:, 1:]) / i).sum(1)


def variance(p):
    """PV of softmax vectors (N, n)."""
    return ((p - 1 / p.shape[1]) ** 2).sum(1)


def entropy(p):
    """PE of softmax vectors (N, n)."""
    return torch.where(p > 0, -p * p.log(), 0).sum(1)  # 0 ln 0 counts as 0


BY_HAND = {"pd": difference, "pv": variance, "pe": entropy}

# %% [markdown]
# We check the code with the example vectors of NSATP:

# %% tags=["nbval-check-output"]
worked = torch.tensor([[0, 0, 0, 0.18, 0.81, 0, 0, 0, 0.01, 0],
                       [0, 0, 0, 0, 0.95, 0.01, 0, 0, 0.01, 0.03]], dtype=torch.float64)
for name, distance in BY_HAND.items():
    print(name, [f"{v:.3f}" for v in distance(worked)])

# %% [markdown]
# ## The fit
#
# NSATP fits $f(x) = a e^{bx}$ by "least squares and variable substitution". That is, it fits a straight line
# to $z = \ln \mathrm{Eff}$. An image that never changes is left out, because 0 has no logarithm.

# %%
p = measured.probabilities.double()
engine = torch.stack([distance(p) for distance in uncertainty.DISTANCES.values()], 1)
mine = compared(torch.stack([distance(p) for distance in BY_HAND.values()], 1), engine,
                "uncertainty.DISTANCES")  # (images, 3)
distances = dict(zip(BY_HAND, mine.T.numpy()))

# %% tags=["hide-input"]
if beside:
    distances.update(studies.one_more_distance(beside, model, data.images,
                                               reference=load(dataset, "train").images[:1000]))

# %%
fits = {name: fragility.fit_exponential(x, eff) for name, x in distances.items()}

# %% tags=["hide-input"]
pd.DataFrame({shown(name): {"a": f"{fit.a:.3f}", "b": f"{fit.b:.2f}",
                             "correlation": f"{fit.correlation:.2f}",
                             "images with Eff > 0": fit.points} for name, fit in fits.items()}).T

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Eff against each distance for the run above: every image, the mean Eff in twenty equal intervals, and two least-squares exponentials. Compare Figs. 5 and 6 of NSATP.", "name": "fig-nsatp-rq1-live"}}
decays(distances, eff, fits)
run.show()

# %% [markdown]
# ## Readings
#
# The text leaves two things open. Are the points single images, or averages over intervals of the
# distance (`bins`)? And are least squares taken of $\ln$ Eff (`loglinear`) or of Eff itself
# (`curve`)? There is also a contradiction. PE as printed is *larger* when the network is less
# decided, so its exponent must be positive. Yet Table III prints falling exponentials, whose
# coefficients on Net-2 are close to those of PD. The simplest quantity that the authors could have meant is
# the entropy, reversed and scaled: $1 - \mathrm{PE}/\ln n$. It is listed as `certainty`. The table of readings is folded.

# %% tags=["hide-input"]
turned = distances | {"certainty": uncertainty.certainty(measured.probabilities).numpy()}
for name, x in turned.items():
    run.add(fragility.fit_readings(x, eff, distance=name))
    if name in fits:  # the text's reading, as fitted above
        run.add({what: getattr(fits[name], what) for what in ("a", "b", "correlation")}, distance=name,
                points="examples", fit="loglinear")

# %% tags=["hide-input", "hide-output"]
wide(run.live, "fit.notna()", index=["points", "fit", "distance"], columns="quantity", digits=2)

# %% [markdown]
# The table also has a straight line through Eff. The shape of the curve says something only where
# the exponential correlates better than the line through the same points.
#
# Spearman's {term}`rank correlation` of Eff with each distance asks the question without any curve:
# do the two orders agree?

# %% tags=["hide-input"]
wide(run.live, "quantity == 'spearman'", index="distance", columns="quantity", digits=3)

# %% [markdown]
# There are also three readings of the patch. It has a random colour (PEACEPACT IV.B; NSATP IV.E only says
# that pixels are chosen at random), inverted pixels (the motivation of both papers), or the patches that
# {term}`differential evolution` tries while it searches for the most harmful one (NSATP IV.B). Here
# are the first images of the same set under each of them:

# %% tags=["hide-input"]
few = load(dataset, limit=100)
certain = uncertainty.probability_difference(inference.predict(model, few.images))
kinds = {}
for kind in vulnerability.PATCHES:
    found = fragility.eff(vulnerability.measure(model, few, patch=kind, trials=trials, seed=seed).success)
    kinds[kind] = {"mean Eff": found.mean(), "images that change": (found > 0).mean(),
                   "rank correlation with PD": fragility.rank_correlation(certain, found)}
pd.DataFrame(kinds).T.round(3)

# %% [markdown]
# At paper scale the run leaves a record. It holds every reading of the fit for this patch, the mean Eff in
# each interval, and the images as a grid. The panels are drawn from these.

# %% tags=["hide-input"]
for name, x in distances.items():
    run.add([{"distance": name, "quantity": "bin", "x": centre, "value": mean}
             for centre, mean in zip(*fragility.binned(x, eff))])
    run.add([scatter(x, eff, distance=name)])
run.add({"mean_eff": eff.mean(), "share_fragile": (eff > 0).mean(), "accuracy": accuracy})
run.save(data, device=device)

# %% [markdown]
# ## Tables III and IV, beside the paper's
#
# "Ours" are the committed runs on whole test sets, given as mean [least, greatest] over their
# seeds. They follow the text: the points are images, and a straight line is fitted to $\ln$ Eff.

# %% tags=["hide-input"]
ON = ["model", "dataset", "distance", "quantity"]
TEXT = "fit == 'loglinear' and points == 'examples' and distance != 'certainty' and quantity "
run.beside(published.table("nsatp", 3), TEXT + "in ('a', 'b')", on=ON, **PAPER).drop(
    columns="seeds").unstack("quantity", sort=False)

# %% [markdown]
# Table IV has the correlations of these fits. We give them twice: where the points are images, and where they are the
# means of twenty intervals (`bins`). Averaging removes the scatter of single images, and comes nearer to the paper:

# %% tags=["hide-input"]
images, averages = (run.beside(published.table("nsatp", 4), TEXT.replace("examples", points) + "== 'correlation'",
                               on=ON, digits=3, **PAPER) for points in ("examples", "bins"))
images.insert(2, "ours, bins", averages["ours"])
images.rename(columns={"ours": "ours, images"})

# %% [markdown]
# How steep are the curves for PD? Here are the slopes beside the printed ones, with the least and the greatest
# test accuracy of the networks:

# %% tags=["hide-input"]
counted = records.frame("nsatp/rq1", **PAPER)
steep = findings.beside_printed(findings.fit(counted, "b")["pd"], published.table("nsatp", 3))
accuracies = findings.accuracies(counted)[["min", "max"]]
headed(steep.round(2).join((100 * accuracies).round(1).add_prefix("accuracy (%), ")))

# %% tags=["hide-input", "statements"]
times = findings.beside_printed(slope["pd"], published.table("nsatp", 3))["ours / paper"].dropna()
says(
    ("For Net-2, our slopes are near the printed ones on MNIST and Fashion-MNIST, and about twice as steep on CIFAR-10.",
     times["net2"][["mnist", "fashion_mnist"]].between(0.8, 1.25).all() and 1.7 < times["net2", "cifar10"] < 2.3),
    (f"On CIFAR-100 they are {times['net2', 'cifar100']:.0f} times as steep.", times["net2", "cifar100"] > 3),
    (f"For Net-1, ours are {times['net1', 'cifar100']:.0f} times as steep on CIFAR-100, and less than half as steep on each "
     "of the other datasets.", times["net1", "cifar100"] > 2 and (times["net1"].drop("cifar100") < 0.5).all()))

# %% [markdown]
# Folded: all networks behind these numbers, their accuracy, and the share of images that ever change.

# %% tags=["hide-input", "hide-output"]
wide(run.recorded("quantity in ('accuracy', 'share_fragile', 'mean_eff')", trials=100, patch="random"),
     index=["model", "dataset", "recipe"], columns="quantity", digits=3)

# %% [markdown]
# ## With and without momentum
#
# The paper names no optimiser, so our networks learn by plain gradient descent. On CIFAR-10 this is
# slow. The recipe `nsatp_momentum` differs in one number only: a momentum of 0.9. Here are the
# correlations of the exponential on CIFAR-10, with both recipes for Net-2 and with plain descent for Net-1,
# for single images and for the means of intervals:

# %% tags=["hide-input"]
wide(run.recorded("fit == 'loglinear' and quantity == 'correlation' and distance != 'certainty'",
                  dataset="cifar10", trials=100, patch="random"),
     index=["model", "recipe"], columns=["points", "distance"], digits=2)

# %% tags=["hide-input", "statements"]
momentum = records.frame("nsatp/rq1", trials=100, patch="random", recipe="nsatp_momentum", model="net2", dataset="cifar10")
learnt, learnt_fast = (findings.accuracies(found)["mean"]["net2", "cifar10"] for found in (rows, momentum))
fast, fast_bins = (findings.fit(momentum, "correlation", points).loc[("net2", "cifar10")] for points in ("examples", "bins"))
slow, slow_bins = (found.loc[("net2", "cifar10")] for found in (single, bins))
says(
    (f"With momentum, Net-2 learns CIFAR-10 better: its mean accuracy rises from {100 * learnt:.1f} % to "
     f"{100 * learnt_fast:.1f} %.", learnt_fast > learnt + 0.02),
    ("The paper's fit then suits single images much better, by every distance: the correlation rises by at least "
     f"{rounded_down((fast - slow).min(), 2)}.", (fast - slow > 0.2).all()))

# %% tags=["hide-input", "statements"]
on_mnist = findings.accuracies(rows)["min"].xs("mnist", level="dataset")
says(
    ("Accuracy alone does not explain it: on MNIST, Net-2 is more accurate still, and its correlations are lower.",
     (single.loc[("net2", "mnist")] < fast).all() and on_mnist.min() > learnt_fast),
    (f"The correlation with the means over intervals moves the other way: for PE it falls from {slow_bins['pe']:.2f} "
     f"to {fast_bins['pe']:.2f}, so below 0.95.",
     slow_bins["pe"] - fast_bins["pe"] > 0.1 and fast_bins["pe"] < 0.95),
    ("Without it, this correlation reaches 0.95 for all three distances in the mean over the seeds.",
     (bins.xs("cifar10", level="dataset") > 0.95).all(axis=None)))

# %% [markdown]
# ## Fig. 6 at paper scale
#
# The figure at the top of the page is the paper's Fig. 5. The folded one is the paper's Fig. 6: the same for Net-1.

# %% tags=["hide-input", "hide-output"] mystnb={"figure": {"caption": "Net-1, from the committed runs: Eff of the test images against each distance, drawn as for Net-2 at the top of the page; NSATP's Fig. 6.", "name": "fig-nsatp-rq1-net1"}}
recorded_decays(run.recorded(SHOWN, model="net1", **PAPER))
run.show(recorded=True)

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% tags=["hide-input", "statements"]
by_seed = findings.by_seed(rows, "correlation", "bins")
says(
    ("**What it means.** By PE, our exponents have the opposite sign of the printed ones: PE as the paper defines it is "
     "larger for less sure networks.", (slope["pe"] > 0).all() and published.table("nsatp", 3).query(
         "quantity == 'b' and distance == 'pe'")["value"].max() < 0),
    (f"Averages over intervals give {bins['pd'].min():.3f} to {bins['pd'].max():.3f} for PD, nearly what the paper prints. "
     "This suggests that it correlated averages.", apart.max() < 0.06))

# %% tags=["hide-input", "statements"]
cifar = ["cifar10", "cifar100"]
rest = bins.drop(cifar, level="dataset")[["pv", "pe"]].stack()
alone = by_seed.drop(cifar, level="dataset").drop("pd", level="distance")
widest = findings.furthest_apart(by_seed)
says(
    (f"They do not explain all of it. On MNIST and Fashion-MNIST, {out_of((rest < 0.95).sum(), len(rest))} correlations of such "
     f"averages, for PV and PE, are below 0.95 in the mean over the seeds, though single seeds reach {alone.max():.2f}.",
     (rest < 0.95).mean() > 0.5 and alone.max() > 0.95),
    (f"One random seed says little: for {shown(widest[2])} with {shown(widest[0])} on {shown(widest[1])}, this correlation "
     f"is {by_seed[widest].min():.2f} with one seed and {by_seed[widest].max():.2f} with another. So only the spread over "
     "the seeds counts ([more about this](../../book/replayed)).",
     by_seed[widest].max() - by_seed[widest].min() > 0.05))

# %% tags=["hide-input", "statements"]
shapes = {fitted: findings.fit(momentum, "correlation", fitted=fitted) for fitted in ("curve", "line")}
most = findings.accuracies(rows)["max"].groupby("dataset").max()
says(("The networks for CIFAR-10, trained with the parameters of the paper's table, classify only about half of the images "
      f"correctly, or fewer. Net-2 gets at most {rounded_up(100 * most['cifar100'])} % of CIFAR-100 right.",
      most["cifar10"] < 0.55 and most["cifar100"] < 0.5))
says(
    ("The correlation depends on how the network was trained. With momentum, that of Net-2 for single images of CIFAR-10 "
     "is much higher, but still below 0.95.", ((slow + 0.2 < fast) & (fast < 0.95)).all()),
    (f"Even then the curve need not be an exponential: one through Eff of all images correlates with them at most {0.01} "
     "better than a straight line does.", ((shapes["curve"] - shapes["line"]) < 0.01).all(axis=None)))

# %% [markdown]
# ## Exercises
#
# **1. Think.** Averaging over intervals raises the correlation. Does it also make a *wrong* curve
# look right? Fit a straight line to the same means and correlate it.
#
# ```{admonition} Solution
# :class: dropdown
# `scipy.stats.linregress(*fragility.binned(distances["pd"], eff)).rvalue` is also negative and far from
# zero. In the table of readings, the straight line through Eff, too, correlates better with the means
# (`bins`) than with the images (`examples`). A high correlation of means is evidence of a trend, but
# only weak evidence of its shape.
# ```
#
# **2. Think.** Images that never change are left out of the fit to $\ln$ Eff. How does that bias
# $b$?
#
# ```{admonition} Solution
# :class: dropdown
# Most images never change, so the fit leaves them out. Among the decided images, those that stay
# are the exceptions. This lifts the right end of the curve, so the fit falls more slowly than the
# truth. The `curve` reading (an exponential through Eff itself) keeps the zeros, and with images as
# points its fit is steeper in the table of readings: compare $b$. This need not be so where half of the
# images change, as with momentum on CIFAR-10.
# ```
#
# **3. Think.** Look at the table of the three patches. What does inverting do to digits on a black
# background that a random gray value does not do?
#
# ```{admonition} Solution
# :class: dropdown
# It turns black into white, which is the largest change that a pixel can have. A random gray value
# changes a black pixel less. In the table, the mean Eff is higher with inverted pixels.
# ```
#
# **4. Code.** PE is small where PD and PV are large. Turn it round and scale it: write
# `my_certainty(p)`, $1 - \mathrm{PE} / \ln n$ of softmax vectors (N, n). The cell says whether it is right.

# %%
my_certainty = None  # your function of a tensor (N, n), giving (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    vectors = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.45, 0.45], [0.0, 0.0, 1.0]])
    check(answer, uncertainty.certainty, (vectors,), (vectors[:, [2, 0, 1]],))


is_right(my_certainty)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_certainty(p):
#     return 1 - torch.special.entr(p).sum(1) / torch.tensor(p.shape[1]).log()
#
# is_right(my_certainty)
# ~~~
#
# It is 0 where all classes are equally likely, and 1 where one class has it all. The order of the
# classes plays no part: the number says how sure the network is, but not which class it is sure of.
# ```
