"""The swarm by hand: a swarm among all images of two pixels, flown again as the reader moves it.

DeepSensor, III.C and III.D. The browser has the network and the engine's random numbers, so that
lambda, the inertia and the ground under the particles can change.
"""

import matplotlib
import numpy as np
import torch
from torch import nn

from dnnbook.interactive.block import Block, canvas, packed, picture
from dnnbook.interactive.movie import flown
from dnnbook.interactive.networks import exported
from dnnlib import checks
from dnnlib.fuzzing import Swarm
from dnnlib.fuzzing.numbers import Numbers
from dnnlib.inference import predict
from dnnlib.neurons.sensitivity import SensitiveNeurons

SIDE = 101  # images along each side of the square
COLOURS = 32


def swarm_ground(model: nn.Module, image: torch.Tensor, label: int, *, population: int = 6,
                 iterations: int = 20, threshold: float = 0.5,
                 inertia: tuple[float, float] = (0.4, 0.9), c1: float = 2.0, c2: float = 2.0,
                 seed: int = 0) -> Block:
    """A figure in which a swarm flies through the square of all images of two pixels.

    The reader plays it, moves lambda (``threshold``) and both ``inertia``, or draws ground of their
    own. ``model``: see :func:`networks.exported`; ``image``: (1, 1, 2), in [0, 1], of class
    ``label``. All else is as in :class:`fuzzing.Swarm`; until something is moved, the flight is
    that of the engine from ``seed``. Raises ``ValueError`` for an image of another shape, a network
    that the browser cannot run, and what the swarm raises.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> swarm_ground(model, torch.tensor([[[0.3, 0.6]]]), 0, iterations=3)
    <interactive figure: Swarm by hand>
    """
    if image.shape != (1, 1, 2):
        raise ValueError(f"image: expected two pixels, shape (1, 1, 2), got {tuple(image.shape)}")
    checks.images(image[None], "image")
    network, fitness = exported(model, (1, 1, 2)), SensitiveNeurons(threshold=threshold)
    swarm = Swarm(fitness=fitness, population=population, inertia=inertia, c1=c1, c2=c2)
    places = flown(swarm, model, image, label, iterations=iterations, seed=seed)[0].flatten(2)
    numbers = Numbers(torch.randint(2**62, (1,), generator=torch.Generator().manual_seed(seed)))
    numbers.uniform(population, 2)  # the start
    luck = torch.stack([numbers.uniform(2, population)[0] for _ in range(iterations)])
    counted = fitness.names(model, image[None])
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 1, COLOURS))[:, :3]
    data = {"network": network, "image": image.flatten().tolist(), "label": int(label),
            "counted": [i for i, layer in enumerate(network["layers"]) if layer["name"] in counted],
            "threshold": threshold, "inertia": list(inertia), "c1": c1, "c2": c2,
            "start": places[0].tolist(), "luck": packed(luck.numpy()), "side": SIDE,
            "colours": (colours * 255).round().astype(int).tolist()}
    return Block("swarm_ground", "Swarm by hand", data,
                 _still(model, image, label, fitness, places),
                 f"A square of coloured sectors around a star, and paths of {population} points "
                 f"in it up to iteration {iterations}.")


def _still(model: nn.Module, image: torch.Tensor, label: int, fitness: SensitiveNeurons,
           places: torch.Tensor) -> bytes:
    """The ground, the border between the classes and the last moves."""
    side = np.linspace(0, 1, SIDE, dtype=np.float32)
    every = torch.cartesian_prod(*[torch.from_numpy(side)] * 2).view(-1, 1, 1, 2)
    with torch.no_grad():
        height = fitness(model, image[None], torch.tensor([label]))(
            every, torch.zeros(len(every), dtype=torch.int64)).view(SIDE, SIDE).T.numpy()
    other = (predict(model, every).argmax(1) != label).view(SIDE, SIDE).T.numpy()
    figure = canvas(4.6, 3.6)
    axis = figure.subplots()
    drawn = axis.pcolormesh(side, side, 100 * height, cmap="viridis", vmin=0)
    if other.any() and not other.all():
        axis.contour(side, side, other, levels=[0.5], colors="red")
    for track in places[-4:].unbind(1):
        axis.plot(*track.T.numpy(), color="black", lw=0.8)
    axis.plot(*places[-1].T.numpy(), "o", color="white", mec="black", ms=6)
    axis.plot(*image.flatten().tolist(), "*", color="white", mec="black", ms=15)
    axis.set(xlabel="left pixel", ylabel="right pixel", aspect="equal")
    figure.colorbar(drawn, label="sensitive neurons (%)")
    return picture(figure)
