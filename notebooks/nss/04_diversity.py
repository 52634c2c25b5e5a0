# %% [markdown]
# # RQ2: how many kinds of fault?
#
# **The claim** (NSS IV.C.2, Fig. 4, Table VII). A kind of fault is a pair (true class, predicted
# class). Up to 20 % selected, NSS shows a larger share of all kinds than every other selector, and it
# is the only one above random selection everywhere.
#
# **What you will learn.** Why finding many faults and finding many kinds of fault are two aims; and what
# a single area under a curve hides.

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of Table I; nss_second: the other stage
seed = 0  # of the training, of the mutations and of the selectors
references = 10000  # training images that KMNC and DSA look at; NPC at the first 2,000
profile = "embedded"  # embedded: at most 1,000 candidates; paper: the whole test set, and a record

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from dnnlib import inference, published, selection, training
from dnnlib.book import plots
from dnnlib.book.experiments import Experiment
from dnnlib.book.selection_plots import curves, named
from dnnlib.book.tables import headed, wide
from dnnlib.data import load, profile_limit
from dnnlib.measures import faults
from dnnlib.perturb import mutations
from dnnlib.selection import Key

plots.style()
run = Experiment("nss/diversity", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed, candidates="random", references=references)

# %%
data = load(dataset, limit=profile_limit(profile))
reference = load(dataset, "train").images[:references]
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed)
candidates = mutations.mutate(data.images, seed=seed).images
predicted = inference.predict(model, candidates).argmax(1)

# %% [markdown]
# ## Kinds of fault
#
# With $K$ classes there are $K(K-1)$ kinds, 90 for ten classes; not all of them occur. The fault type
# coverage rate (FTCR) is the share of those that occur among all candidates which the selected ones
# show. Three faults of two kinds, by hand:

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
# The same selectors and options as in [the chapter on fault detection](02_fault_detection).

# %%
table_iv = {Key(name): selector for name, selector in
            selection.table_iv(reference, seed=seed).items()}
readings = selection.nss_readings(data.images, seed=1000 + seed, differences=["l1"])
orders = selection.orders(model, candidates, table_iv | readings)
ftcr = faults.diversity_table(types, orders, range(1, 21))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of all kinds of fault found against the share of candidates labelled, for the run above.", "name": "fig-nss-diversity"}}
run.add(selection.tidy(ftcr, "ftcr"))
curves(run.live, xlabel="candidates labelled (%)", ylabel="kinds of fault found (%)")
plt.show()

# %% [markdown]
# Table VII condenses each curve to its mean over 1, 2, ..., 20 %.

# %%
areas = ftcr.mean(axis=1).to_frame(20)
leads = selection.leads(areas, {"lead": table_iv, "over_random": [Key("random")]})

# %% tags=["hide-input"]
run.add(selection.tidy(areas, "area"))
run.add(leads)
run.save(data)
headed(areas.rename(columns={20: "area"}).rename_axis("selector").sort_values(
    "area", ascending=False).round(1))

# %% [markdown]
# ## Table VII, beside the paper's
#
# NSS as the text has it; then both pairs from the records. CIFAR-10 is a JPEG copy.

# %% tags=["hide-input"]
run.beside(published.table("nss", 7), "quantity == 'area' and pair != 'original'",
           on=["dataset", "model", "method"], digits=1, recipe="nss")

# %% tags=["hide-input"]
ours = named(run.recorded(recipe="nss"))
wide(ours, "quantity == 'area'", index="selector", columns=["dataset", "model"])

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 4 of the paper from the records: kinds of fault found against candidates labelled, mean over the seeds, for networks near the accuracy of Table I.", "name": "fig-nss-diversity-records"}}
curves(ours.query("quantity == 'ftcr'"), xlabel="labelled (%)", ylabel="kinds of fault (%)")
plt.show()

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** In the paper NSS shows the most kinds of fault. Here, with the pair of the text, it
# shows fewer than random selection; with the known original about as many as random selection, on some
# networks more and on some fewer. That follows from what its score is: it takes the candidates of the
# harshest mutation first, and one mutation leads to few confusions, over and over. ATS, which was made
# for diversity, leads; DeepGini, which was not, is close on MNIST and CIFAR-10. So a method can find many
# faults and few kinds of them, and a tester should look at both numbers.

# %% [markdown]
# ## Exercises
#
# **1.** A selector finds a hundred faults of the same kind, another ten faults of ten kinds. Which would
# you rather repair a network with?
#
# ```{admonition} Solution
# :class: dropdown
# It depends on what the hundred are: a frequent confusion may matter most in use, and a hundred examples
# of it teach more than one. Ten kinds say more about where else to look. FDR and FTCR answer two
# questions.
# ```
#
# **2.** Random selection shows most of the kinds with a fifth of the candidates. Why so many?
#
# ```{admonition} Solution
# :class: dropdown
# A kind that occurs $k$ times is missed by a random fifth with probability about $0.8^k$: 11 % for
# $k = 10$. Only rare kinds are missed.
# ```
