# %% [markdown]
# # RQ2: what does a selector cost?
#
# **The claim** (NSS IV.C.4, Fig. 5). NSS takes about ten seconds; selection by NAC or KMNC takes hundreds
# of seconds to hours. Of all selectors only DeepGini is faster than NSS.
#
# **What you will learn.** To measure the cost of a method apart from the cost of one program that
# implements it: most of the hours are a greedy search that can be had in seconds.

# %% tags=["parameters"]
dataset = "digits"  # a name from `dnnlib data`, or a folder of images
model_name = "lenet1_nss"  # lenet1_nss, lenet5_nss, resnet20, or another of `dnnlib models`
recipe = "nss"  # nss: trained to about the accuracy of Table I; nss_second: the other stage
seed = 0  # of the training, of the mutations and of the selectors
references = 10000  # training images that KMNC and DSA look at; NPC at the first 2,000
profile = "embedded"  # embedded: at most 1,000 candidates; paper: the whole test set, and a record

# %% tags=["hide-input"]
import time

import matplotlib.pyplot as plt

from dnnlib import inference, selection, training
from dnnlib.book import plots
from dnnlib.book.experiments import Experiment
from dnnlib.book.selection_plots import curves
from dnnlib.book.tables import wide
from dnnlib.data import load, profile_limit
from dnnlib.perturb import mutations

plots.style()
run = Experiment("nss/overhead", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed, references=references)

# %%
data = load(dataset, limit=profile_limit(profile))
reference = load(dataset, "train").images[:references]
model = training.trained(model_name, dataset, recipe_name=recipe, seed=seed)
candidates = mutations.mutate(data.images, seed=seed).images
selectors = selection.table_iv(reference, seed=seed)
selectors["nss"] = selection.selector("nss", seed=1000 + seed)

# %% [markdown]
# ## Time against the number of candidates
#
# Each selector orders the first eighth, quarter, half and then all of the candidates, from images to
# order, the passes through the network included, and twice, of which the faster counts. One pass by
# itself stands beside them.

# %%
def seconds(action) -> float:
    """The faster of two runs."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return min(taken)


taken = {}
for part in (8, 4, 2, 1):
    x = candidates[:len(candidates) // part]
    taken["one pass", len(x)] = seconds(lambda: inference.predict(model, x))
    for method, selector in selectors.items():
        taken[method, len(x)] = seconds(lambda: selector.order(model, x))

# %% tags=["hide-input", "nbval-ignore-output"] mystnb={"figure": {"caption": "Seconds from images to order, against the number of candidates, for the run above.", "name": "fig-nss-overhead"}}
for (method, size), value in taken.items():
    run.add({"seconds": value}, method=method, candidates=size)
curves(run.live, x="candidates", xlabel="candidates", ylabel="seconds", log=True,
       dashed=["one pass"])
plt.show()

# %% [markdown]
# The paper counts random selection as zero. As it says, the time of NSS does not depend on the share
# selected; nor does that of the others here, since all of them order every candidate.

# %% tags=["hide-input"]
for method in selectors:
    if method != "nss":
        run.add({"times_nss": taken[method, len(candidates)] / taken["nss", len(candidates)]},
                method=method, rate=20)
run.save(data)

# %% [markdown]
# ## Over all records
#
# Seconds for 10,000 candidates, mean over the seeds, on two processor cores; then the same as multiples
# of NSS. CIFAR-10 is a JPEG copy.

# %% tags=["hide-input"]
ours = run.recorded()
for which in ("quantity == 'seconds' and candidates == 10000", "quantity == 'times_nss'"):
    display(wide(ours, which, index="method", columns=["dataset", "model"], digits=2))

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** NSS costs its two passes and little more, as the paper says, and DeepGini one. The
# order of magnitude between NSS and the coverage-guided selectors is not there: at 10,000 candidates
# NAC takes less time than NSS, KMNC less than twice as much, and the dearest selector, NPC, about three
# times as much. With each neuron's section as one integer, and the gains of all candidates updated by an
# inverted list, the same greedy order is a matter of additions. The hours in the paper are those of a
# program, not of the method. The networks of our records are the LeNets, whose passes are cheap; where a
# pass is dear, it is what a selector costs, and NSS needs two where NAC and DeepGini need one.

# %% [markdown]
# ## Exercise
#
# Additional coverage (CAM) with $S$ candidates and $N$ neurons: how many sections can be covered for the
# first time in all, and what does that say about the work of all updates together?
#
# ```{admonition} Solution
# :class: dropdown
# Every candidate covers $N$ items, one a neuron. When an item is covered for the first time, the gain of
# each candidate that also covers it falls by one; each (candidate, item) pair is touched once, so all
# updates together are at most $S N$. Beside them stand only the $S$ searches for the largest gain.
# ```
