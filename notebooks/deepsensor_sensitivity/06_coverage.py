# %% [markdown]
# # Does DeepSensor raise neuron coverage?
#
# **The claim** (DeepSensor IV.C, Fig. 3). Coverage criteria count the neurons that a set of inputs has
# brought into some state. DeepSensor is not made to raise them, and yet it raises most of six criteria more
# than noise and than {term}`fuzzers <fuzzer>` that are made for it. It raises them up to twice as much. All
# examples lie within an {term}`L2 distance` of 1 from their inputs (2 on ImageNet).

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 40  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
l2 = 1.0  # a bound on the L2 distance of an example from its input; 2 on ImageNet
sections = 10000  # k of KMNC
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that say which activations are usual
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
from torch import nn

from dnnbook import studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.campaign_plots import methods
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import firsts, lead_of, mean_of, with_swarm, written
from dnnbook.words import listed, out_of, rounded_up, shown, span
from dnnlib import coverage, fuzzing
from dnnlib.neurons import activations

plots.style()
run = Experiment("deepsensor_sensitivity/coverage", profile, dataset=dataset, model_name=model_name,
                 recipe=recipe, seed=seed, inputs=inputs, iterations=iterations,
                 population=population, l2=l2, sections=sections, others=others, references=references,
                 held_out=held_out, budget="paper")

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-coverage")

# %% tags=["hide-input", "statements"]
CELL, names = ["dataset", "model", "seed"], outcomes.FIG_3
every = records.frame("deepsensor_sensitivity/coverage")
every = every[every["criterion"].isna() | every["criterion"].isin(names)]
gained = at_best(every[every["quantity"] == "gain"], *CELL)
alone, both = (mean_of(with_swarm(gained, "paper"), "fuzzer", "criterion", counted=way).unstack("criterion")
               for way in ("alone", "together"))
leaders, losses = firsts(alone).value_counts(), int((alone.max() < 0).sum())
led = leaders.get("deepsensor", 0)
says((f"**The answer.** No: on average over {gained['model'].nunique()} networks, DeepSensor comes first in "
      f"{out_of(led, len(names))} criteria, and {shown(leaders.index[0])} in {leaders.iloc[0]}. In {losses} of the {len(names)}, even the first "
      "covers less than the inputs did.", led <= 3 and leaders.index[0] != "deepsensor" and losses > 1))

# %% tags=["hide-input", "statements"]
ahead, kept_ahead = (evidence.spread(lead_of(gained, "paper", "constant", "criterion", counted=way)) for way in ("alone", "together"))
by_one = evidence.spread(lead_of(gained, "paper", "constant", "model", "criterion", counted="together"))["mean"].groupby("model").max()
says(("Sensitive neurons hardly help. Of the examples alone, DeepSensor's mean lead over a swarm with a constant fitness, which "
      "looks at no neuron, is in no criterion more than chance.", ahead["low"].max() <= 0),
     (f"Counted together with the inputs, as a tester would keep them, DLFuzz comes first in all {len(names)}. DeepSensor then leads "
      f"that swarm by at most {rounded_up(kept_ahead['mean'].max(), 1)} points on average, with {listed([by_one.idxmax()])} by up to "
      f"{rounded_up(by_one.max(), 1)}.", (both.idxmax() == "dlfuzz").all() and by_one.max() < 1))

