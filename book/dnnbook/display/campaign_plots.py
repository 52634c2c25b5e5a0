"""Figures of campaigns: errors against distance and thresholds, and what they cost."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from dnnbook.display.colours import colours
from dnnbook.display.plots import bars, nothing, sheet
from dnnbook.studies import FuzzerKey, keys, outcomes
from dnnbook.studies.corners import Pairs
from dnnbook.words import shown
from dnnlib import inference
from dnnlib.fuzzing import Campaign

CORNERS = {"right": "0.7", "noise": "C0", "error": "C3"}  # groups of `corner_cases`, colours


def errors_against_distance(rows: pd.DataFrame, panels: Sequence[Sequence[FuzzerKey]], *,
                            goal: Callable[[str], float], near: bool = False) -> Figure:
    """Error rates against the bound on the L2 distance: panels side by side for each network.

    From three networks on, two share a row.

    ``rows``: tidy, a run's or of all records; those of 'error_rate' with a 'bound' are drawn, as
    means over the seeds. ``panels``: the keys drawn in each panel of a row. ``goal``: the printed
    rate of a network by its name (broken line); ``near``: whether to draw the rows' bound 'near',
    which the paper has (dotted).
    """
    rows = rows[(rows["quantity"] == "error_rate") & rows["bound"].notna()]
    if rows.empty:
        return nothing()
    networks = list(rows.assign(key=keys(rows)).groupby(["dataset", "model"], sort=False))
    beside = 2 if len(networks) > 2 else 1  # networks in a row
    lines = -(-len(networks) // beside)
    figure, axes = plt.subplots(lines, beside * len(panels), sharey=True, squeeze=False,
                                figsize=(9.5, 0.5 + (2.4 if beside > 1 else 3.2) * lines))
    places = axes.reshape(lines * beside, len(panels))  # a row for each network
    for line, ((_, model_name), group) in zip(places, networks):
        means = group.groupby(["bound", "key"])["value"].mean()
        for axis, drawn in zip(line, panels, strict=True):
            _lines(axis, means, drawn, goal=goal(model_name),
                   near=group["near"].iloc[0] if near else None)
        line[0].set_ylabel(f"{shown(model_name)}: test errors (% of examples)" if beside == 1
                           else f"{shown(model_name)}:\ntest errors (%)")
    for unused in places[len(networks):].flat:
        unused.axis("off")
    named = [{name: line for axis in column
              for line, name in zip(*axis.get_legend_handles_labels())}
             for column in places.T]  # not every network has every line
    if beside > 1:
        every = {name: line for column in named for name, line in column.items()}
        figure.legend(every.values(), every, fontsize=7, ncols=4, loc="outside upper center")
        return figure
    for axis, column in zip(axes[0], named):
        axis.legend(column.values(), column, fontsize=7, ncols=2, loc="lower left",
                    bbox_to_anchor=(0, 1))
    return figure


def _lines(axis: Axes, rates: pd.Series, keys: Sequence[FuzzerKey], *, goal: float,
           near: float | None) -> None:
    bounds = sorted(set(rates.index.get_level_values(0)))
    drawn = [key for key in keys if key in rates.index.get_level_values(1)]
    for key, (name, shade) in zip(drawn, colours(shown(str(key)) for key in drawn).items()):
        line = rates.xs(key, level=1)
        axis.plot(line.index, line, "o-", ms=4, lw=2 if key == drawn[0] else 1.2, color=shade,
                  label=name)
    axis.axhline(goal, color="0.3", ls="--", lw=1)
    if near is not None:
        axis.axvline(near, color="0.3", ls=":", lw=1)
    axis.set(xscale="log", xlabel="bound on the L2 distance", ylim=(-3, 103))
    axis.set_xticks(bounds, [f"{bound:g}" for bound in bounds])
    axis.minorticks_off()


def errors_against_thresholds(rows: pd.DataFrame, swarms: Sequence[str]) -> Figure:
    """Test errors against lambda (left) and epsilon (right): a row of panels for each swarm.

    ``rows``: tidy, a run's or of all records, with the columns 'swarm', 'errors' (which kind),
    'varied' and 'threshold'; one line for each kind, network and seed. Swarms of which 'control'
    varies are level lines: dotted for the fitness 'sensitive', else broken.
    """
    shares = outcomes.error_shares(rows)
    if shares.empty:
        return nothing()
    figure, axes = plt.subplots(len(swarms), 2, figsize=(9, 1.4 + 1.8 * len(swarms)), sharey=True,
                                sharex="col", squeeze=False)
    colours = dict(zip(dict.fromkeys(shares["errors"]), ("C0", "C3", "C2")))
    group = ["swarm", "varied", "errors", "dataset", "model", "seed"]
    for (swarm, varied, kind, *_), line in shares.groupby(group):
        if varied == "control":
            for axis in axes[:, 0]:
                axis.axhline(line["value"].iloc[0], color=colours[kind], lw=1,
                             ls=":" if swarm == "sensitive" else "--")
        else:
            axes[list(swarms).index(swarm), int(varied == "epsilon")].plot(
                *line.sort_values("threshold")[["threshold", "value"]].to_numpy().T, "o-", ms=4,
                lw=1.2, color=colours[kind], label=kind)
    axes[-1, 0].set(xlabel="λ")
    axes[-1, 1].set(xlabel="ε", xscale="log")
    for axis, swarm in zip(axes[:, 0], swarms):
        which = f"{shown(swarm)}:\n" if len(swarms) > 1 else ""
        axis.set(ylabel=f"{which}test errors (% of inputs)", ylim=(-3, 103))
    named = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels())))
    axes[0, 1].legend(named.values(), named)
    return figure


def seconds_against_passes(axis: Axes, cost: pd.DataFrame, *, alike: FuzzerKey) -> None:
    """Seconds against passes of each fuzzer; on the broken line a pass costs as in ``alike``.

    ``cost``: the columns 'passes' and 'seconds' for 100 inputs, a line for each key.
    """
    shades = colours(shown(str(key)) for key in cost.index)
    for (key, line), (name, shade) in zip(cost.iterrows(), shades.items()):
        axis.loglog(line["passes"], line["seconds"], "o" if key.fuzzer == "deepsensor" else "s",
                    color=shade, label=name)
    ends = pd.Series([cost["passes"].min(), cost["passes"].max()])
    rate = cost["seconds"][alike] / cost["passes"][alike]
    axis.plot(ends, ends * rate, "--", color="0.6", lw=1)
    axis.set(xlabel="passes for 100 inputs", ylabel="seconds for 100 inputs")
    axis.xaxis.set_minor_formatter(plt.NullFormatter())


def corner_counts(axis: Axes, x: Mapping[str, torch.Tensor],
                  counts: Mapping[str, torch.Tensor]) -> None:
    """``counts`` of neurons (N,) against ``x`` (N,), by group of ``studies.corner_cases``."""
    for group, colour in CORNERS.items():
        axis.scatter(x[group], counts[group], s=12, alpha=0.6, color=colour, label=group)
    axis.legend()


def corner_sheet(model: nn.Module, pairs: Pairs, classes: Sequence[str]) -> Figure:
    """Six images under noise, the corner cases of the same, and the class that the model gives."""
    parts = {}
    for title, group in (("benign, under noise", "noise"), ("corner cases", "error")):
        moved = pairs[group][1][:6]
        given = inference.predict(model, moved).argmax(1)
        parts[title] = (moved, [classes[c] for c in given.tolist()])
    return sheet(parts, columns=6)


def corner_plane(points: torch.Tensor, groups: Mapping[str, int], number: torch.Tensor, *,
                 label: str, seed: int = 0) -> Figure:
    """t-SNE of ``points`` (N, D): left by group, so many in each, right by a ``number`` (N,)."""
    from sklearn.manifold import TSNE  # slow to import

    plane = TSNE(random_state=seed, init="pca",
                 perplexity=min(30, len(points) // 4)).fit_transform(points.numpy())
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    for name, place in zip(groups, np.split(plane, np.cumsum([*groups.values()])[:-1])):
        axes[0].scatter(*place.T, s=14, label=name)
    axes[0].legend()
    spots = axes[1].scatter(*plane.T, s=14, c=number, cmap="viridis")
    figure.colorbar(spots, label=label)
    for axis in axes:
        axis.set(xticks=[], yticks=[])
    return figure


def errors_of_estimators(rows: pd.DataFrame, players: Mapping[str, int]) -> Figure:
    """Errors of estimated Shapley values against passes for an image; broken: the diagonal's gap.

    ``rows``: tidy, the quantities 'passes', 'error' and 'gap' of each game ('players'), estimator
    ('by') and setting. ``players``: how many each game has; each has a panel.
    """
    lines = rows.groupby(["players", "by", "quantity"])["value"].agg(list)
    figure, axes = plt.subplots(1, len(players), figsize=(9, 3.4), sharey=True)
    for axis, (where, count) in zip(axes, players.items()):
        for i, by in enumerate(("diagonal", "leave one out", "permutation")):
            line = lines[where, by]
            axis.loglog(line["passes"], line["error"], "o-", ms=4, color=f"C{i}", label=by)
        axis.loglog(*lines[where, "diagonal"][["passes", "gap"]], "--", color="C0", lw=1)
        axis.set(xlabel="passes for an image", title=f"{where}, {count} players")
    axes[0].set_ylabel("error")
    axes[0].legend()
    return figure


def errors_within_distance(found: Mapping[tuple[str, FuzzerKey], Campaign], *,
                           thick: FuzzerKey) -> Figure:
    """Test errors among the last examples up to an L2 distance: a panel for each network.

    ``found``: campaigns by the names of networks and fuzzers; ``thick``: which one stands out.
    """
    networks = list(dict.fromkeys(name for name, _ in found))
    farthest = max(float(campaign.l2[-1].max()) for campaign in found.values())
    shades = colours(shown(str(key)) for _, key in found)
    figure, axes = plt.subplots(1, len(networks), figsize=(2 + 3 * len(networks), 3.2),
                                sharey=True, squeeze=False)
    for (name, key), campaign in found.items():
        reach = campaign.l2[-1][campaign.errors[-1]].sort().values.tolist()
        axes[0, networks.index(name)].step(
            [0, *reach, farthest], [*range(len(reach) + 1), len(reach)], where="post",
            lw=2 if key == thick else 1, color=shades[shown(str(key))], label=shown(str(key)))
    for axis, name in zip(axes[0], networks):
        axis.set(title=shown(name), xlabel="L2 distance", xlim=(0, farthest))
    axes[0, 0].set_ylabel("test errors")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure


def methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Those rows that have a fuzzer, with its key in words as a column 'method'."""
    rows = rows[rows["fuzzer"].notna()]
    return rows.assign(method=keys(rows).map(lambda key: shown(str(key))))


