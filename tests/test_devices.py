"""Whatever lies where: tensors go where the model is, results come back. See ``elsewhere.py``.

Everything in a public table is called with the model, the images and the labels on the CPU and
elsewhere, in four ways. What is added to a table, or to a module of measures, is covered by that;
where it needs an argument that nothing here has, the test names it.
"""

import importlib.util
import inspect
from dataclasses import MISSING, fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from dnnbook import studies, training
from dnnbook.data import Dataset
from dnnbook.studies import outcomes, vulnerability
from dnnbook.training import pollution, retraining
from dnnlib import coverage, fuzzing, inference, robustness, selection
from dnnlib.coverage import Covered
from dnnlib.fuzzing import ascent
from dnnlib.measures import faults, first_success, fragility, uncertainty
from dnnlib.neurons import activations, excitable, gates, relevance, sensitivity, shapley
from dnnlib.perturb import evolution, metamorphic, mutations, patches
from dnnlib.robustness import clever
from dnnlib.selection import npc, surprise

spec = importlib.util.spec_from_file_location("elsewhere", Path(__file__).with_name("elsewhere.py"))
elsewhere = importlib.util.module_from_spec(spec)
spec.loader.exec_module(elsewhere)

N, SHAPE, CLASSES = 8, (1, 12, 12), 3
# what is elsewhere: the model, the images, the labels
WAYS = {"model": (True, False, False), "all": (True, True, True), "images": (True, True, False),
        "tensors": (False, True, True)}


@pytest.fixture
def device(monkeypatch, tmp_path):
    with elsewhere.another_device(monkeypatch):
        yield lambda: monkeypatch.setenv("DNNLIB_CACHE", str(tmp_path / "another"))


def network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = (nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                  nn.Linear(75, 6), nn.ReLU(), nn.Linear(6, CLASSES))
        model = nn.Sequential(*layers).eval()
        with torch.no_grad():  # more than one class
            model[-1].weight.mul_(20)
            model[-1].bias.sub_(model(torch.rand(40, *SHAPE)).mean(0))
    return model


def case(model_there: bool, images_there: bool, labels_there: bool) -> SimpleNamespace:
    """A network, images, its classes for them, and more of both as a reference."""
    draws = torch.Generator().manual_seed(1)
    x, reference = torch.rand(N, *SHAPE, generator=draws), torch.rand(40, *SHAPE, generator=draws)
    model = network()
    y, labels = (inference.predict(model, images).argmax(1) for images in (x, reference))
    assert len(labels.unique()) > 1
    if model_there:
        model = elsewhere.moved(model)
    if images_there:
        x, reference = elsewhere.away(x), elsewhere.away(reference)
    if labels_there:
        y, labels = elsewhere.away(y), elsewhere.away(labels)
    return SimpleNamespace(model=model, x=x, y=y, reference=reference, reference_labels=labels,
                           generator=torch.Generator().manual_seed(0))


def options(kind: type, given: SimpleNamespace, **more) -> dict:
    """What a dataclass needs, by the names that ``given`` has, and the optional ones it knows."""
    known = vars(given) | {"originals": given.x * 0.9} | more
    needed = [f.name for f in fields(kind) if f.init
              and f.default is MISSING and f.default_factory is MISSING]
    names = {*needed, *more, *(f.name for f in fields(kind) if f.name == "reference_labels")}
    return {name: known[name] for name in names}


def dataset(given) -> Dataset:
    return Dataset("d", "train", given.x, given.y, tuple("abc"), "d-0")


def fuzz(fuzzer, given):
    found = fuzzer.run(given.model, given.x, given.y, iterations=3, generator=given.generator)
    return found.predicted, found.l2, found.images


def game(given) -> shapley.Game:
    return shapley.Game(given.model, given.x[:2], given.x[2:4], given.y[:2], layers=["1", "4"])


def estimated(name: str, given) -> torch.Tensor:
    more = {"generator": given.generator} if name == "permutation" else {}
    return getattr(shapley, name)(game(given), **more).values


def score(fitness, given) -> torch.Tensor:
    of = torch.arange(N).to(given.y.device)
    return fitness(given.model, given.x, given.y)(given.x * 0.5, of)


def retrained(given):
    recipe = training.Recipe(0.01, 8, 1)
    found = retraining.retrained(given.model, dataset(given), {"a": (given.x, given.y)},
                                          recipe)
    return found["a"][-1].weight.detach().cpu()


def fitted(given, **more):
    training.fit(given.model, dataset(given), training.Recipe(0.01, 4, 1, **more))
    return given.model[-1].weight.detach().cpu()


