"""Can a method work on this model? Told by two images, before all the others are looked at."""

from collections.abc import Sequence
from dataclasses import fields, replace

import torch
from torch import nn

from dnnlib import fuzzing, selection
from dnnlib.custom.classifier import unwrapped
from dnnlib.custom.failures import campaign_of
from dnnlib.custom.formats import OutputsOnly
from dnnlib.custom.methods import Kind, takes_layers
from dnnlib.custom.own_code import class_of, is_own, made_of, own_code, sentence
from dnnlib.fuzzing import ArtAttack, DeepHunter, DeepXplore, DLFuzz, Fuzzer, Noise, Swarm
from dnnlib.neurons.layers import matching
from dnnlib.selection.protocol import Selector, passed

FAULTS = (ValueError, TypeError, RuntimeError, LookupError, AttributeError, ArithmeticError,
          AssertionError)


def chosen_of(name: str, kind: Kind, model: nn.Module, x: torch.Tensor, *,
              layers: Sequence[str] | None = None, **given) -> Selector:
    """The selector for this model, with those options ``given`` that it has and that are not None.

    ``layers``: patterns, see :func:`layers.matching`; a selector that looks at one layer takes the
    last. Raises ``ValueError`` in one line if it looks at none, or cannot order images of this
    model: two of ``x`` are tried, and for a selector of one's own whether all keep its contract.
    """
    known = {field.name for field in fields(kind)}
    if layers is not None and not kind.vectors:
        if not takes_layers(kind):
            raise ValueError(f"layers: not with {name}, which takes all that count")
        outputs_only(name, model)
        found = matching(model, x[:2], layers)
        given |= {"layers": found, "layer": found[-1]}
    if not is_own(kind) and not kind.vectors:
        outputs_only(name, model)
    try:
        with own_code(kind):
            x = x.clone()  # that they may change
            options = {k: v for k, v in given.items() if k in known and v is not None}
            chosen = made_of(kind, options).settled(model, x[:2])
            if chosen.keeps:
                chosen.learn(passed(model, x[:2], torch.arange(2), [chosen]))
            elif is_own(kind):
                selection.check_selector(chosen, model, x, sizes=(1, 3))
            else:
                if isinstance(chosen, selection.Excitable):
                    _has_slopes(model, x[:8])
                chosen.order(model, x[:2])
    except FAULTS as error:
        said = line(error).removeprefix(f"{class_of(kind).__name__}: ")
        raise ValueError(f"{name}: {said}") from error
    return chosen


def rehearse_fuzzer(name: str, fuzzer: Fuzzer, model: nn.Module, x: torch.Tensor,
                    labels: torch.Tensor) -> None:
    """The same for a fuzzer: one iteration from one image, with one particle of a swarm; of one's
    own from two, and whether it keeps its contract."""
    if isinstance(fuzzer, ArtAttack):
        outputs_only(name, model, "follows the gradient of")
    elif not isinstance(fuzzer, Noise):
        outputs_only(name, model)
    if isinstance(fuzzer, Swarm):
        fuzzer = replace(fuzzer, population=1)
    if isinstance(fuzzer, DeepHunter):
        fuzzer = replace(fuzzer, reference=fuzzer.reference[:2])
    try:
        with own_code(type(fuzzer)):
            if name == "excitable" or isinstance(fuzzer, DLFuzz | DeepXplore | ArtAttack):
                _has_slopes(model, x[:8])
            if is_own(type(fuzzer)):
                fuzzing.check_fuzzer(fuzzer, model, x[:2].clone(), iterations=1)
            else:
                campaign_of(model, fuzzer, x[:1], labels[:1], iterations=1,
                            generator=torch.Generator().manual_seed(0))
    except FAULTS as error:
        said = line(error).removeprefix(f"{type(fuzzer).__name__}: ").removeprefix(f"{name}: ")
        raise ValueError(f"{name}: {said}") from error


def _has_slopes(model: nn.Module, x: torch.Tensor) -> None:
    """``ValueError`` for outputs that no gradient leads from to the images, or one of 0 alone."""
    images = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        outputs = model(images)
    if not outputs.requires_grad:
        raise ValueError("follows gradients, and the model's outputs have none: are they detached, "
                         "or computed under no_grad?")
    slopes, = torch.autograd.grad(outputs.amax(1).sum(), images, allow_unused=True)
    if slopes is None or not slopes.any():
        raise ValueError(f"follows gradients, and those of {len(x)} images are 0: does the model "
                         "round them, or count them as constants?")


def outputs_only(name: str, model: nn.Module, does: str = "looks into the layers of") -> None:
    """``ValueError`` for a model that gives its outputs and no more."""
    if isinstance(inner := unwrapped(model), OutputsOnly):
        raise ValueError(f"{name}: {does} a model, and {inner.format} gives its outputs only; "
                         "give its code instead, FILE.py:FUNCTION")


def line(error: Exception) -> str:
    """What an error says, in one line."""
    return sentence(error) or type(error).__name__
