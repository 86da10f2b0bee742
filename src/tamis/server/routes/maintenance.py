"""Backups, and the import of versions; for administrators."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import StreamingResponse

import tamis
from tamis.broker.audit_log import Action
from tamis.broker.backup import back_up
from tamis.broker.importing import OUTCOMES, import_version
from tamis.errors import TamisError
from tamis.server.auth import Administrating
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.models import Asked
from tamis.server.problems import Problem, describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.broker.match_server import MatchServer
    from tamis.match.index import Index
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(prefix="/v1", tags=["maintenance"], responses=problems(404, 409, 410))

BACKUPS, IMPORTS = "backups", "imports"  # in the folder of the server
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_LINES: Final = "application/x-ndjson"


class BackupRequest(Asked):
    """Where to put a backup."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"target": "monday"}]},
    )

    target: str = Field(description="A name; the backup is made in the folder backups.")


class BackupAnswer(BaseModel):
    """A backup that was made."""

    folder: str
    moment: str
    last_event: int
    last_change: int | None = Field(
        description="null if the subscriptions are in PostgreSQL: copy that database too, now."
    )


class VersionImport(Asked):
    """The version to import."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"source": "nightly", "replace": True}]},
    )

    source: str = Field(description="A name in the folder imports: a folder of versions.")
    version: str | None = Field(None, description="By default the newest one.")
    replace: bool = Field(False, description="Whether subscriptions that exist are replaced.")


@router.post("/backup", status_code=201, summary="Make a backup")
async def make_backup(
    request: Request, caller: Administrating, asked: BackupRequest
) -> BackupAnswer:
    """Copy the server to a new folder while it goes on."""
    context = context_of(request)
    server, target = context.match_server, _find_place(context, caller, asked.target, BACKUPS)
    made = await in_thread(
        back_up, server.folder, server.live.store, server.archive, target, server.intake
    )
    action = Action(caller.actor, "backup", str(target), {"last_event": made.last_event})
    await in_thread(server.broker.audit_log.append, action)
    return BackupAnswer(
        folder=str(target),
        moment=made.moment,
        last_event=made.last_event,
        last_change=made.last_change,
    )


@router.post(
    "/import-version",
    summary="Import a version",
    response_class=StreamingResponse,
    responses={200: {"content": {_LINES: {"schema": {"type": "string"}}}}},
)
async def import_built_version(
    request: Request, caller: Administrating, asked: VersionImport
) -> StreamingResponse:
    """Add the subscriptions of a version, such as one that Spark has built, while the server goes
    on. The answer has a line of JSON for each subscription, and the numbers in the last line.
    """
    context = context_of(request)
    server, source = context.match_server, _find_place(context, caller, asked.source, IMPORTS)
    # Untrusted: kernels trust what they read, and others may have written the files.
    index = await in_thread(
        tamis.open, source, version=asked.version, trusted=False, operators=None
    )
    action = Action(caller.actor, "version.import", str(source), {"version": index.version})
    await in_thread(server.broker.audit_log.append, action)
    lines = _import(server, index, replaces=asked.replace)
    return StreamingResponse(iterate_in_threadpool(lines), media_type=_LINES)


def _import(server: MatchServer, index: Index, *, replaces: bool) -> Iterator[bytes]:
    counts: Counter[str] = Counter()
    last: dict[str, Any] = {}
    try:
        for row in import_version(server.live, index, replaces=replaces):
            counts[row.outcome] += 1
            yield _spell(row.to_json())
    except TamisError as error:  # what was imported stays: the same import goes on from there
        last = {"problem": describe(error).to_json()}
    finally:
        index.close()
    numbers = {outcome: counts[outcome] for outcome in OUTCOMES}
    yield _spell({"rows": counts.total(), **numbers, "change": server.live.change, **last})


def _spell(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _find_place(context: ServerContext, caller: Caller, given: str, below: str) -> Path:
    """The folder that a request names.

    Only the user who runs the server may name any folder of this machine. For others it is a name
    in one folder, so that a key of an admin is not worth more than the interface.
    """
    if caller.runs_server:
        path = Path(given)
        if not path.is_absolute():
            raise Problem(422, "bad-place", f"{given[:200]!r} is not an absolute path")
        return path
    if not _NAME.fullmatch(given):
        raise Problem(
            422,
            "bad-place",
            f"{given[:200]!r} is not a name",
            hint=f"letters, digits, '.', '_' and '-': a folder in {below}",
        )
    return context.match_server.folder / below / given
