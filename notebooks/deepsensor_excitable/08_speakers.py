# %% [markdown]
# # Voices: does it work for networks that recognise speakers?
#
# **The claims** (DeepSensor II, 6.4, Tables 6 and 7). In ResNet-34 and Deep Speaker, which tell 30
# speakers apart, the swarm finds more test errors than each other fuzzer, about 1.2 times as many;
# and so it does however far Deep Speaker was trained.
#
# **What you will learn.** How speech becomes a picture that all methods of this book take as it is,
# and how to listen to a picture that a fuzzer has changed; and that the ear judges a perturbation
# that has no bound as the eye does.

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import HTML, Audio

from dnnlib import compare, fuzzing, inference, models, plots, published, records, training
from dnnlib.data import audio, load
from dnnlib.excitable import ExcitableNeurons
from dnnlib.fuzzing import measures

plots.style()
clock = records.Clock()

# %% tags=["parameters"]
dataset = "voices"  # synthetic speakers; fsdd: spoken digits; vctk: the paper's
model = "resnet34_s"  # resnet34_s, deep_speaker_s: a quarter of the width; resnet34, deep_speaker
recipe = "default"  # how it is trained: a name of `training.RECIPES`
seed = 0  # of the training, of the choice of seeds and of the fuzzers
seeds_count = 8  # benign utterances; the paper has 4,000, of which the tables count 1,000
iterations = 20  # of every fuzzer
population = 4  # particles to a seed; the paper has 100
points = 2  # gradients to a Shapley value, as in the chapter on test errors
near = 4.0  # a bound on the L2 distance; the paper has none
others = ""  # networks trained alike, DeepXplore's oracles; without any it runs on one network
references = 480  # training utterances that give DeepHunter its neuron boundaries
under_epochs = 4  # of the underfitted network; the paper has 5
over_epochs = 30  # of the overfitted one; the paper has 80
batch_size = 20  # of both
profile = "embedded"  # embedded: a look; paper: also a record

# %% [markdown]
# ## A picture of a sound
#
# A short piece of sound is a sum of tones. A *spectrogram* has one column for each sixtieth of a
# second, or so, and in it how loud each band of tones is; the bands are narrow where pitch is heard
# finely (the mel scale), and loudness is in decibels: 0 is silence, 1 the loudest sound. A second of
# speech is a gray picture of 64 by 64 pixels. A tone of 1,000 Hz lies in one band, and is still
# there when the picture has been made a sound again and looked at once more:

# %% tags=["nbval-check-output"]
tone = torch.sin(torch.arange(audio.RATE) * 2 * torch.pi * 1000 / audio.RATE)
picture = audio.log_mel(tone)
again = audio.log_mel(audio.resynthesise(picture))
print("loudest band:", int(picture[0, :, 32].argmax()), "and", int(again[0, :, 32].argmax()))

# %% [markdown]
# The way back is a guess, as a picture holds no phases: Griffin and Lim's algorithm looks for phases
# that fit. The speakers of `voices` are synthetic, a source of pulses and three resonances; each has a
# pitch, a vocal tract, a timbre and an accent of their own, and says two to four vowels.

# %% mystnb={"figure": {"caption": "Utterances of four speakers as spectrograms: time to the right, pitch upwards, bright is loud.", "name": "fig-excitable-voices"}}
data = load(dataset)
places = [int((data.labels == c).nonzero()[k]) for k in (0, 1) for c in range(4)]
upright = data.images.flip(2)  # low bands at the bottom
plots.images(upright[places], [data.classes[data.labels[i]] for i in places])
plt.show()


# %%
def player(picture: torch.Tensor, label: str) -> str:
    """An audio player for a picture, under its label."""
    sound = Audio(audio.resynthesise(picture), rate=audio.RATE)._repr_html_()
    return f"<figure style='margin: 0 0 1rem'><figcaption>{label}</figcaption>{sound}</figure>"


HTML("".join(player(data.images[i], f"{data.classes[data.labels[i]]}, from the picture")
             for i in places[:2]))

# %% [markdown]
# ## The network
#
# ResNet-34 and Deep Speaker take the picture as an image and give one of the speakers, who are the
# same in training and test; utterances are not.

