# %% [markdown]
# # How does a swarm search?
#
# **The method** (DeepSensor I, III.C and III.D, Algorithm 1, Eqs. 2 to 5). DeepSensor looks for
# images that a network gets wrong with a *particle swarm*: a few images that move through the space
# of all images. Each of them remembers the best place where it has been, and all follow the best of
# them.
#
# **What you will learn.** What a particle, a fitness and a swarm are. Every line of the algorithm beside its
# symbol. That the engine of this book computes the same numbers, and what a swarm does not look for.

# %% tags=["parameters"]
pixels = "0.35 0.6"  # the input: brightness of its left and of its right pixel, 0 to 1
population = 6  # NUM, images of the swarm
iterations = 20  # G_k, moves of every particle
inertia = "0.4 0.9"  # omega at the start and at the end
c1 = 2.0  # pull of a particle's own best place
c2 = 2.0  # pull of the swarm's best place
threshold = 0.5  # lambda, the sensitivity above which a neuron counts
seed = 0  # of the training, and of all else that is random

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import torch
from torch import nn

from dnnbook import interactive
from dnnbook.chapters import declared
from dnnbook.chapters.statements import says
from dnnbook.chapters.yours import compared
from dnnbook.display import plots, whose
from dnnlib import checks, fuzzing
from dnnlib.fuzzing.numbers import Numbers
from dnnlib.neurons import activations
from dnnlib.neurons.sensitivity import SensitiveNeurons

plots.style()
declared.check("deepsensor_sensitivity/13", pixels=pixels, population=population,
               iterations=iterations, inertia=inertia, c1=c1, c2=c2, threshold=threshold, seed=seed)
x = torch.tensor([[*map(float, checks.numbers(pixels, "pixels"))]])
omega_initial, omega_end = map(float, checks.numbers(inertia, "inertia"))

# %% [markdown]
# ## First, watch one
#
# An image of two pixels is a point in a square. Further to the right, the left pixel is brighter; further up,
# the right pixel is brighter. A small network was just trained to say which of the two pixels is brighter.
# The white star is the input, and the red line is where the network changes its answer. The colour is the
# *fitness* of each image: the share of the network's neurons that are
# {term}`sensitive <sensitive neuron>` there. The images of the swarm fly.

# %% tags=["hide-input"]
torch.manual_seed(seed)
model = nn.Sequential(nn.Flatten(), nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(),
                      nn.Linear(8, 2))
known = torch.rand(500, 1, 1, 2)
brighter = known.flatten(1).argmax(1)
optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(200):
    optimiser.zero_grad()
    nn.functional.cross_entropy(model(known), brighter).backward()
    optimiser.step()
image = x.view(1, 1, 1, 2)
label = model(image).argmax(1)


def flown(fitness=SensitiveNeurons(threshold=threshold)):
    """The engine's swarm: places (iterations, population, 2), and the best image of each."""
    places, best = [], []

    def watched(model, inputs, labels):
        score = fitness(model, inputs, labels)

        def seen(images, of):
            places.append(images.detach().clone().view(-1, 2))
            return score(images, of)

        return seen

    swarm = fuzzing.Swarm(fitness=watched, population=population, c1=c1, c2=c2,
                          inertia=(omega_initial, omega_end))
    swarm.run(model, image, label, iterations=iterations, watch=best.append,
              generator=torch.Generator().manual_seed(seed))
    return torch.stack(places), torch.stack(best).view(-1, 2)


side = torch.linspace(0, 1, 201)
every = torch.cartesian_prod(side, side)  # every image there is, nearly
with torch.no_grad():
    height = SensitiveNeurons(threshold=threshold)(model, image, label)(
        every.view(-1, 1, 1, 2), torch.zeros(len(every), dtype=torch.int64))
    wrong = model(every.view(-1, 1, 1, 2)).argmax(1) != label