def reached(given):
    found = fuzzing.Noise().run(given.model, given.x, given.y, iterations=2,
                                generator=given.generator)
    return outcomes.reached(found, sensitivity.SensitiveNeurons()(given.model, given.x, given.y))


def best(given):
    settings = (("a", fuzzing.Noise()), ("b", fuzzing.Noise(scale=1.0)))
    return fuzz(studies.Best(settings=settings, images=given.reference,
                             labels=given.reference_labels, count=4), given)


FUZZERS = {**fuzzing.FUZZERS, "genetic": fuzzing.Genetic, "ants": fuzzing.Ants,
           "differential": fuzzing.Differential}
FITNESSES = {"sensitive": sensitivity.SensitiveNeurons(),
             "difference": sensitivity.SensitiveNeurons(scale="difference"),
             "excitable": excitable.ExcitableNeurons(points=2),
             "permutations": excitable.ExcitableNeurons(permutations=2),
             "constant": fuzzing.Constant(), "random": fuzzing.RandomFitness()}
FEW = {"pgd": {"iterations": 2}, "deepfool": {"iterations": 2}, "jsma": {"gamma": 0.02}}  # steps
SMALL = {"population": 4, "reading": "single", "runners_up": 1}  # of a fuzzer that has the option


def fuzzer_of(name: str, given, **more):
    kind = FUZZERS[name]
    small = {k: v for k, v in SMALL.items() if k in {f.name for f in fields(kind)}}
    return kind(**options(kind, given, **small, **more))


CALLS = {
    **{f"selector {name}": lambda g, kind=kind: kind(**options(kind, g)).order(g.model, g.x)
       for name, kind in selection.SELECTORS.items()},
    "selector nss, original": lambda g: selection.NSS(
        pair="original", originals=g.x * 0.9).order(g.model, g.x),
    **{f"fuzzer {name}": lambda g, name=name: fuzz(fuzzer_of(name, g), g) for name in FUZZERS},
    **{f"fuzzer {name} in a budget": lambda g, name=name: fuzz(fuzzer_of(
        name, g, budget=fuzzing.Budget(l2=1.0, linf=0.2)), g) for name in FUZZERS},
    **{f"swarm, {name}": lambda g, fitness=fitness: fuzz(fuzzing.Swarm(
        population=4, fitness=fitness), g) for name, fitness in FITNESSES.items()},
    **{f"fitness {name}": lambda g, fitness=fitness: score(fitness, g)
       for name, fitness in FITNESSES.items() if name not in ("constant", "random")},
    **{f"estimator {name}": lambda g, name=name: estimated(name, g)
       for name in ("exact", "permutation", "diagonal", "leave_one_out")},
    **{f"attack {name}": lambda g, name=name: robustness.attack_success_rate(
        g.model, g.x[:3], g.y[:3], robustness.attack(name, **FEW.get(name, {}))).images
       for name in robustness.ATTACKS},
    **{f"mutation {name}": lambda g, name=name: mutations.mutate(g.x, name, seed=0).images
       for name in mutations.OPERATORS},
    **{f"patches {name}": lambda g, name=name: vulnerability.success_matrix(
        g.model, g.x, trials=40, patch=name, generator=g.generator)
       for name in vulnerability.PATCHES},
    **{f"metamorphic {name}": lambda g, name=name, kind=kind: metamorphic.apply(
        g.x, name, [kind.values[i % len(kind.values)] for i in range(N)], generator=g.generator)
       for name, kind in metamorphic.MUTATIONS.items()},
    "Best": best, "reached": reached, "retrained": retrained, "fit": fitted,
    "benign": lambda g: studies.benign(g.model, g.x, g.y, without=1),
    "accuracy": lambda g: inference.accuracy(g.model, g.x, g.y),
    "record": lambda g: activations.record(g.model, g.x).values,
    "record, units": lambda g: activations.record(g.model, g.x, neuron="unit", scale=True).values,
    "relevance": lambda g: relevance.propagate(g.model, g.x).values,
    "clever": lambda g: clever.clever(g.model, g.x[:2], batches=2, samples=4, pool=8, fit="maximum").lipschitz,
    "evolve": lambda g: evolution.evolve(g.model, g.x, trials=20, generator=g.generator).success,
    "pollute": lambda g: pollution.pollute(dataset(g), 0.5, label=1, sizes=(2, 4)).images,
    "measure": lambda g: vulnerability.measure(g.model, dataset(g), trials=5).success,
    "respond": lambda g: ascent.respond(g.model, g.x).logits.detach(),
    "layout": lambda g: ascent.layout(g.model, g.x).maps,
}


