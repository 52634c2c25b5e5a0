# %% [markdown]
# # Which claims hold? The scoreboard
#
# Every {term}`claim` of the five papers became a rule. Its threshold is a number that the paper prints, or
# what its words mean; where it gives neither, we chose one. The plots of the verdicts name each. A *cell* is one
# combination of dataset, network and measure: a dot below. It holds (green) if its whole 95 %
# {term}`interval` over at least three random seeds is on the claim's side. It fails (orange) if the interval
# is on the other side. Otherwise it is open (gray). An empty dot is a cell of the paper that was not run.
# Point at a dot, or go to it with the tab key, to see its mean, its interval, its seeds, and the command
# that runs it. Each claim leads to the {term}`verdict` in its chapter, where each cell is drawn as a line
# beside the paper's value.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The claims of the five papers by verdict, from the committed records.", "name": "fig-scoreboard"}}
import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import display

from dnnbook import published
from dnnbook.chapters import board
from dnnbook.chapters.statements import says
from dnnbook.display import plots, tables, verdict_plots
from dnnbook.records import extent, records, verdicts

plots.style()
PAPERS = {"nsatp": "NSATP", "peacepact": "PEACEPACT", "nss": "NSS",
          "deepsensor_sensitivity": "DeepSensor,\nsensitive neurons",
          "deepsensor_excitable": "DeepSensor,\nexcitable neurons"}
verdict_plots.bar(verdicts.scoreboard().replace({"paper": PAPERS}))
plt.show()

# %% [markdown]
# *Reproduced*: every cell that was run holds, and most of the paper's cells were run; *where run*:
# fewer were run. *Mostly*: most of them hold and none is known to fail, after correction for many tests. *Partly, some fail*: some hold and
# some fail. *Not reproduced*: some fail and none is known to hold. *Too few runs*: more seeds may decide.
# *Nothing to compare*: no cell can tell anything apart. *Not run*: no cell
# has three seeds or more. A verdict is *provisional* until each of its cells has five seeds. Where a claim fails, its chapter says what we know of the reason. [How to read this
# book](../../book/how_to_read.md) has the rules, and [a page of amendments](05_amendments) has
# those that changed. {term}`NSS` is judged as its text describes it. [Its chapter on fault
# detection](../nss/02_fault_detection.ipynb) says what the released code assumes beyond the text,
# and what it then finds.

# %% tags=["hide-input"]
for paper in board.boards({code: name.replace("\n", " ") for code, name in PAPERS.items()}):
    display(paper)

# %% [markdown]
# ## What was run
#
# The table says how many of each paper's tables and figures are *whole*, *partial* or *blank*. *Whole* means
# that every cell was run with at least three seeds, or that code alone makes it. It also says how many of their cells were run. Most runs
# of VGG16 on CIFAR-10 used a copy whose images were re-encoded as JPEG, so their numbers are not those of the original
# bits. The size of the runs stands behind each verdict above.

# %% tags=["hide-input"]
extent.states().rename(index=published.PAPERS).rename_axis(index=None, columns=None).rename(
    columns={"run": "cells run", "by_part": "more by a part of SVHN", "possible": "cells that our data allow",
             "cells": "the paper's cells"})

# %% tags=["hide-input", "statements"]
items = extent.items().query("cells > 0")
allowed = items.query("possible > 0")
says(f"Our data allow {items['possible'].sum()} of the {items['cells'].sum()} cells, and {items['run'].sum()} of them "
     f"were run. So far as our data go, {int((allowed['run'] >= allowed['possible']).sum())} of {len(allowed)} tables "
     "and figures that rest on runs are whole. The other cells need the whole of SVHN, the voices of VCTK, or, of "
     f"ImageNet, its training set or more than one image of a class. For {items['by_part'].sum()} of those with SVHN a part of it stands in. They are counted "
     "apart, and no verdict rests on them.")

# %% [markdown]
# These are the networks behind most tables and figures, trained as for the verdicts: with the paper's numbers where
# it prints them, else with ours. DeepSensor's VGG16 is trained by NSS's recipe, but on the JPEG copy. Others
# trained its ResNet-20 and its MobileNet. The accuracy is that on the whole test set. For ImageNet, it is the
# accuracy on a photograph of each class. Many of these were among its training images, so it is too high.

# %% tags=["hide-input"]
RAN = {"NSATP": records.frame("nsatp/rq1", recipe="nsatp"),
       "PEACEPACT": records.frame("peacepact/correlation", recipe="nsatp", split="test"),
       "NSS": records.frame("nss/fault_detection", recipe="nss", candidates="random"),
       "DeepSensor, sensitive neurons": records.frame("deepsensor_sensitivity/test_errors"),
       "DeepSensor, excitable neurons": pd.concat(
           [records.frame("deepsensor_excitable/test_errors"),
            records.frame("deepsensor_excitable/speakers").query("table == 6")])}
CELL = ["paper", "dataset", "model"]
found = pd.concat([table.query("quantity == 'accuracy'").assign(paper=paper)
                   for paper, table in RAN.items()])[[*CELL, "seed", "value"]].drop_duplicates()
assert not found.duplicated([*CELL, "seed"]).any(), "two recipes of one network"
share = found["value"].astype(float)  # of 1, or in percent
found = found.assign(value=share.where(share > 1, 100 * share)).groupby(CELL, sort=False)
tables.headed(found.agg(seeds=("seed", "nunique"), accuracy=("value", "mean")).round(1).rename(
    columns={"accuracy": "accuracy (%)"}))
