"""The swarm movie: where every particle is, iteration by iteration (DeepSensor, III.D)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from dnnbook.interactive.block import Block, canvas, named, packed, picture, pixels
from dnnlib import checks
from dnnlib.fuzzing import Swarm
from dnnlib.fuzzing.guided import Fitness, Score
from dnnlib.inference import predict


class Flight:
    """A ``fitness`` that keeps what it scores: all positions of a swarm, and their fitness.

    >>> from dnnlib.fuzzing import Constant
    >>> flight = Flight(Constant())
    >>> score = flight(None, None, None)
    >>> score(torch.zeros(3, 1, 2, 2), torch.zeros(3)).tolist(), len(flight.positions)
    ([0.0, 0.0, 0.0], 1)
    """

    def __init__(self, fitness: Fitness):
        self.fitness = fitness
        self.positions: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def __call__(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Score:
        score = self.fitness(model, inputs, labels)

        def kept(x: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
            self.positions.append(x.detach().cpu().clone())
            self.values.append(torch.as_tensor(score(x, of)).detach().cpu().float())
            return self.values[-1]

        return kept


def flown(swarm: Swarm, model: nn.Module, image: torch.Tensor, label: int, *, iterations: int,
          seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """All positions (T, P, C, H, W) of one swarm around ``image`` (C, H, W), fitness (T, P).

    T is ``iterations``, or fewer where the swarm stops. Raises what the swarm raises.
    """
    flight = Flight(swarm.fitness)
    replace(swarm, fitness=flight).run(model, image[None], torch.tensor([label]),
                                       iterations=iterations,
                                       generator=torch.Generator().manual_seed(seed))
    x = torch.cat(flight.positions).contiguous()
    return (x.view(-1, swarm.population, *image.shape),
            torch.cat(flight.values).view(-1, swarm.population))


def swarm_movie(model: nn.Module, image: torch.Tensor, label: int, swarms: Mapping[str, Swarm], *,
                iterations: int = 15, classes: Sequence[str] | None = None,
                neurons: Mapping[str, int] | None = None, seed: int = 0) -> Block:
    """A figure in which the reader plays the flight of a swarm, under one fitness after another.

    Particles are small images and, seen from ``image`` (C, H, W) of class ``label``, points in the
    plane in which all swarms together are most spread out (principal components). ``swarms``: by a
    name in words, all of one population; they start alike, from ``seed``. Where the best fitness
    of a swarm never rises, the picture says so. ``neurons``: by the name of a swarm, of how many
    neurons its fitness is a share; it is then told as a number of neurons. Raises ``ValueError``
    for other arguments, and what the swarms raise.
    """
    checks.images(image[None], "image")
    sizes = sorted({swarm.population for swarm in swarms.values()})
    if len(sizes) != 1:
        raise ValueError(f"swarms: expected at least one, all of one population, got {sizes}")
    for name in neurons or {}:
        checks.known(name, swarms, "swarm of neurons")
    p = predict(model, image[None])
    names = named(classes, p.shape[1])
    label = int(checks.labels(torch.tensor([label]), 1, len(names), "label")[0])
    flights = {name: flown(swarm, model, image, label, iterations=iterations, seed=seed)
               for name, swarm in swarms.items()}
    plane = _plane(torch.cat([x.flatten(0, 1) for x, _ in flights.values()]) - image)
    data = {"image": pixels(image[None]), "shape": list(image.shape), "label": label,
            "classes": names, "population": sizes[0],
            "swarms": [_scenes(name, model, image, plane, *flight, (neurons or {}).get(name))
                       for name, flight in flights.items()]}
    return Block("swarm_movie", "Swarm movie", data, _still(data),
                 f"Paths of {sizes[0]} particles in a plane, from their start to iteration "
                 f"{iterations}, under the fitness {', '.join(swarms)}.")


def _plane(moved: torch.Tensor) -> torch.Tensor:
    """The two directions (pixels, 2) along which differences (M, C, H, W) are longest."""
    _, _, rows = torch.linalg.svd(moved.flatten(1).double(), full_matrices=False)
    rows = torch.nn.functional.pad(rows[:2], (0, 0, 0, max(0, 2 - len(rows))))
    strongest = rows.gather(1, rows.abs().argmax(1, keepdim=True))
    return (rows * strongest.sign()).T  # a direction and its opposite are equally good


def leaders(fitness: torch.Tensor) -> list[list[int]]:
    """When and which particle the swarm's best position so far is from, at each iteration.

    ``fitness``: (T, P). As in Algorithm 1, a later position replaces it only if it is fitter.

    >>> leaders(torch.tensor([[1.0, 2.0], [2.0, 0.0], [3.0, 3.0]]))
    [[0, 1], [0, 1], [2, 0]]
    """
    found: list[list[int]] = []
    for t, row in enumerate(fitness):
        first = int(row.argmax())
        fitter = not found or row[first] > fitness[tuple(found[-1])]
        found.append([t, first] if fitter else found[-1])
    return found


def _scenes(name: str, model: nn.Module, image: torch.Tensor, plane: torch.Tensor,
            x: torch.Tensor, fitness: torch.Tensor, neurons: int | None) -> dict:
    moved = x - image
    places = (moved.flatten(2).double() @ plane).round(decimals=2)
    found = predict(model, x.flatten(0, 1)).argmax(1).view(x.shape[:2])
    levels = (x * 15).round().to(torch.uint8).flatten().numpy()  # two pixels in a byte
    levels = np.append(levels, np.zeros(len(levels) % 2, dtype=np.uint8))
    if neurons and not torch.allclose(fitness * neurons, (fitness * neurons).round(), atol=0.01):
        raise ValueError(f"neurons: the fitness of {name} is no share of {neurons}")
    return {"name": name, "neurons": neurons, "pixels": packed(levels[::2] << 4 | levels[1::2]),
            "places": places.tolist(), "class": found.tolist(), "leaders": leaders(fitness),
            "fitness": [[round(v, 6) for v in row] for row in fitness.tolist()],
            "l2": [round(v, 2) for v in moved.flatten(2).norm(dim=2).mean(1).tolist()]}


def _still(data: dict) -> bytes:
    """The paths of all particles under each fitness."""
    figure = canvas(2.4 * len(data["swarms"]), 2.8)
    axes = figure.subplots(1, len(data["swarms"]), squeeze=False, sharex=True, sharey=True)[0]
    for axis, swarm in zip(axes, data["swarms"]):
        for path, wrong in zip(np.array(swarm["places"]).transpose(1, 0, 2),
                               np.array(swarm["class"])[-1] != data["label"]):
            colour = "#d55e00" if wrong else "#0173b2"
            axis.plot(path[:, 0], path[:, 1], "-", lw=0.8, color=colour, alpha=0.6)
            axis.plot(*path[0], "o", ms=3, mfc="white", mec=colour)
            axis.plot(*path[-1], "o", ms=4, color=colour)
        axis.plot(0, 0, "k*", ms=9)
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.set_title(f"fitness: {swarm['name']}", fontsize=9)
    return picture(figure)
