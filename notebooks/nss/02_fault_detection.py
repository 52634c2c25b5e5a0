# %% [markdown]
# # Who finds the most faults?
#
# **The claim** (NSS RQ2, IV.C.1, Tables I and V). Of 10,000 unlabelled images, 5 to 20 % are selected; the
# {term}`fault detection rate` (FDR) is the share of them that the network gets wrong. In the paper {term}`NSS` has the
# highest FDR in 31 of 32 {term}`cells <cell>`. When a fifth is selected, it is at least 7.9 points above {term}`DeepGini`
# in Table V; the text says 6.15, which the verdict tests.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I; nss_second: its other stage
seed = 0  # of the training, and of all else that is random
references = 10000  # training images that KMNC and DSA look at; NPC at the first 2,000
beside = ""  # one more selector, of the package or your own: FILE.py:CLASS; '' for none
keep = False  # take all but `beside` from the book's record of this cell; run only that one
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dnnbook import interactive, published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.selection_plots import named
from dnnbook.display.tables import headed, wide
from dnnbook.display.whose import RECORDS
from dnnbook.records import evidence, records
from dnnbook.studies.findings.nss import (
    KNOWN,
    apart,
    by_selector,
    ends,
    everywhere,
    firsts_if_known,
    found_by_both,
    lenets,
    less_printed,
    lost_within,
    somewhere,
)
from dnnbook.studies.ordering import SelectorKey, keys
from dnnbook.words import listed, networks, rounded_down, rounded_up, shown, span
from dnnlib import inference, selection
from dnnlib.measures import faults
from dnnlib.perturb import mutations

plots.style()
run = Experiment("nss/fault_detection", profile, dataset=dataset, model_name=model_name, recipe=recipe, seed=seed,
                 candidates="random", references=references, beside=beside, drawn={"keep": keep})

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("nss-fdr-best")

# %% tags=["hide-input", "records"]
CELL = ["dataset", "model"]
NEAR = dict(candidates="random", recipe="nss")  # the records of networks near Table I
table_5 = published.table("nss", 5).query("quantity == 'fdr'")
rows = records.frame("nss/fault_detection", **NEAR)
detected = by_selector(rows[rows["quantity"] == "fdr"], *CELL, "rate")
ours = detected.groupby([*CELL, "rate"]).mean()
printed = table_5.set_index([*CELL, "rate", "method"])["value"].unstack("method")

# %% tags=["hide-input", "statements"]
leader = ours[printed.columns].idxmax(axis=1)
chance = evidence.spread(detected["nss"] - detected["random, expected"])
more, fewer = chance.query("low > 0"), chance.query("high < 0")
says(
    (f"**The answer.** Of the paper's eight selectors, DeepGini finds the most faults in {(leader == 'gini').sum()} of "
     f"{len(leader)} cells (a network, a dataset and a rate), and DSA in the others.",
     printed.shape[1] == 8 and leader.isin(["gini", "dsa"]).all() and (leader == "gini").mean() > 0.5),
    ("NSS, as the text describes it, finds clearly fewer than a random order does on average in "
     f"{len(fewer)} of them.", chance["mean"].mean() < 0 and len(more) < len(fewer)),
    (f"What is known decides. If the original of each image is known, as in the released code, NSS finds the most in "
     f"{firsts_if_known(ours, printed)}.", firsts_if_known(ours, printed) > len(ours) / 2),
    "But whoever collects unlabelled images has no such original.")

# %% [markdown]
# **In one picture.** You can afford to label only a few candidates. Which selector finds the most faults among them? The
# crosses are the paper's values. NSS is shown twice: as the text describes it, and with the known original.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fault detection rate with a twentieth of the candidates selected, for networks near the accuracy of Table I. Mean over the seeds, lines give the range, crosses are the paper's. NSS's one printed value stands at the pair of the text.", "name": "fig-nss-fdr-dots"}}
paper = published.table("nss", 5).query("quantity == 'fdr' and rate == 5")
paper = paper.assign(pair=paper["method"].map({"nss": "remutated"}), difference=paper["method"].map({"nss": "l1"}))
at_5 = run.recorded("quantity == 'fdr' and rate == 5 and difference != 'squared_normalised'", **NEAR)
plots.nothing() if at_5.empty else plots.dots(
    named(at_5), row="selector", panel=CELL, xlabel="FDR at 5 % (%)", paper=named(paper))
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How eight ways to select compare on the same {term}`candidates <candidate>`. How
# much one assumption about what is known changes the result. And whether different selectors find the same
# {term}`faults <fault>`.
#
# ## The candidates
#
# Each test image is changed by one of seven {term}`benign mutations <benign mutation>`, drawn at random
# (Table III). The image keeps its label, so that we can count faults. No selector sees the label.

