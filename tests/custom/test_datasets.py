"""Images as people hand them over: each kind is the ranking of the same images as a tensor."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    default_collate,
)
from torchvision import transforms
from torchvision.datasets import ImageFolder

import dnnlib
from dnnlib import custom
from dnnlib.custom.preparation import prepared

CHOSEN = [3, 5, 1, 20, 11]


@pytest.fixture
def x(tiny_data):
    """24 images of whole levels."""
    return (tiny_data.images[:24] * 255).round() / 255


@pytest.fixture
def folder(x, tmp_path):
    for i, image in enumerate(x):
        path = tmp_path / "photos" / "abc"[i % 3] / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image[0] * 255).round().to(torch.uint8).numpy()).save(path)
    return tmp_path / "photos"


@pytest.fixture
def scores(tiny_model):
    def call(images, **options):
        return dnnlib.rank(tiny_model(), images, "gini", **options).sort_index()["gini_score"]
    return call


@pytest.mark.parametrize("hand", [
    lambda x: [{"image": image, "label": 0} for image in x],
    lambda x: [{"label": 0, "img": image} for image in x],
    lambda x: [{"pixel_values": image[None]} for image in x],
    lambda x: [{"image": image[:, 1:], "pixel_values": image} for image in x],  # before a transform
    lambda x: [({"image": image.numpy()}, 3) for image in x],
    lambda x: tuple(x),
    lambda x: pd.Series([*x], index=range(len(x), 0, -1)),
    lambda x: [image.clone().requires_grad_() for image in x],
    lambda x: DataLoader([(image, f"n{i}") for i, image in enumerate(x)], batch_size=5),
    lambda x: DataLoader([*x], collate_fn=lambda items: {"pixel_values": torch.stack(items)}),
    lambda x: DataLoader([*(x * 9)], collate_fn=lambda items: default_collate(items) / 9)])
def test_items_of_every_kind(scores, x, hand):
    assert np.allclose(scores(hand(x)), scores(x), rtol=1e-5)


@pytest.mark.parametrize("hand", [lambda x: x, lambda x: x.numpy(), lambda x: [*x],
                                  lambda x: TensorDataset(x)])
def test_channels_last_are_turned_and_told(scores, x, hand):
    last = x.permute(0, 2, 3, 1).contiguous()
    with pytest.warns(UserWarning, match=r"taken as \(H, W, C\)"):
        assert np.allclose(scores(hand(last)), scores(x))


@pytest.mark.filterwarnings("error")
def test_channels_first_stay(scores, x):
    assert len(scores(x)) == 24


@pytest.mark.parametrize("hand", [lambda x: x, lambda x: [*x], lambda x: [*x.numpy()]])
def test_bytes_of_ones_are_no_gray_levels(scores, x, hand):
    ones = (x > 0.5).to(torch.uint8)
    with pytest.raises(ValueError, match="expected gray levels up to 255, .* none above 1 in 24 im"):
        scores(hand(ones))
    ones[7] *= 200
    assert len(scores(hand(ones))) == 24


def test_pictures_in_gray_and_in_colour_are_named(tiny_model, x):
    pictures = [transforms.functional.to_pil_image(image) for image in x]
    pictures[::3] = [picture.convert("RGB") for picture in pictures[::3]]
    with pytest.raises(ValueError, match="one number of channels, got 1 and 3; convert them to one"):
        dnnlib.rank(tiny_model(), pictures, "gini")


def test_a_dict_without_an_image_names_its_keys(scores, x):
    with pytest.raises(ValueError, match="pixel_values, image or img, got a dict of photo, label"):
        scores([{"photo": image, "label": 0} for image in x])


def test_a_dict_of_splits_is_no_dataset(scores, x):
    with pytest.raises(TypeError, match="expected one dataset, got a dict of train, test; give"):
        scores({"train": x, "test": x})


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_paths_are_files(tiny_model, scores, folder, kind):
    paths = sorted(folder.rglob("*.png"), reverse=True)
    table = dnnlib.rank(tiny_model(), [kind(path) for path in paths], "gini").sort_index()
    assert table["path"].tolist() == [path.as_posix() for path in paths]
    assert table["absolute_path"].tolist() == [str(path) for path in paths]
    assert np.allclose(table["gini_score"], scores(folder)[::-1])
    assert np.allclose(scores([(str(path), 1) for path in paths]), scores(folder)[::-1])
    column = pd.Series([str(path) for path in paths], index=range(24, 0, -1))
    assert np.allclose(scores(column), scores(folder)[::-1])


@pytest.mark.parametrize("kind", [list, pd.Series, np.array, "list.txt", "list.csv"])
def test_the_index_is_the_place_in_the_list(tiny_model, folder, x, kind):
    """Of a list with a torn file and one that comes twice, whatever is left out."""
    (folder / "torn.png").write_bytes(b"no image")
    paths = [str(path) for path in sorted(folder.rglob("*.png")) if path.name != "torn.png"]
    paths[3:3] = [str(folder / "torn.png"), paths[1], str(folder / "gone.png")]
    given = kind(paths) if callable(kind) else folder / kind
    if kind == "list.txt":
        given.write_text("\n".join(paths))
    elif kind == "list.csv":
        pd.DataFrame({"path": paths}).to_csv(given, index=False)
    table = dnnlib.rank(tiny_model(), given, "gini")
    assert len(table) == 26 and {*table["path"][table["gini_rank"].isna()].index} == {3, 5}
    for i, name in table["path"].items():
        assert paths[i].endswith(name)
    photos = custom.photos_of(given, tiny_model())
    shown, titles = custom.first(table, photos)["gini"]
    best = table[table["gini_rank"] == 1].iloc[0]
    assert (photos.take(photos.numbers([best["path"]]))[0] == shown[0]).all()


def test_a_table_is_no_list(tiny_model, folder):
    with pytest.raises(TypeError, match="expected a list of paths, got a table; give its column"):
        dnnlib.rank(tiny_model(), pd.DataFrame({"path": ["a.png"]}), "gini")


def test_the_index_is_the_place_among_the_photos_of_a_folder(tiny_model, folder):
    (folder / "a" / "00.png").write_bytes(b"no image")
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    table = dnnlib.rank(tiny_model(), folder, "gini")
    assert [paths[i] for i in table.index] == table["path"].tolist() and len(table) == 24


def test_pixels_beside_a_path_are_the_image(scores, x, folder):
    paths = sorted(folder.rglob("*.png"))
    for name in (paths, [*map(str, paths)], range(24)):
        data = [(key, 1 - image, 0) for key, image in zip(name, x)]
        assert np.allclose(scores(data), scores(1 - x))


def test_a_path_that_is_not_there_costs_itself(tiny_model, folder):
    paths = [*map(str, sorted(folder.rglob("*.png"))), str(folder / "none.png")]
    table = dnnlib.rank(tiny_model(), paths, "gini")
    assert table["path"].tolist()[-1] == paths[-1] and table["gini_rank"].notna().sum() == 24


# ---- names and labels


def images_of(folder):
    return ImageFolder(folder, transforms.Compose([transforms.Grayscale(), transforms.ToTensor()]))


def test_an_image_folder_has_names_and_labels(tiny_model, folder, scores):
    data = images_of(folder)
    table = dnnlib.rank(tiny_model(), data, "gini").sort_index()
    assert table["path"].tolist() == sorted(p.relative_to(folder).as_posix()
                                            for p in folder.rglob("*.png"))
    assert table["label"].tolist() == [path[0] for path in table["path"]]
    assert np.allclose(table["gini_score"], scores(folder), rtol=1e-5)
    by_data, by_folder = (dnnlib.compare(tiny_model(), images, "gini", resamples=10).wrong
                          for images in (data, folder))
    assert by_data == by_folder


def test_subsets_and_joined_datasets_keep_names_and_labels(folder):
    data = images_of(folder)
    names = custom.photos_of(data, torch.nn.Flatten()).paths
    part = custom.photos_of(Subset(Subset(data, CHOSEN), [4, 0]), torch.nn.Flatten())
    assert part.paths == (names[11], names[3])
    assert part.labels.tolist() == [data.targets[11], data.targets[3]] and part.classes == (*"abc",)
    both = custom.photos_of(ConcatDataset([Subset(data, [0, 1]), Subset(data, [23])]),
                            torch.nn.Flatten())
    assert both.paths == (names[0], names[1], names[23]) and both.labels.tolist() == [0, 0, 2]
    twice = custom.photos_of(ConcatDataset([data, data]), torch.nn.Flatten())
    assert twice.paths == tuple(map(str, range(48)))


def items(data):
    if isinstance(data, DataLoader):
        return list(data)
    return [data[i] for i in range(len(data))]


def counted(model, data, **options):
    """How many of the items' own labels the model misses; what ``fault_rate`` counts."""
    found = custom.fault_rate(model, data, **options)
    with torch.no_grad():
        return sum(int(model(x[None]).argmax()) != y for x, y in items(data)), len(found.wrong)


