"""Every selector and fuzzer on torchvision's networks: which work, and what the others answer.

    python benchmarks/matrix.py                    # all of it, into book/matrix.md
    python benchmarks/matrix.py resnet18 vit_b_16  # some of it, printed

Random weights, small images: it is tried whether a method runs, not whether it is any good.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torchvision.models import get_model

from dnnlib import custom, files, selection
from dnnlib.custom.options import SWARMS

MODELS = ("resnet18", "resnet50", "vgg11_bn", "mobilenet_v3_small", "densenet121",
          "efficientnet_b0", "shufflenet_v2_x0_5", "googlenet", "convnext_tiny",
          "regnet_y_400mf", "swin_t", "vit_b_16")
SIZE, CLASSES, IMAGES = 64, 4, 4
PAGE = Path(__file__).resolve().parents[1] / "book" / "matrix.md"


def build(name: str) -> torch.nn.Module:
    """The network with random weights."""
    options = {"vit_b_16": {"image_size": SIZE},
               "googlenet": {"aux_logits": True, "init_weights": False}}.get(name, {})
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return centred(get_model(name, weights=None, num_classes=CLASSES, **options).eval())


def centred(model: torch.nn.Module) -> torch.nn.Module:
    """The model with another bias at its end, by which no class is the first for all images."""
    head = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    with torch.no_grad():
        if not head.weight.any():  # as transformers begin
            torch.nn.init.normal_(head.weight)
        head.bias -= model(torch.cat([photos(0).images, photos(1).images])).mean(0)
    return model


def photos(seed: int) -> custom.Photos:
    x = torch.rand(IMAGES, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))
    return custom.Photos(x, tuple(f"{i}.png" for i in range(IMAGES)), {}, 0)


def selector(model: torch.nn.Module, name: str) -> str:
    """'' if the selector orders the images, else its error."""
    try:
        table = custom.rank(model, photos(0), name, reference=photos(1).images, top=1)
    except (ValueError, TypeError) as error:
        return told(name, error)
    assert sorted(table[f"{name}_rank"]) == [*range(1, IMAGES + 1)]
    return ""


def fuzzer(model: torch.nn.Module, name: str) -> str:
    """'' if the fuzzer finds or does not find failing inputs, else its error."""
    options = custom.Options(by=name, l2=2.0, iterations=1, limit=2,
                             population=2 if name in SWARMS else None)
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = custom.fuzz(model, photos(0), Path(folder) / "run", options,
                                reference=photos(1).images if name == "deephunter" else None)
        except (ValueError, TypeError) as error:
            return told(name, error)
    assert set(found.inputs["outcome"]) <= {"broken", "held", "left out"}
    return ""


def told(name: str, error: Exception) -> str:
    text = str(error)
    assert "\n" not in text, f"not one line: {text}"
    return text.removeprefix(f"{name}: ")


def row(name: str) -> dict[str, str]:
    """What each method answers for one network."""
    model, found = build(name), {}
    for method in selection.SELECTORS:
        found[method] = selector(model, method)
    for method in custom.METHODS:
        found[f"fuzz {method}"] = fuzzer(model, method)
    return found


def page(rows: dict[str, dict[str, str]]) -> str:
    """The table as a page of the book, with the answers below it."""
    answers = list(dict.fromkeys(text for found in rows.values()
                                 for text in found.values() if text))
    signs = {"": "✓"} | {text: f"({i})" for i, text in enumerate(answers, 1)}
    methods = list(next(iter(rows.values())))
    count = sum(not text for found in rows.values() for text in found.values())
    lines = [
        "# Which methods work on which networks",
        "",
        f"{len(rows)} networks of torchvision {torch_vision()}, with random weights, on images of "
        f"{SIZE} × {SIZE} pixels; GoogLeNet with its auxiliary heads. Every selector of `dnnlib "
        "rank` and every fuzzer of `dnnlib fuzz` was tried on each. ✓ says that the method ran to "
        "its end, not that it is any good on this network. A number in brackets stands for an "
        "error message of one line, which comes before the first pass over the images.",
        "",
        f"{count} of {len(rows) * len(methods)} pairs work. The table is made by "
        "`python benchmarks/matrix.py`; the tests repeat three of its rows.",
        "",
        "| network | " + " | ".join(methods) + " |",
        "|---" * (len(methods) + 1) + "|",
        *(f"| {name} | " + " | ".join(signs[text] for text in found.values()) + " |"
          for name, found in rows.items()), ""]
    lines += [f"{signs[text]} `{text}`\n" for text in answers]
    if answers:
        lines += ["Attention has no rule because it adds up values by weights that depend on the "
                  "image. GoogLeNet calls its ReLUs as functions, so no module stands for them; "
                  "`--layers '*.bn'` names the modules before them.", ""]
    return "\n".join(lines)


def torch_vision() -> str:
    import torchvision

    return torchvision.__version__.partition("+")[0]


def main(names: list[str]) -> None:
    rows = {}
    for name in names or MODELS:
        rows[name] = row(name)
        print(name, {k: v for k, v in rows[name].items() if v} or "all work", flush=True)
    if not names:
        files.write_atomically(PAGE, page(rows).encode())
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main(sys.argv[1:])
