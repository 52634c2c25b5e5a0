"""How many images of known classes a person's own model gets wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from dnnlib import checks
from dnnlib.custom.class_names import classes_named, labels_of
from dnnlib.custom.looks import first_look
from dnnlib.custom.photos import Images, Photos, photos_of
from dnnlib.custom.scores import classes_of_photos
from dnnlib.inference import leaves_modes, predict


@dataclass(frozen=True, eq=False)
class Faults:
    """``images``: how many were answered; ``wrong``: what each is taken for, by name, in words;
    ``unread``: the reasons for those that cannot be read, or that the model fails on."""

    images: int
    wrong: Mapping[str, str]
    unread: Mapping[str, str]

    @property
    def rate(self) -> float:
        """The share that is wrong, in [0, 1]."""
        return len(self.wrong) / self.images


def check_labelled(photos: Photos) -> None:
    """``ValueError`` unless each image says which class it is, by its folder or by a label."""
    if photos.labels is None:
        without = [path for path in photos.paths if "/" not in path]
    else:
        without = [path for path, label in zip(photos.paths, photos.labels.tolist()) if label < 0]
    if without:
        raise ValueError("labels: expected the class of every image, by the sub-folder that it is "
                         f"in or by a label in Parquet, got none for {without[0]}")


@leaves_modes
def fault_rate(model: nn.Module, images: Images, *, class_names: Sequence[str] | None = None,
               probabilities: bool | None = None, batch_size: int = 64,
               workers: int | None = None) -> Faults:
    """Which of the images the model gets wrong, in one pass over each.

    ``images``: what :func:`photos_of` takes, with classes as :func:`classes_named` has them, also
    for ``class_names``; ``probabilities``: see :func:`classifier`; ``workers``: see
    :func:`photos.batches`. Raises ``ValueError`` for images without classes, for classes that are
    not the model's, and if none can be read.

    >>> from torch.utils.data import TensorDataset
    >>> import torch
    >>> data = TensorDataset(torch.rand(4, 1, 2, 2))
    >>> data.targets, data.classes = torch.tensor([0, 1, 1, 1]), ("a", "b")
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> model[1].bias.data = torch.tensor([9.0, 0.0])  # always class a
    >>> found = fault_rate(model, data)
    >>> found.rate, found.wrong["1"]
    (0.75, 'b taken for a')
    """
    checks.positive(batch_size, "batch_size")
    photos = photos_of(images, model)
    check_labelled(photos)
    fit, some, *_ = first_look(model, photos, probabilities=probabilities)
    names = classes_named(photos, predict(fit, some[:2]).shape[1], "folders", class_names)
    labels = labels_of(photos, names).tolist()
    given, unread = classes_of_photos(fit, photos, batch_size=batch_size, workers=workers)
    answered = {path: (label, answer) for path, label, answer
                in zip(photos.paths, labels, given.tolist()) if answer >= 0}
    if not answered:
        place, why = next(iter(unread.items()))
        raise ValueError(f"images: none can be tested; the first: {photos.paths[place]} {why}")
    return Faults(len(answered), {path: f"{names[label]} taken for {names[answer]}"
                                  for path, (label, answer) in answered.items()
                                  if label != answer},
                  {photos.paths[i]: why for i, why in unread.items()})