def fuzzer_bars(rows: pd.DataFrame, *, group: Sequence[str], ylabel: str,
                line: float | None = None) -> Figure:
    """:func:`plots.bars` of tidy rows: a colour for each fuzzer, and words for codes."""
    words = rows[list(group)].map(lambda code: str(shown(code)).replace(", ", ",\n"))
    return bars(methods(rows.assign(**words)), group=group, hue="method", ylabel=ylabel, line=line)


def bars_by_bound(axis: Axes, rows: pd.DataFrame, xlabel: str) -> None:
    """Values of tidy rows as bars across: a place for each fuzzer, a bar for each 'budget'."""
    table = methods(rows).set_index(["method", "budget"])["value"].unstack(sort=False)
    table[::-1].plot.barh(ax=axis, width=0.8, ylabel="", xlabel=xlabel)


def clouds(axis: Axes, model: nn.Module, groups: Mapping[str, torch.Tensor],
           latent: Callable[[torch.Tensor], np.ndarray], classes: Sequence[int], *,
           seed: int = 0) -> dict[str, np.ndarray]:
    """t-SNE of ``latent`` (N, units) of images, by group; triangles: given none of ``classes``.

    Returns the points (n, 2) of every group in the plane.
    """
    from sklearn.manifold import TSNE  # slow to import

    images = torch.cat([*groups.values()])
    given = inference.predict(model, images).argmax(1)
    stray = ~torch.isin(given, torch.tensor([*classes])).numpy()
    plane = TSNE(random_state=seed, init="pca",
                 perplexity=min(30, len(images) // 4)).fit_transform(latent(images))
    whose = np.repeat([*groups], [*map(len, groups.values())])
    for i, name in enumerate(groups):
        for marker, some in (("o", ~stray), ("^", stray)):
            axis.scatter(*plane[(whose == name) & some].T, s=14, color=f"C{i}", marker=marker,
                         label=name if marker == "o" else None)
    axis.set(xticks=[], yticks=[])
    return {name: plane[whose == name] for name in groups}


def silhouette(places: Mapping[str, np.ndarray], one: str, other: str) -> float:
    """How far two groups of a picture's points (n, 2) lie apart: 0 where mixed, 1 as two clusters.

    Rousseeuw's silhouette, its mean over both groups.
    """
    from sklearn.metrics import silhouette_score  # slow to import

    a, b = places[one], places[other]
    return float(silhouette_score(np.concatenate([a, b]), [0] * len(a) + [1] * len(b)))


def magnified(parts: Mapping[str, Sequence[tuple[torch.Tensor, torch.Tensor, str, str]]]) -> Figure:
    """Inputs (C, H, W), an example of each and ten times its change, three in a row, in parts.

    ``parts``: by heading the input, the example, and the classes of both.
    """
    def part(lines) -> tuple[torch.Tensor, list[str]]:
        return (torch.stack([picture for x, made, *_ in lines
                             for picture in (x, made, (10 * (made - x).abs()).clamp(0, 1))]),
                [title for x, made, before, after in lines
                 for title in (before, after, f"L2 {(made - x).norm():.1f}")])

    return sheet({heading: part(lines) for heading, lines in parts.items()}, columns=9, scale=0.9)
