"""API keys and the log of what administrators did; for administrators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tamis.broker.keys import KeyLimits
from tamis.broker.pages import PAGE_SIZE
from tamis.broker.rights import Role
from tamis.server.auth import Administrating
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.models import Asked, PathText
from tamis.server.stream_rights import check_streams

router = APIRouter(prefix="/v1", tags=["keys"], responses=problems(404, 409))

MOST_PAGE: Final = 1_000
MOST: Final = 2**53  # of a limit: what every JSON reader can read


class Limits(Asked):
    """What a key may use; what is missing is as the settings of the server say."""

    requests_per_second: float | None = Field(None, gt=0, lt=1e9)
    subscriptions: int | None = Field(None, ge=0, le=MOST, description="Of its owner.")
    event_bytes: int | None = Field(None, ge=0, le=MOST)
    batch_bytes: int | None = Field(None, ge=0, le=MOST)
    expression_bytes: int | None = Field(None, ge=0, le=MOST)
    streams: int | None = Field(None, ge=0, le=MOST, description="Open at the same time.")


class NewKeyRequest(Asked):
    """A key to make."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"owner": "ann", "roles": ["subscribe", "read"]}]},
    )

    owner: str
    roles: list[Role] = Field(min_length=1)
    expires: datetime | None = None
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))


class KeyAnswer(BaseModel):
    """A key, without the secret."""

    id: str
    owner: str
    roles: list[Role]
    limits: dict[str, float]
    created: datetime
    expires: datetime | None
    revoked: datetime | None


class NewKeyAnswer(KeyAnswer):
    """A new key. Its text is shown only here."""

    key: str


class KeyPage(BaseModel):
    """A page of keys."""

    keys: list[KeyAnswer]
    cursor: int | None


class AuditEntryAnswer(BaseModel):
    """What an administrator did."""

    number: int
    moment: datetime
    key_id: str
    action: str
    target: str
    detail: dict[str, Any]


class AuditPage(BaseModel):
    """A page of the log of administrators, the newest entries first."""

    entries: list[AuditEntryAnswer]
    cursor: int | None


@router.post("/keys", status_code=201, summary="Make a key")
async def create_key(
    request: Request, response: Response, caller: Administrating, asked: NewKeyRequest
) -> NewKeyAnswer:
    """Make a key. From the first key on, the server needs one for everything."""
    context = context_of(request)
    keys = context.match_server.broker.keys
    limits = KeyLimits(**asked.limits.model_dump())
    made = await in_thread(
        keys.create, caller.actor, asked.owner, asked.roles, expires=asked.expires, limits=limits
    )
    if context.is_open:  # whoever follows without a key needs one now
        await check_streams(context)
    response.headers["location"] = f"/v1/keys/{made.key.id}"
    return NewKeyAnswer(**made.key.to_json(), key=made.secret.reveal())


@router.get("/keys", summary="List keys")
async def list_keys(
    request: Request,
    caller: Administrating,
    owner: str | None = None,
    cursor: int | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = PAGE_SIZE,
) -> KeyPage:
    """A page of the keys, the oldest first; revoked and expired ones too."""
    keys = context_of(request).match_server.broker.keys
    page = await in_thread(keys.list, owner=owner, after=cursor, limit=limit)
    return KeyPage(keys=[KeyAnswer(**key.to_json()) for key in page.items], cursor=page.cursor)


@router.delete("/keys/{key_id}", summary="Revoke a key")
async def revoke_key(request: Request, caller: Administrating, key_id: PathText) -> KeyAnswer:
    """Make a key invalid at once, and end its open streams. It stays in the list."""
    context = context_of(request)
    key = await in_thread(context.match_server.broker.keys.revoke, caller.actor, key_id)
    await check_streams(context)
    return KeyAnswer(**key.to_json())


@router.get("/audit", summary="What administrators did")
async def list_audit_entries(
    request: Request,
    caller: Administrating,
    key_id: str | None = None,
    cursor: int | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = PAGE_SIZE,
) -> AuditPage:
    """A page of the log, the newest entries first."""
    log = context_of(request).match_server.broker.audit_log
    page = await in_thread(log.list, key_id=key_id, before=cursor, limit=limit)
    entries = [AuditEntryAnswer(**entry._asdict()) for entry in page.items]
    return AuditPage(entries=entries, cursor=page.cursor)
