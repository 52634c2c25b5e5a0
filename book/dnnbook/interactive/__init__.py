"""Figures of a page that the reader can move, made from the network and the data of the page."""

from dnnbook.interactive.block import Block
from dnnbook.interactive.distances import distance_slider
from dnnbook.interactive.game import label_game
from dnnbook.interactive.ground import swarm_ground
from dnnbook.interactive.lighting import lighting_up
from dnnbook.interactive.movie import swarm_movie
from dnnbook.interactive.networks import runs
from dnnbook.interactive.painter import patch_painter

__all__ = ["Block", "distance_slider", "label_game", "lighting_up", "patch_painter", "runs",
           "swarm_ground", "swarm_movie"]
