import math

import pytest
import torch

from dnnlib.fuzzing import deephunter
from dnnlib.fuzzing.deephunter import DeepHunter, Entry, Queue, probability
from dnnlib.fuzzing.protocol import Budget
from dnnlib.inference import predict
from dnnlib.neurons.activations import record
from dnnlib.perturb.metamorphic import AFFINE, PIXEL, apply, distances


@pytest.fixture
def reference(generator):
    return torch.rand(12, 1, 8, 8, generator=generator(9))


@pytest.fixture
def inputs(tiny_data):
    return tiny_data.images[:10]


@pytest.fixture
def hunt(tiny_model, reference, inputs, generator):
    """``hunt(...)``: a campaign from inputs that the model classifies correctly."""
    def run(iterations=6, seed=0, watch=None, x=inputs, **options):
        model = tiny_model()
        labels = predict(model, x).argmax(1)
        fuzzer = DeepHunter(**{"reference": reference} | options)
        return fuzzer.run(model, x, labels, iterations=iterations, generator=generator(seed),
                          watch=watch)
    return run


@pytest.fixture
def queues(monkeypatch):
    """The queues that campaigns made."""
    made = []

    class Kept(Queue):
        def __init__(self, chance):
            super().__init__(chance)
            made.append(self)

    monkeypatch.setattr(deephunter, "Queue", Kept)
    return made


@pytest.fixture
def names(monkeypatch):
    """The mutations that were drawn, a list for each try."""
    drawn, draw = [], deephunter.draw

    def spy(*args, **options):
        found = draw(*args, **options)
        drawn.append(found[0])
        return found

    monkeypatch.setattr(deephunter, "draw", spy)
    return drawn


def entries(images, **options):
    return [Entry(image, image, root, **options) for root, image in enumerate(images)]


# ---- the queue

@pytest.mark.parametrize("options, expected", [
    ({}, [1, 0.8, 0.6, 0.4, 0.3, 0.3]),
    ({"schedule": "released"}, [0.8, 0.6, 0.4, 0.2, 0.2, 0.2])])
def test_probabilities_by_hand(options, expected):
    assert [probability(n, **options) for n in range(len(expected))] == pytest.approx(expected)


def test_the_walk_goes_on_where_it_stopped_and_meets_what_was_added(generator):
    queue = Queue(lambda picked: 1.0)
    for entry in entries(torch.zeros(3, 1, 4, 4)):
        queue.add(entry, set())
    walk = [entry.root for entry in queue.pick(2, generator())]
    walk += [entry.root for entry in queue.pick(1, generator())]
    queue.add(Entry(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4), root=3), set())
    walk += [entry.root for entry in queue.pick(4, generator())]
    assert walk == [0, 1, 2, 3, 0, 1, 2]
    assert [entry.picked for entry in queue.entries] == [2, 2, 2, 1]


def test_entries_are_accepted_by_their_probability(generator):
    queue, blank = Queue(lambda picked: 0.25), torch.zeros(1, 4, 4)
    for root in range(3000):
        queue.add(Entry(blank, blank, root), set())
    roots = torch.tensor([-1] + [entry.root for entry in queue.pick(600, generator())])
    gaps = roots.diff()  # geometric: 1 with 1/4, 2 with 3/16, ...
    assert gaps.min() == 1 and abs(gaps.double().mean() - 4) < 0.5
    assert abs((gaps == 1).double().mean() - 1 / 4) < 0.06
    assert abs((gaps == 2).double().mean() - 3 / 16) < 0.06


def test_only_new_items_are_queued():
    queue, blank = Queue(probability), torch.zeros(1, 4, 4)
    queue.add(Entry(blank, blank, 0), {1, 2})
    offers = [queue.offer(Entry(blank, blank, 0), items) for items in
              ({2}, set(), {2, 3}, {3}, {1, 2, 3}, {4})]
    assert offers == [False, False, True, False, False, True]
    assert len(queue.entries) == 3 and queue.seen == {1, 2, 3, 4}


# ---- mutants

@pytest.mark.parametrize("reading", AFFINE)
def test_a_lineage_has_one_affine_mutation(reference, inputs, generator, names, reading):
    fuzzer, source = DeepHunter(reference=reference, affine=reading), generator(1)
    chain, times = entries(inputs), torch.zeros(len(inputs), dtype=torch.int64)
    for _ in range(8):
        was = [entry.affine for entry in chain]
        chain = fuzzer.mutate(chain, source)
        assert all(entry.affine or not before for entry, before in zip(chain, was))
        times += torch.tensor([entry.affine and not before
                               for entry, before in zip(chain, was)])
    assert times.max() == 1 and times.sum() > len(inputs) / 2
    names.clear()
    fuzzer.mutate(entries(inputs, affine=True), source)
    assert {name for drawn in names for name in drawn} <= set(PIXEL[reading])


