# %% [markdown]
# # Do the fuzzers break networks that recognise voices?
#
# **The claims** (DeepSensor II, 6.4, Tables 6 and 7). ResNet-34 and Deep Speaker sort speech into 30
# classes, which the paper calls speakers in one place and accents in another. In both, the {term}`swarm`
# finds more {term}`test errors <test error>` than each other {term}`fuzzer`, about 1.2 times as many. In
# Deep Speaker it does so however far the network was trained.

# %% tags=["parameters", "hide-input"] mystnb={"code_prompt_show": "Parameters: run this chapter with others", "code_prompt_hide": "Parameters"}
dataset = "voices"  # synthetic speakers; fsdd: spoken digits; vctk: the paper's
model_name = "resnet34_s"  # or deep_speaker_s, slower: a quarter of the paper's resnet34, deep_speaker
recipe = "default"  # how the network is trained
seed = 0  # of the training, and of all else that is random
inputs = 4  # benign utterances; the paper has 4,000, of which the tables count 1,000
iterations = 6  # of every fuzzer; the records have 20
population = 3  # particles to an input; the second paper on DeepSensor has 100
points = 2  # gradients to a Shapley value
near = 4.0  # a bound on the L2 distance; the paper has none
others = "resnet34_s deep_speaker_s"  # trained alike, DeepXplore's oracles; the model itself is left out
references = 480  # training utterances that give DeepHunter its neuron boundaries
held_out = 0  # other inputs, on which each rival's best setting is chosen; 0: the paper's only
under_epochs = 2  # of the underfitted network; the paper has 5
over_epochs = 6  # of the overfitted one; the paper has 80
device = "cpu"  # where it is trained and measured: cpu, cuda, mps, or auto
profile = "embedded"  # embedded: a look at few images; paper: as in the records, and a record

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import torch
from IPython.display import HTML, Audio
from scipy.signal import lfilter

from dnnbook import published, studies, training
from dnnbook.chapters.experiments import Experiment
from dnnbook.chapters.statements import says
from dnnbook.data import load, voices
from dnnbook.display import plots
from dnnbook.display.campaign_plots import fuzzer_bars
from dnnbook.display.comparisons import at_best, of_rivals, sizes
from dnnbook.display.tables import headed, wide
from dnnbook.records import evidence, records
from dnnbook.studies import FuzzerKey, outcomes
from dnnbook.studies.findings.deepsensor import lead_of, seeds_of, sides_of, table_of
from dnnbook.words import out_of, rounded_down, rounded_up, shown, span
from dnnlib import checks, fuzzing, inference, models
from dnnlib.data import audio
from dnnlib.neurons import excitable, shapley

plots.style()
batch_size = 20  # of the underfitted and of the overfitted network
run = Experiment("deepsensor_excitable/speakers", profile, dataset=dataset, model_name=model_name, recipe=recipe,
                 seed=seed, inputs=inputs, iterations=iterations, population=population, points=points, near=near,
                 others=others, references=references, held_out=held_out, under_epochs=under_epochs,
                 over_epochs=over_epochs, batch_size=batch_size)

# %% tags=["remove-input"]
from dnnbook.chapters.practice import bet

bet("deepsensor-excitable-speakers")

# %% tags=["hide-input", "statements"]
rows = at_best(records.existing("deepsensor_excitable/speakers"), "dataset", "model")
error_rates = rows[(rows["table"] == 6) & (rows["quantity"] == "error_rate")]
found_by = table_of(error_rates, ["excitable", "constant", "noise", "dlfuzz"], "model", budget="none")
free, hissing = (evidence.spread(found_by[who])["mean"] for who in ("excitable", "noise"))
unmoved = seeds_of(rows, "model", "budget", who="excitable", quantity="same_as_constant")
says(("**The answer.** Excitable neurons never guide the swarm here: with every seed, its examples are those of a swarm "
      "with a constant fitness.", unmoved.min() == 100 and (found_by["excitable"] == found_by["constant"]).all()),
     (f"Without a bound, at least {rounded_down(free.min())} % of them are errors all the same, because the networks take a "
      f"picture of noise for another speaker. Plain noise has {span(hissing)} % errors.",
      free.min() > 50 and (free - hissing).abs().max() < 10),
     ("DLFuzz in its best strategy finds more, with both networks and every seed.",
      (found_by["dlfuzz"] > found_by["excitable"]).all()),
     f"The verdict on the claim that the swarm finds more than each rival is *{evidence.state('deepsensor-excitable-speakers')}*.")

