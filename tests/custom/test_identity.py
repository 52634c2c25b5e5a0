"""Whether a run is the same as one before: by weights, images, options, and what a model answers."""

import functools
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from dnnlib import custom
from dnnlib.custom import formats, identity, ranking_run
from dnnlib.custom.classifier import Classifier
from dnnlib.custom.looks import first_look
from dnnlib.custom.preparation import prepared
from dnnlib.models import sources


@pytest.fixture(autouse=True)
def here(folders, monkeypatch):
    monkeypatch.chdir(folders)


@pytest.fixture
def x():
    return torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """Whose answers depend on whatever ``change`` is."""

    def __init__(self, change=None, answer=lambda change: 0.0):
        super().__init__()
        torch.manual_seed(0)
        self.last = nn.Linear(64, 3)
        self.change, self.answer = change, answer

    def forward(self, x):
        return self.last(x.flatten(1)) + torch.tensor([self.answer(self.change), 0.0, 0.0])


@dataclass
class Options:
    shift: float


def same(first, second, images, others=None, folder="run"):
    """The second model's ranking, if it goes on in the folder of the first one's, or why not."""
    custom.rank(first, images, "gini", folder=folder)
    with mock.patch.object(ranking_run._log, "warning") as told:
        table = custom.rank(second, images if others is None else others, "gini", folder=folder)
    return str(told.call_args) if told.called else table


@pytest.mark.parametrize("one, other, answer", [
    (np.zeros(1), np.ones(1), lambda change: float(change[0])),
    (Options(0.0), Options(1.0), lambda change: change.shift),
    ([Options(0.0)], [Options(1.0)], lambda change: change[0].shift),
    (functools.partial(float, 0), functools.partial(float, 1), lambda change: change()),
    ({"a": {"b": 0.0}}, {"a": {"b": 1.0}}, lambda change: change["a"]["b"]),
    (object(), 1.0, lambda change: 1.0 if change == 1.0 else 0.0)],
    ids=["array", "dataclass", "list", "partial", "nested", "object"])
def test_an_attribute_that_changes_answers_is_another_run(folders, x, one, other, answer):
    found = same(Net(one, answer), Net(other, answer), x)
    assert isinstance(found, str) and "of the same weights that answers otherwise, by up to 1" in found


def test_attributes_that_change_no_answer_do_not_count(folders, x):
    again = same(Net(object()), Net(["another", object()]), x)
    assert "none changed since the run began" in again.attrs["used"]


def test_heads_that_torch_does_not_print_are_another_run(folders):
    def build(heads):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, heads, 16, batch_first=True, dropout=0.0)
        return nn.Sequential(nn.Flatten(1, 2), layer, nn.Flatten(), nn.Linear(64, 3))

    images = torch.rand(12, 1, 8, 8)
    assert str(build(1)) == str(build(4))
    assert "answers otherwise" in same(build(1), build(4), images)


def test_a_state_that_counts_passes_goes_on(folders, x):
    class Counting(Net):
        def __init__(self):
            super().__init__()
            self.register_buffer("passes", torch.tensor(0))
            self.seen, self.last_pass = 0, None

        def forward(self, x):
            self.passes += 1
            self.seen, self.last_pass = self.seen + 1, x
            return super().forward(x)

    model = Counting()
    assert "none changed" in same(model, model, x).attrs["used"]


def test_a_network_that_imports_a_library_whose_functions_share_helpers_is_quick(folders, x):
    from torch.utils import checkpoint

    class Checkpointed(Net):
        def forward(self, x):
            return checkpoint.checkpoint(super().forward, x, use_reentrant=False)

    assert len(custom.rank(Checkpointed(), x, "gini")) == 30


def test_a_model_with_a_large_tensor_as_attribute_is_quick(folders, x):
    def run(size):
        model = Net(torch.zeros(size))
        return identity.identity_of(first_look(model, custom.photos_of(x, model)),
                                    custom.photos_of(x, model), None, {}).weights

    assert run(1) == run(40_000_000)  # 160 MB; no number of it is made a text


