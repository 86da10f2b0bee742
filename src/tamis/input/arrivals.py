"""Rows of a pipe in batches as they arrive: full batches from a fast pipe, single rows from a slow
one, and never more than fit in memory.
"""

from __future__ import annotations

from queue import Empty, Queue
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from tamis.input.batches import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")

LINGER_SECONDS: Final = 0.05  # how long a batch waits to be filled


class _Arrived(NamedTuple, Generic[Item]):
    item: Item
    n_bytes: int


def batched_as_they_come(
    items: Iterable[Item],
    n_items: int,
    weigh: Callable[[Item], int],
    linger: float = LINGER_SECONDS,
) -> Iterator[list[Item]]:
    """Like `batches.batched`, but a batch waits only briefly to be filled."""
    arrived: Queue[_Arrived[Item] | BaseException | None] = Queue(2 * n_items)
    waiting = _Waiting()

    def read() -> None:
        try:
            for item in items:
                n_bytes = weigh(item)
                waiting.add(n_bytes)
                arrived.put(_Arrived(item, n_bytes))
            arrived.put(None)
        except BaseException as error:  # raised where the items are consumed
            arrived.put(error)

    # A daemon thread: an endless pipe must not keep the program from exiting.
    Thread(target=read, daemon=True).start()
    is_open = True
    while is_open:
        batch: list[Item] = []
        n_bytes = 0
        next_one = arrived.get()
        until = monotonic() + linger
        while isinstance(next_one, _Arrived):
            batch.append(next_one.item)
            waiting.take(next_one.n_bytes)
            n_bytes += next_one.n_bytes
            if len(batch) == n_items or n_bytes >= MOST_BYTES:
                break
            try:
                next_one = arrived.get(timeout=max(0, until - monotonic()))
            except Empty:
                break
        else:
            is_open = False
        if batch:
            yield batch
        if isinstance(next_one, BaseException):
            raise next_one


class _Waiting:
    """The bytes that have arrived and are not yet consumed; producers wait beyond a limit."""

    def __init__(self) -> None:
        self._n_bytes = 0
        self._changed = Condition()

    def add(self, n_bytes: int) -> None:
        """Wait until there is room for this many more, or nothing is stored."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_bytes + n_bytes <= max(MOST_BYTES, n_bytes))
            self._n_bytes += n_bytes

    def take(self, n_bytes: int) -> None:
        """Make room for more."""
        with self._changed:
            self._n_bytes -= n_bytes
            self._changed.notify()