class Mapped(ImageFolder):
    def __getitem__(self, i):
        x, label = super().__getitem__(i)
        return x, (label + 1) % 3


class Reversed(ImageFolder):
    def __getitem__(self, i):
        return super().__getitem__(len(self) - 1 - i)


class Turned(Subset):
    def __getitem__(self, i):
        x, label = super().__getitem__(len(self) - 1 - i)
        return x, (label + 1) % 3

    def __getitems__(self, places):
        return [self[i] for i in places]


class Joined(ConcatDataset):
    def __getitem__(self, i):
        return super().__getitem__((i + 1) % len(self))


def numbered(data):
    return not any("/" in path for path in custom.photos_of(data, torch.nn.Flatten()).paths)


@pytest.mark.parametrize("kind", [Mapped, Reversed])
def test_items_that_a_class_makes_otherwise_say_their_labels(tiny_model, folder, kind, caplog):
    of = images_of(folder).transform
    data = kind(folder, of)
    for given in (data, Subset(data, CHOSEN), ConcatDataset([data, images_of(folder)])):
        truth, found = counted(tiny_model(), given)
        assert truth == found and numbered(given)
    assert "items have other labels than the dataset's attributes say" in caplog.text
    assert dnnlib.rank(tiny_model(), data, "gini").sort_index()["label"].tolist() == [
        str(label) for _, label in items(data)]


