"""A live index that another process changes: read-only, and a moment behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from tamis.arguments import expect_path
from tamis.errors import HistoryError, InputError
from tamis.language.limits import NO_LIMITS
from tamis.live import checkpoints
from tamis.live.chores import Chore
from tamis.live.looking import LiveReader
from tamis.live.opening import find_store, open_set, read_settings, read_types
from tamis.live.stats import LiveStats, part_stats
from tamis.match.operators import read_registry
from tamis.operators.registry import REGISTRY
from tamis.places import LIVE, holds_versions
from tamis.subscriptions import SubscriptionStore
from tamis.versions import open_index

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from datetime import datetime

    from tamis.live.live_set import LiveSet
    from tamis.live.settings import Settings

INTERVAL: Final = 0.05  # seconds between two looks at the log
MOST_PAUSE: Final = 5.0  # seconds after failures in a row
AT_ONCE: Final = 10_000  # changes
MANY_PARTS: Final = 12  # when there are so many more parts, those of a saved version are taken


class Follower(LiveReader):
    """Answers like the `LiveIndex` that it follows, as of the last change that it has read."""

    def __init__(
        self, folder: Path, store: SubscriptionStore, settings: Settings, registry: Any
    ) -> None:
        """Use `follow`."""
        self.rejects = []
        self.place = None
        self._folder = folder.absolute()  # the working directory may change
        self._store = store
        self._registry = registry
        self._settings = settings
        self._epoch = store.epoch
        self._lock = Lock()
        self._written: tuple[int, int] | None = None  # of the settings that were read
        self._current = open_set(self._folder, store, settings, None).live_set
        self._most_parts = len(self._current.parts) + MANY_PARTS
        self.view = self._make_view(self._current, None)
        if registry is not None:
            self.operators.expect_all()
        self._closing = Event()
        self._thread: Thread | None = None
        self._chore = Chore(
            self._read_more, self._describe_outlook, self._closing.is_set, INTERVAL, MOST_PAUSE
        )

    @property
    def _live_set(self) -> LiveSet:
        return self._current

    def refresh(self) -> int:
        """Read the changes so far; returns the number of the last one.

        If the log no longer has them, or the store has another history, the set is read again from
        a saved version and the store.
        """
        with self._lock:
            try:
                found = self._advance(self._current)
            except HistoryError:
                epoch = self._store.epoch  # before the set: it may change again meanwhile
                found = open_set(self._folder, self._store, self._settings, None).live_set
                self._epoch = epoch  # not before: the old set must not get changes of this history
            if len(found.parts) > self._most_parts:
                found = self._tidied(found)
                self._most_parts = len(found.parts) + MANY_PARTS
            if found is not self._current:
                self._current = found
                self.view = self._make_view(found, self.view)
            return found.change

    def _advance(self, live_set: LiveSet) -> LiveSet:
        while changes := self._store.changes(
            after=live_set.change, limit=AT_ONCE, epoch=self._epoch
        ):
            # After the changes: those that were read with new types come after these.
            live_set = self._with_types(live_set).apply(changes)
        return self._with_types(live_set)

    def _with_types(self, live_set: LiveSet) -> LiveSet:
        """The set with the types that the other process has stored."""
        if (written := _find_written(self._folder)) == self._written:
            return live_set
        self._settings = read_types(self._folder, self._settings)
        # Also the set that answers: this one is dropped if its changes cannot be read.
        self._current = _retyped(self._current, self._settings)
        self._written = written
        return _retyped(live_set, self._settings)

    def _tidied(self, live_set: LiveSet) -> LiveSet:
        """The same set with the parts of a saved version, if that has fewer."""
        saved = checkpoints.load(self._folder, self._store, self._settings)
        if saved is None:
            return live_set
        saved = self._advance(saved)
        return saved if len(saved.parts) < len(live_set.parts) else live_set

    def stats(self) -> LiveStats:
        """The parts, and the failures to read changes; another process merges and saves them."""
        return LiveStats(
            self.change,
            checkpoints.find_saved_change(self._folder, self._epoch),
            part_stats(self._current),
            0,
            self._chore.n_failures,
            self._chore.last_failure,
        )

    def start(self) -> None:
        """Read changes in the background, as they come."""
        self._thread = Thread(target=self._run, name="tamis-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(INTERVAL):
            self._chore.run()

    def _read_more(self) -> bool:
        self.refresh()
        return False

    def _describe_outlook(self) -> str:
        return f"answers are as of change {self.change} until it can be read"

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

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError("a follower cannot be pickled", hint="open it where it is needed")


def _retyped(live_set: LiveSet, known: Settings) -> LiveSet:
    return replace(live_set, settings=live_set.settings.with_types(known))


def _find_written(folder: Path) -> tuple[int, int]:
    """What differs when the settings of the set were written again; they are replaced whole."""
    try:
        found = (folder / LIVE).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def follow(
    folder: str | os.PathLike[str],
    *,
    store: str | None = None,
    operators: Any = (),
    clock: Callable[[], datetime] | None = None,
    is_started: bool = True,
) -> Follower:
    """Follow the live index in a folder, which another process has open.

    `store` is the address of its PostgreSQL database, by default the one that the folder names.
    Without `is_started`, changes are read only by `refresh`.
    """
    expect_path(folder)
    path = Path(folder)
    registry = read_registry(operators)
    options: dict[str, Any] = {} if clock is None else {"clock": clock}
    opened = SubscriptionStore.open(find_store(path, store), read_only=True, **options)
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
