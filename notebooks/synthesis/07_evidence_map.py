# %% [markdown]
# # What do the verdicts stand on? The evidence map
#
# We judge a {term}`claim` cell by cell. A {term}`cell` is one combination of dataset, network and measure
# for which the paper prints a value or makes a claim. Below, each cell of each claim is a square. An empty square was
# not run.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Every cell of every claim, paper by paper: those that hold, are open, fail, and were not run.", "name": "fig-evidence"}}
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Markdown, display

from dnnbook import published
from dnnbook.chapters import evidence_map
from dnnbook.chapters.statements import says
from dnnbook.display import plots, tables, verdict_plots
from dnnbook.records import origins

plots.style()
verdict_plots.squares(verdict_plots.outcomes().rename(index=published.PAPERS))
plt.show()

# %% [markdown]
# ## Network by network
#
# This table orders the same cells by where they come from. It has a row for each network and dataset, and a
# column for each experiment; the heading of a column leads to its chapter. A bar shows how many cells of the
# claims hold (green), are open (gray) and fail (orange). A time means that nobody has run this yet. It says
# about how long three {term}`seeds <seed>` would take on one core, estimated from other networks. A field is
# hatched if the paper prints no value for it, and we planned no run. Point at a field, or go to it with the
# tab key, to see the number of seeds and the size of our runs. In brackets stands the size that the paper
# gives.

# %% tags=["hide-input"]
found = {name: evidence_map.fields(paper) for paper, name in published.PAPERS.items()}
for name, fields in found.items():
    display(Markdown(f"**{name}**"), evidence_map.Map(fields))

# %% [markdown]
# ## Deciding what is open
#
# A cell is open if the interval over its seeds lies on both sides of what the claim asks for. More seeds
# make the interval shorter. Suppose that the mean and the spread of each cell stay as they are. How many
# seeds would then decide it?

# %% tags=["hide-input", "records"] mystnb={"figure": {"caption": "Cells that would still be open if every cell had so many seeds, with the mean and the spread of the seeds that were run.", "name": "fig-left-open"}}
still = verdict_plots.open_cells()
still["paper"] = still["paper"].map(published.PAPERS)
verdict_plots.left_open(still)
plt.show()

# %% tags=["hide-input", "statements"]
five, ten, more = ((still["deciding"] <= 5).sum(), (still["deciding"] <= 10).sum(),
                   (still["deciding"] > 30).sum())
says(f"{len(still)} cells are open. Five seeds for each would decide {five} of them, and ten {ten}. Even with thirty, "
     f"{more} would be open: for their spread, their mean is too near to what the claim asks for, or a value is not "
     "defined.",
     "This is a guess: the spread of three seeds says little about that of ten.")

# %% tags=["hide-input", "hide-output"]
tables.sentences(still.sort_values("deciding", kind="stable", ignore_index=True).rename(
    columns={"deciding": "seeds that would decide it"}).replace(float("inf"), "more than 30"))

# %% [markdown]
# ## Made on one machine?
#
# The seeds of a cell should differ in nothing but the seed. Where seeds were added later, the version of
# PyTorch, the processor or the device may differ too, and with them the last digits, from which training can
# make another network ([why](../../book/replayed.md)). These are all such cells. A cell has one line for each kind
# of machine, with the seeds that were made on it.

# %% tags=["hide-input"]
apart = origins.mixed()
tables.sentences(apart)

# %% [markdown]
# ## Filling a blank
#
# `dnnbook scoreboard --missing` lists the blanks with their commands, the quickest first. It also lists
# larger runs of what was run: more inputs, other settings, more seeds. A sweep file with all of them comes
# with the project; with a GPU or a cluster, this runs what is left:
#
# ```
# dnnbook sweep sweeps/blank.toml --list
# dnnbook sweep sweeps/blank.toml --scheduler tcp://head:8786
# ```
#
# The commands that take longest, in hours for the seeds of the sweep (a GPU's are estimated from the number of passes):

# %% tags=["hide-input"]
left = evidence_map.missing(pd.concat(found.values()))
largest = left.query("state != 'larger'").tail(8)[::-1]
tables.sentences(largest.reset_index(drop=True))

# %% [markdown]
# What was run, but not with as many inputs, points or seeds as the paper has, or not in another setting:

# %% tags=["hide-input", "hide-output"]
tables.sentences(left.query("state == 'larger'").drop(columns="state").reset_index(drop=True))

# %% [markdown]
# Why are the blanks not run? We have neither the whole of SVHN, nor VCTK. Of ImageNet, we have neither the training set
# nor more than one image of a class, and of MobileNet the weights of a narrower network only. What is blank of
# VGG16 on CIFAR-10 and of the networks on ImageNet takes hours, days or weeks on one core. A part of SVHN has a line of
# its own in the map of NSS. What is blank of the LeNets and of ResNet-20 needs nothing but the time that the map
# gives. In place of {term}`DeepSensor`'s thirty speakers, we use the six of the Free Spoken Digit Dataset.
