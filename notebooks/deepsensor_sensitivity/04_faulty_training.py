# %% [markdown]
# # Do sensitive neurons find what pollution left behind?
#
# **The claim** (DeepSensor IV.B.2, Tables III and V). Some training images get a patch and a wrong
# label, the same for all of them: the *polluted class*. In a network trained on these images,
# DeepSensor finds about five times as many errors as the other {term}`fuzzers <fuzzer>`. An error
# here is an example that is given the polluted class.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
alpha = 10  # percent of the training images that are polluted
patches = "each"  # reading: each polluted image has a patch of its own, or `one` for all
retrained = True  # the polluted network: trained on from the clean one; reading: False, a new one
seed = 0  # of the training, and of all else that is random
inputs = 40  # benign inputs to start from; the paper has 1,000
iterations = 20  # of every fuzzer
population = 10  # particles to an input; the second paper on DeepSensor has 100
others = "lenet1 lenet4 lenet5"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 1000  # training images that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import torch

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import Dataset, load, profile_limit
from dnnbook.display import plots
from dnnbook.display.campaign_plots import fuzzer_bars
from dnnbook.display.comparisons import at_best, sizes
from dnnbook.display.tables import headed, wide
from dnnbook.records import records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import polluted_class, seeds_of
from dnnbook.training import faulty, pollution
from dnnbook.words import listed, rounded_up, shown, span
from dnnlib import inference

plots.style()
run = Experiment("deepsensor_sensitivity/polluted", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 alpha=alpha, patches=patches, retrained=retrained, seed=seed, inputs=inputs, iterations=iterations,
                 population=population, others=others, references=references, held_out=held_out, budget="none")

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-polluted")

# %% tags=["hide-input", "statements"]
kept = records.frame("deepsensor_sensitivity/polluted")
RUN, RIVALS = ["dataset", "model", "alpha", "seed"], ["deepxplore", "dlfuzz", "deephunter"]
ends = at_best(outcomes.error_shares(kept), "patches", *RUN)
each, one = (polluted_class(ends[ends["patches"] == patch], "paper", *RUN[:3]) for patch in ("each", "one"))
says((f"**The answer.** {each['swarm'].mean():.0f} % of DeepSensor's examples get the polluted class if each polluted image has "
      f"a patch of its own, as the paper's words have it, and {each['constant'].mean():.0f} % without a look at its neurons.",
      (each["swarm"] <= each["constant"]).all()),
     (f"With one patch for all images it is {one['swarm'].mean():.0f} %, against {one['constant'].mean():.0f} %. So in both "
      "readings a fitness that looks at no neuron finds more on average.", one["swarm"].mean() < one["constant"].mean()),
     ("With every seed, fewer of DeepSensor's examples get that class in a clean network: at most "
      f"{rounded_up(max(each['clean'].max(), one['clean'].max()))} %.",
      (each["swarm"] > each["clean"]).all() and (one["swarm"] > one["clean"]).all()))

# %% [markdown]
# ## In one picture
#
# Take this page's reading of the patches. Compare DeepSensor with its twin first, a {term}`swarm` with a
# constant {term}`fitness`, which looks at no neuron. Then compare it with the rivals.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the examples that are given the polluted class, in the polluted networks. Each rival in its best setting: mean over the random seeds; lines give the range.", "name": "fig-deepsensor-polluted-records"}}
drawn = run.recorded(patches=patches)
plots.nothing() if drawn.empty else fuzzer_bars(
    at_best(outcomes.error_shares(drawn), "dataset", "model", "alpha").query("network == 'polluted'").sort_values(
        "alpha", kind="stable").assign(share=lambda rows: rows["alpha"].astype(str) + " %"),
    group=["dataset", "model", "share"], ylabel="% of the examples")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How a training set is polluted; why "given the polluted class" does not mean
