# %% [markdown]
# # Do the two thresholds matter?
#
# **The claim** (DeepSensor IV.E, Fig. 5). A neuron is {term}`sensitive <sensitive neuron>` if its sensitivity
# is above $\lambda$. Up to 0.6, raising $\lambda$ finds more
# {term}`test errors <test error>` of all three kinds. $\epsilon$ is the share of sensitive neurons
# at which the search stops. The larger it is, the more errors are found.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "mnist_small"  # a name from `dnnbook data`, or a folder of images
model_name = "lenet5"  # lenet1, lenet4, lenet5, or another of `dnnlib models`
recipe = "default"  # how the network is trained
learning_rate = 0.02  # of the overfitted network; the paper has none
retrained = True  # the polluted network: trained on from the clean one; reading: False, a new one
seed = 0  # of the training, and of all else that is random
inputs = 20  # benign inputs to start from; the paper has 500
iterations = 20  # of every fuzzer
population = 5  # particles to an input; the second paper on DeepSensor has 100
swarm = "paper"  # reading: paper (Eq. 1), or scaled: changes scaled to [0, 1] layer by layer (code)
lambdas = "0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9"  # values of the first threshold
epsilons = "0.002 0.005 0.01 0.02 0.05 0.1 0.5"  # of the second, with 1, the paper's, in the end
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
from dataclasses import replace

from dnnbook import studies
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, profile_limit
from dnnbook.display import plots
from dnnbook.display.campaign_plots import errors_against_thresholds
from dnnbook.display.comparisons import sizes
from dnnbook.display.tables import wide
from dnnbook.records import records
from dnnbook.records.intervals import interval
from dnnbook.studies import outcomes
from dnnbook.studies.findings.deepsensor import each_seed, seeds_of
from dnnbook.training import faulty
from dnnlib import checks, fuzzing
from dnnlib.neurons import activations, sensitivity

plots.style()
run = Experiment("deepsensor_sensitivity/thresholds", profile, dataset=dataset,
                 model_name=model_name, recipe=recipe, learning_rate=learning_rate,
                 retrained=retrained, seed=seed, swarm=swarm, budget="none", inputs=inputs,
                 iterations=iterations, population=population, lambdas=lambdas, epsilons=epsilons)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-sensitivity-lambda")

# %% tags=["hide-input", "statements"]
every = records.frame("deepsensor_sensitivity/thresholds").query("swarm == 'paper'")
shares, TRAINED = outcomes.error_shares(every), ("adversarial", "overfitted")
rising = {kind: seeds_of(shares, "threshold", errors=kind, varied="lambda").unstack("threshold")
          for kind in (*TRAINED, "polluted")}
blind = {kind: seeds_of(shares, errors=kind, varied="control") for kind in rising}
fewer = {kind: each_seed(rising[kind], blind[kind]).behind for kind in TRAINED}
steps = [interval(rising[kind][0.6] - rising[kind].iloc[:, 0]) for kind in TRAINED]
says((f"**The answer.** They matter, but the other way round. In a well trained and in an overfitted network, raising "
      f"$\\lambda$ to {0.6} finds *fewer* errors.", max(high for _, high in steps) < 0),
     (f"From {max(min(below, default=1) for below in fewer.values()):g} on, the swarm finds fewer than "
      "one with a constant fitness, which looks at no neuron.", all(
          len(below) > 1 and below == [*rising[kind]][-len(below):] for kind, below in fewer.items())))

# %% tags=["hide-input", "statements"]
rose = rising["polluted"].agg(["min", "mean"])
stopping = seeds_of(shares, "threshold", errors="adversarial", varied="epsilon").unstack("threshold")
low, high = interval(stopping[stopping.columns[0]] - stopping[1.0])
says((f"In a polluted network there are more errors at $\\lambda$ = {0.6} than at {rose.columns[0]:g}, with each random seed: "
      f"{rose.loc['mean', 0.6]:.0f} % against {rose.iloc[1, 0]:.0f} % on average. But a swarm that looks at no neuron has "
      f"{blind['polluted'].mean():.0f} % there.", (rising["polluted"][0.6] > rising["polluted"].iloc[:, 0]).all()
      and blind["polluted"].mean() > rose.loc["mean", 0.6] - 1),
     ("And the swarm that stops at the smallest $\\epsilon$ has more errors than the one that never stops.", low > 0))

# %% [markdown]
# ## In one picture
#
# Do the full lines rise with a threshold, as the paper's lines do? And which of them are above the
# broken lines, whose {term}`swarms <swarm>` look at no neuron?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 5 of the paper from the records, for the swarm of the text. One line for each random seed; broken lines are swarms with a constant fitness.", "name": "fig-deepsensor-thresholds-records"}}
kept = run.recorded()
plots.nothing() if kept.empty else errors_against_thresholds(kept.query("swarm == 'paper'"), ["paper"])
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** What the two thresholds mean for the neurons of a real network; and why a
# curve that never falls may say nothing.
#
# ## From sensitivities to a share
#
# $$NS_n = \frac{\varphi_n(x + \Delta x) - \varphi_n(x)}{\|\Delta x\|_2} \quad (1), \qquad
# \text{Fitness} = \frac{\text{number of neurons with } NS_n > \lambda}{\text{number of neurons}}
# \quad (2) .$$
#
# An example with four neurons and an input that moved by two units. The activation of one neuron
# falls, so Eq. 1 as printed never counts it:

# %% tags=["nbval-check-output"]
moved = sensitivity.neuron_sensitivity([0.0, 1.0, 0.5, 2.0], [0.2, 2.0, 2.5, 0.0], 2.0)
print("sensitivity:", [round(v, 2) for v in moved.tolist()])
for threshold in (0.05, 0.3, 0.6):
    share = sensitivity.sensitive_share(moved, threshold).item()
    print(f"lambda {threshold}: {share:.0%} are sensitive; the search stops if epsilon < {share}")

# %% [markdown]
# ## Three kinds of error
#
# In an `adversarial` error, a well trained network errs. In a `polluted` error, a network that was
# trained with a patch and a false label on 10 % of its images gives the [polluted
# class](04_faulty_training) to an image of another class. In an `overfitted` error, a network that
# was [trained for too long](05_incomplete_training) errs. Each kind has the same number of
# `inputs`, which its network gets right.

# %%
data = load(dataset, limit=profile_limit(profile))
models = faulty.by_error(model_name, dataset, recipe_name=recipe, seed=seed,
                         learning_rate=learning_rate, retrained=retrained,
                         device=device)
targets = faulty.targets(dataset)
benign = studies.benign_for_each(models, data.images, data.labels, without=targets, count=inputs,
                                 seed=seed)
print(data)

# %% [markdown]
# ## The swarms
#
# We run one swarm for every $\lambda$ at $\epsilon = 1$, where no swarm ever stops early. We run one for
# every $\epsilon$ at $\lambda = 0.5$. As in the paper's figure, only $\lambda$ is tried on all kinds of
# error. The paper does not print its values of $\epsilon$. The control is a swarm whose
# {term}`fitness` is constant: it looks at no neuron.

# %%
options = {"paper": {}, "scaled": {"scale": "difference", "divide": False, "logits": False}}[swarm]


def sensitive(threshold: float) -> sensitivity.SensitiveNeurons:
    """The fitness with that lambda, in the reading at hand."""
    return sensitivity.SensitiveNeurons(threshold=threshold, **options)


# %%
standard = fuzzing.Swarm.paper(population=population, fitness=sensitive(0.5))
swarms = {("lambda", value): replace(standard, fitness=sensitive(value))
          for value in map(float, checks.numbers(lambdas, "lambdas"))}
swarms["control", 0.5] = replace(standard, fitness=fuzzing.Constant())
stopped = {("epsilon", value): replace(standard, epsilon=value)
           for value in [*map(float, checks.numbers(epsilons, "epsilons")), 1.0]}
asked = {"adversarial": swarms | stopped, "polluted": swarms, "overfitted": swarms}
found = {kind: studies.campaigns(model, *benign[kind], asked[kind], iterations=iterations,
                                 seed=seed) for kind, model in models.items()}

# %% [markdown]
# ## What they find
#
# A swarm generates one example for each input: its best of the last iteration. *Test errors* counts
# the errors among these examples, and *test errors in all iterations* counts them among the
# examples of all iterations. *Sensitive* is the mean share of neurons above $\lambda$ that an
# example reaches, and *passes* is the number of images sent through the network.

# %%
for kind, campaigns in found.items():
    for (varied, threshold), campaign in campaigns.items():
        errors = outcomes.hits(campaign, targets[kind])
        score = sensitive(threshold if varied == "lambda" else 0.5)(models[kind], *benign[kind])
        run.add({"test_errors": errors[-1].sum(), "test_errors_all": errors.sum(),
                 "sensitive": score(campaign.images, campaign.origin[-1]).mean(),
                 "l2": campaign.l2[-1].mean(), "passes": campaign.passes},
                errors=kind, varied=varied, threshold=threshold)

# %% tags=["hide-input"]
x, _ = benign["adversarial"]
neurons = activations.record(models["adversarial"], x[:1]).values.shape[1]
print(f"{len(x)} inputs; one of {neurons} neurons is a share of {1 / neurons:.4f}")
wide(run.live.sort_values("threshold", kind="stable"), "errors == 'adversarial' and threshold.notna()",
     index=["varied", "threshold"], columns="quantity",
     digits={"l2": 4, "passes": 0, "sensitive": 4, "test_errors": 0, "test_errors_all": 0})

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Fig. 5 for the run above: examples that are test errors against the two thresholds. Broken lines: a swarm with a constant fitness. The scale of the share is logarithmic.", "name": "fig-deepsensor-thresholds"}}
errors_against_thresholds(run.live, [swarm])
run.show()

