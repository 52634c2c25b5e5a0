"""What a reader sees in the place of a code: one table for headings, labels and legends."""

from collections.abc import Iterable

import pandas as pd

WORDS = {
    # datasets, networks
    "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10": "CIFAR-10",
    "mnist_small": "MNIST (small)", "fashion_mnist_small": "Fashion-MNIST (small)",
    "cifar100": "CIFAR-100", "svhn": "SVHN", "imagenet": "ImageNet", "fsdd": "spoken digits",
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
    "mean_eff_decided": "mean Eff, decided",
}


def shown(code) -> str:
    """The words for a code; one that has none of its own loses its underscores.

    >>> shown("fashion_mnist"), shown("least_confidence"), shown(0.5)
    ('Fashion-MNIST', 'least confidence', 0.5)
    """
    if not isinstance(code, str):
        return code
    return WORDS.get(code) or ", ".join(
        WORDS.get(part) or part.replace("_", " ") for part in code.split(", "))


def listed(words: Iterable) -> str:
    """A list in a sentence, codes in words; 'none' for an empty one.

    >>> listed(["cifar10", "mnist", "svhn"])
    'CIFAR-10, MNIST and SVHN'
    """
    *first, last = [str(shown(word)) for word in words] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


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
