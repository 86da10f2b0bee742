"""What a match server has and does, as numbers: for metrics, and for people."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tamis.broker.match_server import MatchServer

SHOWN_IDS: Final = 10  # subscriptions that are listed with a fault


def describe_state(server: MatchServer) -> dict[str, Any]:
    """All numbers, as JSON values."""
    return {
        "role": "follower" if server.is_follower else "writer",
        "uptime_seconds": time.monotonic() - server.opened_at,
        "published": asdict(server.publisher.counts),
        "set": _describe_set(server),
        "archive": server.archive.stats(),
        "operators": _describe_operators(server),
        "audit": server.auditor.describe(),
        "intake": None if server.intake is None else server.intake.stats(),
        "taken": None if server.taker is None else server.taker.describe(),
        "versions": server.versions.describe(),
    }


def _describe_set(server: MatchServer) -> dict[str, Any]:
    live = server.live.stats()
    parts = live.parts
    n_shown, n_hidden = sum(own.n_shown for own in parts), sum(own.n_hidden for own in parts)
    largest = max((own.n_shown for own in parts), default=0)
    return {
        "change": server.live.change,
        "store_change": server.live.store.last_change,  # a follower is a moment behind
        "subscriptions": n_shown,
        "hidden": n_hidden,
        "hidden_share": n_hidden / max(1, n_shown + n_hidden),
        "overlay_share": (n_shown - largest) / max(1, n_shown),  # outside of the largest part
        "merges": live.n_merges,
        "saved_change": live.saved_change,
        "background_failures": live.n_failures,
        "last_background_failure": live.last_failure,
        "parts": [{"subscriptions": own.n_shown, "hidden": own.n_hidden} for own in parts],
    }


def _describe_operators(server: MatchServer) -> dict[str, Any]:
    operators = server.live.operators
    calls: defaultdict[str, dict[str, float]] = defaultdict(
        lambda: {"calls": 0.0, "true": 0.0, "seconds": 0.0, "distinct_calls": 0}
    )
    for text, own in operators.statistics.items():
        found = calls[text.partition("(")[0]]
        found["distinct_calls"] += 1
        for name in ("calls", "true", "seconds"):
            found[name] += own[name]
    return {
        "by_name": dict(calls),
        "blocked": operators.blocked,
        "abandoned": operators.abandoned,
        "faults": [_describe_fault(fault.to_dict()) for fault in operators.faults],
    }


def _describe_fault(fault: dict[str, Any]) -> dict[str, Any]:
    ids = fault["subscription_ids"]
    return {**fault, "n_subscriptions": len(ids), "subscription_ids": ids[:SHOWN_IDS]}