@pytest.mark.parametrize("kind", [lambda data: Turned(data, range(24)),
                                  lambda data: Joined([data, images_of(data.root)]),
                                  lambda data: DataLoader(data, collate_fn=lambda items: (
                                      items[0][0], (items[0][1] + 1) % 3))])
def test_what_picks_or_joins_otherwise_too(tiny_model, folder, kind):
    data = kind(images_of(folder))
    truth, found = counted(tiny_model(), data)
    assert truth == found
    assert numbered(data) or isinstance(data, DataLoader)  # whose items keep their order


@pytest.mark.parametrize("change", [
    lambda data: data.samples.reverse(),
    lambda data: setattr(data, "samples", [(path, (y + 1) % 3) for path, y in data.samples]),
    lambda data: setattr(data, "target_transform", [2, 0, 1].__getitem__),
    lambda data: setattr(data, "target_transform", lambda y: torch.eye(3)[y].flip(0).argmax())])
def test_samples_that_changed_say_names_and_labels(tiny_model, folder, change):
    data = images_of(folder)
    change(data)
    photos = custom.photos_of(data, tiny_model())
    assert photos.labels.tolist() == [int(label) for _, label in data]
    assert photos.paths == tuple("/".join(path.split("/")[-2:]) for path, _ in data.samples)
    truth, found = counted(tiny_model(), data)
    assert found == truth
    if photos.paths[0][0] == "a":  # a number is that of an output, whatever the classes are called
        assert counted(tiny_model(), data, class_names=["c", "a", "b"])[1] == truth


def test_no_item_of_a_plain_folder_is_read_for_its_label(folder):
    read = []
    data = images_of(folder)
    data.loader = lambda path: read.append(path) or Image.open(path)
    custom.photos_of(data, torch.nn.Flatten())
    assert len(read) <= 1  # which shows whether the channels come last


def test_a_label_that_is_no_class_is_unknown(tiny_model, folder):
    data = images_of(folder)
    data.target_transform = lambda label: label + 0.5
    assert "label" not in dnnlib.rank(tiny_model(), data, "gini")
    with pytest.raises(ValueError, match="expected the class of every image, .*a/00.png"):
        custom.fault_rate(tiny_model(), data)


class Own(Dataset):
    """A dataset of one's own with these attributes; its items have labels if they are given."""

    def __init__(self, x, labels=None, **attributes):
        self.x, self.labels = x, labels
        vars(self).update(attributes)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] if self.labels is None else (self.x[i], self.labels[i])


@pytest.mark.parametrize("sample, named", [
    (lambda path, i: str(path), True), (lambda path, i: path, True),
    (lambda path, i: (path, i), True), (lambda path, i: "photos/a.png", False),
    (lambda path, i: {"file": str(path)}, False), (lambda path, i: i, False),
    (lambda path, i: (i, str(path)), False), (lambda path, i: np.zeros(2), False),
    (lambda path, i: (torch.zeros(1), 0), False)])
