"""The synchronous client."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx2

from tamis.client import operations
from tamis.client.connecting import STREAM_PATIENCE, StreamPlace, Tickets, make_options, unreachable
from tamis.client.records import ServerError
from tamis.client.synchronous_management import Management

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self, TypeVar

    from tamis.client.answers import Channel, CheckedDraft, Explanation, Forecast, SearchPage
    from tamis.client.operations import Operation
    from tamis.client.records import Match, Matches, Published, Subscription

    _T = TypeVar("_T")


class Client(Management):
    """A client of the server at an address. Threads may share it.

    It remembers the tickets of the subscriptions that it makes; show others with `ticket`. A
    request that fails on the way is repeated if a second one does no harm; publishing is safe to
    repeat, since each request has an idempotency key.
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8080",
        key: str | None = None,
        *,
        timeout: float = 30.0,
        trust: ssl.SSLContext | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """`key` is an API key of the server. `trust` decides which certificates are accepted; by
        default, those that this machine trusts.
        """
        self._address = address
        options = make_options(address, key, timeout, trust)
        self._http = httpx2.Client(**options, transport=transport)
        self._tickets = Tickets()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── subscriptions ──────────────────────────────────────────────────────────────────────

    def subscribe(  # noqa: PLR0913 - all that a subscription has
        self,
        expression: str,
        *,
        id: str | None = None,  # noqa: A002 - what the server calls it
        owner: str | None = None,
        tags: Sequence[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        lease: float | None = None,
        history: str | int | None = None,
        group_similar: str | None = None,
    ) -> Subscription:
        """Make a subscription; its `ticket` is needed to change it, and shown only here. With
        `history`, an age such as 7d or the number of an event, its mailbox begins there. With
        `group_similar`, an age such as 3d, matches say to which earlier ones they are similar.
        """
        given: dict[str, Any] = {"id": id, "owner": owner, "tags": tags, "attributes": attributes}
        given |= {"valid_from": valid_from, "valid_until": valid_until, "lease": lease}
        given |= {"history": history, "group_similar": group_similar}
        made = self._send(operations.subscribe(expression, given))
        self._tickets.remember(made)
        return made

    def get(self, subscription_id: str, *, ticket: str | None = None) -> Subscription:
        """A subscription."""
        return self._send(operations.get(subscription_id, self._show(subscription_id, ticket)))

    def list(self, *, limit: int = 100, **filters: Any) -> Iterator[Subscription]:
        """All subscriptions, by id; `owner`, `tag`, `text` and `state` choose some of them."""
        cursor = None
        while True:
            page = self._send(operations.list_page({**filters, "limit": limit, "cursor": cursor}))
            yield from page.subscriptions
            cursor = page.cursor
            if cursor is None:
                return

    def replace(
        self,
        subscription_id: str,
        *,
        ticket: str | None = None,
        if_revision: int | None = None,
        **fields: Any,
    ) -> Subscription:
        """Change the given fields: expression, tags, attributes, valid_from, valid_until,
        group_similar.

        With `if_revision` it is refused if the subscription was changed since that revision.
        """
        shown = self._show(subscription_id, ticket)
        return self._send(operations.replace(subscription_id, shown, if_revision, fields))

    def renew(
        self,
        subscription_id: str,
        valid_until: datetime | str | None = None,
        *,
        lease: float | None = None,
        ticket: str | None = None,
    ) -> Subscription:
        """Extend a lease until a moment, or for so many seconds from now; by default for the
        server's default.
        """
        shown = self._show(subscription_id, ticket)
        return self._send(operations.renew(subscription_id, shown, valid_until, lease))

    def unsubscribe(
        self, subscription_id: str, *, ticket: str | None = None, if_revision: int | None = None
    ) -> None:
        """End a subscription."""
        shown = self._show(subscription_id, ticket)
        self._send(operations.unsubscribe(subscription_id, shown, if_revision))

    def import_subscriptions(
        self,
        rows: Any,
        *,
        media_type: str | None = None,
        replaces: bool = False,
        is_dry: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Import subscriptions: dicts, JSON lines (`str` or `bytes`), or a file of `media_type`.

        Yields a result for each row, with the ticket of each new subscription, and a summary.
        With `replaces`, a row may replace a subscription if it has its ticket in the column
        "ticket"; if it `is_dry`, nothing is stored.
        """
        yield from self._read_lines(
            operations.import_rows(rows, media_type, replaces=replaces, is_dry=is_dry)
        )

    def export(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """All subscriptions, as `import_subscriptions` reads them; `owner`, `tag`, `text` and
        `state` choose some of them.
        """
        yield from self._read_lines(operations.export(filters))

    # ── channels ───────────────────────────────────────────────────────────────────────────

    def create_channel(self, name: str, subscriptions: Sequence[str] = ()) -> Channel:
        """Make a mailbox that subscriptions share."""
        return self._send(operations.create_channel(name, subscriptions))

    def delete_channel(self, name: str) -> None:
        """Delete a channel; its subscriptions stay."""
        self._send(operations.delete_channel(name))

    def add_to_channel(
        self, name: str, subscriptions: Sequence[str], *, ticket: str | None = None
    ) -> int:
        """Let subscriptions share a channel; returns how many are new in it."""
        asked = operations.change_members(name, subscriptions, ticket, is_added=True)
        return self._send(asked)

    def remove_from_channel(self, name: str, subscriptions: Sequence[str]) -> int:
        """Take subscriptions out of a channel; returns how many were in it."""
        return self._send(operations.change_members(name, subscriptions, None, is_added=False))

    # ── events ─────────────────────────────────────────────────────────────────────────────

    def publish(
        self, events: Any, *, ids: bool = False, idempotency_key: str | None = None
    ) -> Published:
        """Publish a dict, a list of dicts, JSON lines (`str` or `bytes`), or Arrow data.

        With `ids`, the answer has the ids of the subscriptions that matched.
        """
        asked = operations.publish(events, ids=ids, idempotency_key=idempotency_key)
        return self._send(asked)

    def matches(  # noqa: PLR0913 - one argument for each choice
        self,
        subscription_id: str | None = None,
        *,
        channel: str | None = None,
        after: str | None = None,
        consumer: str | None = None,
        limit: int = 100,
        wait: float = 0,
        ticket: str | None = None,
    ) -> Matches:
        """A page of the mailbox of a subscription, or of a channel. With `wait`, it waits so many
        seconds for the first match. Without `after`, it begins after what a consumer has
        acknowledged.
        """
        path = operations.mailbox_path(subscription_id, channel, "matches")
        shown = self._show(subscription_id, ticket)
        asked = operations.read_matches(
            path, shown, after=after, consumer=consumer, limit=limit, wait=wait
        )
        return self._send(asked)

    def acknowledge(
        self,
        subscription_id: str | None,
        cursor: str,
        *,
        channel: str | None = None,
        consumer: str = "default",
        ticket: str | None = None,
    ) -> str:
        """Store that a consumer has handled all matches up to a cursor; returns where it is."""
        path = operations.mailbox_path(subscription_id, channel, "acknowledge")
        shown = self._show(subscription_id, ticket)
        return self._send(operations.acknowledge(path, shown, cursor, consumer))

    def stream(
        self,
        subscription_id: str | None = None,
        *,
        channel: str | None = None,
        after: str | None = None,
        consumer: str | None = None,
        ticket: str | None = None,
    ) -> Iterator[Match]:
        """Matches as they come, without end; by default from now on, or after what a consumer has
        acknowledged.

        If the connection is lost, it continues where it was, also if there was no match yet. A
        server that was reached may be away for two minutes. Events that retention removed before
        they were read are a `TamisWarning`.
        """
        path = operations.mailbox_path(subscription_id, channel, "stream")
        asked = operations.stream(path, self._show(subscription_id, ticket), consumer)
        place = StreamPlace(self._address, after)
        while True:
            lost: Exception | None = None
            try:
                yield from self._listen(asked, place)
            except (httpx2.TransportError, ServerError) as error:
                lost = error
            time.sleep(place.find_pause(lost))

    def _listen(self, asked: Operation[None], place: StreamPlace) -> Iterator[Match]:
        """The matches of one connection."""
        params = (asked.params or {}) | ({} if place.after is None else {"after": place.after})
        timeout = httpx2.Timeout(self._http.timeout.connect, read=STREAM_PATIENCE)
        with self._http.stream(
            asked.method, asked.path, headers=asked.headers, params=params, timeout=timeout
        ) as response:
            if not response.is_success:
                response.read()
                raise operations.to_error(response)
            # The server limits the size of events.
            for event in httpx2.EventSource(response, max_event_size=None):
                found = place.take(event)
                if found is not None:
                    yield found

    # ── questions ──────────────────────────────────────────────────────────────────────────

    def match(
        self,
        event: Mapping[str, Any],
        *,
        tagged: Sequence[str] | None = None,
        subset: Sequence[str] | None = None,
    ) -> Sequence[str]:
        """The ids of the subscriptions that an event would match; nothing is published."""
        return self._send(operations.match(event, {"tagged": tagged, "subset": subset}))

    def explain(
        self, subscription_id: str, event: Mapping[str, Any], *, ticket: str | None = None
    ) -> Explanation:
        """Why a subscription matches an event, or why not."""
        shown = self._show(subscription_id, ticket)
        return self._send(operations.explain(subscription_id, event, shown))

    def explain_draft(self, expression: str, event: Mapping[str, Any]) -> Explanation:
        """Why an expression that is not a subscription matches an event, or why not."""
        return self._send(operations.explain_draft(expression, event))

    def check(self, expression: str, *, similar: bool = True) -> CheckedDraft:
        """Errors and warnings of a draft, its attributes, and similar subscriptions."""
        return self._send(operations.check(expression, similar=similar))

    def forecast(
        self,
        expression: str,
        *,
        days: int | None = None,
        samples: int | None = None,
        subscription_id: str | None = None,
    ) -> Forecast:
        """What a draft would have matched in the last days; with `subscription_id`, compared with
        what that subscription matches.
        """
        options = {"days": days, "samples": samples, "subscription_id": subscription_id}
        return self._send(operations.forecast(expression, options))

    def search(  # noqa: PLR0913 - one argument for each way to choose
        self,
        expression: str | None = None,
        *,
        query: str | None = None,
        attributes: Sequence[str] | None = None,
        languages: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        order: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SearchPage:
        """A page of the archived events that an expression would have matched, or a search-box
        `query` over some attributes, with the stems of some `languages`. `order` is newest or
        relevance; `cursor` is that of the page before.
        """
        options: dict[str, Any] = {"query": query, "attributes": attributes}
        options |= {"languages": languages, "since": since, "until": until}
        options |= {"order": order, "limit": limit, "cursor": cursor}
        return self._send(operations.search(expression, options))

    # ── sending ────────────────────────────────────────────────────────────────────────────

    def _show(self, subscription_id: str | None, ticket: str | None) -> str | None:
        known = None if subscription_id is None else self._tickets.find(subscription_id)
        return known if ticket is None else ticket

    def _read_lines(self, asked: Operation[_T]) -> Iterator[_T]:
        """The lines of an answer, as they come."""
        timeout = httpx2.Timeout(self._http.timeout.connect, read=STREAM_PATIENCE)
        own = asked.request(self._http.timeout) | {"timeout": timeout}
        try:
            with self._http.stream(**own) as response:
                if not response.is_success:
                    response.read()
                    raise operations.to_error(response)
                for line in response.iter_lines():
                    yield asked.read_text(line)
        except httpx2.TransportError as error:
            raise unreachable(self._address, error) from None

    def _send(self, asked: Operation[_T]) -> _T:
        for attempt in range(operations.ATTEMPTS):
            response, failure = None, None
            try:
                response = self._http.request(**asked.request(self._http.timeout))
            except httpx2.TransportError as error:
                failure = error
            pause = operations.find_pause(response, attempt) if asked.is_repeatable else None
            if failure is not None and pause is None:
                raise unreachable(self._address, failure) from None
            if response is not None and (response.is_success or pause is None):
                return asked.finish(response)
            assert pause is not None
            time.sleep(pause)
        raise AssertionError("the last attempt has no pause")
