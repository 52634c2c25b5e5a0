# %% [markdown]
# # How much does a CLEVER score depend on its settings?
#
# **The question.** Both papers measure robustness by the {term}`CLEVER` score, and give two of its settings: 500
# batches of 1,024 points (DeepSensor I, IV.D; DeepSensor II, 6.2). They do not give the size of the ball, how points
# are drawn in it and the largest gradient is estimated from them, or what is differentiated. Would another answer
# give another score?

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
clever_inputs = 3  # test images whose CLEVER scores are averaged
clever_batches = 4  # N_b of CLEVER, 500 in the paper
clever_samples = 32  # N_s of CLEVER, 1,024 in the paper
many_batches = 20  # N_b of the printed setting, 500 in the paper
many_samples = 64  # N_s of the printed setting, 1,024 in the paper
pool = 128  # points that all batches share, where they do: ten times N_s in the records
printed = 1  # images that are scored with all points of the printed setting as well
radius = 2.0  # of the L2 ball; the paper has none
large_radius = 10.0  # of the authors' code, as a setting of its own
deepfool_steps = 100  # at most; 100 is the attack's default
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import pandas as pd
import torch

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.tables import wide
from dnnbook.records import records
from dnnbook.studies import clever
from dnnbook.studies.findings.deepsensor import mean_of, seeds_of
from dnnbook.words import listed, rounded_down, rounded_up, shown, span
from dnnlib import robustness

plots.style()
run = Experiment("deepsensor_excitable/clever_settings", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, clever_inputs=clever_inputs, clever_batches=clever_batches,
                 clever_samples=clever_samples, many_batches=many_batches, many_samples=many_samples, pool=pool,
                 printed=printed, radius=radius, large_radius=large_radius, deepfool_steps=deepfool_steps)

# %% tags=["hide-input", "statements"]
recorded = records.existing("deepsensor_excitable/clever_settings")
OURS, CODE, RADIUS = "as in our records", "authors' code", 2
scored = seeds_of(recorded, "choice", quantity="clever").unstack("seed")
wrong = mean_of(recorded, "choice", quantity="above_way")
times = scored.drop([OURS, "DeepFool"]) / scored.loc[OURS]
says((f"**The answer.** Yes. If probabilities are differentiated, the mean score is at least "
      f"{rounded_down(times.loc['probabilities'].min(), 1)} times ours. In a large ball it is at most {rounded_up(times.loc['large ball'].max(), 2)} times.",
      times.loc["probabilities"].min() > 2 and scored.loc["probabilities"].max() == RADIUS
      and times.loc["large ball"].max() < 0.5),
     (f"With probabilities, {wrong['probabilities']:.0f} % of the scores are wrong: DeepFool succeeds nearer to the image. With "
      f"our setting it is {wrong[OURS]:.0f} %.", wrong["probabilities"] > 50 > wrong[OURS]),
     ("Whether points are drawn on the sphere or in the ball does not matter: the mean scores differ by at most "
      f"{rounded_up(100 * (times.loc['sphere'] - 1).abs().max(), 2)} %.", (times.loc["sphere"] - 1).abs().max() < 0.02))

# %% [markdown]
# ## In one picture
#
# Each line is one setting, with one thing changed; only *authors' code* changes several. The dot is the mean score. A
# score claims that no attack succeeds nearer than that. The last line is the distance at which an attack, DeepFool,
# did succeed. So a dot to the right of the last one is wrong for at least one image. The lines show the range over
# the random seeds.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "CLEVER scores of the same images with one setting changed (authors' code: several), and the distance at which DeepFool succeeds, from the records. Mean over the random seeds; lines give the range.", "name": "fig-clever-settings-records"}}
def scores_by_setting(rows: pd.DataFrame) -> None:
    """The mean score of every setting, and DeepFool's distance."""
    plots.dots(rows[rows["quantity"] == "clever"], row="choice", panel=["dataset", "model"], xlabel="L2 distance")


kept = run.recorded()
plots.nothing() if kept.empty else scores_by_setting(kept)
run.show(recorded=True)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import quiz

shares = {f"{share:.1%} of the radius": abs(share - 0.5 ** (1 / 784)) for share in (0.5, 0.9, 0.999)}
quiz("Points are spread evenly over a ball in 784 dimensions. How far from the middle does the nearer half of them end?",
     {name: off == min(shares.values()) for name, off in shares.items()},
     "A ball of half the radius has a share of 1/2^784 of the volume. So nearly all points lie just below the "
     "surface, and a ball and its sphere are nearly the same place to draw from.")

