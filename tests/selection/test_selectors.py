import itertools
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from torch import nn

from dnnbook.studies import table_iv
from dnnlib import coverage as cov
from dnnlib import models
from dnnlib.inference import predict
from dnnlib.measures import uncertainty
from dnnlib.neurons.activations import record
from dnnlib.perturb.mutations import mutate
from dnnlib.selection import ATS, DSA, NSS, SELECTORS, ats, by_score, nss, selector, surprise, top
from dnnlib.selection.neuron_coverage import KMNC, NAC
from dnnlib.selection.protocol import kept

BY_SOFTMAX = {  # which is more worth labelling: the larger value, of one softmax vector
    "gini": lambda p: 1 - sum(q * q for q in p),
    "pv": lambda p: -sum((q - 1 / len(p)) ** 2 for q in p),
    "pe": lambda p: -sum(q * math.log(q) for q in p if q),
    "pd": lambda p: -sum((a - b) / i for i, (a, b) in enumerate(
        itertools.pairwise(sorted(p, reverse=True)), start=1)),
    "least_confidence": lambda p: -max(p),
    "margin": lambda p: sorted(p)[-2] - max(p),
}


@pytest.fixture
def x(tiny_data):
    return tiny_data.images


@pytest.fixture
def reference(generator):
    return torch.rand(60, 1, 8, 8, generator=generator(9))


@pytest.fixture
def make(reference):
    """``make(name, ...)``: a selector, with training images where it needs them."""
    def make(name, **options):
        needs = {"reference": reference} if name in (
            "kmnc", "npc", "dsa", "lsa", "mdsa", "mlsa", "mmdsa") else {}
        share = {"share": 0.5} if name == "nss" else {}
        return selector(name, **needs | share | options)
    return make


@pytest.fixture
def p():
    return torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(5, 0.4), 80))


def falling(scores):
    return sorted(range(len(scores)), key=lambda i: -scores[i])


# ---- all of them

@pytest.mark.parametrize("name, options", [
    ("random", {}), ("nac", {}), ("kmnc", {"sections": 3}), ("ats", {"upper": 0.3}), ("nss", {}),
    ("dsa", {"order_by": "coverage"})])
def test_seeds_matter(make, tiny_model, x, monkeypatch, name, options):
    monkeypatch.setattr(surprise, "BUCKETS", 9)  # or all candidates cover something
    orders = [make(name, seed=seed, **options).order(tiny_model(), x) for seed in (1, 2)]
    assert not torch.equal(*orders)


@pytest.mark.parametrize("name", [*BY_SOFTMAX, "dsa"])
def test_equals_keep_their_order(make, tiny_model, x, name):
    twice = x[:8].repeat_interleave(2, dim=0)
    order = make(name).order(tiny_model(), twice).tolist()
    assert all(order.index(i) < order.index(i + 1) for i in range(0, 16, 2))


def test_equals_keep_their_order_for_nss(tiny_model, x):
    same = x[:1].expand(6, -1, -1, -1)
    order = NSS(pair="original", originals=same * 0.5, share=0.5).order(tiny_model(), same)
    assert order.tolist() == list(range(6))


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("change, words", [
    (lambda x: x[:1], "at least two candidates"), (lambda x: x[:0], "at least one image"),
    (lambda x: x.where(x < 0.9, torch.nan), "finite"), (lambda x: x[0], "shape"),
    (lambda x: x + 1, r"\[0, 1\]")])
def test_bad_candidates(make, tiny_model, x, name, change, words):
    with pytest.raises(ValueError, match=words):
        make(name).order(tiny_model(), change(x))


@pytest.mark.parametrize("name", sorted(name for name, kind in SELECTORS.items()
                                        if kind.shared or kind.passes))  # others ask no model
def test_nan_inside_the_model(make, tiny_model, x, name):
    model = tiny_model()
    model[0].bias.data[1] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        make(name).order(model, x)


