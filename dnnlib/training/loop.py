"""Training by recipe: seeded, resumable, and kept in the cache by the hash of what made it."""

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

from dnnlib import checks, files, inference, models, reproducible
from dnnlib.data import Dataset, load
from dnnlib.inference import device_of, fast_layout
from dnnlib.training import recipes
from dnnlib.training.recipes import Recipe

PART = 128  # images a gradient is accumulated over at a time: what a CPU's cache holds


def trained(model_name: str, dataset: str, *, recipe_name: str = "default", seed: int = 0,
            device: str = "cpu", **changes) -> nn.Module:
    """Network ``model_name`` trained on the training split of ``dataset``, or taken from the cache.

    ``changes`` override fields of the recipe. An interrupted training goes on after its last
    whole epoch and ends with the same weights. With ``recipe_name`` 'pretrained' nothing is
    trained: see :func:`pretrained`. Returns the model in evaluation mode.
    """
    if recipe_name == "pretrained":
        return pretrained(model_name, dataset).to(inference.device(device))
    chosen = replace(recipes.recipe(recipe_name, dataset, model_name), **changes)
    return fitted(model_name, load(dataset, "train"), chosen, seed=seed, device=device)


def others(names: str, model_name: str, dataset: str, **options) -> tuple[nn.Module, ...]:
    """The networks ``names``, as 'lenet1 lenet4', without ``model_name``: DeepXplore's oracles.

    Without a name there are none. ``options`` are those of :func:`trained`, the same for all.
    Raises ``ValueError`` for a name that is unknown or comes twice.
    """
    known = checks.words(names, "names", models.SPECS, "model") if names.strip() else ()
    return tuple(trained(name, dataset, **options) for name in known if name != model_name)


def pretrained(model_name: str, dataset: str) -> nn.Module:
    """Network ``model_name`` with weights that others trained for ``dataset``, in evaluation mode.

    There is one: MobileNet of width 0.75 for ImageNet, with Keras's weights, see
    :func:`models.load_keras_weights`. Raises ``ValueError`` for any other, and
    ``FileNotFoundError`` if the file is missing.

    >>> pretrained("lenet5", "mnist")
    Traceback (most recent call last):
    ValueError: pretrained: expected mobilenet and imagenet, got lenet5 and mnist
    """
    if (model_name, dataset) != ("mobilenet", "imagenet"):
        raise ValueError("pretrained: expected mobilenet and imagenet, "
                         f"got {model_name} and {dataset}")
    return models.load_keras_weights(models.build(model_name, width=0.75)).eval()


@reproducible.fixed()
def fitted(model_name: str, data: Dataset, recipe: Recipe, *, seed: int = 0,
           device: str = "cpu") -> nn.Module:
    """Network ``model_name`` trained on ``data``, whatever it is, or taken from the cache.

    As :func:`trained`, which calls it; a checkpoint is found again by the data's fingerprint.
    ``device``: where it is trained and stays, as of :func:`inference.device`. It is trained
    with the threads of :func:`reproducible.threads`, whatever the caller uses.
    """
    place = inference.device(device)
    model = models.build(model_name, shape=data.shape, classes=len(data.classes), seed=seed)
    key = {"model": model_name, "data": data.fingerprint, "shape": data.shape,
           "recipe": asdict(recipe), "seed": seed, **reproducible.key("training", place)}
    reproducible.note("training", precision=recipe.precision)
    path = files.cache_dir() / "checkpoints" / f"{files.digest(key)}.safetensors"
    with files.making(path) as missing:
        if missing:
            unfinished = path.with_suffix(".partial")
            fit(model.to(place), data, recipe, seed=seed, unfinished=unfinished)
            files.save_tensors(path, model.state_dict(), key=key)
            unfinished.unlink(missing_ok=True)
        else:
            model.load_state_dict(files.load_tensors(path)[0])
    return model.to(place).eval()


@reproducible.fixed()
def fit(model: nn.Module, data: Dataset, recipe: Recipe, *, seed: int = 0,
        unfinished: Path | None = None) -> None:
    """Train ``model`` in place by gradient descent on the cross-entropy.

    The order of epoch e depends on (seed, e) alone. ``unfinished``: a file in which every
    epoch is kept, and from which an interrupted run goes on.
    """
    reproducible.note("training", precision=recipe.precision)
    checks.images(data.images, "data")
    checks.labels(data.labels, len(data), len(data.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.learning_rate,
                                momentum=recipe.momentum, weight_decay=recipe.weight_decay,
                                nesterov=recipe.nesterov)
    first = _resume(model, optimizer, unfinished)
    # BatchNorm sees whole batches; elsewhere the sum of the parts' gradients is the batch's
    whole = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    part = recipe.batch_size if whole or device_of(model).type != "cpu" else PART
    model.train()
    bar = tqdm(range(first, recipe.epochs), initial=first, total=recipe.epochs, desc="training",
               unit="epoch", leave=False)
    for epoch in bar:
        for group in optimizer.param_groups:
            group["lr"] = _rate(recipe, epoch)
        with torch.random.fork_rng(devices=[]):  # the order, and any dropout
            torch.manual_seed(seed * 100_003 + epoch)
            total = _epoch(model, optimizer, data, recipe, part)
        if not math.isfinite(total):
            raise ValueError(f"training diverged in epoch {epoch + 1}: the loss is {total}; "
                             f"lower the learning rate (now {recipe.learning_rate})")
        bar.set_postfix(loss=f"{total / len(data):.4f}")
        if unfinished is not None:
            _keep(model, optimizer, unfinished, epoch + 1)
    model.eval()


def _epoch(model: nn.Module, optimizer: torch.optim.Optimizer, data: Dataset, recipe: Recipe,
           part: int) -> float:
    """One pass over the data in an order drawn from the global generator; the sum of the losses."""
    device, total = device_of(model), 0.0
    change = _augmentation(data.shape) if recipe.augment else None
    order = torch.randperm(len(data))
    for batch in order.split(recipe.batch_size):
        optimizer.zero_grad()
        for some in batch.split(part):
            x = data.images[some]
            if change is not None:
                x = torch.stack([change(image) for image in x])
            x, y = fast_layout(x, device), data.labels[some].to(device)
            half = recipe.precision == "bfloat16"
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / len(batch)
            loss.backward()
            total += loss.item() * len(batch)
        optimizer.step()
    return total


def _augmentation(shape: tuple[int, int, int]) -> Callable[[torch.Tensor], torch.Tensor]:
    from torchvision.transforms import v2  # slow to import

    height, width = shape[1:]
    return v2.Compose([v2.RandomCrop((height, width), padding=max(1, height // 8)),
                       v2.RandomHorizontalFlip()])


def _rate(recipe: Recipe, epoch: int) -> float:
    if recipe.schedule == "cosine":
        return 0.5 * recipe.learning_rate * (1 + math.cos(math.pi * epoch / recipe.epochs))
    if recipe.schedule == "steps":
        quarter = 4 * epoch // recipe.epochs
        return recipe.learning_rate * (0.01 if quarter == 3 else 0.1 if quarter == 2 else 1)
    return recipe.learning_rate


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
