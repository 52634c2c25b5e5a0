"""Models saved as files of their own: TorchScript, torch.export, ONNX. They give outputs only."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_map

from dnnlib.custom.own_code import sentence

SUFFIXES = {".pt": "TorchScript", ".ts": "TorchScript", ".pt2": "torch.export", ".onnx": "ONNX"}


class OutputsOnly(nn.Module):
    """A model of which nothing but the outputs can be had: no layers, no gradients.

    ``format``: what it came as. ``content``: a hash of its files, which stands for its weights.
    ``dtype``: of the images that it takes.
    """

    def __init__(self, run, format: str, content: str = "", dtype: torch.dtype = torch.float32):
        super().__init__()
        # not a module of this one: exported programs refuse eval(), and their parts are not layers
        self._run, self.format, self.content = [run], format, content
        # tells the device, and the type of the images
        self.anchor = nn.Parameter(torch.zeros((), dtype=dtype), requires_grad=False)

    def forward(self, x: torch.Tensor):
        return self._run[0](x)

    def get_extra_state(self) -> str:
        return self.content

    def set_extra_state(self, state: str) -> None:
        self.content = state

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        if self.anchor.device.type != "cpu":
            if not isinstance(self._run[0], torch.jit.ScriptModule):
                raise ValueError(f"--device: a model from {self.format} runs on the cpu here")
            self._run[0].to(self.anchor.device)
        return self


class Several(ValueError):
    """A file whose outputs nobody can tell apart."""


def load_saved(path: Path) -> OutputsOnly:
    """The model in a file of one of :data:`SUFFIXES`.

    Raises ``FileNotFoundError``, ``ModuleNotFoundError`` where onnxruntime is needed, and
    ``ValueError`` for a file that is none.
    """
    if not path.is_file():
        raise FileNotFoundError(f"model: there is no file {path}")
    kind = SUFFIXES[path.suffix]
    load = {"TorchScript": _script, "torch.export": _exported, "ONNX": _onnx}[kind]
    try:
        found, dtype = load(path)
        return OutputsOnly(found, kind, _content(path), dtype).eval()
    except (ModuleNotFoundError, FileNotFoundError, Several):
        raise
    except Exception as error:  # each library has errors of its own
        said = sentence(error) or type(error).__name__
        hint = ("; a state dict goes to --weights, with the code of its model, FILE.py:FUNCTION, "
                "as --model" if path.suffix == ".pt" else "")
        raise ValueError(f"model: {path.name} is not a model saved by {kind}{hint} ({said[:120]})"
                         ) from error


def _content(path: Path) -> str:
    """A hash of the file, and of those beside it in which an ONNX graph says that weights lie."""
    sha = hashlib.sha256(data := path.read_bytes())
    if path.suffix == ".onnx":
        # StringStringEntryProto of TensorProto.external_data: key (1) "location", value (2) a name
        found = re.finditer(rb"\x0a\x08location\x12([\x00-\x7f])", data)
        names = {data[m.end():m.end() + m[1][0]].decode() for m in found}
        for name in sorted(names):
            if (beside := path.parent / name).is_file():
                with open(beside, "rb") as file:
                    sha.update(hashlib.file_digest(file, "sha256").digest())
    return sha.hexdigest()


def _script(path: Path) -> tuple[nn.Module, torch.dtype]:
    script = torch.jit.load(str(path), map_location="cpu").eval()
    return script, next((p.dtype for p in script.parameters() if p.is_floating_point()),
                        torch.float32)


def _exported(path: Path) -> tuple[Callable, torch.dtype]:
    program = torch.export.load(str(path))
    given = program.graph_signature.user_inputs[0]
    taken = next(node for node in program.graph.nodes if node.name == given).meta["val"]
    return _filled(program.module(), taken.shape[0]), taken.dtype


def _onnx(path: Path) -> tuple[Callable, torch.dtype]:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("this needs onnxruntime; install it with: pip install "
                                  "onnxruntime", name="onnxruntime") from error
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given, wanted = session.get_inputs()[0], _output([o.name for o in session.get_outputs()])
    kinds = {"tensor(float16)": np.float16, "tensor(double)": np.float64}
    channels = (1, 3)
    last = len(given.shape) == 4 and given.shape[3] in channels and given.shape[1] not in channels

    def run(x: torch.Tensor) -> torch.Tensor:
        x = x.permute(0, 2, 3, 1) if last else x  # as exports of TensorFlow declare it
        images = x.numpy(force=True).astype(kinds.get(given.type, np.float32))
        return torch.from_numpy(session.run([wanted], {given.name: images})[0])

    return _filled(run, given.shape[0]), torch.float32


def _filled(run: Callable, size) -> Callable:
    """``run`` for any number of images: of ``size`` at a time, if that is a number, the last ones
    filled up."""
    if not isinstance(size, int):
        return run

    def runs(x: torch.Tensor):
        whole = torch.cat([x, x[-1:].expand(-len(x) % size, *x.shape[1:])])
        return tree_map(lambda *parts: torch.cat(parts)[:len(x)], *map(run, whole.split(size)))

    return runs


def _output(names: list[str]) -> str:
    """The one output, or the one called logits."""
    if len(names) == 1 or "logits" in names:
        return "logits" if "logits" in names else names[0]
    raise Several("model: expected one output, or one called logits, got "
                  f"{', '.join(names)}; export it with the logits alone")
