"""Failing inputs for a person's own model, as files: what ``dnnlib fuzz`` does.

Seeds are fuzzed in blocks. What a block depends on is fixed before the first: its seeds, and random
numbers drawn from the seed number and the block's. So a run that was killed goes on with the blocks
that are left, and ends with the same files.
"""

from dnnlib.cases.examples import whole_levels
from dnnlib.cases.options import LABELS, METHODS, Options
from dnnlib.cases.runs import Found, fuzz, pictures

__all__ = ["Found", "LABELS", "METHODS", "Options", "fuzz", "pictures", "whole_levels"]
