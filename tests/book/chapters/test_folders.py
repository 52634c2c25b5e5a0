import pytest
import torch
from torchvision.datasets import FashionMNIST
from torchvision.models import get_model_weights

from dnnbook.chapters import folders
from dnnbook.data import Dataset, load
from dnnlib import inference
from dnnlib.custom import example


def test_a_command_that_fails_shows_its_reason_and_not_its_words(tmp_path):
    with pytest.raises(RuntimeError) as failed:
        folders.command(tmp_path, "rank", {"by": "gini", "outputs": "none.npy"})
    assert str(failed.value).startswith("dnnlib rank ended with exit code 1: ")
    assert "none.npy" in str(failed.value) and "--by" not in str(failed.value)


def test_a_command_that_is_run_again_says_the_same(tmp_path):
    example.write(work := tmp_path / "work")
    options = {"model": example.MODEL, "weights": example.WEIGHTS, "images": "digits",
               "by": "noise", "l2": 2.0, "limit": 3, "out": "failures"}
    assert folders.command(work, "fuzz", options) == folders.command(work, "fuzz", options)


CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
wardrobe whale willow_tree wolf woman worm"""


def real_names(dataset):
    if dataset == "imagenet":  # "academic gown", "crane" twice
        return tuple(get_model_weights("resnet18").DEFAULT.meta["categories"])
    if dataset == "cifar100":
        return tuple(CIFAR100.split())
    return {"fashion_mnist": tuple(FashionMNIST.classes), "mnist": tuple("0123456789"),
            "cifar10": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
                        "ship", "truck")}[dataset]


@pytest.mark.parametrize("dataset", ["mnist", "fashion_mnist", "cifar10", "cifar100", "imagenet"])
def test_a_network_has_the_same_accuracy_on_the_files(dataset, tmp_path):
    names = real_names(dataset)
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(256, (2 * len(names), 1, 4, 4), generator=draw) / 255
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, len(names)))
    right = model(images).argmax(1)
    labels = torch.cat([torch.arange(len(names)), right[len(names):]])  # every class, half right
    data = Dataset(dataset, "test", images, labels, names, "")
    before = inference.accuracy(model, data.images, data.labels)
    folder = folders.save_photos(data, tmp_path / "photos")
    assert {path.parent.parent for path in folder.rglob("*.png")} == {folder}
    back = load(str(folder))
    assert before > 0 and inference.accuracy(model, back.images, back.labels) == before
    assert list(back.classes) == folders.named(names)