# %% [markdown]
# ## What the claims ask for
#
# The claims say that the number of test errors rises along $\lambda$ up to 0.6, and along $\epsilon$. We lay a
# line through the numbers and ask for its slope, in errors for each step from one threshold to the next. The
# verdict takes it from the records. The table has the least single step of this run;
# [an earlier rule](../synthesis/05_amendments) judged that step. It is below zero as soon as one step loses errors.

# %%
steps = run.live.query("varied == 'epsilon' or varied == 'lambda' and threshold <= 0.6")
for count, least in (("test_errors", "least_step"), ("test_errors_all", "least_step_all")):
    for (kind, varied), line in steps[steps["quantity"] == count].groupby(["errors", "varied"]):
        run.add({least: outcomes.least_step(line.set_index("threshold")["value"])},
                errors=kind, varied=varied)

# %% tags=["hide-input"]
run.save(data, device=device)
wide(run.live, "quantity == 'least_step'", index=["varied", "errors"], digits=0)

# %% [markdown]
# ## Over all records
#
# The share of the examples that are test errors, in percent: means over the random seeds. Fig. 5
# prints no numbers that we could put beside them.

# %% tags=["hide-input", "statements"]
first = every["seed"].min()
says(f"Our records cover {sizes(every)}.",
     *([f"The random seeds are those of [the chapter on faulty training](04_faulty_training), from {first} on."] if first else []))

# %% tags=["hide-input"]
ours = run.recorded()
wide(outcomes.error_shares(ours).sort_values("threshold", kind="stable"), columns="threshold",
     index=["dataset", "model", "swarm", "varied", "errors"])

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **What it means.** A swarm with a constant fitness shows the image where its first {term}`particle`
# started to the end, so it finds what any random image finds. Whatever $\lambda$ is, only what lies above
# the broken line is due to sensitive neurons. If no swarm reaches $\epsilon$, then $\epsilon$ changes
# nothing, and the claim on it is untested.

# %% tags=["hide-input", "statements"]
same = [name for name in stopping if stopping[name].equals(stopping[1.0])]
spent, reached = (seeds_of(every, "threshold", errors="adversarial", varied="epsilon", quantity=quantity).unstack("threshold")
                  for quantity in ("passes", "sensitive"))
says((f"From $\\epsilon$ = {min(same):g} on all counts are the same, because most swarms do not get that far: the share of "
      f"sensitive neurons that they reach is {reached[1.0].mean():.3f} on average.", reached[1.0].mean() < min(same)
      and len(same) > 2 and (spent[same].min(axis=1) > 0.9 * spent[1.0]).all()),
     (f"The swarm that stops at {stopping.columns[0]:g} stops after about one iteration, while its images are still random.",
      spent[stopping.columns[0]].max() < 2 * spent[1.0].max() / 20),
     f"It has {low:.0f} to {high:.0f} points more errors than the one that never stops (95 % interval).")

# %% tags=["hide-input", "statements"]
most = rising["polluted"].max(axis=1)
says(("The polluted networks differ. With one random seed less than half of the examples get the polluted class, whatever "
      "$\\lambda$ is, and with the others more than half.", most.lt(50).sum() == 1
      and (most.lt(50) | (rising["polluted"].min(axis=1) > 50)).all()),
     "[The chapter on faulty training](04_faulty_training) also pollutes with one patch for all images.")

# %% [markdown]
# ## Exercises
#
# **1. Think.** The paper sets $\epsilon = 1$ and stops if the best fitness is *above* it. When does
# it stop?
#
# ```{admonition} Solution
# :class: dropdown
# Never: the fitness is a share of neurons and cannot exceed 1. Every swarm takes all its
# iterations.
# ```
#
# **2. Think.** Eq. 1 divides by $\|\Delta x\|_2$. Which examples does that favour, and why does the
# number of sensitive neurons not simply grow with the distance?
#
# ```{admonition} Solution
# :class: dropdown
# If activations changed in proportion to the distance, the ratio would not depend on it. In a
# network of ReLUs, a change is never larger than a constant times the distance. A sensitive neuron
# must gain more than $\lambda$ for each unit that the image moves. A long way in a direction that a
# neuron does not react to makes its ratio small. So the division favours directions in which many
# neurons rise steeply, near or far. With `swarm = "scaled"`, as in the released code, nothing is
# divided, and only the pattern of the changes counts.
# ```
#
# **3. Code.** Write `my_share(values, threshold)`: the share of neurons whose sensitivity is above
# the threshold, for each image. The cell says whether it is right.

# %%
my_share = None  # your function of a tensor (N, neurons) and a number

# %% tags=["hide-input"]
import torch

from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    values = torch.tensor([[0.6, 0.5, -2.0, 1.0], [0.0, 0.1, 0.2, 0.3]])
    check(answer, sensitivity.sensitive_share, (values, 0.5), (values, 0.1))


is_right(my_share)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_share(values, threshold):
#     return (values > threshold).double().mean(dim=1)
#
# is_right(my_share)
# ~~~
#
# With 268 neurons the share has only 269 possible values. It is flat nearly everywhere, so there is
# no gradient to follow.
# ```
