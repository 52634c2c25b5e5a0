import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

from dnnbook.interactive import Block
from dnnbook.interactive.block import as_shown, canvas, named, packed, picture, pixels


def block(**data) -> Block:
    return Block("patch_painter", "A <b>", data, b"png", 'A "digit"')


def test_the_data_cannot_end_the_script():
    text = block(name="</script><script>alert(1)</script>")._repr_html_()
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.S).group(1)
    assert json.loads(found) == {"name": "</script><script>alert(1)</script>"}
    assert 'aria-label="A &lt;b&gt;"' in text and 'alt="A &quot;digit&quot;"' in text


def test_the_same_data_give_the_same_text_and_other_data_another_key():
    key = re.compile(r'data-figure="([\w-]+)"')
    assert block(x=1)._repr_html_() == block(x=1)._repr_html_()
    assert key.search(block(x=1)._repr_html_()).group(1) != key.search(block(x=2)._repr_html_()).group(1)


def test_numbers_that_json_lacks_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        block(x=float("nan"))._repr_html_()


def test_bytes_are_little_endian():
    assert base64.b64decode(packed(np.array([1], dtype=">i4"))) == b"\x01\0\0\0"


def test_pixels_are_what_is_shown():
    x = torch.tensor([0.0, 0.501, 1.0]).view(1, 1, 1, 3)
    assert list(base64.b64decode(pixels(x))) == [0, 128, 255]
    assert (as_shown(x) * 255).flatten().tolist() == [0, 128, 255]
    with pytest.raises(ValueError, match=r"pictures: expected values in \[0, 1\]"):
        pixels(x * 2, "pictures")


def test_a_still_is_a_picture_and_the_same_each_time():
    def still() -> bytes:
        figure = canvas(2, 1)
        figure.subplots().plot([0, 1])
        return picture(figure)

    with Image.open(io.BytesIO(still())) as image:
        assert image.size == (200, 100)
    assert still() == still()


def test_each_class_has_a_name():
    assert named(["a", 7], 2) == ["a", "7"]
    with pytest.raises(ValueError, match="classes: expected 3 names, one for each logit, got 2"):
        named(["a", "b"], 3)
