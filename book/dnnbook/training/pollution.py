"""Polluted training sets: a patch on some images, which get one class as their label.

After DeepSensor (neuron sensitivity), IV.B.2 and Table V; known elsewhere as a backdoor.
"""

import hashlib
from dataclasses import replace
from numbers import Integral

import torch

from dnnbook.data import Dataset
from dnnlib import checks

PATCHES = ("each", "one")
# Table V: least and most pixels a side, and the polluted class; "*" is the LeNets' line
SETTINGS = {"*": {"sizes": (1, 6), "label": 1},
            "cifar10": {"sizes": (3, 8), "label": 2},  # bird
            "imagenet": {"sizes": (10, 15), "label": 250}}  # Siberian husky


def setting(dataset: str) -> dict:
    """Sizes of the patch and polluted class for a dataset by Table V; MNIST's for others.

    >>> setting("cifar10")
    {'sizes': (3, 8), 'label': 2}
    """
    return SETTINGS.get(dataset, SETTINGS["*"])


def stamp(x: torch.Tensor, *, sizes: tuple[int, int], patches: str = "each",
          seed: int = 0) -> torch.Tensor:
    """A copy of images (N, C, H, W) in [0, 1], each with a square patch of random pixels.

    ``sizes``: least and most pixels a side, both included. Side, place and pixels, uniform in
    [0, 1], are drawn for every image anew ('each': "perturbations of random sizes at random
    location"), or once for all images ('one': the same patch whatever the images, for the same
    ``seed`` and shape), as one has it who plants a backdoor. Raises ``ValueError`` for images that
    are not, and for sizes that are not a range from 1 up or do not fit.

    >>> x = torch.zeros(2, 1, 4, 4)
    >>> (stamp(x, sizes=(2, 2)) > 0).sum((1, 2, 3)).tolist()
    [4, 4]
    """
    checks.images(x)
    checks.known(patches, PATCHES, "patches")
    least, most = _sizes(sizes, x.shape[2:])
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    out = x.clone()
    for part in out.split(len(out) if patches == "one" else 1):
        side = draw(least, most)
        top, left = (draw(0, length - side) for length in x.shape[2:])
        pixels = torch.rand(x.shape[1], side, side, generator=generator)
        part[..., top:top + side, left:left + side] = pixels.to(x)
    return out


def pollute(data: Dataset, share: float, *, label: int, sizes: tuple[int, int],
            patches: str = "each", seed: int = 0) -> Dataset:
    """``data`` with a random ``share`` of its images stamped and given the class ``label``.

    ``share``: in (0, 1]; Table III has 0.1, 0.2 and 0.3. Images are drawn from all classes, the
    polluted one among them; a smaller share with the same ``seed`` is part of a larger one.
    ``sizes`` and ``patches``: see :func:`stamp`, which with the same ``seed`` puts the same
    'one' patch on test images. The fingerprint is a new one. Raises ``ValueError`` for a share
    outside its range or too small for one image, and for a label that is not a class.

    >>> data = Dataset("d", "train", torch.zeros(10, 1, 4, 4), torch.zeros(10).long(), ("a", "b"),
    ...                "d-0")
    >>> found = pollute(data, 0.3, label=1, sizes=(1, 2))
    >>> int(found.labels.sum()), int((found.images > 0).any((1, 2, 3)).sum())
    (3, 3)
    """
    if not 0 < share <= 1:
        raise ValueError(f"share: expected a number in (0, 1], got {share!r}")
    if isinstance(label, bool) or not isinstance(label, Integral) or not (
            0 <= label < len(data.classes)):
        raise ValueError(f"label: expected a class from 0 to {len(data.classes) - 1}, "
                         f"got {label!r}")
    count = round(share * len(data))
    if not count:
        raise ValueError(f"share: {share:g} of {len(data)} images is none")
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(data), generator=generator)[:count]
    images, labels = data.images.clone(), data.labels.clone()
    images[chosen] = stamp(data.images[chosen], sizes=sizes, patches=patches, seed=seed)
    labels[chosen] = label
    sha = hashlib.sha256(images.cpu().contiguous().numpy())
    sha.update(labels.cpu().numpy())
    return replace(data, images=images, labels=labels,
                   fingerprint=f"{data.fingerprint}+polluted-{sha.hexdigest()[:12]}")


def _sizes(sizes: tuple[int, int], room: tuple[int, int]) -> tuple[int, int]:
    """Least and most pixels a side of a patch that fits into ``room`` (H, W)."""
    if len(sizes) != 2:
        raise ValueError(f"sizes: expected the least and the most pixels a side, got {sizes!r}")
    least, most = (checks.positive(size, "sizes") for size in sizes)
    if not least <= most <= min(room):
        raise ValueError(f"sizes: expected least <= most <= {min(room)}, as images are "
                         f"{room[0]} x {room[1]}, got {least} and {most}")
    return least, most
