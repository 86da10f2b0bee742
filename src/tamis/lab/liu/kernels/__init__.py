"""Kernels of Liu's schedules."""
