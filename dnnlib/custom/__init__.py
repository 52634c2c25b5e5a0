"""A person's own model and images: loaded, ranked for labelling, fuzzed for failing inputs."""

from dnnlib.custom.failures import whole_levels
from dnnlib.custom.loading import Classifier, classifier, load_model
from dnnlib.custom.options import LABELS, METHODS, Options
from dnnlib.custom.photos import Photos, read_photos
from dnnlib.custom.ranking import first, needs_reference, parse_methods, parse_top, rank
from dnnlib.custom.runs import Found, fuzz, pictures
from dnnlib.custom.sheet import sheet

__all__ = ["Classifier", "Found", "LABELS", "METHODS", "Options", "Photos", "classifier", "first",
           "fuzz", "load_model", "needs_reference", "parse_methods", "parse_top", "pictures",
           "rank", "read_photos", "sheet", "whole_levels"]
