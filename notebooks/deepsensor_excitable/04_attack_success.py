# %% [markdown]
# # Does retraining on generated examples stop attacks?
#
# **The claims** (DeepSensor II, 6.2.1, Figs. 4 and 5). Retrain a network on 500 benign images and
# DeepSensor's example of each. The success rate of the attack PGD then falls about 1.6 times as much as with
# any other
# {term}`fuzzer's <fuzzer>` examples. DeepSensor's network is no worse against FGSM, DeepFool, JSMA and PGD than
# one that is retrained on PGD's own examples (PGD-AT), and better against DeepFool and JSMA. In every case the
# success rate falls by more than 70 %.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 60  # benign inputs, each with one generated example; the paper has 500
iterations = 20  # of every fuzzer
population = 5  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value
bounds = "2"  # bounds on the L2 distance of generated examples, beside the paper's: none
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
epochs = 20  # of the retraining
learning_rate = 0.01  # of the retraining; the paper has none
attacked_inputs = 40  # test images under FGSM and PGD; the paper has 1,000 for each attack
slowly_attacked_inputs = 5  # of these, under DeepFool and JSMA, which take some hundred times as long
attack_steps = 10  # of PGD; 100 is the attack's default
random_starts = 1  # of PGD, as its authors have it; reading: 0, it starts at the image
eps = 0.3  # of FGSM and PGD, in L-infinity; 0.5 on ImageNet
small_eps = 0.1  # a second one, since 0.3 may turn everything; 8/255 is common on colour images
deepfool_steps = 10  # at most; 100 is the attack's default
near = 1.0  # DeepFool's success also within this L2 distance
theta = 1.0  # what JSMA adds to a pixel, as in its own paper; 0.1 in the toolbox, which is slower
pixels = 0.145  # JSMA's success also within this share of pixels changed, that of its own paper
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace
from functools import cache

import matplotlib.pyplot as plt
import pandas as pd
import torch

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load
from dnnbook.display import campaign_plots, plots
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey
from dnnbook.studies.findings.deepsensor import rises, table_of
from dnnbook.training import retraining
from dnnbook.words import listed, rounded_down, rounded_up, shown, span
from dnnlib import fuzzing, inference, robustness

plots.style()
run = Experiment("deepsensor_excitable/attack_success", profile, dataset=dataset,
                 model_name=model_name, recipe=recipe, seed=seed, inputs=inputs,
                 iterations=iterations, population=population, points=points, bounds=bounds,
                 others=others, references=references, held_out=held_out, epochs=epochs,
                 learning_rate=learning_rate, attacked_inputs=attacked_inputs,
                 slowly_attacked_inputs=slowly_attacked_inputs, attack_steps=attack_steps,
                 random_starts=random_starts, eps=eps, small_eps=small_eps,
                 deepfool_steps=deepfool_steps, near=near, theta=theta, pixels=pixels)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-asr-pgd-at")

# %% tags=["hide-input", "statements"]
rows = at_best(records.existing("deepsensor_excitable/attack_success"), "dataset", "model")
asr = rows[rows["quantity"] == "asr"]
on_mnist, on_colour = (asr[asr["dataset"] == data] for data in ("mnist", "cifar10"))
SMALLER = {"attack": "pgd, small", "budget": "none"}
smaller = rises(on_mnist, ["excitable", "constant", "sensitive", "pgd_at"], "model", **SMALLER)
of_each, own = smaller.groupby("model").mean(), evidence.spread(smaller["pgd_at"])
rise = evidence.spread(smaller["excitable"])
says((f"**The answer.** No. At a small size, where PGD can fail, retraining on the excitable swarm's examples *raises* its success "
      f"on MNIST with every network and seed, by {span(rise['mean'])} points on average.", smaller["excitable"].min() > 0
      and (of_each["excitable"] > of_each["constant"]).all() and (of_each["constant"] > of_each["sensitive"]).all()),
     (f"The seeds decide it with {evidence.surely_above(rise)}.", rise["low"].max() > 0),
     (f"PGD's own examples raise it by {span(own['mean'])} points, clearly with {evidence.surely_above(own)}.",
      own["mean"].min() > 0 and own["low"].max() > 0))

