"""Progress bars: tqdm's; in a notebook a line of its own, which is gone once the bar is done."""

import sys
from collections.abc import Iterable

from tqdm import tqdm


class _Line:
    """What a bar writes to in a notebook, where stderr keeps a coloured line for each bar."""

    def __init__(self) -> None:
        self._shown = None

    def write(self, text: str) -> None:
        """Show what the bar says now in the place of what it said before."""
        from IPython.display import display

        text = text.strip()
        data = {"text/plain": text} if text else {}
        if self._shown is not None:
            self._shown.update(data, raw=True)
        elif text:
            self._shown = display(data, raw=True, display_id=True)

    def flush(self) -> None:
        """Nothing waits to be written."""


def progress(iterable: Iterable | None = None, **options) -> tqdm:
    """A bar of tqdm, with its options.

    >>> list(progress(range(3), desc="images", disable=True))
    [0, 1, 2]
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if hasattr(shell, "kernel"):
        options = {"file": _Line(), "position": 0, **options}
    return tqdm(iterable, **options)