# %% [markdown]
# ## In one picture
#
# Find the bar of the excitable swarm, and the bar of the constant fitness beside it. Which fuzzers are above both?

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the last examples that are test errors, by how far the network was trained. From the records, mean over the seeds, lines give the range.", "name": "fig-excitable-speakers"}}
CELL = ["dataset", "model"]
ours = run.recorded()
plots.nothing() if ours.empty else fuzzer_bars(
    outcomes.error_shares(ours[ours["table"] == 7]), group=[*CELL, "training"], ylabel="test errors (%)")
run.show(recorded=True)

# %% [markdown]
# **What you will learn.** How speech becomes a picture that all methods of this book can use. How to listen
# to a picture that a fuzzer has changed. And why to ask of a {term}`fitness`, before comparing what it finds,
# whether it is ever anything but 0.

# %% [markdown]
# ## Two speakers, two vowels
#
# The speakers of `voices` are synthetic; how they are made is explained below. A network sees their sounds as
# pictures. What do two pictures of the same vowel have in common, and what do two pictures of the same speaker
# have in common?

# %% tags=["hide-input"]
def vowel(who: voices.Speaker, name: str) -> torch.Tensor:
    """The picture of a vowel, said for as long as a clip lasts."""
    sound = (np.arange(audio.SAMPLES) % round(audio.RATE / who.pitch) == 0).astype(float)
    sound = lfilter([1], [1, -who.tilt], sound)
    for formant, width in zip(voices.VOWELS[name], voices.BANDWIDTHS):
        r, angle = np.exp(-np.pi * width / audio.RATE), 2 * np.pi * who.tract * formant / audio.RATE
        sound = lfilter([1], [1, -2 * r * np.cos(angle), r ** 2], sound)
    return audio.log_mel(sound / np.abs(sound).max())


data = load(dataset)
said = {f"{who.name}: {name}": vowel(who, name) for name in ("a", "i") for who in voices.SPEAKERS[:2]}

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The same two vowels of two speakers, then utterances of two to four vowels: time to the right, pitch upwards, bright is loud.", "name": "fig-excitable-voices", "classes": "bitmap"}}
places = [int((data.labels == c).nonzero()[0]) for c in range(4)]
upright = torch.cat([torch.stack(list(said.values())), data.images[places]]).flip(2)
plots.images(upright, [*said, *(data.classes[data.labels[i]] for i in places)])
run.show()

# %% [markdown]
# The bright bands are the formants, which say which vowel it is. The pitch of ada is so high that its
# overtones can be seen as separate stripes. The pitch of ben is half as high, and his overtones run together.
# Compare the two by ear, too.

# %% tags=["hide-input", "nbval-ignore-output"]
def player(picture: torch.Tensor, label: str) -> str:
    """An audio player for a picture, under its label."""
    sound = Audio(audio.resynthesise(picture), rate=audio.RATE, normalize=False)._repr_html_()
    return (f"<figure style='display: inline-block; margin: 0 1rem 1rem 0; max-width: 20rem; vertical-align: top'>"
            f"<figcaption>{label}</figcaption>{sound}</figure>")


HTML("".join([player(picture, label) for label, picture in said.items()]
             + [player(data.images[i], f"{data.classes[data.labels[i]]}, an utterance") for i in places[:2]]))

# %% [markdown]
# ## A picture of a sound
#
# A short piece of sound is a sum of tones. A *spectrogram* has one column for about each sixtieth of a second.
# The column shows how loud each band of tones is. The bands are narrow where we hear pitch finely (the mel
# scale). Loudness is in decibels: 0 is silence, and 1 is the loudest sound. A second of speech becomes a grey
# picture of 64 by 64 pixels. A tone of 1,000 Hz lies in one band. It is still there when the picture has been
# turned back into sound, and the sound into a picture again:

# %% tags=["nbval-check-output"]
tone = torch.sin(torch.arange(audio.RATE) * 2 * torch.pi * 1000 / audio.RATE)
picture = audio.log_mel(tone)
again = audio.log_mel(audio.resynthesise(picture))
print("loudest band:", int(picture[0, :, 32].argmax()), "and", int(again[0, :, 32].argmax()))

# %% [markdown]
# The way back is a guess, because a picture holds no phases. The algorithm of Griffin and Lim looks for phases
# that fit.

