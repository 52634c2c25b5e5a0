"""Selectors on images that come in batches: what each keeps of an image, and its order in the end.

All readers of a call share one pass over a batch. What is kept may lie in a mapped file, so that
memory does not grow with the number of images.
"""

from typing import Any

import torch
from torch import nn

from dnnlib import coverage as cov
from dnnlib.measures.uncertainty import indecision
from dnnlib.neurons.activations import Want, record
from dnnlib.neurons.layers import layers_of
from dnnlib.selection.ats import ATS
from dnnlib.selection.batches import Reader
from dnnlib.selection.covering import KMNC, NAC
from dnnlib.selection.densities import Density
from dnnlib.selection.excitable import Excitable
from dnnlib.selection.nss import NSS, last_map, sensitivities, strongest, summed
from dnnlib.selection.paths import NPC, abstract_paths, snpc
from dnnlib.selection.protocol import Selector, by_score
from dnnlib.selection.surprise import DSA, dsa, last_hidden
from dnnlib.selection.uncertain import Random, Uncertain

ROWS = 1024  # of what was kept, worked on at once


class OfSoftmax(Reader):
    """PD, PV, PE, Gini, margin, least confidence: a score each."""

    def read(self, batch, known):
        return indecision(batch.p, self.chosen.by)


class OfNothing(Reader):
    """Random: only their number counts."""

    shared = False

    def read(self, batch, known):
        return torch.zeros(len(batch.x), dtype=torch.int8)

    def finish(self, rows, predicted, known, folder):
        generator = torch.Generator().manual_seed(self.chosen.seed)
        return None, torch.randperm(len(rows), generator=generator)


class OfVectors(Reader):
    """ATS: softmax vectors."""

    def read(self, batch, known):
        return batch.p

    def finish(self, rows, predicted, known, folder):
        return None, self.chosen.arrange(rows)


class OfBins(Reader):
    """NAC: an integer for each neuron."""

    chosen: Any  # a selector of :mod:`covering`, by its reader

    def __init__(self, chosen, model, x):
        super().__init__(chosen, model, x)
        scale = getattr(chosen, "activation", "") == "scaled"
        self.wants = (Want(tuple(layers_of(model, x, chosen.layers)), chosen.neuron, scale),)

    def covered(self, values: torch.Tensor, known) -> cov.Covered:
        return self.chosen.bins(values)

    def read(self, batch, known):
        return self.covered(batch.of(self.wants[0]), known).bins

    def sections(self, known) -> int:
        return 1

    def finish(self, rows, predicted, known, folder):
        return None, self.chosen.arrange(cov.Covered(rows, self.sections(known)), folder)


class OfSections(OfBins):
    """KMNC: the same, in sections of what training images do."""

    keeps = ("low", "high")

    def learn(self, batch):
        seen = cov.boundaries(batch.of(self.wants[0]))
        return {"low": seen.low[None], "high": seen.high[None]}

    def learned(self, rows):
        return {"low": rows["low"].amin(0), "high": rows["high"].amax(0)}

    def covered(self, values, known):
        flat = torch.zeros_like(known["low"])
        return self.chosen.bins(values, cov.Boundaries(1, known["low"], known["high"], flat, flat))

    def sections(self, known):
        return self.covered(known["low"][None].float(), known).sections


class OfPaths(OfBins):
    """NPC: a bucket for each class's abstract paths; a pass of its own, and back."""

    keeps, shared, passes = ("paths", "labels", "classes"), False, 3

    def __init__(self, chosen, model, x):
        Reader.__init__(self, chosen, model, x)

    def learn(self, batch):
        paths, labels, classes = self.chosen.run(batch.model, batch.x)
        return {"paths": paths, "labels": labels, "classes": torch.tensor([classes])}

    def learned(self, rows):
        return {"abstract": abstract_paths(
            rows["paths"], rows["labels"], rows["classes"][0].item(), clusters=self.chosen.clusters,
            merge=self.chosen.merge, seed=self.chosen.seed)}

    def read(self, batch, known):
        paths, labels, _ = self.chosen.run(batch.model, batch.x)
        bins = snpc(paths, labels, known["abstract"], self.chosen.buckets).bins
        return bins.to(torch.int8) if self.chosen.buckets < 128 else bins

    def sections(self, known):
        return self.chosen.buckets


