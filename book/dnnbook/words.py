"""What a reader sees in the place of a code: one table for headings, labels and legends."""

import math
from collections.abc import Iterable

import pandas as pd

WORDS = {
    # datasets, networks
    "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10": "CIFAR-10",
    "mnist_small": "MNIST (small)", "fashion_mnist_small": "Fashion-MNIST (small)",
    "cifar100": "CIFAR-100", "svhn": "SVHN", "svhn_part": "a part of SVHN",
    "imagenet": "ImageNet", "fsdd": "spoken digits",
    "vctk": "VCTK", "net1": "Net-1", "net1_peacepact": "Net-1 (PEACEPACT)", "net2": "Net-2",
    "lenet1": "LeNet-1", "lenet4": "LeNet-4", "lenet5": "LeNet-5", "lenet1_nss": "LeNet-1 (NSS)",
    "lenet5_nss": "LeNet-5 (NSS)", "resnet20": "ResNet-20", "resnet34": "ResNet-34",
    "resnet34_s": "ResNet-34, quarter width", "resnet50": "ResNet-50", "vgg16": "VGG16",
    "mobilenet": "MobileNet", "deep_speaker": "Deep Speaker",
    "deep_speaker_s": "Deep Speaker, quarter width",
    # methods
    "deepsensor": "DeepSensor", "deepxplore": "DeepXplore", "dlfuzz": "DLFuzz",
    "deephunter": "DeepHunter", "gini": "DeepGini", "nss": "NSS", "dsa": "DSA",
    "dsa_coverage": "DSA by coverage", "ats": "ATS",
    "lsa": "LSA", "mdsa": "MDSA", "mlsa": "MLSA", "mmdsa": "MMDSA",
    "nc": "NC", "nbc": "NBC", "snac": "SNAC", "tknc": "TKNC", "bknc": "BKNC",
    "kmnc": "KMNC", "nac": "NAC", "npc": "NPC", "pd": "PD", "pv": "PV", "pe": "PE",
    "fgsm": "FGSM", "pgd": "PGD", "pgd_at": "PGD-AT", "jsma": "JSMA", "deepfool": "DeepFool",
    "sensitivity": "DeepSensor",  # as records of single runs call its swarm
    # papers
    "nsatp": "NSATP", "peacepact": "PEACEPACT", "deepsensor_sensitivity": "DeepSensor I",
    "deepsensor_excitable": "DeepSensor II", "synthesis": "all five",
    # columns
    "model": "network", "model_name": "network", "key": "fuzzer", "seeds_count": "inputs",
    "l2": "L2", "linf": "L∞", "fdr": "FDR", "apfd": "APFD", "auc": "AUC",
    "asr": "attack success rate",
    "asr_gain": "ASR gain", "asr_lead": "ASR lead", "asr_lead_pgd_at": "ASR lead over PGD-AT",
    "share_near": "share of errors near", "error_rate": "errors (% of examples)",
    "errors_per_1000_passes": "errors per 1,000 passes",
    "categories_per_seed": "wrong classes per input",
    "error_categories": "wrong classes, summed over the inputs", "test_errors": "test errors",
    "errors_over": "errors, times the rival's",
    "categories_over": "wrong classes, times the rival's",
    "wrong_layers": "wrong layers", "times_deepsensor": "seconds, times DeepSensor's",
    "over_gini": "over DeepGini", "over_nss": "over NSS",
    "times_passes": "passes, times DeepSensor's", "estimate_passes": "passes for an input",
    "f_measure_ranked": "F-measure, ranked", "f_measure_random": "F-measure, random",
    "inc": "Inc (%)", "slope": "Eff-D", "slope_unit_range": "Eff-D for a range of 1",
    "rank_correlation": "rank correlation with Eff", "strictly_more": "strictly more",
    "more_from_undecided": "at least as many from the undecided",
    "pairs_always": "pairs with at least as many each time",
    "pairs_always_strictly": "pairs with more each time",
    "rising_steps": "steps that rise", "rising_clearly": "steps that rise beyond chance",
    "rank_correlation_means": "rank correlation of the means",
    "beyond_line": "correlation beyond the line's", "loglinear": "line through ln Eff",
    "curve": "exponential through Eff", "line": "straight line through Eff",
    "cost_to_printed": "cost left, times the printed", "inc_bound": "Inc at most (%)",
    "share_fragile": "share that ever changes",
    "nsatp_momentum": "with momentum",
    "to_second_class": "given the second class", "mean_eff_undecided": "mean Eff, undecided",
    "mean_eff_decided": "mean Eff, decided", "mean_eff": "mean Eff", "mean_l2": "mean L2",
    "noise_passes": "broken by noise of as many passes",
    "met_in_first_tenth": "share met in the first tenth",
    "pd_lead": "PD's lead in steepness", "pd_steepest": "PD steepest",
    "train_accuracy": "accuracy on training images", "distance_needed": "L2 distance needed",
    "test_errors_all": "test errors in all iterations",
    "test_errors_all_iterations": "test errors in all iterations",
    "rows_kept": "rows of the record before", "most_over_least": "most errors, times the least",
    "last_error_rate": "errors (% of the last examples)",
    "errors_over_swarm": "errors, times the swarm's", "reached": "neurons reached (%)",
    "errors_over_all_iterations": "errors in all iterations, times the rival's",
    "held_out_error_rate": "errors on the inputs of the choice (%)",
    "over_constant": "over a constant fitness", "over_random": "over random",
    "less_random": "points above random selection",
    "sensitive_over_random": "sensitive neurons' change, times random ones'",
    "gain_over": "gain, times the rival's", "random_less_fixed": "gain above a fixed start's",
    "gain_alone": "gain of the examples alone",
    "random_less_fixed_alone": "gain of the examples alone, above a fixed start's",
    "distance_over_deephunter": "distance from benign images, times DeepHunter's",
    "own_neighbour": "nearest is of the inputs' class (%)", "told_apart": "share told apart",
    "asr_gain_over": "ASR gain, times the rival's", "accuracy_gain": "gain in accuracy",
    "accuracy_unseen": "accuracy on all unseen images",
    "accuracy_unseen_gain": "gain in accuracy on all unseen images",
    "over_clean": "errors, times the clean network's",
    "over_well_trained": "errors, times the well trained network's",
    "over_sensitive": "over sensitive neurons",
    "over_sensitive_same_passes": "over sensitive neurons, as many passes",
    "over_excitable_scaled": "over scaled excitable neurons",
    "over_flip": "over the flip", "over_loss": "over the rise of the loss",
    "random_over_fixed": "random start, times the seed's errors",
    "random_over_signed": "random start, times the signed start's errors",
    "error_over_noise": "errors' neurons, times those under noise",
    "error_over_right": "errors' neurons, times those of right mutants",
    "stamped_given_class": "stamped images given the class (%)",
    "criteria_led": "share of criteria led",
    "criteria_led_together": "share of criteria led, with the inputs",
    "sensitive_neurons": "sensitive neurons", "excitable_neurons": "excitable neurons",
    "change_of_loss": "change of loss (nats)", "largest_psi": "largest Shapley value (nats)",
    "last_share": "excitable neurons at the end (%)",
    "same_as_constant": "same image as without a fitness (%)",
    "passes_per_error": "passes for an error", "estimate_seconds": "seconds for an input",
    "clever": "CLEVER (L2)", "clever_first": "CLEVER of the first images (L2)",
    "above_way": "scores above DeepFool's way (%)", "fitted": "classes with a fit (%)",
    "same_order": "rank correlation with our setting", "clever_gain": "gain in CLEVER (L2)",
    "clever_lead": "lead in CLEVER (L2)",
    "clever_excess": "gain in CLEVER above three times the rivals' (L2)",
    "deepfool_l2": "DeepFool's way (L2)", "above_deepfool": "scores above DeepFool's way",
    "between_attacks": "shared between attacks",
    "between_attacks_beyond": "shared between attacks, beyond other inputs",
    "overlap_lead": "lead in shared neurons",
    "auc_within": "AUC within one mutation", "auc_overall": "AUC over all candidates",
    "confident_fdr": "FDR among confident candidates (%)",
    "wrong_over": "errors of any class, times the rival's",
    "fault_detection_rate": "fault detection rate", "ftcr": "kinds of fault found (%)",
    "also_broken": "also broken (%)", "wrong_classes": "wrong classes for an input",
    "worse_over_better": "worse stage, times the better's",
    "swarm_gradients": "gradients for a value, in the swarm", "least_step": "least step",
    "least_step_all": "least step, all iterations",
    "last_layer_lead": "lead of the last layer (points)",
    "all_over_one_percent": "all neurons over 1 % (points)",
    "times_nss": "seconds, times NSS's", "with_gini": "correlation with DeepGini",
    "with_loss": "correlation with the rise of the loss",
    "count_with_loss": "correlation of the count with the loss",
    # readings and controls
    "excitable_scaled": "excitable, scaled", "excitable_8": "excitable, 8 points",
    "sensitive_same_passes": "sensitive, as many passes",
    "remutated": "fresh mutation", "original": "known original", "l1": "L1",
    "squared_normalised": "squared, normalised", "nss_second": "second stage of NSS",
    "least_confidence": "least confidence", "well_trained": "well trained",
    "invert": "inverted", "label_from": "label from", "file_l2": "L2 of the file",
}


