# %% [markdown]
# # Does retraining on the examples make a network robust?
#
# **The claim** (DeepSensor IV.D, Fig. 4). Retrain a network on 500 benign images and one generated
# example of each. With DeepSensor's examples, the success rate of the attack PGD falls further than with
# the examples of any other {term}`fuzzer`, and the {term}`CLEVER` score rises further, by up to 0.2. The
# accuracy on benign images barely changes.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 30  # benign inputs, each with one generated example; the paper has 500
population = 5  # particles to an input; the second paper on DeepSensor has 100
iterations = 20  # of every fuzzer
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
epochs = 20  # of the retraining
learning_rate = 0.01  # of the retraining; the paper has none
attacked_inputs = 20  # test images that PGD attacks
attack_steps = 20  # of PGD; 100 is the attack's default
random_starts = 1  # of PGD, as its authors have it; reading: 0, it starts at the image
eps = 0.3  # of PGD, in L-infinity; 0.5 on ImageNet
small_eps = 0.1  # a second one, since 0.3 may turn everything; 8/255 is common on colour images
clever_inputs = 2  # test images whose CLEVER scores are averaged
clever_batches = 2  # N_b of CLEVER, 500 in the paper
clever_samples = 32  # N_s of CLEVER, 1,024 in the paper
clever_fit = "maximum"  # of few batches; the records fit a Weibull distribution, `ibm`, as CLEVER does
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.campaign_plots import fuzzer_bars
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, clever
from dnnbook.studies.findings.deepsensor import mean_of, seeds_of
from dnnbook.training import retraining
from dnnbook.words import listed, rounded_up, shown, span
from dnnlib import fuzzing, inference, robustness

plots.style()
run = Experiment("deepsensor_sensitivity/robustness", profile, dataset=dataset,
                 model_name=model_name, recipe=recipe, seed=seed, swarm="paper", budget="none",
                 inputs=inputs, population=population, iterations=iterations, others=others,
                 references=references, held_out=held_out, epochs=epochs,
                 learning_rate=learning_rate, attacked_inputs=attacked_inputs, attack_steps=attack_steps,
                 random_starts=random_starts, eps=eps, small_eps=small_eps,
                 clever_inputs=clever_inputs, clever_batches=clever_batches,
                 clever_samples=clever_samples, clever_fit=clever_fit)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-asr")

# %% tags=["hide-input", "statements"]
CELL, FUZZERS = ["dataset", "model", "seed"], ["deepsensor", "deepxplore", "dlfuzz", "deephunter"]
every = records.frame("deepsensor_sensitivity/robustness")
counted = at_best(every, *CELL)
large, small = (seeds_of(counted, "model", "fuzzer", quantity="asr_gain", attack=attack).unstack("fuzzer")
                for attack in ("pgd", "pgd, small"))
falls, open_to_gain = small["deepsensor"], large.drop(index="lenet1")
says((f"**The answer.** In part. After retraining on DeepSensor's examples, PGD at the larger eps succeeds "
      f"{span(open_to_gain['deepsensor'], 1)} points less often with {listed(open_to_gain.index.unique('model'))}, in every "
      "run. With LeNet-1 it succeeded on every image, and mostly still does.", open_to_gain["deepsensor"].min() > 0
      and large.loc["lenet1", "deepsensor"].median() == 0),
     (f"At the smaller eps it succeeds less often in {(falls > 0).sum()} of {len(falls)} runs, by {falls.mean():.1f} points "
      "in the mean.", (falls > 0).mean() > 0.8))

# %% tags=["hide-input", "statements"]
each, controls = evidence.spread(falls), pd.concat([large, small])[["benign", "noise"]]
first = falls > small[FUZZERS[1:]].max(axis=1)
says((f"In {first.sum()} of the {len(first)} runs, DeepSensor's examples bring more than those of every other fuzzer.", first.mean() > 0.5),
     (f"More training alone, on benign images or noise, brings at most {rounded_up(controls.max(axis=None), 1)} points.",
      controls.max(axis=None) < falls.mean() / 2),
     ("But three random seeds decide little: the interval of the mean gain includes zero with "
      f"{listed(each.index[each['low'] <= 0])}.", (each["low"] <= 0).any()))

# %% [markdown]
# ## In one picture
#
# Look at whether a bar is above zero, and above the bars of the two controls: benign images, and noise.
# The lines go from the least to the greatest seed. Whether a lead is more than chance is tested below, with
# the seeds in pairs.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 4 (a) from the records: points of the success rate of PGD, at both sizes, that retraining takes away. Each rival in its best setting; mean over the random seeds, lines give the range.", "name": "fig-deepsensor-robustness-asr"}}
kept = run.recorded()
plots.nothing() if kept.empty else fuzzer_bars(
    at_best(kept, "dataset", "model").query("quantity == 'asr_gain'").drop(columns="swarm"),
    group=["dataset", "model", "attack"], ylabel="decrease in ASR (points)")
