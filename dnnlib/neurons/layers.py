"""Which layers count as neurons, and what they give out in a pass."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase

import torch
from torch import nn

from dnnlib import checks, models
from dnnlib.inference import hooked
from dnnlib.models.layers import modules_that_run, with_parts
from dnnlib.neurons.calls import MOVES, Layer, calls, fault_of, forget

SOFTMAX = "softmax"  # the layer that the networks' modules lack, their outputs being logits


def layers_of(model: nn.Module, x: torch.Tensor,
              layers: Sequence[str] | None = None) -> dict[str, Layer]:
    """The layers that count, by name and in order.

    ``x``: images (N, C, H, W); the first is tried. ``layers``: names in the order wanted,
    of modules with parts too; default those of :func:`models.neuron_layers` of a network that
    :func:`models.build` made, and "softmax" where it counts as a layer; of any other model every
    call of a module within which no other runs, in order, except for what only passes images or
    maps on, and outputs that are not neurons: see :func:`left_out`. Raises ``ValueError`` for
    a name that is unknown, comes twice or does not run, and for none, ``TypeError`` for one whose
    output is not neurons.

    >>> list(layers_of(models.build("lenet1"), torch.rand(1, 1, 28, 28)))
    ['1', '2', '4', '5', '7', 'softmax']
    """
    spec = models.spec_of(model)
    softmax = {SOFTMAX: Layer(None)} if spec and spec.softmax else {}
    if spec and layers is None:
        return {k: Layer(v) for k, v in models.neuron_layers(model).items()} | softmax
    if spec:
        known = {name: Layer(module) for name, module in model.named_modules() if name} | softmax
        return {name: known[name] for name in checks.layers(layers, known)}
    found = calls(model, x)
    if layers is None:
        counted = {k: v for k, v in found.items() if _counts(v)}
        if not counted:
            raise ValueError("layers: the model has none that counts as neurons; methods that read "
                             "activations need modules that compute, such as nn.Linear")
        return counted
    modules = [name for name, _ in model.named_modules() if name]
    if missing := [name for name in layers if name not in found]:
        forget(model)
        found = calls(model, x)
        checks.layers(layers, {*modules, *found})
        if missing := [name for name in missing if name not in found]:
            raise ValueError(f"layers: {missing[0]!r} does not run in a pass")
    for name in checks.layers(layers, found):
        if found[name].fault:
            raise TypeError(f"layer {name!r}: {found[name].fault}; name other layers with layers=")
    return {name: found[name] for name in layers}


def _counts(layer: Layer) -> bool:
    moves = isinstance(layer.module, MOVES) or type(layer.module).__module__.startswith(
        "torchvision.transforms")
    return layer.whole and not moves and not layer.fault


def left_out(model: nn.Module, x: torch.Tensor) -> dict[str, str]:
    """The modules without parts that are not layers by default, and why, by name.

    Empty for a network that :func:`models.build` made.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    >>> left_out(model, torch.rand(1, 1, 2, 2))
    {'0': 'only moves values'}
    """
    if models.spec_of(model):
        return {}
    found, reasons = calls(model, x), {}
    ran = {layer.module for layer in found.values()}
    within = {part for layer in found.values() if layer.whole for part in layer.module.modules()}
    for name, module in modules_that_run(model).items():
        if not name or with_parts(module):
            continue
        if module not in ran:  # such as the parts of attention, which are counted as one
            reasons[name] = ("counted with the module around it" if module in within
                             else "does not run")
    reasons |= {name: layer.fault or "only moves values" for name, layer in found.items()
                if layer.whole and not _counts(layer)}
    return reasons


def matching(model: nn.Module, x: torch.Tensor, patterns: Sequence[str]) -> tuple[str, ...]:
    """The layers that count and match a pattern such as 'layer3.*', or have exactly that name.

    Raises ``ValueError`` for a pattern that no layer matches.

    >>> matching(models.build("lenet1"), torch.rand(1, 1, 28, 28), ["[12]", "soft*"])
    ('1', '2', 'softmax')
    """
    known = layers_of(model, x)
    names: list[str] = []
    for pattern in patterns:
        found = [name for name in known if fnmatchcase(name, pattern)]
        if not found and not any(sign in pattern for sign in "*?["):
            found = list(layers_of(model, x, [pattern]))  # one with parts, or its error
        if not found:
            raise ValueError(f"layers: nothing matches {pattern!r}; `dnnlib layers` lists what "
                             f"there is, such as {', '.join(list(known)[:3])}")
        names += [name for name in found if name not in names]
    return tuple(names)


@contextmanager
def watched(model: nn.Module, layers: dict[str, Layer],
            reduce: Callable[[torch.Tensor], object] | Mapping[str, Callable]) -> Iterator[dict]:
    """Within it, a pass leaves ``reduce`` of every layer's output in the dict given, by name.

    ``layers``: of :func:`layers_of`; ``reduce``: for all, or one for each name. An output has its
    channels on axis 1. What a layer gives out, the next one may overwrite, so ``reduce`` must not
    return a view. A pass raises ``ValueError`` for a layer that does not run, and ``TypeError`` for
    one whose output is not a floating-point tensor (N, ...).

    >>> from dnnlib.neurons.activations import channel_means
    >>> model, x = models.build("lenet1"), torch.rand(2, 1, 28, 28)
    >>> with watched(model, layers_of(model, x, ["7"]), channel_means) as parts:
    ...     logits = model(x)
    >>> torch.equal(parts["7"], logits)
    True
    """
    parts, counts, size = {}, Counter(), 0
    wanted = {(layer.module, layer.call): name for name, layer in layers.items()}

    def begin(module, inputs):
        nonlocal size
        parts.clear()
        counts.clear()
        size = len(inputs[0])

    def keep(name: str, output) -> None:
        output = layers[name].first(output)
        if fault := fault_of(output, size):
            raise TypeError(f"layer {name!r}: {fault}; name other layers with layers=")
        parts[name] = (reduce[name] if isinstance(reduce, Mapping) else reduce)(output)

    def hook(module, inputs, output):
        counts[module] += 1
        name = wanted.get((module, counts[module]))
        if name is not None:
            keep(name, output)

    def end(module, inputs, output):
        for name in (name for name, layer in layers.items() if layer.module is None):
            keep(name, output.softmax(1))
        if missing := [name for name in layers if name not in parts]:
            raise ValueError(f"layers: {missing[0]!r} does not run in a pass")

    modules = {layer.module: None for layer in layers.values() if layer.module is not None}
    with hooked(model.register_forward_pre_hook(begin),
                *(module.register_forward_hook(hook) for module in modules),
                model.register_forward_hook(end)):
        yield parts