# %% tags=["hide-input", "statements"]
there = rises(on_colour, ["excitable", "constant"], "model", **SMALLER)
undecided = evidence.spread(there["excitable"])
says((f"On CIFAR-10, the records do not decide: after retraining {listed(undecided.index)} on the swarm's examples, PGD's success is "
      f"{span(undecided['mean'])} points higher on average (interval: {undecided['low'].min():.0f} to {undecided['high'].max():.0f}). It is "
      "the same with the swarm that nothing guides.", (undecided["mean"] > 0).all() and (undecided["low"] < 0).all()
      and (there["excitable"] == there["constant"]).all()))

# %% tags=["hide-input", "statements"]
slow = asr[asr["attack"].isin(["deepfool", "jsma"])]
slow = table_of(slow, ["before", "excitable", "pgd_at"], "model", "attack", budget="none").min(axis=None)
says((f"DeepFool and JSMA succeed on at least {rounded_down(slow)} % of the images, before retraining and after it on the excitable swarm's "
      "examples or PGD's. So they can hardly show a gain, nor that one network is no worse than another.", slow >= 95),
     f"The verdict on a fall by more than {70} points everywhere is "
     f"*{evidence.state('deepsensor-excitable-asr-seventy')}*.")

# %% [markdown]
# ## In one picture
#
# We count each attack twice: at the size that the paper gives it, and at a small size, where PGD can fail.
# Does retraining on DeepSensor's examples take away more than retraining on the controls does? The controls
# are benign images, noise, and the examples of PGD itself.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 4 from the records, examples without a bound: points of PGD's success rate, at both sizes, that retraining takes away. Mean over the random seeds; lines give the range.", "name": "fig-excitable-asr-records"}}
SMALL = {"fgsm": "fgsm, small", "pgd": "pgd, small", "deepfool": "deepfool, small",
         "jsma": "jsma, small"}  # each attack, and what its second count is called
BEFORE, BENIGN, PGD_AT = map(FuzzerKey, (retraining.BEFORE, "benign", "pgd_at"))
kept = run.recorded()
recorded_fall = at_best(kept[kept["quantity"] == "asr_gain"], "dataset", "model")
plots.nothing() if recorded_fall.empty else campaign_plots.fuzzer_bars(
    recorded_fall[(recorded_fall["budget"] == "none") & recorded_fall["attack"].isin(["pgd", SMALL["pgd"]])],
    group=["dataset", "model", "attack"], ylabel="decrease in ASR (points)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** Why two of the four attacks succeed against nearly any network, and what to count
# instead. And what happens to a network that is trained on images of noise with the labels of others.

# %% [markdown]
# ## Attacks with a size, and without
#
# The attack success rate is $\mathrm{ASR} = n_\mathrm{adv} / n_\mathrm{benign}$. We count in $n_\mathrm{adv}$ also
# the images that the network gets wrong without an attack, so lost accuracy raises the rate. FGSM and PGD may change a
# pixel by at most `eps`. DeepFool and JSMA go on until the class changes. An example: a network decides by
# the sum of two pixels, and two images are 0.1 and 0.4 (in L-infinity) away from its boundary.

# %% tags=["nbval-check-output"]
linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 2))
linear[1].weight.data = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
linear[1].bias.data = torch.tensor([1.0, -1.0])
pair = torch.tensor([[0.4, 0.4], [0.1, 0.1]]).view(2, 1, 1, 2)
for name in robustness.ATTACKS:
    options = {"overshoot": 0.02} if name == "deepfool" else {}
    result = robustness.attack_success_rate(linear, pair, torch.tensor([0, 0]),
                                            robustness.attack(name, **options))
    moved = (result.images - pair).flatten(1).norm(dim=1)
    print(f"{name:8} ASR {result.rate('all'):4.0%}, L2 {moved[0]:.2f} and {moved[1]:.2f}")

# %% [markdown]
# PGD starts at a random point, as its authors have it. An attack without a size mostly succeeds against a robust
# network as well; it only has a longer way to go. So we count each attack twice: as in the paper, and as `small`. As
# `small`, FGSM and PGD have `small_eps`. In the records it is not the same on both datasets: do not compare points
# between them. DeepFool then counts only within an {term}`L2 distance` of `near`, and JSMA only while it has changed
# at most 14.5 % of the pixels, which is the limit in its own paper.