def odd_state(kind):
    model = Net()
    if kind == "extra":
        class Extra(Net):
            def get_extra_state(self):
                return {"names": ["a", "b"]}

            def set_extra_state(self, state):
                pass
        model = Extra()
    if kind == "sparse":
        model.register_buffer("table", torch.eye(4).to_sparse())
    if kind == "bfloat16":
        model.register_buffer("table", torch.ones(3, dtype=torch.bfloat16))
    if kind == "quantised":
        model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    return model


@pytest.mark.parametrize("kind", ["extra", "sparse", "bfloat16", "quantised"])
@pytest.mark.filterwarnings("ignore")
def test_a_state_that_is_no_dense_tensor_is_ranked_and_goes_on(folders, x, kind):
    model = Classifier(nn.Sequential(odd_state(kind), nn.Linear(3, 3)))
    assert "none changed" in same(model, model, x).attrs["used"]


def test_quantised_weights_that_differ_are_other_weights():
    def build(scale):
        torch.manual_seed(0)
        model = Net()
        model.last.weight.data *= scale
        return torch.ao.quantization.quantize_dynamic(model, {nn.Linear})

    from dnnlib.models.fingerprints import weights
    assert weights(build(1.0)) == weights(build(1.0)) != weights(build(1.01))


def test_a_class_masked_by_a_large_constant_hides_no_change(folders, x):
    class Masked(Net):
        def forward(self, x):
            logits = super().forward(x)
            return torch.cat([logits * self.change, torch.full((len(x), 1), -1e9)], 1)

    assert "answers otherwise" in same(Masked(1.0), Masked(-0.5), x)


def test_rounding_is_no_change(folders, x):
    class Rounded(Net):
        def forward(self, x):
            return super().forward(x) * (1 + self.change)

    assert "none changed" in same(Rounded(0.0), Rounded(1e-6), x).attrs["used"]


@pytest.mark.parametrize("by", ["rank", "fuzz"])
def test_an_image_that_was_left_out_and_can_be_answered_now_is_told(folders, by):
    class Picky(Net):
        def forward(self, x):
            if self.change and (x[:, 0, 0, 0] == 0.125).any():
                raise KeyError("bad size")
            return super().forward(x)

    images = torch.rand(200, 1, 8, 8)
    images[1, 0, 0, 0] = 0.125  # not among those that are looked at first

    def run(model):
        if by == "rank":
            return custom.rank(model, images, "gini", folder="run").attrs["unread"]
        options = custom.Options(by="noise", l2=1.0, iterations=1, limit=4)
        found = custom.fuzz(model, images, "run", options).inputs
        return dict(found[found["outcome"] == "unreadable"][["path", "note"]].values)

    assert "bad size" in run(Picky(True))["1"]
    assert "bad size" in run(Picky(True))["1"]  # nothing has changed
    with pytest.raises(ValueError, match="a run that left out 1, which can be read and answered"):
        run(Picky(False))


def test_a_library_that_lies_elsewhere_is_no_code_of_ones_own(tmp_path, monkeypatch):
    place = tmp_path / "elsewhere" / "site-packages"
    (place / "apart").mkdir(parents=True)
    (place / "apart" / "__init__.py").write_text("__version__ = '7'\nclass Apart: pass\n")
    (tmp_path / "mine.py").write_text("import apart\nclass Mine: pass\n")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.syspath_prepend(str(tmp_path))
    import apart
    import mine

    assert sources.own_files([mine.Mine, apart.Apart]).keys() == {"mine.py"}
    assert sources.versions([mine.Mine]) == {}  # what is only imported decides nothing
    assert sources.versions([mine.Mine, apart.Apart]) == {"apart": "7"}


# ---- images


def test_a_dataset_of_which_a_few_items_changed_is_another_run(folders, x):
    changed = x.clone()
    changed[7] = torch.rand(1, 8, 8)
    found = same(Net(), Net(), TensorDataset(x), TensorDataset(changed))
    assert "images was other images: of 30, 1 changed since" in found


