"""What is looked at before every run: one list of checks of a person's model and images.

``rank``, ``fuzz``, ``compare``, ``layers`` and the estimates take the model that they run from
:func:`classifier`, and with images from :func:`first_look`. What would make a result wrong without
a word is refused here, in one line that says what came and what was expected; what may be as it
should is told by a line of the log. The list is :data:`CHECKS`.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from dnnlib import checks, models
from dnnlib.custom.answering import unanswered
from dnnlib.custom.classifier import (
    WRAP,
    Classifier,
    columns,
    heads_of,
    logits_of,
    output_named,
    unwrapped,
)
from dnnlib.custom.own_code import told
from dnnlib.custom.photos import Photos
from dnnlib.custom.preparation import Preparation
from dnnlib.data.folders import of_the_machine
from dnnlib.fuzzing import Budget
from dnnlib.inference import device_of, fast_layout

PROBE = 64  # images that show what a model's outputs are
PAIRED = 8  # of them, passed again two by two
AGAIN = 16  # images that are read twice
FAR = 40  # how far beyond [0, 1] images go that show whether outputs have bounds
_log = logging.getLogger(__name__)  # to stderr, as it is


@dataclass(frozen=True, eq=False)
class Look:
    """Images ``x`` (n, C, H, W), the model's own ``outputs`` (n, columns), and how to get more.

    ``probabilities``: what the person says of the outputs, None for nothing. ``rounding``: up to
    which outputs of one image may differ from pass to pass. ``within``: up to which probabilities
    may sum to another number than 1.
    """

    run: Callable[[torch.Tensor], torch.Tensor]
    x: torch.Tensor
    outputs: torch.Tensor
    probabilities: bool | None
    rounding: float
    within: float


class Looked(NamedTuple):
    """``model``: as :func:`classifier` gives it; ``images``: that it was shown, at most 64, without
    those that it fails on; ``answers``: its own outputs for these, float32 (n, columns);
    ``output``: which of its outputs that was, and what it was taken for."""

    model: nn.Module
    images: torch.Tensor
    answers: torch.Tensor
    output: str


def _finite(look: Look) -> None:
    if not look.outputs.isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")


def _differ(look: Look) -> None:
    if (look.outputs == look.outputs[0]).all() and (look.x != look.x[0]).any():
        raise ValueError(f"model: the same output for each of {len(look.x)} images, so that there "
                         "is nothing to rank; are its weights loaded?")


def _same_again(look: Look) -> None:
    """An image has the outputs that it had, and has them whatever else is in the pass."""
    n = len(look.x)
    places = torch.linspace(0, n - 1, min(n, PAIRED) // 2 * 2 or 1).long()
    try:
        paired = torch.cat([look.run(look.x[two]) for two in places.split(2)])
    except Exception as error:  # whatever their code raises
        raise ValueError(f"model: takes {n} images at once, and not two: {told(error)}") from error
    try:
        alone = look.run(look.x[:1])
    except Exception as error:  # whatever their code raises
        raise ValueError(f"model: takes {n} images at once, and not one: {told(error)}") from error
    if alone.shape != look.outputs[:1].shape:
        raise ValueError(f"model: expected outputs {tuple(look.outputs[:1].shape)} for one image, "
                         f"got {tuple(alone.shape)}; is there a squeeze()?")
    off = (paired - look.outputs[places]).abs().max()
    if off <= look.rounding:
        return
    if not (look.run(look.x) - look.outputs).abs().max() <= look.rounding:
        raise ValueError("model: two passes over the same images give different outputs; is "
                         "dropout, or another source of noise, left on?")
    words = "an image's outputs depend on the other images of the pass"
    if off <= 0.05 * (look.outputs.amax(0) - look.outputs.amin(0)).max():
        _log.warning("model: %s, by up to %.2g; scores change a little with the batch size",
                     words, off)
        return
    raise ValueError(f"model: {words}, by up to {off:.2g}; expected those of each image alone; "
                     "is something normalised over the batch, as without running statistics?")


def _logits(look: Look) -> None:
    """Outputs are logits, or probabilities where they are said to be."""
    outputs, single = look.outputs, look.outputs.shape[1] == 1
    total, positive = outputs.sum(1), bool((outputs >= 0).all())
    inside = positive and bool((outputs <= 1).all())
    summed = positive and not single and bool(((total - 1).abs() < look.within).all())
    if look.probabilities and not (inside if single else summed):
        raise ValueError("model: expected probabilities, as said (--probabilities), got outputs "
                         "that are negative or do not sum to 1; logits need no such option")
    if look.probabilities is not None or (outputs == outputs[0]).all() and not summed:
        return
    said = "; if these are logits, say so (--logits)"
    if summed:
        raise ValueError("model: every output is non-negative and sums to 1, so that these are "
                         f"probabilities where logits are expected; say so (--probabilities){said}")
    spread = (outputs.amax(0) - outputs.amin(0)).sum()
    if positive and not single and total.max() - total.min() <= look.within * spread:
        raise ValueError(f"model: every output is non-negative and sums to {total[0]:.4g}, where "
                         "logits are expected; return these, or what sums to 1, with "
                         f"--probabilities{said}")
    if not inside:
        return
    bounded = _bounded(look)
    if bounded:
        whose = "" if single else ", each class's by itself, as after a sigmoid"
        raise ValueError(f"model: every output is in [0, 1]{whose}, where logits are expected; "
                         + ("say so (--probabilities)" if single else "return what goes into the "
                            "sigmoid") + said)
    if bounded is None:
        _log.warning("model: every output is in [0, 1]; these may be probabilities, and are taken "
                     "for logits%s", "; if not, say so (--probabilities)" if single else "")


def _bounded(look: Look) -> bool | None:
    """Whether outputs stay in [0, 1] for images far beyond; None if nobody knows.

    Nobody does of a model that limits or normalises its images first.
    """
    x = look.x[:PAIRED]
    far = (x - 0.5) * FAR
    try:
        outputs, *near = (look.run(images) for images in (far, x, far.clamp(0, 1)))
    except Exception:  # whatever their code raises
        return None
    if not outputs.isfinite().all() or any(
            (outputs - same).abs().max() <= look.rounding for same in near):
        return None
    return bool(((outputs > -1e-3) & (outputs < 1 + 1e-3)).all())


CHECKS = (_finite, _differ, _same_again, _logits)


def classifier(model: nn.Module, x: torch.Tensor, *,
               probabilities: bool | None = None) -> nn.Module:
    """``model`` as one that gives logits, after a look at its outputs for some of ``x``.

    It is in evaluation mode then. ``x``: (N, C, H, W) in [0, 1]. ``probabilities``: True if the
    model returns these, False for logits that look like probabilities; by default they are looked
    at. Raises ``ValueError`` unless the outputs are finite, of at least two classes, not all the
    same, of each image whatever else is in the pass, and logits or probabilities as announced;
    ``TypeError`` for what holds no logits, or is no network. Images that the model fails on are not
    looked at, if they are fewer than half.
    """
    return _looked_at(model, x, probabilities).model


@torch.no_grad()
def _looked_at(model: nn.Module, x: torch.Tensor, probabilities: bool | None) -> Looked:
    if not isinstance(model, nn.Module):
        raise TypeError("model: expected a torch.nn.Module, got "
                        f"{getattr(model, '__name__', type(model).__name__)}; {WRAP}")
    some = checks.images(x)[torch.linspace(0, len(x) - 1, min(len(x), PROBE)).long()]
    wrapped, model = model, unwrapped(model)
    preparation = Preparation() if model is wrapped else wrapped.preparation
    if not model.state_dict():  # a quantised one has no parameters, and has weights
        raise ValueError("model: expected one with parameters, got none; are its layers attributes "
                         "of the module?")
    plain = Classifier(model, preparation=preparation).eval()

    def run(images: torch.Tensor) -> torch.Tensor:
        given = plain.returned(fast_layout(images, device_of(model)))
        return columns(logits_of(given), len(images))

    try:
        returned = plain.returned(fast_layout(some, device_of(model)))
        outputs = columns(logits_of(returned), len(some))
        whole = outputs.isfinite().flatten(1).all(1) if outputs.shape[:1] == (len(some),) else None
        rest = some if whole is None or whole.all() else some[whole.cpu()]
    except Exception as error:  # whatever their code raises
        if str(error).endswith(WRAP) or of_the_machine(error):
            raise
        rest = _not_failing(run, some)
        if len(rest) == len(some) > 1:
            raise ValueError(f"model: takes one image, and not {len(some)} at once; was it traced "
                             "or exported for one? Make it for any number of images: "
                             f"{told(error)}") from error
        if len(rest) == 0 or 2 * len(rest) <= len(some):
            raise ValueError(f"model: cannot take images of shape {tuple(x.shape[1:])}; "
                             f"{_hint(run, some)}: {told(error)}") from error
    if 2 * len(rest) > len(some) > len(rest):
        return _looked_at(Classifier(model, preparation=preparation), rest, probabilities)
    if outputs.ndim != 2 or len(outputs) != len(some) or not outputs.shape[1]:
        raise ValueError("model: expected outputs (N, classes) of at least two classes, or (N, 1) "
                         f"for two, got shape {tuple(outputs.shape)} for {len(some)} images")
    _first_of_several(returned, outputs)
    kinds = {p.dtype for p in model.parameters()} | {logits_of(returned).dtype}
    half = bool(kinds & {torch.float16, torch.bfloat16})
    share = 0.05 if half else 1e-3 if outputs.device.type == "cpu" else 5e-3  # GPUs round more
    varied = outputs[:, (outputs != outputs[0]).any(0)]  # no class that is masked by a constant
    varied = varied if varied.numel() else outputs
    rounding = share * (varied - varied.mean()).abs().max() + (
        1e-2 if half else 1e-5) * varied.abs().max()
    look = Look(run, some, outputs, probabilities, rounding.item(), 1e-2 if half else 1e-3)
    for check in CHECKS:
        check(look)
    taken = output_named(returned) + (
        f" as {'probabilities' if probabilities else 'logits'}" if outputs.shape[1] > 1 else
        f", one number for each image, as the {'probability' if probabilities else 'logit'} of the "
        "second of two classes")
    fits = kinds == {torch.float32} and outputs.shape[1] > 1 and preparation.mean is None
    if fits and models.spec_of(model) and probabilities is None:
        return Looked(model, some, outputs.cpu(), taken)
    fit = Classifier(model, probabilities=bool(probabilities), preparation=preparation).eval()
    if probabilities is False:
        fit.logits = True
    return Looked(fit, some, outputs.cpu(), taken)


def _not_failing(run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    bad = unanswered(run, x)
    return x[[i for i in range(len(x)) if i not in bad]]


def few(model: nn.Module, photos: Photos) -> torch.Tensor:
    """At most two images that ``model``, as :func:`classifier` gives it, does not fail on."""
    found = torch.empty(0)
    for count in (2, PROBE):
        if len(found) < 2:
            found = _not_failing(lambda x: model(fast_layout(x, device_of(model))),
                                 photos.some(count))[:2]
    if not len(found):
        raise ValueError(f"model: fails on each of {min(PROBE, len(photos))} images; the first: "
                         f"{next(iter(unanswered(model, photos.some(1)).values()))}")
    return found


def _hint(run: Callable[[torch.Tensor], torch.Tensor], some: torch.Tensor) -> str:
    """What may mend that a model does not take images of this shape."""
    other = {1: 3, 3: 1}.get(some.shape[1])
    if other:
        kind = "gray-scale" if other == 3 else "in colour"
        try:
            run(some.mean(1, keepdim=True).repeat(1, other, 1, 1))
        except Exception:  # whatever their code raises
            return "a size or channels may mend that"
        return f"they are {kind}, and it takes {other} channels: say so (--channels {other})"
    return "a size or channels may mend that"


def _first_of_several(returned, outputs: torch.Tensor) -> None:
    """Tells of a tuple whose first tensor was taken for logits, where others might be, and of what
    a dict does not call logits."""
    if isinstance(returned, Mapping) and "logits" not in returned:
        _log.warning("model: returns a dict without logits; its only tensor (N, classes), %s, is "
                     "taken for them", *heads_of(returned))
        return
    if not isinstance(returned, tuple | list) or hasattr(returned, "logits"):
        return
    others = [each.shape[1] for each in returned[1:] if isinstance(each, torch.Tensor)
              and each.ndim == 2 and len(each) == len(outputs)]
    if any(n not in (1, outputs.shape[1]) for n in others):
        _log.warning("model: returns tensors of %s columns; the first is taken for logits, of %d "
                     "classes; return a dict with `logits` to take another",
                     ", ".join(map(str, [outputs.shape[1], *others])), outputs.shape[1])


def first_look(model: nn.Module, photos: Photos, reference: Photos | None = None, *,
               probabilities: bool | None = None, budget: Budget = Budget(),
               ) -> Looked:
    """The model as :func:`classifier` gives it, and what it was shown.

    ``reference``: training images; ``budget``: distances that examples are to keep. Raises
    ``ValueError`` for images that are others when they are read again, and for a distance that
    bounds nothing.
    """
    for name, these in (("images", photos), ("reference", reference)):
        if these is not None:
            _read_again(these, name)
    x = photos.some(PROBE)
    most = x[0].numel() ** 0.5
    if budget.l2 is not None and budget.l2 > most:
        raise ValueError(f"l2: pixels are in [0, 1], so that images of {x[0].numel():,} values are "
                         f"at most {most:.4g} apart and {budget.l2:g} bounds nothing; did you mean "
                         f"{budget.l2:g}/255, {budget.l2 / 255:.4g}?")
    return _looked_at(model, x, probabilities)


def _read_again(photos: Photos, name: str) -> None:
    for i in torch.linspace(0, len(photos) - 1, min(len(photos), AGAIN)).long().tolist():
        try:
            one, other = photos[i], photos[i]
        except ValueError:  # cannot be read: told where all are read
            continue
        if not torch.equal(one, other):
            raise ValueError(f"{name}: {photos.paths[i]} is another image each time that it is "
                             "read; is a transform random, as in training?")
