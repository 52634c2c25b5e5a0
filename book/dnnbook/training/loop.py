"""Training by recipe: seeded, resumable, and kept in the cache by the hash of what made it."""

import math
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import nn

from dnnbook import reproducible
from dnnbook.data import Dataset, load
from dnnbook.data.sources import is_users
from dnnbook.training import augmentation, graphs, kept, networks, recipes
from dnnbook.training.borrowed import pretrained
from dnnbook.training.recipes import Recipe
from dnnlib import checks, files, inference, models
from dnnlib.inference import device_of, fast_layout
from dnnlib.models import parsed
from dnnlib.models.fingerprints import described
from dnnlib.progress import progress

PART = 128  # images a gradient is accumulated over at a time: what a CPU's cache holds


def trained(model_name: str, dataset: str, *, recipe_name: str = "default", seed: int = 0,
            device: str = "cpu", **changes) -> nn.Module:
    """Network ``model_name`` trained on the training split of ``dataset``, or taken from the cache.

    ``model_name``: of :data:`models.SPECS`, or a person's own, see :func:`networks.build`.
    ``changes`` override fields of the recipe. An interrupted training goes on after its last
    whole epoch and ends with the same weights. With ``recipe_name`` 'pretrained' nothing is
    trained: see :func:`borrowed.pretrained`. Returns the model in evaluation mode.
    """
    if recipe_name == "pretrained":
        return pretrained(model_name, dataset).to(inference.device(device))
    chosen = replace(recipes.recipe(recipe_name, dataset, model_name), **changes)
    model = fitted(model_name, load(dataset, "train"), chosen, seed=seed, device=device)
    if is_users(dataset):  # nobody has said how well it does
        _mention(model_name, model, dataset)
    return model


def _mention(name: str, model: nn.Module, dataset: str) -> None:
    data = load(dataset, limit=1000)
    right = inference.accuracy(model, data.images, data.labels)
    print(f"{Path(name).name} on {Path(data.name).name} gets {right:.1%} of {len(data):,} test "
          "images right")


def others(names: str, model_name: str, dataset: str, **options) -> tuple[nn.Module, ...]:
    """The networks ``names``, as 'lenet1 lenet4', without ``model_name``: DeepXplore's oracles.

    Without a name there are none. ``options`` are those of :func:`trained`, the same for all.
    Raises ``ValueError`` for a name that is unknown or comes twice.
    """
    known = checks.words(names, "names", models.SPECS, "model") if names.strip() else ()
    return tuple(trained(name, dataset, **options) for name in known if name != model_name)


@reproducible.fixed()
def fitted(model_name: str, data: Dataset, recipe: Recipe, *, start: nn.Module | None = None,
           seed: int = 0, device: str = "cpu") -> nn.Module:
    """Network ``model_name`` trained on ``data``, whatever it is, or taken from the cache.

    As :func:`trained`, which calls it; a checkpoint is found again by the data's fingerprint.
    ``start``: a trained network of that name to go on from, which stays as it is; default: new
    weights. ``device``: where it is trained and stays, as of :func:`inference.device`. It is
    trained with the threads of :func:`reproducible.threads`, whatever the caller uses. A kept
    network that its code, or that of the training, would not give is trained again: see
    :func:`kept.load`.
    """
    place = inference.device(device)

    def fresh() -> nn.Module:
        model = networks.build(model_name, data.shape, len(data.classes), seed=seed)
        if start is not None:
            model.load_state_dict(start.state_dict())
        return model.to(place)

    key = {"model": networks.called(model_name), "data": data.fingerprint, "shape": data.shape,
           "recipe": asdict(recipe), "seed": seed, **reproducible.key("training", place)}
    if start is not None:
        key["start"] = described(start)
    if recipe.augment:
        key["augmentation"] = reproducible.revision("augmentation")
    _note(recipe)
    path = files.cache_dir() / "checkpoints" / f"{files.digest(key)}.safetensors"
    model, code = fresh(), _code()
    if path.exists():
        if not (why := kept.load(path, model, data.images, code=code)):
            return model.eval()
        kept.tell(f"{model_name} on {data.name}", why)
        path.unlink(missing_ok=True)
        model = fresh()
    with files.making(path) as missing:
        if missing:
            unfinished = path.with_suffix(".partial")
            fit(model, data, recipe, seed=seed, unfinished=unfinished)
            kept.save(path, model, data.images, key=key, code=code)
            unfinished.unlink(missing_ok=True)
        else:  # another process made it meanwhile
            model.load_state_dict(files.load_tensors(path)[0], strict=False)
    return model.eval()


