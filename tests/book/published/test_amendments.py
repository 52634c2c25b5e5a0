"""Amendments name the claims that they touch, and say what changed and why."""

import pytest

from dnnbook import published

GOOD = '[[amendment]]\nid = "x"\ndate = "2026-11-27"\nclaims = ["nsatp-motivation"]\nwhat = "a: b"\nreason = "c"\n'


def test_each_has_its_own_name_and_reason():
    found = published.amendments()
    assert len({a.id for a in found}) == len(found)
    assert all(a.what.strip() and a.reason.strip() for a in found)


def test_those_of_all_papers_come_first():
    assert [a.id for a in published.amendments()][:3] == ["scales", "picked", "most"]


@pytest.mark.parametrize("old, new, words", [
    ("nsatp-motivation", "nsatp-motivatoin", r"amendment x: there is no claim \['nsatp-motivatoin'\]"),
    ('reason = "c"\n', "", "amendment x: reason: Field required"),
    ('id = "x"', 'id = "x"\nsince = 1', "amendment x: since 1: Unexpected"),
    ('what = "a: b"', "what =", "not TOML")])
def test_one_that_is_wrong_says_how(tmp_path, monkeypatch, old, new, words):
    claims = published.claims()
    monkeypatch.setattr(published, "claims", lambda: claims)
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    (tmp_path / "amendments.toml").write_text(GOOD)
    assert [a.id for a in published.amendments()] == ["x"]
    (tmp_path / "amendments.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match=words):
        published.amendments()