run.show(recorded=True)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 4 (b) from the records: what retraining adds to the L2 CLEVER score. Each rival in its best setting; mean over the random seeds, lines give the range.", "name": "fig-deepsensor-robustness-clever"}}
plots.nothing() if kept.empty else fuzzer_bars(
    at_best(kept, "dataset", "model").query("quantity == 'clever_gain'").drop(columns="swarm"),
    group=["dataset", "model"], ylabel="increase in CLEVER (L2)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** Two measures of robustness, one by attack and one without. Why retraining needs a
# control that adds no generated example, and what you cannot learn from an attack that always succeeds.
#
# ## Two measures
#
# The attack success rate is $\mathrm{ASR} = n_\mathrm{adv} / n_\mathrm{total}$, the share of images that
# are misclassified after an attack. It depends on the attack. CLEVER asks for a distance below which no
# attack can succeed. Let $g = f_c - f_j$ be the lead of class $c$ over class $j$, and let $L$ be the
# largest norm of its gradient in a ball around $x_0$. Then no perturbation that is shorter than
# $g(x_0) / L$ changes $c$ into $j$. The score is the smallest of these numbers over all $j$; $L$ is
# estimated from samples. [The chapter on CLEVER](../deepsensor_excitable/05_clever) does this in a few
# lines of code, for a network of one pixel.
#
# For a linear network the gradient is the same everywhere, so the score is exact. With $f = (2x_1, 0)$
# and $x_0 = (0.5, 0)$ the boundary is half a unit away:

# %% tags=["nbval-check-output"]
linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 2, bias=False))
linear[1].weight.data = torch.tensor([[2.0, 0.0], [0.0, 0.0]])
point = torch.tensor([0.5, 0.0]).view(1, 1, 1, 2)
score = clever.clever(linear, point, radius=2.0, batches=2, samples=8, pool=None, fit="maximum")
print(f"margin {score.margins[0, 1].item():.1f}, L {score.lipschitz[0, 1].item():.1f}, "
      f"CLEVER {score.untargeted.item():.1f}")

# %% [markdown]
# ## Inputs, and images for testing
#
# The inputs are test images that the network classifies correctly, in a random order. We attack the images
# that come after them, so that no network is tested on what it was retrained on.

# %% tags=["hide-input"]
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
right = studies.benign(model, data.images, data.labels, seed=seed)
chosen, unseen = right.tensor_split([inputs])
x, labels = data.images[chosen], data.labels[chosen]
print(data)
print(f"{len(x)} inputs, {len(unseen)} other images that the network gets right")

# %% [markdown]
# ## Generating and retraining
#
# The last examples, as many as there are inputs, get the true labels of their inputs. The network is trained on
# with the inputs and these examples alone; it does not see the training set again. The paper gives 20 epochs
# and batches of 32. The rest is ours: the learning rate, which stays the same throughout, and a momentum of 0.9.
# The control `benign` adds the inputs a second time, and `noise` adds them with Gaussian noise. What these two
# gain is not due to any guidance.

# %% tags=["hide-input"]
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)

# %%
known = studies.known_images(dataset, data, chosen, references)
rivals = studies.rivals(oracles, known, best=(data.images, data.labels),
                        count=held_out)
fuzzers = {FuzzerKey("deepsensor"): fuzzing.Swarm.paper(population=population), **rivals,
           FuzzerKey("noise"): fuzzing.fuzzer("noise")}
found = studies.campaigns(model, x, labels, fuzzers, iterations=iterations, seed=seed)

# %%
examples = {key: (campaign.images, campaign.labels[campaign.origin[-1]])
            for key, campaign in found.items()}
examples[FuzzerKey("benign")] = (x, labels)
steps = replace(retraining.RECIPE, learning_rate=learning_rate, epochs=epochs)
BEFORE = FuzzerKey(retraining.BEFORE)
models = {BEFORE: model} | retraining.retrained(
    model, replace(data, images=x, labels=labels), examples, steps, seed=seed)

