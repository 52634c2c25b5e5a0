"""Ways to change an input, and whether the prediction changes with it."""
