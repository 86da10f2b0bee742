"""Requests without a network that end with the head of the answer, so that streams do not hang."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson


class Head(NamedTuple):
    status: int
    headers: dict[str, str]


def ask(
    app: Any, method: str, path: str, headers: Mapping[str, str] | None = None, body: Any = None
) -> Head:
    """The head of the answer to a request."""
    return asyncio.run(_ask(app, method, path, headers or {}, body))


async def _ask(app: Any, method: str, path: str, headers: Mapping[str, str], body: Any) -> Head:
    head: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
    content = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
    messages = iter([{"type": "http.request", "body": content, "more_body": False}])

    async def receive():
        for message in messages:
            return message
        await asyncio.Event().wait()

    async def send(message) -> None:
        if message["type"] == "http.response.start" and not head.done():
            shown = {name.decode(): value.decode() for name, value in message["headers"]}
            head.set_result(Head(message["status"], shown))

    given = {"host": "127.0.0.1", "content-type": "application/json", **headers}
    target, _, query = path.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": target,
        "raw_path": target.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8080),
    }
    running = asyncio.create_task(app(scope, receive, send))
    await asyncio.wait([running, head], return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return head.result()