# %% [markdown]
# ## Attacks and scores
#
# PGD starts at a random point, as its authors have it. The paper gives its eps, but neither the norm nor the
# number of steps. In the L-infinity norm, an eps of 0.3 changes a pixel by up to a third of its range. This
# usually changes the class of nearly every image. So we also run a smaller eps.
#
# CLEVER as the paper sets it needs $500 \times 1{,}024$ points around each image, and a gradient for every
# class at each of them. The paper states neither the radius nor the images. Here CLEVER takes
# `clever_batches` × `clever_samples` points in the {term}`L2 <L2 distance>` ball of radius 2 around each of
# `clever_inputs` images, with {term}`logits <logit>` for $f$. At paper scale these are 10 images with
# $10 \times 256$ points, which takes minutes instead of hours. The largest gradient among so few points is
# below the true maximum. So $L$ is the right end of a Weibull distribution that is fitted to the maxima of
# the batches, as in CLEVER's own paper (`clever_fit`). Where no such distribution fits, $L$ is the largest of
# these maxima.
#
# Every network sees the same points. All networks get the images right, except for a network that
# retraining left with less than half of the images right: its score is 0.

# %%
rest = data.images[unseen], data.labels[unseen]
outside = torch.ones(len(data.labels), dtype=torch.bool)
outside[chosen] = False  # all that retraining has not seen, right before it or not
attacks = {name: robustness.PGD(eps=size, eps_step=size / 3, iterations=attack_steps,
                                random_starts=random_starts)
           for name, size in (("pgd", eps), ("pgd, small", small_eps))}
success = {attack: {name: 100 * robustness.attack_success_rate(
    each, rest[0][:attacked_inputs], rest[1][:attacked_inputs], options, seed=seed).rate("all")
    for name, each in models.items()} for attack, options in attacks.items()}

# %%
able = {name: each for name, each in models.items() if inference.accuracy(each, *rest) > 0.5}
common = rest[0][retraining.all_right(able.values(), *rest)][:clever_inputs]
estimates = {name: clever.clever(each, common, radius=2.0, batches=clever_batches,  # the engine: many
                                 samples=clever_samples, pool=None, fit=clever_fit,  # gradients for L
                                 seed=seed) for name, each in able.items()}


def least(estimate):
    """CLEVER (N,): the least g(x_0) / L over all other classes, and at most the ball's radius."""
    ratios = estimate.margins / estimate.lipschitz
    ratios = ratios.scatter(1, estimate.predicted[:, None], torch.inf)  # not over c itself
    return ratios.amin(1).clamp(max=2.0)


my_scores = torch.stack([least(estimate) for estimate in estimates.values()])
engine = torch.stack([estimate.untargeted for estimate in estimates.values()])
scores = dict(zip(estimates, compared(my_scores, engine, "clever", of="networks")))

# %% tags=["hide-input"]
table = pd.DataFrame(success)
table["clever"] = {name: scores[name].mean().item() if name in scores else 0.0
                   for name in models}
table["accuracy"] = {name: 100 * inference.accuracy(each, *rest) for name, each in models.items()}
table["accuracy_unseen"] = {
    name: 100 * inference.accuracy(each, data.images[outside], data.labels[outside])
    for name, each in models.items()}
print(f"CLEVER of {len(common)} images; accuracy on those that the network got right before, and on all unseen")
headed(table.round({"pgd": 1, "pgd, small": 1, "clever": 3, "accuracy": 1, "accuracy_unseen": 1}))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 4 for the run above: points of attack success rate that retraining takes away (left, PGD at two sizes). Right: what it adds to the L2 CLEVER score (right).", "name": "fig-deepsensor-robustness"}}
change = headed(table.drop(BEFORE) - table.loc[BEFORE])
figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
(-change.iloc[:, :2]).plot.barh(ax=axes[0], xlabel="decrease in ASR (points)")
change.iloc[:, 2].plot.barh(ax=axes[1], xlabel="increase in CLEVER (L2)")
run.show()

# %% [markdown]
# ## Who leads
#
# The tables show by how much DeepSensor's decrease in ASR, and its increase in CLEVER, exceed those of the
# best baseline. The baselines run in the paper's setting or at their best ([chosen by test
# errors](02_test_errors)).

# %% tags=["hide-input"]
for column, values in table.items():
    attack = {"attack": column} if column in attacks else {}
    quantity = "asr" if attack else column
    for key, value in values.items():
        run.add({quantity: value}, **attack, **key.columns)
    gains = retraining.gains(values, before=BEFORE, falls=bool(attack))
    for key, value in gains.items():
        run.add({f"{quantity}_gain": value}, **attack, **key.columns)
    if not column.startswith("accuracy"):
        for setting in ("paper", "best") if held_out else ("paper",):
            against = [key for key in rivals if key.setting == setting]
            lead = (retraining.success_lead(values, FuzzerKey("deepsensor"), against, before=BEFORE) if attack else
                    retraining.lead(gains, FuzzerKey("deepsensor"), against))
            run.add({f"{quantity}_lead": lead}, **attack, setting=setting)
