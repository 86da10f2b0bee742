"""Parses documents in a child process, one at a time, each within a limit of time."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from tamis.feeds.documents import FeedDocument, NotAFeedError

if TYPE_CHECKING:
    from collections.abc import Sequence

# 16 MB of broken XML, which takes the most, need 190 MB.
MEMORY: Final = 256 << 20  # bytes
LEAST_MEMORY: Final = 64 << 20  # with which small documents can be read
_COMMAND: Final = (sys.executable, "-m", "tamis.feeds.parse_worker")
_LONGEST_LINE: Final = 1 << 16


class Parser(Protocol):
    """Parses documents."""

    async def read_document(self, body: bytes, content_type: str, url: str) -> FeedDocument:
        """The feed in a body; raises a `NotAFeedError` if it has none."""

    async def close(self) -> None:
        """Release what it holds."""


class ParseProcess:
    """The child process; it is started when it is needed. Used on one event loop."""

    def __init__(
        self, patience: float, most_memory: int = MEMORY, command: Sequence[str] = _COMMAND
    ) -> None:
        """`patience`: seconds that one document may take; `most_memory`: bytes of the process."""
        self._patience = patience
        self._command = (*command, str(most_memory))
        self._process: Process | None = None
        self._lock = asyncio.Lock()

    async def read_document(self, body: bytes, content_type: str, url: str) -> FeedDocument:
        """The feed in a body; raises a `NotAFeedError` if it has none or takes too much."""
        async with self._lock:
            try:
                async with asyncio.timeout(self._patience):
                    answer = await self._ask(body, content_type, url)
            except TimeoutError:
                await self._end()
                message = f"the document takes longer than {self._patience:g} s to read"
                raise NotAFeedError(message) from None
            except (OSError, EOFError, ValueError):
                await self._end()
                raise NotAFeedError("the document ended the process that reads it") from None
            except BaseException:  # cancelled: its answer would be taken for the next one
                await self._end()
                raise
        if "document" not in answer:
            raise NotAFeedError(answer["error"], answer["links"])
        return FeedDocument.from_json(answer["document"])

    async def close(self) -> None:
        """End the process."""
        await self._end()

    async def _ask(self, body: bytes, content_type: str, url: str) -> Any:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE
            )
        assert process.stdin is not None
        assert process.stdout is not None
        job = {"n_bytes": len(body), "content_type": content_type, "url": url}
        process.stdin.write(orjson.dumps(job) + b"\n" + body)
        await process.stdin.drain()
        n_bytes = int(await process.stdout.readline())
        return orjson.loads(await process.stdout.readexactly(n_bytes))

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
