"""Layer-wise relevance propagation (LRP): what every channel contributes to the predicted class.

Modules get LRP's rules in place of gradients, so that autograd follows any branches and sums.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import device_of, fast_layout
from dnnlib.models.layers import Add

ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.Tanh, nn.Sigmoid)
_PASS = (*ACTIVATIONS, nn.BatchNorm1d, nn.BatchNorm2d, nn.Softmax, nn.LogSoftmax)
_WEIGHTED = (nn.Conv2d, nn.Linear)
_SUMS = (nn.AvgPool2d, nn.AdaptiveAvgPool2d, Add)
_RULES = ", ".join(kind.__name__ for kind in _WEIGHTED + _SUMS + _PASS)
# operations whose gradient is the rule already: values are moved, or the largest is taken
_MOVES = {"AccumulateGrad", "Alias", "Cat", "Clone", "ConstantPadNd", "MaxPool2D",
          "MaxPool2DWithIndices", "Permute", "ReshapeAlias", "Select", "Slice", "Squeeze", "T",
          "ToCopy", "Transpose", "UnsafeView", "Unsqueeze", "View", "_Rule"}
_NOISE = 1e-6  # of an input's largest sum: what some convolutions leave where there is nothing


@dataclass(frozen=True, eq=False)
class Relevance:
    """``values``: float32 (N, channels), layer after layer; ``layers``: names, in order.

    ``widths``: channels of each layer. ``predicted``: int64 (N,), the class whose logit was
    propagated, of ``classes``. All on the CPU.
    """

    values: torch.Tensor
    layers: tuple[str, ...]
    widths: tuple[int, ...]
    predicted: torch.Tensor
    classes: int


def propagate(model: nn.Module, x: torch.Tensor, *, layers: Sequence[str] | None = None,
              beta: float = 0.5, batch_size: int = 128) -> Relevance:
    """The relevance of every channel for the predicted class, by the beta-rule (Bach et al. 2015).

    Input i of a linear module, with contributions z_ij = x_i w_ij to its outputs, receives

        R_i = sum_j ((1 + beta) z+_ij / sum_i z+_ij  -  beta z-_ij / sum_i z-_ij) R_j

    where all contributions to an output have one sign, with weight 1 instead; biases are
    ignored. So it is for convolutions, dense layers, average pools (equal weights) and
    ``models.layers.Add`` (weights 1: in proportion, where the two have one sign). Activations,
    BatchNorm and softmax pass relevance on unchanged, max-pools to the largest input, and what
    only moves values (Flatten, padding, concatenation) moves it back.

    The predicted class starts with 1, all others with 0. NPC's code starts with the logit, a
    factor on all that changes no path while positive; a negative one would turn every sign.

    ``x``: (N, C, H, W) in [0, 1]. ``layers``: names of modules without parts, at whose outputs
    to take relevance, summed over positions; default all activation functions, in the order in
    which they run. Nothing below the first of them needs a rule. ``beta``: finite, >= 0. The model
    is put in evaluation mode.

    Raises ``ValueError`` for a module or operation without a rule, a layer that is unknown, does
    not run or runs twice in a pass, and outputs or relevances that are not finite, ``TypeError``
    for a layer whose output is no tensor.

    >>> from dnnlib import models
    >>> found = propagate(models.build("lenet1"), torch.rand(2, 1, 28, 28))
    >>> found.values.shape, found.layers, found.widths
    (torch.Size([2, 16]), ('1', '4'), (4, 12))
    """
    checks.images(x)
    checks.positive(batch_size, "batch_size")
    checks.finite(beta, "beta", least=0)
    wanted, device = _wanted(model, layers), device_of(model)
    kept: dict[str, torch.Tensor] = {}
    values, predicted = [], []
    model.eval()
    with _ruled(model, wanted, kept, beta), torch.enable_grad():
        for part in x.split(batch_size):
            kept.clear()
            logits = model(fast_layout(part, device))
            names = list(kept) if layers is None else list(wanted)
            if missing := [name for name in names if name not in kept]:
                raise ValueError(f"layers: {missing[0]!r} does not run in a pass")
            found, label = _backward(logits, [kept[name] for name in names])
            channels = [r.reshape(*r.shape[:2], -1).sum(2) for r in found]
            values.append(torch.cat(channels, 1).float().cpu())
            predicted.append(label.cpu())
    relevance = torch.cat(values)
    if not relevance.isfinite().all():
        raise ValueError("model: expected finite relevances, got NaN or infinity")
    return Relevance(relevance, tuple(names), tuple(r.shape[1] for r in found),
                     torch.cat(predicted), logits.shape[1])


def _wanted(model: nn.Module, layers: Sequence[str] | None) -> tuple[str, ...]:
    leaves = {name: module for name, module in model.named_modules()
              if name and not any(module.children())}
    if layers is None:
        if names := tuple(k for k, leaf in leaves.items() if isinstance(leaf, ACTIVATIONS)):
            return names
        raise ValueError("layers: none of the model's modules is an activation function with a "
                         "rule; name layers with layers=")
    return checks.layers(layers, leaves)


@contextmanager
def _ruled(model: nn.Module, wanted: Sequence[str], kept: dict[str, torch.Tensor],
           beta: float) -> Iterator[None]:
    """Inside, modules run with their rules, and put the outputs ``wanted`` into ``kept``."""
    forwards = {module: _with_rule(module, name, beta, kept if name in wanted else None)
                for name, module in model.named_modules() if not any(module.children())}
    before = {module: vars(module).get("forward") for module in forwards}
    trained = [p for p in model.parameters() if p.requires_grad]
    try:
        for p in trained:  # else the graph would start at the weights
            p.requires_grad_(False)
        for module, forward in forwards.items():
            module.forward = forward
        yield
    finally:
        for module, forward in before.items():
            vars(module).pop("forward", None)
            if forward is not None:
                module.forward = forward
        for p in trained:
            p.requires_grad_(True)


def _with_rule(module: nn.Module, name: str, beta: float,
               kept: dict[str, torch.Tensor] | None) -> Callable:
    """The module's forward pass with its rule; the output goes to ``kept``, if there is one."""
    original, where = module.forward, f"layer {name!r} ({type(module).__name__})"
    rule = None
    if isinstance(module, _WEIGHTED):
        rule = partial(_beta_rule, beta, *_halves(module))
    elif isinstance(module, _SUMS):
        rule = partial(_beta_rule, beta, original, None)

    def forward(*inputs):
        if rule or isinstance(module, _PASS):
            output = _Rule.apply(original, rule, *inputs)
        else:
            output = original(*inputs)
            _only_moves(output, where)
        if kept is not None:
            if name in kept:
                raise ValueError(f"{where}: runs more than once in a pass, so that its relevance "
                                 "is ambiguous: give each use a module of its own")
            if not isinstance(output, torch.Tensor) or output.ndim < 2:
                raise TypeError(f"{where}: expected a tensor (N, channels, ...) as output; name "
                                "other layers with layers=")
            kept[name] = output.requires_grad_()
        return output

    return forward


