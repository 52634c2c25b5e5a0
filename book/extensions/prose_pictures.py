"""Pictures of pages that are no chapters, drawn from records and networks.

They are committed, as last digits differ by machine; a test compares them with what is drawn now.
``python book/extensions/prose_pictures.py`` draws them again.
"""

from pathlib import Path

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ASSETS = Path(__file__).resolve().parents[2] / "book" / "assets"
SHOWN = "nsatp-rq3-pd-best"  # a claim with few cells of each kind
ARROW = {"arrowstyle": "->", "color": "0.25", "lw": 1, "connectionstyle": "arc3,rad=0.15"}


def annotated_forest(target: Path) -> None:
    """The forest plot of a claim, with an arrow to each thing that one reads in it."""
    from dnnbook import published
    from dnnbook.display import verdict_plots
    from dnnbook.published.printed import printed
    from dnnbook.records.verdicts import verdict

    claim, = (claim for claim in published.claims() if claim.id == SHOWN)
    found, paper = verdict(claim), printed(claim)
    lines = verdict_plots._lines(found, paper)
    figure = Figure(figsize=(8, 0.42 * len(lines) + 1.1), layout="constrained")
    axis = figure.subplots()
    verdict_plots.forest(axis, found, paper)
    left, right = axis.get_xlim()
    axis.set_xlim(right=right + 0.8 * (right - left))
    said = {"holds": "the whole interval is on the claim's side: it holds",
            "open": "the interval has both sides: open",
            "fails": "the whole interval is on the other side: it fails"}
    for outcome, words in said.items():
        for _, line in lines[lines["outcome"] == outcome].head(1).iterrows():
            _tell(axis, words, (max(line["high"], claim.threshold), line["y"]))
    for _, line in lines[lines["outcome"] == "holds"].tail(1).iterrows():
        _tell(axis, "the dot is the mean over the seeds, the line its interval",
              (line["high"], line["y"]))
    for _, line in lines.tail(1).iterrows():
        _tell(axis, "a cross is the paper's value; a cross alone: not run",
              (line["value"], line["y"]))
    axis.annotate("what the claim needs", (claim.threshold, axis.get_ylim()[0]), xytext=(6, 4),
                  textcoords="offset points", fontsize=8, color="0.25")
    _save(figure, target)


def _save(figure: Figure, target: Path) -> None:
    """Without the date: the same file from the same records."""
    figure.savefig(target, **({"metadata": {"Date": None}} if target.suffix == ".svg" else {}))


def _tell(axis: Axes, words: str, place: tuple[float, float]) -> None:
    """Words in the right half of the axis, with an arrow to a place in it."""
    axis.annotate(words, place, xytext=(0.99, place[1]), textcoords=axis.get_yaxis_transform(),
                  ha="right", va="center", fontsize=8, color="0.25",
                  arrowprops=ARROW | {"shrinkA": 2, "shrinkB": 6})


def channel_and_position(target: Path) -> None:
    """A digit, what the first convolution of LeNet-1 makes of it, and what is a neuron there."""
    import torch
    from safetensors.torch import load_file

    from dnnbook.data import load
    from dnnlib import models
    from dnnlib.custom import example
    from dnnlib.neurons import activations

    model = models.build(example.MODEL)
    model.load_state_dict(load_file(example.ASSETS / example.WEIGHTS))
    image = load("mnist_small").images[:1]
    first = next(iter(models.neuron_layers(model)))
    with torch.no_grad():
        maps = activations.record(model.eval(), image, layers=[first], neuron="unit").values
    side = image.shape[-1]
    maps = maps.view(-1, side, side)
    figure = Figure(figsize=(8, 2.5), layout="constrained")
    axes = figure.subplots(1, 1 + len(maps))
    axes[0].imshow(image[0, 0].numpy(), cmap="gray")
    axes[0].set_title("the input", fontsize=9)
    for k, (axis, one) in enumerate(zip(axes[1:], maps), 1):
        drawn = axis.imshow(one.numpy(), cmap="viridis", vmin=0, vmax=float(maps.max()))
        axis.set_title(f"channel {k}", fontsize=9)
        axis.set_xlabel(f"channel: 1 neuron,\nits mean {one.mean():.2f};\n"
                        f"positions: {one.numel()} neurons", fontsize=8)
    for axis in axes:
        axis.set(xticks=[], yticks=[])
    figure.colorbar(drawn, ax=axes[-1], label="activation", shrink=0.8)
    _save(figure, target)


PICTURES = {"annotated_forest.svg": annotated_forest,
            "channel_and_position.svg": channel_and_position}


def draw(name: str, target: Path) -> None:
    """One of PICTURES: the same file from the same records, whatever theme is set."""
    with matplotlib.style.context(["default", {"svg.hashsalt": "prose"}]):
        PICTURES[name](target)


if __name__ == "__main__":
    for name in PICTURES:
        draw(name, ASSETS / name)