# %%
data = load(dataset, limit=profile_limit(profile))
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
mutated = mutations.mutate(data.images, seed=seed)
candidates = mutated.images
probabilities = inference.predict(model, candidates)
wrong = (probabilities.argmax(1) != data.labels).numpy()
accuracy = inference.accuracy(model, data.images, data.labels)
print(data)
print(f"accuracy {accuracy:.1%} on the test images, {1 - wrong.mean():.1%} on the candidates")

# %% [markdown]
# ## The selectors
#
# We use the selectors of Table IV; [how NSS works](00_method) shows most of them in a few lines. For
# comparison we add NSATP's {term}`PD`, the {term}`least confidence` and the {term}`margin`.
#
# NSS comes in four {term}`readings <reading>`. They answer two questions in two ways each. First, what is
# a candidate $x$ compared with?
#
# - `remutated`, the paper's text: with $x'$, a *fresh mutation* of $x$. Anyone can make one.
# - `original`, the released code: with its *known original*. The candidate *is* the mutated image, and
#   it is compared with the clean test image **that it was made from**. Whoever collects unlabelled
#   images has no such original.
#
# Second, how is the movement of the activations measured? The text uses `l1`, $|N_i(x) - N_i(x')|$, and the
# code uses `squared_normalised`.
#
# Table IV gives {term}`DSA` an "n = 1000" but does not say what this counts. `dsa` orders the candidates by
# the score itself. `dsa_coverage` divides the scores into 1,000 buckets. It first takes candidates whose
# bucket is not covered yet, and then random ones.
#
# {term}`NPC` compares the paths of candidates with those of training images: of those that the network
# classifies correctly, as its authors do.

# %%
train = load(dataset, "train")
reference, classes = train.images[:references], train.labels[:references]

# %%
chosen = studies.table_iv(reference, classes, seed=seed)
chosen |= {name: selection.selector(name) for name in ("pd", "least_confidence", "margin")}
selectors = {SelectorKey(name): selector for name, selector in chosen.items()}
selectors[SelectorKey("dsa_coverage")] = selection.selector("dsa", reference=reference, order_by="coverage", seed=seed)
readings = studies.nss_readings(data.images, seed=1000 + seed)
mine = studies.one_more(beside, reference=reference)
kept = run.keep() if keep else pd.DataFrame()  # the book's rows of all others
orders = studies.orders(model, candidates, mine if keep else selectors | readings | mine)

# %% [markdown]
# **Play it.** You can pay for some labels. Choose who orders the queue, then buy labels with the slider.
# You see the true classes of the first images, and the *fault detection rate* (FDR): the share of them that
# the network gets wrong. Then tick the box, so that the original of every candidate is known, and look at
# NSS again. No other selector changes.

# %% tags=["hide-input"]
L1 = [key for key in readings if key.difference == "l1" and key in orders]  # both pairs, as the text measures
if max(data.shape[1:]) <= 32 and profile == "embedded":
    nss_order = {key.pair: orders[key] for key in L1}
    queues = {"DeepGini": orders[SelectorKey("gini")], "NSS": nss_order["remutated"],
              "DSA": orders[SelectorKey("dsa")], "random": orders[SelectorKey("random")]}
    display(interactive.label_game(candidates, data.labels, probabilities.argmax(1), queues, classes=data.classes,
        knowing={"NSS": nss_order["original"]}))

# %% [markdown]
# ## Fault detection rate
#
# With five inputs we can check it by hand: the network is wrong on one of the first two in the order.

# %% tags=["nbval-check-output"]
by_hand = faults.fault_detection_rate([True, False, False, True, False], [3, 2, 0, 1, 4], 0.4)
print(f"FDR at 40 %: {by_hand:.0%}; the best order has "
      f"{faults.best_rate([True, False, False, True, False], 0.4):.0%}")