class _Rule(torch.autograd.Function):
    """A forward pass with a rule in place of its gradient; without one, relevance passes."""

    @staticmethod
    def forward(ctx, forward: Callable, rule: Callable | None, *inputs: torch.Tensor):
        ctx.rule = rule
        if rule:
            ctx.save_for_backward(*inputs)
        return forward(*inputs)

    @staticmethod
    def backward(ctx, relevance: torch.Tensor):
        return None, None, *(ctx.rule(relevance, *ctx.saved_tensors) if ctx.rule else (relevance,))


def _halves(module: nn.Module) -> list[Callable]:
    """The module with its positive weights only, and with its negative ones, without bias."""
    halves = []
    for bound in ({"min": 0}, {"max": 0}):
        half = copy.deepcopy(module).requires_grad_(False)
        half.weight.clamp_(**bound)
        half.bias = None
        halves.append(half.forward)
    return halves


def _beta_rule(beta: float, positive: Callable, negative: Callable | None,
               relevance: torch.Tensor, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """The relevance of the inputs of a linear function, given in parts by the weights' sign."""
    up = [value.clamp(min=0).requires_grad_() for value in inputs]
    down = [value.clamp(max=0).requires_grad_() for value in inputs]
    below = any(bool(value.any()) for value in down)  # never so after a ReLU
    with torch.enable_grad():
        plus = positive(*up)
        minus = negative(*up) if negative else torch.zeros_like(plus)
        if below:
            plus = plus + negative(*down) if negative else plus
            minus = minus + positive(*down)
    z_plus, z_minus = plus.detach(), minus.detach()
    axes = tuple(range(1, plus.ndim))
    noise = _NOISE * torch.maximum(z_plus.amax(axes, True), -z_minus.amin(axes, True))
    any_plus, any_minus = z_plus > noise, z_minus < -noise
    share = torch.where(any_plus, relevance / z_plus, 0)
    sides = [(plus, share.mul_(torch.where(any_minus, 1 + beta, 1)))]
    if minus.requires_grad:
        share = torch.where(any_minus, relevance / z_minus, 0)
        sides.append((minus, share.mul_(torch.where(any_plus, -beta, 1))))
    parts = up + down if below else up
    outputs, shares = zip(*sides)
    gradients = torch.autograd.grad(outputs, parts, shares)
    received = [part.detach().mul_(gradient) for part, gradient in zip(parts, gradients)]
    return [a + b for a, b in zip(received, received[len(up):])] if below else received


def _backward(logits: torch.Tensor,
              outputs: list[torch.Tensor]) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The relevance at each output for the predicted class, and that class."""
    if logits.ndim != 2 or not logits.requires_grad:
        raise ValueError("model: expected logits (N, classes) that depend on the layers, got "
                         f"shape {tuple(logits.shape)}")
    if not logits.isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    _only_moves(logits, "model, between its layers")
    label = logits.detach().argmax(1)
    start = nn.functional.one_hot(label, logits.shape[1]).to(logits.dtype)
    return torch.autograd.grad(logits, outputs, start, materialize_grads=True), label


def _only_moves(output, where: str) -> None:
    """``ValueError`` for an operation behind ``output`` whose gradient is no rule."""
    seen = {None}
    todo = [output.grad_fn] if getattr(output, "grad_fn", None) else []
    while todo:
        node = todo.pop()
        seen.add(node)
        operation = node.name().rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
        if operation not in _MOVES:
            raise ValueError(f"{where}: no rule for the operation {operation}; there are rules "
                             f"for the modules {_RULES}, for max-pools, and for what only moves "
                             "values")
        todo += [child for child, _ in node.next_functions if child not in seen]