@pytest.mark.parametrize("name, options, words", [
    ("rnadom", {}, "did you mean 'random'"), ("gini", {"batchsize": 3}, "'batch_size'"),
    ("kmnc", {}, "needs the option reference"), ("dsa", {}, "needs the option reference"),
    ("dsa", {"reference": torch.zeros(0, 1, 8, 8)}, "reference: expected at least one"),
    ("kmnc", {"reference": torch.zeros(0, 1, 8, 8)}, "reference: expected at least one"),
    ("kmnc", {"reference": torch.full((2, 1, 8, 8), torch.nan)}, "reference: expected finite"),
    ("kmnc", {"reference": torch.zeros(2, 1, 8, 8), "sections": 0}, "sections"),
    ("dsa", {"reference": torch.zeros(2, 1, 8, 8), "order_by": "scores"}, "'score'"),
    ("nac", {"activation": "Raw"}, "'raw'"), ("ats", {"upper": 1.5}, "upper"),
    ("nss", {"pair": "mutated"}, "'remutated'"), ("nss", {"difference": "l2"}, "difference"),
    ("nss", {"mutation": "blurr"}, "'blur'"), ("nss", {"share": 0}, "share: expected"),
    ("ats", {"threshold": -1}, "threshold"),
    ("nss", {"pair": "original"}, "originals"),
    ("nss", {"originals": torch.zeros(2, 1, 8, 8)}, "originals"),
    ("gini", {"batch_size": 0}, "batch_size")])
def test_bad_options(name, options, words):
    with pytest.raises(ValueError, match=words):
        selector(name, **options)


@pytest.mark.parametrize("options", [{"layer": "11"}, {"layer": "conv"}])
@pytest.mark.parametrize("name", ["dsa", "nss"])
def test_unknown_layer_lists_those_that_are(make, tiny_model, x, name, options):
    with pytest.raises(ValueError, match="Known: 0, 1, 2, 3"):
        make(name, **options).order(tiny_model(), x)


@pytest.mark.parametrize("name", ["dsa", "kmnc"])
def test_reference_of_other_size(tiny_model, x, name):
    with pytest.raises(ValueError, match="reference: expected images of shape"):
        selector(name, reference=torch.rand(5, 1, 9, 9)).order(tiny_model(), x)


def test_options_do_not_change():
    with pytest.raises(FrozenInstanceError):
        selector("gini").batch_size = 3


def test_top():
    order = torch.randperm(200)
    assert [len(top(order, rate)) for rate in (0.05, 0.145, 0.29, 1)] == [10, 29, 58, 200]
    assert torch.equal(top(order, 0.1), order[:20])
    for rate, words in ((0, "share"), (1.1, "share"), (math.nan, "share"), (0.001, "none")):
        with pytest.raises(ValueError, match=words):
            top(order, rate)
    with pytest.raises(ValueError, match="NaN"):
        by_score([1.0, math.nan])


# ---- by the softmax vector

@pytest.mark.parametrize("name", BY_SOFTMAX)
def test_uncertain_against_the_formula(tiny_model, x, name):
    rows = predict(tiny_model(), x).double()
    scores = [BY_SOFTMAX[name](row) for row in rows.tolist()]
    found = SELECTORS[name]()
    assert found.order(tiny_model(), x).tolist() == falling(scores)
    offset = {"least_confidence": 1.0, "pv": 1 - 1 / rows.shape[1]}.get(name, 0.0)
    assert found.score(tiny_model(), x).tolist() == pytest.approx([s + offset for s in scores])


def test_pv_and_gini_are_one_order(tiny_model, x):
    orders = [selector(name).order(tiny_model(), x) for name in ("pv", "gini")]
    assert torch.equal(*orders)


def test_pv_and_gini_are_one_order_among_sure_inputs_in_float32(generator):
    logits = 20 * torch.randn(1000, 10, generator=generator(0))
    p = logits.softmax(1)
    assert (p.sum(1) != 1).any() and (p.amax(1) > 1 - 1e-6).float().mean() > 0.2
    assert torch.equal(*(by_score(uncertainty.indecision(p, by)) for by in ("pv", "gini")))


@pytest.mark.parametrize("measure", uncertainty.MEASURES.values())
def test_logits_are_no_probabilities(measure):
    with pytest.raises(ValueError, match="sum to 1"):
        measure(torch.randn(4, 3))


