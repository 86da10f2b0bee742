"""Many subscriptions at once: import files, export."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from tamis.broker.audit_log import Action
from tamis.input.compression import codec_of_head
from tamis.input.formats import FORMATS, Format
from tamis.live.requests import describe
from tamis.server.answers import spell_json
from tamis.server.auth import Reading, Subscribing
from tamis.server.bodies import spool_body
from tamis.server.context import context_of, in_thread
from tamis.server.importing import Importer, ImportOptions
from tamis.server.problems import Problem
from tamis.server.routes.subscriptions import choose_listed
from tamis.subscriptions import State

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"])

LINES: Final = "application/x-ndjson"
MEDIA_TYPES: Final = {kind: own for own, traits in FORMATS.items() for kind in traits.media_types}
_IN_MEMORY: Final = 1 << 20  # bytes of a body that are not written to a temporary file
_PAGE: Final = 500  # subscriptions that are exported at a time

_ROWS: Final = '{"id": "adults", "expression": "age >= 18"}\n{"id": "all", "expression": "TRUE"}\n'
_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}
_EXAMPLES: Final[dict[Format, str | None]] = {  # None: not a text
    Format.JSONL: _ROWS,
    Format.CSV: "id,expression,tags\nadults,age >= 18,news\n",
    Format.TSV: "id\texpression\ttags\nadults\tage >= 18\tnews\n",
    Format.PARQUET: None,
}


def _document(kind: str, example: str | None) -> dict[str, Any]:
    """What the OpenAPI document says of a media type."""
    if kind == "application/json":
        array = [{"id": "adults", "expression": "age >= 18"}]
        return {"schema": _OBJECTS, "example": array}
    if example is None:
        return {"schema": {"type": "string", "format": "binary"}}
    return {"schema": {"type": "string"}, "example": example}


_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {kind: _document(kind, _EXAMPLES[own]) for kind, own in MEDIA_TYPES.items()},
    }
}
_RESULTS: Final[dict[str, Any]] = {
    "description": "A line for each row, in order, and a summary.",
    "content": {
        LINES: {
            "schema": {"type": "string"},
            "example": '{"row": 1, "line": 1, "id": "adults", "status": "made", "revision": 17, '
            '"ticket": "tkt_…"}\n{"summary": {"rows": 1, "made": 1, "replaced": 0, "refused": 0}, '
            '"is_complete": true, "notes": []}\n',
        }
    },
}


@router.post(
    "/import",
    summary="Import subscriptions",
    response_class=StreamingResponse,
    responses={200: _RESULTS},
    openapi_extra=_BODY,
)
async def import_subscriptions(
    request: Request,
    caller: Subscribing,
    existing: Annotated[
        Literal["refuse", "replace"],
        Query(description="What becomes of a row whose id exists."),
    ] = "refuse",
    dry_run: Annotated[bool, Query(description="Only say what would happen.")] = False,
) -> StreamingResponse:
    """Make subscriptions of rows with the columns id (or subscription_id) and expression, and, if
    they are there, tags, valid_from, valid_until and owner; other columns are attributes. A row
    that is wrong does not affect the others: its result says why. To replace a subscription, a row
    needs its ticket, in the column ticket, unless you are an admin. What was stored stays if the
    connection is lost; without the summary the results are not complete.
    """
    context = context_of(request)
    file_format = _find_format(request)
    limits = context.settings.limits
    file: Any = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed when all is sent
    try:
        await spool_body(request, file, limits.import_size, limits.request_timeout)
        file.seek(0)
        _refuse_packed(file)
        options = ImportOptions(existing == "replace", dry_run)
        if caller.actor.is_admin and options.replaces and not dry_run:
            await _log(context, caller, "import", "", {"existing": existing})
        results = Importer(context, caller, options).run(file, file_format)
        first = await in_thread(next, results)  # an error here is the answer
    except BaseException:
        file.close()
        raise
    return StreamingResponse(_send(first, results, file), media_type=LINES)


def _find_format(request: Request) -> Format:
    kind = request.headers.get("content-type", LINES).partition(";")[0].strip().lower()
    found = MEDIA_TYPES.get(kind)
    if found is None:
        raise Problem(
            415,
            "unknown-media-type",
            f"subscriptions of the media type {kind[:100]!r} cannot be read",
            hint=f"send one of {', '.join(MEDIA_TYPES)}",
        )
    return found


def _refuse_packed(file: IO[bytes]) -> None:
    """The limit of size is for what is unpacked."""
    head = file.read(16)
    file.seek(0)
    if codec_of_head(head) is not None:
        raise Problem(
            415, "packed", "the body is packed", hint="send the header Content-Encoding with it"
        )


async def _send(first: bytes, results: Iterator[bytes], file: IO[bytes]) -> AsyncIterator[bytes]:
    """The lines of an import. If the client goes away, the rows after the current ones are not
    read.
    """
    try:
        yield first
        while lines := await in_thread(next, results, b""):
            yield lines
    finally:
        file.close()


@router.get(
    "/export",
    summary="Export subscriptions",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A line for each subscription, by id, as import reads it.",
            "content": {LINES: {"schema": {"type": "string"}, "example": _ROWS}},
        }
    },
)
async def export_subscriptions(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Reading,
    owner: str | None = None,
    tag: str | None = None,
    text: str | None = None,
    state: State | None = None,
    hashes: Annotated[
        bool, Query(description="With the keyed hashes of tickets, to restore them; for admins.")
    ] = False,
) -> StreamingResponse:
    """All subscriptions that you may see, one on each line. A subscription that exists from the
    first line to the last is on exactly one line.
    """
    context = context_of(request)
    owner = choose_listed(caller, owner)
    if hashes and not caller.actor.is_admin:
        raise Problem(403, "not-allowed", "only an admin may export hashes of tickets")
    chosen = {"owner": owner, "tag": tag, "text": text, "state": state}
    if hashes:
        await _log(context, caller, "export", owner or "", {"hashes": True})
    first = await in_thread(context.match_server.live.list, limit=_PAGE, **chosen)
    return StreamingResponse(_export(context, first, chosen, hashes), media_type=LINES)


async def _log(
    context: ServerContext, caller: Caller, verb: str, target: str, detail: dict[str, Any]
) -> None:
    """Log what an admin may do with the subscriptions of others, before it is done."""
    action = Action(caller.actor, f"subscription.{verb}", target, detail)
    await in_thread(context.match_server.broker.audit_log.append, action)


async def _export(
    context: ServerContext, page: Any, chosen: dict[str, Any], hashes: bool
) -> AsyncIterator[bytes]:
    """The lines of all pages; each is read in a short transaction."""
    while True:
        yield b"".join(_spell(found, hashes) for found in page.subscriptions)
        if page.cursor is None:
            return
        page = await in_thread(
            context.match_server.live.list, after=page.cursor, limit=_PAGE, **chosen
        )


def _spell(found: Any, hashes: bool) -> bytes:
    row = describe(found)
    if not hashes:
        row.pop("ticket_hash", None)
    return spell_json(row) + b"\n"
