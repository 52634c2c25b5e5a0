"""Every call of a module in a pass: what it is called, and where its channels are.

A module that runs several times is a layer each time: 'relu', then 'relu#2', 'relu#3'.
"""

import weakref
from collections import Counter
from dataclasses import dataclass

import torch
from torch import nn

from dnnlib.inference import fast_layout, hooked, ready
from dnnlib.models.layers import InputScale, modules_that_run

MOVES = (nn.Flatten, nn.Unflatten, nn.Identity, InputScale)  # give out what came in
_LAST = (nn.Linear, nn.MultiheadAttention, nn.RNNBase)  # have their channels on the last axis
_FIRST = (nn.modules.conv._ConvNd, nn.modules.batchnorm._BatchNorm, nn.GroupNorm,
          nn.modules.pooling._MaxPoolNd, nn.modules.pooling._AvgPoolNd,
          nn.modules.pooling._AdaptiveAvgPoolNd, nn.modules.pooling._AdaptiveMaxPoolNd)


@dataclass(frozen=True, eq=False)
class Layer:
    """A call of a module: the ``call``-th in a pass, from 1; ``module`` None is the softmax.

    ``axis``: of the output's channels. ``shape``: of an input's output, channels first; () of
    layers of networks that :func:`models.build` made, and where there is a fault.
    ``whole``: whether no other module runs within it. ``fault``: why its output is not neurons, "".
    """

    module: nn.Module | None
    call: int = 1
    axis: int = 1
    shape: tuple[int, ...] = ()
    whole: bool = True
    fault: str = ""

    def first(self, output):
        """The output, of a tuple the first part, with the channels moved to axis 1."""
        output = _tensor(output)
        if self.axis == 1 or not isinstance(output, torch.Tensor) or output.ndim <= self.axis:
            return output
        return output.movedim(self.axis, 1)


@dataclass(eq=False)
class _Frame:
    """A module that runs: in which of its calls, and whether another ran within it."""

    call: int
    whole: bool = True


_traced: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def calls(model: nn.Module, x: torch.Tensor) -> dict[str, Layer]:
    """Every call of a module in a pass, by name and in the order in which they end.

    ``x``: images (N, C, H, W); the first is tried, once for a model and a shape. The
    model itself is not listed.

    >>> relu = nn.ReLU()
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), relu, nn.Linear(3, 2), relu)
    >>> [(name, layer.shape) for name, layer in calls(model, torch.rand(1, 1, 2, 2)).items()]
    [('0', (4,)), ('1', (3,)), ('2', (3,)), ('3', (2,)), ('2#2', (2,))]
    """
    shape, modules = tuple(x.shape[1:]), list(model.modules())
    known = _traced.get(model)
    if known is None or known[0] != shape or [m() for m in known[1]] != modules:
        _traced[model] = known = shape, [weakref.ref(m) for m in modules], _trace(model, x)
    return {name: Layer(module(), *rest) for name, (module, *rest) in known[2].items()}


def forget(model: nn.Module) -> None:
    """Try the model anew the next time: perhaps its passes take another way by now."""
    _traced.pop(model, None)


@torch.no_grad()
def _trace(model: nn.Module, x: torch.Tensor) -> dict[str, tuple]:
    """The calls, with weak references to the modules, since a model must not keep itself alive."""
    names = {module: name for name, module in modules_that_run(model).items() if name}
    counts: Counter = Counter()
    stack: list[_Frame] = []
    found: dict[str, tuple] = {}
    last: tuple[torch.Size, int] | None = None  # of the layer before: its shape and axis

    def enter(module, inputs):
        for frame in stack:
            frame.whole = False
        counts[module] += 1
        stack.append(_Frame(counts[module]))

    def leave(module, inputs, output):
        nonlocal last
        frame, output = stack.pop(), _tensor(output)
        name = names[module] + (f"#{frame.call}" if frame.call > 1 else "")
        fault = fault_of(output, 2)
        axis = 1 if fault else _axis(module, output, last)
        shape = () if fault else tuple(output.movedim(axis, 1).shape[1:])
        if not fault and not isinstance(module, MOVES):
            last = output.shape, axis
        found[name] = weakref.ref(module), frame.call, axis, shape, frame.whole, fault

    with hooked(*(module.register_forward_pre_hook(enter) for module in names),
                *(module.register_forward_hook(leave) for module in names)):
        # not the model's own hooks, which may count passes; two images, to know the axis of inputs
        device = ready(model, x)
        model.forward(fast_layout(x[:1].repeat(2, 1, 1, 1), device))
    return found


def _tensor(output):
    """The first tensor of a tuple or list, as attention and recurrent layers give them."""
    if isinstance(output, tuple | list) and output and isinstance(output[0], torch.Tensor):
        return output[0]
    return output


def fault_of(output, n: int) -> str:
    """Why the output of a layer for ``n`` images is not neurons; '' if it is."""
    if not isinstance(output, torch.Tensor) or not output.is_floating_point():
        kind = output.dtype if isinstance(output, torch.Tensor) else type(output).__name__
        return f"expected a floating-point tensor as output, got {kind}"
    if output.ndim < 2 or len(output) != n or not output.numel():
        return f"expected an output ({n}, neurons, ...), got shape {tuple(output.shape)}"
    return ""


def _axis(module: nn.Module, output: torch.Tensor, last: tuple[torch.Size, int] | None) -> int:
    """Where the channels are: what the module says, else where those of the layer before are."""
    end = output.ndim - 1
    if end == 1 or isinstance(module, _FIRST):
        return 1
    if isinstance(module, _LAST) or (
            type(module) is nn.LayerNorm and len(module.normalized_shape) == 1):
        return end
    if last and last[0] == output.shape:
        return last[1]
    if last:  # moved, as before and behind the blocks of Swin and ConvNeXt
        width = last[0][last[1]]
        if list(output.shape[1:]).count(width) == 1:
            return 1 + list(output.shape[1:]).index(width)
    return end if end == 2 else 1
