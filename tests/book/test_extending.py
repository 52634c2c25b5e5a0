"""The page on adding one's own does what it says, word for word."""

import re
from pathlib import Path

import pytest

from dnnlib import inference

PAGE = (Path(__file__).resolve().parents[2] / "book" / "extending.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """What the names on the page stand for at its end."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("extending")
        patch.chdir(place)
        for name in ("DATA", "CACHE", "RESULTS"):
            patch.setenv(f"DNNLIB_{name}", str(place / name.lower()))
        (place / "claims.toml").write_text("".join(re.findall(r"```toml\n(.*?)```", PAGE, re.S)))
        names = {"__name__": "page"}
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", PAGE, re.S)):
            exec(compile(block, f"block {number}", "exec"), names)
        yield names


def test_the_selector_orders_by_its_score(followed):
    contrast = followed["data"].images
    order = followed["Contrast"]().order(None, contrast)
    spread = contrast.flatten(1).std(dim=1)[order]
    assert (spread.diff() >= 0).all() and set(followed["rates"]) == {"contrast", "gini"}


def test_the_fitness_finds_errors_within_the_budget(followed):
    campaign = followed["campaign"]
    assert campaign.errors.any() and campaign.l2.max() <= 8.0 * (1 + 1e-5)


def test_the_fuzzer_ends_at_gray_or_at_its_bound(followed):
    fade = followed["both"]["fade"]
    away = (0.5 - followed["inputs"]).flatten(1).norm(dim=1).clamp_max(8.0)
    assert fade.l2[-1].tolist() == pytest.approx(away.tolist(), rel=1e-4)


def test_the_folder_is_a_dataset(followed):
    assert len(followed["mine"]) == 20 and set(followed["mine"].classes) == {"even", "odd"}


def test_the_network_is_trained(followed):
    found = inference.accuracy(followed["network"], followed["data"].images, followed["data"].labels)
    assert found > 0.5 and len(followed["network"]) == 4


def test_the_claim_gets_its_verdict(followed):
    verdict = followed["verdict"]
    assert verdict.claim.id == "nsatp-margin" and verdict.run == 1 and verdict.state != "not run"
    assert verdict.cells["seeds"].tolist() == [3]