# %% [markdown]
# **What you will learn.** Which settings of an estimate matter, and how an attack bounds the score from above, so
# that a score that is too large cannot hide.

# %% [markdown]
# ## The settings
#
# For an image of class $c$, the score is the smallest $g(x_0) / L$ over the other classes $j$, where $g = f_c - f_j$
# and $L$ is the largest norm of its gradient in a ball around $x_0$
# ([the chapter before](05_clever)). The first line is the setting of our records. Each line below but *authors' code*
# changes one thing:
#
# - *sphere*: all points lie at the radius, not evenly in the ball.
# - *IBM's points*: their distances are even in $[0, R]$, as in the code of CLEVER's authors. So many points are
#   close to the image.
# - *largest gradient*: $L$ is the largest gradient that was seen, and no distribution is fitted to the maxima of the
#   batches.
# - *ART's fit*: the distribution is fitted as in the toolbox that DeepSensor's authors use.
# - *large ball*: $R$ is 10, as in the code of DeepSensor's authors, and not 2.
# - *probabilities*: $f$ is what the softmax gives, as in that code, and not the {term}`logits
#   <logit>`.
# - *printed, from a pool*: 500 batches of 1,024 points, drawn again and again from 10,240 points, as in the toolbox.
# - *authors' code*: as in the code of DeepSensor's authors, the large ball, probabilities, ART's fit and the pool
#   together.
# - *printed*: 500 batches of 1,024 points, all drawn anew: half a million gradients for one image. So only few images
#   have this line.

# %%
ours = {"radius": radius, "batches": clever_batches, "samples": clever_samples, "pool": None, "fit": "ibm"}
many = ours | {"batches": many_batches, "samples": many_samples}
choices = {"as in our records": ours,
           "sphere": ours | {"sampling": "sphere"},
           "IBM's points": ours | {"sampling": "ibm"},
           "largest gradient": ours | {"fit": "maximum"},
           "ART's fit": ours | {"fit": "art"},
           "large ball": ours | {"radius": large_radius},
           "probabilities": ours | {"output": "probabilities"},
           "printed, from a pool": many | {"pool": pool},
           "authors' code": many | {"pool": pool, "fit": "art", "radius": large_radius,
                                    "output": "probabilities"}}

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:clever_inputs]
x, labels = data.images[chosen], data.labels[chosen]
print(data)

# %% [markdown]
# All settings score the same images. Those with as many points also draw them in the same directions.

# %%
found = {name: clever.clever(model, x, seed=seed, **options) for name, options in choices.items()}
found["printed"] = clever.clever(model, x[:printed], seed=seed, **many)

# %%
attack = robustness.DeepFool(iterations=deepfool_steps, overshoot=0.02)
reached = robustness.attack_success_rate(model, x, labels, attack, seed=seed)
way = (reached.images - x).flatten(1).norm(dim=1).double().where(reached.fooled, torch.nan)

# %% [markdown]
# ## Scores
#
# The table has, for each setting,
#
# - the mean score;
# - for how many percent of the images it is *above* the distance of DeepFool's example, and so wrong;
# - the mean over the first `printed` images alone, which the line *printed* can be compared with;
# - for how many percent of the classes a distribution could be fitted;
# - the rank correlation with the scores of our setting: 1 if the images come in the same order.

# %%
for name, each in found.items():
    score = each.untargeted
    others = torch.ones_like(each.fitted).scatter(1, each.predicted[:, None], False)
    run.add({"clever_first": score[:printed].mean(),
             "above_way": 100 * (score > way[:len(score)]).double().mean(),
             "fitted": 100 * each.fitted[others].double().mean()}, choice=name)

# %% [markdown]
# The mean and the order need the scores of all images:

# %%
whole = {name: each.untargeted for name, each in found.items() if len(each.untargeted) == len(x)}
ranks = {name: pd.Series(score).rank() for name, score in whole.items()}
for name, score in whole.items():
    run.add({"clever": score.mean()}, choice=name)
    if len(score.unique()) > 1:  # else there is no order
        run.add({"same_order": ranks["as in our records"].corr(ranks[name])}, choice=name)
run.add({"clever": way.nanmean(), "clever_first": way[:printed].nanmean()}, choice="DeepFool")

# %% tags=["hide-input"]
run.save(data, device=device)
QUANTITIES = ["clever", "above_way", "clever_first", "fitted", "same_order"]
wide(run.live, index="choice", columns="quantity", order={"quantity": QUANTITIES}, digits=3)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "CLEVER scores of the same images with one setting changed, and the distance at which DeepFool succeeds, in the run above.", "name": "fig-clever-settings"}}
scores_by_setting(run.live)
run.show()

