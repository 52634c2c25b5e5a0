"""Networks trained by recipe, faulty networks, and networks trained again on what was generated."""

from dnnlib.training.loop import fit, fitted, others, pretrained, trained
from dnnlib.training.recipes import RECIPES, Recipe, recipe

__all__ = ["RECIPES", "Recipe", "fit", "fitted", "others", "pretrained", "recipe", "trained"]