# %% [markdown]
# ## How a voice is made
#
# The voice gives one pulse for each period of the pitch. Each pulse passes a low-pass filter, whose pole $t$ is
# the timbre, and three resonances. These are the vowel's formants $f_k$ with widths $b_k$; the length $v$ of the
# vocal tract moves them. $R$ is the sampling rate:
#
# $$H(z) = \frac{1}{1 - t z^{-1}} \prod_{k=1}^{3}
# \frac{1}{1 - 2 r_k \cos(2 \pi v f_k / R) z^{-1} + r_k^2 z^{-2}}, \quad r_k = e^{-\pi b_k / R}.$$

# %% [markdown]
# ## The networks
#
# ResNet-34 and Deep Speaker take the picture as an image and say which speaker it is. The speakers are the same
# in training and test; the utterances are not.

# %%
trained = {name: training.trained(name, dataset, recipe_name=recipe, seed=seed, device=device)
           for name in dict.fromkeys([model_name, *checks.words(others, "others")])}
model = trained[model_name]
chosen = studies.benign(model, data.images, data.labels, seed=seed)[:inputs]
x, labels = data.images[chosen], data.labels[chosen]
accuracy = {name: inference.accuracy(each, data.images, data.labels)
            for name, each in trained.items()}

# %% tags=["hide-input"]
print(data)
for name, value in accuracy.items():
    print(f"{shown(name)}: accuracy {value:.1%}")
print(f"{len(x)} inputs, {len(x) * iterations} examples a fuzzer")
counted = models.table().loc[["resnet34", "deep_speaker", "resnet34_s", "deep_speaker_s"],
                           ["parameters", "neurons", "published parameters", "published neurons"]]
headed(counted.astype(object).where(counted.notna(), "-"))

# %% [markdown]
# At full width, the networks have as many neurons as published. They also have as many parameters, if
# BatchNorm's moving means and variances are counted. We made small versions, with a quarter of the channels,
# that run on two processor cores.
#
# ## The fuzzers
#
# The fuzzers change the pixels of the picture, [as for images](01_test_errors); the paper does the same in its
# feature space. They run without a bound on the {term}`L2 distance`, and within `near`.

# %%
swarms = studies.swarms(fuzzing.Swarm.paper(population=population),
                        "excitable excitable_scaled sensitive constant", points=points)
known = load(dataset, "train").images[:references]
rivals = {name: studies.rivals([each for other, each in trained.items() if other != name], known,
                               best=(data.images, data.labels), count=held_out)
          for name in trained}
fuzzers = swarms | rivals[model_name] | {FuzzerKey("noise"): fuzzing.Noise(scale=1.0)}

# %%
bounds = {"near": near, "none": None}
found = studies.at_bounds(model, x, labels, fuzzers, bounds, iterations=iterations, seed=seed)
measured = outcomes.table(found, outcomes.every_example, near=near)
run.add(outcomes.tidy(measured, bounds), table=6)

# %% tags=["hide-input"]
rates = measured["error_rate"]
headed(pd.DataFrame({budget: rates[budget] for budget in bounds}).assign(
    **{"L2 without a bound": measured["l2"]["none"]}).round(1))

# %% [markdown]
# The table shows the percentage of test errors among the examples of all iterations, and the mean L2 distance
# without a bound. `-p model_name deep_speaker_s` takes the other network.

# %% [markdown]
# ## Is the swarm guided at all?
#
# {term}`Shapley values <Shapley value>` add up to the change of the loss. Here thousands of neurons share this
# change. For the last examples of the constant swarm, the table shows the mean change of the loss and the largest
# value of any neuron and example, both in {term}`nats <nat>`. It also shows the mean percentage of neurons that are
# {term}`excitable <excitable neuron>`, that is, above 0.5 nats. As long as no neuron is excitable, all particles
# have the fitness 0, and the swarm moves as with a constant fitness. So the table also shows how many of the last
# examples, in percent, are the same as the constant swarm's to the last pixel.

# %%
for budget, bound in bounds.items():
    images = found[budget, FuzzerKey("deepsensor", "constant")].images
    psi = shapley.diagonal(shapley.Game(model, x, images, labels)).values
    run.add({"change_of_loss": psi.sum(1).mean(), "largest_psi": psi.max(),
             "excitable": 100 * excitable.excitable(psi).double().mean()}, table=6, budget=budget, bound=bound)
    for key in swarms:
        same = (found[budget, key].images == images).flatten(1).all(1)
        run.add({"same_as_constant": 100 * same.double().mean()}, table=6, budget=budget,
                bound=bound, **key.columns)

