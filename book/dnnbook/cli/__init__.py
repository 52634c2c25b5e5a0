"""The commands of the book, one file for each group of them."""

from dnnbook.cli.app import main

__all__ = ["main"]
