"""Shared by all kernels: compilation, and prefetching of memory."""