def test_a_large_dataset_says_that_some_of_its_images_are_compared(folders, monkeypatch, x):
    monkeypatch.setattr(identity, "WHOLE", 10)
    table = custom.rank(Net(), TensorDataset(x), "gini", folder="run")
    assert "30 given images, of which 10 are compared when a run goes on" in table.attrs["used"]


def test_a_tensor_says_how_many_images_changed(folders, x):
    changed = x.clone()
    changed[3:5] = 0.25
    assert "of 30, 2 changed since" in same(Net(), Net(), x, changed)
    assert "was 30 images that can be read, and is 29" in same(Net(), Net(), x, x[:29])


class Crops(TensorDataset):
    """Four crops of each file, as one name."""

    root = "."

    @property
    def samples(self):
        return [(f"{i // 4}.png", 0) for i in range(len(self))]


def test_images_of_one_name_are_told_apart(folders, x):
    changed = x.clone()
    changed[5] = 0.5
    assert "of 30, 1 changed since" in same(Net(), Net(), Crops(x), Crops(changed))


def test_an_example_that_was_deleted_is_made_again(folders, x):
    options = custom.Options(by="noise", l2=6.0, iterations=4, block=5)
    first = custom.fuzz(Net(), x, "failures", options)
    assert len(first.failures)
    gone = folders / "failures" / first.failures["file"][0]
    before = gone.read_bytes()
    gone.unlink()
    again = custom.fuzz(Net(), x, "failures", options)
    assert gone.read_bytes() == before and again.failures.equals(first.failures)


class Labelled(Dataset):
    def __init__(self, x, targets):
        self.x, self.targets, self.classes = x, targets, ["a", "b", "c"]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.targets[i]


def test_other_labels_are_the_same_ranking_with_another_column(folders, x):
    first, again = (custom.rank(Net(), Labelled(x, targets), "gini", folder="run")
                    for targets in ([0] * 30, [0] * 29 + [1]))
    assert set(first["label"]) == {"a"} and again["label"].tolist().count("b") == 1
    assert again.drop(columns="label").equals(first.drop(columns="label"))


def test_other_labels_are_another_fuzz(folders, x):
    options = custom.Options(by="noise", l2=1.0, iterations=1, labels="folders")
    p = Net()(x).argmax(1).tolist()
    custom.fuzz(Net(), Labelled(x, p), "failures", options)
    with pytest.raises(ValueError, match="the same images with other labels"):
        custom.fuzz(Net(), Labelled(x, [*p[:-1], (p[-1] + 1) % 3]), "failures", options)


def test_other_class_names_are_another_fuzz(folders, x):
    names = ["a", "b", "c"]
    p = Net()(x).argmax(1).tolist()
    options = custom.Options(by="noise", l2=1.0, iterations=1, labels="folders")
    data = Labelled(x, p)
    custom.fuzz(Net(), data, "failures", options, class_names=names)
    with pytest.raises(ValueError, match="another run: class_names was"):
        custom.fuzz(Net(), data, "failures", options, class_names=["c", "b", "a"])


def photographs(folder, n=24):
    from PIL import Image
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(n):
        Image.fromarray(rng.integers(0, 256, (40, 40, 3), np.uint8)).save(
            folder / "photos" / f"{i:02}.png")


OWN = """
import torch
from torch import nn
from torchvision import transforms as T
from helper import SIDE

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.p, self.f = nn.Conv2d(3, 16, 8, 8), nn.Linear(16, 4)
    def forward(self, x):
        return self.f(torch.relu(self.p(x)).mean((2, 3))) * 10

class Square:
    def __init__(self, side): self.side = side
    def __call__(self, image): return T.Resize(self.side)(image)

def build():
    torch.manual_seed(0)
    steps = [Square(SIDE), T.CenterCrop(16), T.ToTensor(), T.Normalize((.5,) * 3, (.2,) * 3)]
    return Net().eval(), T.Compose(steps)
"""


