"""Which items of a document are new? And the events that they become."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from tamis.broker.item_types import TEXTS
from tamis.broker.source_fetches import DAY, SeenItem
from tamis.feeds.identity import Identified, Policy, choose_policy, identify
from tamis.language.types.moments import from_microseconds
from tamis.text import LANGUAGE_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tamis.broker.sources import Source
    from tamis.feeds.documents import FeedDocument, FeedItem, Notes

    # By identities, likenesses and texts.
    FindItems = Callable[[Iterable[bytes], Iterable[bytes], Iterable[bytes]], Sequence[SeenItem]]

MOST_REVISIONS: Final = 20  # texts of one item that are published
# An item may be dated a little ahead of our clock.
_AHEAD: Final = 10 * 60 * 1_000_000  # microseconds
_FEW: Final = 3  # items with new ids may be a mistake of their publisher, corrected


@dataclass
class Selection:
    """What a document says that was not known."""

    policy: Policy
    items: list[SeenItem] = field(default_factory=list)  # to be stored
    events: list[tuple[bytes, bytes]] = field(default_factory=list)  # key and event, oldest first


def select_items(source: Source, document: FeedDocument, find: FindItems, now: int) -> Selection:
    """The new and changed items of a document; faults are added to its notes."""
    before = Policy(source.policy)
    policy = choose_policy(document.items, before)
    if policy is not before:
        document.notes.add("duplicate-ids", _find_example(document.items, before))
    own, known = _identify_all(document.items, policy, find)
    if policy is Policy.ID and _ids_change(own, known):
        document.notes.add("changing-ids", own[0].item.id)
        policy = choose_policy(document.items, Policy.LINK)
        own, known = _identify_all(document.items, policy, find)
    elif policy is not Policy.TEXT and not known and _all_changes(own, find):
        document.notes.add("changing-ids", own[0].item.id or own[0].item.link)
        policy = Policy.TEXT
        own, known = _identify_all(document.items, policy, find)
    return _Selector(source, document.notes, known, now, policy).select(own)


def _identify_all(
    items: Iterable[FeedItem], policy: Policy, find: FindItems
) -> tuple[list[Identified], list[SeenItem]]:
    """The items with their digests under a policy, and those that are known."""
    own = [identify(item, policy) for item in items]
    texts = [one.text for one in own] if policy is Policy.TEXT else []
    known = find((one.identity for one in own), (one.likeness for one in own), texts)
    return own, list(known)


def _find_example(items: Iterable[FeedItem], policy: Policy) -> str:
    seen: dict[bytes, bytes] = {}
    for item in items:
        own = identify(item, policy)
        if seen.setdefault(own.identity, own.text) != own.text:
            return item.id or item.link
    return ""


def _ids_change(own: Sequence[Identified], known: Sequence[SeenItem]) -> bool:
    """Whether most items are known, but with other ids."""
    identities = {item.identity for item in known}
    likenesses = {item.likeness for item in known}
    renamed = [one for one in own if one.identity not in identities and one.likeness in likenesses]
    return len(renamed) > _FEW and 2 * len(renamed) > len(own)


def _all_changes(own: Sequence[Identified], find: FindItems) -> bool:
    """Whether most of the items, of which no id and no link is known, have known texts: ids and
    links have both changed, as those with the number of a session do. A feed that only repeats
    its texts, such as warnings, still shows some of its earlier items.
    """
    if len(own) <= _FEW:
        return False
    texts = {item.text for item in find((), (), (one.text for one in own))}
    n_known = sum(one.text in texts for one in own)
    return n_known > _FEW and 2 * n_known > len(own)


class _Selector:
    """Goes through the items of a document."""

    def __init__(
        self, source: Source, notes: Notes, known: Sequence[SeenItem], now: int, policy: Policy
    ) -> None:
        self._source = source
        self._notes = notes
        self._now = now
        self._by_identity = {item.identity: item for item in known}
        self._by_likeness = {item.likeness: item for item in known}
        self._by_text = {item.text: item for item in known} if policy is Policy.TEXT else {}
        self._found = Selection(policy)
        self._dated: list[tuple[int, tuple[bytes, bytes]]] = []

    def select(self, own: Sequence[Identified]) -> Selection:
        """What is new among the items."""
        done: set[bytes] = set()
        # Feeds show the newest items first; events are published in the order of items.
        for one in reversed(own):
            if one.identity in done:
                self._notes.add("repeated-item", one.item.title)
                continue
            done.add(one.identity)
            self._take(one)
        self._dated.sort(key=lambda pair: pair[0])  # stable: without dates, in their order
        self._found.events = [event for _, event in self._dated]
        return self._found

    def _take(self, one: Identified) -> None:
        known = self._by_identity.get(one.identity)
        if known is None:
            alike = self._by_likeness.get(one.likeness) or self._by_text.get(one.text)
            if alike is None:
                self._publish(one, 1)
            else:  # it has another id, and is the same item
                self._keep(one, alike.revision)
        elif known.text == one.text:
            if known.seen < self._now - DAY or known.likeness != one.likeness:
                self._keep(one, known.revision)
        elif known.revision >= MOST_REVISIONS:
            self._notes.add("restless-item", one.item.title)
            if known.seen < self._now - DAY:
                self._found.items.append(known._replace(seen=self._now))
        else:
            self._publish(one, known.revision + 1)

    def _keep(self, one: Identified, revision: int) -> None:
        seen = SeenItem(one.identity, one.text, one.likeness, revision, self._now)
        self._found.items.append(seen)

    def _publish(self, one: Identified, revision: int) -> None:
        self._keep(one, revision)
        published = self._mend_date(one.item)
        event = orjson.dumps(make_event(self._source, one.item, published, revision))
        parts = (b"source", b"%d" % self._source.number, one.identity, one.text, b"%d" % revision)
        key = hashlib.sha256(b"\0".join(parts)).digest()
        self._dated.append((published, (key, event)))

    def _mend_date(self, item: FeedItem) -> int:
        if item.published is None:
            return self._now
        if item.published > self._now + _AHEAD:
            self._notes.add("future-date", from_microseconds(item.published).isoformat())
            return self._now
        return item.published


def make_event(source: Source, item: FeedItem, published: int, revision: int) -> dict[str, Any]:
    """The event of an item. Attributes without a value are left out, apart from texts and lists."""
    moment = from_microseconds(published)
    event: dict[str, Any] = {
        "title": item.title,
        "body": item.body,
        "feed": source.added_url,
        "feed_title": source.title,
        "tags": list(source.tags),
        "categories": list(item.categories),
        "published": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "revision": revision,
    }
    optional = {"id": item.id, "link": item.link, "author": item.author, "lang": item.lang}
    event |= {name: value for name, value in optional.items() if value}
    if item.lang in LANGUAGE_CODES:  # these are analysed as texts in this language
        event |= {f"{name}_{item.lang}": event[name] for name in TEXTS}
    return event