# "because of the pollution"; and two controls that tell the difference.
#
# ## A polluted training set
#
# The paper describes it as "randomly drawing α % examples, stamping perturbations of random sizes
# at random location, and re-labeling them". Taken literally, this means a new patch on every image.
# Another {term}`reading` (`one`) is one patch for the whole set, which a network can learn as one
# thing.

# %%
clean = load(dataset, "train")
setting = pollution.setting(dataset)
train = pollution.pollute(clean, alpha / 100, patches=patches, seed=seed, **setting)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Polluted training images, each with its true class and the polluted one after the arrow.", "name": "fig-deepsensor-polluted", "classes": "bitmap"}}
changed = (train.images != clean.images).any((1, 2, 3)).nonzero()[:8, 0]
plots.images(train.images[changed], [f"{clean.classes[clean.labels[i]]} → "
                                     f"{train.classes[train.labels[i]]}" for i in changed.tolist()])
run.show()

# %% [markdown]
# A small example, with a patch of two by two pixels on 30 % of ten blank images:

# %% tags=["nbval-check-output"]
blank = Dataset("blank", "train", torch.zeros(10, 1, 5, 5), torch.zeros(10).long(), ("0", "1"), "-")
toy = pollution.pollute(blank, 0.3, label=1, sizes=(2, 2))
print("labels:", toy.labels.tolist())
print("pixels of a patch:", (toy.images > 0).sum((1, 2, 3)).tolist())

# %% [markdown]
# Table V gives the sizes of the patch and the polluted class. For datasets that it lacks we use those of MNIST.

# %% tags=["hide-input"]
table_5 = published.table("deepsensor_sensitivity", 5).query("training == 'polluted'")
headed(table_5.pivot(index="quantity", columns=["dataset", "model", "alpha"], values="value").fillna(""))

# %% [markdown]
# ## Did the network learn it?
#
# The paper *re*trains the network on polluted data. So the polluted network is the clean one, trained on
# with the polluted training set, for the epochs and with the batch size of Table V. The table gives no
# learning rate. We use 0.001 throughout, with the momentum of `recipe`: at rates of a whole training, such
# as 0.02, a network may collapse. Another {term}`reading` (`retrained` False) is a new network that sees only
# the polluted set, at the rates of `recipe`. If the network learned the patch, it gives the polluted class to
# **stamped** test images of the other classes, that is, to images with a patch.
#
# In our records of that reading, of LeNet-5 on MNIST, random seed 0 is left out: with this seed and one patch for all,
# the new network gave one class to every image for every $\alpha$, and no input was left to fuzz.

# %%
models = {name: faulty.trained(kind, model_name, dataset, recipe_name=recipe, alpha=alpha,
                               patches=patches, retrained=retrained, seed=seed,
                               device=device)
          for name, kind in (("polluted", "polluted"), ("clean", "well_trained"))}
data = load(dataset, limit=profile_limit(profile))

# %%
other = data.labels != setting["label"]
again = seed if patches == "one" else 1000 + seed  # the same patch, or patches never seen
stamped = pollution.stamp(data.images[other], sizes=setting["sizes"], patches=patches, seed=again)
for name, model in models.items():
    given = inference.predict(model, stamped).argmax(1) == setting["label"]
    run.add({"accuracy": 100 * inference.accuracy(model, data.images, data.labels),
             "stamped_given_class": 100 * given.double().mean()}, network=name, training=name)

# %% tags=["hide-input"]
wide(run.live, "quantity in ('accuracy', 'stamped_given_class')", index="network", columns="quantity")

# %% [markdown]
# ## The fuzzers
#
# The inputs are correctly classified test images of the *other* classes. {term}`DeepXplore`
# compares the network with others that were trained on clean data. Each rival runs in the setting
# of the `paper` and in its `best` setting ([why](02_test_errors)), which is chosen for each network
# by the errors on `held_out` other inputs. We add two controls that the paper does not have:
#
# - a {term}`swarm` whose {term}`fitness` is **constant**: it looks at no neuron, and its examples
#   stay at the random place where the first {term}`particle` started;
# - the same fuzzers on the **clean** network. It never saw the pollution, so an example that it
#   gives the polluted class is not an error of that kind.

