"""Operators for tests, as a module that a shell names."""

from __future__ import annotations

import tamis


@tamis.operator("mobs(?integer)", reads=["sizes"])
def mobs(event):
    return event["sizes"]


@tamis.operator("share_of(?double)", reads=["share"])
def share_of(event):
    return None if event.get("share") is None else float(event["share"])
