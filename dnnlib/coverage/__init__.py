"""Coverage criteria of neurons, and orders of inputs by it.

Activations are matrices (N, neurons), one row an input, as in :mod:`dnnlib.neurons.activations`. A
criterion says which *items* each input covers, a neuron or a section of its range, as one
integer per input and neuron; a table of inputs x neurons x sections is never made.
"""

from dnnlib.coverage.covered import Covered, cam, coverage, ctm
from dnnlib.coverage.criteria import EDGES, bknc, kmnc, nac, nbc, snac, tknc
from dnnlib.coverage.ranges import Boundaries, boundaries

__all__ = ["EDGES", "Boundaries", "Covered", "bknc", "boundaries", "cam", "coverage", "ctm",
           "kmnc", "nac", "nbc", "snac", "tknc"]
