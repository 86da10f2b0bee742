"""Matching with Liu's schedules in the place of the product's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tamis.lab.liu import SCHEDULES, make_schedule

if TYPE_CHECKING:
    import pytest

__all__ = ["SCHEDULES", "use_schedule"]


def use_schedule(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let indexes that have not matched yet make their calls by this schedule."""
    monkeypatch.setattr("tamis.operators.phase.make_schedule", partial(make_schedule, name))
