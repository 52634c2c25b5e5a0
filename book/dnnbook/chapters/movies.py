"""A film in a page: figures as frames, with a button and a slider, in one piece of HTML."""

import base64
import io
import json
from collections.abc import Iterable

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from dnnlib import checks, files

_COLOURS = 96  # of a frame: flat areas and lines need few, and the page stays small
_PAGE = """\
<figure class="movie" id="{name}">
<img src="{first}" alt="{alt}" style="max-width: 100%; background: white">
<div style="display: flex; gap: 0.8em; align-items: center; max-width: {width}px">
<button type="button" style="min-width: 5em; padding: 0.3em">Play</button>
<input type="range" min="0" max="{last}" value="0" aria-label="frame" style="flex: 1">
<output style="min-width: 4em">0 / {last}</output>
</div>
<script>
(() => {{
  const movie = document.getElementById("{name}");
  const frames = {frames}.map(data => "data:image/png;base64," + data);
  const [image, button, slider, count] =
    ["img", "button", "input", "output"].map(tag => movie.querySelector(tag));
  let timer = null;
  const stop = () => {{ clearInterval(timer); timer = null; button.textContent = "Play"; }};
  const show = at => {{
    slider.value = at; image.src = frames[at]; count.textContent = at + " / {last}";
  }};
  movie.addEventListener("keydown", event => {{  // else JupyterLab goes to another cell
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  }});
  slider.addEventListener("input", () => {{ stop(); show(+slider.value); }});
  button.addEventListener("click", () => {{
    if (timer) return stop();
    if (+slider.value === {last}) show(0);
    button.textContent = "Pause";
    timer = setInterval(() => {{
      show(+slider.value + 1);
      if (+slider.value === {last}) stop();
    }}, {pause});
  }});
}})();
</script>
</figure>"""


def movie(frames: Iterable[Figure], *, alt: str, pause: int = 700):
    """The figures one after the other, in a page that needs no server and no network.

    ``frames``: at least two figures of one size, numbered from 0; each is closed once it is drawn.
    ``alt``: what can be seen, in words. ``pause``: milliseconds from one frame to the next. Where
    scripts do not run, the first frame stands still. Returns IPython's ``HTML``, the same text for
    the same frames. Raises ``ValueError`` for fewer frames or a pause that is not above 0.

    >>> def frame(x):
    ...     figure, axis = plt.subplots(figsize=(1, 1))
    ...     axis.plot([x], [x], "o")
    ...     return figure
    >>> movie((frame(x) for x in range(3)), alt="a dot").data.count("iVBOR")  # first, and all
    4
    """
    from IPython.display import HTML

    checks.positive(pause, "pause")
    pictures = [_png(figure) for figure in frames]
    if len(pictures) < 2:
        raise ValueError(f"frames: expected at least two figures, got {len(pictures)}")
    shown = [base64.b64encode(data).decode() for data, _ in pictures]
    text = _PAGE.format(name=f"movie-{files.digest(shown)[:8]}", alt=alt.replace('"', "&quot;"),
                        first=f"data:image/png;base64,{shown[0]}", last=len(shown) - 1,
                        frames=json.dumps(shown), pause=pause, width=pictures[0][1])
    return HTML(text)


def _png(figure: Figure) -> tuple[bytes, int]:
    """A figure as a PNG of few colours, and its width in pixels."""
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png")
    plt.close(figure)
    picture = Image.open(drawn).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    picture.save(small, format="png", optimize=True)
    return small.getvalue(), picture.width
