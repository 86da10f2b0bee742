"""Questions that read much of the archive: few at a time, and none for a client that has left."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

from tamis.server.context import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from tamis.server.context import ServerContext

_LOOK: Final = 0.2  # seconds between looks whether the client is still there
T = TypeVar("T")


async def run_cancellable(
    request: Request, context: ServerContext, run: Callable[[Callable[[], bool]], T]
) -> T:
    """The result of `run`, in another thread. Its argument tells it whether to end early, because
    the client or the server goes away.
    """
    is_cancelled = Event()
    async with context.forecasts:
        task = asyncio.ensure_future(in_thread(run, is_cancelled.is_set))
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_LOOK)
                if context.is_closing.is_set() or await request.is_disconnected():
                    is_cancelled.set()
        finally:
            is_cancelled.set()
        return await task
