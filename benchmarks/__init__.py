"""Benchmarks: one module per question, `bench_<name>.py`, run by `python -m benchmarks`.

A module has a `TITLE` and a function `run() -> list[dict[str, Any]]`: the rows of its table.
"""
