"""Layer-wise relevance propagation (LRP): what every channel contributes to the predicted class.

Modules get LRP's rules in place of gradients, so that autograd follows any branches and sums.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import checked, fast_layout, hooked, ready, size_for
from dnnlib.models.layers import modules_that_run, with_parts
from dnnlib.neurons.rules import (
    ACTIVATIONS,
    PASS,
    SUMS,
    WEIGHTED,
    Functions,
    Rule,
    beta_rule,
    halves,
    only_moves,
)


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
    r"""The relevance of every channel for the predicted class, by the beta-rule (Bach et al. 2015).

    Input i of a linear module, with contributions :math:`z_{ij} = x_i w_{ij}` to its outputs,
    receives

    .. math:: R_i = \sum_j \left((1 + \beta) \frac{z^+_{ij}}{\sum_k z^+_{kj}} -
              \beta \frac{z^-_{ij}}{\sum_k z^-_{kj}}\right) R_j

    where all contributions to an output have one sign, with weight 1 instead; biases are
    ignored. So it is for convolutions, dense layers, averages (equal weights) and sums of two, as
    a module or as ``x + y`` (weights 1: in proportion, where the two have one sign). Activations,
    normalisations and softmax pass relevance on unchanged, as does a product with a gate for
    whole channels, or with a weight; max-pools to the largest input, and what only moves values
    (Flatten, padding, concatenation) moves it back. Attention has no rule here.

    The predicted class starts with 1, all others with 0. NPC's code starts with the logit, a
    factor on all that changes no path while positive; a negative one would turn every sign.

    ``x``: (N, C, H, W) in [0, 1]. ``layers``: names of modules without parts, 'relu#2' for a
    second call, at whose outputs to take relevance, summed over positions; default all calls of
    activation functions, in order. Nothing below the first of them needs a rule. ``beta``:
    finite, >= 0. ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for`
    says how many. The model is put in evaluation mode.

    Raises ``ValueError`` for a module or operation without a rule, a layer that is unknown, does
    not run in a pass, and outputs or relevances that are not finite, ``TypeError``
    for a layer whose output is not a tensor.

    >>> from dnnlib import models
    >>> found = propagate(models.build("lenet1"), torch.rand(2, 1, 28, 28))
    >>> found.values.shape, found.layers, found.widths
    (torch.Size([2, 16]), ('1', '4'), (4, 12))
    """
    checks.images(x)
    checks.positive(batch_size, "batch_size")
    checks.finite(beta, "beta", least=0)
    wanted, device = _wanted(model, layers), ready(model, x)
    kept: dict[str, torch.Tensor] = {}
    values, predicted, stack = [], [], []
    size = size_for(model, x, batch_size, times=6)
    with _ruled(model, wanted, layers is None, kept, beta, stack), torch.enable_grad():
        for part in x.split(size):
            kept.clear()
            with Functions(beta, stack):
                logits = checked(model(fast_layout(part, device)))
            names = list(kept) if layers is None else list(wanted)
            if missing := [name for name in names if name not in kept]:
                raise ValueError(f"layers: {missing[0]!r} does not run in a pass")
            found, label = _backward(logits, [kept[name] for name in names])
            channels = [r.reshape(*r.shape[:2], -1).sum(2) for r in found]
            values.append(torch.cat(channels, 1).float())
            predicted.append(label)
    relevance = torch.cat(values)
    if not relevance.isfinite().all():
        raise ValueError("model: expected finite relevances, got NaN or infinity")
    return Relevance(relevance.cpu(), tuple(names), tuple(r.shape[1] for r in found),
                     torch.cat(predicted).cpu(), logits.shape[1])


def _wanted(model: nn.Module, layers: Sequence[str] | None) -> tuple[str, ...]:
    leaves = {name: module for name, module in modules_that_run(model).items()
              if name and not with_parts(module)}
    if layers is None:
        if names := tuple(k for k, leaf in leaves.items() if isinstance(leaf, ACTIVATIONS)):
            return names
        raise ValueError("layers: none of the model's modules is an activation function with a "
                         "rule; name layers with layers=")
    again = {name for name in layers if name.partition("#")[0] in leaves
             and name.partition("#")[2].isdecimal()} if not isinstance(layers, str) else set()
    return checks.layers(layers, {*leaves, *again})


@contextmanager
def _ruled(model: nn.Module, wanted: Sequence[str], every: bool, kept: dict[str, torch.Tensor],
           beta: float, stack: list[str]) -> Iterator[None]:
    """Inside, modules run with their rules, and put the outputs ``wanted`` into ``kept``.

    ``every``: of all calls of these modules. ``stack``: holds the names of those that run.
    """
    modules = {name.partition("#")[0] for name in wanted}
    counts: Counter = Counter()

    def place(name: str) -> Callable[[], str]:
        def keep() -> str:
            counts[name] += 1
            call = name if counts[name] == 1 else f"{name}#{counts[name]}"
            return call if every or call in wanted else ""
        return keep if name in modules else lambda: ""

    forwards = {module: _with_rule(module, name, beta, kept, place(name))
                for name, module in modules_that_run(model).items() if not with_parts(module)}
    names = {module: name for name, module in modules_that_run(model).items() if name}
    handles = [model.register_forward_pre_hook(lambda module, inputs: counts.clear())]
    for module in names:
        handles += [module.register_forward_pre_hook(lambda m, i: stack.append(names[m])),
                    module.register_forward_hook(lambda m, i, o: stack.pop() and None)]
    before = {module: vars(module).get("forward") for module in forwards}
    trained = [p for p in model.parameters() if p.requires_grad]
    try:
        for p in trained:  # else the graph would start at the weights
            p.requires_grad_(False)
        for module, forward in forwards.items():
            module.forward = forward
        with hooked(*handles):
            yield
    finally:
        stack.clear()
        for module, forward in before.items():
            vars(module).pop("forward", None)
            if forward is not None:
                module.forward = forward
        for p in trained:
            p.requires_grad_(True)


def _with_rule(module: nn.Module, name: str, beta: float, kept: dict[str, torch.Tensor],
               place: Callable[[], str]) -> Callable:
    """The module's forward pass with its rule; ``place``: where in ``kept`` its output goes."""
    original, where = module.forward, f"layer {name!r} ({type(module).__name__})"
    rule = None
    if isinstance(module, WEIGHTED):
        rule = partial(beta_rule, beta, *halves(module))
    elif isinstance(module, SUMS):
        rule = partial(beta_rule, beta, original, None)

    def forward(*inputs):
        if rule or isinstance(module, PASS):
            output = Rule.apply(original, rule, *inputs)
        else:
            output = original(*inputs)
            only_moves(output, where)
        if key := place():
            if not isinstance(output, torch.Tensor) or output.ndim < 2:
                raise TypeError(f"{where}: expected a tensor (N, channels, ...) as output; name "
                                "other layers with layers=")
            kept[key] = output.requires_grad_()
        return output

    return forward


def _backward(logits: torch.Tensor,
              outputs: list[torch.Tensor]) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The relevance at each output for the predicted class, and that class."""
    if not logits.requires_grad:
        raise ValueError("model: expected logits that depend on the layers, got some that do not")
    if not logits.isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    only_moves(logits, "model, between its layers")
    label = logits.detach().argmax(1)
    start = nn.functional.one_hot(label, logits.shape[1]).to(logits.dtype)
    return torch.autograd.grad(logits, outputs, start, materialize_grads=True), label
