"""Faults: failed calls, reported with the affected subscriptions; and the circuit breaker."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_IDS: Final = 1_000  # affected subscriptions listed with a fault


class FaultKind(StrEnum):
    """The reason why a call has no answer."""

    RAISED = "raised"
    TIMEOUT = "timeout"
    WRONG_TYPE = "wrong-type"
    BUDGET = "budget"  # more calls, bindings or substitutions than the limit for an event
    BREAKER = "breaker"  # not called: it failed too often


@dataclass(slots=True)
class Fault:
    """One kind of fault of one call: its count, the first reason, and the undecided
    subscriptions.
    """

    call: str
    kind: FaultKind
    message: str  # of the first
    n_events: int = 0
    subscription_ids: dict[str, None] = field(default_factory=dict)  # in order, at most MOST_IDS

    def to_dict(self) -> dict[str, Any]:
        """The fault as a dictionary of JSON values."""
        return {
            "call": self.call,
            "kind": str(self.kind),
            "message": self.message,
            "n_events": self.n_events,
            "subscription_ids": list(self.subscription_ids),
        }


def describe_error(error: BaseException) -> str:
    """The text of an error, if it can be obtained."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


class FaultReport:
    """All faults so far, by call and kind. Threads share it."""

    def __init__(self) -> None:
        self._faults: dict[tuple[str, FaultKind], Fault] = {}
        self._lock = threading.Lock()

    def add(self, call: str, kind: FaultKind, message: str, ids: Iterable[str]) -> None:
        """Count one fault of one event."""
        with self._lock:
            fault = self._faults.setdefault((call, kind), Fault(call, kind, message))
            fault.n_events += 1
            for subscription_id in ids:
                if len(fault.subscription_ids) >= MOST_IDS:
                    break
                fault.subscription_ids[subscription_id] = None

    def merge(self, other: Fault) -> None:
        """Add a fault that another process counted."""
        with self._lock:
            key = (other.call, other.kind)
            fault = self._faults.setdefault(key, Fault(other.call, other.kind, other.message))
            fault.n_events += other.n_events
            n_more = MOST_IDS - len(fault.subscription_ids)
            fault.subscription_ids.update(dict.fromkeys(list(other.subscription_ids)[:n_more]))

    @property
    def faults(self) -> list[Fault]:
        """The faults, in the order in which they were first seen."""
        with self._lock:
            return list(self._faults.values())

    def take(self) -> list[Fault]:
        """Return the faults and clear them."""
        with self._lock:
            taken, self._faults = self._faults, {}
            return list(taken.values())


class Breaker:
    """Stops calls of an operator that failed too often in a row; allows them again after a
    while.
    """

    def __init__(
        self, most_faults: int, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most_faults, self._pause, self._clock = most_faults, pause, clock
        self._n_faults = 0
        self._closed_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are blocked now."""
        return self._n_faults >= self._most_faults and self._clock() < self._closed_until

    def count_call(self, *, is_fault: bool) -> None:
        """Count a call that was made."""
        if not is_fault:
            self._n_faults = 0
            return
        self._n_faults += 1
        if self._n_faults >= self._most_faults:
            self._closed_until = self._clock() + self._pause
