"""Many selectors on the same candidates: each order computed once, and the rows that it gives."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

from dnnbook import reproducible
from dnnlib import files
from dnnlib.inference import device_of
from dnnlib.models.fingerprints import described
from dnnlib.progress import progress
from dnnlib.selection import selector
from dnnlib.selection.nss import DIFFERENCES, NSS, PAIRS
from dnnlib.selection.protocol import Selector, candidates


@dataclass(frozen=True)
class SelectorKey:
    """Which selector, in which of its readings: names an order, its rows and its lines.

    ``pair``, ``difference`` and ``share`` (of the neurons, in percent) are NSS's; ``scale`` is that
    of excitable neurons.

    >>> SelectorKey("nss", "original", "l1", 10).columns
    {'method': 'nss', 'pair': 'original', 'difference': 'l1', 'share': 10}
    >>> str(SelectorKey("nss", "original", "l1", 10)), str(SelectorKey("gini"))
    ('nss, original, l1', 'gini')
    """

    method: str
    pair: str | None = None
    difference: str | None = None
    share: int | None = None
    scale: str | None = None

    @property
    def reading(self) -> dict[str, str | int]:
        """As columns of a row that is about one selector alone: those of its reading."""
        parts = {"pair": self.pair, "difference": self.difference, "share": self.share,
                 "scale": self.scale}
        return {name: value for name, value in parts.items() if value is not None}

    @property
    def columns(self) -> dict[str, str | int]:
        """As columns of a row: the method, and its reading."""
        return {"method": self.method} | self.reading

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.method, self.pair, self.difference, self.scale)))


def keys(table: pd.DataFrame) -> pd.Series:
    """The keys of rows that have a method, of all rows with their :attr:`SelectorKey.columns`.

    >>> made = [SelectorKey("nss", "original"), SelectorKey("gini")]
    >>> keys(pd.DataFrame([key.columns for key in made])).map(str).tolist()
    ['nss, original', 'gini']
    """
    parts = table.reindex(columns=["method", "pair", "difference", "share", "scale"]).astype(object)
    parts = parts.where(parts.notna(), None)
    return pd.Series([method and SelectorKey(method, pair, difference, share and int(share), scale)
                      for method, pair, difference, share, scale in parts.itertuples(index=False)],
                     index=table.index, dtype=object)


def nss_readings(originals: torch.Tensor, *, seed: int,
                 differences: Sequence[str] = DIFFERENCES) -> dict[SelectorKey, NSS]:
    """NSS in every pair and difference, by key.

    ``originals``: the clean images (N, C, H, W) behind the candidates; ``seed``: of its mutations.

    >>> print(*nss_readings(torch.zeros(2, 1, 8, 8), seed=0, differences=["l1"]), sep="; ")
    nss, remutated, l1; nss, original, l1
    """
    return {SelectorKey("nss", pair, difference, share=10): NSS(
                pair=pair, difference=difference, seed=seed,
                originals=originals if pair == "original" else None)
            for pair in PAIRS for difference in differences}


def tidy(values: pd.DataFrame, quantity: str, **where) -> list[dict]:
    """A line of ``values`` for each key, a column for each rate (%): as rows of a record."""
    return [where | key.columns | {"rate": rate, "quantity": quantity, "value": float(value)}
            for key, line in values.iterrows() for rate, value in line.items()]


def untidy(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """A line for each key, a column for each rate (%): what :func:`tidy` made rows of.

    >>> fdr = pd.DataFrame({5: [60.0], 10: [50.0]}, index=[SelectorKey("nss", share=10)])
    >>> untidy(pd.DataFrame(tidy(fdr, "fdr")), "fdr").equals(fdr)
    True
    """
    rows = rows[rows["quantity"] == quantity]
    table: dict[SelectorKey, dict] = {}
    for key, rate, value in zip(keys(rows), rows["rate"], rows["value"]):
        table.setdefault(key, {})[int(rate)] = value
    return pd.DataFrame.from_dict(table, orient="index")


def leads(values: pd.DataFrame, over: Mapping[str, Sequence[SelectorKey]]) -> list[dict]:
    """How far each reading of NSS is above others, as rows.

    ``values``: by key and rate, as of :func:`tidy`. ``over``: by the name of a quantity, those
    whose best counts.

    >>> fdr = pd.DataFrame({5: [60.0, 50.0, 20.0]}, index=[
    ...     SelectorKey("nss"), SelectorKey("gini"), SelectorKey("random")])
    >>> leads(fdr, {"lead": [SelectorKey("gini"), SelectorKey("random")]})
    [{'rate': 5, 'quantity': 'lead', 'value': 10.0}]
    """
    return [key.reading | {"rate": rate, "quantity": quantity, "value": float(lead)}
            for key, line in values.iterrows() if key.method == "nss"
            for quantity, others in over.items()
            for rate, lead in (line - values.loc[list(others)].max()).items()]


def orders(model: nn.Module, x: torch.Tensor,
           selectors: Mapping[Hashable, Selector]) -> dict[Hashable, torch.Tensor]:
    """The order of the candidates (N, C, H, W) by each selector, under its key or name.

    The key in the cache covers the weights, the images and every option, so that chapters on
    the same candidates share the work.

    >>> from dnnlib import models, selection
    >>> found = orders(models.build("lenet1"), torch.rand(4, 1, 28, 28),
    ...                {"gini": selection.selector("gini")})
    >>> sorted(found["gini"].tolist())
    [0, 1, 2, 3]
    """
    key = {"model": described(model), "x": described(candidates(x)),
           **reproducible.key("orders", device_of(model))}
    bar = progress(selectors.items(), desc="selectors", leave=False)
    return {name: files.cached("orders", key | {"selector": described(selector)},
                               lambda: {"order": selector.order(model, x)})["order"]
            for name, selector in bar}


def table_iv(reference: torch.Tensor, labels: torch.Tensor, *,
             seed: int = 0) -> dict[str, Selector]:
    """The seven selectors that NSS is compared with, in the options of its Table IV.

    ``reference``: training images (M, C, H, W), M >= 1, of the classes ``labels`` (M,). NPC, whose
    relevance is slow in deep networks, looks at those of the first 2,000 that the network gets
    right. ``seed``: of all that is random.

    >>> list(table_iv(torch.rand(3, 1, 8, 8), torch.tensor([0, 1, 1])))
    ['random', 'nac', 'kmnc', 'npc', 'dsa', 'gini', 'ats']
    """
    options = {"random": {"seed": seed}, "nac": {"seed": seed},
               "kmnc": {"reference": reference, "seed": seed},
               "npc": {"reference": reference[:2000], "reference_labels": labels[:2000],
                       "seed": seed},
               "dsa": {"reference": reference}, "gini": {}, "ats": {}}
    return {name: selector(name, **given) for name, given in options.items()}
