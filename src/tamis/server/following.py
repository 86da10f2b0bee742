"""Requests that only the server that writes can answer."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from starlette.requests import HTTPConnection

from tamis.errors import TamisError
from tamis.server.context import context_of
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from tamis.server.context import ServerContext

_LOG: Final = logging.getLogger("tamis.server")
_READING: Final = ("GET", "HEAD", "OPTIONS")
REFRESH_SECONDS: Final = 5.0  # between two looks at the members of channels that are followed


def expect_writer(connection: HTTPConnection) -> None:
    """A dependency: raise a `Problem` if a follower is asked to change something."""
    if connection.scope["type"] == "http" and connection.scope["method"] not in _READING:
        refuse_follower(context_of(connection))


def refuse_follower(context: ServerContext) -> None:
    """Raise a `Problem` if the server is a follower."""
    if context.match_server.is_follower:
        writer = context.settings.server.follow
        raise Problem(
            421,
            "not-the-writer",
            "this server follows another one, and changes nothing",
            hint=f"send the request to {writer}",
            writer=writer,
        )


async def refresh_channels(context: ServerContext) -> None:
    """Look at the members of channels from time to time, which the writer changes."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await context.live_mail.refresh_all()
        except TamisError as error:
            _LOG.warning("the members of channels cannot be read: %s; it is tried again", error)
