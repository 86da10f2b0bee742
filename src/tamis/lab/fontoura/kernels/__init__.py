"""Kernels of Fontoura's algorithms."""
