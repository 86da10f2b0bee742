"""Who may do what: roles of keys, owners of things, and tickets that were shown."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.errors import NotAllowedError

if TYPE_CHECKING:
    from tamis.broker.mailbox import Mailbox


class Role(StrEnum):
    """What a key may be used for."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    READ = "read"
    ADMIN = "admin"  # includes all others, and acts for every owner


class Actor(NamedTuple):
    """On whose behalf a request is made."""

    owner: str  # empty if anonymous
    key_id: str = ""  # empty without a key
    is_admin: bool = False
    mailboxes: frozenset[Mailbox] = frozenset()  # of subscriptions whose tickets were shown


# Whoever can run commands on the server's machine, with access to its folder.
LOCAL: Final = Actor("", "local", is_admin=True)


def expect_admin(actor: Actor, action: str) -> None:
    """Raise a `NotAllowedError` unless an administrator asks."""
    if not actor.is_admin:
        raise NotAllowedError(f"only an administrator may {action}")


def expect_right(actor: Actor, owner: str, what: str, mailbox: Mailbox | None = None) -> None:
    """Raise a `NotAllowedError` unless the actor may change a thing of an owner.

    A thing without an owner belongs to whoever shows the ticket of its mailbox.
    """
    is_owner = owner != "" and actor.owner == owner
    if not (actor.is_admin or is_owner or mailbox in actor.mailboxes):
        raise NotAllowedError(
            f"{what} belongs to another owner",
            hint="use a key of its owner, the ticket of the subscription, or a key of an admin",
        )
