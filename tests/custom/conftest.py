import pytest

OWN = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
"""
KILLED = """
import os, signal, sys
from dnnlib import cli

left, rename = int(sys.argv[1]), os.replace

def replace(*paths):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*paths)

os.replace = replace
sys.argv = ["dnnlib", *sys.argv[2:]]
cli.main()
"""


@pytest.fixture
def own():
    """The code of a model of one's own: `build` gives three classes for images of 8 x 8 pixels."""
    return OWN


@pytest.fixture
def killed():
    """A program that runs the command line and kills itself at a file's nth renaming."""
    return KILLED
