"""The rules of relevance propagation: of modules, and of what runs between them."""

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode

from dnnlib.models.layers import Add

ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU,
               nn.Hardswish, nn.Hardsigmoid)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm2d)
PASS = (*ACTIVATIONS, *NORMS, nn.Softmax, nn.LogSoftmax)
WEIGHTED = (nn.Conv2d, nn.Linear)
SUMS = (nn.AvgPool2d, nn.AdaptiveAvgPool2d, Add)
RULES = ", ".join(kind.__name__ for kind in WEIGHTED + SUMS + PASS)
# operations whose gradient is the rule already: values are moved, or the largest is taken
_MOVES = {"AccumulateGrad", "Alias", "Cat", "Clone", "ConstantPadNd", "Expand", "MaxPool2D",
          "MaxPool2DWithIndices", "Permute", "ReshapeAlias", "Roll", "Select", "Slice", "Split",
          "SplitWithSizes", "Squeeze", "T", "ToCopy", "Transpose", "Unbind", "UnsafeView",
          "Unsqueeze", "View", "Rule"}
_NOISE = 1e-6  # of an input's largest sum: what some convolutions leave where there is nothing
_THROUGH = {"relu", "relu_", "relu6", "leaky_relu", "elu", "tanh", "sigmoid", "gelu", "silu",
            "hardswish", "hardsigmoid", "softmax", "log_softmax", "layer_norm", "group_norm",
            "batch_norm"}
_MEANS = {"mean", "sum", "avg_pool2d", "adaptive_avg_pool2d"}
_ADDS = {"add", "add_", "__add__", "__radd__", "__iadd__"}
_SCALES = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "div", "div_", "__truediv__",
           "__itruediv__"}
_ATTENTION = {"multi_head_attention_forward", "scaled_dot_product_attention"}


class Functions(TorchFunctionMode):
    """Inside, what runs between modules gets its rule too, where the model's values need one.

    ``stack``: the names of the modules that run, for messages.
    """

    def __init__(self, beta: float, stack: list[str]):
        super().__init__()
        self.beta, self.stack = beta, stack

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(function, "__name__", "")
        reached = [isinstance(a, torch.Tensor) and a.requires_grad for a in args]
        if not torch.is_grad_enabled() or not any(reached):
            return function(*args, **kwargs)
        if name in _ATTENTION or (name in ("matmul", "__matmul__", "bmm") and sum(reached) > 1):
            where = f"layer {self.stack[-1]!r}" if self.stack else "model"
            raise ValueError(f"{where}: no rule for attention, whose weights depend on the image "
                             "themselves")
        if name in _THROUGH and reached[0]:
            return Rule.apply(lambda x: function(x, *args[1:], **kwargs), None, args[0])
        if name in _MEANS and reached[0]:
            def mean(x):
                return function(x, *args[1:], **kwargs)

            return Rule.apply(mean, partial(beta_rule, self.beta, mean, None), args[0])
        if name in _ADDS and kwargs.get("alpha", 1) == 1 and len(args) == 2:
            return self._add(args, reached)
        if name in _SCALES and len(args) == 2:
            return self._scale(function, args, kwargs, reached)
        return function(*args, **kwargs)

    def _add(self, args: tuple, reached: list[bool]) -> torch.Tensor:
        """A sum, in proportion; what does not depend on the image is a bias, and gets nothing."""
        if all(reached):
            return Rule.apply(torch.add, partial(beta_rule, self.beta, torch.add, None), *args)
        image, bias = args if reached[0] else args[::-1]
        if isinstance(bias, torch.Tensor) and torch.broadcast_shapes(
                image.shape, bias.shape) != image.shape:
            return torch.add(image, bias)
        return Rule.apply(lambda x: torch.add(x, bias), None, image)

    def _scale(self, function: Callable, args: tuple, kwargs: dict,
               reached: list[bool]) -> torch.Tensor:
        """A product with a gate, which gets nothing: of two values the one for fewer places.

        So it is with the squeeze-and-excitation of MobileNetV3 (Arras et al. 2017: "signal take
        all").
        """
        if all(reached):
            first, second = args
            if first.numel() == second.numel():
                return function(*args, **kwargs)
            swap = first.numel() < second.numel()
        else:
            swap = not reached[0]
        divides = function.__name__ in ("div", "div_", "__truediv__", "__itruediv__")
        image, gate = args[::-1] if swap else args
        if divides and swap:
            return function(*args, **kwargs)
        gate = gate.detach() if isinstance(gate, torch.Tensor) else gate
        if isinstance(gate, torch.Tensor) and torch.broadcast_shapes(
                image.shape, gate.shape) != image.shape:
            return function(*args, **kwargs)
        run = torch.div if divides else torch.mul
        return Rule.apply(lambda x: run(x, gate), None, image)


class Rule(torch.autograd.Function):
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


def halves(module: nn.Module) -> list[Callable]:
    """The module with its positive weights only, and with its negative ones, without bias."""
    halves = []
    for bound in ({"min": 0}, {"max": 0}):
        half = copy.deepcopy(module).requires_grad_(False)
        if parametrize.is_parametrized(module, "weight"):  # torch's removal would change both
            half.__class__ = type(module).__bases__[0]
            del half.parametrizations
            half.weight = nn.Parameter(module.weight.detach().clone(), requires_grad=False)
        half.weight.clamp_(**bound)
        half.bias = None
        halves.append(half.forward)
    return halves


def beta_rule(beta: float, positive: Callable, negative: Callable | None,
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


def only_moves(output, where: str) -> None:
    """``ValueError`` for an operation behind ``output`` whose gradient is not a rule."""
    seen = {None}
    todo = [output.grad_fn] if getattr(output, "grad_fn", None) else []
    while todo:
        node = todo.pop()
        seen.add(node)
        operation = node.name().rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
        if operation not in _MOVES:
            raise ValueError(f"{where}: no rule for the operation {operation}; there are rules "
                             f"for the modules {RULES}, for sums, means and max-pools, and for "
                             "what only moves values")
        todo += [child for child, _ in node.next_functions if child not in seen]
