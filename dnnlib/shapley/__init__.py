"""Neurons as players: Shapley values of neurons, and excitable neurons (the second DeepSensor)."""

from dnnlib.shapley.estimators import (ESTIMATORS, Cooperative, Shapley, diagonal, exact,
                                       leave_one_out, nodes, permutation)
from dnnlib.shapley.game import SCALES, Game, excitable

__all__ = ["ESTIMATORS", "SCALES", "Cooperative", "Game", "Shapley", "diagonal", "exact",
           "excitable", "leave_one_out", "nodes", "permutation"]
