"""The hot loops, compiled by Numba."""