# %%
network = training.trained(model, dataset, recipe_name=recipe, seed=seed)
accuracy = inference.accuracy(network, data.images, data.labels)
chosen = fuzzing.benign(network, data.images, data.labels, seed=seed)[:seeds_count]
seeds, labels = data.images[chosen], data.labels[chosen]
print(data)
print(f"accuracy {accuracy:.1%}; {len(seeds)} seeds, {len(seeds) * iterations} examples a fuzzer")
sizes = models.table().loc[["resnet34", "deep_speaker", "resnet34_s", "deep_speaker_s"],
                           ["parameters", "neurons", "published parameters", "published neurons"]]
sizes.astype(object).where(sizes.notna(), "-")

# %% [markdown]
# At their full width the networks have as many neurons as published, and as many parameters if
# BatchNorm's moving means and variances are counted among them. The small ones, of a quarter of the
# channels, are ours, for two processor cores.
#
# ## The fuzzers
#
# [As for images](01_test_errors): pixels of the picture are changed, as the paper does in its
# feature space. Without a bound, and within `near`.

# %%
swarm = fuzzing.Swarm.paper(population=population)
swarms = {"excitable": replace(swarm, fitness=ExcitableNeurons(points=points)), "sensitive": swarm,
          "constant": replace(swarm, fitness=fuzzing.Constant())}
oracles = tuple(training.trained(name, dataset, recipe_name=recipe, seed=seed)
                for name in others.split() if name != model)
known = load(dataset, "train").images[:references]
baselines = fuzzing.rivals(oracles, known)
fuzzers = {f"deepsensor, {name}": each for name, each in swarms.items()} | baselines | {
    "noise": fuzzing.Noise(scale=1.0)}
bounds = {"near": near, "none": None}
found = {(budget, name): campaign for budget, l2 in bounds.items()
         for name, campaign in fuzzing.campaigns(
             network, seeds, labels, iterations=iterations, seed=seed,
             fuzzers={name: replace(fuzzer, budget=fuzzing.Budget(l2=l2))
                      for name, fuzzer in fuzzers.items()}).items()}
measured = pd.DataFrame({key: measures.every_example(campaign, near=near)
                         for key, campaign in found.items()}).T
rows = [row for (budget, name), line in measured.iterrows()
        for row in measures.rows(line, table=6, budget=budget, bound=bounds[budget],
                                 **measures.columns(name))]
measured["error_rate"].unstack(0)[list(bounds)].loc[list(fuzzers)].join(
    measured["l2"]["none"].rename("L2 without a bound")).astype(float).round(1)

# %% [markdown]
# Percent of the examples of all iterations that are test errors, and the mean L2 distance without a
# bound.
#
# ## Listen
#
# Three seeds, and inputs made of them that the network gives to somebody else: an error of the
# excitable swarm and one of DeepHunter, both without a bound, and the nearest error of any fuzzer
# within `near`. Do they sound like the seeds' speakers?

# %% mystnb={"figure": {"caption": "A seed, failing inputs made of seeds, and below each what was added, magnified three times (gray: nothing). Titles: the speaker that the network hears, and the L2 distance to the seed.", "name": "fig-excitable-listen"}}
def failing(keys: list[tuple[str, str]]) -> tuple[str, int, float, torch.Tensor] | None:
    """Of the last examples of these runs the nearest error: fuzzer, seed, distance, picture."""
    best = None
    for key in keys:
        campaign = found[key]
        for i in campaign.errors[-1].nonzero()[:, 0].tolist():
            if best is None or campaign.l2[-1, i] < best[2]:
                best = (key[1], int(campaign.origin[-1, i]), float(campaign.l2[-1, i]),
                        campaign.images[i])
    return best


heard = {"excitable, no bound": failing([("none", "deepsensor, excitable")]),
         "deephunter, no bound": failing([("none", "deephunter")]),
         f"nearest, within {near:g}": failing([("near", name) for name in fuzzers])}
heard = {what: hit for what, hit in heard.items() if hit}
shown, titles, below, captions, players = [], [], [], [], []
for what, (fuzzer, i, l2, picture) in heard.items():
    given = int(inference.predict(network, picture[None]).argmax())
    shown += [seeds[i], picture]
    titles += [f"seed: {data.classes[labels[i]]}", f"{data.classes[given]}, L2 {l2:.1f}"]
    below += [torch.full_like(picture, 0.5), (0.5 + 3 * (picture - seeds[i])).clamp(0, 1)]
    captions += ["", what]
    players += [player(seeds[i], f"seed: {data.classes[labels[i]]}"),
                player(picture, f"{what} ({fuzzer}): taken for {data.classes[given]}, "
                                f"L2 distance {l2:.1f}")]
