"""A person's own classifier: loaded, looked at, and made to fit what the engine expects."""

import importlib.util
import sys
from pathlib import Path

import torch
from torch import nn

from dnnlib import checks, models
from dnnlib.inference import device_of, fast_layout

PROBE = 64  # images that show what a model's outputs are


def load_model(name: str, weights: str | Path | None = None, *, size: int | None = None,
               channels: int | None = None, **options) -> nn.Module:
    """A model with its weights: ``FILE.py:FUNCTION``, or a name from ``dnnlib models``.

    FUNCTION takes nothing and returns a classifier; ``weights`` may be None if it loads its own.
    A network by name is built for images of ``size`` and ``channels`` (default: its paper's) with
    ``options`` of :func:`models.build`, and needs ``weights``: a state dict in a safetensors
    file, for 'mobilenet' also in Keras's layout. Pickles are refused, since they can run code.
    Raises ``FileNotFoundError``, ``ValueError`` or ``TypeError`` saying what does not fit.

    >>> load_model("lenet5")
    Traceback (most recent call last):
    ValueError: weights: expected a file with those of 'lenet5'; nothing is trained here
    """
    if ":" in name or name.endswith(".py"):
        if options:
            raise ValueError(f"{', '.join(options)}: only with a name from `dnnlib models`; "
                             f"{name} takes no options")
        model = _from_file(name)
    else:
        checks.known(name, models.SPECS, "model (nor FILE.py:FUNCTION)")
        if weights is None:
            raise ValueError(f"weights: expected a file with those of {name!r}; nothing is "
                             "trained here")
        depth, side, _ = models.SPECS[name].shape
        shape = (channels or depth, size or side, size or side)
        model = models.build(name, shape=shape, **options)
    if weights is None:
        return model.eval()
    path = Path(weights).expanduser()
    if path.suffix != ".safetensors":
        raise ValueError(f"weights: expected a .safetensors file, got {path.name}; write one with "
                         "safetensors.torch.save_file(model.state_dict(), ...), or let FUNCTION "
                         "load it with torch.load(..., weights_only=True)")
    load = models.load_keras_weights if name == "mobilenet" else models.load_weights
    return load(model, path).eval()


def _from_file(name: str) -> nn.Module:
    """What FUNCTION of FILE.py returns, run with the file's folder on the path, as a script is."""
    file, _, function = name.rpartition(":")
    if not file.endswith(".py") or not function:
        raise ValueError(f"model: expected FILE.py:FUNCTION, got {name!r}")
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"model: there is no file {file}")
    spec = importlib.util.spec_from_file_location("own_model", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        if not callable(getattr(module, function, None)):
            known = [key for key, value in vars(module).items()
                     if callable(value) and not key.startswith("_")]
            checks.known(function, set(known) - {function}, f"function of {path.name}")
        model = getattr(module, function)()
    finally:
        sys.path.remove(str(path.parent))
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected {function}() of {path.name} to return a torch.nn.Module, "
                        f"got {type(model).__name__}")
    if next(model.parameters(), None) is None:
        raise ValueError(f"model: {function}() of {path.name} returns one without parameters")
    return model


class Classifier(nn.Module):
    """A person's model as the selectors want it: logits, whatever the memory layout.

    Images come channels last, on which the usual ``x.view(len(x), -1)`` fails: they are laid out
    anew. With ``probabilities``, the logarithm of the outputs, of which they are the softmax.

    >>> model = Classifier(nn.Sequential(nn.Flatten(), nn.Softmax(1)), probabilities=True)
    >>> model(torch.tensor([[[[0.25, 0.75]]]])).softmax(1).sum().item()
    1.0
    """

    def __init__(self, model: nn.Module, *, probabilities: bool = False):
        super().__init__()
        self.model, self.probabilities = model, probabilities

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """The model's own names, without one for this shell around it."""
        yield prefix, self
        for name, module in self.model.named_modules(memo, prefix, remove_duplicate):
            yield (name, module) if name else ("model", module)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # contiguous() would leave the strides of a single channel
        output = self.model(x.clone(memory_format=torch.contiguous_format))
        if not self.probabilities:
            return output
        return output.clamp_min(torch.finfo(output.dtype).tiny).log()


@torch.inference_mode()
def classifier(model: nn.Module, x: torch.Tensor, *, probabilities: bool = False) -> nn.Module:
    """``model`` as one that gives logits, after a look at its outputs for some of ``x``.

    ``x``: (N, C, H, W) in [0, 1]; ``probabilities``: what the model returns instead.
    Raises ``ValueError`` unless the outputs are finite, of at least two classes, not all the same,
    and logits or probabilities as announced; ``TypeError`` for one that is no tensor.
    """
    some = checks.images(x)[torch.linspace(0, len(x) - 1, min(len(x), PROBE)).long()]
    plain = Classifier(model).eval()
    try:
        outputs = plain(fast_layout(some, device_of(model)))
    except RuntimeError as error:
        raise ValueError(f"model: cannot take images of shape {tuple(x.shape[1:])}; a size or "
                         f"channels may mend that: {str(error).splitlines()[0]}") from error
    if not isinstance(outputs, torch.Tensor):
        raise TypeError("model: expected a tensor (N, classes) as output, got "
                        f"{type(outputs).__name__}")
    if outputs.ndim != 2 or len(outputs) != len(some) or outputs.shape[1] < 2:
        raise ValueError("model: expected outputs (N, classes) of at least two classes, got shape "
                         f"{tuple(outputs.shape)} for {len(some)} images")
    if not outputs.isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    if (outputs == outputs[0]).all() and (some != some[0]).any():
        raise ValueError(f"model: the same output for each of {len(some)} images, so that there "
                         "is nothing to rank; are its weights loaded?")
    distributions = (outputs >= 0).all() and ((outputs.sum(1) - 1).abs() < 1e-3).all()
    if distributions and not probabilities:
        raise ValueError("model: every output is non-negative and sums to 1, so that these are "
                         "probabilities where logits are expected; say so (--probabilities)")
    if probabilities and not distributions:
        raise ValueError("model: expected probabilities, as said (--probabilities), got outputs "
                         "that are negative or do not sum to 1; logits need no such option")
    if models.spec_of(model) and not probabilities:
        return model
    return Classifier(model, probabilities=probabilities).eval()
