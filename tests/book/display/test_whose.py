import io
import re

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from dnnbook.chapters.experiments import Experiment
from dnnbook.display import whose


def words(figure):
    return [text.get_text() for text in figure.texts]


def test_a_figure_says_whose_it_is_below_its_axes():
    figure = whose.signed(Figure(), whose.RECORDS)
    text, = figure.texts
    assert words(figure) == ["from the book's records"] and text.get_position() == (1, 0)
    assert text.get_va() == "top" and not text.get_parse_math()


def test_an_experiment_signs_the_figures_of_a_cell():
    run = Experiment("toy/luck", "embedded", dataset="digits", model_name="lenet1", seed=3)
    try:
        figures = [plt.figure(), plt.figure()]
        run.show()
        assert [words(figure) for figure in figures] == 2 * [["this run: digits, LeNet-1, seed 3"]]
        plt.close("all")
        figure = plt.figure()
        run.show(recorded=True)
        assert words(figure) == [whose.RECORDS]
    finally:
        plt.close("all")


def test_an_experiment_names_what_is_not_as_its_chapter_has_it():
    given = {"dataset": "mnist_small", "model_name": "lenet5", "seed": 0, "trials": 50, "repeats": 10, "inputs": 50,
             "side": 2, "one_class": True}
    assert str(Experiment("nsatp/motivation", "embedded", **given)) == "this run: MNIST (small), LeNet-5, seed 0"
    changed = Experiment("nsatp/motivation", "embedded", **given | {"trials": 7, "one_class": False})
    assert re.fullmatch(r".*, seed 0, .*7, .*False", str(changed))
    assert len(words(whose.signed(Figure(figsize=(4, 2)), 30 * "a word "))[0].split("\n")) > 1  # within the figure


def test_a_legend_below_the_axes_stays_above_the_words():
    figure = Figure(figsize=(4, 2), layout="constrained")
    axis = figure.subplots()
    axis.plot([0, 1], label="a line")
    figure.legend(loc="outside lower center", facecolor="red", framealpha=1)
    picture = io.BytesIO()
    whose.signed(figure, whose.RECORDS).savefig(picture, format="png", bbox_inches="tight", facecolor="white")
    pixels = plt.imread(io.BytesIO(picture.getvalue()))[..., :3]
    red = (pixels[..., 0] > 0.9) & (pixels[..., 1:] < 0.1).all(2)
    dark = (pixels < 0.9).all(2)
    below = np.flatnonzero(dark.any(1)).max() - np.flatnonzero(red.any(1)).max()
    assert below > 5  # the words are lower than the legend
