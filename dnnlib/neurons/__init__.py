"""Neurons: what one is, recording and switching them, how sensitive or excitable each is."""