# %% tags=["hide-input"]
GUIDED = "quantity in ('change_of_loss', 'largest_psi', 'excitable', 'same_as_constant')"
wide(run.live, GUIDED, index=["quantity", "swarm"], columns="budget", digits=2)

# %% [markdown]
# ## Listen
#
# You can hear one input, what the excitable swarm made of it without a bound, and, among the last examples, the
# nearest error that any fuzzer made of it within `near`. We show the input with the closest error, preferring
# inputs for which both searches found an error. Do the three sound like one speaker?

# %%
def nearest(i: int) -> tuple:
    """The nearest error within the bound of input ``i``: (no error, L2, fuzzer, picture)."""
    return min(((not bool(campaign.errors[-1, j]), float(campaign.l2[-1, j]), key,
                 campaign.images[j])
                for (budget, key), campaign in found.items() if budget == "near"
                for j in (campaign.origin[-1] == i).nonzero()[:, 0].tolist()),
               key=lambda hit: hit[:2])


# %%
without_bound = found["none", FuzzerKey("deepsensor", "excitable")]
closest = [nearest(i) for i in range(len(x))]
i = min(range(len(x)), key=lambda i: (closest[i][0] or not bool(without_bound.errors[-1, i]),
                                      *closest[i][:2]))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Above: an input, the excitable swarm's example without a bound, and the nearest one within the bound. Below: what was added, magnified three times (gray: nothing). Titles: the speaker that the network hears, and the L2 distance to the input.", "name": "fig-excitable-listen", "classes": "bitmap"}}
heard = {"input": x[i], "excitable swarm, no bound": without_bound.images[i],
         f"nearest within {near:g}, by {shown(str(closest[i][2]))}": closest[i][3]}
pictures = torch.stack(list(heard.values()))
l2 = (pictures - x[i]).flatten(1).norm(dim=1).tolist()
given = [data.classes[c] for c in inference.predict(model, pictures).argmax(1)]
plots.sheet({f"an input of {data.classes[labels[i]]}": (pictures.flip(2), [
                f"{who}, L2 {length:.1f}" for who, length in zip(given, l2)]),
             "changes": ((0.5 + 3 * (pictures - x[i])).clamp(0, 1).flip(2), [""] * len(heard))},
            columns=len(heard), scale=1.1)
run.show()

# %% tags=["hide-input", "nbval-ignore-output"]
HTML("".join(player(picture, f"{what}: a voice of {data.classes[labels[i]]}, taken for {who}, "
                             f"L2 distance {length:.1f}")
             for (what, picture), who, length in zip(heard.items(), given, l2)))

# %% [markdown]
# The input is a voice that speaks a few vowels. It sounds somewhat metallic, because the phases are guessed.
# Without a bound nothing of it is left: the picture is random in every band and at every moment, and you hear a
# hiss. Within the bound you can still follow the vowels. Where a fuzzer drew a bright line to the right, a tone
# is held over them.
#
# A picture that a fuzzer made need not be the picture of any sound. So turn the sounds that you heard into
# pictures once more. What does the network call them, and how far (`moved`) are they from the pictures that the
# sounds were made from? `likeness` is the correlation between the picture of the input and that of the example.

# %%
sounds = torch.stack([audio.log_mel(audio.resynthesise(picture)) for picture in pictures])
taken = [data.classes[c] for c in inference.predict(model, sounds).argmax(1)]
moved = (sounds - pictures).flatten(1).norm(dim=1).tolist()
likeness = [float(np.corrcoef(x[i].flatten(), picture.flatten())[0, 1]) for picture in pictures]

# %% tags=["hide-input"]
pd.DataFrame({"taken for": given, "its sound taken for": taken, "moved": moved,
              "likeness": likeness}, index=list(heard)).round(2)

# %% [markdown]
# ## Trained too little, and too long
#
# We take the same network after few and after many epochs. For each, we count the last example of each input.

# %%
kinds = {"underfitted": {"epochs": under_epochs, "batch_size": batch_size}, "well_trained": {},
         "overfitted": {"epochs": over_epochs, "batch_size": batch_size}}
by_kind = {kind: training.trained(model_name, dataset, recipe_name=recipe, seed=seed,
                                  device=device, **changes) for kind, changes in kinds.items()}
