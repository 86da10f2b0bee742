"""Kernels that the lab's machines share."""