def command(folder, *more):
    return subprocess.run([sys.executable, "-m", "dnnlib.cli", "rank", "--model", "own.py:build",
                           "--images", "photos", *more], cwd=folder, capture_output=True, text=True)


def test_a_transform_whose_helper_changed_is_told_by_its_pixels(folders):
    photographs(folders)
    (folders / "own.py").write_text(OWN)
    (folders / "helper.py").write_text("SIDE = 16\n")
    first = command(folders)
    assert first.returncode == 0, first.stderr
    assert "used: 24 given images, by the transform given" in first.stdout + first.stderr
    again = command(folders)  # in another process, where objects lie elsewhere
    assert again.returncode == 0 and "none changed since the run began" in again.stdout + again.stderr
    (folders / "helper.py").write_text("SIDE = 32  # changed\n")
    table = (folders / "ranking.csv").read_bytes()
    other = command(folders)
    assert other.returncode == 0 and "has other pixels" in other.stderr
    assert "kept as ranking-1.run, ranking-1.csv" in other.stderr
    assert (folders / "ranking-1.csv").read_bytes() == table != (folders / "ranking.csv").read_bytes()


def test_a_file_that_changed_and_answers_the_same_is_told_and_goes_on(folders):
    photographs(folders)
    (folders / "own.py").write_text(OWN.replace("from helper import SIDE", "SIDE = 16"))
    assert command(folders).returncode == 0
    with open(folders / "own.py", "a") as file:
        file.write("# a remark\n")
    again = command(folders)
    assert again.returncode == 0
    assert "own.py changed since the run began; it goes on" in again.stderr


def test_photos_that_changed_are_counted(folders):
    photographs(folders)
    (folders / "own.py").write_text(OWN.replace("from helper import SIDE", "SIDE = 16"))
    assert command(folders).returncode == 0
    for name in ("03.png", "05.png"):
        os.utime(folders / "photos" / name, ns=(1, 1))
    assert "of 24, 2 changed since" in command(folders).stderr


# ---- weights that lie elsewhere


def entry(key, value):
    """A StringStringEntryProto as protobuf writes it."""
    both = (b"\x0a", key), (b"\x12", value)
    return b"".join(tag + bytes([len(text)]) + text for tag, text in both)


def test_weights_beside_an_onnx_file_count(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x0a" + entry(b"location", b"m.onnx.data") + entry(b"offset", b"0"))
    (tmp_path / "m.onnx.data").write_bytes(b"weights")
    before = formats._content(path)
    (tmp_path / "m.onnx.data").write_bytes(b"others!")
    assert formats._content(path) != before


def test_the_line_says_which_output_was_taken(x):
    class Named(Net):
        def forward(self, x):
            return {"aux": x.flatten(1), "logits": super().forward(x)}

    assert "the model's output `logits` as logits" in custom.rank(Named(), x, "gini").attrs["used"]


@pytest.mark.parametrize("gives, words", [
    (lambda z: z[:, 0], "the model's output, one number for each image, as the logit of the second of"
                        " two classes"),
    (lambda z: (z[:, 0], z[:, 1]), "the first of the model's 2 outputs, one number for each image, as"),
    (lambda z: z, "the model's output as logits")])
def test_the_line_says_that_one_number_is_of_two_classes(x, gives, words):
    class One(Net):
        def forward(self, x):
            return gives(super().forward(x))

    assert words in custom.rank(One(), x, "gini").attrs["used"]


def test_a_preparation_in_words_is_in_the_line(folders):
    photographs(folders)
    from torchvision.models import ResNet18_Weights
    model = Classifier(nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 3)),
                       preparation=prepared(ResNet18_Weights.DEFAULT.transforms()))
    used = custom.rank(model, folders / "photos", "gini").attrs["used"]
    assert "scaled to 256" in used and "cropped to 224" in used


def test_nothing_is_told_where_nothing_changed(folders, x, caplog):
    with caplog.at_level(logging.WARNING):
        same(Net(), Net(), x)
    assert not caplog.records