# %%
RATES = (5, 10, 15, 20)
found_at = faults.detection_table(wrong, orders, RATES)
apfd = {key: 100 * faults.apfd(wrong, order) for key, order in orders.items()}

# %% tags=["hide-input"]
fdr, of_record = found_at.copy(), []
if keep:  # beside this run's, the rows of the book's record
    theirs, their_apfd = studies.untidy(kept, "fdr"), kept.query("quantity == 'apfd'")
    of_record = [key for key in keys(their_apfd) if key not in orders]
    fdr = pd.concat([fdr.loc[[*orders]], theirs.loc[of_record]])
    apfd = dict(zip(keys(their_apfd), their_apfd["value"])) | apfd
    print(f"The book's network gets {theirs.loc[SelectorKey('random, expected'), 5]:.2f}% of the candidates wrong, "
          f"this one {wrong.mean():.2%}.")
fdr.loc[SelectorKey("best possible")] = [100 * faults.best_rate(wrong, rate / 100) for rate in RATES]
fdr.loc[SelectorKey("random, expected")] = 100 * wrong.mean()
run.add(studies.tidy(fdr, "fdr"))
for key, value in apfd.items():
    run.add({"apfd": value}, **key.columns)
table = fdr.assign(APFD=apfd).round(1).astype(object).fillna("")
if keep:
    table["whose"] = [RECORDS if key in of_record else "this run" for key in table.index]
headed(table.rename_axis("selector").sort_values(5, ascending=False, kind="stable"))

# %% [markdown]
# {term}`APFD` (average percentage of faults detected) looks at the whole order. A random order has about
# 50; the earlier the faults come, the larger it is.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of all faults found against the share of candidates labelled, for the run above. The dotted line has all faults first, the grey one is the expectation of a random order.", "name": "fig-nss-fdr"}}
figure, axis = plt.subplots(figsize=(7, 3.2))
drawn = [*map(SelectorKey, ("gini", "ats", "dsa", "kmnc")), *(key for key in fdr.index if key.difference == "l1"), *mine]
plots.order_curve(axis, wrong, {shown(str(key)): orders[key].numpy() for key in drawn if key in orders},
                  what="faults found", points={
    f"{shown(str(key))}, {RECORDS}": [(rate / 100, found / 100 * rate / 100 / wrong.mean())
                                      for rate, found in fdr.loc[key].items()]
    for key in drawn if key in of_record})
run.show()

# %% [markdown]
# ## What it means to know the original
#
# Suppose you photograph a thousand street scenes for your network. NSS as the paper describes it
# mutates each photograph once more, for example by a rotation, and asks how far the sensitive neurons
# move. This measures how strongly **this fresh mutation** changes the photograph. It does not tell
# whether the network gets the photograph wrong.
#
# In the released code, a photograph comes with a clean twin: the same scene before anything was changed.
# On this twin the network was mostly right. The score is the distance between the two. A large
# distance says that the change moved the image far from where the network was right, and here many faults
# arise in just this way. It is as if a test came with its answer, up to the network's own accuracy. In a
# study that makes its candidates by mutation, the twin is at hand. In the situation that the paper
# describes, it does not exist.

# %% [markdown]
# ## Where the scores come from
#
# The area under the ROC curve (AUC) says how well a score tells faults from other candidates; 0.5 is chance. We
# compute it over all candidates, and **within** one mutation. The first of the folded tables groups the candidates
# by the mutation that made them. The second groups them by the fresh mutation that NSS drew for them. Both show the
# share of faults, and the mean score with the fresh mutation and with the original.

# %%
def auc(scores, pair):
    """How well the scores in one pair tell faults from the rest."""
    return faults.roc_area(scores["faults (%)"] > 0, scores[pair])


# %%
by_pair = {key.pair: readings[key].score(model, candidates).numpy() for key in L1}
fresh = mutations.mutate(candidates, seed=1000 + seed)

# %%
operators = list(mutations.OPERATORS)
scores = pd.DataFrame({
    "made by": pd.Categorical.from_codes(mutated.operator, operators),
    "drawn": pd.Categorical.from_codes(fresh.operator, operators),
    "faults (%)": 100.0 * wrong, **by_pair})