right = studies.benign_for_each(by_kind, data.images, data.labels, count=inputs, seed=seed)
last = studies.in_each(by_kind, right, fuzzers, iterations=iterations, seed=seed)

# %%
for kind, each in by_kind.items():
    run.add({"accuracy": 100 * inference.accuracy(each, data.images, data.labels),
             "seeds": len(right[kind][0])}, table=7, training=kind)
for (kind, key), campaign in last.items():
    run.add(outcomes.last_examples(campaign), table=7, training=kind, budget="none",
            method=str(key), **key.columns)

# %% tags=["hide-input"]
wide(run.live, "table == 7", index=["quantity", "method"], columns="training",
     order={"quantity": ["test_errors", "accuracy"]})

# %% [markdown]
# ## What the claims ask for
#
# We divide DeepSensor's errors by those of each baseline, and by the mean of the three. Table 6 counts all examples
# without a bound, and Table 7 the last ones. A fuzzer that finds no error counts as having found one. The table is
# folded, because this small run decides nothing; the verdict has the same ratios from the records.

# %%
baselines = list(rivals[model_name])
for budget in bounds:
    for counted, ratio in (("test_errors", "errors_over"), ("error_categories", "categories_over")):
        run.add(outcomes.times(measured[counted][budget], swarms, baselines, ratio, table=6,
                               budget=budget))
for kind in kinds:
    counts = {key: int(last[kind, key].errors[-1].sum()) for key in fuzzers}
    run.add(outcomes.times(counts, swarms, baselines, "errors_over", table=7, training=kind,
                           budget="none"))

# %% tags=["hide-input", "hide-output"]
run.add({"accuracy": 100 * accuracy[model_name]}, table=6)
run.save(data, device=device)
wide(run.live.fillna({"training": "Table 6"}), "quantity == 'errors_over' and budget == 'none'",
     index=["swarm", "setting", "training"], columns="baseline", digits=2)

# %% [markdown]
# ## Table 6, beside the paper's
#
# The tables show, without a bound, the test errors in percent of all examples, and then the
# {term}`error categories <error category>` for each input. They give the mean [least, greatest] over the seeds. VCTK
# was not at hand. The spoken digits of `fsdd` have six speakers. So an input has at most five error categories, and
# noise is right once in six times.

# %% tags=["hide-input"]
TEXT = ("table == 6 and budget == 'none' and (swarm == 'excitable' or setting == 'paper') "
        "and quantity == ")
table_6 = published.table("deepsensor_excitable", 6)
errors = table_6[table_6["quantity"] == "test_errors"]
run.beside(errors.assign(quantity="error_rate", value=errors["value"] / 200), TEXT + "'error_rate'",
           on=[*CELL, "fuzzer", "quantity"], digits=1)

# %% tags=["hide-input"]
run.beside(table_6.query("quantity == 'categories_per_seed'"), TEXT + "'categories_per_seed'",
           on=[*CELL, "fuzzer", "quantity"])

# %% [markdown]
# ## Table 7, beside the paper's
#
# Test errors are in percent of the last examples; the paper has 1,000 of these.

# %% tags=["hide-input"]
table_7 = published.table("deepsensor_excitable", 7)
run.beside(table_7.assign(value=table_7["value"] / 10),
           "table == 7 and (swarm == 'excitable' or setting == 'paper')",
           take=outcomes.error_shares, on=[*CELL, "training", "fuzzer"], digits=1)

# %% [markdown]
# Folded: more from the records. There are the test errors of all swarms and of noise, within the bound and
# without. Then it has how many neurons are excitable, how many examples are those of the constant swarm, and
# the accuracy of the networks. Then come the different wrong classes of all inputs, how many errors are near
# their inputs, the passes, and for Table 7 the test errors among the examples of all iterations.

# %% tags=["hide-input", "hide-output"]
ours = run.recorded()
display(wide(ours, "table == 6 and quantity == 'error_rate'", index=[*CELL, "fuzzer", "swarm", "setting"],
             columns="budget"))
display(wide(ours, GUIDED, index=[*CELL, "quantity", "swarm"], columns="budget", digits=2))
display(wide(ours, "table == 7 and quantity == 'accuracy'", index=CELL, columns="training"))
display(wide(ours, "table == 6 and quantity in ('error_categories', 'share_near', 'passes', 'errors_per_1000_passes')",
             index=[*CELL, "budget", "fuzzer", "swarm", "setting"], columns="quantity", digits=2))
