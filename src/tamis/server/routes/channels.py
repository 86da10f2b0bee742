"""Channels: mailboxes that several subscriptions share."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tamis.server.auth import Reading, Subscribing, choose_most
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.mailbox_access import act_for, find_channel, find_subscription
from tamis.server.models import Asked, PathText
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from tamis.broker.channels import Channel
    from tamis.server.auth import Caller

router = APIRouter(prefix="/v1/channels", tags=["channels"], responses=problems(409))

MOST_PAGE: Final = 1_000
Limit = Annotated[int, Query(ge=1, le=MOST_PAGE)]
Cursor = Annotated[int | None, Query(ge=0, lt=1 << 63)]


class NewChannel(Asked):
    """A channel to make."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"name": "alerts", "subscriptions": ["adults"]}]},
    )

    name: str
    owner: str | None = Field(None, description="Only an admin may name another owner.")
    subscriptions: list[str] = Field([], max_length=MOST_PAGE, description="Ids of its members.")


class MemberChange(Asked):
    """Subscriptions to add or to remove, by their ids."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"subscriptions": ["adults", "children"]}]},
    )

    subscriptions: list[str] = Field(min_length=1, max_length=MOST_PAGE)


class ChannelAnswer(BaseModel):
    """A channel."""

    name: str
    number: int
    owner: str
    created: datetime


class ChannelPage(BaseModel):
    """A page of channels."""

    channels: list[ChannelAnswer]
    cursor: int | None


class MemberAnswer(BaseModel):
    """A subscription of a channel."""

    id: str
    number: int
    added: datetime


class MemberPage(BaseModel):
    """A page of the members of a channel."""

    members: list[MemberAnswer]
    cursor: int | None


class ChangedMembers(BaseModel):
    """How many members were added or removed."""

    changed: int


@router.post("", status_code=201, summary="Make a channel", responses=problems(404))
async def create_channel(
    request: Request, response: Response, caller: Subscribing, asked: NewChannel
) -> ChannelAnswer:
    """Make a mailbox that subscriptions share, and add subscriptions to it."""
    context = context_of(request)
    channels = context.match_server.broker.channels
    owner = asked.owner or caller.actor.owner
    most = choose_most(caller, context.settings.limits.channels)
    made = await in_thread(channels.create, caller.actor, asked.name, owner=owner, most=most)
    if asked.subscriptions:
        try:
            await _change(request, caller, asked.name, asked.subscriptions, is_added=True)
        except Exception:
            await in_thread(channels.delete, caller.actor, asked.name)
            raise
    response.headers["location"] = f"{router.prefix}/{quote(asked.name, safe='')}"
    return _describe(made)


@router.get("", summary="List channels")
async def list_channels(
    request: Request,
    caller: Reading,
    owner: str | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> ChannelPage:
    """A page of channels, the oldest first. Without the role admin, only your own."""
    if not caller.actor.is_admin:
        if owner not in (None, caller.actor.owner):
            raise Problem(403, "not-yours", f"channels of {owner!r} are not yours")
        owner = caller.actor.owner
    channels = context_of(request).match_server.broker.channels
    page = await in_thread(channels.list, owner=owner, after=cursor, limit=limit)
    return ChannelPage(channels=[_describe(own) for own in page.items], cursor=page.cursor)


@router.get("/{channel}", summary="Get a channel")
async def get_channel(request: Request, caller: Reading, channel: PathText) -> ChannelAnswer:
    """The channel, for its owner and an admin."""
    return _describe(await find_channel(context_of(request), caller, channel))


@router.delete("/{channel}", status_code=204, summary="Delete a channel")
async def delete_channel(request: Request, caller: Subscribing, channel: PathText) -> None:
    """Delete a channel with its consumers, webhooks, feeds and digests. Its subscriptions and
    their own mailboxes stay.
    """
    context = context_of(request)
    await find_channel(context, caller, channel)
    ended = await in_thread(context.match_server.broker.channels.delete, caller.actor, channel)
    context.live_mail.end(ended.mailbox)
    await context.deliveries.refresh_mailbox(ended.mailbox)


@router.get("/{channel}/members", summary="List the members of a channel")
async def list_members(
    request: Request,
    caller: Reading,
    channel: PathText,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> MemberPage:
    """A page of the subscriptions that share the channel."""
    context = context_of(request)
    found = await find_channel(context, caller, channel)
    members = context.match_server.broker.channels.members
    page = await in_thread(members, found.number, after=cursor, limit=limit)
    shown = [
        MemberAnswer(id=own.subscription_id, number=own.subscription, added=own.added)
        for own in page.items
    ]
    return MemberPage(members=shown, cursor=page.cursor)


@router.post("/{channel}/members", summary="Add subscriptions to a channel")
async def add_members(
    request: Request, caller: Subscribing, channel: PathText, asked: MemberChange
) -> ChangedMembers:
    """Let subscriptions share the channel. You must own them, or show their ticket."""
    n_added = await _change(request, caller, channel, asked.subscriptions, is_added=True)
    return ChangedMembers(changed=n_added)


@router.post("/{channel}/members/remove", summary="Remove subscriptions from a channel")
async def remove_members(
    request: Request, caller: Subscribing, channel: PathText, asked: MemberChange
) -> ChangedMembers:
    """Take subscriptions out of the channel; they stay subscribed."""
    n_removed = await _change(request, caller, channel, asked.subscriptions, is_added=False)
    return ChangedMembers(changed=n_removed)


async def _change(
    request: Request, caller: Caller, name: str, ids: list[str], *, is_added: bool
) -> int:
    context = context_of(request)
    server = context.match_server
    channel = await find_channel(context, caller, name)
    actor, change = caller.actor, server.broker.channels.remove
    if is_added:
        found = [await find_subscription(context, caller, own) for own in ids]
        numbers = [own.number for own in found]
        actor, change = act_for(context, caller, found), server.broker.channels.add
    else:
        members = await in_thread(server.mailboxes.names, channel.mailbox)
        numbers = [number for number, own in members.items() if own in set(ids)]
    n_changed = await in_thread(change, actor, name, numbers)
    await context.live_mail.refresh(channel.mailbox)
    await context.deliveries.refresh_mailbox(channel.mailbox)
    return n_changed


def _describe(channel: Channel) -> ChannelAnswer:
    return ChannelAnswer(
        name=channel.name, number=channel.number, owner=channel.owner, created=channel.created
    )
