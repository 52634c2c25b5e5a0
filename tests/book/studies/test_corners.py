import pytest
import torch

from dnnbook.studies import corner_cases, with_noise
from dnnlib.fuzzing import Noise
from dnnlib.inference import predict


@pytest.fixture
def pairs(tiny_model, tiny_data):
    model = tiny_model()
    x = tiny_data.images[:12]
    return model, x, corner_cases(Noise(scale=0.4), model, x, predict(model, x).argmax(1),
                                  iterations=6, seed=2)


def lengths(pair):
    return (pair[1] - pair[0]).flatten(1).norm(dim=1)


def test_errors_are_the_first_of_each_image(pairs, tiny_model):
    model, x, found = pairs
    labels, shown = predict(model, x).argmax(1), []
    Noise(scale=0.4).run(model, x, labels, iterations=6, watch=shown.append,
                         generator=torch.Generator().manual_seed(2))
    expected = {}
    for images in shown:
        for i, image in enumerate(images):
            if predict(model, image[None]).argmax() != labels[i]:
                expected.setdefault(i, image)
    assert 0 < len(expected) < len(x)
    torch.testing.assert_close(found["error"][1], torch.stack([expected[i]
                                                               for i in sorted(expected)]))
    torch.testing.assert_close(found["error"][0], x[sorted(expected)])


def test_noise_is_as_long_as_the_error(pairs):
    _, _, found = pairs
    torch.testing.assert_close(lengths(found["noise"]), lengths(found["error"]), rtol=1e-4,
                               atol=1e-5)
    assert torch.equal(found["noise"][0], found["error"][0])


def test_the_right_ones_kept_their_class(pairs):
    model, _, found = pairs
    before, after = (predict(model, images).argmax(1) for images in found["right"])
    assert len(before) and torch.equal(before, after) and (lengths(found["right"]) > 0).all()


def test_where_nothing_breaks_there_is_no_corner_case(tiny_model, tiny_data):
    model, x = tiny_model(), tiny_data.images[:3]
    with pytest.raises(ValueError, match="inputs: none of 3 lost its class in 2 iterations"):
        corner_cases(Noise(scale=1e-6), model, x, predict(model, x).argmax(1), iterations=2)


def test_noise_stays_in_range_and_goes_as_far_as_it_can():
    x = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    moved = with_noise(x, torch.tensor([0.0, 1.5, 1000.0]))
    assert 0 <= moved.min() and moved.max() <= 1
    torch.testing.assert_close(lengths((x, moved))[:2], torch.tensor([0.0, 1.5]))
    assert ((moved[2] == 0) | (moved[2] == 1)).double().mean() > 0.9


@pytest.mark.parametrize("length", [torch.tensor([1.0]), torch.tensor([1.0, float("nan")]),
                                    torch.tensor([1.0, -1.0])])
def test_bad_lengths_are_named(length):
    with pytest.raises(ValueError, match="length: expected 2 finite numbers from 0 up"):
        with_noise(torch.rand(2, 1, 4, 4), length)
