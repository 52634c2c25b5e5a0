"""Whose numbers a figure shows, said below it: those of a run, or those of the book's records."""

from textwrap import fill

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from dnnbook.words import shown

RECORDS = "from the book's records"


def run_of(dataset: str, model_name: str, seed: int, **changed) -> str:
    """What a figure of a run is of; ``changed``: what else it was asked.

    >>> run_of("mnist_small", "lenet5", 0, patch="noise")
    'this run: MNIST (small), LeNet-5, seed 0, patch noise'
    """
    more = "".join(f", {shown(name)} {shown(value) if isinstance(value, str) else value}"
                   for name, value in changed.items())
    return f"this run: {shown(dataset)}, {shown(model_name)}, seed {seed}{more}"


def signed(figure: Figure, whose: str) -> Figure:
    """The figure with ``whose`` below its lower right corner."""
    figure.draw_without_rendering()  # a legend outside the axes has its place, and keeps it
    figure.set_layout_engine("none")
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
    lines = fill(whose, int(18 * figure.get_figwidth()))  # letters of this size in an inch
    figure.text(1, 0, lines, ha="right", va="top", fontsize=7, color="0.4",
                parse_math=False)  # names of folders may have $
    return figure


def show(whose: str) -> None:
    """Show the figures of a cell, each signed."""
    for number in plt.get_fignums():
        signed(plt.figure(number), whose)
    plt.show()
