"""The networks of the five papers, by name, and their sizes.

A neuron is a channel of a convolution-like layer or a unit of a dense one, in every layer of
the Keras model but inputs and "flatten" (DeepXplore). Which layers there are depends on how the
model was written, so each :class:`Spec` says which modules stand for them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import pandas as pd
import torch
from torch import nn

from dnnlib import checks
from dnnlib.models import lenet, nets, resnet, speaker, vgg
from dnnlib.models import mobilenet as _mobilenet
from dnnlib.models.layers import Add, InputScale, modules_that_run, with_parts
from dnnlib.models.mobilenet import load_keras_weights

__all__ = ["SPECS", "Size", "Spec", "build", "count", "load_keras_weights", "neuron_layers",
           "spec_of", "table"]


@dataclass(frozen=True)
class Spec:
    """A network: how to build it, and the input shape (C, H, W) and classes of its paper.

    ``layers``: the types of module whose outputs are neurons, besides the logits;
    ``softmax``: whether the softmax is a layer of its own. ``published``: the parameters and
    neurons in DeepSensor's model tables.
    """

    build: Callable[..., nn.Module]
    shape: tuple[int, int, int]
    classes: int
    note: str = ""
    published: dict[str, int] = field(default_factory=dict)
    layers: tuple[type[nn.Module], ...] = (nn.Module,)
    softmax: bool = False


class Size(NamedTuple):
    """Trainable parameters, and neurons."""

    parameters: int
    neurons: int


# a Keras layer with a ReLU inside shows what the ReLU lets through
_RELU_INSIDE = {"layers": (nn.ReLU, nn.MaxPool2d), "softmax": True}
_MNIST, _CIFAR, _IMAGENET = ((1, 28, 28), 10), ((3, 32, 32), 10), ((3, 224, 224), 1000)
_SPEECH = (1, 64, 64), 30  # log-mel bands x frames, and speakers
_MOVING = "; published with BatchNorm's moving mean and variance among the parameters"
_SMALL = "a quarter of the channels: ours, for two processor cores"
_OURS = "sizes not published; the LeNets' counting rule"

SPECS = {
    "net1": Spec(nets.net1, *_MNIST, _OURS, **_RELU_INSIDE),
    "net1_peacepact": Spec(nets.net1_peacepact, *_MNIST, _OURS, **_RELU_INSIDE),
    "net2": Spec(nets.net2, *_MNIST, _OURS, **_RELU_INSIDE),
    "lenet1": Spec(lenet.lenet1, *_MNIST, "convolutions, pools, dense, softmax",
                   {"parameters": 7_206, "neurons": 52}, **_RELU_INSIDE),
    "lenet4": Spec(lenet.lenet4, *_MNIST, "convolutions, pools, dense, softmax",
                   {"parameters": 69_362, "neurons": 148}, **_RELU_INSIDE),
    "lenet5": Spec(lenet.lenet5, *_MNIST, "convolutions, pools, dense, softmax",
                   {"parameters": 107_786, "neurons": 268}, **_RELU_INSIDE),
    "lenet1_nss": Spec(lenet.lenet1_nss, *_MNIST, "NSS Table I prints 3,350 parameters as neurons",
                       layers=(nn.Tanh, nn.AvgPool2d), softmax=True),
    "lenet5_nss": Spec(lenet.lenet5_nss, *_MNIST, "NSS Table I prints its parameters as neurons",
                       **_RELU_INSIDE),
    "resnet20": Spec(resnet.resnet20, *_CIFAR, "every layer but BatchNorm",
                     {"parameters": 273_066, "neurons": 1_882},
                     (nn.Conv2d, nn.ReLU, Add, nn.AdaptiveAvgPool2d)),
    "vgg16": Spec(vgg.vgg16, *_CIFAR, "convolutions and dense, each with its BatchNorm and ReLU; "
                  "no pools", {"parameters": 33_663_070, "neurons": 12_426}, (nn.ReLU,)),
    "mobilenet": Spec(_mobilenet.mobilenet, *_IMAGENET,
                      "every layer, dropout, reshapes and softmax too",
                      {"parameters": 4_231_976, "neurons": 38_904}, softmax=True),
    "resnet50": Spec(resnet.resnet50, *_IMAGENET, "every layer, zero padding too",
                     {"parameters": 25_583_592, "neurons": 94_059}),
    "resnet34": Spec(resnet.resnet34, *_SPEECH, "every layer, zero padding too" + _MOVING,
                     {"parameters": 21_315_166, "neurons": 36_254}),
    "deep_speaker": Spec(speaker.deep_speaker, *_SPEECH, "every layer" + _MOVING,
                         {"parameters": 24_201_118, "neurons": 28_190}),
    "resnet34_s": Spec(partial(resnet.resnet34, width=0.25), *_SPEECH, _SMALL),
    "deep_speaker_s": Spec(partial(speaker.deep_speaker, width=0.25), *_SPEECH, _SMALL),
}


def build(name: str, *, shape: tuple[int, int, int] | None = None, classes: int | None = None,
          seed: int = 0, **options) -> nn.Module:
    """A fresh network in evaluation mode, its weights drawn from ``seed``.

    ``shape`` (C, H, W) and ``classes`` default to the paper's. Images are (N, C, H, W) in
    [0, 1], outputs logits (N, classes). ``options``: ``width`` of MobileNet, ResNet-34 and Deep
    Speaker, ``variant`` of ResNet-20 and ResNet-50. Raises ``ValueError`` for an unknown name or
    a shape too small. The caller's random state is left as it was.

    >>> build("net2")(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    spec = SPECS[checks.known(name, SPECS, "model")]
    channels, height, width = shape or spec.shape
    classes = spec.classes if classes is None else classes
    if checks.positive(classes, "classes") < 2:
        raise ValueError("classes: expected at least two, got 1")
    if height != width:
        raise ValueError(f"shape: expected square images, got {height} x {width}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = spec.build(channels, height, classes, **options)
    model.spec = replace(spec, shape=(channels, height, width), classes=classes)
    return model.to(memory_format=torch.channels_last).eval()


def spec_of(model: nn.Module) -> Spec | None:
    """What :func:`build` made the model by, its shape and classes filled in; None for any other.

    >>> spec_of(build("lenet1", classes=3)).classes, spec_of(nn.Linear(2, 2))
    (3, None)
    """
    spec = getattr(model, "spec", None)
    return spec if isinstance(spec, Spec) else None  # a model of the user's may have its own .spec


def neuron_layers(model: nn.Module) -> dict[str, nn.Module]:
    """The modules whose outputs are neurons, by name and in order; the last gives the logits.

    One channel (N, K, H, W) or unit (N, K) is a neuron. A network that :func:`build` did not
    make counts with every module that has no parts, but ``Flatten`` and ``InputScale``.

    >>> list(neuron_layers(build("lenet1")))
    ['1', '2', '4', '5', '7']
    """
    leaves = {name: module for name, module in modules_that_run(model).items()
              if not with_parts(module) and not isinstance(module, (nn.Flatten, InputScale))}
    spec = spec_of(model)
    kinds = spec.layers if spec else (nn.Module,)
    logits = next(reversed(leaves))
    return {k: v for k, v in leaves.items() if k == logits or isinstance(v, kinds)}


def count(network: str | nn.Module, **options) -> Size:
    """Trainable parameters and neurons of a network.

    ``network``: its name, or the model as :func:`build` made it. ``options`` go to :func:`build`
    with a name; nothing is then allocated. The moving mean and variance of BatchNorm are no
    parameters. Raises ``ValueError`` for an unknown name.

    >>> count("lenet5")
    Size(parameters=107786, neurons=268)
    """
    if isinstance(network, str):
        with torch.device("meta"):
            model = build(network, **options)
    elif options:
        raise ValueError(f"options: only with a name, got {', '.join(options)}")
    else:
        model = network
    spec = spec_of(model)
    if spec is None:
        raise ValueError("network: expected a name, or a model made by models.build")
    sizes = []
    hooks = [layer.register_forward_hook(lambda _, __, output: sizes.append(output.shape[1]))
             for layer in neuron_layers(model).values()]
    first = next(model.parameters())
    training = model.training
    try:
        with torch.no_grad():
            model.eval()(torch.zeros(1, *spec.shape, device=first.device, dtype=first.dtype))
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    parameters = sum(p.numel() for p in model.parameters())
    return Size(parameters, sum(sizes) + (sizes[-1] if spec.softmax else 0))


def table() -> pd.DataFrame:
    """The networks with their sizes, beside those of DeepSensor's model tables where it has any.

    >>> table().loc["lenet1", ["neurons", "published neurons"]].tolist()
    [52, 52]
    """
    rows = {}
    for name, spec in SPECS.items():
        size = count(name)
        rows[name] = {"shape": " x ".join(map(str, spec.shape)), "classes": spec.classes,
                      "parameters": size.parameters,
                      "published parameters": spec.published.get("parameters"),
                      "neurons": size.neurons, "published neurons": spec.published.get("neurons"),
                      "note": spec.note}
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
    published = ["published parameters", "published neurons"]
    return frame.astype(dict.fromkeys(published, "Int64"))