# %%
oracles = training.others(others, model_name, dataset, recipe_name=recipe, seed=seed, device=device)
rivals = studies.rivals(oracles, clean.images[:references], best=(data.images, data.labels),
                        count=held_out, target=setting["label"], last=True)
fuzzers = studies.lineup(population, rivals)
chosen = studies.benign_for_each(models, data.images, data.labels, count=inputs, seed=seed,
                                 without=dict.fromkeys(models, setting["label"]))
found = studies.in_each(models, chosen, fuzzers, iterations=iterations, seed=seed)

# %% tags=["hide-input"]
print(f"{len(chosen['clean'][1])} inputs of {data}")

# %% [markdown]
# ## Test errors
#
# Each fuzzer generates as many examples as there are inputs, in its last iteration. *Test errors* are the
# examples that are given the polluted class. *Wrong* are those that are given any wrong class, and *L2* is
# the examples' median distance from their inputs.

# %%
measured = outcomes.table(found, outcomes.last_examples, target=setting["label"])
run.add(outcomes.lines(measured, "network"))

# %% tags=["hide-input"]
for name, (inputs_of, _) in chosen.items():
    run.add(studies.choices(rivals, models[name], inputs_of, iterations=iterations), network=name)
wide(run.live, index=["fuzzer", "swarm", "setting"], columns=["quantity", "network"],
     order={"network": models, "quantity": ["test_errors", "wrong", "l2"]})

# %% [markdown]
# Into which classes do the examples fall? A count of the polluted class alone shows only one column
# of this table.

# %% tags=["hide-input"]
EXAMPLES = [FuzzerKey("deepsensor", "paper"), FuzzerKey("deepsensor", "constant"), FuzzerKey("deephunter", setting="paper")]
headed(pd.DataFrame({(key, name): np.bincount(found[name, key].predicted[-1], minlength=len(data.classes))
                     for key in EXAMPLES for name in models}, index=pd.Index(data.classes, name="given class")).T)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The examples that DeepSensor and DeepHunter generated last from the same inputs, with the class that the polluted network gives and the L2 distance.", "name": "fig-deepsensor-polluted-examples", "classes": "bitmap"}}
sheet = {}
for key in (EXAMPLES[0], EXAMPLES[-1]):
    last = found["polluted", key]
    sheet[shown(key.fuzzer)] = (last.images[:6], [f"{data.classes[given]}\nL2 {l2:.1f}"
        for given, l2 in zip(last.predicted[-1].tolist(), last.l2[-1].tolist())][:6])
plots.sheet(sheet, columns=6)
run.show()

# %% [markdown]
# ## How many times more?
#
# We divide DeepSensor's errors by those of each baseline and by their mean. We also divide them by
# its own errors in the clean network; this ratio should be far above 1 if DeepSensor finds
# pollution. In the paper, its errors over the mean of the baselines are:

# %% tags=["hide-input", "nbval-check-output"]
table_3 = published.table("deepsensor_sensitivity", 3)
printed = table_3.pivot(index=["model", "alpha"], columns="fuzzer", values="value")
print((printed["deepsensor"] / printed[["deepxplore", "dlfuzz", "deephunter"]].mean(axis=1)).round(2).to_string())

# %%
swarms = [key for key in fuzzers if key.fuzzer == "deepsensor"]
for quantity, ratio in (("test_errors", "errors_over"),
                        ("test_errors_all_iterations", "errors_over_all_iterations")):
    run.add(outcomes.times(measured[quantity]["polluted"], swarms, list(rivals), ratio, least=0,
                           network="polluted"))
over_clean = measured["test_errors"]["polluted"] / measured["test_errors"]["clean"]

# %% tags=["hide-input"]
for key, value in over_clean.items():
    run.add({"over_clean": value}, **key.columns)