# ---- by coverage

@pytest.mark.parametrize("activation", ["raw", "scaled", "sigmoid"])
def test_nac_covers_what_is_above(tiny_model, x, activation):
    model = tiny_model()
    values = record(model, x, scale=activation == "scaled").values
    above = (values.sigmoid() if activation == "sigmoid" else values) > 0.5
    order = NAC(activation=activation).order(model, x).tolist()
    expected, seen, left = [], torch.zeros_like(above[0]), [*range(len(x))]
    while True:
        gains = [int((above[i] & ~seen).sum()) for i in left]
        if not max(gains):
            break
        expected.append(left.pop(gains.index(max(gains))))
        seen |= above[expected[-1]]
    assert order[:len(expected)] == expected and sorted(order[len(expected):]) == left


def test_kmnc_is_that_of_the_reference(tiny_model, x, reference):
    model = tiny_model()
    seen = cov.boundaries(record(model, reference).values)
    covered = cov.kmnc(record(model, x).values, seen, 20)
    found = KMNC(reference=reference, sections=20, batch_size=7)
    assert torch.equal(kept(found, model, x)[0], covered.bins)
    expected = cov.cam(covered, fill="random", generator=torch.Generator().manual_seed(0))
    assert torch.equal(found.order(model, x), expected)


# ---- surprise

def dsa_by_loops(traces, predicted, reference, classes):
    scores = []
    for a, c in zip(traces, predicted):
        near = min((b for b, k in zip(reference, classes) if k == c), key=lambda b: math.dist(a, b))
        other = min(math.dist(near, b) for b, k in zip(reference, classes) if k != c)
        scores.append(math.dist(a, near) / other)
    return scores


@pytest.mark.parametrize("shift", [0, 1000])
def test_dsa_against_the_double_loop(monkeypatch, shift):
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(40, 6)) + shift, rng.normal(size=(90, 6)) + shift
    k, c = rng.integers(0, 4, 40), rng.integers(0, 4, 90)
    expected = dsa_by_loops(a.tolist(), k, b.tolist(), c)
    whole = surprise.dsa(a, k, b, c)
    assert whole.tolist() == pytest.approx(expected)
    monkeypatch.setattr(surprise, "_CELLS", 200)  # in chunks
    assert surprise.dsa(a, k, b, c).tolist() == pytest.approx(expected)


def test_dsa_of_training_inputs_and_of_unseen_classes():
    b = torch.rand(30, 4)
    c = torch.arange(30) % 3
    assert surprise.dsa(b, c, b, c).tolist() == [0] * 30
    assert surprise.dsa(b, torch.full((30,), 7), b, c).isinf().all()
    # the same trace in two classes
    assert surprise.dsa([[1.0], [2.0]], [0, 0], [[1.0], [1.0]], [0, 1]).tolist() == [0, math.inf]


@pytest.mark.parametrize("change, words", [
    ({"reference_predicted": [1, 1]}, "two predicted classes"),
    ({"traces": [[math.nan]]}, "finite"),
    ({"reference": [[0.0, 1.0], [1.0, 1.0]]}, "width 1"), ({"predicted": [0, 1]}, "1 classes"),
    ({"reference": torch.zeros(0, 1), "reference_predicted": []}, "at least one")])
def test_bad_traces(change, words):
    arguments = {"traces": [[0.5]], "predicted": [0], "reference": [[0.0], [1.0]],
                 "reference_predicted": [0, 1]}
    with pytest.raises(ValueError, match=words):
        surprise.dsa(**arguments | change)


def test_dsa_reads_the_last_hidden_layer(tiny_model, x, reference):
    model = tiny_model()
    values = [record(model, images, layers=["1"]).values.tolist() for images in (x, reference)]
    labels = [predict(model, images).argmax(1).tolist() for images in (x, reference)]
    expected = dsa_by_loops(values[0], labels[0], values[1], labels[1])
    found = DSA(reference=reference)
    assert found.score(model, x).tolist() == pytest.approx(expected, rel=1e-5)
    assert found.order(model, x).tolist() == falling(found.score(model, x).tolist())


