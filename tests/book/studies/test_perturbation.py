"""A small change of a person's own in the place of the papers' patches."""

import pytest
import torch

from dnnbook.chapters import notebooks
from dnnbook.chapters.experiments import Experiment
from dnnbook.studies import perturbation, vulnerability
from dnnlib.perturb.vulnerability import success_matrix

FILE = '''
import torch

def darker(images, generator):
    """Each image darker, by a share of its own."""
    return images * torch.rand(len(images), 1, 1, 1, generator=generator)

def none(images, generator):
    images.sub_(1)  # a copy, so that nobody is harmed
    return images + 1

def bright(images, generator):
    return images * 3

def fewer(images, generator):
    return images[:1]

def broken(images, generator):
    return images.nothing
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_it_is_measured_and_kept(file, tiny_model, tiny_data):
    first = vulnerability.measure(tiny_model(), tiny_data, patch=f"{file}:darker", trials=9, seed=1)
    again = vulnerability.measure(tiny_model(), tiny_data, patch=f"{file}:darker", trials=9, seed=1)
    assert first.success.shape == (40, 9) and torch.equal(first.success, again.success)
    assert first.success.any() and not first.success.all()
    none = vulnerability.measure(tiny_model(), tiny_data, patch=f"{file}:none", trials=2)
    assert not none.success.any() and tiny_data.images.min() >= 0
    file.write_text(FILE.replace("images * torch.rand", "images ** torch.rand"))
    other = vulnerability.measure(tiny_model(), tiny_data, patch=f"{file}:darker", trials=9, seed=1)
    assert not torch.equal(first.success, other.success)


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_do_not_matter(batch_size, file, tiny_model, tiny_data, generator):
    change = perturbation.found(f"{file}:darker")
    first, found = (success_matrix(tiny_model(), tiny_data.images, patch=change, trials=3,
                                   generator=generator(), batch_size=size) for size in (40, batch_size))
    assert torch.equal(found, first)


@pytest.mark.parametrize("function, words", [
    ("bright", r"mine.py:bright on images of 1 x 28 x 28: expected changed images in \[0, 1\], got 1.5 to 1.5"),
    ("fewer", r"expected changed images \(2, 1, 28, 28\), got \(1, 1, 28, 28\)"),
    ("broken", "mine.py, line 19: AttributeError: "), ("dark", "did you mean 'darker'")])
def test_what_will_not_do_is_told_before_a_kernel_starts(file, function, words):
    with pytest.raises(ValueError, match=words) as told:
        notebooks.together(notebooks.find("nsatp/04"), {"patch": f"{file}:{function}"})
    assert "\n" not in str(told.value)


def test_a_run_a_sweep_and_a_record_call_it_alike(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    path = notebooks.find("nsatp/04")
    values = notebooks.typed(path, {"patch": "mine.py:darker"})
    assert values["patch"] == f"{file}:darker"  # the notebook runs in its own folder
    run = Experiment("nsatp/rq3", "embedded", patch=values["patch"], seed=0)
    assert run.parameters["patch"] == notebooks.recorded(path, values)[1]["patch"] == (
        perturbation.called(f"{file}:darker"))