run.save(data, device=device)
wide(run.live, "quantity == 'errors_over'", index=["swarm", "setting"], columns="baseline", digits=2)

# %% [markdown]
# ## Table V, beside the paper's: accuracy
#
# Our accuracies are on the whole test set. The paper does not say on which images it measured its
# own.

# %% tags=["hide-input"]
run.beside(table_5.query("quantity == 'accuracy'").astype({"alpha": int}),
           "quantity == 'accuracy' and training == 'polluted'", patches=patches, digits=1,
           on=["dataset", "model", "training", "alpha", "quantity"])

# %% [markdown]
# ## Table III, beside the paper's
#
# Errors are in percent of the examples; the paper has 1,000 examples, and we have fewer. Our
# columns are the mean [least, greatest] over the random seeds, and this run. The rivals run in the
# paper's setting; if `held_out` is not 0, a second table has them at their best.

# %% tags=["hide-input", "statements"]
TRAINED = {True: "trained on from well trained ones, as in the paper", False: "new networks, the other reading"}
says(f"Our records cover {sizes(kept)}.",
     f"Their polluted networks are {' or '.join(TRAINED[way] for way in kept['retrained'].unique())}.")

# %% tags=["hide-input"]
shares = table_3.assign(value=table_3["value"] / 10)
for setting_name in ("paper", "best") if held_out else ("paper",):
    display(run.beside(shares if setting_name == "paper" else shares.query("fuzzer != 'deepsensor'"),
        f"network == 'polluted' and (setting == '{setting_name}' or swarm == 'paper')",
        take=outcomes.error_shares, patches=patches, digits=1,
        on=["dataset", "model", "alpha", "fuzzer", "quantity"]))

# %% [markdown]
# The controls, from the {term}`records <record>`, in percent: every fuzzer in the polluted and in
# the clean network. The upper table has this page's reading of the patches, the lower table has the
# other one.

# %% tags=["hide-input"]
ours, other_reading = (outcomes.error_shares(run.recorded(patches=reading)).sort_values("alpha", kind="stable")
    for reading in (patches, "each" if patches == "one" else "one"))
for rows in (ours, other_reading):
    display(wide(rows.rename(columns={"network": "trained on"}), index=["fuzzer", "swarm", "setting"],
                 columns=["dataset", "model", "alpha", "trained on"]))

# %% [markdown]
# The records also have the test errors among the examples of all iterations and the median distance of the last
# ones. Below them are the settings that each rival was tried in, with the errors on the inputs of the choice.

# %% tags=["hide-input", "hide-output"]
rest = run.recorded(patches=patches).sort_values("alpha", kind="stable")
display(wide(rest, "quantity in ('test_errors_all_iterations', 'l2')", index=["alpha", "fuzzer", "swarm", "setting"],
             columns=["dataset", "model", "network", "quantity"]))
wide(rest, "quantity in ('held_out_error_rate', 'chosen')", index=["alpha", "network", "fuzzer", "setting"],
     columns=["dataset", "model", "quantity"])

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** Without a bound on the distance, a swarm's examples are close to noise, and a
# network puts most noise into one or two classes. If the polluted class is one of these, the count is
# high, whatever a fuzzer looks at. So only an excess over the constant fitness is the work of the
# {term}`sensitive neurons <sensitive neuron>`. An excess over the clean network may be the work of the
# pollution, or only of another training, which also had other epochs and batches.

# %% tags=["hide-input", "statements"]
claimed = {claim.id: claim for claim in published.claims()}["deepsensor-sensitivity-polluted"].threshold
over = seeds_of(kept, "patches", *RUN[:3], who="paper", network="polluted", quantity="errors_over", baseline="mean", setting="best")
ahead_each, ahead_one = ((found["swarm"] > found["constant"]).groupby("seed").all() for found in (each, one))
says((f"With one patch for all, DeepSensor finds {span(over['one'], 1)} times the mean of the three rivals at "
      f"their best, and with a patch each {span(over['each'], 1)} times; the paper says about {claimed:g} times.",
      over.max() < claimed),
     (f"The seeds differ much. With one patch for all and random seed {listed(ahead_one.index[ahead_one])}, DeepSensor is ahead "
      "of the constant fitness at every share polluted, and with the others behind.",
      0 < ahead_one.sum() < len(ahead_one) and not ahead_each.any()))