def shown(code) -> str:
    """The words for a code; one that has none of its own loses its underscores.

    A code that begins with another, as a column about one method does, keeps that one's words.

    >>> shown("fashion_mnist"), shown("least_confidence"), shown("gini_rank"), shown(0.5)
    ('Fashion-MNIST', 'least confidence', 'DeepGini rank', 0.5)
    """
    if not isinstance(code, str):
        return code
    return WORDS.get(code) or ", ".join(map(_part, code.split(", ")))


def _part(code: str) -> str:
    first, *rest = code.split("_")
    return WORDS.get(code) or " ".join([WORDS.get(first) or first, *rest])


def listed(words: Iterable) -> str:
    """A list in a sentence, codes in words; 'none' for an empty one.

    >>> listed(["cifar10", "mnist", "svhn"])
    'CIFAR-10, MNIST and SVHN'
    """
    *first, last = [str(shown(word)) for word in words] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def span(values: Iterable[float], digits: int = 0) -> str:
    """The least and the greatest of some values, or one number where both are shown alike.

    >>> span([0.4, 7.2, 3]), span([81.9, 82.1])
    ('0 to 7', '82')
    """
    numbers = pd.Series(values, dtype=float)
    ends = (f"{round(value, digits) + 0.0:,.{digits}f}" for value in (numbers.min(), numbers.max()))
    return " to ".join(dict.fromkeys(ends))


