"""The scoreboard's page and the cards of the welcome page."""

from html.parser import HTMLParser

import numpy as np
from PIL import Image

from dnnbook.chapters import board
from dnnbook.display import cards
from dnnbook.display.cards import Card
from dnnbook.records import verdicts


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_every_claim_has_a_line_and_a_square_for_each_cell_of_the_paper(monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK")
    (page,) = board.boards({"nsatp": "NSATP"})
    tags = Tags(page._repr_html_()).found
    assert sum("claim" in a.get("class", "").split() for _, a in tags) == len(page.found)
    squares = [a for tag, a in tags if "square" in a.get("class", "").split()]
    run = [a for a in squares if "missing" not in a["class"]]
    assert len(run) == sum(v.run for v in page.found)
    assert all("dnnbook run nsatp/" in a["data-tip"] and "seeds" in a["data-tip"] for a in run)
    assert len(squares) == sum(max(v.run, v.claim.expected) for v in page.found)


def test_a_claim_without_a_chapter_has_no_link_and_no_command(folders):
    verdict = next(verdicts.verdict(c) for c in verdicts.published.claims("nss"))
    line = board.Board("NSS", (verdict,), {})._repr_html_()
    assert "<a " not in line and verdict.state in line


def test_a_verdict_says_what_it_rests_on(monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK")
    claims = {claim.id: claim for claim in verdicts.published.claims()}
    shown = {name: board.marks(verdicts.verdict(claims[f"deepsensor-sensitivity-{name}"]))
             for name in ("errors", "errors-size", "epsilon")}
    assert "The paper's own numbers fail the rule in 7 of 7 cells" in shown["errors-size"]
    assert "It rests on one cell" in shown["epsilon"]
    assert any("DeepHunter" in mark for mark in shown["errors"])


def test_the_word_tells_how_many_hold_and_that_it_may_change():
    claim = verdicts.published.claims("nss")[0]
    found = verdicts.Verdict(claim, "mostly", 17, 0, 18, 11, 0, None, "", True)
    assert board.worded(found) == "mostly (17 of 18), provisional"


def test_cards_show_pixels_as_squares_and_escape_what_is_written():
    pixels = np.zeros((1, 4, 4))
    pixels[0, 1, 2] = 1
    page = cards.cards([Card("<b>", [(pixels, "a & b")], "text")])._repr_html_()
    assert "&lt;b&gt;" in page and "a &amp; b" in page
    source = next(a["src"] for tag, a in Tags(page).found if tag == "img")
    image = Image.open(cards.BytesIO(__import__("base64").b64decode(source.split(",")[1])))
    side = image.width // 4
    shown = np.asarray(image.convert("L")).reshape(4, side, 4, side)
    assert (shown.min((1, 3)) == shown.max((1, 3))).all() and shown[1, 0, 2, 0] == 255
