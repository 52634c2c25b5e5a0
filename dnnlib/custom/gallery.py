"""The gallery: a ranking, or the failing inputs of a run, as one HTML file that needs no server."""

import base64
import io
import json
import wave
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image

from dnnlib.custom.fuzzing_run import Found
from dnnlib.custom.labelling import methods_of
from dnnlib.custom.photos import Photos
from dnnlib.data.pictures import READERS
from dnnlib.progress import progress

IMAGES, FAILURES, WRONG = 10_000, 2_000, 500  # that a page shows at most
SIDE, LARGE, SMALL = 96, 160, 64  # pixels: of a thumbnail, beside its change, kept as it is
QUALITY = 50  # of WebP: about 2 kB for a photo of 96 pixels
Sound = Callable[[torch.Tensor], tuple[np.ndarray, int]]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title><style>{style}</style></head>
<body><noscript>This page sorts and filters by a script; allow it to run.</noscript>
<script type="application/json" id="data">{data}</script>
<script>{script}</script></body></html>
"""


def ranking_page(table: pd.DataFrame, photos: Photos, *, title: str = "Ranking") -> bytes:
    """The images of a ranking, to be sorted by each method and filtered by predicted class.

    ``table``: of :func:`rank`, of ``photos``. A slider says how many are chosen, beginning with
    those that are selected; their paths can be saved. At most 10,000 images are shown, those
    that stand first by one of the methods; their thumbnails are part of the page, and a look at
    one loads its file, if it is still there.
    """
    methods = methods_of(table)
    ranked = table.dropna(subset=[f"{methods[0]}_rank"])
    best = ranked[[f"{name}_rank" for name in methods]].min(axis=1)
    rows = ranked.loc[best.sort_values(kind="stable").index[:IMAGES]]
    places = photos.numbers(rows["path"])
    with ThreadPool(READERS) as pool:
        thumbs = list(progress(pool.imap(lambda i: _readable(photos, i), places, chunksize=16),
                               total=len(places), desc="gallery", unit="image"))
    files = rows.get("absolute_path", pd.Series(index=rows.index, dtype=object))
    return _page("ranking", title, {
        "title": title, "total": len(ranked), "methods": methods,
        "chosen": int(ranked[f"{methods[0]}_selected"].sum()), "thumbs": thumbs,
        "paths": list(rows["path"]), "files": _nullable(files),
        "links": [None if pd.isna(path) else Path(path).as_uri() for path in files],
        "predicted": _nullable(rows.get("predicted_name", rows["predicted"])),
        "confidence": _rounded(rows["confidence"]), "margin": _rounded(rows["margin"]),
        "duplicate": _nullable(rows["duplicate_of"]) if "duplicate_of" in rows else [],
        "ranks": {name: [int(rank) for rank in rows[f"{name}_rank"]] for name in methods},
        "scores": {name: _rounded(rows[f"{name}_score"]) for name in methods}})


def failures_page(found: Found, photos: Photos, folder: str | Path, *, title: str = "Failures",
                  sound: Sound | None = None) -> bytes:
    """The failing inputs of :func:`fuzz` beside the inputs that they were made from.

    ``photos``, ``folder``: of the run. Of each: the input, the example, what changed, times ten,
    and how far it is. At most 2,000 are shown, the nearest. Images that the model got wrong
    before any change stand apart, the first 500. ``sound``: what an image (C, H, W)
    in [0, 1] sounds like, samples (n,) in [-1, 1] and their rate; then the page can play them.
    """
    rows = found.failures.sort_values("l2", kind="stable")[:FAILURES]
    place = {path: i for i, path in enumerate(photos.paths)}
    folder, groups = Path(folder).expanduser(), []
    for path, part in progress(rows.groupby("input", sort=False), desc="gallery", unit="input"):
        before = photos.those([place[path]]).get(place[path])
        if before is None:  # it was there when it was fuzzed
            continue
        made = []
        for row in part.to_dict("records"):
            with Image.open(folder / row["file"]) as file:
                after = pil_to_tensor(file) / 255
            made.append({
                "image": thumbnail(after, LARGE), "file": row["file"],
                "change": thumbnail((0.5 + 10 * (after - before)).clamp(0, 1), LARGE),
                "sound": None if sound is None else _wav(*sound(after)),
                "predicted": str(row["predicted"]), "l2": round(row["l2"], 4),
                "linf": round(row["linf"], 4), "iteration": int(row["iteration"])})
        groups.append({"path": path, "label": str(part["label"].iloc[0]), "failures": made,
                       "image": thumbnail(before, LARGE),
                       "sound": None if sound is None else _wav(*sound(before))})
    outcomes = found.inputs["outcome"].value_counts()
    wrong = [row | {"image": thumbnail(image)} for row in found.misclassified[:WRONG].astype(
        str).to_dict("records") if (image := photos.those([place[row["path"]]]).get(
            place[row["path"]])) is not None]
    return _page("failures", title, {
        "title": title, "total": len(found.failures), "groups": groups, "wrong": wrong,
        "outcomes": {name: int(n) for name, n in outcomes.items()}})


def thumbnail(image: torch.Tensor, side: int = SIDE) -> str:
    """An image (C, H, W), uint8 or in [0, 1], as WebP in base64: at most ``side`` pixels long.

    One of 64 pixels or fewer stays as it is.
    """
    picture = to_pil_image(image)
    lossless = max(picture.size) <= SMALL
    if not lossless:
        picture.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2)
    picture.save(content := io.BytesIO(), "WEBP", quality=QUALITY, lossless=lossless)
    return base64.b64encode(content.getvalue()).decode()


def _readable(photos: Photos, place: int) -> str | None:
    try:
        return thumbnail(photos[place])
    except ValueError:  # it was there when it was ranked
        return None


def _wav(samples: np.ndarray, rate: int) -> str:
    with wave.open(content := io.BytesIO(), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return base64.b64encode(content.getvalue()).decode()


def _nullable(values: Iterable) -> list:
    """With None for what is missing, and numbers as JSON has them."""
    return [None if pd.isna(value) else getattr(value, "item", lambda: value)() for value in values]


def _rounded(values: Sequence) -> list:
    return [None if pd.isna(value) or not np.isfinite(value) else float(f"{value:.4g}")
            for value in values]


def _page(name: str, title: str, data: dict) -> bytes:
    """Names are only ever shown as text: none can become a part of the page."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return PAGE.format(title=escape(title), data=text, style=_asset("gallery.css"),
                       script=f"{_asset('gallery.js')}\n{_asset(name + '.js')}").encode()


def _asset(name: str) -> str:
    return (resources.files("dnnlib.custom") / "assets" / name).read_text("utf-8")
