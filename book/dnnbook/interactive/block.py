"""One self-contained block of HTML: a picture, data, and a script that brings the picture to life.

Nothing is fetched. Where scripts do not run, and on paper, the picture is what one sees.
"""

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources

import numpy as np
import torch

from dnnlib import checks

SHARED = ("core.js", "address.js")  # what all figures use; run first
HTML = """\
<div class="dnnlib-figure" data-figure="{key}" role="group" aria-label="{title}">
<style>{style}</style>
<img class="still" alt="{alt}" src="data:image/png;base64,{still}">
<script type="application/json">{data}</script>
<script>{script}</script>
</div>"""
# A page may hold the same script several times, and a notebook run it again: it is defined once,
# and each block is drawn once.
SCRIPT = """\
(() => {{
  const known = (window.dnnlibFigures ??= {{}});
  known["{version}"] ??= (() => {{
{code}
    return (element, data) => {{ render(element, data); remember(element); }};
  }})();
  const blocks = document.querySelectorAll('.dnnlib-figure[data-figure="{key}"]:not([data-live])');
  for (const block of blocks) {{
    block.dataset.live = "";
    const place = document.createElement("div");
    place.className = "play";
    place.addEventListener("keydown", (event) => {{  // JupyterLab would cut the cell at an x
      if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
    }});
    block.append(place);
    try {{
      known["{version}"](place, JSON.parse(block.querySelector("script[type]").textContent));
    }} catch (error) {{
      delete block.dataset.live;  // the picture comes back
      place.remove();
      throw error;
    }}
  }}
}})();"""


@dataclass(frozen=True, eq=False)
class Block:
    """An interactive figure: shown by a notebook, and by the book that is built from it.

    ``name``: of the script in ``assets`` that defines ``render(element, data)``, and of its style
    sheet. ``title``: what it
    is, for those who hear the page. ``data``: what the script gets, as JSON. ``still``: a picture
    (PNG) that stands in where scripts do not run, and ``alt`` what is seen in it. Same arguments
    give the same text.

    >>> block = Block("patch_painter", "Patches", {"images": ""}, b"png", "A digit.")
    >>> block, block._repr_html_().count("<script")
    (<interactive figure: Patches>, 2)
    """

    name: str
    title: str
    data: dict
    still: bytes
    alt: str

    def __repr__(self) -> str:
        return f"<interactive figure: {self.title}>"

    def _repr_html_(self) -> str:
        data = json.dumps(self.data, separators=(",", ":"), allow_nan=False)
        code = "\n".join(asset(name) for name in (*SHARED, f"{self.name}.js"))
        version = f"{self.name}-{_digest(code)}"
        key = f"{version}-{_digest(data)}"
        return HTML.format(
            key=key, title=escape(self.title), alt=escape(self.alt),
            style=f"{asset('figure.css')}{asset(self.name + '.css')}",
            still=base64.b64encode(self.still).decode(), data=data.replace("<", "\\u003c"),
            script=SCRIPT.format(version=version, key=key, code=code))


@cache
def asset(name: str) -> str:
    """The text of a script or a style sheet of this package."""
    return (resources.files("dnnbook.interactive") / "assets" / name).read_text(encoding="utf-8")


def packed(values: np.ndarray) -> str:
    """An array's bytes in base64, little endian, as the script's typed arrays read them.

    >>> packed(np.array([0, 255], dtype=np.uint8))
    'AP8='
    """
    little = values.dtype.newbyteorder("<")
    return base64.b64encode(np.ascontiguousarray(values, dtype=little).tobytes()).decode()


def pixels(x: torch.Tensor, name: str = "images") -> str:
    """Images (N, C, H, W) in [0, 1] as bytes from 0 to 255, in base64."""
    return packed((checks.images(x, name).cpu() * 255).round().to(torch.uint8).numpy())


def as_shown(x: torch.Tensor) -> torch.Tensor:
    """Images as the browser gets them: rounded to 256 levels, so that the network sees the same.

    >>> (as_shown(torch.tensor([0.0, 0.501])) * 255).tolist()
    [0.0, 128.0]
    """
    return (x * 255).round() / 255


def picture(figure) -> bytes:
    """A matplotlib figure as PNG, the same bytes each time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    found = io.BytesIO()
    figure.savefig(found, format="png", dpi=100, facecolor="white", metadata={"Software": None})
    return found.getvalue()


def canvas(width: float, height: float):
    """An empty matplotlib figure, in inches, that no notebook shows by itself."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def named(classes: Sequence[str] | None, count: int) -> list[str]:
    """The classes' names: those given, ``count`` of them, else their numbers.

    >>> named(None, 3)
    ['0', '1', '2']
    """
    found = [str(name) for name in (range(count) if classes is None else classes)]
    if len(found) != count:
        raise ValueError(f"classes: expected {count} names, one for each logit, got {len(found)}")
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
