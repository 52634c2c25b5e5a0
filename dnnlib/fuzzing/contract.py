"""What a fuzzer must keep to, checked: for one that somebody writes, and for those of here."""

from collections.abc import Sequence
from dataclasses import is_dataclass

import torch
from torch import nn

from dnnlib.fuzzing.protocol import Budget, Campaign, Fuzzer, Unbound, one_of_each
from dnnlib.inference import device_of, noise, small_network, state_of, unchanged

BEYOND = 1e-4  # of a distance, relative: more than rounding errors of float32 come to


def check_fuzzer(chosen: Fuzzer, model: nn.Module | None = None, x: torch.Tensor | None = None,
                 *, iterations: int = 3) -> None:
    """Raise ``ValueError``, in one line that says what came, unless a fuzzer keeps its contract.

    - It is a frozen dataclass with a ``budget``, and ``run`` gives a :class:`Campaign`.
    - Every iteration gives one example for each input, and ``watch`` sees it.
    - Examples are in [0, 1] and within the budget; the campaign has their distances.
    - The same generator gives the same examples, and no other random numbers are drawn.
    - The inputs and the model are left as they were: weights, mode, hooks, gradients.

    ``x``: inputs (S, C, H, W) in [0, 1], default 40 images of noise, (40, 1, 8, 8). ``model``:
    default a small network for those.

    >>> from dnnlib.fuzzing import Noise
    >>> check_fuzzer(Noise(budget=Budget(l2=1.0)))
    """
    name = type(chosen).__name__
    if not (is_dataclass(chosen) and type(chosen).__dataclass_params__.frozen
            and isinstance(getattr(chosen, "budget", None), Budget)):
        raise ValueError(f"{name}: expected a frozen dataclass with a budget, dnnlib.fuzzing."
                         "Budget")
    model = small_network() if model is None else model
    x = noise() if x is None else x
    with torch.no_grad():
        labels = model(x.to(device_of(model))).argmax(1).cpu()
    given, before, drawn = x.clone(), state_of(model), torch.get_rng_state()
    campaign, shown = _ran(chosen, model, x, labels, iterations)
    if not torch.equal(torch.get_rng_state(), drawn):
        raise ValueError(f"{name}: expected random numbers of the generator alone, drew others")
    if not torch.equal(x, given):
        raise ValueError(f"{name}: expected to leave the inputs as they were, changed them")
    unchanged(model, before, name)
    bounded(chosen, x, campaign, shown, iterations)
    for what, told in (("l2", campaign.l2), ("linf", campaign.linf)):
        norm = 2 if what == "l2" else torch.inf
        far = torch.stack([(images - x[origin]).flatten(1).norm(norm, dim=1)
                           for images, origin in zip(shown, campaign.origin)])
        if not torch.allclose(far, told, rtol=BEYOND, atol=BEYOND):
            raise ValueError(f"{name}: expected the {what} distances of its examples, up to "
                             f"{far.max():.4g}, got up to {told.max():.4g}")
    again = _ran(chosen, model, x, labels, iterations)[1]
    if not all(map(torch.equal, again, shown)):
        raise ValueError(f"{name}: expected the same examples from the same generator, got others")


def bounded(chosen: Fuzzer, inputs: torch.Tensor, campaign: Campaign,
            shown: Sequence[torch.Tensor], iterations: int) -> None:
    """:class:`Unbound` unless each iteration showed images within the budget of their inputs;
    another ``ValueError`` for what is no campaign."""
    name, budget = type(chosen).__name__.lower(), chosen.budget
    if not isinstance(campaign, Campaign):
        raise ValueError(f"{name}: expected run to give a Campaign, got "
                         f"{type(campaign).__name__}" + (
                             ": is a `return` missing?" if campaign is None else ""))
    if not len(shown) == len(campaign.origin) == iterations:
        raise Unbound(f"{name}: expected the examples of {iterations} "
                      f"iteration{'s' * (iterations > 1)}, got {len(campaign.origin)} of them, and "
                      f"{len(shown)} shown to watch")
    for x, origin in zip(shown, campaign.origin):
        one_of_each(x, inputs)
        step = (x - inputs[origin]).flatten(1).double()
        for what, far, bound in (("L2", step.norm(dim=1).max(), budget.l2),
                                 ("L-infinity", step.abs().max(), budget.linf)):
            if bound is not None and not far <= bound * (1 + BEYOND):  # or NaN
                raise Unbound(f"{name}: expected examples within {bound:g} of their inputs in "
                              f"{what}, got one at {far:.6g}; budget.project brings them there")
        if x.min() < -BEYOND or x.max() > 1 + BEYOND:
            raise Unbound(f"{name}: expected examples with values in [0, 1], got "
                          f"[{x.min():g}, {x.max():g}]")


def _ran(chosen: Fuzzer, model: nn.Module, x: torch.Tensor, labels: torch.Tensor, iterations: int
         ) -> tuple[Campaign, list[torch.Tensor]]:
    """The campaign, and its examples (S, C, H, W), iteration by iteration."""
    shown: list[torch.Tensor] = []
    campaign = chosen.run(model, x, labels, iterations=iterations,
                          generator=torch.Generator().manual_seed(0),
                          watch=lambda images: shown.append(images.detach().cpu().clone()))
    return campaign, shown
