"""WebSockets of mailboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from fastapi import APIRouter, WebSocket

from tamis.broker.mailbox import Mailbox
from tamis.broker.rights import Role
from tamis.server.auth import refuse
from tamis.server.mailbox_access import find_channel, find_subscription
from tamis.server.sockets import serve_socket

if TYPE_CHECKING:
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(prefix="/v1")


@router.websocket("/subscriptions/{subscription_id}/socket")
async def follow_subscription(
    socket: WebSocket,
    subscription_id: str,
    after: str | None = None,
    consumer: str | None = None,
) -> None:
    """The matches of a subscription."""

    async def find(context: ServerContext, caller: Caller) -> Mailbox:
        found = await find_subscription(context, caller, unquote(subscription_id))
        return Mailbox.of_subscription(found.number)

    await serve_socket(socket, find, after, consumer)


@router.websocket("/channels/{channel}/socket")
async def follow_channel(
    socket: WebSocket, channel: str, after: str | None = None, consumer: str | None = None
) -> None:
    """The matches of a channel."""

    async def find(context: ServerContext, caller: Caller) -> Mailbox:
        if not caller.may(Role.READ):
            raise refuse(caller, Role.READ)
        return (await find_channel(context, caller, unquote(channel))).mailbox

    await serve_socket(socket, find, after, consumer)
