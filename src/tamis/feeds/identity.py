"""Which items are the same? Identities are unique within a feed, not among feeds.

By default, items are distinguished by id; without an id by link, without a link by text. Where
a feed gives different items the same id, or the same items new ids, this policy changes to links or
to texts. It changes once and for good: a policy that went back and forth would show old items as
new ones.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.feeds.documents import FeedItem

DIGEST_BYTES: Final = 16


class Policy(StrEnum):
    """What distinguishes the items of a feed; later ones replace earlier ones."""

    ID = "id"
    LINK = "link"
    TEXT = "text"


class Identified(NamedTuple):
    """An item with its digests."""

    item: FeedItem
    identity: bytes
    text: bytes  # of title and body: an item is published again if it changes
    likeness: bytes  # of text and link: equal for an item that got another id


def identify(item: FeedItem, policy: Policy) -> Identified:
    """An item with its digests under a policy."""
    text = _digest("text", item.title, item.body)
    if policy is Policy.ID and item.id:
        identity = _digest("id", item.id)
    elif policy is not Policy.TEXT and item.link:
        identity = _digest("link", item.link)
    else:
        identity = text
    # Without a link, equal texts of different days are different items.
    other = item.link or str(item.published)
    return Identified(item, identity, text, _digest("likeness", item.title, item.body, other))


def choose_policy(items: Iterable[FeedItem], policy: Policy) -> Policy:
    """The first policy from this one on that gives different items different identities."""
    known = tuple(items)
    for candidate in list(Policy)[list(Policy).index(policy) :]:
        if not _has_clash(known, candidate):
            return candidate
    return Policy.TEXT


def _has_clash(items: Iterable[FeedItem], policy: Policy) -> bool:
    texts: dict[bytes, bytes] = {}
    for item in items:
        own = identify(item, policy)
        if texts.setdefault(own.identity, own.text) != own.text:
            return True
    return False


def _digest(*parts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        encoded = part.encode()
        digest.update(b"%d:" % len(encoded) + encoded)
    return digest.digest()
