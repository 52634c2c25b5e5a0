"""Pictures that stand side by side on a desk, one below the other on a phone."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

import numpy as np
from PIL import Image

CELL = 8  # screen pixels for a pixel, before the page scales them


@dataclass(frozen=True)
class Card:
    """``pictures``: (C, H, W) in [0, 1], each with what stands below it; a heading, and a text."""

    heading: str
    pictures: Sequence[tuple[np.ndarray, str]]
    text: str


@dataclass(frozen=True)
class Cards:
    """A row of cards, for a notebook to show."""

    cards: Sequence[Card]

    def _repr_html_(self) -> str:
        return f'<div class="cards">{"".join(map(_card, self.cards))}</div>'

    def __repr__(self) -> str:
        return "\n".join(f"{card.heading}: {', '.join(w for _, w in card.pictures)}. {card.text}"
                         for card in self.cards)


def cards(found: Iterable[Card]) -> Cards:
    """Cards in a row.

    >>> cards([Card("A patch", [(np.zeros((1, 8, 8)), "a four")], "Four pixels.")])
    A patch: a four. Four pixels.
    """
    return Cards(tuple(found))


def picture(pixels: np.ndarray) -> str:
    """An image (C, H, W) in [0, 1] as the address of a PNG, its pixels sharp squares."""
    levels = (np.asarray(pixels).transpose(1, 2, 0) * 255).round().astype(np.uint8)
    image = Image.fromarray(levels.squeeze())
    times = max(1, CELL * 28 // image.width)
    whole, file = image.resize((image.width * times, image.height * times), 0), BytesIO()
    whole.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def _card(card: Card) -> str:
    pictures = "".join(
        f'<figure><img src="{picture(pixels)}" alt="{escape(words)}">'
        f"<figcaption>{escape(words)}</figcaption></figure>" for pixels, words in card.pictures)
    return (f'<div class="card-of-pictures"><p class="heading">{escape(card.heading)}</p>'
            f'<div class="pictures">{pictures}</div><p>{escape(card.text)}</p></div>')
