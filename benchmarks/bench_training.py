"""Augmentation and training beside plain ways of both, as ratios in one run.

Without a CUDA device the rows on training are not measured, and the program says so.
"""

import copy
import time
from collections.abc import Callable

import torch
from goals import keep
from torch import nn
from torchvision.transforms import v2

from dnnbook import reproducible
from dnnbook.data import Dataset
from dnnbook.training import Recipe, augmentation, fit
from dnnlib import models

SHAPE = (3, 32, 32)
IMAGES = 2048  # augmented in a batch of 128, as in training
BATCH = 128
NETWORKS = {"lenet5": (1, 28, 28), "vgg16": SHAPE, "resnet20": SHAPE}


def seconds(*actions: Callable[[], object], rounds: int = 3) -> list[float]:
    """The best of some rounds of each action, in turn; what a GPU was given is waited for."""
    times = [[] for _ in actions]
    for _ in range(rounds):
        for action, taken in zip(actions, times):
            start = time.perf_counter()
            action()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def augmented() -> None:
    """The gather beside torchvision's transforms, image by image, on one core."""
    x = torch.rand(IMAGES, *SHAPE)
    one = v2.Compose([v2.RandomCrop(SHAPE[1:], padding=augmentation.border(SHAPE)),
                      v2.RandomHorizontalFlip()])

    def gather() -> None:
        changes = augmentation.drawn(IMAGES, SHAPE)
        for some in torch.arange(IMAGES).split(BATCH):
            augmentation.changed(x[some], changes.of(some))

    def image_by_image() -> None:
        for some in torch.arange(IMAGES).split(BATCH):
            torch.stack([one(image) for image in x[some]])

    ours, theirs = seconds(gather, image_by_image)
    print(f"crops and flips of {IMAGES} images {SHAPE}, one core: {1e6 * ours / IMAGES:.1f} us an "
          f"image; torchvision's, image by image: {1e6 * theirs / IMAGES:.1f} us")
    keep("augmentation on one core, transforms image by image over the gather", theirs / ours,
         least=3)


def plain(model: nn.Module, x: torch.Tensor, y: torch.Tensor, recipe: Recipe) -> None:
    """A loop with one graph a step, which reads the batch that is gathered before it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.learning_rate,
                                momentum=recipe.momentum)
    held, true = torch.empty_like(x[:BATCH]), torch.empty_like(y[:BATCH])
    held = held.contiguous(memory_format=torch.channels_last)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            loss = nn.functional.cross_entropy(model(held), true)
        loss.backward()
        optimizer.step()

    def load(batch: torch.Tensor) -> None:
        held.copy_(augmentation.changed(x[batch], changes.of(batch)))
        true.copy_(y[batch])

    model.train()
    aside, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for epoch in range(recipe.epochs):
            changes = augmentation.drawn(len(x), x.shape[1:]).to(x.device)
            for i, batch in enumerate(torch.randperm(len(x)).to(x.device).split(BATCH)):
                load(batch)
                if epoch == 0 and i < 3:  # what is set up once
                    step()
                    continue
                if epoch == 0 and i == 3:
                    with torch.cuda.graph(graph, stream=aside):
                        step()
                graph.replay()
    torch.cuda.current_stream().wait_stream(aside)


def trained() -> None:
    """:func:`fit` beside the plain loop, some epochs of data that lies on the GPU."""
    if not torch.cuda.is_available():
        print("fit, times the loop with one graph a step: not measured, as no CUDA device is here")
        return
    for name, shape in NETWORKS.items():
        recipe = Recipe(0.01, BATCH, epochs=2, momentum=0.9, augment=True,
                        precision="float32" if shape[0] == 1 else "bfloat16")
        x = torch.rand(400 * BATCH, *shape, device="cuda")
        y = torch.randint(10, (len(x),), device="cuda")
        data = Dataset("random", "train", x, y, tuple("0123456789"), "random")
        start = models.build(name).cuda().to(memory_format=torch.channels_last)
        ours, theirs = seconds(lambda: fit(copy.deepcopy(start), data, recipe),
                               lambda: plain(copy.deepcopy(start), x, y, recipe), rounds=2)
        print(f"{name}, {recipe.epochs} epochs of {len(x)} images: {ours:.2f} s; the loop with one "
              f"graph a step {theirs:.2f} s")
        keep(f"fit of {name}, times the loop with one graph a step", ours / theirs, most=1.3,
             gpu=torch.cuda.get_device_name())


def main() -> None:
    reproducible.fix()
    torch.manual_seed(0)
    augmented()
    trained()


if __name__ == "__main__":
    main()
