# %% [markdown]
# # How does fragility fall as certainty grows?
#
# **The claim** (PEACEPACT IV.B, Tables IV and V). The less a network distinguishes the classes of an input, the more
# often a small patch changes its prediction. The paper calls this relation monotone, non-linear and inverse, with
# {term}`PD` as the measure. An exponential fits it with {term}`correlations <correlation>` of 0.97 and 0.98 on four
# datasets.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "net1_peacepact"  # as Table II draws Net-1; reading: net1 or net2 of NSATP
seed = 0  # of the training, and of all else that is random
trials = 100  # M, patched copies of each image
split = "test"  # reading: test (as NSATP), or train (PEACEPACT III.A names the training set)
patch = "random"  # reading: random, invert or evolved
recipe = "nsatp"  # nsatp: plain gradient descent; nsatp_momentum, for CIFAR
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import numpy as np
import torch

from dnnbook import published, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.fragility_plots import decays
from dnnbook.display.tables import wide
from dnnbook.records import evidence, records
from dnnbook.studies import vulnerability
from dnnbook.studies.findings.peacepact import by_split
from dnnbook.words import listed, rounded_down, rounded_up
from dnnlib import inference
from dnnlib.measures import fragility, uncertainty

plots.style()
run = Experiment("peacepact/correlation", profile, dataset=dataset, model_name=model_name, seed=seed,
                 trials=trials, split=split, patch=patch, recipe=recipe)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("peacepact-correlation")

# %% tags=["hide-input", "statements"]
CELL = ["model", "dataset"]
rows = records.frame("peacepact/correlation", trials=100, patch="random", split="test", recipe="nsatp")
rows = rows[rows["model"].isin(["net1_peacepact", "net1"])]
means = rows[rows["fit"].isin(["loglinear", "curve"])].groupby(["fit", "points", "quantity", *CELL])["value"].mean()
slope, single = (means["loglinear", "examples", quantity] for quantity in ("b", "correlation"))
bins, curve = means["loglinear", "bins", "correlation"], means["curve", "examples", "correlation"]
rising = rows[rows["quantity"] == "rising_steps"].groupby(CELL)["value"].mean()
clearly = rows[rows["quantity"] == "rising_clearly"]["value"].astype(float)
says(
    ("**The answer.** Eff falls as PD grows, in the mean over the seeds, with PEACEPACT's Net-1 and with NSATP's, on each "
     "dataset that was run.", (slope < 0).all()),
    ("For single inputs the fit is weaker than claimed: its correlation, in the mean over the seeds, is at most "
     f"{rounded_up(max(single.max(), curve.max()), 2)}, and the paper prints 0.97.", max(single.max(), curve.max()) < 0.97),
    ("What counts as a point decides: through averages over intervals of PD, the same fit correlates at no less than "
     f"{rounded_down(bins.min(), 2)}.", (single < bins).all() and bins.min() > 0.9))

# %% [markdown]
# **What you will learn.** How to separate three claims that hide in this one: that the relation falls, that it is
# monotone, and that it is exponential.
#
# Tables IV and V have the numbers that NSATP prints for its Net-1, although PEACEPACT draws Net-1
# with a third pool and a third dense layer. We use the network that PEACEPACT draws; NSATP's Net-1
# is a {term}`reading`.
#
# ```{figure} ../../book/assets/peacepact_workflow.svg
# :alt: From top to bottom. A trained network C and a set S of candidates are ready before. Step 1 puts S into C, which gives a probability vector for each candidate. Step 2 says from the vector how vulnerable a candidate is: the smaller PD, the more. Step 3 sorts, most vulnerable first, which gives the ranked list. In broken lines below: step 4, not part of the method, tries them in this order to find adversaries.
# :width: 416px
# :name: fig-peacepact-workflow
#
# The three steps of PEACEPACT, drawn after Fig. 2 and III.B of the paper. This chapter asks about
# the second step: does PD say how vulnerable a {term}`candidate` is?
# ```

# %%
data = load(dataset, split, limit=profile_limit(profile) or 10_000)  # the size of a test set
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
accuracy = inference.accuracy(model, data.images, data.labels)
print(data, f"accuracy {accuracy:.3f}", sep="\n")

# %% [markdown]
# ## Falling, monotone, exponential?
#
# For an input $s$ with softmax vector $p$, the class distinguishability distance is
# $\Delta(p) = \mathrm{PD}(p)$ and the vulnerability is estimated by {term}`Eff`, $\mathrm{Eff}(s)$:
# the share of the $M$ patched copies that get another class. With $p'$ sorted in descending order,
#
# $$\mathrm{PD}(p) = \sum_{i=1}^{n-1} \frac{p'_i - p'_{i+1}}{i} .$$

