"""Training by recipe: seeded, resumable, and kept in the cache by the hash of what made it."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import nn
from torchvision.transforms import v2
from tqdm import tqdm

from dnnlib import checks, files, models
from dnnlib.data import Dataset, load
from dnnlib.inference import device_of, fast_layout

REVISION = 2  # raise when the training loop changes what it computes
SCHEDULES = ("constant", "cosine", "steps")
PART = 128  # images a gradient is accumulated over at a time: what a CPU's cache holds


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, by stochastic gradient descent.

    ``schedule``: 'constant', 'cosine', or 'steps', a tenth after half and after three quarters of
    the epochs. ``precision``: 'float32', or 'bfloat16' for the convolutions. ``augment``: images
    cropped at random after a border of an eighth, and flipped, anew in every epoch.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: str = "constant"
    precision: str = "float32"
    nesterov: bool = False
    augment: bool = False

    def __post_init__(self) -> None:
        checks.known(self.schedule, SCHEDULES, "schedule")
        checks.known(self.precision, ("float32", "bfloat16"), "precision")


# NSATP Table II, PEACEPACT Table III. Neither names the optimiser: plain gradient descent.
_GRAY = Recipe(0.1, 512, 20, precision="bfloat16")
_COLOUR = Recipe(0.01, 512, 60, precision="bfloat16")
_LONGER = Recipe(0.05, 128, 4, momentum=0.9, weight_decay=5e-4, schedule="cosine",
                 precision="bfloat16")
_SPEECH = Recipe(0.02, 16, 16, momentum=0.9, weight_decay=5e-4, schedule="cosine")
_RECORDED = replace(_SPEECH, batch_size=64, epochs=4)
RECIPES = {
    # for readers' own runs, the embedded digits, and speech, of which the papers say nothing
    "default": {"*": Recipe(0.05, 64, 20, momentum=0.9, schedule="cosine"),
                "voices": _SPEECH, "fsdd": _RECORDED, "vctk": replace(_RECORDED, epochs=10)},
    # NSS prints no recipe for the networks it tests: brief, to about the accuracy of its Table I
    "nss": {"mnist": Recipe(0.06, 128, 1), "fashion_mnist": Recipe(0.1, 128, 2),
            "cifar10": replace(_LONGER, learning_rate=0.1, epochs=10, augment=True),
            "digits": Recipe(0.05, 64, 3, momentum=0.9)},
    # the other of the two stages of accuracy of its Fig. 3
    "nss_second": {"mnist": _LONGER, "fashion_mnist": _LONGER,
                   "cifar10": replace(_LONGER, epochs=2)},
    "nsatp": {"mnist": _GRAY, "fashion_mnist": _GRAY, "cifar10": _COLOUR, "cifar100": _COLOUR},
}


def recipe(name: str, dataset: str) -> Recipe:
    """The recipe ``name`` for ``dataset``; the default one where its paper has none.

    >>> recipe("nsatp", "mnist").learning_rate
    0.1
    """
    table = RECIPES[checks.known(name, RECIPES, "recipe")]
    return table.get(dataset) or RECIPES["default"]["*"]


def trained(model: str, dataset: str, *, recipe_name: str = "default", seed: int = 0,
            device: str = "cpu", **changes) -> nn.Module:
    """Network ``model`` trained on the training split of ``dataset``, or taken from the cache.

    ``changes`` override fields of the recipe. An interrupted training goes on after its last
    whole epoch and ends with the same weights. With ``recipe_name`` 'pretrained' nothing is
    trained: see :func:`pretrained`. Returns the model in evaluation mode.
    """
    if recipe_name == "pretrained":
        return pretrained(model, dataset).to(device)
    steps = replace(recipe(recipe_name, dataset), **changes)
    return fitted(model, load(dataset, "train"), steps, seed=seed, device=device)


def others(names: str, model: str, dataset: str, **options) -> tuple[nn.Module, ...]:
    """The networks ``names``, separated by spaces, but for ``model``: DeepXplore's oracles.

    ``options`` are those of :func:`trained`, the same for all.
    """
    return tuple(trained(name, dataset, **options) for name in names.split() if name != model)


def pretrained(model: str, dataset: str) -> nn.Module:
    """Network ``model`` with weights that others trained for ``dataset``, in evaluation mode.

    There is one: MobileNet of width 0.75 for ImageNet, with Keras's weights, see
    :func:`models.load_keras_weights`. Raises ``ValueError`` for any other, and
    ``FileNotFoundError`` if the file is missing.

    >>> pretrained("lenet5", "mnist")
    Traceback (most recent call last):
    ValueError: pretrained: expected mobilenet and imagenet, got lenet5 and mnist
    """
    if (model, dataset) != ("mobilenet", "imagenet"):
        raise ValueError(f"pretrained: expected mobilenet and imagenet, got {model} and {dataset}")
    return models.load_keras_weights(models.build(model, width=0.75)).eval()


def fitted(model: str, data: Dataset, steps: Recipe, *, seed: int = 0,
           device: str = "cpu") -> nn.Module:
    """Network ``model`` trained on ``data``, whatever it is, or taken from the cache.

    As :func:`trained`, which calls it; a checkpoint is found again by the data's fingerprint.
    """
    network = models.build(model, shape=data.shape, classes=len(data.classes), seed=seed)
    key = {"model": model, "data": data.fingerprint, "shape": data.shape, "recipe": asdict(steps),
           "seed": seed, "device": torch.device(device).type, "torch": torch.__version__,
           "revision": REVISION}
    path = files.cache_dir() / "checkpoints" / f"{files.digest(key)}.safetensors"
    if path.exists():
        network.load_state_dict(files.load_tensors(path)[0])
    else:
        unfinished = path.with_suffix(".partial")
        fit(network.to(device), data, steps, seed=seed, unfinished=unfinished)
        files.save_tensors(path, network.state_dict(), key=key)
        unfinished.unlink(missing_ok=True)
    return network.to(device).eval()


def fit(model: nn.Module, data: Dataset, steps: Recipe, *, seed: int = 0,
        unfinished: Path | None = None) -> None:
    """Train ``model`` in place by gradient descent on the cross-entropy.

    The order of epoch e depends on (seed, e) alone. ``unfinished``: a file in which every
    epoch is kept, and from which an interrupted run goes on.
    """
    checks.images(data.images, "data")
    checks.labels(data.labels, len(data), len(data.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=steps.learning_rate,
                                momentum=steps.momentum, weight_decay=steps.weight_decay,
                                nesterov=steps.nesterov)
    first = _resume(model, optimizer, unfinished)
    # BatchNorm sees whole batches; elsewhere the sum of the parts' gradients is the batch's
    whole = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    part = steps.batch_size if whole or device_of(model).type != "cpu" else PART
    model.train()
    bar = tqdm(range(first, steps.epochs), initial=first, total=steps.epochs, desc="training",
               unit="epoch", leave=False)
    for epoch in bar:
        for group in optimizer.param_groups:
            group["lr"] = _rate(steps, epoch)
        with torch.random.fork_rng(devices=[]):  # the order, and any dropout
            torch.manual_seed(seed * 100_003 + epoch)
            total = _epoch(model, optimizer, data, steps, part)
        if not math.isfinite(total):
            raise ValueError(f"training diverged in epoch {epoch + 1}: the loss is {total}; "
                             f"lower the learning rate (now {steps.learning_rate})")
        bar.set_postfix(loss=f"{total / len(data):.4f}")
        if unfinished is not None:
            _keep(model, optimizer, unfinished, epoch + 1)
    model.eval()


def _epoch(model: nn.Module, optimizer: torch.optim.Optimizer, data: Dataset, steps: Recipe,
           part: int) -> float:
    """One pass over the data in an order drawn from the global generator; the sum of the losses."""
    device, total = device_of(model), 0.0
    change = _augmentation(data.shape) if steps.augment else None
    order = torch.randperm(len(data))
    for batch in order.split(steps.batch_size):
        optimizer.zero_grad()
        for some in batch.split(part):
            x = data.images[some]
            if change is not None:
                x = torch.stack([change(image) for image in x])
            x, y = fast_layout(x, device), data.labels[some].to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=steps.precision == "bfloat16"):
                loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / len(batch)
            loss.backward()
            total += loss.item() * len(batch)
        optimizer.step()
    return total


def _augmentation(shape: tuple[int, int, int]) -> v2.Transform:
    height, width = shape[1:]
    return v2.Compose([v2.RandomCrop((height, width), padding=max(1, height // 8)),
                       v2.RandomHorizontalFlip()])


def _rate(steps: Recipe, epoch: int) -> float:
    if steps.schedule == "cosine":
        return 0.5 * steps.learning_rate * (1 + math.cos(math.pi * epoch / steps.epochs))
    if steps.schedule == "steps":
        quarter = 4 * epoch // steps.epochs
        return steps.learning_rate * (0.01 if quarter == 3 else 0.1 if quarter == 2 else 1)
    return steps.learning_rate


def _keep(model: nn.Module, optimizer: torch.optim.Optimizer, path, epoch: int) -> None:
    momenta = {f"momentum.{i}": state["momentum_buffer"]
               for i, state in optimizer.state_dict()["state"].items()
               if state.get("momentum_buffer") is not None}
    weights = {f"model.{k}": v for k, v in model.state_dict().items()}
    files.save_tensors(path, weights | momenta, epoch=epoch)


def _resume(model: nn.Module, optimizer: torch.optim.Optimizer, path) -> int:
    if path is None or not path.exists():
        return 0
    tensors, metadata = files.load_tensors(path)
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items()
                           if k.startswith("model.")})
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for i, p in enumerate(parameters):
        if f"momentum.{i}" in tensors:
            optimizer.state[p]["momentum_buffer"] = tensors[f"momentum.{i}"].to(p.device)
    return metadata["epoch"]