# %% [markdown]
# We compute the AUC of each pair over all candidates, and the mean of those within a mutation:

# %%
for key in L1:
    within = np.nanmean([auc(group, key.pair)
                         for _, group in scores.groupby("made by", observed=True)])
    overall = auc(scores, key.pair)
    run.add({"auc_overall": overall, "auc_within": within}, **key.reading)
    print(f"{key.pair}: AUC {overall:.2f} over all candidates, {within:.2f} within a mutation")

# %% tags=["hide-input", "hide-output"]
for by in ("made by", "drawn"):
    grouped = scores.groupby(by, observed=True)
    means = grouped[["faults (%)", *scores.columns[3:]]].mean()
    display(means.join(pd.DataFrame({f"AUC {key.pair}": {name: auc(group, key.pair) for name, group in grouped}
                                     for key in L1})).round(2))

# %% [markdown]
# With the known original, the score partly tells which mutation made the candidate: harsh mutations move
# the neurons far and cause most faults. Without it, the score tells which fresh mutation was drawn. That
# one was drawn at random and has nothing to do with the fault. Among candidates with the same draw, we
# therefore expect an AUC near 0.5. The second table has this AUC for each draw.

# %% tags=["hide-input", "statements"]
by_seed = rows.query("quantity in ('auc_overall', 'auc_within') and difference == 'l1'").set_index(
    ["pair", *CELL, "seed", "quantity"])["value"].unstack("quantity")
known, text = (by_seed.loc[pair].groupby(CELL).mean() for pair in ("original", "remutated"))
lost = lost_within(by_seed.loc["original"])
mostly, hardly = everywhere(lost), everywhere(~lost)
says(
    (f"In the records, the AUC with the known original is {known['auc_overall'].min():.2f} to "
     f"{known['auc_overall'].max():.2f} over all candidates, and {known['auc_within'].min():.2f} to "
     f"{known['auc_within'].max():.2f} within a mutation.", (known > 0.5).all(axis=None)),
    (f"With {networks(mostly)}, more than half of the lead over chance disappears within a mutation. There "
     "the score mostly tells which mutation made the candidate. With the other networks at least half remains.",
     0 < len(mostly) < len(known) == len(mostly) + len(hardly)),
    (f"With a fresh mutation, as in the text, the AUC is {text.min(axis=None):.2f} to {text.max(axis=None):.2f}: near chance, "
     "both over all candidates and within a mutation.", (text - 0.5).abs().max(axis=None) < 0.05))

# %% [markdown]
# ## Do they find the same faults?
#
# Take all faults that at least one of two selectors finds among its first fifth: which share do both find (the
# Jaccard index)? The left of the folded figures shows it for this run. The right one shows the {term}`rank correlation`
# of their whole orders. What the records say follows below, with the other
# selectors.

# %%
compared = [key for key in (*map(SelectorKey, ("gini", "ats", "dsa", "pd", "margin")), *L1, *mine) if key in orders]
place = {str(key): np.argsort(orders[key].numpy()) for key in compared}
found = {name: set(np.flatnonzero(wrong & (at < 0.2 * len(wrong)))) for name, at in place.items()}
in_both = [[len(a & b) / max(1, len(a | b)) for b in found.values()] for a in found.values()]

# %%
jaccard = pd.DataFrame(in_both, [*place], [*place])
rho = pd.DataFrame(place).corr("spearman")
for a, b in combinations(place, 2):
    run.add({"jaccard": jaccard.loc[a, b], "spearman": rho.loc[a, b]}, method=a, other=b)

# %% tags=["hide-input", "hide-output"] mystnb={"figure": {"caption": "Agreement of selectors in the run above: faults found by both among those found by either (left), rank correlation of the orders (right).", "name": "fig-nss-agreement"}}
if len(compared) > 1:  # one selector agrees with none
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True)
    plots.matrix(axes[0], headed(jaccard), "faults in common")
    plots.matrix(axes[1], headed(rho), "rank correlation")
    run.show()

# %% [markdown]
# ## Confident faults
#
# The paper's argument for NSS is that DeepGini cannot see a fault of which the network is sure. So we
# now look only at candidates whose largest probability is above 0.9. We keep each selector's order among
# them, and count again.

