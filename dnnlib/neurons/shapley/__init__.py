"""Neurons as players of a game, and estimators of their Shapley values (second DeepSensor)."""

from dnnlib.neurons.shapley.estimators import (
                                               Cooperative,
                                               Shapley,
                                               diagonal,
                                               exact,
                                               leave_one_out,
                                               nodes,
                                               permutation,
)
from dnnlib.neurons.shapley.game import Game

__all__ = ["Cooperative", "Game", "Shapley", "diagonal", "exact", "leave_one_out", "nodes",
           "permutation"]
