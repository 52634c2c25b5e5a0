"""The swarm against the bare forward pass and against Algorithm 1 as printed; the cost of an error.

Images a second are compared within one run, the two sides in turn, by the best round of each.
Test errors are counted on the embedded digits, without a bound and within an L2 distance of 2.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from goals import keep

from dnnbook import published, training
from dnnbook.data import load
from dnnlib import custom, fuzzing, inference
from dnnlib.custom import cluster as clusters

SEEDS, POPULATION, ITERATIONS, ROUNDS, CHUNK = 40, 25, 10, 5, 256


def seconds(action, clock=time.perf_counter) -> float:
    start = clock()
    action()
    return clock() - start


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@torch.inference_mode()
def forward(network: torch.nn.Module, x: torch.Tensor, passes: int) -> None:
    """As many images through the network as a swarm sends, ``CHUNK`` at a time."""
    for start in range(0, passes, CHUNK):
        network(x[:min(CHUNK, passes - start)])


def against_the_forward_pass(network: torch.nn.Module, seeds: torch.Tensor,
                             labels: torch.Tensor) -> None:
    """Two swarms, each beside as many passes and nothing else."""
    swarms = {"paper's fitness": fuzzing.Swarm.paper(population=POPULATION),
              "scaled fitness": fuzzing.Swarm.released(population=POPULATION)}
    x = inference.fast_layout(torch.rand(CHUNK, *seeds.shape[1:], generator=drawn()),
                              inference.device_of(network))
    for name, swarm in swarms.items():
        def fly() -> fuzzing.Campaign:
            return swarm.run(network, seeds, labels, iterations=ITERATIONS, generator=drawn())

        passes = fly().passes
        pairs = [(seconds(fly, time.process_time),  # other programs do not count
                  seconds(lambda: forward(network, x, passes), time.process_time))
                 for _ in range(ROUNDS)]
        whole, bare = map(min, zip(*pairs))
        print(f"swarm, {name}: {passes / whole:7.0f} images/s, bare forward pass "
              f"{passes / bare:7.0f} images/s, {whole / bare:.2f} times the time")
        keep(f"the swarm, {name}: time, beside its passes alone", whole / bare, most=1.25)


@torch.no_grad()
def one_by_one(swarm: fuzzing.Swarm, network: torch.nn.Module, seeds: torch.Tensor,
               labels: torch.Tensor, iterations: int) -> int:
    """Algorithm 1 as printed, seed by seed and particle by particle; the images scored."""
    score, draw = swarm.fitness(network, seeds, labels), drawn()
    count = 0
    for i, seed in enumerate(seeds):
        x = [torch.rand(seed.shape, generator=draw) for _ in range(swarm.population)]
        v = [each - seed for each in x]
        best, fit, leader, leads = list(x), [-1.0] * len(x), seed, -1.0
        for inertia in swarm.inertias(iterations):
            for p in range(swarm.population):
                now = score(x[p][None], torch.tensor([i])).item()
                count += 1
                if now > fit[p]:
                    fit[p], best[p] = now, x[p]
                    if now > leads:
                        leads, leader = now, x[p]
                r = torch.rand(2, generator=draw)
                v[p] = (inertia * v[p] + swarm.c1 * r[0] * (best[p] - x[p])
                        + swarm.c2 * r[1] * (leader - x[p]))
                x[p] = (x[p] + v[p]).clamp(0, 1)
    return count


def against_algorithm_1(network: torch.nn.Module, seeds: torch.Tensor,
                        labels: torch.Tensor) -> None:
    """The same swarm for all seeds and particles at once, and one by one on a few seeds."""
    swarm, few = fuzzing.Swarm.paper(population=POPULATION), 2
    ours, printed = [], []
    for _ in range(2):
        start = time.perf_counter()
        passes = swarm.run(network, seeds, labels, iterations=ITERATIONS, generator=drawn()).passes
        ours.append(passes / (time.perf_counter() - start))
        start = time.perf_counter()
        count = one_by_one(swarm, network, seeds[:few], labels[:few], ITERATIONS)
        printed.append(count / (time.perf_counter() - start))
    print(f"at once: {max(ours):.0f} images/s, one by one: {max(printed):.0f} images/s, "
          f"{max(ours) / max(printed):.1f} times as fast")


def examples_of_table_6(network: torch.nn.Module, images: torch.Tensor,
                        labels: torch.Tensor) -> None:
    """Seconds for 100 examples of LeNet-5, with the population of the second paper."""
    table = published.table("deepsensor_sensitivity", 6)
    theirs = table[(table["model"] == "lenet5") & (table["fuzzer"] == "deepsensor")]["value"].item()
    taken = seconds(lambda: fuzzing.Swarm.paper(population=100).run(
        network, images[:100], labels[:100], iterations=20, generator=drawn()))
    print(f"100 examples, population 100, 20 iterations: {taken:.1f} s in one process; the paper, "
          f"on its own machine: {theirs:.1f} s")


def side_by_side(network: torch.nn.Module, images: torch.Tensor, processes: int = 2) -> None:
    """The same by ``dnnlib.fuzz``, its blocks in one process and in two, in turn."""
    photos = custom.Photos(images[:100], tuple(map(str, range(100))))
    options = custom.Options(by="deepsensor", l2=2.0, population=100, iterations=20, block=10)
    with clusters.connected(workers=processes) as client, tempfile.TemporaryDirectory() as work:
        def fly(name: str, **more) -> float:
            return seconds(lambda: custom.fuzz(network, photos, Path(work) / name, options, **more))

        fly("warm", client=client)
        times = [(fly(f"one{i}"), fly(f"two{i}", client=client)) for i in range(2)]
    one, two = map(min, zip(*times))
    print(f"100 inputs by dnnlib fuzz: {one:.1f} s in one process, {two:.1f} s in {processes}, "
          f"{one / two:.2f} times as fast")
    keep(f"100 examples of LeNet-5, population 100, in {processes} processes", two, most=5,
         unit="seconds")
    keep(f"the same, {processes} processes beside one", one / two, least=1.8)


def passes_per_error(network: torch.nn.Module, oracles: tuple, seeds: torch.Tensor,
                     labels: torch.Tensor, reference: torch.Tensor) -> None:
    fuzzers = {"deepsensor": fuzzing.Swarm.paper(population=POPULATION),
               "deepsensor, released": fuzzing.Swarm.released(),
               "deepxplore": fuzzing.fuzzer("deepxplore", others=oracles),
               "dlfuzz": fuzzing.fuzzer("dlfuzz"),
               "deephunter": fuzzing.fuzzer("deephunter", reference=reference),
               "noise": fuzzing.fuzzer("noise")}
    print(f"passes for each test error, and images/s, {SEEDS} seeds x {ITERATIONS} iterations")
    for name, fuzzer in fuzzers.items():
        columns = []
        for l2 in (None, 2.0):
            campaign = replace(fuzzer, budget=fuzzing.Budget(l2=l2)).run(
                network, seeds, labels, iterations=ITERATIONS, generator=drawn())
            errors = int(campaign.errors.sum())
            cost = f"{campaign.passes / errors:9.1f}" if errors else f"{'none':>9}"
            columns.append(f"{'any distance' if l2 is None else f'L2 <= {l2:g}'}: {cost} "
                           f"({campaign.passes / campaign.seconds:6.0f}/s)")
        print(f"{name:21} " + "   ".join(columns))


def main() -> None:
    data, train = load("digits"), load("digits", "train")
    network, *oracles = (training.trained(name, "digits")
                         for name in ("lenet5", "lenet1", "lenet4"))
    right = inference.predict(network, data.images).argmax(1) == data.labels
    seeds, labels = data.images[right][:SEEDS], data.labels[right][:SEEDS]
    against_the_forward_pass(network, seeds, labels)
    against_algorithm_1(network, seeds, labels)
    examples_of_table_6(network, data.images[right], data.labels[right])
    side_by_side(network, data.images[right])
    passes_per_error(network, tuple(oracles), seeds, labels, train.images[:1000])


if __name__ == "__main__":
    main()
