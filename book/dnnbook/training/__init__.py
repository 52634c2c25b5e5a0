"""Networks trained by recipe, faulty networks, and networks trained again on what was generated."""

from dnnbook.training.loop import fit, fitted, others, pretrained, trained
from dnnbook.training.recipes import RECIPES, Recipe, recipe

__all__ = ["RECIPES", "Recipe", "fit", "fitted", "others", "pretrained", "recipe", "trained"]