def test_the_reference_moves_with_the_image(reference, inputs, generator):
    mutants = DeepHunter(reference=reference).mutate(entries(inputs), generator(2))
    moved = [mutant.affine for mutant in mutants]
    assert any(moved) and not all(moved)
    for mutant, seed in zip(mutants, inputs):
        if mutant.affine:
            assert torch.equal(mutant.image, mutant.reference)
            assert (mutant.l0, mutant.linf) == (0, 0)
        else:
            assert torch.equal(mutant.reference, seed)


def forced(monkeypatch, name, value):
    monkeypatch.setattr(deephunter, "draw", lambda free, **_: (
        [name] * len(free), torch.full((len(free),), value, dtype=torch.float64)))


def test_what_changed_before_the_affine_mutation_is_kept(reference, inputs, generator,
                                                         monkeypatch):
    fuzzer = DeepHunter(reference=reference)
    forced(monkeypatch, "brightness", 10.0)
    brighter = fuzzer.mutate(entries(inputs), generator())
    assert all((m.l0, m.linf) == (0, 0.0) for m in brighter)  # compared with the seed as it is
    forced(monkeypatch, "translate", 1.0)
    for mutant, bright, seed in zip(fuzzer.mutate(brighter, generator()), brighter, inputs):
        l0, linf = distances(bright.image[None], seed[None])
        assert mutant.l0 == l0 > 0 and mutant.linf == pytest.approx(10 / 255, abs=1e-5)
        torch.testing.assert_close(mutant.reference, apply(seed[None], "translate", 1.0)[0])


@pytest.mark.parametrize("l0, linf, passes", [
    (0, 0.0, True), (64, 0.15, True),  # brightness changes by 10 levels, less than 51
    (0, 0.3, False), (64, 0.3, False)])
def test_earlier_changes_count_for_later_ones(reference, inputs, generator, monkeypatch, l0, linf,
                                              passes):
    forced(monkeypatch, "brightness", 10.0)
    parents = entries(inputs, affine=True, l0=l0, linf=linf)
    for mutant, seed in zip(DeepHunter(reference=reference).mutate(parents, generator()), inputs):
        assert torch.equal(mutant.image, seed) is not passes
        assert (mutant.l0, mutant.linf) == (l0, pytest.approx(linf))


@pytest.mark.parametrize("l0, passes", [(0, True), (1, True), (2, False)])
def test_counts_of_changed_values_add_up(reference, generator, monkeypatch, l0, passes):
    # one white value on black turned half grey: 1 of 64 values, with alpha for less than 3
    seed = torch.zeros(1, 1, 8, 8)
    seed[0, 0, 4, 4] = 1
    forced(monkeypatch, "contrast", 0.5)
    monkeypatch.setattr(deephunter, "ALPHA", 3 / 64)
    mutant, = DeepHunter(reference=reference).mutate(entries(seed, affine=True, l0=l0, linf=0.5), generator())
    assert (mutant.image.max() == 0.5) == passes


def test_pixel_mutants_are_measured_from_the_seed(reference, generator, monkeypatch):
    forced(monkeypatch, "brightness", 19.0)  # twice is 38 levels; three times are 57
    fuzzer, chain, levels = DeepHunter(reference=reference), entries(torch.zeros(1, 1, 8, 8)), []
    for _ in range(4):
        chain = fuzzer.mutate(chain, generator())
        levels.append(round(chain[0].image.max().item() * 255))
    assert levels == [19, 38, 38, 38]


def test_without_an_allowed_mutation_the_entry_stays(reference, inputs, generator, names,
                                                     monkeypatch):
    monkeypatch.setattr(deephunter, "ALPHA", 0)
    monkeypatch.setattr(deephunter, "BETA", 0)
    mutants = DeepHunter(reference=reference).mutate(entries(inputs, affine=True), generator())
    assert all(torch.equal(mutant.image, seed) for mutant, seed in zip(mutants, inputs))
    assert [len(drawn) for drawn in names] == [10] * 50


def test_accepted_mutants_are_not_tried_again(reference, inputs, generator, names):
    DeepHunter(reference=reference).mutate(entries(inputs), generator())
    lengths = [len(drawn) for drawn in names]
    assert lengths[0] == 10 and lengths == sorted(lengths, reverse=True) and lengths[-1] < 10


# ---- campaigns

def naive_items(a, low, high, steps):
    """Items of one input, neuron by neuron, in double precision."""
    found = set()
    for neuron, (value, least, most) in enumerate(zip(a, low, high)):
        if value > most:
            width = (most - least) / 1000 if most > least else 0.05
            step = min(math.floor((value - most) / width), steps - 1) if steps > 1 else 0
            found.add((neuron, step))
    return found


