"""Fetches a document: conditional, packed, with redirects, and bounded in size and time."""

from __future__ import annotations

import asyncio
import time
import zlib
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import httpx2

from tamis import __version__
from tamis.broker.checking import URL_BYTES
from tamis.feeds.unpacking import PACKED, Unpacker
from tamis.outgoing import CheckedClient, RefusedAddressError, resolve

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from tamis.outgoing import Resolve

    # What is entered for each request, redirects included: it waits until an address may be asked.
    Turn = Callable[[str], AbstractAsyncContextManager[None]]

MOST_REDIRECTS: Final = 8
_PERMANENT: Final = (301, 308)
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MOST_PORT: Final = 65_535
_PIECE: Final = 1 << 16  # bytes that are read at once
_ACCEPT: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, */*;q=0.5"
)


def _ask_at_once(_: str) -> AbstractAsyncContextManager[None]:
    return nullcontext()


class FetchError(Exception):
    """A document could not be fetched; the status is that of an answer, if there was one."""

    def __init__(
        self, message: str, status: int | None = None, retry_after: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after  # as the header has it
        self.url: str | None = None  # the last one that was asked
        self.is_moved_for_good = True  # whether only permanent redirects led there


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch may use."""

    patience: float = 30.0  # seconds of all its requests; waiting for a turn does not count
    most_bytes: int = 16 << 20  # of a body, unpacked
    user_agent: str = f"Tamis/{__version__} (feed reader)"
    allow_private: bool = False


class Answer(NamedTuple):
    """An answer with a document, or the answer that there is no new one."""

    status: int  # 200 or 304
    headers: Mapping[str, str]
    body: bytes
    url: str  # that answered
    # Where to ask from now on: the address to which permanent redirects led, if any.
    permanent_url: str


@dataclass
class _Way:
    """The redirects of one fetch."""

    seen: list[str]
    permanent: str  # to where permanent redirects led
    patience: float  # seconds that are left

    @property
    def url(self) -> str:
        """The address to ask."""
        return self.seen[-1]

    def go_on(self, url: str, status: int) -> None:
        """Follow a redirect."""
        if url in self.seen:
            raise FetchError(f"redirects lead in a circle, to {url}", status)
        if len(self.seen) >= MOST_REDIRECTS:
            raise FetchError(f"there are more than {MOST_REDIRECTS} redirects", status)
        if status in _PERMANENT and self.permanent == self.url:
            self.permanent = url
        self.seen.append(url)


class Fetcher:
    """Fetches documents on one event loop."""

    def __init__(
        self,
        limits: FetchLimits,
        resolver: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits
        self._client = CheckedClient(allow_private=limits.allow_private, resolver=resolver, tls=tls)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def fetch(
        self,
        url: str,
        etag: str | None = None,
        modified: str | None = None,
        *,
        turn: Turn = _ask_at_once,
    ) -> Answer:
        """The document at an address; raises a `FetchError` if there is none.

        Both validators are sent if both are known: some servers look at one, some at the other.
        One that is not ASCII is not sent: the bytes that it had are not known any more.
        Errors of `turn` are raised as they are.
        """
        headers = {
            "user-agent": self.limits.user_agent,
            "accept": _ACCEPT,
            "accept-encoding": "gzip, deflate",
        }
        validators = {"if-none-match": etag, "if-modified-since": modified}
        headers |= {name: text for name, text in validators.items() if text and text.isascii()}
        way = _Way([url], url, self.limits.patience)
        try:
            while True:
                async with turn(way.url):
                    answer = await self._ask_in_time(way, headers)
                if answer is not None:
                    return answer
        except FetchError as error:
            error.url, error.is_moved_for_good = way.url, way.url == way.permanent
            raise

    async def _ask_in_time(self, way: _Way, headers: dict[str, str]) -> Answer | None:
        """One request; None if it leads elsewhere."""
        start = time.monotonic()
        try:
            async with asyncio.timeout(way.patience):
                return await self._ask(way, headers)
        except TimeoutError:
            raise FetchError(f"no complete answer within {self.limits.patience:g} s") from None
        except RefusedAddressError as error:
            raise FetchError(f"refused: {error}") from None
        except FetchError:
            raise
        except Exception as error:
            # Strangers choose what is asked and answered. An error of any other kind would leave
            # the source due, and it would be asked again and again without a pause.
            raise FetchError(f"{type(error).__name__}: {error}") from None
        finally:
            way.patience -= time.monotonic() - start

    async def _ask(self, way: _Way, headers: dict[str, str]) -> Answer | None:
        answer = await self._client.send("GET", httpx2.URL(way.url), headers)
        try:
            if answer.status_code not in _REDIRECTS:
                return await self._read(answer, way, headers)
            way.go_on(_find_target(answer, way.url), answer.status_code)
        finally:
            await answer.aclose()
        return None

    async def _read(self, answer: httpx2.Response, way: _Way, asked: Mapping[str, str]) -> Answer:
        status, url, permanent = answer.status_code, way.url, way.permanent
        headers = {name.lower(): value for name, value in answer.headers.items()}
        if status == 304 and ("if-none-match" in asked or "if-modified-since" in asked):
            return Answer(status, headers, b"", url, permanent)
        if status != 200:
            raise FetchError(f"the answer is {status}", status, headers.get("retry-after"))
        body = await self._read_body(answer, headers)
        return Answer(status, headers, body, url, permanent)

    async def _read_body(self, answer: httpx2.Response, headers: Mapping[str, str]) -> bytes:
        encoding = headers.get("content-encoding", "").strip().lower()
        most = self.limits.most_bytes
        # The packed bytes too: they may unpack to nothing without end.
        packed = _bound(answer.aiter_raw(_PIECE), most, answer)
        pieces = _bound(_unpack(packed, encoding), most, answer)
        return b"".join([piece async for piece in pieces])


def _find_target(answer: httpx2.Response, url: str) -> str:
    location = answer.headers.get("location")
    if not location:
        raise FetchError("a redirect names no address", answer.status_code)
    target = httpx2.URL(url).join(location).copy_with(fragment=None)
    is_usable = target.scheme in ("http", "https") and target.host and not target.userinfo
    if not is_usable or len(str(target)) > URL_BYTES or (target.port or 0) > _MOST_PORT:
        raise FetchError(f"a redirect leads to {str(target)[:200]!r}", answer.status_code)
    return str(target)


async def _unpack(pieces: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The pieces, unpacked, none of them large."""
    if encoding in ("", "identity"):
        async for piece in pieces:
            yield piece
        return
    if encoding not in PACKED:
        raise FetchError(f"the content encoding {encoding[:40]!r} was not asked for")
    unpacker = Unpacker(encoding)
    try:
        async for packed in pieces:
            for piece in unpacker.unpack(packed):
                yield piece
    except zlib.error as error:
        raise FetchError(f"the packed document is damaged: {error}") from None
    if not unpacker.is_whole:
        raise FetchError("the packed document is cut off")


async def _bound(
    pieces: AsyncIterator[bytes], most: int, answer: httpx2.Response
) -> AsyncIterator[bytes]:
    """The pieces; raises a `FetchError` if they have more bytes together."""
    n_bytes = 0
    async for piece in pieces:
        n_bytes += len(piece)
        if n_bytes > most:
            raise FetchError(f"the document has more than {most:,} bytes", answer.status_code)
        yield piece
