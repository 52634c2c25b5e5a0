"""Figures of NSATP and PEACEPACT: how often small patches change a prediction."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch import nn

from dnnbook.display import plots
from dnnbook.words import shown
from dnnlib.measures import fragility

CELLS = 40  # to each side of a recorded scatter
KINDS = {nn.Conv2d: ("convolution", "C0"), nn.MaxPool2d: ("pool", "C2"),
         nn.Linear: ("dense layer", "C1")}


def layers(networks: Mapping[str, nn.Sequential], shape: tuple[int, int, int]) -> Figure:
    """Networks by their titles, one below the other: a bar for each layer of :data:`KINDS`.

    As high as it passes on values, of an image of ``shape`` (C, H, W), on a logarithmic scale.
    """
    figure, axes = plt.subplots(len(networks), 1, figsize=(7.5, 2.2 * len(networks)),
                                sharex=True, sharey=True, squeeze=False)
    for axis, (title, network) in zip(axes[:, 0], networks.items()):
        x, place = torch.zeros(1, *shape), 0
        for layer in network:
            x = layer(x)
            if type(layer) in KINDS:
                axis.bar(place, x.numel(), width=0.8, color=KINDS[type(layer)][1])
                axis.text(place, 1.3 * x.numel(), "×".join(map(str, x.shape[1:])), ha="center",
                          fontsize=7)
                place += 1
        axis.set(yscale="log", ylim=(5, 200_000), xticks=[], ylabel="values")
        axis.set_title(f"{title}: {place} layers", loc="left", fontsize=10)
    axes[0, 0].legend(handles=[Patch(color=colour, label=kind) for kind, colour in KINDS.values()],
                      fontsize=8, loc="upper right")
    return figure


def decays(distances: Mapping[str, np.ndarray], eff: np.ndarray,
           fits: Mapping[str, fragility.Fit]) -> Figure:
    """Eff (N,) against each distance (N,) by its name: inputs, means, and both exponentials.

    ``fits``: those to ln Eff, by the same names.
    """
    count = len(distances)
    figure, axes = plt.subplots(1, count, squeeze=False, sharey=True,
                                figsize=(max(5.5, 3.3 * count), 3.6 if count == 1 else 3.2))
    for axis, (name, x) in zip(axes[0], distances.items()):
        plots.decay(axis, x, eff, {
            "fit to ln Eff": fits[name],
            "fit to Eff": fragility.fit_exponential(x, eff, method="curve")})
        axis.set(xlabel=shown(name))
    axes[0, 0].set_ylabel("Eff")
    axes[0, 0].legend(fontsize=8)
    return figure


def orders(ranks: Mapping[str, np.ndarray], eff: np.ndarray) -> Figure:
    """Share of the label changes, Eff (N,), that each order (N,) meets, by the inputs tried."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    plots.order_curve(axis, eff, {shown(name): order for name, order in ranks.items()})
    return figure


def scatter(x: np.ndarray, eff: np.ndarray, **row) -> dict:
    """Every input of a scatter of Eff (N,) over a distance (N,), as one row of a record.

    The plane is cut into 40 x 40 cells, x from 0 to its largest value, Eff from 0 to 1; 'inputs'
    lists those that are not empty as "number:inputs". ``row`` holds columns to repeat. A row of
    10,000 images has some kilobytes.

    >>> scatter(np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0]))["inputs"]
    '39:1 1560:2'
    """
    high = float(x.max()) or 1.0
    counts = np.histogram2d(x, eff, CELLS, range=((0, high), (0, 1)))[0].astype(int).ravel()
    return row | {"quantity": "scatter", "x": high, "value": len(x),
                  "inputs": " ".join(f"{i}:{counts[i]}" for i in counts.nonzero()[0])}


def spread(row: Mapping) -> np.ndarray:
    """The inputs in each cell of a recorded :func:`scatter`, (40, 40): distance, Eff.

    >>> int(spread(scatter(np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])))[39, 0])
    2
    """
    counts = np.zeros(CELLS * CELLS, int)
    for cell in str(row["inputs"]).split():
        place, inputs = cell.split(":")
        counts[int(place)] = int(inputs)
    return counts.reshape(CELLS, CELLS)


def recorded_decays(table: pd.DataFrame) -> Figure:
    """From records of one network: inputs, means of intervals and fitted curves, for each dataset.

    ``table``: rows of 'scatter', 'bin' and of the fit through ln Eff to all inputs, 'a' and 'b'.
    The inputs are those of the first seed that has a scatter; each seed has its curve and means.
    """
    if table.empty:
        return plots.nothing()
    groups = list(table.groupby("dataset", sort=False))
    names = list(dict.fromkeys(table["distance"].dropna()))
    figure, axes = plt.subplots(len(groups), len(names), squeeze=False, sharey=True,
                                figsize=(3.1 * len(names), 2.3 * len(groups)))
    for line, (dataset, rows) in zip(axes, groups):
        for axis, name in zip(line, names):
            part = rows[rows["distance"] == name]
            for row in part[part["quantity"] == "scatter"].head(1).to_dict("records"):
                counts = np.ma.masked_equal(spread(row), 0)
                axis.pcolormesh(np.linspace(0, row["x"], CELLS + 1), np.linspace(0, 1, CELLS + 1),
                                counts.T, cmap="Greys", norm=LogNorm(0.3, counts.max()))
            for color, (_, seed) in enumerate(part.groupby("seed")):
                bins = seed[seed["quantity"] == "bin"]
                axis.plot(bins["x"], bins["value"], "o", ms=3, color=f"C{color}")
                fit = seed.dropna(subset="fit").set_index("quantity")["value"]
                grid = np.linspace(0, bins["x"].max(), 100)
                axis.plot(grid, fit["a"] * np.exp(fit["b"] * grid), color=f"C{color}", lw=1.2)
            axis.set(ylim=(-0.02, 1.02))
            axis.set_title(f"{shown(dataset)}, {shown(name)}", fontsize=9)
        line[0].set_ylabel("Eff")
    return figure
