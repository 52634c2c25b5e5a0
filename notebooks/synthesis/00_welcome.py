# %% [markdown]
# # Which inputs break a neural network?

# %% tags=["remove-input"]
import matplotlib.pyplot as plt
import torch

from dnnbook import interactive, published, studies, training
from dnnbook.chapters.statements import says
from dnnbook.data import load
from dnnbook.display import plots, verdict_plots
from dnnbook.display.cards import Card, cards
from dnnbook.display.colours import colour
from dnnbook.records import records, verdicts
from dnnbook.studies.findings.nss import KNOWN, by_selector
from dnnbook.studies.findings.synthesis import as_published
from dnnbook.words import rounded_up, shown, span
from dnnlib import fuzzing, inference
from dnnlib.measures import uncertainty
from dnnlib.perturb import patches

plots.style()
data = load("mnist_small")
model = training.trained("lenet5", "mnist_small", seed=0)
right = studies.benign(model, data.images, data.labels, seed=0)[:200]
x, y = data.images[right], data.labels[right]


def called(image: torch.Tensor) -> str:
    """What the network says of an image, and how sure it is."""
    p = inference.predict(model, image[None])[0]
    return f"{data.classes[p.argmax()][0]} ({100 * p.max():.0f} %)"


def card(heading: str, before: torch.Tensor, after: torch.Tensor, text: str) -> Card:
    """An input and what was made of it, with the network's answers."""
    distance = (after - before).norm()
    return Card(heading, [(before.numpy(), called(before)), (after.numpy(), called(after))],
                f"{text} L2 distance {distance:.1f}.")


def patched() -> tuple[torch.Tensor, torch.Tensor]:
    """The input of which the network is surest, among those that one of 100 patches breaks."""
    copies = patches.apply(x, patches.draw(len(x), 100, data.shape, invert=True,
                                           generator=torch.Generator().manual_seed(0)))
    given = inference.predict(model, copies.flatten(0, 1)).argmax(1).view(len(x), -1)
    broken = given != y[:, None]
    sure = inference.predict(model, x).max(1).values
    i = int(torch.where(broken.any(1), sure, -1.0).argmax())
    return x[i], copies[i, int(broken[i].int().argmax())]


def broken(fuzzer: fuzzing.Fuzzer) -> tuple[torch.Tensor, torch.Tensor]:
    """Of twenty inputs, the one whose last example fails and is the nearest; and that example."""
    run = fuzzer.run(model, x[:20], y[:20], iterations=20,
                     generator=torch.Generator().manual_seed(0))
    i = int(torch.where(run.errors[-1], run.l2[-1], torch.inf).argmin())
    return x[run.origin[-1, i]], run.images[i]


cards([card("A small patch", *patched(), "Four pixels are inverted."),
       card("A gradient, by DLFuzz", *broken(fuzzing.DLFuzz(budget=fuzzing.Budget(l2=2.0))),
            "Many pixels change a little."),
       card("A swarm, by DeepSensor", *broken(fuzzing.Swarm(population=10)),
            "The search begins at random pixels, and is free to end anywhere.")])

# %% tags=["remove-input"]
share = inference.accuracy(model, data.images, data.labels)
says(("Each pair shows an image that a network reads right, and one made from it that it reads wrong. The "
      f"network is a LeNet-5, and it reads {100 * share:.0f} of 100 handwritten digits right.",
      share > 0.9))

# %% [markdown]
# If you test a network, you want to know *which inputs break it, and how to find them first*. Five
# papers answer with five methods. This book runs all of them again. You can read, change and run the
# notebook behind each table and figure, and compare the result with the published one.
#
# ## What we found

# %% [markdown]
# ### Ask where the network is unsure

# %% tags=["remove-input", "records"] mystnb={"figure": {"caption": "How many of 100 small patches change the answer, by how sure the network is of the clean image. PD: the gaps between neighbours of the sorted softmax vector, added up, the first ones counting most. Network Net-1 of NSATP, mean over the seeds; the axis is logarithmic, and shares below 0.05 %, zero included, stand at 0.05 %.", "name": "fig-found-unsure"}}
bins = records.frame("nsatp/rq1", recipe="nsatp", patch="random").query(
    "quantity == 'bin' and distance == 'pd' and model == 'net1' and trials == 100")