# %% [markdown]
# ## In one picture
#
# Each panel shows one criterion, on a scale of its own. On which side of zero is a bar, and whose bar ends farthest
# to the right? And how far is DeepSensor ahead of its twin, a {term}`swarm` with a constant {term}`fitness`?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 3 of the paper from the records: gain in coverage of the examples over their inputs. Mean over the random seeds, on a scale of its own for each criterion and network.", "name": "fig-deepsensor-coverage-records"}}
def draw(rows: pd.DataFrame, columns: int, height: float) -> None:
    """Mean gains: a panel for each network and criterion, on a scale of its own."""
    rows, of = methods(rows), ["dataset", "model"]
    networks = [*rows[of].drop_duplicates().itertuples(index=False, name=None)]
    criteria = [*rows["criterion"].unique()]
    if not networks:
        return plots.nothing()
    columns = min(columns, len(criteria))
    each = -(-len(criteria) // columns)  # lines of panels of a network
    figure, axes = plt.subplots(each * len(networks), columns, sharey=True, squeeze=False,
                                figsize=(10, height * each * len(networks)))
    for axis in axes.flat:
        axis.set_visible(False)
    for (*network, criterion), part in rows.groupby([*of, "criterion"], sort=False):
        line, column = divmod(criteria.index(criterion), columns)
        axis = axes[each * networks.index((*network,)) + line, column]
        axis.set_visible(True)
        sns.barplot(part, x="value", y="method", hue="counted", errorbar=None, ax=axis,
                    legend=axis is axes[0, 0] and rows["counted"].nunique() > 1)
        axis.axvline(0, color="0.3", lw=0.8)
        axis.set(title=criterion.upper(), xlabel="", ylabel=", ".join(map(shown, network)))
        axis.locator_params(axis="x", nbins=3)
        axis.xaxis.set_major_formatter("{x:g}")


kept = run.recorded()
plots.nothing() if kept.empty else draw(
    kept.query("quantity == 'gain' and counted == 'alone'"), columns=6, height=2.2)
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** The six criteria of Fig. 3; how the gain depends on what it is counted against;
# and why equal bounds are not equal distances.
#
# ## The criteria
#
# The range $[\mathrm{low}, \mathrm{high}]$ of a neuron is taken over training images.
#
# | criterion | counts | options in IV.C |
# |---|---|---|
# | {term}`NC <neuron coverage>` | neurons above a threshold, layers scaled to [0, 1] for each input | 0.2 |
# | {term}`KMNC` | sections of each neuron's range that were hit | $k$ = 10,000 |
# | {term}`NBC` | ends of the range that were passed | not said: at the range |
# | {term}`SNAC` | upper ends of the range that were passed | not said: at the range |
# | {term}`TKNC` | neurons that were the strongest of their layer | 1 |
# | BKNC | neurons that were the weakest of their layer | 1 |
#
# In code, from activations with a row for each image. A criterion marks each item that an image covers with 0,
# or with the number of its section; -1 is nothing.

# %%
def marks(hit):
    """Items (N, columns), from what each image hits."""
    return coverage.Covered(hit.int() - 1)


def strongest(values, offsets):
    """Which neuron of each layer has the largest value."""
    layers = values.tensor_split(offsets[1:-1], dim=1)
    return torch.cat([nn.functional.one_hot(part.argmax(1), part.shape[1]) for part in layers], 1)


def kmnc(a, low, high, k):
    """The section of its range that each neuron is in."""
    section = ((a - low) * k / (high - low)).floor().clamp(max=k - 1)
    outside = (a < low) | (a > high) | (low == high)
    return coverage.Covered(section.masked_fill(outside, -1).int(), k)

# %% [markdown]
# Each criterion in a line, with the names of the table:

# %%
BY_HAND = {
    "nc": lambda raw, scaled, usual, k: marks(scaled.values > 0.2),
    "kmnc": lambda raw, scaled, usual, k: kmnc(raw.values, usual.low, usual.high, k),
    "nbc": lambda raw, scaled, usual, k: marks(
        torch.cat([raw.values < usual.low, raw.values > usual.high], 1)),
    "snac": lambda raw, scaled, usual, k: marks(raw.values > usual.high),
    "tknc": lambda raw, scaled, usual, k: marks(strongest(raw.values, raw.offsets)),
    "bknc": lambda raw, scaled, usual, k: marks(strongest(-raw.values, raw.offsets))}

# %% [markdown]
# An example with three inputs and one neuron, whose range from 0 to 4 is cut into four sections:

# %% tags=["nbval-check-output"]
zero_to_four = coverage.boundaries([[0.0], [4.0]])
values = [[0.5], [0.7], [4.5]]
print("KMNC:", coverage.coverage(coverage.kmnc(values, zero_to_four, 4)), "(one section of four)")
print("NBC: ", coverage.coverage(coverage.nbc(values, zero_to_four)), "(one end of two)")
print("SNAC:", coverage.coverage(coverage.snac(values, zero_to_four)))

# %% [markdown]
# An input falls into one section of each neuron. So the paper's thousand inputs reach at most a thousand of
# its 10,000 sections. KMNC is therefore at most 10 % there, for the inputs as for the examples, and a gain is
# a few points at best.

# %% tags=["remove-input"]
says(f"Here {inputs:,} inputs reach at most {100 * min(1, inputs / sections):g} %.")

# %% tags=["hide-input"]
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
known = studies.known_images(dataset, data, chosen, references)
usual = coverage.boundaries(activations.record(model, known).values)

# %% [markdown]
# ## The fuzzers, within the bound
#
# Every fuzzer brings its examples back to the bound whenever they leave it. The noise is Gaussian and ends
# at the bound. Each rival runs in the setting of the `paper`, and in its `best` setting ([why](02_test_errors)):
# of its authors' settings, the one that finds most test errors from other inputs. The control is a swarm
# whose fitness is constant: it looks at no neuron.

# %% tags=["hide-input"]
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)