# %%
attacks = {"fgsm": robustness.FGSM(eps=eps), SMALL["fgsm"]: robustness.FGSM(eps=small_eps),
           "pgd": robustness.PGD(eps=eps, eps_step=eps / 3, iterations=attack_steps,
                                 random_starts=random_starts),
           SMALL["pgd"]: robustness.PGD(eps=small_eps, eps_step=small_eps / 3,
                                        iterations=attack_steps, random_starts=random_starts),
           "deepfool": robustness.DeepFool(iterations=deepfool_steps, overshoot=0.02),
           "jsma": robustness.JSMA(theta=theta)}

# %% tags=["hide-input"]
limits = {"deepfool": lambda change: change.flatten(1).norm(dim=1) <= near,
          "jsma": lambda change: change.any(1).flatten(1).double().mean(1) <= pixels}

# %% [markdown]
# ## Examples and networks
#
# As in [the first paper's chapter](../deepsensor_sensitivity/07_robustness), the network is trained on with
# the inputs and the last example of each, which has the class of its input, and with nothing else. The
# momentum of 0.9 and the constant learning rate are ours. We attack images that the retraining has not seen.
# There are three controls: `benign` sees the inputs twice, `noise` sees them under Gaussian noise of 0.1, and
# `pgd_at` sees PGD's examples of them. The {term}`swarms <swarm>` are those of [the chapter on test
# errors](01_test_errors), and every fuzzer also runs within the `bounds`.

# %% tags=["hide-input"]
data = load(dataset)
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
right = studies.benign(model, data.images, data.labels, seed=seed)
chosen, unseen = right.tensor_split([inputs])
x, labels = data.images[chosen], data.labels[chosen]
rest = data.images[unseen], data.labels[unseen]
outside = torch.ones(len(data.labels), dtype=torch.bool)
outside[chosen] = False  # all that retraining has not seen, right before it or not
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)

# %%
swarms = studies.swarms(fuzzing.Swarm.paper(population=population), points=points, seed=seed)
known = studies.known_images(dataset, data, chosen, references)
baselines = studies.rivals(oracles, known, best=(data.images, data.labels), count=held_out)

# %% tags=["hide-input"]
print(f"{len(x)} inputs, {min(attacked_inputs, len(unseen))} other images to attack")

# %%
budgets = {"none": None} | studies.bounds(bounds)
found = studies.at_bounds(model, x, labels, swarms | baselines | {FuzzerKey("noise"): fuzzing.Noise()},
                          budgets, iterations=iterations, seed=seed)
by_pgd = robustness.attack_success_rate(model, x, labels, attacks["pgd"], seed=seed).images

# %%
benign = replace(data, images=x, labels=labels)
steps = replace(retraining.RECIPE, learning_rate=learning_rate, epochs=epochs)
controls = {BEFORE: model} | retraining.retrained(
    model, benign, {BENIGN: (x, labels), PGD_AT: (by_pgd, labels)}, steps, seed=seed)
examples = {name: (each.images, each.labels[each.origin[-1]]) for name, each in found.items()}
models = {(budget, key): each for budget in budgets for key, each in controls.items()}
models |= retraining.retrained(model, benign, examples, steps, seed=seed)

# %% tags=["hide-input"]
@cache
def success(model: torch.nn.Module) -> dict[str, float]:
    """ASR in percent of the images, by attack."""
    rates = {}
    for name, options in attacks.items():
        some, true = (part[:slowly_attacked_inputs if name in limits else attacked_inputs] for part in rest)
        if not retraining.all_right([model], some, true).any():  # nothing left to attack
            rates |= {name: 100.0} | ({SMALL[name]: 100.0} if name in limits else {})
            continue
        result = robustness.attack_success_rate(model, some, true, options, seed=seed)
        rates[name] = 100 * result.rate("all")
        if name in limits:
            turned = result.fooled & limits[name](result.images - some)
            rates[SMALL[name]] = 100 * float((~result.correct | turned).double().mean())
    return rates


