"""A person's own model and images: loaded, ranked for labelling, fuzzed for failing inputs."""

from dnnlib.custom.class_names import published_names, read_names
from dnnlib.custom.classifier import Classifier
from dnnlib.custom.comparing import compare
from dnnlib.custom.contact_sheet import sheet
from dnnlib.custom.estimating import estimate
from dnnlib.custom.failures import whole_levels
from dnnlib.custom.faults import Faults, fault_rate
from dnnlib.custom.forecasting import forecast
from dnnlib.custom.fuzzing_run import Found, fuzz, pictures
from dnnlib.custom.gallery import failures_page, ranking_page
from dnnlib.custom.labelling import check_copies, copy_first, label_studio, leading, methods_of
from dnnlib.custom.loading import load_model
from dnnlib.custom.looks import classifier
from dnnlib.custom.methods import needs_reference, parse_methods
from dnnlib.custom.options import LABELS, METHODS, Options
from dnnlib.custom.outputs import read_outputs
from dnnlib.custom.own_layers import counted_layers
from dnnlib.custom.photos import Photos, photos_of, prepare, read_photos
from dnnlib.custom.preparation import Preparation
from dnnlib.custom.ranking import first, parse_top, prepared_job, rank, rank_outputs
from dnnlib.custom.stressing import Stressed, stress
from dnnlib.custom.tables import check_target, write

__all__ = ["Classifier", "Faults", "Found", "LABELS", "METHODS", "Options", "Photos", "Preparation",
           "Stressed", "check_copies", "check_target", "classifier", "compare", "copy_first",
           "counted_layers", "estimate", "failures_page", "fault_rate", "first", "forecast", "fuzz",
           "label_studio", "leading", "load_model", "methods_of", "needs_reference",
           "parse_methods", "parse_top", "photos_of", "pictures", "prepare", "prepared_job",
           "published_names", "rank", "rank_outputs", "ranking_page", "read_names", "read_outputs",
           "read_photos", "sheet", "stress", "whole_levels", "write"]