falls = bins.groupby("dataset")[["x", "value"]].corr("spearman")  # from one interval of PD to the next
figure, axis = plt.subplots(figsize=(6, 3))
for dataset, part in bins.groupby("dataset", sort=False):
    place = part.groupby("seed").cumcount()
    part = part.assign(value=100 * part["value"]).groupby(place)[["x", "value"]].mean()
    axis.plot(part["x"], part["value"].clip(lower=0.05), "o-", ms=4, label=shown(dataset))
axis.set(xlabel="PD: unsure to sure", ylabel="patches that change\nthe answer (%)", yscale="log")
axis.yaxis.set_major_formatter("{x:g}")
axis.legend()
plt.show()

# %% tags=["remove-input", "statements"]
judged = {claim.id: verdicts.verdict(claim) for claim in published.claims()}
sooner = judged["nsatp-rq2-better"]
ends = 100 * bins.sort_values("x").groupby(["dataset", "seed"])["value"].agg(["first", "last"]).groupby("dataset").mean()
says(
    ("The less sure a network is of an input, the more easily a small patch changes the answer "
     "([NSATP](../nsatp/02_noise_sensitivity.ipynb), "
     "[PEACEPACT](../peacepact/02_correlation.ipynb)).",
     (falls["value"].xs("x", level=1) < 0).all() and (ends["first"] > 10 * ends["last"]).all()),
    (f"With Net-1, {span(ends['first'])} % of the patches on the least sure inputs change it; on the surest, at most "
     f"{rounded_up(ends['last'].max(), 1)} %.", ends["last"].max() < 1),
    ("So try the inputs in the order of their softmax vectors, the least sure ones first. "
     f"We tried {sooner.run} combinations of a network, a dataset and a measure.", sooner.run > 3),
    (f"In {'all' if sooner.holds == sooner.run else sooner.holds} of them the first failure clearly comes sooner than in random order, and in none later.",
     sooner.fails == 0 and sooner.holds > sooner.run / 2),
    f"After correction for many tests, {'all' if sooner.sure_holds == sooner.run else sooner.sure_holds} remain.")

# %% [markdown]
# **Try it.** Drag the patch over the digit, or throw many at once. Every image that you try adds a point to the
# plot. The images go from the least sure one to the surest. Do the points fall?

# %% tags=["remove-input"]
small = training.trained("lenet1", "mnist_small", seed=0)
given = inference.predict(small, data.images)
read_right = (given.argmax(1) == data.labels).nonzero()[:, 0]
from_unsure = read_right[uncertainty.probability_difference(given[read_right]).argsort(stable=True)]
some = from_unsure[torch.linspace(0, 1, 10).pow(2).mul(len(read_right) - 1).long()]
display(interactive.patch_painter(small, data.images[some], data.labels[some], classes=data.classes))

# %% tags=["remove-input"]
says((f"This is a smaller network, a LeNet-1, and runs in your browser. It reads {100 * len(read_right) / len(given):.0f} of "
      "100 digits right, and all ten shown.", len(read_right) > 0.8 * len(given)),
     "Play more: the [two digits of NSATP](../nsatp/01_motivation.ipynb), and a "
     "[swarm on ground that you draw](../deepsensor_sensitivity/13_swarm_by_hand).")

# %% [markdown]
# ### Ask the softmax vector before the neurons

# %% tags=["remove-input", "records"] mystnb={"figure": {"caption": "Faults among the inputs that each method selects first, mean over the runs. NSS compares an input either with a mutation of it, as the paper's text says, or with its unmutated original, as the released code does.", "name": "fig-found-selection"}}
rates = records.frame("nss/fault_detection", recipe="nss", candidates="random").query(
    "quantity == 'fdr'")
