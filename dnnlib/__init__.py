"""Find the inputs that break a neural network, and find them first."""

__version__ = "0.1.0"
