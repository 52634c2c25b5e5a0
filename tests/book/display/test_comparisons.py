"""Which setting of a rival stands in a comparison."""

import pandas as pd

from dnnbook.display.comparisons import at_best, of_rivals, sizes

ROWS = pd.DataFrame(
    [("lenet1", "dlfuzz", "paper", 1.0), ("lenet1", "dlfuzz", "best", 2.0),
     ("lenet1", "dlfuzz", "rare", 9.0), ("lenet5", "dlfuzz", "paper", 3.0),
     ("lenet5", "noise", None, 4.0)], columns=["model", "fuzzer", "setting", "value"])


def test_the_best_setting_stands_where_it_was_run_else_the_papers():
    assert at_best(ROWS, "model")["value"].tolist() == [2.0, 3.0, 4.0]


def test_what_deepsensor_leads_by_hides_none_of_its_own_rows():
    rows = pd.DataFrame([("deepsensor", None, "asr", 1.0), ("deepsensor", "paper", "asr_lead", 2.0),
                         ("deepsensor", "best", "asr_lead", 3.0), ("dlfuzz", "best", "asr", 4.0),
                         ("dlfuzz", None, "asr", 5.0)],
                        columns=["fuzzer", "setting", "quantity", "value"])
    assert at_best(rows)["value"].tolist() == [1.0, 3.0, 4.0]


def test_the_words_say_which_settings_were_found():
    found = at_best(ROWS, "model")
    assert "that alone was run" in of_rivals(found)
    assert of_rivals(found[found["model"] == "lenet5"]) == "in the paper's setting"
    assert of_rivals(found[found["model"] == "lenet1"]) == "in the best of their authors' settings"


def test_records_without_settings_stay_as_they_are():
    assert len(at_best(ROWS.drop(columns="setting"), "model")) == len(ROWS)


def test_networks_of_the_same_sizes_share_a_line():
    rows = pd.DataFrame({"dataset": "mnist", "model": ["lenet1", "lenet5"], "seeds_count": 10,
                         "seed": 0})
    assert sizes(rows) == "LeNet-1 on MNIST and LeNet-5 on MNIST: 10 inputs, 1 random seed"


def test_sizes_say_which_networks_others_trained():
    rows = pd.DataFrame({"dataset": ["cifar10", "imagenet", "mnist"],
                         "model": ["resnet20", "mobilenet", "lenet5"],
                         "recipe": ["pretrained", "pretrained", "default"], "seeds_count": 10})
    assert sizes(rows) == ("ResNet-20 (trained by others) on CIFAR-10, MobileNet (of width 0.75, "
                           "trained by others) on ImageNet and LeNet-5 on MNIST: 10 inputs")
