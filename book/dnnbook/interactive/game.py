"""The label-budget game: a queue of images in some order, and labels for the first of them."""

from collections.abc import Mapping, Sequence

import torch

from dnnbook.interactive.block import Block, canvas, named, picture, pixels
from dnnlib import checks

MARK, CALM = "#d55e00", "#0173b2"
_SHOWN = 14  # of each queue, in the picture that stands in
_DRAWS = 300  # among which the candidates that take part are chosen
_SHARES = (0.05, 0.1, 0.2, 0.4)  # of the candidates with labels, at which the draws are compared


def label_game(images: torch.Tensor, labels: torch.Tensor, predicted: torch.Tensor,
               orders: Mapping[str, torch.Tensor], *,
               knowing: Mapping[str, torch.Tensor] | None = None,
               classes: Sequence[str] | None = None, most: int = 200) -> Block:
    """A figure in which the reader buys labels, and the fault detection rate counts up.

    A tenth of the candidates have labels at first.

    - ``images``: candidates (N, C, H, W) in [0, 1]; ``labels``, ``predicted``: true and predicted
      classes (N,); ``classes``: their names.
    - ``orders``: by the name of a method all candidates, most worth a label first (N,).
    - ``knowing``: the orders of those methods that change once each candidate's original is known.
    - ``most``: only so many candidates take part, drawn so that each order has nearly the fault
      detection rates that it has on all; each order is kept.

    Raises ``ValueError`` for arguments that do not fit.
    """
    checks.images(images, "images")
    checks.positive(most, "most")
    count = int(max(labels.max(), predicted.max())) + 1 if classes is None else len(classes)
    names = named(classes, count)
    labels = checks.labels(labels, len(images), count)
    predicted = checks.labels(predicted, len(images), count, "predicted")
    knowing = knowing or {}
    if not orders:
        raise ValueError("orders: expected at least one, got none")
    for name in knowing:
        checks.known(name, orders, "method of knowing")
    for name, order in [*orders.items(), *knowing.items()]:
        if sorted(order.tolist()) != list(range(len(images))):
            raise ValueError(f"orders: expected each of {len(images)} candidates once, from {name}")
    wrong = labels != predicted
    some = _like_all(wrong, [*orders.values(), *knowing.values()], min(most, len(images)))
    places = torch.full((len(images),), -1).scatter_(0, some, torch.arange(len(some)))

    def kept(given: Mapping[str, torch.Tensor]) -> dict[str, list[int]]:
        return {name: [place for place in places[order].tolist() if place >= 0]
                for name, order in given.items()}

    data = {"images": pixels(images[some]), "shape": list(images.shape[1:]), "classes": names,
            "labels": labels[some].tolist(), "predicted": predicted[some].tolist(),
            "orders": kept(orders), "knowing": kept(knowing)}
    return Block("label_game", "Label-budget game", data, _still(images[some], data),
                 f"The first images in the queues of {', '.join(orders)}; those that the network "
                 "gets wrong have a frame.")


def _like_all(wrong: torch.Tensor, orders: Sequence[torch.Tensor], count: int) -> torch.Tensor:
    """Of some draws of ``count`` candidates, that with fault detection rates nearest to all's."""
    def rates(taken: torch.Tensor) -> torch.Tensor:
        kept = [wrong[order[taken[order]]].float() for order in orders]
        return torch.stack([row[:max(1, round(share * len(row)))].mean()
                            for row in kept for share in (*_SHARES, 1)])

    if count == len(wrong):
        return torch.arange(count)
    generator, none = torch.Generator().manual_seed(0), torch.zeros_like(wrong)
    aim = rates(~none)
    draws = [none.index_fill(0, torch.randperm(len(wrong), generator=generator)[:count], True)
             for _ in range(_DRAWS)]
    best = min(draws, key=lambda taken: float((rates(taken) - aim).abs().max()))
    return best.nonzero()[:, 0]


def _still(x: torch.Tensor, data: dict) -> bytes:
    queues = data["orders"] | {f"{name}, original known": order
                               for name, order in data["knowing"].items()}
    shown = min(_SHOWN, len(x))
    figure = canvas(0.6 * shown + 1, 0.85 * len(queues))
    axes = figure.subplots(len(queues), shown, squeeze=False)
    for row, (name, order) in zip(axes, queues.items()):
        for axis, place in zip(row, order):
            wrong = data["labels"][place] != data["predicted"][place]
            axis.imshow(x[place].permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
            for side in axis.spines.values():
                side.set(color=MARK if wrong else CALM, linewidth=2.5 if wrong else 0.5)
        row[0].set_title(name, fontsize=8, loc="left")
    return picture(figure)