nss = rates.query("method == 'nss' and difference == 'l1' and share == 10")
lines = {"gini": rates.query("method == 'gini'"),
         "nss, original": nss.query("pair == 'original'"),
         "nss, remutated": nss.query("pair == 'remutated'"),
         "random": rates.query("method == 'random'")}
WORDS = {"nss, original": "NSS, the original known", "nss, remutated": "NSS, as its text says"}
figure, axis = plt.subplots(figsize=(6, 3))
for name, part in lines.items():
    mean = part.groupby("rate")["value"].mean()
    axis.plot(mean.index, mean, "o-", ms=4, color=colour(name), label=WORDS.get(name, shown(name)))
axis.set(xlabel="inputs selected (%)", ylabel="faults among them (%)", ylim=(0, None))
axis.legend(fontsize=8)
plt.show()

# %% tags=["remove-input", "statements"]
CELL = ["dataset", "model"]
fifth = by_selector(rates[rates["rate"] == 20], *CELL)
times, told = ((fifth[one] / fifth[other]).groupby(CELL).mean() for one, other in (("gini", "nss"), (KNOWN, "gini")))
says(
    ("Selection by sensitive neurons ([NSS](../nss/02_fault_detection.ipynb)), run as its paper describes it, "
     "finds fewer faults than DeepGini, which only reads the softmax vector. Among the first fifth of the "
     f"inputs, DeepGini finds {times.min():.1f} to {times.max():.1f} times as many.", times.min() > 1.5),
    ("The released code of NSS compares each input with its *unmutated original*. With this help, NSS finds "
     f"{told.min():.1f} to {told.max():.1f} times as many faults as DeepGini. But if you have only unlabelled "
     "data, you do not have these originals.", told.min() > 1 / times.min()))

# %% [markdown]
# ### Ask how far an error is from its input

# %% tags=["remove-input", "records"] mystnb={"figure": {"caption": "Test errors among the examples of four fuzzers, by how far an example may be from its input; on the right, without a bound. MNIST, mean over the LeNets. A swarm with a constant fitness is DeepSensor with its guide switched off.", "name": "fig-found-distance"}}
found = as_published(records.frame("deepsensor_sensitivity/test_errors").query(
    "quantity == 'error_rate' and dataset == 'mnist'"))
SHOWN = {"dlfuzz": "DLFuzz: a gradient", "deepsensor, paper": "DeepSensor: a guided swarm",
         "deepsensor, constant": "a swarm with a constant fitness", "noise": "noise"}
FREE = 15  # where "none" stands on the axis
figure, axis = plt.subplots(figsize=(6, 3))
for who, words in SHOWN.items():
    mean = found[found["who"] == who].assign(bound=lambda d: d["bound"].where(d["budget"] != "none", FREE))
    mean = mean.groupby(["bound", "model"])["value"].mean().groupby("bound").mean().reindex([2, 4, 8, 12, FREE])
    axis.plot(mean.index[:-1], mean[:-1], "o-", ms=4, color=colour(who), label=words)
    axis.plot(mean.index[-2:], mean[-2:], "o:", ms=4, color=colour(who))
axis.set(xlabel="bound on the L2 distance", ylabel="test errors\n(% of examples)", ylim=(-3, 103))
axis.set_xticks([2, 4, 8, 12, FREE], ["2", "4", "8", "12", "none"])
axis.legend(fontsize=8)
plt.show()

# %% tags=["remove-input", "statements"]
free, guided = (found.query("budget == 'none' and who == @who").groupby("model")["value"].mean()
                for who in ("deepsensor, constant", "deepsensor, paper"))
printed = published.table("deepsensor_sensitivity", 2).query(
    "quantity == 'test_errors' and fuzzer == 'deepsensor'").set_index("model")["value"][free.index] / 200
