"""The command line, one file for each group of commands."""

from dnnlib.cli.app import main

__all__ = ["main"]