plots.sheet({"inputs": (torch.stack(shown).flip(2), titles),
             "changes": (torch.stack(below).flip(2), captions)}, columns=len(shown))
plt.show()

# %%
HTML("".join(players))

# %% [markdown]
# ## Trained too little, and too long
#
# The same network after few and after many epochs, and for each the last example of each seed.

# %%
kinds = {"underfitted": {"epochs": under_epochs, "batch_size": batch_size}, "well_trained": {},
         "overfitted": {"epochs": over_epochs, "batch_size": batch_size}}
for kind, changes in kinds.items():
    other = training.trained(model, dataset, recipe_name=recipe, seed=seed, **changes)
    right = fuzzing.benign(other, data.images, data.labels, seed=seed)[:seeds_count]
    campaigns = fuzzing.campaigns(other, data.images[right], data.labels[right], fuzzers,
                                  iterations=iterations, seed=seed)
    rows += measures.rows({"accuracy": 100 * inference.accuracy(other, data.images, data.labels),
                           "seeds": len(right)}, table=7, training=kind)
    for name, campaign in campaigns.items():
        rows += measures.rows(measures.last_examples(campaign), table=7, training=kind,
                              budget="none", method=name, **measures.columns(name))
live = pd.DataFrame(rows)
last = live[live["method"].notna()]
counts = last[last["quantity"] == "test_errors"].pivot(
    index="method", columns="training", values="value").loc[list(fuzzers), list(kinds)]
accuracies = live[(live["table"] == 7) & (live["quantity"] == "accuracy")].set_index("training")
pd.concat([counts, accuracies["value"].rename("accuracy (%)").to_frame().T])[list(kinds)].round(1)

# %% [markdown]
# ## What the claims ask for
#
# DeepSensor's errors over each baseline's and over the mean of the three, of all examples without a
# bound (Table 6), and of the last ones (Table 7); what finds none counts as one.

# %%
for name in swarms:
    for budget in bounds:
        errors = measured["test_errors"][budget]
        rows += [{"table": 6, "fuzzer": "deepsensor", "swarm": name, "budget": budget,
                  "baseline": baseline, "quantity": "errors_over", "value": value}
                 for baseline, value in measures.over(errors[f"deepsensor, {name}"],
                                                      errors[list(baselines)]).items()]
    for kind in kinds:
        rows += [{"table": 7, "training": kind, "fuzzer": "deepsensor", "swarm": name,
                  "budget": "none", "baseline": baseline, "quantity": "errors_over",
                  "value": value}
                 for baseline, value in measures.over(counts.loc[f"deepsensor, {name}", kind],
                                                      counts.loc[list(baselines), kind]).items()]
rows += measures.rows({"accuracy": 100 * accuracy}, table=6)
live = pd.DataFrame(rows)
live.query("quantity == 'errors_over' and budget == 'none'").fillna({"training": "Table 6"}).pivot(
    index=["swarm", "training"], columns="baseline", values="value").round(2)

# %%
if profile == "paper":
    records.save(records.Record(
        "deepsensor_excitable/speakers",
        dict(dataset=dataset, model=model, recipe=recipe, seed=seed, seeds_count=seeds_count,
             iterations=iterations, population=population, points=points, near=near,
             others=others, references=references, under_epochs=under_epochs,
             over_epochs=over_epochs, batch_size=batch_size), rows,
        records.provenance(data=data.fingerprint, clock=clock)))

# %% [markdown]
# ## Table 6, beside the paper's
#
# Without a bound: test errors in percent of all examples, then error categories for each seed; mean
# [least, greatest] over the seeds. VCTK was not at hand; the spoken digits of `fsdd` have six
# speakers, so that a seed has at most five error categories, and noise is right once in six times.

# %%
ours = records.frame("deepsensor_excitable/speakers")
on = ["dataset", "model", "fuzzer", "quantity"]
text = ("table == 6 and budget == 'none' and (fuzzer != 'deepsensor' or swarm == 'excitable') "
        "and fuzzer != 'noise'")
