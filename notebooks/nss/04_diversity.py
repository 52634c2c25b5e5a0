# %% [markdown]
# # How many kinds of fault are found?
#
# **The claim** (NSS RQ2, IV.C.2, Fig. 4, Table VII). A kind of fault is a pair (true class, predicted class). When up
# to 20 % of the {term}`candidates <candidate>` are selected, {term}`NSS` shows a larger share of all kinds than every
# other selector. It is the only selector that is above random selection everywhere.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of NSS's Table I; nss_second: its other stage
seed = 0  # of the training, and of all else that is random
references = 10000  # training images that KMNC and DSA look at; NPC at the first 2,000
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dnnbook import published, reproducible, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.selection_plots import curves, named
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies.findings.nss import KNOWN, always_above, apart, by_selector
from dnnbook.studies.ordering import SelectorKey
from dnnbook.words import listed, networks, rounded_down, span
from dnnlib import inference
from dnnlib.measures import faults
from dnnlib.perturb import mutations

plots.style()
run = Experiment("nss/diversity", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed, candidates="random", references=references)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("nss-diversity-best")

# %% tags=["hide-input", "statements"]
CELL = ["dataset", "model"]
area = by_selector(records.frame("nss/diversity", recipe="nss").query("quantity == 'area'"), *CELL)
over = {who: evidence.spread(area[who] - area["random"]) for who in area.drop(columns="random")}
text, known = over["nss"], over[KNOWN]
beyond = known.query("low > 0").index  # where the known original helps by more than chance
best = area.groupby(CELL).mean()
says(
    ("**The answer.** ATS, which was made for diversity, shows the most kinds of fault in the mean of every network.",
     best.idxmax(axis=1).eq("ats").all()),
    ("As the text describes it, NSS shows fewer than random selection in the mean of every network, by "
     f"{-text['mean'].max():.0f} to {-text['mean'].min():.0f} points of area.",
     (text["mean"] < 0).all() and (text["high"] < 0).any()),
    (f"With the known original it is clearly above random selection with {networks(beyond)} alone.", 0 < len(beyond) < 3))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The paper's Fig. 4 from the records: kinds of fault found against candidates labelled. Mean over the seeds, for networks near the accuracy of Table I.", "name": "fig-nss-diversity-records"}}
curves(run.recorded("quantity == 'ftcr'", recipe="nss"), xlabel="labelled (%)", ylabel="kinds of fault (%)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** Why finding many faults and finding many kinds of fault are two aims.

# %%
data = load(dataset, limit=profile_limit(profile))
train = load(dataset, "train")
reference, classes = train.images[:references], train.labels[:references]
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed, device=device)
candidates = mutations.mutate(data.images, seed=seed).images
predicted = inference.predict(model, candidates).argmax(1)

# %% [markdown]
# ## Kinds of fault
#
# With $K$ classes there are $K(K-1)$ kinds, 90 for ten classes; not all of them occur. Count the
# kinds that occur among all candidates. The fault type coverage rate (FTCR) is the share of these
# kinds that the selected candidates show. An example by hand has three faults of two kinds:

# %% tags=["nbval-check-output"]
kinds = faults.fault_types([0, 1, 1, 2], [1, 1, 0, 0], classes=3)
print("kinds:", kinds.tolist())
print("FTCR after each candidate:",
      faults.fault_type_coverage(kinds, [2, 1, 3, 0], [0.25, 0.5, 0.75, 1.0]).round(2).tolist())

# %%
types = faults.fault_types(data.labels, predicted, len(data.classes))
print(f"{(types >= 0).sum()} faults of {len(set(types) - {-1})} kinds among {len(types)} candidates")

# %% [markdown]
# ## Orders
#
# We use the same selectors and options as in [the chapter on fault detection](02_fault_detection). One random
# order would be an accident, so we compute what random orders show on average. Of $N$ candidates, $t$ are
# taken, and a kind with $n_k$ faults is missed if none of them is among these. So the share that is found is,
# over all kinds,
#
# $$\frac{1}{|K|} \sum_{k \in K} 1 - \binom{N - n_k}{t} \Big/ \binom{N}{t} .$$

# %%
table_iv = {SelectorKey(name): selector for name, selector in
            studies.table_iv(reference, classes, seed=seed).items() if name != "random"}
readings = studies.nss_readings(data.images, seed=1000 + seed, differences=["l1"])
orders = studies.orders(model, candidates, table_iv | readings)
ftcr = faults.diversity_table(types, orders, range(1, 21))
ftcr.loc[SelectorKey("random")] = 100 * faults.expected_coverage(types, ftcr.columns / 100)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of all kinds of fault found against the share of candidates labelled, for the run above.", "name": "fig-nss-diversity"}}
run.add(studies.tidy(ftcr, "ftcr"))
curves(run.live, xlabel="candidates labelled (%)", ylabel="kinds of fault found (%)")
run.show()

# %% [markdown]
# Table VII condenses each curve to its mean over 1, 2, ..., 20 %.

# %%
areas = ftcr.mean(axis=1).to_frame(20)
leads = studies.leads(areas, {"lead": [*table_iv, SelectorKey("random")], "over_random": [SelectorKey("random")]})

# %% tags=["hide-input"]
run.add(studies.tidy(areas, "area"))
run.add(leads)
reproducible.note("kinds")
run.save(data, device=device)
headed(areas.rename(columns={20: "area"}).rename_axis("selector").sort_values("area", ascending=False).round(1))

