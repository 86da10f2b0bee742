"""Kernels shared by the lab's machines."""