# %%
measured = vulnerability.measure(model, data, patch=patch, trials=trials, seed=seed)
eff = measured.success.double().mean(1).numpy()
p = measured.probabilities.double().sort(dim=1, descending=True).values  # p'
my_delta = ((p[:, :-1] - p[:, 1:]) / torch.arange(1, p.shape[1])).sum(1)

# %%
delta = compared(my_delta, uncertainty.probability_difference(measured.probabilities),
                 "uncertainty.probability_difference").numpy()

# %% [markdown]
# How we count each part of the claim:
#
# - *Falling*: the exponent $b$ of the fit is negative.
# - *Monotone*: the mean Eff goes down from each interval of $\Delta$ to the next. We count the
#   steps that go up, and those that go up by more than chance. That is because the means of two intervals
#   with few inputs easily change places. The {term}`rank correlation` of the means is -1 if every
#   step goes down.
# - *Non-linear*: an exponential through Eff of all inputs (the table's `curve`) correlates better with them
#   than a straight line does.
# - *Exponential*: the fit correlates with the inputs. PEACEPACT does not say how it fits. We fit as
#   [NSATP](../nsatp/02_noise_sensitivity) describes it, a line through $\ln$ Eff of the inputs that ever
#   change (`loglinear`); `curve` is the other reading.

# %%
centres, means_of_intervals = fragility.binned(delta, eff)  # of twenty, those that are not empty
going_up = np.diff(means_of_intervals) > 0
fit = fragility.fit_exponential(delta, eff)  # a line through ln Eff of the inputs that ever change

# %%
steps = fragility.steps(delta, eff) | {"rising_steps": float(going_up.mean())}
run.add(fragility.fit_readings(delta, eff), distance="pd")
run.add({what: getattr(fit, what) for what in ("a", "b", "correlation")}, distance="pd", points="examples", fit="loglinear")
run.add(steps, distance="pd")

# %% tags=["hide-input"]
print(f"mean Eff {eff.mean():.4f}; {steps['rising_steps']:.0%} of the steps between intervals go up, "
      f"{steps['rising_clearly']:.0%} by more than chance; "
      f"rank correlation of the means {steps['rank_correlation_means']:.2f}")

# %% tags=["hide-input"]
run.add({"accuracy": accuracy, "mean_eff": eff.mean()})
run.save(data, device=device)
wide(run.live, "fit.notna()", index=["points", "fit"], columns="quantity", digits=2)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Eff against PD for the run above: every input, the mean of each of twenty intervals, and the two least-squares exponentials.", "name": "fig-peacepact-live"}}
decays({"pd": delta}, eff, {"pd": fit})
run.show()

# %% [markdown]
# ## Tables IV and V, beside the paper's
#
# The points are inputs, as the text has it, and a straight line is fitted to $\ln$ Eff, as in NSATP.
# "Ours" are results on whole test sets, given as mean [least, greatest] over the seeds. PEACEPACT's own Net-1
# stands beside the printed numbers. NSATP's Net-1 stands below them.

# %% tags=["hide-input"]
ON = ["model", "dataset", "quantity"]
TEXT = "fit == 'loglinear' and points == 'examples' and quantity "
PAPER = {"trials": 100, "patch": "random", "split": "test", "recipe": "nsatp"}
run.beside(published.table("peacepact", 4), TEXT + "in ('a', 'b')", on=ON, **PAPER)

# %% tags=["hide-input"]
run.beside(published.table("peacepact", 5), TEXT + "== 'correlation'", on=ON, **PAPER)

# %% [markdown]
# The same fits to the means of twenty intervals give:

# %% tags=["hide-input"]
run.beside(published.table("peacepact", 5), TEXT.replace("examples", "bins") + "== 'correlation'", on=ON, **PAPER)

# %% [markdown]
# ## Monotone and non-linear, at paper scale
#
# For every network and dataset that was run, the table gives means over the seeds. It has the share of the
# steps that rise, and that rise by more than chance. Then come the rank correlation of the averages, and by
# how much the correlation of the exponential exceeds that of the line. The accuracy stands beside them.

# %% tags=["hide-input"]
wide(run.recorded("quantity in ('rising_steps', 'rising_clearly', 'rank_correlation_means', 'accuracy') "
                  "or (quantity == 'beyond_line' and points == 'examples')", trials=100, patch="random"),
     index=["model", "dataset", "split", "recipe"], columns="quantity", digits=2)

# %% [markdown]
# ## Verdict
#
# The same rules are applied to two readings: NSATP's Net-1, whose numbers the paper prints, and the
# training images, which III.A names as candidates.

# %% tags=["hide-input"]
run.verdicts({"with NSATP's Net-1": {"model": "net1"}, "on training images": {"split": "train"}})

