"""A contact sheet of images under their titles, drawn by Pillow alone."""

from collections.abc import Sequence

import torch
from PIL import Image, ImageDraw, ImageFont, ImageOps
from torchvision.transforms.v2.functional import to_pil_image

SIDE, GAP, LINE = 144, 12, 16  # pixels: of an image, between two, of a line of text
FONTS = ("DejaVuSans.ttf", "Arial.ttf", "arial.ttf")  # have letters that Pillow's own font has not


def sheet(parts: dict[str, tuple[torch.Tensor, Sequence[str]]], *, columns: int = 8) -> Image.Image:
    """Images (N, C, H, W) in [0, 1], each under its title of at most two lines, part by part.

    >>> sheet({"first": (torch.rand(3, 1, 8, 8), ["a", "b", "c"])}, columns=2).size
    (324, 404)
    """
    font, width, height = _font(), SIDE + GAP, SIDE + 2 * LINE + GAP
    rows = [-(-len(images) // columns) for images, _ in parts.values()]
    drawn = Image.new("RGB", (GAP + columns * width,
                              GAP + len(rows) * LINE + sum(rows) * height), "white")
    top = GAP // 2
    for n, (heading, (images, titles)) in zip(rows, parts.items()):
        ImageDraw.Draw(drawn).text((drawn.width / 2, top), heading, "black", font, "ma")
        for i, (image, title) in enumerate(zip(images, titles)):
            cell = Image.new("RGB", (SIDE, height), "white")
            ImageDraw.Draw(cell).text((SIDE / 2, 2 * LINE), title, "black", font, "md",
                                      align="center")
            pixels = to_pil_image(image).convert("RGB")
            picture = ImageOps.contain(pixels, (SIDE, SIDE), Image.Resampling.NEAREST)
            cell.paste(picture, ((SIDE - picture.width) // 2, 2 * LINE + 2))
            drawn.paste(cell, (GAP + i % columns * width, top + LINE + i // columns * height))
        top += LINE + n * height
    return drawn


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    for name in FONTS:
        try:
            return ImageFont.truetype(name, LINE - 4)
        except OSError:
            continue
    return ImageFont.load_default(LINE - 4)
