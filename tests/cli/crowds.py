"""Operators for tests, as a module that a shell names."""

from __future__ import annotations

import tamis


@tamis.operator("crowd_size(?integer)", reads=["sizes"])
def crowd_size(event):
    return event["sizes"]


@tamis.operator("share_of(?double)", reads=["share"])
def share_of(event):
    return None if event.get("share") is None else float(event["share"])
