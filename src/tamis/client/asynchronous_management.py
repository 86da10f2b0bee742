"""The methods of the asynchronous client for webhooks, feeds, digests, keys and archived events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.client import management
from tamis.client.management import ListPath
from tamis.client.operations import channel_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import datetime
    from typing import TypeVar

    from tamis.client.answers import (
        ArchivedEvent,
        ArchivePage,
        Channel,
        DeadLetter,
        Delivery,
        Digest,
        Feed,
        Key,
        Member,
        NewFeed,
        NewKey,
        NewWebhook,
        Webhook,
        WebhookTest,
    )
    from tamis.client.operations import Operation

    _T = TypeVar("_T")


class AsyncManagement:
    """What a client can manage besides subscriptions.

    Webhooks, feeds and digests belong to the mailbox of a subscription or of a channel. They need
    its ticket, which the client knows for subscriptions that it has made, or a key.
    """

    async def _send(self, asked: Operation[_T]) -> _T:
        raise NotImplementedError

    def _show(self, subscription_id: str | None, ticket: str | None) -> str | None:
        raise NotImplementedError

    async def _list(self, place: ListPath) -> AsyncIterator[Any]:
        """All items of a list, page by page."""
        cursor = None
        while True:
            page = await self._send(management.list_page(place, cursor))
            for found in page[place.items]:
                yield found
            cursor = page["cursor"]
            if cursor is None:
                return

    # ── webhooks ───────────────────────────────────────────────────────────────────────────

    async def create_webhook(
        self,
        url: str,
        *,
        subscription: str | None = None,
        channel: str | None = None,
        secret: str | None = None,
        ticket: str | None = None,
    ) -> NewWebhook:
        """Send the matches of a mailbox, from now on, to an address. The requests are signed with
        the secret, which is shown only here.
        """
        given = {"url": url, "subscription": subscription, "channel": channel, "secret": secret}
        return await self._send(management.create_webhook(given, self._show(subscription, ticket)))

    async def webhooks(
        self, *, subscription: str | None = None, channel: str | None = None
    ) -> AsyncIterator[Webhook]:
        """All webhooks, or those of a mailbox."""
        filters = {"subscription": subscription, "channel": channel}
        async for found in self._list(ListPath("/v1/webhooks", "webhooks", filters)):
            yield found

    async def get_webhook(self, number: int, *, ticket: str | None = None) -> Webhook:
        """A webhook, and how its deliveries stand."""
        return await self._send(management.get_webhook(number, ticket))

    async def pause_webhook(self, number: int, *, ticket: str | None = None) -> Webhook:
        """Send nothing until it is resumed; nothing is lost, except by retention."""
        return await self._send(management.pause_webhook(number, ticket))

    async def resume_webhook(
        self, number: int, *, after: str | None = None, ticket: str | None = None
    ) -> Webhook:
        """Go on after the last delivered event, or after a cursor; also if it was disabled."""
        return await self._send(management.resume_webhook(number, after, ticket))

    async def rotate_webhook(
        self,
        number: int,
        *,
        secret: str | None = None,
        overlap: int | None = None,
        ticket: str | None = None,
    ) -> str:
        """Replace the signing secret, and return the new one. For `overlap` seconds, requests are
        signed with both.
        """
        given = {"secret": secret, "overlap": overlap}
        return await self._send(management.rotate_webhook(number, given, ticket))

    async def test_webhook(self, number: int, *, ticket: str | None = None) -> WebhookTest:
        """Send a signed test message once, and report what came of it."""
        return await self._send(management.test_webhook(number, ticket))

    async def delete_webhook(self, number: int, *, ticket: str | None = None) -> None:
        """Send nothing more, and forget its deliveries and dead letters."""
        await self._send(management.delete_webhook(number, ticket))

    async def deliveries(self, number: int) -> AsyncIterator[Delivery]:
        """The recent attempts of a webhook, the newest first."""
        async for found in self._list(
            management.list_of_webhook(number, "deliveries", "deliveries")
        ):
            yield found

    async def dead_letters(self, number: int) -> AsyncIterator[DeadLetter]:
        """The events that a webhook has given up, the oldest first."""
        async for found in self._list(
            management.list_of_webhook(number, "dead-letters", "letters")
        ):
            yield found

    async def send_dead_letters(
        self, number: int, numbers: Sequence[int] | None = None, *, ticket: str | None = None
    ) -> int:
        """Send dead letters again, by default all; returns how many."""
        return await self._send(management.change_letters(number, "send", numbers, ticket))

    async def delete_dead_letters(
        self, number: int, numbers: Sequence[int] | None = None, *, ticket: str | None = None
    ) -> int:
        """Forget dead letters, by default all; returns how many."""
        return await self._send(management.change_letters(number, "delete", numbers, ticket))

    # ── feeds, digests, channels ───────────────────────────────────────────────────────────

    async def create_feed(
        self,
        *,
        subscription: str | None = None,
        channel: str | None = None,
        title: str | None = None,
        ticket: str | None = None,
    ) -> NewFeed:
        """Make an address at which feed readers find the newest matches of a mailbox, without a
        key. It is shown only here.
        """
        given = {"subscription": subscription, "channel": channel, "title": title}
        return await self._send(management.create_feed(given, self._show(subscription, ticket)))

    async def feeds(
        self, *, subscription: str | None = None, channel: str | None = None
    ) -> AsyncIterator[Feed]:
        """All feeds, or those of a mailbox."""
        filters = {"subscription": subscription, "channel": channel}
        async for found in self._list(ListPath("/v1/feeds", "feeds", filters)):
            yield found

    async def revoke_feed(self, number: int, *, ticket: str | None = None) -> None:
        """Make the address of a feed invalid."""
        await self._send(management.revoke_feed(number, ticket))

    async def create_digest(  # noqa: PLR0913 - all that a digest has
        self,
        address: str,
        *,
        subscription: str | None = None,
        channel: str | None = None,
        period: str | None = None,
        hour: int | None = None,
        minute: int | None = None,
        zone: str | None = None,
        ticket: str | None = None,
    ) -> Digest:
        """Send one e-mail an hour or a day (`period`: hourly, daily) for all matches of a mailbox,
        once the address has confirmed it.
        """
        given: dict[str, Any] = {"address": address, "subscription": subscription}
        given |= {"channel": channel, "period": period}
        given |= {"hour": hour, "minute": minute, "zone": zone}
        return await self._send(management.create_digest(given, self._show(subscription, ticket)))

    async def digests(
        self, *, subscription: str | None = None, channel: str | None = None
    ) -> AsyncIterator[Digest]:
        """All digests, or those of a mailbox."""
        filters = {"subscription": subscription, "channel": channel}
        async for found in self._list(ListPath("/v1/digests", "digests", filters)):
            yield found

    async def get_digest(self, number: int, *, ticket: str | None = None) -> Digest:
        """A digest, and how it stands."""
        return await self._send(management.get_digest(number, ticket))

    async def delete_digest(self, number: int, *, ticket: str | None = None) -> None:
        """Send no more messages."""
        await self._send(management.delete_digest(number, ticket))

    async def channels(self, *, owner: str | None = None) -> AsyncIterator[Channel]:
        """All channels, or those of an owner, the oldest first."""
        async for found in self._list(ListPath("/v1/channels", "channels", {"owner": owner})):
            yield found

    async def get_channel(self, name: str) -> Channel:
        """A channel."""
        return await self._send(management.get_channel(name))

    async def channel_members(self, name: str) -> AsyncIterator[Member]:
        """The subscriptions that share a channel."""
        async for found in self._list(ListPath(channel_path(name, "members"), "members", {})):
            yield found

    # ── keys, archived events ──────────────────────────────────────────────────────────────

    async def create_key(
        self,
        owner: str,
        roles: Sequence[str],
        *,
        expires: datetime | str | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> NewKey:
        """Make an API key; its text is shown only here. From the first one on, the server needs a
        key for everything.
        """
        given = {"owner": owner, "roles": list(roles), "expires": expires, "limits": limits}
        return await self._send(management.create_key(given))

    async def keys(self, *, owner: str | None = None) -> AsyncIterator[Key]:
        """All keys, or those of an owner, the oldest first; revoked and expired ones too."""
        async for found in self._list(ListPath("/v1/keys", "keys", {"owner": owner})):
            yield found

    async def revoke_key(self, key_id: str) -> Key:
        """Make a key invalid at once, and end its open streams."""
        return await self._send(management.revoke_key(key_id))

    async def events(
        self,
        *,
        after: str | None = None,
        since: datetime | str | None = None,
        limit: int = 100,
        who: bool = False,
    ) -> ArchivePage:
        """A page of the published events, after a cursor or since a moment, for those who may read
        all. With `who`, each has the ids of the subscriptions that it matched.
        """
        return await self._send(management.read_events(after, since, limit=limit, who=who))

    async def event(self, number: int, *, who: bool = False) -> ArchivedEvent:
        """A published event by its number."""
        return await self._send(management.read_event(number, who=who))
