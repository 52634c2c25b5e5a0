"""Networks trained by recipe, faulty networks, and networks trained again on what was generated."""

from dnnbook.training.borrowed import PRETRAINED, pretrained
from dnnbook.training.loop import fit, fitted, others, trained
from dnnbook.training.recipes import RECIPES, Recipe, recipe

__all__ = ["PRETRAINED", "RECIPES", "Recipe", "fit", "fitted", "others", "pretrained", "recipe",
           "trained"]