# %%
sure = (probabilities.amax(1) > 0.9).numpy()
inside = np.cumsum(sure) - 1  # where a sure candidate is among the sure ones
among = {key: inside[order.numpy()[sure[order.numpy()]]] for key, order in orders.items()}

# %% tags=["hide-input"]
print(f"{sure.mean():.0%} of the candidates are above 0.9; {wrong[sure].sum():,} of these are wrong")
if sure.sum() >= 20:
    run.add(studies.tidy(faults.detection_table(wrong[sure], among, RATES), "confident_fdr"))

# %% [markdown]
# The folded table has the FDR at 10 % among such candidates, from the records.

# %% tags=["hide-input", "hide-output"]
wide(named(run.recorded("quantity == 'confident_fdr' and rate == 10", **NEAR)), index="selector", columns=CELL)

# %% [markdown]
# ## How far NSS leads
#
# How many points of FDR is NSS above the best of the seven other selectors of Table V, above DeepGini, and above
# random order? The table is folded, because this small run decides nothing; the verdict has the leads from the records.

# %%
others = [SelectorKey(name) for name in published.table("nss", 5)["method"].unique() if name != "nss"]
leads = studies.leads(fdr, {"lead": others, "over_gini": [SelectorKey("gini")], "over_random": [SelectorKey("random")]})

# %% tags=["hide-input", "hide-output"]
run.add(leads)
run.add(studies.tidy(fdr - fdr.loc[SelectorKey("random")], "less_random"))
run.add({"accuracy": 100 * accuracy})
run.save(data, device=device)
None if keep else wide(run.live, "quantity in ('lead', 'over_gini', 'over_random')",
                       index=["pair", "difference", "quantity"], columns="rate")

# %% [markdown]
# ## Table I, beside the paper's: how good the networks are
#
# We train briefly, to come near the accuracy that the paper prints. By its number of parameters, the paper's
# ResNet-20 has a bias in its first convolution only. We use the same ResNet-20 as in the other chapters, which has
# one in each. The table is folded.

# %% tags=["hide-input", "hide-output"]
run.beside(published.table("nss", 1).query("quantity == 'accuracy'"), "quantity == 'accuracy'",
           on=[*CELL, "quantity"], digits=1, **NEAR)

# %% [markdown]
# ## Table V, beside the paper's
#
# "Ours" is NSS as the text describes it, `remutated` and `l1`. We first subtract the printed FDR from the
# mean of our records, for every network and each of the four rates.

# %% tags=["hide-input", "records"]
above = less_printed(ours, printed).drop(columns=KNOWN).agg(["min", "max"]).T.set_axis(["least", "greatest"], axis=1)
headed(above.round().astype("Int64").rename_axis("ours less the paper's"))

# %% tags=["hide-input", "statements"]
says((f"Random selection agrees with the paper to within {above.loc['random'].abs().max():.0f} points, and NAC to "
      f"within {above.loc['nac'].abs().max():.0f}. DeepGini, ATS and DSA find more faults than printed in every cell, DSA by "
      f"{above.loc['dsa', 'least']:.0f} to {above.loc['dsa', 'greatest']:.0f} points. NSS, as the text describes it, finds far fewer in all.",
      (above.loc[["gini", "ats", "dsa"], "least"] > 0).all() and above.loc["dsa", "greatest"] > 20
      and above.loc["nss", "greatest"] < -10 and above.loc["random"].abs().max() < 8
      and above.loc["nac"].abs().max() < 10))

# %% [markdown]
# The folded table has all selectors at all four rates: first the paper's value, then ours as mean
# [least, greatest].

# %% tags=["hide-input", "hide-output"]
def at_rates(paper, **part):
    """FDR of each selector at all rates, the paper's beside ours, where there is ours."""
    text = "quantity == 'fdr' and (method != 'nss' or (pair == 'remutated' and difference == 'l1'))"
    found = run.beside(paper, text, on=[*CELL, "rate", "method"], digits=1, **part, **NEAR)[["paper", "ours"]]
    return found.query("ours != ''").unstack("rate", sort=False).swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)


at_rates(table_5)

# %% [markdown]
# ### A part of SVHN
#
# The whole of SVHN is not at hand. We have 4,434 of its training images and 8,372 of its test images.
# The table has LeNet-5 trained and tested on this part, beside what the paper prints for the whole. No verdict
# rests on it.