def _code() -> str:
    return parsed.digest(fit, without={"_keep", "_resume", "_note"})


def _note(recipe: Recipe) -> None:
    reproducible.note("training", precision=recipe.precision)
    if recipe.augment:
        reproducible.note("augmentation")


@reproducible.fixed()
def fit(model: nn.Module, data: Dataset, recipe: Recipe, *, seed: int = 0,
        unfinished: Path | None = None) -> None:
    """Train ``model`` in place by gradient descent on the cross-entropy.

    The order of epoch e, and the crops and flips where the recipe has them, depend on (seed, e)
    alone. ``unfinished``: a file in which every epoch is kept, and from which an interrupted run
    goes on. On a CUDA device the data lies there too, where it has room, and a step is one graph
    (:class:`graphs.Steps`); all else is the same on every device.
    """
    _note(recipe)
    checks.images(data.images, "data")
    checks.labels(data.labels, len(data), len(data.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.learning_rate,
                                momentum=recipe.momentum, weight_decay=recipe.weight_decay,
                                nesterov=recipe.nesterov)
    first = _resume(model, optimizer, unfinished)
    device = device_of(model)
    held = _held(data, device)
    model.train()
    bar = progress(range(first, recipe.epochs), initial=first, total=recipe.epochs, desc="training",
               unit="epoch", leave=False)
    with graphs.stream(device):
        for epoch in bar:
            for group in optimizer.param_groups:
                group["lr"] = _rate(recipe, epoch)
            gpus = [device] if device.type == "cuda" else []
            with torch.random.fork_rng(devices=gpus):  # the order, the changes, and any dropout
                torch.manual_seed(seed * 100_003 + epoch)
                total = _epoch(model, optimizer, *held, recipe)
            if not math.isfinite(total):
                raise ValueError(f"training diverged in epoch {epoch + 1}: the loss is {total}; "
                                 f"lower the learning rate (now {recipe.learning_rate})")
            bar.set_postfix(loss=f"{total / len(data):.4f}")
            if unfinished is not None:
                _keep(model, optimizer, unfinished, epoch + 1)
    model.eval()


def _held(data: Dataset, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """The images and labels on ``device``, if half of what is free there holds them."""
    free = inference.free_memory(device)
    if free is not None and data.images.nbytes > free // 2:
        return data.images, data.labels
    return data.images.to(device), data.labels.to(device)


def _epoch(model: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor,
           labels: torch.Tensor, recipe: Recipe) -> float:
    """One pass over the data in an order drawn from the global generator; the sum of the losses."""
    device, here = device_of(model), images.device
    order = torch.randperm(len(images)).to(here)
    changes = (augmentation.drawn(len(images), images.shape[1:]).to(here) if recipe.augment
               else None)
    total = torch.zeros((), device=device)
    steps = graphs.Steps(_step(model, optimizer, recipe, total), recipe.batch_size, device)
    for batch in order.split(recipe.batch_size):
        x = images[batch]
        if changes is not None:
            x = augmentation.changed(x, changes.of(batch))
        steps(fast_layout(x, device), labels[batch].to(device))
    return total.item()


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe,
          total: torch.Tensor) -> graphs.Step:
    """A step by a batch of images and their labels, which adds its losses to ``total``."""
    device = total.device
    # BatchNorm sees whole batches; elsewhere the sum of the parts' gradients is the batch's
    whole = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    part = recipe.batch_size if whole or device.type != "cpu" else PART

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        for some, true in zip(x.split(part), y.split(part)):
            half = recipe.precision == "bfloat16"
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                loss = nn.functional.cross_entropy(model(some), true, reduction="sum") / len(x)
            loss.backward()
            total.add_(loss.detach(), alpha=len(x))
        optimizer.step()

    return step


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
    files.save_tensors(path, weights | momenta, epoch=epoch, code=_code())


def _resume(model: nn.Module, optimizer: torch.optim.Optimizer, path) -> int:
    if path is None or not path.exists():
        return 0
    tensors, metadata = files.load_tensors(path)
    if metadata.get("code") != _code():  # begun by another loop
        return 0
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items()
                           if k.startswith("model.")})
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for i, p in enumerate(parameters):
        if f"momentum.{i}" in tensors:
            optimizer.state[p]["momentum_buffer"] = tensors[f"momentum.{i}"].to(p.device)
    return metadata["epoch"]
