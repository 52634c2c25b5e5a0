"""Shapley values of LeNet-5's neurons against Captum, and the fitness made of them.

Times are compared within one run, by the best round of each. The inputs are embedded digits, each
"perturbed" into another digit, so that the loss changes. Captum samples permutations of a gate
vector; its worth of coalitions is the same network with the same gates, and no layer shared.
"""

import time

import torch
from captum.attr import ShapleyValueSampling
from scipy.stats import spearmanr
from torch import nn

from dnnbook import training
from dnnbook.data import load
from dnnlib import fuzzing, inference
from dnnlib.neurons import shapley
from dnnlib.neurons.excitable import ExcitableNeurons

INPUTS, COMPARED, PERMUTATIONS, REFERENCE, ROUNDS = 20, 4, 10, 600, 3
EVALS, CHECKED = (1, 16, 64, 258), 100  # Captum's perturbations_per_eval; orders for z scores
SEEDS, PAPER_SECONDS = 20, 259.7  # of 100 examples (Section 7)


def best(action, rounds: int = ROUNDS) -> tuple[float, object]:
    """Seconds of the fastest round, and what it gave."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        found = action()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def change(game: shapley.Game):
    """The first input's change of loss as a function of gates (K, N): (K,)."""
    pair = torch.stack([game.clean[0], game.perturbed[0]])

    @torch.inference_mode()
    def worth(gates: torch.Tensor) -> torch.Tensor:
        x = inference.fast_layout(pair.repeat(len(gates), 1, 1, 1), pair.device)
        with game.gates.applied(gates.repeat_interleave(2, 0)):
            logits = game.model(x)
        labels = game.labels[:1].expand(len(x))
        loss = nn.functional.cross_entropy(logits, labels, reduction="none")
        return loss[1::2] - loss[::2]

    return worth


def against_captum(game: shapley.Game) -> None:
    """The same number of independent permutations of one input's neurons."""
    def ours(permutations: int, seed: int = 0) -> shapley.Shapley:
        return shapley.permutation(game, permutations=permutations, antithetic=False,
                                   generator=drawn(seed))

    sampling, on = ShapleyValueSampling(change(game)), torch.ones(1, game.players)
    torch.manual_seed(0)
    seconds, _ = best(lambda: ours(PERMUTATIONS))
    print(f"{PERMUTATIONS} permutations of {game.players} neurons, one input: "
          f"{1000 * seconds:.1f} ms")
    for evals in EVALS:
        theirs, _ = best(lambda: sampling.attribute(
            on, n_samples=PERMUTATIONS, perturbations_per_eval=evals), 2)
        print(f"  Captum, {evals:3} perturbations per eval: {1000 * theirs:6.1f} ms, "
              f"{theirs / seconds:.1f} times ours")
    values = sampling.attribute(on, n_samples=CHECKED, perturbations_per_eval=EVALS[-1])
    # errors of many, since few orders miss what a neuron seldom does; float32 ends at 1e-5 nats
    error = (ours(2000, 9).error * (2 * 2000 / CHECKED)**0.5).clamp(min=1e-5)
    z = ((ours(CHECKED).values - values) / error).abs()
    print(f"  z scores of the difference, {CHECKED} permutations each: median {z.median():.2f}, "
          f"{(z < 2).float().mean():.1%} within 2 (a normal distribution: 0.67, 95.4%)")


def accuracy_against_cost(game: shapley.Game, some: shapley.Game) -> None:
    """Times of all inputs; mean rank correlation with many permutations of ``some``."""
    target = shapley.permutation(some, permutations=REFERENCE, generator=drawn(1)).values

    def correlation(found: shapley.Shapley) -> float:
        rows = zip(found.values[:COMPARED].numpy(), target.numpy())
        return sum(spearmanr(*row).statistic for row in rows) / COMPARED

    slow, sampled = best(lambda: shapley.permutation(game, permutations=PERMUTATIONS,
                                                     generator=drawn()))
    draws = [shapley.permutation(some, permutations=PERMUTATIONS, generator=drawn(seed))
             for seed in range(5)]
    rho = sum(map(correlation, draws)) / len(draws)
    print(f"rank correlation with {REFERENCE} permutations ({COMPARED} inputs; 3,000 would take "
          f"minutes), and milliseconds an input ({INPUTS} inputs)\n"
          f"  {PERMUTATIONS} permutations:  {rho:.3f}, {1000 * slow / INPUTS:5.2f} ms, "
          f"{sampled.passes // INPUTS:4} passes")
    for points in (1, 2, 4, 8):
        seconds, found = best(lambda: shapley.diagonal(game, points=points))
        print(f"  diagonal, {points} points: {correlation(found):.3f}, "
              f"{1000 * seconds / INPUTS:5.2f} ms, {found.passes // INPUTS:4} passes; 1/"
              f"{slow / seconds:.0f} of the time, 1/{sampled.passes / found.passes:.0f} of the "
              "passes")


def swarm(network: nn.Module, seeds: torch.Tensor, labels: torch.Tensor) -> None:
    """DeepSensor's cost, for 100 examples; a swarm depends on no other."""
    fuzzer = fuzzing.Swarm(fitness=ExcitableNeurons(), population=100)
    start = time.perf_counter()
    found = fuzzer.run(network, seeds, labels, iterations=20, generator=drawn())
    seconds = (time.perf_counter() - start) * 100 / len(seeds)
    print(f"excitable swarm, population 100, 20 iterations: {seconds:.1f} s for 100 examples "
          f"(by {len(seeds)}), the paper's {PAPER_SECONDS}; {found.passes / found.seconds:.0f} "
          "images/s, each with a gradient")


def main() -> None:
    data, network = load("digits"), training.trained("lenet5", "digits")
    right = (inference.predict(network, data.images).argmax(1) == data.labels).nonzero()[:, 0]
    clean, labels = data.images[right], data.labels[right]
    games = {n: shapley.Game(network, clean[:n], clean[INPUTS:][:n], labels[:n])
             for n in (1, COMPARED, INPUTS)}
    against_captum(games[1])
    accuracy_against_cost(games[INPUTS], games[COMPARED])
    swarm(network, clean[:SEEDS], labels[:SEEDS])


if __name__ == "__main__":
    main()