# %% tags=["hide-input"]
def measure(models: dict) -> pd.DataFrame:
    """Success of the attacks and accuracy, both in percent, a row for each network."""
    return pd.DataFrame({name: success(each)
                         | {"accuracy": 100 * inference.accuracy(each, *rest),
                            "accuracy_unseen": 100 * inference.accuracy(
                                each, data.images[outside], data.labels[outside])}
                         for name, each in models.items()}).T


measured = measure(models).rename_axis(["budget", "network"])
headed(measured.loc["none"].round(1))

# %% [markdown]
# ASR and accuracy are in percent. *Accuracy* alone is that on the images that the network got right before; the other
# one is that on all images that retraining has not seen. The next table shows the same with examples within the last
# of the `bounds`:

# %% tags=["hide-input"]
headed(measured.loc[list(budgets)[-1]].round(1))

# %% [markdown]
# ## What the claims ask for
#
# The *gain* is the number of points of success rate that retraining takes from an attack. The *lead* is
# DeepSensor's gain minus that of the best baseline, or minus that of PGD-AT.

# %% tags=["hide-input"]
for (budget, key), line in measured.iterrows():
    run.add(line[["accuracy", "accuracy_unseen"]].to_dict(), budget=budget, **key.columns)
for attack, values in measured.drop(columns=["accuracy", "accuracy_unseen"]).items():
    for budget in budgets:
        rates = values[budget]
        gains = retraining.gains(rates, before=BEFORE, falls=True)
        about = {"budget": budget, "attack": attack}
        for key, rate in rates.items():
            run.add({"asr": rate} | ({"asr_gain": gains[key]} if key in gains else {}),
                    **about, **key.columns)
        for key in swarms:
            run.add({"asr_lead_pgd_at": retraining.success_lead(
                rates, key, [PGD_AT], before=BEFORE)},
                    **about, **key.columns)
            for setting in ("paper", "best") if held_out else ("paper",):
                against = [rival for rival in baselines if rival.setting == setting]
                run.add({"asr_lead": retraining.success_lead(rates, key, against, before=BEFORE)},
                        **about, **key.columns, setting=setting)
        run.add(studies.outcomes.times(gains, swarms, baselines, "asr_gain_over", **about))
run.save(data, device=device)
LEADS = "quantity in ('asr_lead', 'asr_lead_pgd_at')"
wide(run.live, LEADS, index=["quantity", "attack", "setting"], columns=["budget", "swarm"])

# %% [markdown]
# ## Fig. 4

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 4 for the run above: points of PGD's success rate that retraining takes away. Left: at the paper's size; right: at the small one; for every set of examples and bound on their L2 distance.", "name": "fig-excitable-asr"}}
fall = run.live[run.live["quantity"] == "asr_gain"]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True)
for axis, attack in zip(axes, ("pgd", SMALL["pgd"])):
    campaign_plots.bars_by_bound(axis, fall[fall["attack"] == attack],
                                 f"{shown(attack)}: decrease in ASR (points)")
run.show()

# %% [markdown]
# ## Fig. 5

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 5 for the run above: points of success rate that retraining takes from each attack. As the paper counts it (above) and at the small size (below). Examples without a bound (left), and within the last one.", "name": "fig-excitable-asr-attacks"}}
SHOWN = [*(FuzzerKey("deepsensor", name) for name in ("excitable", "sensitive", "constant")), PGD_AT,
         BENIGN]


def four_attacks(rows: pd.DataFrame) -> plt.Figure:
    """Mean decrease in ASR by attack: the two sizes above each other, bounds abreast."""
    if rows.empty:
        return plots.nothing()
    rows = rows.assign(key=studies.keys(rows))
    abreast = list(dict.fromkeys(rows["budget"]))
    figure, axes = plt.subplots(2, len(abreast), figsize=(9.5, 4.6), sharey=True, squeeze=False)
    means = rows.groupby(["budget", "attack", "key"], sort=False)["value"].mean().unstack()
    for line, size in zip(axes, (list(SMALL), list(SMALL.values()))):
        for axis, budget in zip(line, abreast):
            headed(means.loc[budget].loc[size, SHOWN]).plot.bar(ax=axis, rot=0, width=0.8,
                                                                legend=False, xlabel="")
            axis.set_title(f"bound on the examples: {budget}", fontsize=9)
    figure.supylabel("decrease in ASR (points)", fontsize=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
                  fontsize=8)
    return figure


