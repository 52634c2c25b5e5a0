"""A person's own classifier, made to fit what the engine expects: logits, float32, one tensor."""

from collections.abc import Mapping

import torch
from torch import nn

from dnnlib import checks, models
from dnnlib.custom.preparation import Preparation
from dnnlib.custom.told import told
from dnnlib.inference import device_of, fast_layout

PROBE = 64  # images that show what a model's outputs are
WRAP = ("wrap it: class Mine(nn.Module): __init__(self, model) keeps it, and "
        "forward(self, x) returns its logits (N, classes)")


class Classifier(nn.Module):
    """A person's model as the selectors want it: logits, whatever the memory layout.

    Images come as float32, channels last, on which the usual ``x.view(len(x), -1)`` fails: they are
    laid out anew, in the type of the model's parameters, and normalised by ``preparation``'s
    ``mean`` and ``std``. Outputs are those of :func:`logits_of`, as float32. With
    ``probabilities``, the logarithm of the outputs, whose softmax they are; one column is
    the second of two classes. Its modules have the names that they have in the model.

    >>> model = Classifier(nn.Sequential(nn.Flatten(), nn.Softmax(1)), probabilities=True)
    >>> model(torch.tensor([[[[0.25, 0.75]]]])).softmax(1).sum().item()
    1.0
    """

    casts = True  # images are float32, whatever the parameters are

    def __init__(self, model: nn.Module, *, probabilities: bool = False,
                 preparation: Preparation | None = None):
        super().__init__()
        self.model, self.probabilities = model, probabilities
        self.preparation = preparation or Preparation()
        self.normalised = self.preparation.mean, self.preparation.std  # part of its fingerprint

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """The model's own names, without one for this shell around it."""
        yield prefix, self
        for name, module in self.model.named_modules(memo, prefix, remove_duplicate):
            yield (name, module) if name else ("model", module)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.preparation.mean is not None:
            mean, std = (torch.tensor(values, dtype=x.dtype, device=x.device).view(-1, 1, 1)
                         for values in (self.preparation.mean, self.preparation.std))
            x = (x - mean) / std
        kind = next((p.dtype for p in self.model.parameters() if p.is_floating_point()), x.dtype)
        # contiguous() would leave the strides of a single channel
        output = logits_of(self.model(x.to(kind).clone(memory_format=torch.contiguous_format)))
        output = output.float() if output.is_floating_point() else output
        if output.ndim == 1 and len(output) == len(x):
            output = output[:, None]
        if output.ndim == 2 and output.shape[1] == 1:  # one logit, or probability, of two classes
            other = 1 - output if self.probabilities else torch.zeros_like(output)
            output = torch.cat([other, output], 1)
        if not self.probabilities:
            return output
        return output.clamp_min(torch.finfo(output.dtype).tiny).log()


def logits_of(output) -> torch.Tensor:
    """The logits in what a model returns: a tensor, or what is called ``logits`` in it.

    Of a tuple or list the first entry, as with auxiliary heads. Raises ``TypeError`` for anything
    else.

    >>> logits_of({"logits": torch.zeros(2, 3), "loss": None}).shape
    torch.Size([2, 3])
    """
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, Mapping) and "logits" in output:
        return logits_of(output["logits"])
    if hasattr(output, "logits"):  # before tuples: named ones, and the outputs of transformers
        return logits_of(output.logits)
    if isinstance(output, tuple | list) and output:
        return logits_of(output[0])
    raise TypeError("model: expected a tensor (N, classes), a tuple that begins with one, or "
                    f"logits by that name, got {type(output).__name__}; {WRAP}")


def _takes(model: nn.Module, x: torch.Tensor) -> bool:
    """Whether a pass over these images works."""
    try:
        model(fast_layout(x, device_of(model)))
    except Exception:
        return False
    return True


@torch.inference_mode()
def classifier(model: nn.Module, x: torch.Tensor, *, probabilities: bool = False) -> nn.Module:
    """``model`` as one that gives logits, after a look at its outputs for some of ``x``.

    ``x``: (N, C, H, W) in [0, 1]; ``probabilities``: what the model returns instead.
    Raises ``ValueError`` unless the outputs are finite, of at least two classes, not all the same,
    and logits or probabilities as announced; ``TypeError`` for what holds no logits.
    """
    some = checks.images(x)[torch.linspace(0, len(x) - 1, min(len(x), PROBE)).long()]
    if isinstance(model, Classifier):
        model, preparation = model.model, model.preparation
    else:
        preparation = Preparation()
    if next(model.parameters(), None) is None:
        raise ValueError("model: expected one with parameters, got none; are its layers attributes "
                         "of the module?")
    plain = Classifier(model, preparation=preparation).eval()
    try:
        outputs = plain(fast_layout(some, device_of(model)))
    except Exception as error:  # whatever their code raises
        if str(error).endswith(WRAP):
            raise
        hint = "a size or channels may mend that"
        other = {1: 3, 3: 1}.get(x.shape[1])
        if other and _takes(plain, some.mean(1, keepdim=True).repeat(1, other, 1, 1)):
            kind = "gray-scale" if other == 3 else "in colour"
            hint = f"they are {kind}, and it takes {other} channels: say so (--channels {other})"
        raise ValueError(f"model: cannot take images of shape {tuple(x.shape[1:])}; {hint}: "
                         f"{told(error)}") from error
    if outputs.ndim != 2 or len(outputs) != len(some) or not outputs.shape[1]:
        raise ValueError("model: expected outputs (N, classes) of at least two classes, or (N, 1) "
                         f"for two, got shape {tuple(outputs.shape)} for {len(some)} images")
    if not outputs.isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    if (outputs == outputs[0]).all() and (some != some[0]).any():
        raise ValueError(f"model: the same output for each of {len(some)} images, so that there "
                         "is nothing to rank; are its weights loaded?")
    if outputs.shape[1] == 2 and (outputs[:, 0] == 0).all():  # one column, of two classes
        looks = ((outputs[:, 1] >= 0) & (outputs[:, 1] <= 1)).all()
        kind = "in [0, 1]"
    else:
        looks = (outputs >= 0).all() and ((outputs.sum(1) - 1).abs() < 1e-3).all()
        kind = "non-negative and sums to 1"
    if looks and not probabilities:
        raise ValueError(f"model: every output is {kind}, so that these are probabilities where "
                         "logits are expected; say so (--probabilities)")
    if probabilities and not looks:
        raise ValueError("model: expected probabilities, as said (--probabilities), got outputs "
                         "that are negative or do not sum to 1; logits need no such option")
    if models.spec_of(model) and not probabilities and preparation.mean is None:
        return model
    return Classifier(model, probabilities=probabilities, preparation=preparation).eval()