class OfTraces(Reader):
    """DSA: the activations of one layer, to be compared with those of training images."""

    keeps = ("traces", "classes")

    def __init__(self, chosen, model, x):
        super().__init__(chosen, model, x)
        layer = last_hidden(model, x) if chosen.layer is None else chosen.layer
        self.wants = (Want((layer,), chosen.neuron),)

    def learn(self, batch):
        return {"traces": batch.of(self.wants[0]), "classes": batch.classes}

    def learned(self, rows):
        dsa(rows["traces"][:1], rows["classes"][:1], rows["traces"], rows["classes"])  # or why not
        return rows

    def read(self, batch, known):
        return batch.of(self.wants[0])

    def finish(self, rows, predicted, known, folder):
        score = torch.cat([dsa(part, given, known["traces"], known["classes"]) for part, given
                           in zip(rows.split(4 * ROWS), predicted.split(4 * ROWS))])
        return score, self.chosen.arrange(score)


class OfDensities(OfTraces):
    """LSA, MDSA, MLSA, MMDSA: the same, and what is fitted to the training images."""

    def learned(self, rows):
        return rows

    def finish(self, rows, predicted, known, folder):
        score_of = self.chosen.fitted(known["traces"], known["classes"])
        score = torch.cat([score_of(part, given) for part, given
                           in zip(rows.split(4 * ROWS), predicted.split(4 * ROWS))])
        return score, by_score(score)


class OfMutations(Reader):
    """NSS: how far each neuron moves; only the end tells which ones count."""

    passes = 1

    def __init__(self, chosen, model, x):
        super().__init__(chosen, model, x)
        layer = last_map(model, x) if chosen.layer is None else chosen.layer
        self.wants = (Want((layer,), chosen.neuron),)

    def read(self, batch, known):
        after = record(batch.model, self.chosen.mutated(batch.x, batch.places),
                       layers=self.wants[0].layers, neuron=self.chosen.neuron,
                       batch_size=len(batch.x))
        return sensitivities(batch.of(self.wants[0]), after.values,
                             difference=self.chosen.difference)

    def finish(self, rows, predicted, known, folder):
        total = sum(part.sum(0, dtype=torch.float64) for part in rows.split(ROWS))
        most = strongest(total, self.chosen.share)
        score = torch.cat([summed(part[:, most], self.chosen.difference)
                           for part in rows.split(ROWS)])
        return score, by_score(score)


class OfGames(Reader):
    """Excitable neurons: their number."""

    def __init__(self, chosen, model, x):
        super().__init__(chosen, model, x)
        self.passes = 4 + 6 * chosen.points

    def read(self, batch, known):
        return self.chosen.count(batch.model, batch.x, batch.p.argmax(1), batch.places)


READERS: dict[type, type[Reader]] = {
    Uncertain: OfSoftmax, Random: OfNothing, ATS: OfVectors, NAC: OfBins, KMNC: OfSections,
    NPC: OfPaths, DSA: OfTraces, Density: OfDensities, NSS: OfMutations, Excitable: OfGames}


def reader(chosen: Selector, model: nn.Module, x: torch.Tensor) -> Reader:
    """How a selector reads images in batches.

    ``x``: two images, which show the model's layers. Options of the selector count, but for its
    ``reference``: :meth:`Reader.learn` is shown the training images. ``TypeError`` for a selector
    that cannot.

    >>> from dnnlib import models, selection
    >>> from dnnlib.selection.batches import passed
    >>> model, x = models.build("lenet1"), torch.rand(2, 1, 28, 28)
    >>> found = reader(selection.selector("gini"), model, x)
    >>> found.read(passed(model, x, torch.arange(2), [found]), {}).shape
    torch.Size([2])
    """
    for kind, made in READERS.items():
        if isinstance(chosen, kind):
            return made(chosen, model, x)
    raise TypeError(f"{type(chosen).__name__}: does not read images in batches")