# %% tags=["hide-input"]
at_rates(published.of_part(table_5), dataset="svhn_part")

# %% tags=["hide-input", "statements"]
by_part = records.frame("nss/fault_detection", dataset="svhn_part", **NEAR)
good = by_part.query("quantity == 'accuracy'")["value"].mean()
of_whole = published.of_part(published.table("nss", 1)).query("model == 'lenet5_nss' and quantity == 'accuracy'")["value"].item()
each = by_selector(by_part.query("quantity == 'fdr' and rate == 5"), *CELL)
at_five, over = each.mean(), evidence.spread(each["nss"] - each["random, expected"])
says(f"Trained on the part, LeNet-5 gets {good:.0f} % of its test images right; the paper prints {of_whole:.0f} % for "
     "the whole.",
     (f"With 5 % selected, NSS as the text describes it finds {at_five['nss']:.0f} %, and a random order "
      f"{at_five['random, expected']:.0f} %: no more than chance tells them apart. With the known original it finds "
      f"{at_five[KNOWN]:.0f} %, and DeepGini {at_five['gini']:.0f} %.",
      (over["low"] < 0).all() and (over["high"] > 0).all() and at_five["gini"] > at_five[KNOWN] > at_five["nss"] + 10))

# %% [markdown]
# ## The readings, beside DeepGini and the paper
#
# The first folded table has the mean FDR over the seeds, at each rate. The second is the same for the LeNets at the
# second stage of accuracy, after longer training. The networks for CIFAR-10 and ResNet-20 were not run at that stage.
# In both, the paper's rows are those of Table V.

# %% tags=["hide-input", "hide-output"]
def reading_table(**parameters):
    """FDR of each reading of NSS and of DeepGini, in the records with these parameters."""
    which = "quantity == 'fdr' and method in ('nss', 'gini')"
    ours = named(run.recorded(which, **parameters))
    paper = named(table_5.query(which)).merge(ours[CELL].drop_duplicates())
    return wide(pd.concat([rows.assign(selector=f"{whose}: " + rows["selector"])
                           for whose, rows in (("paper", paper), ("ours", ours))]),
                index=[*CELL, "selector"], columns="rate", order=dict(
                    model=table_5["model"].unique(), dataset=table_5["dataset"].unique()))


display(reading_table(**NEAR))
reading_table(candidates="random", recipe="nss_second")

# %% [markdown]
# ## If the original is known
#
# Then NSS is another method, with another result. The released code knows it; the difference and the layer are
# still those of the text here. The table says in how many cells of the records NSS is first, with some rivals' printed
# numbers in place of ours.

# %% tags=["hide-input", "records"]
first = pd.Series({listed(of_paper): firsts_if_known(ours, printed, of_paper)
                   for of_paper in ([], ["gini"], ["gini", "ats"], ["gini", "ats", "dsa"])}, name=f"cells of {len(ours)}")
first.to_frame().rename_axis("rivals with printed numbers")

# %% tags=["hide-input", "statements"]
less = less_printed(ours, printed)
beyond, deep = (less[name].xs(20, level="rate") for name in (KNOWN, "gini"))
known, theirs = ((table[nss] - table["gini"]).xs(20, level="rate") for table, nss in ((ours, KNOWN), (printed.loc[ours.index], "nss")))
early = (ours[KNOWN] - ours["gini"]).xs(5, level="rate")
says(
    (f"At 20 %, our FDR of NSS is {beyond.min():.0f} to {beyond.max():.0f} points above the printed one, and that of "
     f"DeepGini {deep.min():.0f} to {deep.max():.0f}. Our networks are wrong about as often as the paper's.",
     beyond.min() > 0 and deep.min() > 10 and less["random"].abs().max() < 8),
    (f"So NSS leads DeepGini by at most {rounded_up(known.max())} points here, and by {theirs.min():.0f} to {theirs.max():.0f} in the "
     "paper, mainly because the printed DeepGini is low.", (deep > beyond.abs()).mean() > 0.8 and (known < theirs).all()),
    (f"At 5 %, NSS leads DeepGini here too, in the mean of every network, by {early.min():.0f} to "
     f"{early.max():.0f} points.", (early > 0).all()),
    ("DeepGini, ATS and DSA are lower in the paper in every cell. The paper does not let us find out why.",
     (less[["gini", "ats", "dsa"]] > 0).all(axis=None)
     and first["none"] <= first["DeepGini"] < first["DeepGini, ATS and DSA"] == len(ours)))

