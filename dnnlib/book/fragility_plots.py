"""Figures of NSATP and PEACEPACT: how often small patches change a prediction."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from dnnlib.book import plots
from dnnlib.measures import fragility


def decays(distances: Mapping[str, np.ndarray], eff: np.ndarray) -> Figure:
    """Eff (N,) against each distance (N,) by its name: inputs, means, and both exponentials."""
    count = len(distances)
    figure, axes = plt.subplots(1, count, squeeze=False, sharey=True,
                                figsize=(max(5.5, 3.3 * count), 3.6 if count == 1 else 3.2))
    for axis, (name, x) in zip(axes[0], distances.items()):
        plots.decay(axis, x, eff, {
            "fit to ln Eff": fragility.fit_exponential(x, eff),
            "fit to Eff": fragility.fit_exponential(x, eff, method="curve")})
        axis.set(xlabel=name.upper())
    axes[0, 0].set_ylabel("Eff")
    axes[0, 0].legend(fontsize=8)
    return figure


def orders(ranks: Mapping[str, np.ndarray], eff: np.ndarray) -> Figure:
    """Share of the label changes, Eff (N,), that each order (N,) meets, by the inputs tried."""
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    plots.order_curve(axis, eff, {name.upper(): order for name, order in ranks.items()})
    return figure
