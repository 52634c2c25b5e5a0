"""In which settings a record counts; others are variants: kept, and shown where asked for."""

import tomllib
from functools import lru_cache
from pathlib import Path

from dnnbook import published
from dnnlib import checks


@lru_cache
def _settings() -> dict[tuple[str, str], dict]:
    path = Path(__file__).with_name("counted.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {(experiment, network): {k: v for k, v in entry.items() if k != "networks"}
            for experiment, entries in table.items() for entry in entries
            for network in entry["networks"]}


def variant(experiment: str, parameters: dict) -> frozenset[str]:
    """The settings in which a record with these parameters is not the one that counts.

    None for a dataset or a network without settings that count, such as a reader's own. A part of
    a dataset (:data:`published.PARTS`) is never the one that counts.

    >>> sorted(variant("nsatp/rq1", {"dataset": "mnist", "model": "net2", "trials": 5}))
    ['trials']
    >>> sorted(variant("nss/diversity", {"dataset": "svhn_part", "model": "lenet5_nss"}))
    ['dataset']
    """
    dataset = parameters.get("dataset")
    fixed = _settings().get((experiment, f"{dataset} {parameters.get('model')}"), {})
    part = frozenset({"dataset"} if dataset in published.PARTS else ())
    return part | {name for name, value in fixed.items() if name in parameters and not any(
        checks.alike(parameters[name], each)
        for each in (value if isinstance(value, list) else [value]))}