# %% tags=["hide-input", "statements"]
beyond = evidence.by_seed(rows, "quantity == 'beyond_line' and points == 'examples'", *CELL)
unsure = [dataset for dataset, *_ in evidence.cells_that("open", "peacepact-nonlinear")]
says(
    ("**What it means.** An average over many inputs follows a smooth curve. It hides how far single inputs lie from this "
     "curve.", (single < bins).all()),
    ("*Monotone:* in no run does a step from one interval of PD to the next go up by more than chance. This alone does not "
     f"prove that none goes up: in the means over the seeds, {100 * rising.min():.0f} to {100 * rising.max():.0f} % do. The "
     f"verdict is *{evidence.state('peacepact-monotone')}*.", (clearly == 0).all()),
    ("*Non-linear:* in every run, an exponential through Eff of all inputs correlates better with them than a straight line "
     f"does. The verdict is *{evidence.state('peacepact-nonlinear')}*.", (beyond > 0).all()),
    *([(f"On {listed(unsure)} the interval of this lead over the seeds includes zero.",
        (beyond["net1_peacepact"].groupby("dataset").min() > 0)[unsure].all())] if len(unsure) else []))

# %% tags=["hide-input", "statements"]
known = records.frame("peacepact/correlation", trials=100, patch="random", recipe="nsatp", model="net1_peacepact")
read_right, broken = by_split(known, "accuracy"), by_split(known, "mean_eff")
apart, changed = (read_right["train"] - read_right["test"]).abs(), (broken["train"] / broken["test"] - 1).abs()
reached, weak = evidence.reached(known.query("split == 'test'"))
says(
    ("*Training images as candidates:* its own Net-1 hardly knows them better, with a mean accuracy at most "
     f"{rounded_up(100 * apart.max(), 1)} points from that on the test images. They break about as often: the mean Eff differs by at "
     f"most {rounded_up(100 * changed.max())} %.", apart.max() < 0.03 and changed.max() < 0.25),
    f"The test accuracy of this network is {reached}.", weak)

# %% tags=["hide-input", "statements"]
learned = rows[rows["quantity"] == "accuracy"].groupby(CELL)["value"].mean().xs("cifar100", level="dataset")
steep = slope.xs("cifar100", level="dataset").abs()
weakest = rows.query("quantity == 'b' and fit == 'loglinear' and points == 'examples' and dataset == 'cifar100'")
says(
    (f"On CIFAR-100 it learned next to nothing: it gets {100 * learned['net1_peacepact']:.1f} % right, where guessing gets 1 %. "
     f"The fitted exponents, {-steep['net1_peacepact']:,.0f} in the mean, compare with nothing that the paper prints.",
     learned["net1_peacepact"] < 0.05 and steep["net1_peacepact"] > 100 * steep.drop("net1_peacepact").max()),
    ("They are negative with every seed, but so far apart that the mean may be on either side of zero. So the verdict on the "
     f"fall is *{evidence.state('peacepact-falling')}*.", (weakest["value"] < 0).all()
     and evidence.state("peacepact-falling") == "mostly"),
    (f"NSATP's Net-1, trained alike, gets {100 * learned['net1']:.1f} % right. It has a pool and a dense layer less.",
     learned["net1"] > 2 * learned["net1_peacepact"]))

# %% [markdown]
# ## Exercises
#
# **1. Think.** The paper's candidates are the training set (III.A). You might expect that these images
# break less often, because the network was fitted to them. The last sentences above compare them with
# the test images. When would training images break less often?
#
# ```{admonition} Solution
# :class: dropdown
# A network that was trained for longer can fit its training images much better than other images. It is
# then surer of them, and fewer of them have a small PD. Here the network is about as accurate on both.
# ```
#
# **2. Code.** Fit $\mathrm{Eff} = a e^{b\,\mathrm{PD}}$ without a fitting library: take logarithms,
# then fit a straight line by least squares. Write `my_b(x, y)`. The cell says whether it is right.

# %%
my_b = None  # your function of two tensors (N,), the second positive

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def slope(x, y):
        return torch.linalg.lstsq(torch.stack([x, torch.ones_like(x)], 1), y.log()[:, None])[0][0, 0]

    x = torch.tensor([0.1, 0.4, 0.6, 0.9])
    check(answer, slope, (x, torch.exp(-3 * x)), (x, torch.tensor([0.5, 0.1, 0.2, 0.01])))


is_right(my_b)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_b(x, y):
#     far = x - x.mean()
#     return (far * y.log()).sum() / (far ** 2).sum()
#
# is_right(my_b)
# ~~~
#
# In logarithms, 0.01 is as far from 0.1 as 0.1 is from 1. So small values have more influence than in
# a fit to Eff itself, and zeros have none.
# ```
