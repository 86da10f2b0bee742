"""Kernels of the encoder: text to values, values to codes, columns to rows."""