def test_dsa_by_coverage_takes_new_buckets_first(tiny_model, x, reference, monkeypatch):
    monkeypatch.setattr(surprise, "BUCKETS", 12)
    found = DSA(reference=reference, order_by="coverage")
    scores = found.score(tiny_model(), x).tolist()
    expected, seen = [], set()
    for i, score in enumerate(scores):
        bucket = min(int(score / max(scores) * 12), 11)
        if bucket not in seen:
            expected.append(i)
            seen.add(bucket)
    assert 2 < len(expected) < 13
    order = found.order(tiny_model(), x).tolist()
    assert order[:len(expected)] == expected and sorted(order) == [*range(len(x))]


def test_buckets_of_scores_that_are_all_zero_or_infinite():
    assert surprise.surprise_buckets(torch.zeros(3)).bins[:, 0].tolist() == [0, 0, 0]
    assert surprise.surprise_buckets(torch.full((2,), math.inf)).bins[:, 0].tolist() == [-1, -1]


# ---- ATS

def union(parts):
    length, end = 0, -1
    for low, high in sorted(parts):
        length += max(high - max(low, end), 0)
        end = max(end, high)
    return length


def ats_by_lists(p, upper=0.99, ratio=0.005, threshold=0.001):
    """The order without the easy inputs: everything anew for every pick, in exact lengths."""
    picks, others = [], []
    for label in range(len(p[0])):
        patterns = {}
        for i, row in enumerate(p):
            if row.index(max(row)) != label or row[label] > upper:
                continue
            patterns[i] = []
            for a, b in itertools.combinations([k for k in range(len(row)) if k != label], 2):
                own = (2 * row[label] - row[a] - row[b] + 1) / 3
                one = (2 * row[a] - row[label] - row[b] + 1) / 3
                ends = (0, 0)
                if own <= upper:
                    centre, radius = one / (1 - own), ratio * (upper - own)
                    ends = tuple(round(min(max(e, 0), 1) * 1e5)
                                 for e in (centre - radius, centre + radius))
                patterns[i].append(ends)
        chosen = []
        while patterns:
            pairs = len(next(iter(patterns.values())))
            now = [[pattern[k] for pattern in chosen] for k in range(pairs)]
            gains = {i: sum(union([*now[k], ends[k]]) - union(now[k]) for k in range(pairs))
                     for i, ends in patterns.items()}
            for i, gain in gains.items():
                if gain <= threshold * 1e5:
                    others.append((-gain, i))
                    del patterns[i]
            if patterns:
                best = max(patterns, key=lambda i: (gains[i], -i))
                picks.append((-gains[best], best))
                chosen.append(patterns.pop(best))
    return [i for _, i in sorted(picks)] + [i for _, i in sorted(others)]


@pytest.mark.parametrize("ratio, classes", [(0.005, 5), (0.1, 4), (0.1, 3), (0.005, 7)])
def test_ats_against_lists_of_intervals(ratio, classes):
    rng = np.random.default_rng(classes)
    p = rng.dirichlet(np.full(classes, 0.3), 60)
    p = np.concatenate([p, p[:5]])  # equals add nothing the second time
    easy = np.flatnonzero(p.max(1) > 0.99)
    expected = ats_by_lists(p.tolist(), ratio=ratio)
    order = ATS(ratio=ratio).arrange(p).tolist()
    assert order[:len(expected)] == expected
    assert sorted(order[len(expected):]) == easy.tolist()


def test_ats_projection_sees_the_mirror_image():
    """With a and b exchanged the intervals are mirrored, and as long."""
    p = np.random.default_rng(0).dirichlet(np.full(3, 2.0), 50)
    there, back = (ats.intervals(q, 0)[:, 0] for q in (p, p[:, [0, 2, 1]]))
    assert np.abs(there - (100_000 - back[:, ::-1]))[there[:, 1] > 0].max() <= 1