four_attacks(fall)
run.show()

# %% [markdown]
# ## Over all records
#
# ASR and accuracy are in percent; they are means over the random seeds. Figs. 4 and 5 print no
# numbers to compare them with. The table of all rows is folded.

# %% tags=["hide-input", "hide-output"]
ours = run.recorded()
wide(ours.assign(measure=ours["attack"].fillna(ours["quantity"])), "quantity in ('asr', 'accuracy', 'accuracy_unseen')",
     index=["dataset", "model", "budget", "fuzzer", "swarm", "setting"], columns="measure")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 5 from the records of LeNet-5 on MNIST, mean over the random seeds.", "name": "fig-excitable-asr-attacks-records"}}
our_fall = at_best(ours[ours["quantity"] == "asr_gain"], "dataset", "model")
four_attacks(our_fall[our_fall["model"] == "lenet5"])
run.show(recorded=True)

# %% [markdown]
# The table shows DeepSensor's lead over the best baseline, and over PGD-AT, in points.

# %% tags=["hide-input"]
wide(ours, LEADS, index=["dataset", "model", "quantity", "attack", "setting"], columns=["budget", "swarm"])

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
of_data = rows.groupby("dataset")[["attacked", "attacked_long", "attack_steps", "small_eps"]].max()
says(f"Our records cover {sizes(rows)}.",
     *[f"On {shown(data)}, FGSM and PGD attack {each['attacked']:.0f} images, DeepFool and JSMA {each['attacked_long']:.0f} of them. "
       f"PGD takes {each['attack_steps']:.0f} steps, and its small size is {each['small_eps']:g}." for data, each in of_data.iterrows()],
     ("ResNet-20 is one network: its seeds choose other inputs, and not another training. There DeepXplore has no other networks "
      "to compare with.", set(rows.loc[rows["dataset"] == "cifar10", "recipe"]) == {"pretrained"}),
     f"The rivals ran {of_rivals(rows)}.", evidence.estimator(rows))

# %% [markdown]
# **What it means.** What `excitable`, `constant` and `random` share comes from images of noise with another image's
# label, and not from {term}`excitable neurons <excitable neuron>`. The network retrained on PGD's examples
# learnt from the very attack by which it is judged.

# %% tags=["hide-input", "statements"]
both = table_of(asr, ["before", "excitable"], "model", attack="pgd", budget="none").min(axis=None)
fell = evidence.spread(rises(asr, ["excitable"], "model", attack="pgd", budget="none")["excitable"])
accuracy = table_of(rows[rows["dataset"] == "mnist"], ["excitable", "dlfuzz", "pgd_at"], "model", quantity="accuracy_unseen",
                    budget="none")
harmed, weaker = accuracy[["dlfuzz", "pgd_at"]].max(axis=None), own.query("low > 0").index
says((f"At the paper's size, PGD succeeds on at least {rounded_down(both)} % of the images, before retraining and after. The "
      f"intervals of the change lie between {fell['low'].min():.1f} and {fell['high'].max():.1f} points.", both > 90),
     (f"On MNIST, after retraining on PGD's examples or DLFuzz's, the accuracy on all unseen images is at most {rounded_up(harmed)} %; after "
      f"the excitable swarm's, it is at least {int(accuracy['excitable'].min())} %.", harmed < accuracy["excitable"].min()),
     (f"With {listed(weaker)}, this PGD-AT itself raises PGD's success at the small size. So even a swarm that is no worse than it may "
      "have done harm.", len(weaker) > 0))

# %% tags=["hide-input", "statements"]
within = rises(on_mnist, ["excitable", "constant", "sensitive"], "model", attack="pgd, small", budget="2")
within = within.groupby("model").mean().abs().max(axis=None)
says("This PGD-AT learns from PGD's examples of the inputs, made once against the network as it was. The method that is usually called "
     "PGD-AT attacks the network anew in every step of a whole training.",
     (f"When the swarms stay within a distance of {2}, their examples change PGD's success on MNIST by at most "
      f"{rounded_up(within, 1)} points on average.", within < 5))

