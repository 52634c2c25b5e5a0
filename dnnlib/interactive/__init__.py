"""Figures of a page that the reader can move, made from the network and the data of the page."""

from dnnlib.interactive.block import Block
from dnnlib.interactive.distances import distance_slider
from dnnlib.interactive.game import label_game
from dnnlib.interactive.lighting import lighting_up
from dnnlib.interactive.movie import swarm_movie
from dnnlib.interactive.networks import runs
from dnnlib.interactive.painter import patch_painter

__all__ = ["Block", "distance_slider", "label_game", "lighting_up", "patch_painter", "runs",
           "swarm_movie"]