# %% [markdown]
# ## The other selectors
#
# How many points are they above what a random order finds on average? Least and greatest over the four rates, in
# means over the seeds of the records:

# %% tags=["hide-input"]
None if ours.empty else headed(pd.DataFrame({
    method: ends((ours[method] - ours["random, expected"]).unstack("rate"), 0) for method in ("nac", "kmnc", "npc", "dsa")}))

# %% tags=["hide-input", "statements"]
over = {method: evidence.spread(detected[method] - detected["random, expected"]) for method in ("nac", "kmnc", "npc")}
clear = {method: (len(somewhere(over[method]["low"] > 0)), len(somewhere(over[method]["high"] < 0))) for method in ("kmnc", "npc")}
says(
    ("*Coverage.* The paper says that coverage finds few faults, sometimes about as few as random selection. NAC "
     f"comes near this, within {over['nac']['mean'].abs().max():.1f} points. Probably a few candidates cover all that NAC "
     "can, and the rest follow in random order.", over["nac"]["mean"].abs().max() < 3),
    *((f"At some rate, {shown(method)} is clearly above random order with {above} networks, and clearly below with {below}.",
       above > 0 and below > 0) for method, (above, below) in clear.items()))

# %% tags=["hide-input", "statements"]
over, over_gini = (evidence.spread(detected["dsa"] - detected[other]) for other in ("random, expected", "gini"))
best, behind = everywhere(over_gini["low"] > 0), over_gini["mean"].xs("cifar10", level="dataset")
near = (printed["dsa"] - printed["random"]).loc[lenets(ours.index)]  # in the paper
says(
    ("*DSA*, ordered by its score, is clearly above random order with every network at every rate, by at least "
     f"{rounded_down(over['mean'].min())} points. In the paper it is near random with the LeNets.",
     (over["low"] > 0).all() and near.abs().max() < 5),
    (f"With {networks(best)}, DSA finds clearly more faults than DeepGini at every rate. With the networks of CIFAR-10 "
     f"it finds {-behind.max():.0f} to {-behind.min():.0f} points fewer.", len(best) > 0 and behind.max() < -5))

# %% tags=["hide-input", "statements"]
unlike, alike = found_by_both(rows, "gini", "margin"), found_by_both(rows, "pd", "margin")
says(
    ("*The same faults.* Two selectors can find equally many faults, but not the same ones. Take all faults that "
     f"one of two finds among its first fifth: PD and the margin both find at least {rounded_down(100 * alike.min())} % "
     f"of them, DeepGini and the margin as few as {100 * unlike.min():.0f} %.", alike.min() > unlike.max()),
    ("Yet the three find about as many faults: at 20 % their FDRs are within 5 points of each other.",
     np.ptp(ours.xs(20, level="rate")[["gini", "pd", "margin"]], axis=1).max() < 5 and unlike.min() < 0.7))

# %% tags=["hide-input", "statements"]
confident = by_selector(rows.query("quantity == 'confident_fdr' and rate == 10"), *CELL)
of_all, of_sure = (apart(found, "gini", "random") for found in (detected.xs(10, level="rate"), confident))
known, dsa, text = (evidence.spread(confident[one] - confident[other])
                    for one, other in ((KNOWN, "gini"), ("dsa", "gini"), ("nss", "random")))
says(
    (f"*Confident faults.* At 10 %, DeepGini is {span(of_all['points'])} points above random selection. Among candidates with a "
     f"largest probability above 0.9 it is only {span(of_sure['points'])} points above.", (of_sure < of_all)["points"].all()),
    (f"But faults are rarer there, and it still finds {span(of_sure['times'], 1)} times as many as random selection.",
     of_sure["times"].mean() > 0.7 * of_all["times"].mean()),
    ("Among these, NSS with the known original finds more than DeepGini in the mean of every network. By the seeds of each "
     f"network alone, this is clear in {(known['low'] > 0).sum()} of {len(known)}. By the same measure DSA is clearly ahead in "
     f"{(dsa['low'] > 0).sum()}, and it finds fewer in the mean of {(dsa['mean'] < 0).sum()}.",
     (known["mean"] > 0).all() and 0 < (dsa["mean"] < 0).sum() < len(dsa) / 2),
    ("As the text describes it, NSS finds fewer of them than random selection in the mean of every network, but "
     f"clearly so in {(text['high'] < 0).sum()}.", (text["mean"] < 0).all() and (text["high"] < 0).mean() < 0.5))

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts({"had the original been known": {"pair": "original"}})