# %% tags=["hide-input", "statements"]
colour = rows[rows["dataset"] == "cifar10"]
WHO = ["benign", "excitable", "pgd_at"]
right = table_of(colour, ["before", *WHO], "model", quantity="accuracy_unseen", budget="none").mean()
lost = 100 - table_of(colour, WHO, "model", quantity="accuracy", budget="none").mean()
change = evidence.spread(rises(on_colour, WHO, "dataset", **SMALLER).loc["cifar10"].stack().rename_axis(["seed", "who"]).swaplevel())
says((f"On CIFAR-10, retraining itself harms ResNet-20. Of all unseen images it gets {right['before']:.0f} % right before, "
      f"{right['benign']:.0f} % after it saw the inputs twice, {right['excitable']:.0f} % after the excitable swarm's examples, and "
      f"{right['pgd_at']:.0f} % after PGD's.", right.is_monotonic_decreasing),
     (f"An image that is wrong without an attack counts as a success of it. PGD's success at the small size changes by "
      f"{listed([f'{value:.0f}' for value in change['mean'][WHO]])} points, which the seeds do not decide.",
      (change["low"] < 0).all() and (change["high"] > 0).all()),
     ("DeepFool and JSMA succeed on all images there before the retraining, within their limits as well.",
      (table_of(on_colour[on_colour["attack"].isin(["deepfool, small", "jsma, small"])], ["before"], "attack") == 100).all(axis=None)),
     ("Each change of PGD's success is smaller than the share of images that became wrong without any attack. So no rise here shows that PGD "
      "has become stronger.", (change["mean"] < lost).all()))

# %% [markdown]
# ## Exercises
#
# **1. Try.** In the tables above, DeepFool succeeds on all images. How far does it have to go before PGD-AT,
# and how far after it?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# some, true = rest[0][:slowly_attacked_inputs], rest[1][:slowly_attacked_inputs]
# for each in (model, controls[PGD_AT]):
#     result = robustness.attack_success_rate(each, some, true, attacks["deepfool"])
#     moved = (result.images - some).flatten(1).norm(dim=1)
#     print(f"ASR {result.rate():.0%}, median L2 {moved[result.fooled].median():.2f}")
# ~~~
#
# The rate stays the same, but the distance may change. Such an attack is made to measure the distance.
# ```
#
# **2. Try.** The examples of the constant fitness look like noise. Give them random labels
# instead of those of their inputs. What changes?
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# noisy, true = examples["none", FuzzerKey("deepsensor", "constant")]
# drawn = true[torch.randperm(len(true), generator=torch.Generator().manual_seed(seed))]
# shuffled = retraining.retrained(model, benign, {"right": (noisy, true), "drawn": (noisy, drawn)},
#                                 steps, seed=seed)
# measure(shuffled)[["pgd", SMALL["pgd"], "accuracy"]]
# ~~~
#
# What both networks gain or lose alike does not come from the labels. Only the rest can come from the labels
# of the inputs.
# ```
#
# **3. Think.** After retraining, an attack's success rate is lower because the loss has no gradient
# any more. Is the network more robust?
#
# ```{admonition} Solution
# :class: dropdown
# Not necessarily. The errors near the inputs may all still be there, but this attack no longer finds its way
# to them. An attack without gradients, or one with the gradients of another network, could show them.
# ```
#
# **4. Code.** Write `my_fall(before, after)`: the points of success rate that retraining takes
# away. It gets two arrays of booleans, which say for each image whether an attack fooled it. The cell says
# whether your function is right.

# %%
my_fall = None  # your function of two boolean tensors (N,)

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    fooled = torch.tensor([True, True, True, False])
    check(answer, lambda a, b: 100 * (a.double().mean() - b.double().mean()), (fooled, ~fooled),
          (fooled, fooled))


is_right(my_fall)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_fall(before, after):
#     return 100 * float(before.sum() - after.sum()) / len(before)
#
# is_right(my_fall)
# ~~~
#
# If an attack succeeds on all images before and after, the fall is 0, however much harder it
# became.
# ```
