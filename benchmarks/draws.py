"""What two choices in NSS's protocol change: a draw for each of its algorithms, and NAC scaled.

    python benchmarks/draws.py           # MNIST, both LeNets, three seeds; some minutes on a core
    python benchmarks/draws.py --dataset mnist_small

Shares of faults (%) among the first candidates, as *How NSS works* tells them.
"""

import argparse

import torch

from dnnbook import training
from dnnbook.data import load
from dnnlib import inference, selection
from dnnlib.measures import faults
from dnnlib.neurons import activations
from dnnlib.perturb import mutations
from dnnlib.selection import nss

RATES, SHARE = (5, 10, 15, 20), 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="mnist")
    dataset = parser.parse_args().dataset
    torch.set_num_threads(1)
    data = load(dataset)
    for name in ("lenet1_nss", "lenet5_nss"):
        for seed in range(3):
            model = training.trained(name, dataset, recipe_name="nss", seed=seed)
            x = mutations.mutate(data.images, seed=seed).images
            wrong = (inference.predict(model, x).argmax(1) != data.labels).numpy()
            drawn = [mutations.mutate(x, seed=1000 * k + seed).images for k in (1, 2)]
            a, *others = (activations.record(model, images, layers=[nss.last_map(model, x)],
                                             neuron="unit").values for images in (x, *drawn))
            first, second = (nss.sensitivities(a, b) for b in others)
            chosen = nss.sensitive(first, SHARE)  # Algorithm 1
            found = faults.detection_table(wrong, {
                "one draw for both": selection.by_score(first[:, chosen].sum(1)),
                "a draw for each": selection.by_score(second[:, chosen].sum(1)),
                "NAC, raw": selection.selector("nac", seed=seed).order(model, x),
                "NAC, scaled": selection.selector("nac", seed=seed, activation="scaled")
                .order(model, x)}, RATES)
            print(f"{name}, seed {seed}: {100 * wrong.mean():.1f} % are faults",
                  found.round(1).to_string(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