def field(axis, title, places, best, ground=height):
    """The landscape, with the particles at the last of the ``places`` and where they came from."""
    axis.pcolormesh(side, side, ground.view(201, 201).T, cmap="viridis", vmin=0, vmax=height.max(),
                    rasterized=True)
    axis.contour(side, side, wrong.view(201, 201).T.float(), levels=[0.5], colors="red")
    for track in places[-3:].unbind(1):
        axis.plot(*track.T, color="black", lw=0.8, alpha=0.6)
    axis.plot(*places[-1].T, "o", color="white", mec="black", ms=6)
    axis.plot(*best, "D", color="C3", mec="black", ms=8)
    axis.plot(*x[0], "*", color="white", mec="black", ms=15)
    axis.set(title=title, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")


places, best = flown()
display(interactive.swarm_ground(
    model, image[0], int(label), population=population, iterations=iterations, threshold=threshold,
    inertia=(omega_initial, omega_end), c1=c1, c2=c2, seed=seed))

# %% [markdown]
# Press *Play*, or move the slider with the arrow keys. The diamond is the best image that the swarm has seen.
# Then move $\lambda$, the least sensitivity that counts, and both inertias: all fly again at once. Or draw
# ground of your own: do they find your highest place? The flight with this chapter's parameters in four stills:

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The particles of the swarm among all images of two pixels; brighter colours mean a greater share of sensitive neurons. Star: the input; red line: beyond it the network gives another answer; diamond: the best image so far; lines: the last moves.", "name": "fig-swarm-by-hand", "classes": "bitmap"}}
figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), sharey=True)
for axis, at in zip(axes, (0, 1, iterations // 2, iterations - 1)):
    field(axis, f"iteration {at}", places[:at + 1], best[at])
axes[0].set(xlabel="left pixel", ylabel="right pixel")
whose.show(f"this run: pixels {pixels}, {population} particles, inertia {inertia}, c1 {c1}, c2 {c2}, threshold {threshold}, seed {seed}")

# %% [markdown]
# ## People in the fog
#
# A few people look for the highest place in a field. There is fog: each person sees only how high the ground is
# under their own feet. But they can remember, and they can call. At every step each of them does three things
# at once. They walk on a little in the direction that they were walking. They turn back towards the best
# place that *they* have stood on, and towards the best place that *anyone* has called out. How strongly they
# turn is drawn by lot, so that they do not all take the same path.
#
# The words for this:
#
# | word | in the fog | here | symbol |
# |---|---|---|---|
# | particle | a person | an image | |
# | position | where the person stands | the pixels of that image | $x_p$ |
# | velocity | the last step | what was last added to each pixel | $v$ |
# | fitness | the height of the ground | the share of sensitive neurons | Fitness |
# | own best | the best place that the person remembers | the fittest image that it has been | $p_\text{best}$ |
# | swarm's best | the best place anyone has called out | the fittest image of all | $g_\text{best}$ |
# | inertia | how much of the last step is kept | the same | $\omega^g$ |
#
# Nobody needs to know in which direction the ground rises. That is why swarms are used where there
# is no gradient to follow. A share of neurons has no gradient: its landscape is made of terraces,
# and each terrace is flat.
#
# ## The height of the ground: Eqs. 1 and 2
#
# A neuron $n$ is sensitive if its activation $\varphi_n$ rises by more than $\lambda$ for each unit of
# distance between the input $x$ and the particle $x_p$. The fitness is the share of such neurons:
#
# $$NS_n = \frac{\varphi_n(x_p) - \varphi_n(x)}{\lVert x_p - x \rVert_2} \quad (1)$$
#
# $$\text{Fitness}(x_p) = \frac{\text{number of neurons with } NS_n > \lambda}
# {\text{number of neurons}} \quad (2)$$

# %%
def fitness(x_p):
    """Eq. 2 of images of two pixels (N, 2)."""
    phi = activations.record(model, torch.cat([x, x_p]).view(-1, 1, 1, 2)).values
    ns = (phi[1:] - phi[:1]) / (x_p - x).norm(dim=1, keepdim=True)  # Eq. 1
    return (ns > threshold).float().mean(1)  # Eq. 2


# %%
my_height = compared(fitness(every), height, "SensitiveNeurons")

# %% [markdown]
# `height` is what the engine's `SensitiveNeurons` found for every image of the square: the colours
# above. Now look at the shape of this landscape. Most of it is made of sectors, like slices of a cake cut
# at the star. There the *direction* decides in which an image was moved, and hardly how *far* it was
# moved. Eq. 1 divides by the distance, so a step that is twice as long and changes a
# neuron twice as much counts the same. Nothing in the fitness keeps a particle near its input. And
# nothing in it knows the red line.
#
# ## Line by line
#
# | Algorithm 1 | in symbols | in Python |
# |---|---|---|
# | line 3, start | $x_p$ anywhere; $v$ is "the change of the pixel value" | `x_p = luck.uniform(...)[0]`, `v = x_p - x` |
# | line 4, Eq. 3 | $\omega^g = (\omega_\text{initial} - \omega_\text{end})\,\frac{G_k - g}{G_k} + \omega_\text{end}$ | `omega[g]` |
# | line 5, Eq. 2 | $\text{Fitness}(x_p)$ | `F = fitness(x_p)` |
# | lines 7 and 8 | if it is above the particle's best: keep fitness and place, $p_\text{best} = x_p$ | `own = F > P` and the line below |
# | lines 9 and 10 | if one is above the swarm's best: $g_\text{best} = p_\text{best}$ | `if P.max() > G` and the line below |
# | line 13, Eq. 4 | $v \leftarrow \omega^g v + c_1 r_1 (p_\text{best} - x_p) + c_2 r_2 (g_\text{best} - x_p)$ | `v = omega[g] * v + ...` |
# | line 14, Eq. 5 | $x_p \leftarrow x_p + v$, and pixels stay in $[0, 1]$ | `x_p = (x_p + v).clamp(0, 1)` |
#
# `r_1` and `r_2` are the paper's $rand(\cdot)$, one number in $[0, 1]$ for each particle. `P` and `G`
# are the fitnesses of $p_\text{best}$ and $g_\text{best}$.

# %%
omega = [(omega_initial - omega_end) * (iterations - g) / iterations + omega_end
         for g in range(iterations)]  # Eq. 3

# %% tags=["hide-input"]
draw = torch.randint(2**62, (1,), generator=torch.Generator().manual_seed(seed))

# %%
luck, path = Numbers(draw), []  # the engine gives each input random numbers of its own
x_p = luck.uniform(population, 2)[0]  # line 3
v = x_p - x
p_best, P, G = x_p.clone(), torch.full((population,), -torch.inf), -torch.inf
for g in range(iterations):
    path.append(x_p)
    F = fitness(x_p)  # line 5, Eq. 2
    own = F > P  # line 7
    P[own], p_best[own] = F[own], x_p[own]
    if P.max() > G:  # line 9
        G, g_best = P.max(), p_best[P.argmax()].clone()
    r_1, r_2 = luck.uniform(2, population, 1)[0]
    v = omega[g] * v + c1 * r_1 * (p_best - x_p) + c2 * r_2 * (g_best - x_p)  # Eq. 4
    x_p = (x_p + v).clamp(0, 1)  # Eq. 5

# %% [markdown]
# The engine's `Swarm`, which made the film, gets the same random numbers. All its particles are at
# the same places in every iteration, and it ends with the same image:

# %%
mine = torch.stack(path)  # (iterations, particles, 2)
my_places = compared(mine.flatten(0, 1), places.flatten(0, 1), "Swarm", of="places",
                     but="the flat ground of the first exercise").view_as(mine)
print(f"the swarm's best image: {g_best[0]:.2f} and {g_best[1]:.2f}, fitness {G:.2f}")

# %% [markdown]
# A real swarm differs only in size. An MNIST digit has 784 pixels instead of two, so its particles fly in 784
# directions, and its landscape cannot be drawn.
#
# {source}`dnnlib.fuzzing.swarm.Swarm` does the same for several inputs at a time. There line 3 is
# `_begin`. Lines 5 to 12 are in `fly`, below the comments `# score` and `# remember`. Lines 13 and
# 14 are `_move`, and Eq. 3 is `inertias`. Lines 17 and 21 are in `fly`, at `going` and `shown`.

# %% tags=["remove-cell"]
assert all(hasattr(fuzzing.Swarm, step) for step in ("run", "_begin", "fly", "_move", "inertias"))

# %% [markdown]
# ## What the swarm found
#
# There are two questions about an image that a swarm found: is it still near the input, and does
# the network get it wrong? Neither is what the swarm was asked for.

# %% tags=["hide-input"]
distance = float((g_best - x[0]).norm())
final = bool(model(g_best.view(1, 1, 1, 2)).argmax(1) != label)
top = my_height > my_height.max() - 1e-6
share = 100 * float(wrong[top].float().mean())
says(f"The image above is {distance:.2f} away from the input; the side of the square is 1. "
     + ("The network gives it another class" if final else "The network gives it the same class")
     + " than the input." * final + " as the input." * (not final),
     f"Of the images on the highest ground, where {100 * float(my_height.max()):.0f} % of the neurons are "
     f"sensitive, {share:.0f} % get another class; of all images, "
     f"{100 * float(wrong.float().mean()):.0f} %.",
     "To climb to the highest ground and to cross the red line are two different things."
     if 5 < share < 95 else "Here the highest ground lies on one side of the red line.")

# %% [markdown]
# [The chapter on test errors](02_test_errors) measures whether the two go together in large
# networks. There the swarm always has a twin that climbs nothing.
#
# ## What the listing leaves open
#
# The printed algorithm cannot be run as it stands. Each place in this table has more than one
# answer. Ours is the default; where an option of `Swarm` is named, it offers the others. [Another
# chapter](14_open_choices) measures what some of these answers change.
#
# | place | what stands there | what we do | option |
# |---|---|---|---|
# | lines 7 to 10, and Eq. 4 | the best is a fitness in the listing, a place in the equation | both are kept: the fitness decides, the place is used | |
# | line 5 | the fitness is computed before the loop over the particles | it is computed for every particle, in every iteration | |
# | Eq. 3 and IV.B | inertia rises from 0.4 to 0.9; in other swarms it falls | as printed | `inertia` |
# | III.D, IV.F | III.D puts particles at the input, and then at random places, as IV.F does | at random places | `start`, `velocity` |
# | line 17 and IV.B | stop once the fitness is above $\epsilon = 1$, which no share can be | never stops early | `epsilon` |
# | Eq. 4 | whether $rand(\cdot)$ is drawn for each pixel | one number for each particle and term | `random` |
# | Eq. 5 | no pixel limits | pixels stay in $[0, 1]$ | `budget` |
#
# Rising inertia, as the paper has it, has a consequence. In most swarms each step keeps less of the
# last one, so the particles calm down around the best place. With rising inertia each step keeps more.
# In the flight above:

# %% tags=["hide-input"]
steps = my_places.diff(dim=0).norm(dim=2).mean(1)
rests = "have come" if steps[-1] < steps[0] / 10 else "have not come"
says(f"In their last move the particles still go {float(steps[-1]):.2f} on average, in their first "
     f"{float(steps[0]):.2f}: they {rests} to rest.")

# %% [markdown]
# ## Exercises
#
# **1. Predict.** Make the ground flat: every image has the same fitness. Where will the particles
# be after the last iteration, and which image does the swarm show? Draw it on paper, then open the
# cell.

# %% tags=["hide-cell"] mystnb={"figure": {"caption": "The same swarm with a constant fitness: the start, and the last iteration. Diamond: the image that the swarm shows.", "name": "fig-swarm-flat", "classes": "bitmap"}}
flat, shown = flown(fuzzing.Constant())
figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), sharey=True)
for axis, at in zip(axes, (0, iterations - 1)):
    field(axis, f"flat ground, iteration {at}", flat[:at + 1], shown[at], torch.zeros_like(height))
