"""Films: all frames are there, nothing is fetched, and equal frames give equal pages."""

import base64
import io
import re

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from dnnbook.chapters.movies import movie


def frames(count, start=0.0):
    for i in range(count):
        figure, axis = plt.subplots(figsize=(2, 1), dpi=100)
        axis.plot([start + i], [0], "o")
        axis.set(xlim=(-1, 10))
        yield figure


def test_every_figure_is_a_frame_of_its_size_and_is_closed():
    page = movie(frames(3), alt="a dot that moves").data
    listed, = re.findall(r"const frames = \[(.*?)\]", page)
    pictures = [Image.open(io.BytesIO(base64.b64decode(data)))
                for data in re.findall(r'"([^"]+)"', listed)]
    assert [picture.size for picture in pictures] == [(200, 100)] * 3
    assert len({picture.convert("RGB").tobytes() for picture in pictures}) == 3
    assert not plt.get_fignums()


def test_the_page_needs_no_network():
    page = movie(frames(2), alt="a dot").data
    assert "http" not in page and "src=\"data:" in page


def test_equal_frames_give_an_equal_page_and_others_another():
    same, again, other = (movie(frames(2, start), alt="a dot").data for start in (0, 0, 1))
    assert same == again != other


def test_the_words_for_the_picture_may_have_quotes():
    assert 'alt="a &quot;dot&quot;"' in movie(frames(2), alt='a "dot"').data


@pytest.mark.parametrize("count", [0, 1])
def test_a_film_has_two_frames(count):
    with pytest.raises(ValueError, match=f"frames: expected at least two figures, got {count}"):
        movie(frames(count), alt="a dot")


def test_a_pause_is_above_zero():
    with pytest.raises(ValueError, match="pause"):
        movie(frames(2), alt="a dot", pause=0)