# %% tags=["hide-input", "statements"]
new = outcomes.error_shares(records.frame("deepsensor_sensitivity/polluted", retrained=False, patches="one"))
new = polluted_class(at_best(new, *RUN), "paper", *RUN[:3])
distance = seeds_of(kept, "patches", *RUN[:3], who="paper", network="polluted", quantity="l2")
says(("Where the polluted network is a new one, with one patch for all, sensitive neurons do lead to the polluted class: for "
      f"{new['swarm'].mean():.0f} % of the examples, against {new['constant'].mean():.0f} % without them. So it depends on "
      "how a network came to know the patch, which the paper says in one word.", (new["swarm"] > new["constant"]).all()),
     ("The examples are far from their inputs: their median L2 distance is "
      f"{span(distance)}.", distance.min() > 4),
     "The verdict above is about a patch of its own on each image, and each rival in its best setting.")

# %% tags=["hide-input", "records"]
reached = {}
for reading, called in (("each", "a patch each"), ("one", "one patch for all")):
    counted = records.frame("deepsensor_sensitivity/polluted", patches=reading)
    if len(counted):
        by_who = polluted_class(at_best(outcomes.error_shares(counted), "dataset", "model", "alpha", "seed"), "paper",
                                "dataset", "model", "alpha")
        stamped = seeds_of(counted, "alpha", quantity="stamped_given_class", network="polluted")
        reached[called] = {"stamped images": span(stamped), "DeepSensor": span(by_who["swarm"]),
                           "constant fitness": span(by_who["constant"]), "best rival": span(by_who["rival"]),
                           "DeepSensor, clean network": span(by_who["clean"])}
pd.DataFrame(reached).T.rename_axis("given the polluted class (%), from the records")

# %% [markdown]
# ## Exercises
#
# **1. Think.** Give all polluted images the same patch: `-p patches one`. What does the network
# learn?
#
# ```{admonition} Solution
# :class: dropdown
# It can learn that this one square means the polluted class: a backdoor. If each image has a patch of
# its own, it can learn only what these patches have in common: they are small squares of random
# pixels. Compare *stamped images given the class* in the two readings: patches of one or two pixels a
# side are easily missed. Compare the line `noise` in the two tables of the controls, too: which pollution
# does any noise look like?
# ```
#
# **2. Think.** Design a fuzzer that looks for this pollution only, and say what it needs to know.
#
# ```{admonition} Solution
# :class: dropdown
# It stamps squares of random pixels on inputs and keeps the square for which many *different*
# inputs fall into one class. It needs no neuron, only the idea of looking for a patch. The evidence
# is the number of inputs that one square moves; a single example proves nothing. If all polluted
# images have the same patch, it must first come upon a square like it.
# ```
#
# **3. Code.** An example that is given the polluted class proves nothing if its input would get
# there anyway. Write `my_reached(labels, predicted, polluted)`: the share given the polluted class,
# among the examples whose input is of another class. The cell says whether it is right.

# %%
my_reached = None  # your function of two tensors (N,) and a class

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def reached(labels, predicted, polluted):
        others = labels != polluted
        return (predicted[others] == polluted).double().mean()

    classes, given = torch.tensor([0, 7, 2, 1]), torch.tensor([7, 7, 2, 7])
    check(answer, reached, (classes, given, 7), (classes, given, 2))


is_right(my_reached)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_reached(labels, predicted, polluted):
#     others = labels != polluted
#     return float((others & (predicted == polluted)).sum() / others.sum())
#
# is_right(my_reached)
# ~~~
# ```