# %%
budget = fuzzing.Budget(l2=l2)
rivals = studies.rivals(oracles, known, best=(data.images, data.labels),
                        count=held_out, budget=budget)
fuzzers = studies.lineup(population, rivals, budget=budget)
x, labels = data.images[chosen], data.labels[chosen]
found = studies.campaigns(model, x, labels, fuzzers, iterations=iterations, seed=seed)

# %% tags=["hide-input"]
print(f"{len(x)} inputs of {data}")

# %% [markdown]
# ## What they gain
#
# The authors "calculate the neuron coverage for both", inputs and examples, and show the improvement. So
# we take the coverage of the examples minus that of the inputs (`alone`). A tester would keep the inputs
# as well. So we also take the coverage of inputs and examples together, minus that of the inputs
# (`together`). This gain cannot be negative.

# %%
engine = outcomes.covered(model, x, usual, sections=sections)
criteria = outcomes.CRITERIA | BY_HAND  # and those that you added there
before = outcomes.covered(model, x, usual, sections=sections, criteria=criteria)
compared(torch.tensor(before.to_numpy()), torch.tensor(engine.to_numpy()), "outcomes.covered",
         of="criteria")
gains = {}
for key, campaign in found.items():
    for counted, images in (("alone", campaign.images),
                            ("together", torch.cat([x, campaign.images]))):
        after = outcomes.covered(model, images, usual, sections=sections, criteria=criteria)
        gains[counted, key] = after - before

# %% tags=["hide-input"]
run.add(outcomes.each("criterion", before), quantity="seeds")
for (counted, key), gain in gains.items():
    run.add(outcomes.each("criterion", gain), counted=counted, quantity="gain", **key.columns)
for counted, criterion in product(("alone", "together"), before.index):
    points = {key: gain[criterion] for (how, key), gain in gains.items() if how == counted}
    run.add(outcomes.times(points, [FuzzerKey("deepsensor", "paper")], list(rivals), "gain_over", least=0.01,
                           counted=counted, criterion=criterion))
for key, campaign in found.items():
    run.add({"l2": campaign.l2[-1].mean(), "test_errors": campaign.errors[-1].sum()}, **key.columns)
print("coverage of the inputs (%):", before.round(2).to_dict())
wide(run.live, "quantity == 'gain'", index=["counted", "fuzzer", "swarm", "setting"], columns="criterion",
     order={"counted": ["alone", "together"]}, digits=3)