def test_ats_does_not_hang_on_the_last_digit():
    p = np.array([[0.6, 0.4, 0, 0], [0.7, 0.3, 0, 0], [0.8, 0.2, 0, 0]])
    for extra in (0, 1e-7):  # what single precision adds to a sum
        assert (np.diff(ats.intervals(p + [0, extra, 0, 0], 0)) > 0).all()


def test_ats_at_the_bounds():
    sure = [0.99, 0.005, 0.005]
    assert ATS().arrange([[1.0, 0, 0], sure])[0] == 1  # dropped by the released code
    assert ATS(upper=1.0).arrange([[1.0, 0, 0], sure]).tolist() == [1, 0]
    with pytest.raises(ValueError, match="at least 3 classes"):
        ATS().arrange([[0.5, 0.5]] * 2)


def test_ats_of_many_classes_pairs_the_most_probable(generator):
    """Classes that nearly never matter change nothing, in number or in place."""
    p = torch.rand(30, 64, generator=generator(), dtype=torch.float64) ** 8
    p[:, 40:] *= 1e-9
    few = p / p.sum(1, keepdim=True)
    many = torch.cat([few, torch.full((30, 136), 1e-15, dtype=torch.float64)], 1)
    assert ATS().arrange(many).tolist() == ATS().arrange(few).tolist()
    assert ats._rivals(many[:, :3], 1).tolist() == [0, 2]
    assert len(ats._rivals(many, 1)) == 63


# ---- NSS

TABLE_2 = ([[0.4, 0.5], [0.2, 0.4], [0.4, 0.5], [0.8, 0.5]],
           [[0.3, 0.4], [0.2, 0.4], [0.3, 0.3], [0.7, 0.45]])


def test_nss_worked_example():
    moved = nss.sensitivities(*TABLE_2)
    assert moved.tolist() == [pytest.approx(row, abs=1e-6) for row in
                              ([0.1, 0.1], [0, 0], [0.1, 0.2], [0.1, 0.05])]
    scores = nss.tns_score(*TABLE_2, share=1.0)
    assert scores.tolist() == pytest.approx([0.2, 0, 0.3, 0.15], abs=1e-6)
    assert [f"x{i + 1}" for i in by_score(scores)] == ["x3", "x1", "x4", "x2"]


def nss_by_loops(before, after, share, difference):
    def s(a, b, largest):
        return abs(a - b) if difference == "l1" else (a - b) ** 2 / (largest if largest > 0 else 1)

    moved = [[s(a, b, max(u)) for a, b in zip(u, v)] for u, v in zip(before, after)]
    sums = [sum(column) for column in zip(*moved)]
    chosen = falling(sums)[:int(share * len(sums))]
    scores = [sum(row[i] for i in chosen) for row in moved]
    return scores if difference == "l1" else [score / len(chosen) for score in scores]


@pytest.mark.parametrize("difference", nss.DIFFERENCES)
@pytest.mark.parametrize("share", [0.1, 0.33, 1.0])
def test_nss_against_loops(difference, share):
    before, after = np.random.default_rng(2).normal(size=(2, 30, 20))
    before[3] = -abs(before[3])  # a silent layer
    found = nss.tns_score(before, after, share=share, difference=difference)
    assert found.tolist() == pytest.approx(
        nss_by_loops(before.tolist(), after.tolist(), share, difference))


@pytest.mark.parametrize("difference", nss.DIFFERENCES)
@pytest.mark.parametrize("mutation", ["random", "rotation"])
def test_nss_as_the_text_mutates_candidates_again(tiny_model, x, mutation, difference):
    model = tiny_model()
    pair = [record(model, images, layers=["1"], neuron="unit").values.tolist()
            for images in (x, mutate(x, mutation, seed=5).images)]
    found = NSS(mutation=mutation, difference=difference, seed=5)
    expected = nss_by_loops(*pair, 0.1, difference)
    assert found.score(model, x).tolist() == pytest.approx(expected, rel=1e-5)
    assert found.order(model, x).tolist() == falling(found.score(model, x).tolist())


