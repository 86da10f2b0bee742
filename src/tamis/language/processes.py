"""Distributes chunks of rows over processes and returns the results in order."""

from __future__ import annotations

import signal
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from tamis.errors import TamisError
from tamis.text.registered import add_definitions, all_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from tamis.text.registered import Definition

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

CHUNKS_AHEAD: Final = 4  # per process: enough to keep it busy, few enough to stream


def map_chunks(
    function: Callable[[Chunk], Result], chunks: Iterable[Chunk], processes: int
) -> Iterator[Result]:
    """The results of the function for each chunk, in order.

    With more than one process, the function and the chunks are sent to them, and some chunks are
    processed ahead of the one whose result is returned.
    """
    if processes <= 1:
        yield from map(function, chunks)
        return
    # Imported here: this import takes longer than the rest of the package.
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Spawned, not forked: the caller may hold threads (Arrow, Spark) that a fork would break.
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(
        processes, mp_context=spawn, initializer=_start, initargs=(all_definitions(),)
    )
    pending: deque[Future[Result]] = deque()
    try:
        for chunk in chunks:
            pending.append(pool.submit(function, chunk))
            if len(pending) >= CHUNKS_AHEAD * processes:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise TamisError(
            "a process that reads expressions ended unexpectedly",
            hint="it may have run out of memory; try fewer processes",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(analysers: tuple[Definition, ...]) -> None:
    # Ctrl-C reaches every process of a terminal; only the first one should react.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    add_definitions(analysers)
