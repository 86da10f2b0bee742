"""Loops over flat arrays: the state of one event, and the choice of the next call."""