def test_nss_as_released_compares_with_originals(tiny_model, x):
    model, mutated = tiny_model(), mutate(x, seed=0).images
    pair = [record(model, images, layers=["1"], neuron="unit").values.tolist()
            for images in (x, mutated)]
    found = NSS(pair="original", originals=x, difference="squared_normalised")
    expected = nss_by_loops(*pair, 0.1, "squared_normalised")
    assert found.score(model, mutated).tolist() == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="expected 39 images"):
        found.score(model, mutated[1:])
    with pytest.raises(ValueError, match="originals: expected images of shape"):
        found.score(model, torch.rand(40, 1, 9, 9))


def test_nss_empty_share(tiny_model, x):
    with pytest.raises(ValueError, match="0.1 of 4 neurons is none; take at least 0.25"):
        NSS(neuron="channel").order(tiny_model(), x)
    with pytest.raises(ValueError, match="shape of before"):
        nss.tns_score([[1.0, 2.0]], [[1.0]])
    with pytest.raises(ValueError, match="finite"):
        nss.tns_score([[1.0]], [[math.inf]])


@pytest.mark.parametrize("name, units", [
    ("lenet1", 588), ("lenet5", 784), ("resnet20", 4096), ("vgg16", 512)])
def test_layers_of_the_papers_networks(name, units):
    model = models.build(name)
    x = torch.rand(1, *model.spec.shape)
    layer = nss.last_map(model, x)
    assert record(model, x, layers=[layer], neuron="unit").values.shape[1] == units


def test_last_map_of_other_networks(x):
    dense = nn.Sequential(nn.Flatten(), nn.Linear(64, 9), nn.ReLU(), nn.Linear(9, 3))
    assert nss.last_map(dense, x) == surprise.last_hidden(dense, x) == "2"
    relu = nn.ReLU(inplace=True)  # runs twice
    shared = nn.Sequential(nn.Conv2d(1, 2, 3), relu, nn.Conv2d(2, 2, 3), relu,
                           nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3))
    assert nss.last_map(shared, x) == "1#2"
    with pytest.raises(ValueError, match="no hidden layer"):
        nss.last_map(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), x)


# ---- models that are not quite right

class Bare(nn.Module):
    """No parameters, and no modules that compute."""

    def forward(self, x):
        return 3 * x.flatten(1)[:, :4]


class Pair(nn.Sequential):
    def forward(self, x):
        return super().forward(x), None


@pytest.mark.parametrize("name", BY_SOFTMAX)
def test_a_model_without_parameters_can_be_unsure(x, name):
    assert sorted(SELECTORS[name]().order(Bare(), x).tolist()) == list(range(len(x)))


@pytest.mark.parametrize("name", ["nac", "kmnc"])
def test_a_model_without_neurons(x, name):
    chosen = selector(name, **({"reference": x} if name == "kmnc" else {}))
    with pytest.raises(ValueError, match="layers: the model has none that counts as neurons"):
        chosen.order(Bare(), x)


@pytest.mark.parametrize("name", ["gini", "ats", "npc", "dsa"])
def test_a_model_that_returns_a_pair(tiny_model, x, name):
    chosen = selector(name, **({"reference": x} if name in ("npc", "dsa") else {}))
    with pytest.raises(ValueError, match=r"model: expected logits \(N, classes\), got tuple"):
        chosen.order(Pair(*tiny_model()), x)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["gini", "nac", "npc", "dsa"])
def test_a_model_in_another_precision(tiny_model, x, name, kind):
    model = tiny_model().to(getattr(torch, kind))
    chosen = selector(name, **({"reference": x} if name in ("npc", "dsa") else {}))
    with pytest.raises(ValueError, match=f"in float32, as the images are, got {kind}"):
        chosen.order(model, x)


def test_the_paths_of_table_iv_are_those_of_images_that_the_network_gets_right(
        tiny_model, x, reference):
    model = tiny_model()
    right = predict(model, reference).argmax(1)
    wrong = right.clone()
    wrong[::2] = (wrong[::2] + 1) % 3
    chosen = table_iv(reference, wrong)["npc"]
    assert torch.equal(chosen.order(model, x),
                       table_iv(reference[1::2], right[1::2])["npc"].order(model, x))