whose.show(f"this run: pixels {pixels}, {population} particles, inertia {inertia}, c1 {c1}, c2 {c2}, threshold {threshold}, seed {seed}")

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# A place is better only if it is *above* the best one, and on flat ground none ever is. So each
# particle's own best stays its start, and the swarm's best stays the first particle's start: the
# diamond never moves. Each particle is drawn to these two places only. The image shown is the first
# one drawn: pure chance. This swarm is the twin with which the other chapters compare.
# ```
#
# **2. Code.** Particles run far away from the star. Write `my_within(x_p, x)`: images (N, 2) farther than 0.2
# from the image `x` (1, 2) are brought back to that distance, in a straight line; nearer ones stay. The cell
# says whether it is right.

# %%
my_within = None  # your function

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    """Whether an answer agrees with the engine's budget on small cases."""

    def within(x_p, x):
        return fuzzing.Budget(l2=0.2).project(*(each[:, None, None] for each in (x_p, x)))[:, 0, 0]

    images = torch.tensor([[0.4, 0.5], [0.4, 0.6], [0.0, 0.0], [1.0, 0.5], [0.3, 0.9]])
    check(answer, within, (images, images[:1]), (images, images[2:3]))


is_right(my_within)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_within(x_p, x):
#     step = x_p - x
#     return x + step * (0.2 / step.norm(dim=1, keepdim=True)).clamp(max=1)
#
# is_right(my_within)
# ~~~
#
# Used in the line of Eq. 5, it makes the swarm search only near the input. [The chapter on test
# errors](02_test_errors) compares all its fuzzers under such bounds, and without one.
# ```
#
# **3. Think.** You want images that are *near* the input *and* on the other side of the red line,
# and you may change only Eq. 2. The paper already divides by the distance. Why is that not enough?
# What would you write?
#
# ```{admonition} Solution
# :class: dropdown
# Dividing makes a slope out of a change: it forgets how far the image is, instead of asking it to
# be near. A particle at the edge of the square may score as high as one beside the star. To prefer
# near images, subtract a price for the distance, or bound it; and to cross the line, use something
# that knows where the line is, such as the gap between the first and the second class. The fitness
# is then no longer about sensitive neurons. [DLFuzz](02_test_errors) climbs such a gap, together with
# the activations of some neurons.
# ```
