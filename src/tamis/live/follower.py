"""A live index that another process changes: read-only, and a moment behind."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from tamis.arguments import expect_path
from tamis.errors import HistoryError, InputError, TamisError, warn
from tamis.language.limits import NO_LIMITS
from tamis.live import checkpoints
from tamis.live.opening import find_store, open_set, read_settings
from tamis.match.index import Index
from tamis.match.operators import read_registry
from tamis.match.view import View
from tamis.operators.registry import REGISTRY
from tamis.places import holds_versions
from tamis.subscriptions import SubscriptionStore
from tamis.versions import open_index

if TYPE_CHECKING:
    import os
    from datetime import datetime

    from tamis.live.live_set import LiveSet
    from tamis.live.settings import Settings

INTERVAL: Final = 0.05  # seconds between two looks at the log
AT_ONCE: Final = 10_000  # changes
MANY_PARTS: Final = 12  # more parts than this are replaced by those of a saved version


class Follower(Index):
    """Answers like the `LiveIndex` that it follows, as of the last change that it has read."""

    def __init__(
        self, folder: Path, store: SubscriptionStore, settings: Settings, registry: Any
    ) -> None:
        """Use `follow`."""
        self.rejects = []
        self.place = None
        self._folder = folder
        self._store = store
        self._registry = registry
        self._settings = settings
        self._epoch = store.epoch
        self._lock = Lock()
        self._current = open_set(folder, store, settings, None).live_set
        self.view = self._make_view(None)
        if registry is not None:
            self.operators.expect_all()
        self._closing = Event()
        self._thread: Thread | None = None

    @property
    def change(self) -> int:
        """The number of the last change that the next match sees."""
        return self._current.change

    def refresh(self) -> int:
        """Read the changes so far; returns the number of the last one.

        If the log no longer has them, or the store has another history, the set is read again from
        a saved version and the store.
        """
        with self._lock:
            try:
                found = self._advance(self._current)
            except HistoryError:
                self._epoch = self._store.epoch
                found = open_set(self._folder, self._store, self._settings, None).live_set
            if len(found.parts) > MANY_PARTS:
                found = self._tidied(found)
            if found is not self._current:
                self._current = found
                self.view = self._make_view(self.view)
            return found.change

    def _advance(self, live_set: LiveSet) -> LiveSet:
        while changes := self._store.changes(
            after=live_set.change, limit=AT_ONCE, epoch=self._epoch
        ):
            live_set = live_set.apply(changes)
        return live_set

    def _tidied(self, live_set: LiveSet) -> LiveSet:
        """The same set with the parts of a saved version, if that has fewer."""
        saved = checkpoints.load(self._folder, self._store, self._settings)
        if saved is None:
            return live_set
        saved = self._advance(saved)
        return saved if len(saved.parts) < len(live_set.parts) else live_set

    def start(self) -> None:
        """Read changes in the background, as they come."""
        self._thread = Thread(target=self._run, name="tamis-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        was_reported = False
        while not self._closing.wait(INTERVAL):
            try:
                self.refresh()
                was_reported = False
            except (TamisError, OSError) as error:
                if not was_reported and not self._closing.is_set():
                    warn(f"{error}; answers are as of change {self.change} until it can be read")
                was_reported = True

    def close(self) -> None:
        """Stop following."""
        if not self.__dict__:
            return
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self._store.close()
        super().close()

    def save(self, *args: Any, **options: Any) -> None:
        """A follower is not saved: the index that it follows is."""
        raise InputError(
            "a follower is not saved", hint="publish the live index that it follows: live.publish"
        )

    def _make_view(self, like: View | None) -> View:
        parts = self._current.index_parts()
        return View(parts, self._registry, clock=self._read_clock, like=like)

    def _read_clock(self) -> datetime:
        return self._store.moment

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError("a follower cannot be pickled", hint="open it where it is needed")


def follow(
    folder: str | os.PathLike[str],
    *,
    store: str | None = None,
    operators: Any = (),
    is_started: bool = True,
) -> Follower:
    """Follow the live index in a folder, which another process has open.

    `store` is the address of its PostgreSQL database, by default the one that the folder names.
    Without `is_started`, changes are read only by `refresh`.
    """
    expect_path(folder)
    path = Path(folder)
    registry = read_registry(operators)
    opened = SubscriptionStore.open(find_store(path, store), read_only=True)
    try:
        # Without operators it answers nothing that calls them, but their calls can be read.
        signatures = (REGISTRY if registry is None else registry).signatures
        settings = read_settings(path, None, None, NO_LIMITS, tuple(signatures), is_created=False)
        follower = Follower(path, opened, settings, registry)
    except BaseException:
        opened.close()
        raise
    if is_started:
        follower.start()
    return follower


def follow_checked(
    folder: str | os.PathLike[str], *, operators: Any, trusted: bool, key: str | bytes | None
) -> Follower:
    """As `follow`, for an index that may come from elsewhere: its saved parts are checked first."""
    if key is not None:
        raise InputError(
            f"{folder} is a live index, which is not signed",
            hint="leave out the key",
        )
    if not trusted and holds_versions(folder):
        open_index(folder, None, trusted=False, operators=None).close()
    return follow(folder, operators=operators)