run.save(data, device=device)
wide(run.live, "quantity in ('asr_lead', 'clever_lead')", index=["quantity", "attack", "setting"],
     digits=3)

# %% [markdown]
# ## Over all records
#
# ASR is in percent, CLEVER is an L2 distance, and accuracy is in percent; all are means over the random
# seeds. Fig. 4 prints no numbers to compare them with.

# %% tags=["hide-input", "statements"]
FITS = {"ibm": "a fitted Weibull distribution", "maximum": "the largest gradient, without a fit"}
says(f"Our records cover {sizes(every)}, with as many examples as inputs. The rivals ran "
     f"{of_rivals(at_best(every[every['fuzzer'].isin(FUZZERS[1:])], *CELL))}. CLEVER uses "
     f"{' or '.join(FITS[fit] for fit in every['clever_fit'].unique())}.")

# %% tags=["hide-input"]
ours = run.recorded("quantity in ('asr', 'clever', 'accuracy', 'accuracy_unseen')")
wide(ours.assign(measure=ours["attack"].fillna(ours["quantity"])), digits=3,
     index=["dataset", "model", "fuzzer", "setting"], columns="measure")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** Read the two controls first: if `benign` or `noise` gains as much as a fuzzer, the
# gain comes from longer training, or from any noise. Where PGD succeeds on every image before and after,
# no fuzzer can lead; then the smaller eps shows what the larger one hides. A CLEVER score also rises when
# the leads of the classes grow more than the gradients do, and that is not always robustness. An example
# that no person could name, with the label of its input, teaches the network to ignore what it sees.

# %% tags=["hide-input", "statements"]
score = seeds_of(counted, "model", "fuzzer", quantity="clever_gain").unstack("fuzzer")
worse = [name for name in FUZZERS if max(found[name].mean() for found in (small, score)) < 0]
accuracy = mean_of(counted, "fuzzer", quantity="accuracy_unseen")[["before", *FUZZERS]]
says(f"At the smaller eps, the gain by DeepSensor's examples is {span(falls, 1)} points in single runs, and in CLEVER "
     f"{span(score['deepsensor'], 2)}. CLEVER rises in {(score['deepsensor'] > 0).sum()} of {len(score)} runs.",
     *([f"The examples of {listed(worse)}, labelled as their inputs are, make the networks worse by both measures "
        "on average."] if worse else []),
     ("Retraining also costs accuracy. Of all unseen images the networks get "
      f"{accuracy['before']:.1f} % right before it in the mean, and "
      f"{accuracy['deepsensor']:.1f} % after DeepSensor's examples"
      + (f", {accuracy.min():.1f} % after {shown(accuracy.idxmin())}'s." if accuracy.idxmin() != "deepsensor"
         else ", the least of all fuzzers."), accuracy["deepsensor"] < accuracy["before"] - 0.5))

# %% [markdown]
# ## Exercises
#
# **1. Think.** All logits of a network are multiplied by ten. What happens to its ASR under PGD, to
# its CLEVER score on logits, and to CLEVER on probabilities?
#
# ```{admonition} Solution
# :class: dropdown
# The classes stay the same, so every image that fools one of the networks fools the other. But PGD may not
# find these images any more: if the loss saturates, PGD loses its gradient, and ASR falls although nothing
# became more robust. On logits, $g$ and $L$ both grow tenfold, and the score stays the same. Probabilities
# are not proportional to the logits, so on them the score changes.
# ```
#
# **2. Think.** Why does the chapter attack images that no example was made from?
#
# ```{admonition} Solution
# :class: dropdown
# The retrained networks have seen the inputs, with their labels, for twenty epochs. Attacking these
# would measure how well the networks learnt 500 images by heart. The paper does not say which images it
# attacks.
# ```
#
# **3. Code.** Write `my_asr(labels, before, after)`: the success rate of an attack. This is the
# share, among the images that the network got right, of those that the attack fools. The cell says whether it is right.

# %%
my_asr = None  # your function of three tensors (N,) of classes

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def asr(labels, before, after):
        right = before == labels
        return (after[right] != labels[right]).double().mean()

    classes = torch.tensor([1, 2, 3, 4])
    check(answer, asr, (classes, torch.tensor([1, 2, 3, 9]), torch.tensor([1, 5, 5, 9])),
          (classes, classes, classes))


is_right(my_asr)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_asr(labels, before, after):
#     right = before == labels
#     return float((right & (after != labels)).sum() / right.sum())
#
# is_right(my_asr)
# ~~~
#
# In this share, images that were wrong before the attack count neither as successes nor as images. The ASR of
# this chapter, `rate("all")`, is the paper's: there they count as both.
# ```
