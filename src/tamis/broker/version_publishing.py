"""Publishes the set of subscriptions as versions, for a Spark stream that matches by them."""

from __future__ import annotations

from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from tamis.live.chores import Chore
from tamis.versions.store import IndexStore, Retention

if TYPE_CHECKING:
    from tamis.live import LiveIndex

# A stream that was stopped runs its last batch again with the version of that batch.
RETENTION: Final = Retention(versions=10, replaced_within=timedelta(days=1))
_MOST_PAUSE: Final = 300.0  # seconds after failures in a row


class VersionPublisher:
    """The thread. A version is published when the set has changed, but not too often."""

    def __init__(self, live: LiveIndex, target: str | None, every: float) -> None:
        """`every` is in seconds; without a target, nothing is published."""
        self._live = live
        self._target = target
        self._every = every
        self._closing = Event()
        self._chore = Chore(
            self._publish_changed, self._describe_outlook, self._closing.is_set, every, _MOST_PAUSE
        )
        self._change: int | None = None
        self._version: str | None = None
        self._thread: Thread | None = None
        if target is not None:
            self._thread = Thread(target=self._run, name="tamis-versions", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread, after the version that it is publishing."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def describe(self) -> dict[str, Any]:
        """The last version, and failures."""
        return {
            "version": self._version,
            "change": self._change,
            "n_failures": self._chore.n_failures,
            "last_failure": self._chore.last_failure,
        }

    def publish(self) -> str:
        """Publish the set now; returns the name of the version."""
        assert self._target is not None
        change = self._live.change
        store = IndexStore(self._target)
        self._version = self._live.publish(store).name
        self._change = change
        store.prune(RETENTION)
        return self._version

    def _run(self) -> None:
        while True:
            self._chore.run()
            if self._closing.wait(self._every):
                return

    def _publish_changed(self) -> bool:
        if self._change != self._live.change:
            self.publish()
        return False

    def _describe_outlook(self) -> str:
        return "the stream matches by the version before until the next one can be published"