def same(found, wanted) -> bool:
    if isinstance(wanted, tuple):
        return all(map(same, found, wanted))
    found, wanted = (torch.as_tensor(each).double() for each in (found, wanted))
    return torch.allclose(found, wanted, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_wherever_things_lie(name, device):
    wanted = CALLS[name](case(False, False, False))
    for way, places in WAYS.items():
        device()  # no result of the CPU's from the cache
        assert same(elsewhere.home(CALLS[name](case(*places))), wanted), way


# arguments of functions that see tensors and no model, by their names
P = torch.rand(100, CLASSES, generator=torch.Generator().manual_seed(2)).softmax(1)
TYPES = torch.arange(100) % 4 - 1
GIVEN = {
    "p": P, "values": P, "seen": coverage.boundaries(P), "covered": Covered((P > 0.4).int() - 1),
    "wrong": TYPES > 1, "order": torch.arange(100), "score": P[:, 0], "rate": 0.5, "rates": [1.0],
    "orders": {"a": torch.arange(100)}, "types": TYPES, "labels": TYPES + 1,
    "predicted": 3 - (TYPES + 1), "classes": 4, "success": P > 0.3, "undecided": P,
    "decided": P + 1, "x": P[:, 0], "y": P[:, 1], "baseline": 4.0, "ranked": 2.0,
    "random": 4.0}
MODULES = (coverage, faults, first_success, fragility, uncertainty)
FUNCTIONS = {f"{module.__name__}.{name}": function for module in MODULES
             for name, function in inspect.getmembers(module, inspect.isfunction)
             if not name.startswith("_") and function.__module__.startswith(module.__name__)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_measures_of_tensors_wherever_they_lie(name, device):
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    names = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    names += [p.name for p in parameters if p.name == "generator" and p.name not in names]
    assert not (unknown := set(names) - {*GIVEN, "generator"}), f"name values for {unknown} in GIVEN"

    def call(move):
        def placed(value):
            if isinstance(value, dict):
                return {k: placed(v) for k, v in value.items()}
            if isinstance(value, Covered):
                return Covered(move(value.bins), value.sections)
            return move(value) if isinstance(value, torch.Tensor) else value
        given = GIVEN | {"generator": torch.Generator().manual_seed(0)}
        return FUNCTIONS[name](**{n: placed(given[n]) for n in names})

    def plain(value):
        if isinstance(value, torch.Tensor | np.ndarray):
            return torch.as_tensor(elsewhere.home(value)).tolist()
        return str(value)

    assert plain(call(elsewhere.away)) == plain(call(lambda t: t))


def test_what_sees_traces_wherever_they_lie(device):
    given = case(False, False, False)
    a, b = (activations.record(given.model, x).values for x in (given.x, given.reference))
    bits = a > 0
    abstract = npc.abstract_paths(bits, given.y, CLASSES)
    away = elsewhere.away
    traces = (a, given.y, b, given.reference_labels)
    assert surprise.dsa(*map(away, traces)).equal(surprise.dsa(*traces))
    assert surprise.dsa(*traces, device=elsewhere.DEVICE).equal(surprise.dsa(*traces))
    assert npc.snpc(*map(away, (bits, given.y, abstract))).bins.equal(
        npc.snpc(bits, given.y, abstract).bins)
    assert clever.location(away(a[:, 0].abs())) == clever.location(a[:, 0].abs())
    moved = (a, a + 1, torch.ones(N))
    assert elsewhere.home(sensitivity.neuron_sensitivity(*map(away, moved))).equal(
        sensitivity.neuron_sensitivity(*moved))


@pytest.mark.parametrize("name", CALLS)
def test_a_device_without_float64_leaves_it_to_the_cpu(name, device, monkeypatch):
    monkeypatch.setattr(inference, "NO_DOUBLES", (elsewhere.DEVICE.type,))
    monkeypatch.setattr(elsewhere, "SINGLE", True)
    device()
    CALLS[name](case(*WAYS["all"]))


# mistakes of each kind, planted: without them the same calls pass above

def test_float64_on_a_device_without_it_is_found(device, monkeypatch):
    monkeypatch.setattr(elsewhere, "SINGLE", True)
    with pytest.raises(TypeError, match="expected no float64"):
        CALLS["estimator exact"](case(*WAYS["all"]))


def test_a_label_left_behind_is_found(device, monkeypatch):
    slopes = gates.Gates.slopes
    monkeypatch.setattr(gates.Gates, "slopes", lambda self, x, labels, given: slopes(
        self, x, labels.cpu(), given))
    with pytest.raises(elsewhere.Mixed, match="nll_loss"):
        CALLS["swarm, excitable"](case(*WAYS["model"]))


def test_images_left_behind_are_found(device, monkeypatch):
    given = case(*WAYS["model"])
    monkeypatch.setattr(inference, "fast_layout", lambda x, device: x)
    with pytest.raises(elsewhere.Mixed, match="convolution"):
        inference.predict(given.model, given.x)


def test_a_tensor_on_the_cpu_with_an_index_elsewhere_is_found(device, monkeypatch):
    loss = excitable._Loss
    monkeypatch.setattr(excitable, "_Loss", lambda gates, x, labels: loss(gates, x, labels.cpu()))
    with pytest.raises(elsewhere.Mixed, match="its index elsewhere"):
        CALLS["swarm, permutations"](case(*WAYS["model"]))


def test_numpy_of_a_tensor_elsewhere_is_found(device, monkeypatch):
    monkeypatch.setattr(fragility.checks, "array", lambda values, dtype=None: np.asarray(
        values, dtype=dtype))
    with pytest.raises(elsewhere.Mixed, match="numpy"):
        fragility.eff(elsewhere.away(GIVEN["success"]))


def test_joining_tensors_of_two_places_is_found(device, monkeypatch):
    apply = patches.apply
    monkeypatch.setattr(patches, "apply", lambda x, drawn: apply(x, drawn).cpu())
    with pytest.raises(elsewhere.Mixed, match="cat"):
        CALLS["patches random"](case(*WAYS["all"]))


def test_numbers_drawn_elsewhere_by_a_generator_of_the_cpu_are_found(device):
    with pytest.raises(elsewhere.Mixed, match="generator"):
        torch.rand(2, generator=torch.Generator(), device=elsewhere.DEVICE)


def test_an_index_on_the_cpu_and_a_number_are_no_mistakes(device):
    x = elsewhere.away(torch.arange(3.0))
    assert x[torch.tensor([2, 0])].tolist() == [2, 0]
    assert (x * torch.tensor(2.0)).tolist() == [0, 2, 4]
    x[torch.tensor([True, False, False])] = 5
    assert x.cpu().tolist() == [5, 1, 2]


def test_a_pass_takes_a_quarter_of_the_free_memory(monkeypatch):
    # the image, a convolution and its ReLU, a pool and its values in a row, two layers, logits
    each = 4 * (144 + 2 * 300 + 2 * 75 + 2 * 6 + 3)
    model, x = network(), torch.zeros(10_000, *SHAPE)
    for free, times, wanted in ((8_000 * each, 1, 2_000), (8_000 * each, 4, 500),
                                (10**12, 1, 10_000), (10, 1, 1)):
        monkeypatch.setattr(inference, "free_memory", lambda device, free=free: free)
        assert inference.size_for(model, x, 128, times=times) == wanted
        assert inference.size_for(model, x, 128, rows=10**9) <= 65_536
        assert inference.size_for(model, x, 128, rows=128) == 128  # no more are sent


@pytest.mark.parametrize("share, wanted", [(None, 61), ("0.1", 7), ("0.01", 0), ("1", 61)])
def test_of_several_processes_each_counts_on_its_share_of_a_gpu(monkeypatch, share, wanted):
    """60 of 80 are free, 2 are held by this process, of which 1 is in use; in GiB."""
    gib = 2**30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (60 * gib, 80 * gib))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 2 * gib)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 1 * gib)
    monkeypatch.delenv(inference.SHARE, raising=False)
    if share:
        monkeypatch.setenv(inference.SHARE, share)
    assert inference.free_memory(torch.device("cuda")) // gib == wanted


def test_on_a_cpu_passes_are_as_they_were():
    assert inference.size_for(network(), torch.zeros(10_000, *SHAPE), 128) == 128


def test_classes_and_activations_do_not_depend_on_the_size_of_a_pass(monkeypatch):
    given = case(False, False, False)
    found = {}
    for size in (1, 7, 40):
        monkeypatch.setattr(inference, "size_for", lambda *args, size=size, **more: size)
        monkeypatch.setattr(activations, "size_for", lambda *args, size=size, **more: size)
        found[size] = (inference.predict(given.model, given.reference).argmax(1),
                       activations.record(given.model, given.reference).values)
    for classes, values in found.values():
        assert classes.equal(found[40][0]) and torch.allclose(values, found[40][1], atol=1e-6)