# %% [markdown]
# ## Over all records
#
# Means over the random seeds:

# %% tags=["hide-input"]
wide(run.recorded(), index=["dataset", "model", "choice"], columns="quantity",
     order={"quantity": QUANTITIES}, digits=3)

# %% [markdown]
# ## What it means
#
# Compare each line with *as in our records*: the images and the networks are the same.

# %% tags=["hide-input", "statements"]
cells, seeds = recorded[["dataset", "model"]].drop_duplicates().to_numpy(), recorded["seed"].nunique()
says(f"Our records cover {listed(f'{shown(model)} on {shown(dataset)}' for dataset, model in cells)}: "
     f"{recorded['images'].max():.0f} images, {seeds} random seed{'s' * (seeds > 1)}. Our setting gives a mean score "
     f"of {span(scored.loc[OURS], 2)}. DeepFool succeeds at a mean distance of {span(scored.loc['DeepFool'], 2)}.")
says("A score is cut at the radius, so with probabilities its ratio to ours is a lower bound. A likely reason is that "
     "probabilities hardly change near an image of which the network is sure, so the gradients are tiny.",
     (f"All choices of the authors' code together give a mean score of {scored.loc[CODE].min():.2f} with one seed and "
      f"{scored.loc[CODE].max():.2f} with the other, which has another network and other images.",
      scored.loc[CODE].max() > 2 * scored.loc[CODE].min() and len(scored.loc[CODE]) == 2))

# %% tags=["hide-input", "statements"]
first = seeds_of(recorded, "choice", quantity="clever_first").unstack("seed")
printed_over, order = first.loc["printed"] / first.loc[OURS], mean_of(recorded, "choice", quantity="same_order").drop(OURS)
says(f"With the printed numbers we scored {recorded['printed'].max() * seeds:.0f} images in all. Their scores are "
     f"{span(printed_over, 2)} times those with our setting. "
     + ("So fewer points gave scores that are too large." if (printed_over < 0.98).all() else
        "So more points change these scores, but not in one direction."),
     (f"*The order of the images* changes too: its rank correlation with ours falls to {order.min():.2f} on average, with "
      f"*{order.idxmin()}*. So compare networks by scores of one setting only.", order.min() < 0.8))

# %% [markdown]
# ## Exercises
#
# **1. Think.** With our fit of a distribution, no score is larger than with the largest gradient seen. Why?
#
# ```{admonition} Solution
# :class: dropdown
# The fit estimates the right end of the distribution of the maxima. That end is at or beyond the largest of them. So
# $L$ grows, and $g(x_0) / L$ falls.
# ```
#
# **2. Try.** Score one image with 10, 100 and 1,000 points and `fit="maximum"`. Does the score settle?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for count in (10, 100, 1000):
#     each = clever.clever(model, x[:1], radius=radius, batches=1, samples=count, pool=None, fit="maximum", seed=seed)
#     print(count, each.untargeted.item())
# ~~~
#
# More points can only find a larger gradient, if they contain the points before. So the score can only fall. Look at
# how much it still falls from 100 to 1,000 points: as long as it falls, it is not yet what it claims to be.
# ```
#
# **3. Think.** Two networks get the same score, one from logits and one from probabilities. Are they equally robust?
#
# ```{admonition} Solution
# :class: dropdown
# Nobody can say. Where a network is sure of its class, the probabilities hardly change around the image, so their
# gradients there are small. But the gradients elsewhere in the ball can be large. Compare networks by scores of one
# kind only.
# ```
#
# **4. Code.** Write `my_score(margins, lipschitz, radius)`: the score of an image from the leads $g$ of its class over
# the other classes and the largest gradient norms $L$ (two lists), capped at the radius. The cell says whether it is
# right.

# %%
my_score = None  # your function of two lists of numbers and a number

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda margins, lipschitz, radius: min(radius, *(g / L for g, L in zip(margins, lipschitz))),
          ([1.0, 3.0], [2.0, 2.0], 2.0), ([8.0, 9.0], [2.0, 1.0], 2.0), ([4.0], [8.0], 1.0))


is_right(my_score)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_score(margins, lipschitz, radius):
#     return min([radius] + [g / L for g, L in zip(margins, lipschitz)])
#
# is_right(my_score)
# ~~~
#
# The cap is needed because no gradient beyond the radius was looked at.
# ```