def rounded_down(value: float, digits: int = 0) -> str:
    """A number for 'at least': never above ``value``, but for the rounding of its arithmetic.

    >>> rounded_down(98.67), rounded_down(0.29, 2), rounded_down(-0.51, 1)
    ('98', '0.29', '-0.6')
    """
    return f"{math.floor(float(value) * 10 ** digits + 1e-9) / 10 ** digits:.{digits}f}"


def rounded_up(value: float, digits: int = 0) -> str:
    """A number for 'at most': never below ``value``, but for the rounding of its arithmetic.

    >>> rounded_up(1.33), rounded_up(0.445, 2), rounded_up(3.0)
    ('2', '0.45', '3')
    """
    return f"{math.ceil(float(value) * 10 ** digits - 1e-9) / 10 ** digits:.{digits}f}"


def out_of(count: int, total: int) -> str:
    """How many of some things, before their plural.

    >>> out_of(0, 6), out_of(2, 6), out_of(6, 6), out_of(2, 2)
    ('none of the 6', '2 of the 6', 'all 6', 'both')
    """
    if count == total:
        return "both" if total == 2 else f"all {total}"
    none = "neither" if total == 2 else "none"
    return f"{count or none} of the {total}"


def networks(cells: Iterable[tuple]) -> str:
    """A list of cells that begin with a dataset and a network.

    >>> networks([("cifar10", "resnet20"), ("mnist", "net1")])
    'ResNet-20 on CIFAR-10 and Net-1 on MNIST'
    """
    return listed(f"{shown(model)} on {shown(dataset)}" for dataset, model, *_ in cells)


def headed(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with words for the codes in its index, its headings and their names.

    >>> headed(pd.DataFrame({"error_rate": [1.0]}, index=["lenet5"])).index.tolist()
    ['LeNet-5']
    """
    table = table.rename(index=_label, columns=_label)
    return table.rename_axis(index=lambda name: shown(name) if name else name,
                             columns=lambda name: shown(name) if name else name)


def _label(value):
    """Words for a code, or for what prints as one, such as a fuzzer's key; numbers as they are."""
    if isinstance(value, float) and value.is_integer():  # a column with gaps holds no integers
        return int(value)
    return value if isinstance(value, int | float) else shown(str(value))
