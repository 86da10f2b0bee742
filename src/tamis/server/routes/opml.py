"""Sources as OPML, as feed readers write and read them; for administrators."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from tamis.broker.sources import NewSource
from tamis.feeds.opml import MOST_BYTES, read_opml, write_opml
from tamis.server.auth import Administrating
from tamis.server.bodies import read_body
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.problems import Problem
from tamis.server.routes.sources import MOST_IMPORTED, ImportAnswer

router = APIRouter(prefix="/v1/sources/opml", tags=["sources"], responses=problems(409))

OPML: Final = "text/x-opml"
_KINDS: Final = (OPML, "application/xml", "text/xml")
_PAGE: Final = 1_000
_EXAMPLE: Final = (
    '<opml version="2.0"><body><outline text="News" xmlUrl="https://example.com/feed"/>'
    "</body></opml>"
)
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {OPML: {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
}
_LIST: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {OPML: {"schema": {"type": "string"}}}}
}


@router.post("", summary="Add the sources of an OPML file", openapi_extra=_BODY)
async def import_opml(request: Request, caller: Administrating) -> ImportAnswer:
    """Read the feeds of a file from now on; its folders and categories become tags. Those that are
    known or cannot be used do not affect the others.
    """
    context = context_of(request)
    kind = request.headers.get("content-type", OPML).partition(";")[0].strip().lower()
    if kind not in _KINDS:
        raise Problem(
            415,
            "unknown-media-type",
            f"a list of sources of the media type {kind[:100]!r} cannot be read",
            hint=f"send {OPML}",
        )
    body = await read_body(request, MOST_BYTES, context.settings.limits.request_timeout)
    given = await in_thread(read_opml, body)
    if len(given) > MOST_IMPORTED:
        raise Problem(
            422, "bad-request", f"the document has {len(given):,} feeds; at most {MOST_IMPORTED:,}"
        )
    sources = context.match_server.broker.sources
    added = await in_thread(sources.create_many, caller.actor, given)
    return ImportAnswer(**added._asdict())


@router.get("", summary="List sources as OPML", response_class=Response, responses=_LIST)
async def export_opml(request: Request, caller: Administrating) -> Response:
    """All sources, as a file that feed readers can import."""
    text = await in_thread(_write, context_of(request).match_server.broker.sources)
    headers = {"content-disposition": 'attachment; filename="sources.opml"'}
    return Response(text, media_type=OPML, headers=headers)


def _write(sources: Any) -> str:
    found: list[NewSource] = []
    after = None
    while True:
        page = sources.list(after=after, limit=_PAGE)
        found += [NewSource(own.url, own.title, own.tags) for own in page.items]
        if (after := page.cursor) is None:
            return write_opml(found)
