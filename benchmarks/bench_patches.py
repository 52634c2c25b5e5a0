"""The success matrix and the evolved patches against simpler ways, as ratios in one run."""

import time

import numpy as np
import torch
from scipy import optimize

from dnnlib import models
from dnnlib.inference import predict
from dnnlib.perturb import patches
from dnnlib.perturb.evolution import evolve
from dnnlib.perturb.vulnerability import success_matrix

TRIALS = 100


def seconds(action) -> float:
    """The best of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def one_by_one(model, x) -> None:
    """The plain loop: one patched copy, one model pass."""
    drawn = patches.draw(len(x), TRIALS, x.shape[1:], generator=torch.Generator().manual_seed(0))
    for i in range(len(x)):
        predict(model, x[i:i + 1])
        for j in range(TRIALS):
            predict(model, patches.apply(x[i:i + 1], drawn[i:i + 1, j:j + 1])[0])


def scipy_evolution(model, x) -> None:
    """SciPy's differential evolution, one image after another, its populations in one pass."""
    size = 2 + x.shape[1]  # a corner and a colour
    places = torch.tensor(x.shape[-2:]) - patches.SIDE + 1
    for image in x[:, None]:
        label = predict(model, image[0][None]).argmax()

        def fitness(members):
            z = torch.from_numpy(members.T.copy()).float()
            corner = (z[:, :2] * places).long().minimum(places - 1)
            tried = patches.Patches(corner[None, :, 0], corner[None, :, 1], z[None, :, 2:])
            return predict(model, patches.apply(image, tried)[0])[:, label].numpy()

        optimize.differential_evolution(fitness, [(0, 1)] * size, strategy="rand1bin",
                                        popsize=20 // size, mutation=0.5, recombination=1,
                                        maxiter=TRIALS // 20 - 1, vectorized=True, polish=False,
                                        updating="deferred", tol=0)


def main() -> None:
    torch.set_grad_enabled(False)
    model = models.build("net2")
    x = torch.from_numpy(np.random.default_rng(0).random((20, 1, 28, 28), dtype=np.float32))
    more = x.repeat(10, 1, 1, 1)
    generator = torch.Generator().manual_seed(0)
    whole = seconds(lambda: success_matrix(model, more, trials=TRIALS, generator=generator))
    copies = more.repeat_interleave(TRIALS, 0)
    passes = seconds(lambda: predict(model, copies, batch_size=200))
    plain = seconds(lambda: one_by_one(model, x)) * 10
    print(f"success matrix, Net-2, {len(more)} images x {TRIALS} patches: {whole:.2f} s")
    print(f"  against the model passes alone: {whole / passes:.2f} times as long")
    print(f"  against one copy at a time:     {plain / whole:.1f} times faster")
    for name in ("lenet1", "net2", "resnet20"):
        model = models.build(name)
        x = torch.rand(20, *models.spec_of(model).shape, generator=generator)
        copies = x.repeat_interleave(TRIALS, 0)
        passes = seconds(lambda: predict(model, copies, batch_size=200))
        ours = seconds(lambda: evolve(model, x, trials=TRIALS, generator=generator))
        scipy = seconds(lambda: scipy_evolution(model, x))
        print(f"evolved patches, {name}, {len(x)} images x {TRIALS} evaluations: {ours:.2f} s")
        print(f"  against the model passes alone:  {ours / passes:.2f} times as long")
        print(f"  against SciPy's, image by image: {scipy / ours:.1f} times faster")


if __name__ == "__main__":
    main()