# %% [markdown]
# ## Table VII, beside the paper's
#
# First comes NSS as the text describes it. Then come both pairs from the {term}`records <record>`:
# a candidate is compared with a new mutation of itself, or with the known original. The records of VGG16
# are older: their random order is one drawn order, and their CIFAR-10 is a JPEG copy.

# %% tags=["hide-input"]
display(run.beside(published.table("nss", 7), "quantity == 'area' and pair != 'original'",
                   on=["dataset", "model", "method"], digits=1, recipe="nss"))
wide(named(run.recorded(recipe="nss")), "quantity == 'area'", index="selector", columns=["dataset", "model"])

# %% [markdown]
# ### A part of SVHN
#
# The whole of SVHN is not at hand. We have 4,434 of its training images and 8,372 of its test images.
# The table has LeNet-5 on this part, beside what the paper prints for the whole. No verdict rests on it.

# %% tags=["hide-input"]
run.beside(published.of_part(published.table("nss", 7)), "quantity == 'area' and pair != 'original'",
           on=["dataset", "model", "method"], digits=1, dataset="svhn_part", recipe="nss").query("ours != ''")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts({"had the original been known": {"pair": "original"}})

# %% tags=["hide-input", "statements"]
verdict, had = (evidence.state("nss-diversity-best", pair=pair) for pair in ("remutated", "original"))
below, under = (evidence.cells_that("fails", "nss-diversity-above-random", pair=pair) for pair in ("remutated", "original"))
gained = evidence.cells_that("holds", "nss-diversity-above-random", pair="original")
says(
    f"**What it means.** The claim that NSS shows the most kinds is *{verdict}* as the text describes it, and *{had}* with the "
    "known original.",
    (f"As described, it is below random selection, by more than chance, with {networks(below)}.", len(below) > 0),
    ("With the known original it is above random selection with some networks and below with others: by more than "
     f"chance above it with {networks(gained)}, and below it with {networks(under)}.",
     known["mean"].min() < 0 < known["mean"].max() and 0 < len(gained) < 3 and len(under) > 0))

# %% tags=["hide-input", "statements"]
behind = apart(area, "ats", "gini")["points"]
alone = evidence.verdict("nss-diversity-alone").cells.set_index("method")
says(
    (f"Nor is NSS the only selector above random selection everywhere. {listed(always_above(over))} are, each time by more than "
     "chance, and NSS is not, whether the original is known or not.", {"ats", "gini"} <= {*always_above(over)}
     and text["mean"].min() <= 0 and known["mean"].min() <= 0),
    ("The verdict on the claim that NSS is the only one leaves ATS and DeepGini open. It must, as long as they are above random "
     "selection with every network and seed: then their share of the networks is 1, and no share is above 1.",
     (alone.loc[["ats", "gini"], "mean"] == 1).all() and (alone.loc[["ats", "gini"], "outcome"] == "open").all()),
    (f"DeepGini was not made for diversity; it is {span(behind)} points behind ATS.", (behind > 0).all()))

# %% tags=["hide-input", "statements"]
fdr = by_selector(records.frame("nss/fault_detection", recipe="nss", candidates="random").query(
    "quantity == 'fdr' and rate == 20"), *CELL)
fresh, told = (evidence.spread(fdr[who] - fdr["random, expected"]) for who in ("nss", KNOWN))
more = fresh.query("low > 0").index
says(
    ("A method can find more faults and fewer kinds of fault than random selection: NSS as the text describes it does, with "
     f"{networks(more)} at 20 %. So a tester should look at both numbers.",
     len(more) > 0 and (text.loc[more, "high"] < 0).all()),
    ("With the known original it finds at least "
     f"{rounded_down(told['mean'].min())} points more faults at 20 % than a random order, but clearly more kinds only "
     f"with {networks(beyond)}.", (told["low"] > 0).all() and 0 < len(beyond) < 3),
    "Perhaps it takes the candidates of the harshest mutations first, and one mutation leads to the same few confusions over "
    "and over. Without the original the score does not know the mutation; our records cannot tell why it shows few kinds then.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** One selector finds a hundred faults of the same kind; another finds ten faults of
# ten kinds. Which faults would you rather use to repair a network?
#
# ```{admonition} Solution
# :class: dropdown
# It depends on the hundred faults. If the network often confuses these two classes in use, that fault
# may matter most, and a hundred examples may teach the network more than one example does. Ten kinds tell
# you more about where else to look. FDR and FTCR answer two different questions.
# ```
#
# **2. Think.** In the records, which take the whole test set, a random fifth of the candidates already shows
# most kinds of fault. Why so many?
#
# ```{admonition} Solution
# :class: dropdown
# A random fifth misses a kind that occurs $k$ times with a probability of about $0.8^k$, which is
# 11 % for $k = 10$. So the kinds that it misses are mostly rare ones.
# ```
#
# **3. Code.** A kind of fault is a pair of a true class and a wrong predicted class. Write
# `my_kinds(labels, predicted)`, which counts the kinds that occur. The cell says whether it is right.

# %%
my_kinds = None  # your function of two lists of classes

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""

    def kinds(labels, predicted):
        types = faults.fault_types(labels, predicted, 10)
        return len({int(kind) for kind in types if kind >= 0})

    check(answer, kinds, ([1, 1, 2, 3], [1, 2, 2, 2]), ([4, 4, 4, 9], [9, 9, 1, 4]))


is_right(my_kinds)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_kinds(labels, predicted):
#     return len({(a, b) for a, b in zip(labels, predicted) if a != b})
#
# is_right(my_kinds)
# ~~~
#
# A 4 that is taken for a 9 and a 9 that is taken for a 4 are two different kinds.
# ```
