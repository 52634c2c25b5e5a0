"""The game of the second DeepSensor (Definitions 1 to 3): neurons share out a change of loss."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import device_of, doubles, fast_layout, predict, size_for
from dnnlib.neurons.activations import NEURONS, Activations, record
from dnnlib.neurons.gates import Gates, finite
from dnnlib.neurons.layers import SOFTMAX, layers_of

_MANY = 2**62  # rows: how many coalitions will be asked for is not known


@dataclass(frozen=True, eq=False)
class Game:
    """What a coalition of neurons is worth: the change of loss when all others are off.

    The worth is Eq. 3, L(perturbed) - L(clean), the cross-entropy in nats, with the same neurons
    switched off in both passes: their activation is 0 (Definition 1). Every input is a game of
    its own. The softmax is never a player: with all of it off the loss is infinite. The model is
    put in evaluation mode.

    - ``model``: gives logits (B, classes).
    - ``clean``, ``perturbed``: images (B, C, H, W) in [0, 1].
    - ``labels``: classes, int64 (B,).
    - ``layers``: names of modules, default those of :func:`layers.layers_of`.
    - ``neuron``: 'channel' or 'unit'.
    - ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for` says how many.

    Raises ``ValueError`` for a layer that is unknown or does not run, for
    labels out of range, and where an input is not perturbed: nothing is to be shared out then,
    and a Shapley value of 0 for all would hide what is mostly a mistake.

    >>> from dnnlib import models
    >>> model = models.build("lenet1")
    >>> clean = torch.rand(2, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    >>> game = Game(model, clean, 1 - clean, torch.tensor([3, 5]))
    >>> game.players, game.where(41), game.value(torch.zeros(1, 42)).tolist()
    (42, ('7', (9,)), [[0.0], [0.0]])
    """

    model: nn.Module = field(repr=False)
    clean: torch.Tensor = field(repr=False)
    perturbed: torch.Tensor = field(repr=False)
    labels: torch.Tensor = field(repr=False)
    layers: Sequence[str] | None = field(default=None, kw_only=True)
    neuron: str = field(default="channel", kw_only=True)
    batch_size: int = field(default=1024, kw_only=True)
    gates: Gates = field(init=False, repr=False)
    _columns: Activations = field(init=False, repr=False)
    _size: int = field(init=False, repr=False)

    def __post_init__(self):
        checks.images(self.clean, "clean")
        checks.images(self.perturbed, "perturbed")
        checks.known(self.neuron, NEURONS, "neuron")
        checks.positive(self.batch_size, "batch_size")
        if self.clean.shape != self.perturbed.shape:
            raise ValueError("perturbed: expected the shape of clean, "
                             f"{tuple(self.clean.shape)}, got {tuple(self.perturbed.shape)}")
        same = (self.clean == self.perturbed).flatten(1).all(1).nonzero()[:, 0].tolist()
        if same:
            shown = ", ".join(map(str, same[:5])) + (", ..." if len(same) > 5 else "")
            raise ValueError(f"perturbed: equal to clean for {len(same)} of {len(self.clean)} "
                             f"inputs ({shown}), so there is no change of loss to share out; "
                             "leave them out")
        first = self.clean[:1]
        labels = checks.labels(self.labels, len(self.clean), predict(self.model, first).shape[1])
        columns = players(self.model, first, self.layers, self.neuron)
        # gradients of all layers, and their outputs times the gates
        size = size_for(self.model, first, self.batch_size, rows=_MANY, times=8)
        resolved = {"labels": labels, "_size": size, "layers": columns.layers, "_columns": columns,
                    "gates": Gates(self.model, columns.layers, columns.shapes, columns.calls)}
        for name, value in resolved.items():
            object.__setattr__(self, name, value)

    @property
    def players(self) -> int:
        return self.gates.neurons

    def where(self, i: int) -> tuple[str, tuple[int, ...]]:
        """The layer of player ``i`` and its place there, as :meth:`Activations.where`."""
        return self._columns.where(i)

    @torch.no_grad()
    def value(self, coalitions: torch.Tensor) -> torch.Tensor:
        """What coalitions are worth, float64 (B, K) in nats, on the CPU.

        ``coalitions``: gates (K, N) for all inputs or (B, K, N), bool or in [0, 1]. Coalitions
        that follow each other and agree in the early layers cost the later layers only. Raises
        ``ValueError`` for another shape or range, and where a loss is not finite.
        """
        changes = []
        for x, of, labels, gates, sign in self._rows(coalitions):
            logits = self.gates.logits(x, of, gates).to(doubles(x.device)).double()
            loss = nn.functional.cross_entropy(logits, labels.to(logits.device), reduction="none")
            finite(loss)
            changes.append(loss * sign.to(loss.device))
        return torch.cat(changes).view(len(self.clean), 2, -1).sum(1).cpu()

    def slopes(self, coalitions: torch.Tensor) -> torch.Tensor:
        """d value / d gate for every player, float32 (B, K, N), on the CPU.

        Arguments and errors as of :meth:`value`; nothing is shared.
        """
        changes = [self.gates.slopes(x[of], labels, gates) * sign.unsqueeze(1)
                   for x, of, labels, gates, sign in self._rows(coalitions)]
        return torch.cat(changes).view(len(self.clean), 2, -1, self.players).sum(1).cpu()

    def _rows(self, coalitions: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
        """Pass by pass: images, and for every row which of them, label, gates, sign of the loss.

        Rows are ordered by input, clean before perturbed, then by coalition.
        """
        given, n, players = torch.as_tensor(coalitions), len(self.clean), self.players
        each = given.ndim == 3
        fits = given.ndim in (2, 3) and given.shape[-1] == players and (not each or len(given) == n)
        if not fits or not given.numel():
            raise ValueError(f"coalitions: expected gates (K, {players}) or ({n}, K, {players}), "
                             f"got shape {tuple(given.shape)}")
        if given.dtype != torch.bool and not ((given >= 0) & (given <= 1)).all():
            raise ValueError("coalitions: expected gates in [0, 1], got "
                             f"{given.min().item():g} to {given.max().item():g}")
        device, k = device_of(self.model), given.shape[-2]
        given, labels = given.to(device), self.labels.to(device)
        for rows in torch.arange(2 * n * k, device=device).split(self._size):
            image, column = rows // k, rows % k
            of = image // 2
            low, high = int(of[0]), int(of[-1]) + 1
            x = torch.stack([self.clean[low:high], self.perturbed[low:high]], 1).flatten(0, 1)
            yield (fast_layout(x, device), image - 2 * low, labels[of],
                   given[of, column] if each else given[column], 2 * (image % 2) - 1)


def players(model: nn.Module, x: torch.Tensor, layers: Sequence[str] | None = None,
            neuron: str = "channel") -> Activations:
    """The neurons that play, as the activations of images (N, C, H, W); never the softmax.

    >>> from dnnlib import models
    >>> players(models.build("lenet1"), torch.zeros(1, 1, 28, 28)).layers
    ('1', '2', '4', '5', '7')
    """
    names = layers
    if layers is None:
        names = [k for k, layer in layers_of(model, x).items() if layer.module is not None]
    if SOFTMAX in names and SOFTMAX not in dict(model.named_modules()):
        raise ValueError("layers: the softmax cannot be a player: with all of it off the loss is "
                         "infinite")
    return record(model, x, layers=names, neuron=neuron)