here = live.assign(dataset=dataset, model=model)
table_6 = published.table("deepsensor_excitable", 6)


def table_of(quantity: str, digits: int, part: pd.DataFrame) -> pd.DataFrame:
    """A part of Table 6, ours, and the run above."""
    mine = ours.query(text) if len(ours) else ours
    there = here.query(text)
    return compare.beside(part, mine[mine["quantity"] == quantity], on=on, digits=digits,
                          live=there[there["quantity"] == quantity])


errors = table_6[table_6["quantity"] == "test_errors"]
table_of("error_rate", 1, errors.assign(quantity="error_rate", value=errors["value"] / 200))

# %%
table_of("categories_per_seed", 2, table_6[table_6["quantity"] == "categories_per_seed"])

# %% [markdown]
# ## Table 7, beside the paper's
#
# Test errors in percent of the last examples, of which the paper has 1,000.

# %%
table_7 = published.table("deepsensor_excitable", 7)
on = ["dataset", "model", "training", "fuzzer"]


def shares(table: pd.DataFrame, seeds: pd.Series | int) -> pd.DataFrame:
    """Test errors of the excitable swarm and the baselines, in percent of the seeds."""
    part = table.query("table == 7 and quantity == 'test_errors' and fuzzer != 'noise' "
                       "and swarm not in ('sensitive', 'constant')")
    return part.assign(value=100 * part["value"] / seeds)


compare.beside(table_7.assign(value=table_7["value"] / 10), on=on, digits=1,
               ours=shares(ours, ours["seeds_count"]) if len(ours) else ours,
               live=shares(here, seeds_count))

# %% [markdown]
# From the records: all swarms and noise, within the bound and without, and the networks' accuracy.

# %%
if len(ours):
    every = ours.query("table == 6 and quantity == 'error_rate'").fillna({"swarm": ""})
    display(every.pivot_table(index=["dataset", "model", "fuzzer", "swarm"], columns="budget",
                              values="value", sort=False).round(1))
    display(ours.query("table == 7 and quantity == 'accuracy'").pivot_table(
        index=["dataset", "model"], columns="training", values="value", sort=False).round(1))

# %% mystnb={"figure": {"caption": "Share of the last examples that are test errors, by how far the network was trained: of the records, mean over the seeds, lines give the range; without records, of the run above.", "name": "fig-excitable-speakers"}}
drawn = ours if len(ours) else here.assign(seeds_count=seeds_count)
drawn = drawn.query("table == 7 and quantity == 'test_errors'").copy()
drawn["value"] *= 100 / drawn["seeds_count"]
plots.bars(drawn, group=["dataset", "model", "training"], hue="method", ylabel="test errors (%)")
plt.show()

# %% [markdown]
# ## Verdict

# %%
compare.scoreboard("deepsensor_excitable", experiment="deepsensor_excitable/speakers")

# %% [markdown]
# **What it means.** To the fuzzers a spectrogram is an image, so that the method carries over, and so
# do its questions. Without a bound the swarm's example is a picture of noise, and it is noise that one
# hears: whoever the network names is wrong, unless it happens to be the seed's speaker. Compare the
# line `constant`. A failing input counts as one if the voice is still that of the seed, and that is
# for the ear to say; within the bound, listen to the nearest one.

# %% [markdown]
# ## Exercises
#
# **1.** Which bound is silent? Add noise of L2 length 1, 2, 4 and 8 to a seed, and listen.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for length in (1.0, 2.0, 4.0, 8.0):
#     moved = fuzzing.with_noise(seeds[:1], torch.tensor([length]))[0]
#     display(HTML(player(moved, f"L2 distance {length:g}")))
# ~~~
#
# A distance in decibels counts a change of silence like a change of speech: noise is heard first in
# the pauses.
# ```
#
# **2.** Is the speaker in the pitch? Move a spectrogram up by two bands, and ask the network.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# higher = seeds.roll(2, dims=2)
# higher[:, :, :2] = 0
# print((inference.predict(network, higher).argmax(1) == labels).double().mean())
# ~~~
#
# Moving all bands moves the resonances too, as if the vocal tract were shorter.
# ```