# %% tags=["hide-input", "statements"]
best, gini = (evidence.state(f"nss-fdr-{name}") for name in ("best", "gini"))
abstract = ours.loc[("mnist", "lenet1_nss", 5), "nss"]
says(
    (f"**What it means.** As the text describes it, the FDR of NSS is {chance['mean'].min():+.0f} to {chance['mean'].max():+.0f} "
     f"points from what a random order finds on average. It is clearly higher only with {networks(somewhere(chance['low'] > 0))}.",
     len(more) < len(fewer)),
    f"The claim that it beats every other selector is *{best}*; the claim that it is well above DeepGini is *{gini}*.",
    (f"The paper's abstract names one case, MNIST with LeNet-1 at 5 %, and an FDR of 81.8 %. Ours is {abstract:.1f} %.",
     abstract < 30))

# %% tags=["hide-input", "statements"]
had_best, had_gini = (evidence.state(f"nss-fdr-{name}", pair="original") for name in ("best", "gini"))
short = less_printed(ours, printed)[KNOWN] < -1
whole = by_selector(rows[rows["quantity"] == "apfd"], *CELL)
whole = evidence.spread(whole["gini"] - whole[KNOWN])
says(
    f"With the known original, the verdicts are *{had_best}* and *{had_gini}*.",
    (f"Its FDR is more than a point below the printed one in only {short.sum()} of {len(ours)} cells.", 0 < short.sum() < 4),
    ("Where NSS leads, it leads early. Over the whole order, DeepGini is ahead of it in every network, by "
     f"{whole['mean'].min():.0f} to {whole['mean'].max():.0f} points of APFD.", (whole["low"] > 0).all()))

# %% [markdown]
# **For your own unlabelled images**, use DeepGini or the least confidence; they cost one {term}`pass`. If
# you have the training images and fear confident faults, try DSA as well. First label a few images, to
# see which of the two finds more with your network.

# %% [markdown]
# ## Exercises
#
# **1. Think.** Give NSS the *wrong* originals: `originals=data.images.flip(0)`. What do you expect?
#
# ```{admonition} Solution
# :class: dropdown
# The score then measures the distance of two unrelated images. We expect that the FDR falls. If it falls
# to about that of random order, then clean images as such do not help: one needs *the* clean image. We
# have no record of this run.
# ```
#
# **2. Think.** Why can the FDR at 20 % not be 100 % for a network that gets 15 % of the candidates
# wrong?
#
# ```{admonition} Solution
# :class: dropdown
# There are not enough faults: the best order has $15 / 20 = 75\,\%$. Compare `faults.best_rate`. A low
# FDR can mean a good network; that is why the best possible order is in the table.
# ```
#
# **3. Think.** Take the candidates of one mutation only, and compare DeepGini with NSS as in
# [the next chapter](03_one_mutation). Which part of the lead is left?
#
# ```{admonition} Solution
# :class: dropdown
# What remains is the part within a mutation, in the last two columns of the upper table. In our records,
# the mean of this AUC over the mutations is above 0.5 with the known original, but below the AUC over all
# candidates. Without the original, it is near 0.5. The next chapter compares NSS with DeepGini.
# ```
#
# **4. Code.** Write `my_fdr(wrong, order, rate)`: the share of faults among the first part of an
# order. The cell says whether it is right.

# %%
my_fdr = None  # your function: booleans (N,), indices (N,), a share

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    truth, first_half = np.array([True, False, False, True]), [3, 1, 0, 2]
    check(answer, faults.fault_detection_rate, (truth, first_half, 0.5), (truth, first_half, 0.25))


is_right(my_fdr)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_fdr(wrong, order, rate):
#     return wrong[order[:round(rate * len(order))]].mean()
#
# is_right(my_fdr)
# ~~~
#
# The order within the selection plays no part, since all selected images get a label.
# ```