def test_samples_name_images_if_they_are_paths(tiny_model, x, folder, sample, named):
    paths = sorted(folder.rglob("*.png"))
    data = Own(x, root=str(folder), samples=[sample(path, i) for i, path in enumerate(paths)])
    found = dnnlib.rank(tiny_model(), data, "gini").sort_index()["path"].tolist()
    assert found == ([path.relative_to(folder).as_posix() for path in paths] if named
                     else [str(i) for i in range(24)])


def test_items_say_the_labels_that_a_dataset_of_ones_own_has_by_its_folders(tiny_model, x, folder):
    paths = sorted(folder.rglob("*.png"))
    labels = ["abc".index(path.parent.name) for path in paths]
    same, other = (Own(x, given, root=folder, samples=paths) for given in
                   (labels, [2 - label for label in labels]))
    assert not numbered(same) and numbered(other)
    for data in (same, other):
        truth, found = counted(tiny_model(), data)
        assert truth == found


def test_few_wrong_labels_among_many_cost_their_images(tiny_model, tiny_data):
    """Up to 256 items are asked before; each says its label when it is read."""
    x, y = tiny_data.images.repeat(18, 1, 1, 1)[:700], [i % 3 for i in range(700)]
    odd = [i for i in (301, 302, 502, 503) if i not in torch.linspace(0, 699, 256).long()][:2]
    targets = [(label + 1) % 3 if i in odd else label for i, label in enumerate(y)]
    data = Own(x, y, targets=targets, classes=[*"abc"])
    found = custom.fault_rate(tiny_model(), data)
    why = {str(i): f"has the label {y[i]} in the dataset's item, and {targets[i]} in its attributes"
           for i in odd}
    assert found.unread == why and found.images == 698
    assert dnnlib.rank(tiny_model(), data, "gini").attrs["unread"] == why
    with torch.no_grad():
        wrong = tiny_model()(x).argmax(1) != torch.tensor(y)
    wrong[odd] = False
    assert sorted(map(int, found.wrong)) == wrong.nonzero()[:, 0].tolist()


def test_names_that_only_labels_check_are_told(tiny_model, x, folder, caplog):
    paths = sorted(folder.rglob("*.png"))
    labels = ["abc".index(path.parent.name) for path in paths]
    for given, words in ((None, "not checked"), (labels, "checked by their labels only")):
        caplog.clear()
        data = Own(x, given, root=folder, samples=paths)
        assert not numbered(data) and caplog.text.rstrip().endswith(f"in this order was {words}")
    caplog.clear()
    assert numbered(Own(x, labels)) and not numbered(images_of(folder)) and not caplog.text


@pytest.mark.parametrize("kind", [
    list, lambda y: y.numpy(), lambda y: y.double(), lambda y: y[:, None], lambda y: [*y[:, None]],
    lambda y: torch.eye(3)[y], lambda y: [*torch.eye(3, dtype=torch.long)[y]],
    lambda y: ["abc"[i] for i in y], lambda y: pd.Series(["abc"[i] for i in y], range(9, 33)),
    lambda y: pd.Series(y.numpy(), range(100, 124)),
    lambda y: pd.Series(["abc"[i] for i in y], dtype="category")])
def test_targets_of_every_kind(tiny_model, x, kind):
    y = torch.arange(24) % 3
    photos = custom.photos_of(Own(x, targets=kind(y), classes=["a", "b", "c"]), tiny_model())
    assert torch.equal(photos.labels, y) and photos.labels.dtype == torch.int64
    assert photos.classes == ("a", "b", "c")
    by_items = custom.photos_of(Own(x, [*kind(y)], targets=[0] * 24, classes=["a", "b", "c"]),
                                tiny_model())
    assert torch.equal(by_items.labels, y) and by_items.classes == ()


@pytest.mark.parametrize("kind, came", [
    (lambda y: y + 1, "got 3"), (lambda y: y - 2, "got -2"), (lambda y: y / 2, "got 0.5"),
    (lambda y: ["xyz"[i] for i in y], "got 'x'"), (lambda y: torch.eye(4)[y], r"got shape \(24, 4"),
    (lambda y: torch.eye(3)[y] * 2, r"got shape \(24, 3"),
    (lambda y: [None] * 24, "got list of NoneType"), (lambda y: [[0]] + [[0, 1]] * 23, "got list of list")])
def test_targets_that_are_no_labels_are_named(tiny_model, x, kind, came):
    data = Own(x, targets=kind(torch.arange(24) % 3), classes=["a", "b", "c"])
    for run in (custom.fault_rate, lambda *given: dnnlib.rank(*given, "gini")):
        with pytest.raises(ValueError, match="labels: expected the class of each image, as a number "
                           r"from 0 to 2, a name \(a, b, c\) or a row with a 1, " + came):
            run(tiny_model(), data)


