"""From campaigns to failing inputs: examples as 8-bit images, and of each input the nearest."""

import torch
from torch import nn

from dnnlib.custom.own_code import is_own
from dnnlib.fuzzing import Budget, Campaign, Fuzzer
from dnnlib.fuzzing.contract import BEYOND, bounded
from dnnlib.inference import predict

LEAD = 1e-4  # in probability: more than rounding errors differ from one batch size to another


def whole_levels(x: torch.Tensor, inputs: torch.Tensor, budget: Budget) -> torch.Tensor:
    """Images (N, C, H, W) near their inputs as uint8, so that none leaves the budget by rounding.

    A pixel's step from its input, in 255ths, is rounded to the nearest whole number; where the
    image would then be outside, fewer steps are rounded up: those with a fraction of 0.6, 0.7, ...
    at least. Inputs are taken as 8-bit images.

    >>> x = torch.tensor([0.0, 2.55, 2.75, -1.2]).view(1, 1, 2, 2) / 255 + 100 / 255
    >>> inputs = torch.full((1, 1, 2, 2), 100 / 255)
    >>> [whole_levels(x, inputs, Budget(l2=l2 / 255)).flatten().tolist() for l2 in (5, 4)]
    [[100, 103, 103, 99], [100, 102, 103, 99]]
    """
    start = (inputs * 255).round()
    step = x * 255 - start
    whole = step.trunc()
    fraction, found = (step - whole).abs(), whole
    for least in (0.9, 0.8, 0.7, 0.6, 0.5):
        moved = whole + step.sign() * (fraction >= least)
        far = moved.flatten(1).double() / 255
        fits = far.norm(dim=1) <= (torch.inf if budget.l2 is None else budget.l2 * (1 + 1e-6))
        if budget.linf is not None:
            fits &= far.abs().amax(1) <= budget.linf * (1 + 1e-6)
        found = torch.where(fits.view(-1, 1, 1, 1), moved, found)
    return (start + found).clamp(0, 255).to(torch.uint8)


def campaign_of(model: nn.Module, fuzzer: Fuzzer, inputs: torch.Tensor, labels: torch.Tensor, *,
                iterations: int, generator: torch.Generator,
                keep: bool = False) -> tuple[Campaign, list[torch.Tensor]]:
    """A fuzzer's campaign, and, if they are to be kept, its examples, iteration by iteration.

    A fuzzer of one's own gets copies of the inputs, and :class:`protocol.Unbound` says if an
    example is not an image within its budget of its input.
    """
    shown: list[torch.Tensor] = []
    if not is_own(type(fuzzer)):
        watch = (lambda x: shown.append(x.cpu())) if keep else None
        return fuzzer.run(model, inputs, labels, iterations=iterations, generator=generator,
                          watch=watch), shown
    campaign = fuzzer.run(model, inputs.clone(), labels.clone(), iterations=iterations,
                          generator=generator,
                          watch=lambda x: shown.append(x.detach().to("cpu", copy=True)))
    bounded(fuzzer, inputs, campaign, shown, iterations)
    return campaign, shown


def nearest(model: nn.Module, fuzzer: Fuzzer, inputs: torch.Tensor, labels: torch.Tensor, *,
            iterations: int, generator: torch.Generator,
            batch_size: int = 256) -> tuple[list[dict], int]:
    """Of each input and wrong class the nearest example, in this order, if there is one; and how
    many passes the fuzzer took, without those that judge what it made.

    ``inputs``: (S, C, H, W), 8-bit images as values in [0, 1]; ``labels``: (S,), both on the CPU.
    Examples of all iterations are judged after :func:`whole_levels`, and fail if another class
    than the label leads all others in probability by 1e-4. Gives dicts of 'input', 0 to S - 1,
    'predicted', 'l2', 'linf', 'iteration' from 1, and 'image', uint8 (C, H, W).
    """
    campaign, shown = campaign_of(model, fuzzer, inputs, labels, iterations=iterations,
                                  generator=generator, keep=True)
    best: dict[tuple[int, int], dict] = {}
    for number, (x, origin) in enumerate(zip(shown, campaign.origin), start=1):
        images = whole_levels(x, inputs[origin], fuzzer.budget)
        p, given = predict(model, images / 255, batch_size=batch_size).topk(2)
        fails = (given[:, 0] != labels[origin]) & (p[:, 0] - p[:, 1] > LEAD)
        step = (images / 255 - inputs[origin]).flatten(1).double()
        far = {"l2": step.norm(dim=1), "linf": step.abs().amax(1)}
        for name, bound in (("l2", fuzzer.budget.l2), ("linf", fuzzer.budget.linf)):
            if bound is not None:  # an input between levels is not where its steps start
                fails &= far[name] <= bound * (1 + BEYOND)
        l2, linf = far["l2"].tolist(), far["linf"].tolist()
        for i in fails.nonzero()[:, 0].tolist():
            key = int(origin[i]), int(given[i, 0])
            if key not in best or l2[i] < best[key]["l2"]:  # a view would keep the whole batch
                best[key] = {"input": key[0], "predicted": key[1], "l2": l2[i], "linf": linf[i],
                             "iteration": number, "image": images[i].clone()}
    return [best[key] for key in sorted(best)], campaign.passes
