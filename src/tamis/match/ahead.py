"""Work for several threads, ahead of the caller: the results come in order."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ahead(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """The results for all items, in order, computed by the given number of threads.

    The caller's thread takes the items. If taking one raises an error, the results of the items
    before it come first. With one thread, each item is taken when its result is wanted.
    """
    if threads == 1:
        yield from map(function, items)
        return
    source = iter(items)
    pending: deque[Future[Result]] = deque()
    is_open, failure = True, None
    with ThreadPoolExecutor(threads) as pool:
        try:
            while is_open or pending:
                # A bounded window: only as many results wait in memory as threads work.
                while is_open and len(pending) < 2 * threads:
                    try:
                        pending.append(pool.submit(function, next(source)))
                    except StopIteration:
                        is_open = False
                    except Exception as error:  # raised below
                        is_open, failure = False, error
                if pending:
                    yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
    if failure is not None:
        raise failure