@pytest.mark.parametrize("steps", [1, 11])
def test_the_queue_grows_by_new_coverage_of_right_mutants_alone(
        hunt, queues, tiny_model, reference, inputs, steps):
    seen = []
    found = hunt(12, watch=lambda x: seen.append(x.clone()), steps=steps)
    model = tiny_model()
    benign = record(model, reference).values.double()
    low, high = benign.amin(0).tolist(), benign.amax(0).tolist()
    expected, covered, rejected = [(seed, i) for i, seed in enumerate(inputs)], set(), 0
    for a in record(model, inputs).values.double().tolist():
        covered |= naive_items(a, low, high, steps)
    for x, roots, wrong in zip(seen, found.origin.tolist(), found.errors.tolist()):
        activations = record(model, x).values.double().tolist()
        for image, root, error, a in zip(x, roots, wrong, activations):
            items = naive_items(a, low, high, steps)
            rejected += error and not items <= covered
            if not error and not items <= covered:
                covered |= items
                expected.append((image, root))
    queue, = queues
    assert len(queue.entries) == len(expected) > len(inputs)
    assert rejected  # errors with new coverage came, and were not queued
    assert len(queue.seen) == len(covered)
    for entry, (image, root) in zip(queue.entries, expected):
        assert torch.equal(entry.image, image) and entry.root == root


def test_every_mutant_knows_its_seed_and_its_distance(hunt, tiny_model, inputs):
    seen = []
    found = hunt(watch=lambda x: seen.append(x.clone()))
    images, roots = torch.stack(seen), found.origin
    moved = (images - inputs[roots]).flatten(2)
    torch.testing.assert_close(found.l2, moved.norm(dim=2))
    torch.testing.assert_close(found.linf, moved.abs().amax(2))
    assert torch.equal(found.predicted.flatten(),
                       predict(tiny_model(), images.flatten(0, 1)).argmax(1))
    assert torch.equal(found.images, images[-1])
    assert roots[0].tolist() == list(range(10))  # all inputs are new, and accepted once
    assert len({tuple(row) for row in roots.tolist()}) > 1
    assert 0 < found.errors.sum() < found.errors.numel()


@pytest.mark.parametrize("reading", AFFINE)
@pytest.mark.parametrize("limits", [{"l2": 0.7}, {"linf": 0.05}, {"l2": 0.5, "linf": 0.1}])
def test_mutants_keep_the_budget(hunt, queues, limits, reading):
    found, free = hunt(budget=Budget(**limits), affine=reading), hunt(affine=reading)
    for name, bound in limits.items():
        assert getattr(found, name).max() <= bound + 1e-5
        assert getattr(found, name).max() > bound * 0.9
        assert getattr(free, name).max() > bound
    assert found.images.min() >= 0 and found.images.max() <= 1
    moved = [entry for entry in queues[0].entries if entry.affine]
    for entry in moved:  # the reference is where the image is, up to the pixel changes since
        assert (entry.image - entry.reference).abs().max() < 0.3


def test_passes_are_counted(hunt, inputs, reference):
    found = hunt(5)
    assert found.passes == len(reference) + len(inputs) + 5 * len(inputs)


def test_campaigns_repeat_with_the_generator(hunt):
    one, two, other = (hunt(seed=seed) for seed in (3, 3, 4))
    for name in ("predicted", "origin", "l2", "linf", "images"):
        assert torch.equal(getattr(one, name), getattr(two, name))
    assert not torch.equal(one.images, other.images)


def test_batches_do_not_matter(hunt):
    assert torch.equal(hunt(batch_size=3).origin, hunt().origin)


def test_readings_differ(hunt):
    default = hunt(8).images
    for options in ({"affine": "released"}, {"schedule": "released"}):
        assert not torch.equal(hunt(8, **options).images, default)


def test_one_seed_is_enough(hunt, inputs):
    found = hunt(7, x=inputs[:1])
    assert found.predicted.shape == (7, 1) and (found.origin == 0).all()


def test_nothing_that_was_given_changes(tiny_model, reference, inputs, generator):
    model = tiny_model()
    before = [reference.clone(), inputs.clone()]
    DeepHunter(reference=reference).run(model, inputs, torch.zeros(10, dtype=torch.int64),
                                        iterations=2, generator=generator())
    assert torch.equal(reference, before[0]) and torch.equal(inputs, before[1])
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("options, message", [
    ({"affine": "both"}, "unknown affine"), ({"schedule": "pape"}, "unknown schedule"),
    ({"steps": 0}, "steps"), ({"batch_size": 0}, "batch_size")])
def test_bad_options_are_named(reference, options, message):
    with pytest.raises(ValueError, match=message):
        DeepHunter(**{"reference": reference} | options)


def test_bad_images_are_named(hunt, reference, inputs):
    with pytest.raises(ValueError, match="reference: expected at least one image"):
        DeepHunter(reference=reference[:0])
    with pytest.raises(ValueError, match="reference: expected images of shape"):
        hunt(reference=torch.rand(3, 1, 9, 8))
    with pytest.raises(ValueError, match="iterations"):
        hunt(0)
    with pytest.raises(ValueError, match="unknown layer"):
        hunt(layers=("nowhere",))
