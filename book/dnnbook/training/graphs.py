"""A step of training as one CUDA graph: recorded once, and then started as a whole.

A small network's step is some hundred kernels of a few microseconds, which take longer to launch
than to run. Only what is on a CUDA device can be recorded; elsewhere a step is called as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

Step = Callable[[torch.Tensor, torch.Tensor], None]


@contextmanager
def stream(device: torch.device) -> Iterator[None]:
    """On a CUDA device a stream of its own for steps and their recording; elsewhere nothing."""
    if device.type != "cuda":
        yield
        return
    before = torch.cuda.current_stream(device)
    aside = torch.cuda.Stream(device)
    aside.wait_stream(before)
    with torch.cuda.device(device), torch.cuda.stream(aside):
        yield
    before.wait_stream(aside)


def recorded(step: Step, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """``step`` of the tensors ``x`` and ``y``, on a CUDA device, to be started again and again.

    What it starts reads whatever the two hold then. Recording computes nothing. The step must have
    been called before, outside, so that all it sets up once is there; its numbers in Python, as a
    learning rate, stay what they are now.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream(x.device)):
        step(x, y)
    return graph.replay


class Steps:
    """Calls ``step`` for batch after batch; on a CUDA device whole ones by a recorded graph.

    ``whole``: images of a whole batch. The first whole batch is an ordinary step, which sets up
    what is set up once; the second is recorded, and started from then on. A batch of another size
    is always an ordinary step.
    """

    def __init__(self, step: Step, whole: int, device: torch.device):
        self.step, self.whole, self.graphed = step, whole, device.type == "cuda"
        self.seen, self.start = 0, None
        self.x: torch.Tensor | None = None
        self.y: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        if not self.graphed or len(x) != self.whole:
            self.step(x, y)
        elif not self.seen:
            self.seen += 1
            self.step(x, y)
        else:
            if self.start is None:
                self.x, self.y = x.clone(), y.clone()
                self.start = recorded(self.step, self.x, self.y)
            else:
                self.x.copy_(x)
                self.y.copy_(y)
            self.start()
