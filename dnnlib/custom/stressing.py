"""Ordinary changes by strength: where a person's own model first fails, and which class falls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
from torch import nn

from dnnlib import checks, files
from dnnlib.custom.answering import spared
from dnnlib.custom.changes import Ladder, eight_bits, parse_changes
from dnnlib.custom.class_names import classes_named, labels_of
from dnnlib.custom.identity import Identity, identity_of
from dnnlib.custom.looks import first_look
from dnnlib.custom.options import LABELS
from dnnlib.custom.photos import Images, Photos, Read, batches, photos_of
from dnnlib.custom.worth import interval
from dnnlib.inference import leaves_modes, predict
from dnnlib.progress import progress

FEWEST = 10  # images of a class that may be said to fall first
LETTERS = 16  # of a class above an image
LOST = (10, 50)  # % of the images, at which strengths are told


@dataclass(frozen=True, eq=False)
class Stressed:
    """What :func:`stress` measured. Shares are in %, intervals of 95 % are Wilson's.

    ``strengths``: a row for each strength: 'change', 'direction', 'strength', 'unit'; 'right', how
    many of the 'n' images are still right; 'share', 'low', 'high'. ``changes``: a row for each
    change and direction: the weakest strengths at which an image is lost ('first') and 'lost' of
    them there, and at which 10 % and 50 % are ('lost_10', 'lost_50'), empty if none; and the class
    that falls first: 'class', its 'class_n', the strength 'class_50' at which half of it is lost,
    'class_lost' with 'class_low' and 'class_high' there, and 'others_lost' of all other classes.
    ``classes``: a row for each strength and class: 'n', 'lost', 'share' lost, 'low', 'high'.
    ``images``: a row for each image: 'outcome', 'label', 'predicted', in 'wrong' how many strengths
    it is wrong at, and for each change and direction the first of them, empty if there is none.

    Outcomes: 'tested', 'misclassified' to begin with, 'left out' by the limit, 'unreadable', or the
    model fails on it. ``example``: the name of an image whose number of wrong answers is
    the median; ``shown``: it at all strengths (n, C, H, W), with titles, by change.
    ``unread``: the reasons for images that were not tested, by name. ``sentences``: what it
    comes to; ``identity``: of what it was.
    """

    strengths: pd.DataFrame
    changes: pd.DataFrame
    classes: pd.DataFrame
    images: pd.DataFrame
    sentences: tuple[str, ...]
    example: str
    shown: Mapping[str, tuple[torch.Tensor, list[str]]]
    unread: Mapping[str, str] = field(default_factory=dict)
    identity: Identity | None = None


@leaves_modes
def stress(model: nn.Module, images: Images, by: str | Sequence[str] = "all", *,
           labels: str = "prediction", limit: int | None = None, seed: int = 0,
           probabilities: bool | None = None, class_names: Sequence[str] | None = None,
           batch_size: int = 64, workers: int | None = None) -> Stressed:
    """How many images stay right under ordinary changes, strength by strength.

    Images are changed as the model takes them, scaled and cropped, and rounded to 8 bits, before as
    after a change. Those that are wrong before any change are left out.

    - ``images``: what :func:`photos_of` takes, of 1 or 3 channels.
    - ``by``: names of :data:`changes.CHANGES`, see :func:`parse_changes`.
    - ``labels``: what is right: 'prediction', the model's own for the unchanged image; or
      'folders', with the names of the classes, or one for each class in order of name.
    - ``limit``: images to look at, evenly spread over all; default all.
    - ``seed``: of the noise.
    - ``probabilities``: see :func:`classifier`; ``class_names``: see :func:`classes_named`.
    - ``batch_size``: images in one pass.
    - ``workers``: processes that read images ahead; default one for each core, at most 8.

    A class falls first if it loses half of its images at a weaker strength than the others, or
    loses the most of them at the same; only classes with 10 images or more are looked at, and if
    there are not two of these, none is named.

    One batch is in memory at a time; what stays is a number for each image and strength. An image
    that cannot be read, or that the model fails on, changed or not, is in ``unread``, and in no
    share. Raises ``ValueError`` for what cannot be asked for, before the first pass, and later if
    no image is right.

    >>> bright = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))  # class 1 above a mean of 0.5
    >>> bright[1].weight.data = torch.tensor([[-1.0], [1.0]]).expand(2, 16) / 16
    >>> bright[1].bias.data = torch.tensor([0.5, -0.5])
    >>> images = torch.linspace(0.4, 0.7, 31).view(-1, 1, 1, 1).expand(-1, 1, 4, 4)
    >>> found = stress(bright, images, "brightness")
    >>> found.strengths.loc[:1, ["direction", "strength", "n", "right"]].values.tolist()
    [['darker', 0.9, 31, 25], ['darker', 0.75, 31, 14]]
    """
    ladders = parse_changes(by)
    checks.known(labels, LABELS, "labels")
    checks.seed(seed)
    checks.positive(batch_size, "batch_size")
    if limit is not None:
        checks.positive(limit, "limit")
    photos = photos_of(images, model)
    if photos.shape[0] not in (1, 3):
        raise ValueError("images: expected 1 channel or 3, which torchvision's changes take, got "
                         f"{photos.shape[0]}; say how many the model takes (--channels)")
    look = first_look(model, photos, probabilities=probabilities)
    fit = look.model
    names = classes_named(photos, predict(fit, look.images[:2]).shape[1], labels, class_names)
    count = min(limit or len(photos), len(photos))
    places = torch.arange(count) * len(photos) // count
    right = None if labels == "prediction" else labels_of(photos, names)[places]
    answers, unread = _answers(fit, photos, places, right, ladders, seed, batch_size, workers)
    right = answers[:, 0] if right is None else right
    whole = torch.tensor([int(place) not in unread for place in places])
    base = whole & (answers[:, 0] == right)
    if not whole.any():
        place, why = next(iter(unread.items()))
        raise ValueError(f"images: none can be tested; the first: {photos.paths[place]} {why}")
    if not base.any():
        raise ValueError(f"labels: the model gets none of {int(whole.sum())} images right before "
                         f"any change; are the folders' names in the order of its classes: "
                         f"{', '.join(names[:3])}...?")
    wrong, label = (answers[base, 1:] != right[base, None]).numpy(), right[base].numpy()
    strengths, classes = _by_strength(wrong, ladders), _by_class(wrong, label, names, ladders)
    changes = _by_change(strengths, classes, ladders)
    table = _by_image(photos, places, unread, answers, right, base, names, ladders)
    place = int(places[base][np.argsort(wrong.sum(1), kind="stable")[(len(wrong) - 1) // 2]])
    row = answers[places == place][0]
    return Stressed(
        strengths, changes, classes, table,
        _sentences(strengths, changes, classes, table, labels), photos.paths[place],
        _shown(photos, place, [names[i] for i in row.tolist()], row == right[places == place],
               ladders, seed),
        {photos.paths[place]: why for place, why in unread.items()},
        identity_of(look, photos, None, {
            "by": [ladder.change for ladder in ladders], "labels": labels, "limit": limit,
            "seed": seed, "probabilities": bool(probabilities)}, compared=False))


def _answers(model: nn.Module, photos: Photos, places: torch.Tensor, right: torch.Tensor | None,
             ladders: Sequence[Ladder], seed: int, batch_size: int, workers: int | None,
             ) -> tuple[torch.Tensor, dict[int, str]]:
    """The class given to each image, first unchanged and then at each strength of each ladder.

    int32 (len(places), 1 + strengths), -1 where it was not asked; the reasons for images that
    failed, by place. Those that are not ``right`` unchanged are not changed.
    """
    steps = [(ladder, strength) for ladder in ladders for strength in ladder.strengths]
    answers = torch.full((len(places), 1 + len(steps)), -1, dtype=torch.int32)
    unread: dict[int, str] = {}

    def answer(x: torch.Tensor, at: torch.Tensor, column: int, said: str) -> torch.Tensor:
        """The rows among ``at`` that got an answer for their image, uint8 (B, C, H, W)."""
        read, p = spared(model, Read(x / 255, places[at], {}),
                         lambda read: predict(model, read.x, batch_size=batch_size))
        unread.update({place: f"{said}{why}" for place, why in read.skipped.items()})
        good = at[torch.isin(places[at], read.places)]
        if p is not None:
            answers[good, column] = p.argmax(1).int()
        return good

    lists = [part.tolist() for part in places.split(batch_size)]
    with progress(total=answers.numel(), desc="changing", unit="pass") as bar:
        for read in batches(photos, lists, workers=workers):
            n = len(read.places) + len(read.skipped)
            unread |= read.skipped
            x, at = eight_bits(read.x), torch.searchsorted(places, read.places)
            left = answer(x, at, 0, "")
            bar.update(n)
            if right is not None:
                left = left[answers[left, 0] == right[left]]
            for column, (ladder, strength) in enumerate(steps, start=1):
                if len(left):
                    seeds = [_seed(seed, photos.paths[place]) for place in places[left].tolist()]
                    changed = ladder.of(x[torch.isin(at, left)], strength, seeds)
                    left = answer(changed, left, column, f"under {ladder.words} {strength:g}: ")
                bar.update(n)
    return answers, unread


def _seed(seed: int, path: str) -> int:
    return int(files.digest([seed, path]), 16)


def _rungs(ladders: Sequence[Ladder]) -> list[dict]:
    return [{"change": ladder.change, "direction": ladder.direction, "strength": strength,
             "unit": ladder.unit} for ladder in ladders for strength in ladder.strengths]


def _by_strength(wrong: np.ndarray, ladders: Sequence[Ladder]) -> pd.DataFrame:
    n, rows = len(wrong), []
    for rung, lost in zip(_rungs(ladders), wrong.sum(0).tolist()):
        low, high = interval(n - lost, n)
        rows.append(rung | {"n": n, "right": n - lost, "share": 100 * (n - lost) / n, "low": low,
                            "high": high})
    return pd.DataFrame(rows)


def _by_class(wrong: np.ndarray, label: np.ndarray, names: Sequence[str],
              ladders: Sequence[Ladder]) -> pd.DataFrame:
    parts = [(c, int((label == c).sum()), wrong[label == c].sum(0).tolist())
             for c in np.unique(label).tolist()]
    rows = []
    for column, rung in enumerate(_rungs(ladders)):
        for c, n, lost in parts:
            low, high = interval(lost[column], n)
            rows.append(rung | {"class": c, "n": n, "lost": lost[column],
                                "share": 100 * lost[column] / n, "low": low, "high": high})
    table = pd.DataFrame(rows)
    table["class"] = pd.Series([names[c] for c in table["class"]], dtype=object)  # perhaps no text
    return table


def _by_change(strengths: pd.DataFrame, classes: pd.DataFrame,
               ladders: Sequence[Ladder]) -> pd.DataFrame:
    rows, falls = [], []
    for ladder in ladders:
        part = _of(strengths, ladder)
        first = part[part["right"] < part["n"]][:1]
        row = {"change": ladder.change, "direction": ladder.direction, "unit": ladder.unit,
               "n": int(part["n"].iloc[0]), "first": _strength(first),
               "lost": int((first["n"] - first["right"]).sum())}
        for percent in LOST:
            row[f"lost_{percent}"] = _strength(part[part["share"] <= 100 - percent])
        name, numbers = _falls_first(_of(classes, ladder))
        rows.append(row | numbers)
        falls.append(name)
    table = pd.DataFrame(rows)
    table.insert(table.columns.get_loc("class_n"), "class", pd.Series(falls, dtype=object))
    return table


def _of(table: pd.DataFrame, ladder: Ladder) -> pd.DataFrame:
    """Its rows, from the weakest strength up."""
    return table[(table["change"] == ladder.change) & (table["direction"] == ladder.direction)]


def _strength(rows: pd.DataFrame) -> float:
    return float(rows["strength"].iloc[0]) if len(rows) else float("nan")


def _falls_first(classes: pd.DataFrame) -> tuple[str, dict[str, float]]:
    """The class that loses half at the weakest strength of one ladder, '' if none is named."""
    many = classes[classes["n"] >= FEWEST]
    half = many[many["share"] >= 50]
    found = dict.fromkeys(("class_n", "class_50", "class_lost", "class_low", "class_high",
                           "others_lost"), float("nan"))
    if many["class"].nunique() < 2 or half.empty:
        return "", found
    there = half[half["strength"] == half["strength"].iloc[0]]
    worst = there[there["share"] == there["share"].max()]
    row = worst.iloc[0]
    found |= {"class_50": row["strength"], "class_lost": row["share"]}
    if len(worst) > 1:  # equally: all are named
        return ", ".join(worst["class"]), found
    others = classes[(classes["strength"] == row["strength"])
                     & (classes["class"] != row["class"])]
    return row["class"], found | {
        "class_n": row["n"], "class_low": row["low"], "class_high": row["high"],
        "others_lost": 100 * others["lost"].sum() / others["n"].sum()}


def _by_image(photos: Photos, places: torch.Tensor, unread: Mapping[int, str],
              answers: torch.Tensor, right: torch.Tensor, base: torch.Tensor,
              names: Sequence[str], ladders: Sequence[Ladder]) -> pd.DataFrame:
    table = pd.DataFrame({"path": pd.Series([*photos.paths, *photos.skipped], dtype=object)})
    at, inside = places.numpy(), np.isin(places.numpy(), [*unread])
    outcome = np.full(len(table), "left out", dtype=object)
    outcome[at] = np.where(base.numpy(), "tested", "misclassified")
    outcome[at[inside]] = outcome[len(photos):] = "unreadable"
    table["outcome"] = outcome
    good, given = at[~inside], ~inside
    for column, values in (("label", right), ("predicted", answers[:, 0])):
        table[column] = pd.Series([names[i] for i in values[given].tolist()], good, dtype=object)
    wrong = (answers[:, 1:] != right[:, None]).numpy() & base.numpy()[:, None]
    table["wrong"] = pd.Series(wrong.sum(1)[base.numpy()], at[base.numpy()], "Int64")
    start = 0
    for ladder in ladders:
        part = wrong[:, start:start + len(ladder.strengths)]
        first = np.where(part.any(1), np.array(ladder.strengths)[part.argmax(1)], np.nan)
        table[ladder.name] = pd.Series(first, at)
        start += len(ladder.strengths)
    reasons = {place: why for place, why in unread.items()} | dict(
        enumerate(photos.skipped.values(), start=len(photos)))
    table["note"] = [reasons.get(i, "") for i in range(len(table))]
    return table


def _shown(photos: Photos, place: int, answers: Sequence[str], right: torch.Tensor,
           ladders: Sequence[Ladder], seed: int) -> dict[str, tuple[torch.Tensor, list[str]]]:
    """An image, unchanged and at all strengths; titles say its strength and the answer."""
    read = photos.those([place])
    if not read:  # it was there before
        return {}
    x = eight_bits(read[place])[None]
    titles = [("" if good else "✗ ") + _title(name) for name, good in zip(answers, right.tolist())]
    found, column = {}, 1
    for ladder in ladders:
        made = torch.cat([x, *(ladder.of(x, strength, [_seed(seed, photos.paths[place])])
                               for strength in ladder.strengths)])
        said = [f"unchanged\n{titles[0]}", *(
            f"{strength:g}\n{title}" for strength, title in zip(ladder.strengths,
                                                                titles[column:]))]
        found[f"{ladder.words}: {ladder.unit}"] = made / 255, said
        column += len(ladder.strengths)
    return found


def _title(name: str) -> str:
    name = files.printable(name)
    return name if len(name) <= LETTERS else f"{name[:LETTERS - 1]}…"


def _sentences(strengths: pd.DataFrame, changes: pd.DataFrame, classes: pd.DataFrame,
               images: pd.DataFrame, labels: str) -> tuple[str, ...]:
    counts, n = images["outcome"].value_counts(), int(strengths["n"].iloc[0])
    what = ("what the model says of the image unchanged" if labels == "prediction"
            else "the class that the image is labelled with")
    told = [f"{n:,} images were changed; right is {what}. Wrong before any change, and left out: "
            f"{counts.get('misclassified', 0):,}."]
    words = {i: " ".join(filter(None, (row["change"], row["direction"])))
             for i, row in changes.iterrows()}
    first = [f"{words[i]} {row['first']:g} ({row['lost']:,} of {n:,})"
             for i, row in changes.iterrows() if not np.isnan(row["first"])]
    half = [f"{words[i]} {row['lost_50']:g}" for i, row in changes.iterrows()
            if not np.isnan(row["lost_50"])]
    told.append(f"The weakest strengths with a wrong answer: {', '.join(first) or 'none'}. Half of "
                f"the images are wrong from: {', '.join(half) or 'none'}.")
    sizes = classes.drop_duplicates("class").set_index("class")["n"]
    few = sizes[sizes < FEWEST]
    small = (f" Too few images to say it of {_listed([f'{c} ({k})' for c, k in few.items()])}."
             if len(few) else "")
    if len(sizes) - len(few) < 2:
        return *told, (f"Which class falls first cannot be said: it takes two classes with "
                       f"{FEWEST} images.{small}")
    falls: dict[str, list[str]] = {}
    for i, row in changes.iterrows():
        if row["class"]:
            falls.setdefault(row["class"], []).append(f"{words[i]} {row['class_50']:g}")
    first = [f"{name} ({', '.join(where)})" for name, where in falls.items()]
    return *told, ("The first class to lose half of its images, among those with "
                   f"{FEWEST} or more: {', '.join(first) or 'none'}.{small}")


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - 5:,} more" if len(texts) > 5 else ""
    return ", ".join(texts[:5]) + more
