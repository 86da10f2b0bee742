"""The states of webhooks, of dead letters and of sources."""

from __future__ import annotations

from enum import StrEnum


class WebhookState(StrEnum):
    """Whether events are sent."""

    ACTIVE = "active"
    PAUSED = "paused"  # by its owner
    DISABLED = "disabled"  # by the server, for a reason


class LetterState(StrEnum):
    """Whether a dead letter is sent again."""

    DEAD = "dead"
    QUEUED = "queued"


class SourceState(StrEnum):
    """Whether a feed is read."""

    ACTIVE = "active"
    PAUSED = "paused"  # by an administrator
    GONE = "gone"  # its server says that it no longer exists
    MOVED = "moved"  # to the address of another source