# %% [markdown]
# The gain is in percentage points. The table shows how far from their inputs the examples really are, on
# average:

# %% tags=["hide-input"]
wide(run.live, "quantity in ('l2', 'test_errors')", index=["fuzzer", "swarm", "setting"], columns="quantity",
     digits={"l2": 2, "test_errors": 0})

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Points of coverage that the examples of the run above gain over their inputs, for each criterion on its own scale. Examples alone, and with their inputs.", "name": "fig-deepsensor-coverage"}}
draw(run.live.query("quantity == 'gain'"), columns=3, height=2.5)
run.show()

# %% [markdown]
# ## What the claim asks for
#
# In how many of the six criteria does DeepSensor gain more than DeepXplore, DLFuzz, DeepHunter and noise?
# The table gives the share, for each reading of the swarm, with the rivals in the paper's setting and at
# their best.

# %% tags=["hide-input"]
for counted, quantity in (("alone", "criteria_led"), ("together", "criteria_led_together")):
    for setting in ("paper", "best") if held_out else ("paper",):
        others_gain = pd.DataFrame({key: gains[counted, key] for key in found
                                    if key.setting == setting or key.fuzzer == "noise"}).max(axis=1)
        for key in (key for key in found if key.fuzzer == "deepsensor"):
            run.add({quantity: outcomes.criteria_led(gains[counted, key], others_gain)},
                    swarm=key.reading, setting=setting)

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live, "quantity in ('criteria_led', 'criteria_led_together')",
     index=["swarm", "setting"], columns="quantity", digits=2)

# %% [markdown]
# ## Fig. 3 from the records
#
# The text around the figure prints none of its values, so ours stand alone. They are mean gains over the
# random seeds, in points, of the examples alone.

# %% tags=["hide-input", "statements"]
by_network = mean_of(with_swarm(gained, "paper"), "model", "criterion", "fuzzer", counted="alone").unstack("fuzzer")
led_with = (by_network["deepsensor"] > by_network.drop(columns="deepsensor").max(axis=1)).groupby("model").sum()
bounds = every[every["quantity"] == "gain"].groupby("dataset")["l2"].max()
says(f"Our records cover {sizes(every)}. Each example lies within an L2 distance of "
     f"{listed([f'{bound:g} on {shown(name)}' for name, bound in bounds.items()])} from its input. The rivals ran "
     f"{of_rivals(gained[gained['fuzzer'].isin(['deepxplore', 'dlfuzz', 'deephunter'])])}. With "
     f"{listed(every.loc[every['others'] == '', 'model'].unique())}, DeepXplore had no other networks to compare with.",
     (f"With any network alone, DeepSensor is ahead of all others in at most {out_of(led_with.max(), len(names))} criteria.",
      led_with.max() <= 3))

# %% tags=["hide-input"]
ours = run.recorded("quantity == 'gain' and counted == 'alone'")
wide(ours, index=["dataset", "model", "fuzzer", "swarm", "setting"], columns="criterion", digits=3)

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** At a small bounded distance, a gain is a small difference of two large numbers, so it
# matters what it is counted against. Only the difference from the constant fitness, which goes to
# the bound in a random direction, is due to {term}`sensitive neurons <sensitive neuron>`. Eq. 1 counts
# neurons that rise. So if the swarm has an advantage anywhere, we expect it in the criteria that rising
# neurons raise: NC, NBC and SNAC. The table has the lead over that swarm, with its 95 % interval.

# %% tags=["hide-input", "statements"]
edges = {way: mean_of(with_swarm(gained, "paper"), "model", "criterion", "fuzzer", counted=way).unstack("fuzzer").loc[
    (slice(None), ["nbc", "snac"]), :] for way in ("alone", "together")}
