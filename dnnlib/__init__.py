"""Find the inputs that break a neural network, and find them first."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dnnlib.custom import compare, fuzz, rank, stress

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "fuzz", "rank", "stress"]


def __getattr__(name: str):
    """The functions, once they are asked for: what is below them imports this package."""
    if name in ("compare", "fuzz", "rank", "stress"):
        from dnnlib import custom

        return getattr(custom, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