says(
    "Both DeepSensor papers search with a [swarm](../deepsensor_sensitivity/13_swarm_by_hand): images that fly and follow "
    "the best of them. They count errors at any distance, and as we read them, the flight starts at random pixels.",
    ("We ran the first paper's swarm on MNIST without its guide, the count of sensitive neurons. "
     f"{free.min():.0f} to {free.max():.0f} % of its images were errors, about as many as the paper prints.",
     (free - printed).abs().max() < 5),
    (f"With the guide it was only {guided.min():.0f} to {guided.max():.0f} %.", guided.max() < free.min()))

# %% tags=["remove-input", "statements"]
first, second = (published.table(paper, number).set_index(["dataset", "model", "fuzzer", "quantity"])["value"]
                 for paper, number in (("deepsensor_sensitivity", 2), ("deepsensor_excitable", 3)))
near, middle = (found[found["bound"] == bound].groupby("who")["value"].mean() for bound in (2, 8))
says(
    ("The second paper has another guide, but [prints the same counts](../deepsensor_excitable/01_test_errors): "
     f"{(first == second[first.index]).sum()} of {len(second)} are the same.", (first == second[first.index]).all()),
    (f"Near the inputs, [a gradient breaks more](02_fuzzers). Within an L2 distance of {2}, "
     f"{near['dlfuzz']:.0f} % of the examples of DLFuzz, which follows a gradient, are errors with its paper's "
     f"settings, and only {near['deepsensor, paper']:.1f} % of those of the swarm.",
     near["dlfuzz"] > 20 * near["deepsensor, paper"]),
    (f"On MNIST at a distance of {8}, the neurons do guide the swarm, but a gradient still breaks more. The chapter [Who "
     "breaks a given input?](02_fuzzers) shows with which networks.",
     middle["deepsensor, constant"] < middle["deepsensor, paper"] < middle["dlfuzz"]))

# %% [markdown]
# ## Three doors
#
# ::::{grid} 1 1 3 3
# :gutter: 2
#
# :::{grid-item-card} Learn
# :link: ../../book/how_to_read
# :link-type: doc
# What a {term}`cell`, a {term}`record` and a {term}`verdict` are. Then
# [what a neuron is](../../book/neuron.md), and [NSATP's question](../nsatp/01_motivation.ipynb).
# :::
#
# :::{grid-item-card} Teach
# :link: ../../book/teaching
# :link-type: doc
# Plans for a lesson, a day and a term paper. Every chapter on an experiment has questions to predict, to
# think and to code, and runs in seconds to minutes, on data that comes with the book.
# :::
#
# :::{grid-item-card} Test my model
# :link: 08_test_your_model
# :link-type: doc
# [Rank your own images](../nss/08_your_own_model.ipynb), or
# [make images that your model gets wrong](../deepsensor_sensitivity/12_your_own_model.ipynb).
# :::
# ::::
#
# **What to use.** To choose inputs for labelling, use
# [DeepGini or the least confidence](01_selectors). To break given inputs nearby, use
# [a gradient](02_fuzzers). Always compare with chance. To judge a selector, compare it with random order. To judge a
# fuzzer, compare it with noise of the same length and cost.
#
# ## Verdicts

# %% tags=["remove-input"] mystnb={"figure": {"caption": "The claims of the five papers by verdict, from the committed records.", "name": "fig-verdicts"}}
PAPERS = {"nsatp": "NSATP", "peacepact": "PEACEPACT", "nss": "NSS",
          "deepsensor_sensitivity": "DeepSensor,\nsensitive neurons",
          "deepsensor_excitable": "DeepSensor,\nexcitable neurons"}
verdict_plots.bar(verdicts.scoreboard().replace({"paper": PAPERS}))
plt.show()

# %% [markdown]
# We turned each {term}`claim` of a paper into a rule. Where the paper gives a threshold, we use it.
# Runs decide it, at the paper's scale or as near to it as two processor cores can come. [The
# scoreboard](06_scoreboard) shows every claim, with the cells that were run. [An index](../../book/papers.md) leads
# from each table and figure of a paper to its chapter. Three more pages show [which verdicts depend on what the
# papers leave open](03_readings), [which rules changed](05_amendments), and [where the papers disagree with
# themselves](../../book/inconsistencies.md).
