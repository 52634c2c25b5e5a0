"""CLEVER against ART's at DeepSensor's N_b = 500 and N_s = 1024, as a ratio in one run.

ART goes through all its points anew for every target, ten at a time, so that one of the nine
targets of LeNet-5 is timed.
"""

import time

import numpy as np
import torch
from art.estimators.classification import PyTorchClassifier
from art.metrics import clever_t
from goals import keep
from torch import nn

from dnnlib import models
from dnnlib.robustness.clever import clever


def seconds(action) -> tuple[float, object]:
    """Of one run, on the one processor that it uses, and what it gave."""
    start = time.process_time()  # other programs do not count
    found = action()
    return time.process_time() - start, found


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)
    model = models.build("lenet5").eval()
    x = torch.rand(1, 1, 28, 28)
    classifier = PyTorchClassifier(model, loss=nn.CrossEntropyLoss(), input_shape=(1, 28, 28),
                                   nb_classes=10, clip_values=(0.0, 1.0), device_type="cpu")
    clever(model, x, batches=2, samples=8, pool=16)  # warm
    ours, found = seconds(lambda: clever(model, x))
    target = int(found.targeted.argmin())
    theirs, score = seconds(lambda: clever_t(classifier, x[0].numpy(), target, 500, 1024, 2, 2))
    print("CLEVER, LeNet-5, one image, N_b = 500, N_s = 1024, pool of 10240, one thread")
    print(f"  ours, 9 targets: {ours:6.1f} s, score {float(found.targeted[0, target]):.4f}; "
          f"{int(found.fitted.sum())} of 9 fitted")
    print(f"  ART, 1 target:   {theirs:6.1f} s, score {score:.4f}; "
          f"9 would take {9 * theirs / ours:.1f} times as long as ours")
    keep("CLEVER of LeNet-5, ART's time beside ours", 9 * theirs / ours, least=8)


if __name__ == "__main__":
    main()
