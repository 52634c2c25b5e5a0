"""A person's own classifier, made to fit what the engine expects: logits, float32, one tensor."""

from collections.abc import Mapping

import torch
from torch import nn

from dnnlib import models
from dnnlib.custom.preparation import Preparation

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
    logits = False  # said to be, whatever they look like

    def __init__(self, model: nn.Module, *, probabilities: bool = False,
                 preparation: Preparation | None = None):
        super().__init__()
        self.model, self.probabilities = model, probabilities
        self.preparation = preparation or Preparation()
        self.training = model.training

    @property
    def spec(self) -> models.Spec | None:
        """A network's by name, whose layers have the same neurons here; None for probabilities,
        which such a network does not give."""
        return None if self.probabilities else models.spec_of(self.model)

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """The model's own names, without one for this shell around it."""
        yield prefix, self
        for name, module in self.model.named_modules(memo, prefix, remove_duplicate):
            yield (name, module) if name else ("model", module)

    def returned(self, x: torch.Tensor):
        """What the model itself returns for images."""
        if self.preparation.mean is not None:
            mean, std = (torch.tensor(values, dtype=x.dtype, device=x.device).view(-1, 1, 1)
                         for values in (self.preparation.mean, self.preparation.std))
            x = (x - mean) / std
        kind = next((p.dtype for p in self.model.parameters() if p.is_floating_point()), x.dtype)
        # contiguous() would leave the strides of a single channel
        return self.model(x.to(kind).clone(memory_format=torch.contiguous_format))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output = columns(logits_of(self.returned(x)), len(x))
        if output.ndim == 2 and output.shape[1] == 1:  # one logit, or probability, of two classes
            other = 1 - output if self.probabilities else torch.zeros_like(output)
            output = torch.cat([other, output], 1)
        if not self.probabilities:
            return output
        return output.clamp_min(torch.finfo(output.dtype).tiny).log()


def unwrapped(model: nn.Module) -> nn.Module:
    """The person's own model; a subclass of :class:`Classifier` is one too, with a pass of its own.

    >>> type(unwrapped(Classifier(nn.Flatten()))).__name__
    'Flatten'
    """
    return model.model if type(model) is Classifier else model


def logits_of(output) -> torch.Tensor:
    """The logits in what a model returns: a tensor, or what is called ``logits`` in it.

    Of a tuple or list the first entry, as with auxiliary heads; of a dict without logits its only
    tensor (N, classes), if there is one. Raises ``TypeError`` for anything else, with the names of
    several.

    >>> logits_of({"logits": torch.zeros(2, 3), "loss": None}).shape
    torch.Size([2, 3])
    """
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, Mapping) and "logits" in output:
        return logits_of(output["logits"])
    if isinstance(output, Mapping):
        heads = heads_of(output)
        if len(heads) == 1:
            return next(iter(heads.values()))
        shown = ", ".join(f"{name} of {head.shape[1]}" for name, head in heads.items())
        raise TypeError("model: returns a dict without logits, "
                        + (f"and with several tensors (N, classes): {shown}" if heads else
                           f"and without a tensor (N, classes): {', '.join(map(str, output))}")
                        + f"; {WRAP}")
    if hasattr(output, "logits"):  # before tuples: named ones, and the outputs of transformers
        return logits_of(output.logits)
    if isinstance(output, tuple | list) and output:
        return logits_of(output[0])
    raise TypeError("model: expected a tensor (N, classes), a tuple that begins with one, or "
                    f"logits by that name, got {type(output).__name__}; {WRAP}")


def output_named(output) -> str:
    """Which of what a model returns :func:`logits_of` takes.

    >>> output_named((torch.zeros(2, 3), torch.zeros(2)))
    "the first of the model's 2 outputs"
    """
    if isinstance(output, torch.Tensor):
        return "the model's output"
    if isinstance(output, Mapping) and "logits" not in output:
        return f"the model's output `{next(iter(heads_of(output)))}`"
    if hasattr(output, "logits") or isinstance(output, Mapping):
        return "the model's output `logits`"
    return f"the first of the model's {len(output)} outputs"


def heads_of(output: Mapping) -> dict[str, torch.Tensor]:
    """The tensors (N, columns) in a dict that a model returns, by name."""
    return {str(name): value for name, value in output.items()
            if isinstance(value, torch.Tensor) and value.ndim == 2}


def columns(output: torch.Tensor, n: int) -> torch.Tensor:
    """The outputs of ``n`` images as float32, a number for each image as a column of one.

    >>> columns(torch.zeros(4, dtype=torch.float64), 4).shape
    torch.Size([4, 1])
    """
    output = output.float() if output.is_floating_point() else output
    return output[:, None] if output.ndim == 1 and len(output) == n else output