def test_labels_of_items_beyond_the_models_classes_are_named(tiny_model, x):
    data = Own(x, [*range(1, 25)], targets=[0] * 24, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="expected numbers from 0 to 2, .* the model, got 24"):
        custom.fault_rate(tiny_model(), data)


def test_an_item_that_cannot_be_read_costs_itself_when_labels_are_asked(tiny_model, folder):
    data = Mapped(folder, images_of(folder).transform)
    (folder / "b" / "01.png").write_bytes(b"torn")
    found = custom.fault_rate(tiny_model(), data)
    assert found.images == 23 and len(found.unread) == 1


# ---- loaders


@pytest.mark.parametrize("more", [
    {"sampler": SubsetRandomSampler(CHOSEN), "batch_size": 2}, {"sampler": CHOSEN},
    {"batch_sampler": BatchSampler(SubsetRandomSampler(CHOSEN), 2, False)},
    {"batch_sampler": [CHOSEN[:2], CHOSEN[2:]]}])
def test_a_sampler_chooses(tiny_model, scores, x, more):
    loader, before = DataLoader(TensorDataset(x), **more), torch.random.get_rng_state()
    photos = custom.photos_of(loader, tiny_model())
    assert torch.equal(torch.random.get_rng_state(), before)  # later draws are what they were
    table = dnnlib.rank(tiny_model(), photos, "gini").sort_index()
    assert table["path"].tolist() == [str(i) for i in sorted(CHOSEN)]
    assert table.index.tolist() == sorted(CHOSEN)  # places in the dataset
    assert np.allclose(table["gini_score"], scores(x)[sorted(CHOSEN)])


@pytest.mark.parametrize("more", [{"shuffle": True}, {"drop_last": True, "batch_size": 5}, {}])
def test_without_a_choice_all_are_taken(scores, x, more):
    assert np.allclose(scores(DataLoader(TensorDataset(x), **more)), scores(x))


def test_a_sampler_that_draws_again_is_refused(scores, x):
    data = TensorDataset(x)
    for sampler in (RandomSampler(data, replacement=True), [0, 1, 1]):
        with pytest.raises(ValueError, match="gives each image once.*give a Subset"):
            scores(DataLoader(data, sampler=sampler))


# ---- models, methods, shares, preparations


@pytest.mark.parametrize("run", [
    lambda model, x, folder: dnnlib.rank(model, x, "gini"),
    lambda model, x, folder: dnnlib.fuzz(model, x, folder / "run", by="noise", l2=1.0),
    lambda model, x, folder: custom.classifier(model, x)])
def test_a_function_is_no_model(run, x, tmp_path):
    def mine(x):
        return x.flatten(1)

    with pytest.raises(TypeError, match="model: expected a torch.nn.Module, got mine; wrap it"):
        run(mine, x, tmp_path)


def test_methods_in_a_list(tiny_model, x):
    table = dnnlib.rank(tiny_model(), x, ["gini", "pe"])
    assert [*custom.methods_of(table)] == ["gini", "pe"]
    with pytest.raises(ValueError, match="did you mean 'gini'"):
        dnnlib.rank(tiny_model(), x, ["ginni"])


def test_of_few_images_one_is_selected_by_default(tiny_model, x):
    assert dnnlib.rank(tiny_model(), x[:6], "gini")["gini_selected"].sum() == 1
    photos = custom.Photos(x[:8], tuple(f"{i % 3}/{i}" for i in range(8)))
    found = dnnlib.compare(tiny_model(), photos, "gini", resamples=10)
    assert found.selectors["rate"].unique().tolist() == [20]
    with pytest.raises(ValueError, match="5% of 6 candidates is none"):
        dnnlib.rank(tiny_model(), x[:6], "gini", top="5%")


def test_a_preparation_of_steps_can_be_sent():
    steps = [transforms.Resize(9), transforms.ToTensor(), transforms.Normalize([0.5], [0.25])]
    found = prepared(transforms.Compose(steps))
    picture = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.apply(picture), found.apply(picture))
    assert repr(again.transform) == repr(found.transform)
    nested = prepared(transforms.Compose([steps[0], transforms.Compose(steps[1:])]))
    assert (nested.mean, nested.std) == (found.mean, found.std) == ((0.5,), (0.25,))
    assert np.array_equal(nested.apply(picture), found.apply(picture))