loses = (edges["alone"] < 0).all(axis=1).groupby("model").all()
fewer, rest = loses.index[loses], loses.index[~loses]
far = every[every["quantity"] == "l2"].assign(value=lambda rows: 100 * rows["value"] / rows["l2"])
reached = mean_of(at_best(with_swarm(far, "paper"), *CELL), "fuzzer", "model").unstack("model")
says((f"With {listed(fewer)}, the examples of every fuzzer alone cover less in NBC and SNAC than their inputs did: some inputs "
      "have unusual values, and their examples lose them. Kept with the inputs, DeepHunter's add most there.", len(fewer)
      and (edges["together"].loc[[*fewer]].idxmax(axis=1) == "deephunter").all()),
     (f"With {listed(rest)}, DLFuzz's cover more, and add most.", len(rest) and (edges["alone"].loc[[*rest], "dlfuzz"] > 0).all()
      and (edges["together"].loc[[*rest]].idxmax(axis=1) == "dlfuzz").all()),
     (f"Equal bounds do not mean equal distances: with one network or another, DeepXplore's examples lie at "
      f"{span(reached.loc['deepxplore'])} % of the bound on average, and those of noise at 100 %.", reached.loc["noise"].min() > 99))

# %% tags=["hide-input", "records"]
counted_gains = records.frame("deepsensor_sensitivity/coverage")
if len(counted_gains):
    counted_gains = at_best(counted_gains.query("quantity == 'gain'"), "dataset", "model", "seed")
    guided_lead = evidence.spread(lead_of(counted_gains, "paper", "constant", "criterion", counted="alone"))
    kept_too = mean_of(with_swarm(counted_gains, "paper"), "criterion", "fuzzer", counted="together").unstack("fuzzer")
    display(headed(pd.DataFrame({
        "lead over a constant fitness": written(guided_lead),
        "DeepSensor, with the inputs": kept_too["deepsensor"].map("{:.1f}".format),
        "the best, with the inputs": [f"{line.max():.1f} ({shown(line.idxmax())})" for _, line in kept_too.iterrows()]})
        .loc[[*outcomes.FIG_3]].rename_axis("gain (points), from the records")))

# %% [markdown]
# ## Exercises
#
# **1. Think.** Take $k$ = 100: `-p sections 100`. What happens to the KMNC of the inputs, and to
# the gain?
#
# ```{admonition} Solution
# :class: dropdown
# The inputs' coverage cannot fall, because each of the 100 sections consists of 100 of the 10,000. We
# expect that it rises much, since a thousand inputs can then reach all sections of a neuron. The sections
# that an example falls into are then more often taken already, so we expect a gain that is small beside it.
# Run it to see. Even with $k$ = 10,000, inputs share sections, or lie outside
# the range. Otherwise the printed coverage of the inputs would be their number divided by 10,000.
# ```
#
# **2. Think.** Which criterion could a fuzzer raise without any new kind of behaviour, by noise
# alone?
#
# ```{admonition} Solution
# :class: dropdown
# KMNC with a large $k$, if it is counted together with the inputs: noise moves the activations a little,
# and so a noisy copy often falls into other narrow sections than its input. Look at the line `noise` in the
# table of the gains, below `together`. So a gain should be compared with that of noise, as in Fig. 3.
# ```
#
# **3. Code.** KMNC cuts the range that a neuron had on the training images into `k` sections. Write
# `my_section(value, low, high, k)`: the section, from 0 to k − 1, in which an activation lies, or −1
# if it is outside the range. The cell says whether it is right.

# %%
my_section = None  # your function of three numbers and a count

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def section(value, low, high, k):
        return min(int((value - low) / (high - low) * k), k - 1) if low <= value <= high else -1

    check(answer, section, (0.05, 0.0, 1.0, 10), (1.0, 0.0, 1.0, 10), (1.2, 0.0, 1.0, 10))


is_right(my_section)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_section(value, low, high, k):
#     if not low <= value <= high:
#         return -1
#     return k - 1 if value == high else int(k * (value - low) // (high - low))
#
# is_right(my_section)
# ~~~
#
# However large k is, each activation becomes one whole number. The engine keeps no more than that.
# ```