wide(ours, "table == 7 and quantity == 'test_errors_all_iterations'", index=[*CELL, "method"], columns="training")

# %% [markdown]
# ## Verdict

# %% tags=["hide-input"]
run.verdicts()

# %% [markdown]
# **How our runs were made.**

# %% tags=["hide-input", "statements"]
says(f"Our records cover six speakers. {sizes(rows)}.", f"The rivals ran {of_rivals(rows)}.", evidence.estimator(rows))

# %% [markdown]
# **What it means.** For the fuzzers a spectrogram is an image, so the questions about images carry over too. A
# failing input counts only if the voice is still that of the input, which your ear must judge.

# %% tags=["hide-input", "statements"]
excited = seeds_of(rows, "model", "budget", quantity="excitable").max()
stayed = seeds_of(rows, "model", "budget", who="excitable_scaled", quantity="same_as_constant")
scaled = evidence.spread(lead_of(error_rates, "excitable_scaled", "constant", "model", budget="none"))
says((f"At most {rounded_up(excited, 2)} % of the neurons of a random picture are above the threshold of half a nat.",
      excited < 0.1),
     (f"With scaled values the swarm moves: {span(stayed)} % of its examples are those of the constant swarm.",
      stayed.max() < 50),
     f"But its lead over a constant fitness is then {span(scaled['mean'], 1)} points, and more than chance in "
     f"{out_of(len(sides_of(scaled).ahead), len(scaled))} networks.")

# %% tags=["hide-input", "statements"]
SWARMS = ["excitable", "excitable_scaled", "sensitive", "constant"]
near_by = table_of(error_rates, [*SWARMS, "dlfuzz"], "model", budget="near").groupby("model").mean()
best_swarm = near_by[SWARMS].max(axis=1)
empty = seeds_of(rows, "model", who="deepxplore", table=6, quantity="test_errors", budget="none")
says((f"Within the bound, where the voice can still be followed, DLFuzz has {span(near_by['dlfuzz'] / best_swarm)} times as many "
      "errors as the best swarm.", (near_by["dlfuzz"] > best_swarm).all()),
     *([f"In {(empty == 0).sum()} of {len(empty)} runs DeepXplore found no error. We then count one, so the ratio to "
        "DeepXplore is as large as the swarm's own count."] if (empty == 0).any() else []))

# %% [markdown]
# ## Exercises
#
# **1. Try.** Which noise can you not hear? Add noise of L2 length 1, 2, 4 and 8 to an input, and listen.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# for length in (1.0, 2.0, 4.0, 8.0):
#     moved = studies.with_noise(x[:1], torch.tensor([length]))[0]
#     display(HTML(player(moved, f"L2 distance {length:g}")))
# ~~~
#
# A distance in decibels counts a change in silence like a change in speech. So listen to the pauses first.
# ```
#
# **2. Try.** Is the speaker in the pitch? Move the spectrograms up by two bands, and ask the network.
#
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# higher = x.roll(2, dims=2)
# higher[:, :, :2] = 0
# print((inference.predict(model, higher).argmax(1) == labels).double().mean())
# ~~~
#
# When all bands move, the resonances move too, as if the vocal tract were shorter.
# ```
#
# **3. Think.** Suppose that in images of digits you can hardly see an L2 distance of 2. Why can we not use
# the same number for spectrograms without a test?
#
# ```{admonition} Solution
# :class: dropdown
# A spectrogram has another number of values, in decibels scaled to [0, 1], and an ear is not an
# eye: you may hear a change in a pause and not hear the same change within a vowel. To find
# out what cannot be heard, you have to listen.
# ```
#
# **4. Code.** Write `my_decibels(power, least)`: power in decibels relative to the largest value,
# cut off at `least`. The cell says whether it is right.

# %%
my_decibels = None  # your function of an array of powers and a negative number

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees on small cases."""
    check(answer, lambda power, least: np.maximum(10 * np.log10(power / power.max()), least),
          (np.array([1.0, 0.1, 1e-9]), -60.0), (np.array([5.0, 50.0]), -60.0))


is_right(my_decibels)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_decibels(power, least):
#     loud = 10 * (np.log10(power) - np.log10(power.max()))
#     return np.where(loud < least, least, loud)
#
# is_right(my_decibels)
# ~~~
#
# Ten times the power is ten decibels more, whether you begin with a whisper or with a shout.
# ```
