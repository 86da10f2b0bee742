"""Sends the matches of mailboxes to webhooks.

Each webhook gets its events one at a time and in order. Many are served at the same time. Those
that fail wait for their next attempt without holding up others; their attempts are limited
separately, so that dead receivers never use all connections.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.broker.mail import MailedMatch
from tamis.broker.mailbox import Position
from tamis.broker.retries import Verdict
from tamis.broker.states import WebhookState
from tamis.broker.webhook_messages import (
    WebhookMessage,
    name_message,
    spell_match,
    spell_missed,
)
from tamis.broker.webhooks import Sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from tamis.broker.dead_letters import DeadLetter
    from tamis.broker.mail import MailPage
    from tamis.broker.mailbox import Mailbox
    from tamis.broker.match_server import MatchServer
    from tamis.broker.retries import DeliveryResult
    from tamis.broker.secrets import Secret
    from tamis.broker.webhooks import Webhook

    Send = Callable[[WebhookMessage], Awaitable[DeliveryResult]]
    OnSent = Callable[[Sequence[MailedMatch]], None]

POLL_SECONDS: Final = 1.0  # between looks for attempts that are due
SWEEP_POLLS: Final = 600  # polls between looks at all webhooks
_HEALTHY: Final = 200  # webhooks that are sent to at the same time
_FAILING: Final = 50  # the same, of those whose last attempt failed
_PAGE: Final = 20  # events that are read at once
_MOST_DUE: Final = 10_000
_LOG: Final = logging.getLogger(__name__)


class _Watched(NamedTuple):
    mailbox: Mailbox
    names: Mapping[int, str]
    wake: Callable[[], None]


class WebhookWorker:
    """The tasks that send; used on one event loop."""

    def __init__(self, server: MatchServer, send: Send, on_sent: OnSent) -> None:
        """`on_sent` gets each match that a receiver has accepted."""
        self._server = server
        self._webhooks = server.broker.webhooks
        self._mailboxes = server.mailboxes
        self._send = send
        self._on_sent = on_sent
        self._healthy = asyncio.Semaphore(_HEALTHY)
        self._failing = asyncio.Semaphore(_FAILING)
        self._watched: dict[int, _Watched] = {}  # by number of the webhook
        self._n_watched = 0  # calls of `_watch`
        self._latest: dict[int, int] = {}  # the last of them for a webhook, while it reads
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._again: set[int] = set()  # woken while they were served
        self._letters: dict[int, list[DeadLetter]] = {}  # to be sent again, by webhook
        self._queued: set[int] = set()  # the numbers of these letters
        self._is_closed = False
        self._lock = Lock()
        self._woken: set[int] = set()  # by the publishing thread
        self._loop = asyncio.get_running_loop()
        self._polling = self._loop.create_task(self._poll_all())

    async def close(self) -> None:
        """End; what is on its way is cut off, and sent again after the next start."""
        self._is_closed = True
        tasks = [self._polling, *self._serving.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for watched in self._watched.values():
            self._server.hub.remove(watched.names, watched.wake)
        self._watched.clear()

    async def refresh(self, number: int) -> None:
        """Look at a webhook again: it is new, or has changed."""
        webhook = await asyncio.to_thread(self._webhooks.get, number)
        await self._watch(number, webhook)
        if webhook is not None:
            self.kick(number)

    async def refresh_mailbox(self, mailbox: Mailbox) -> None:
        """Look at the members of a channel again."""
        for number, watched in list(self._watched.items()):
            if watched.mailbox == mailbox:
                await self.refresh(number)

    def kick(self, number: int) -> None:
        """Serve a webhook now, or again if it is being served."""
        if number in self._serving:
            self._again.add(number)
            return
        task = self._loop.create_task(self._serve(number))
        self._serving[number] = task
        task.add_done_callback(lambda _: self._end_serving(number))

    def _end_serving(self, number: int) -> None:
        del self._serving[number]
        if number in self._again and not self._is_closed:
            self._again.discard(number)
            self.kick(number)

    # ── who has something to get ────────────────────────────────────────────────────────────

    async def _poll_all(self) -> None:
        n_polls = 0
        while True:
            try:
                if n_polls % SWEEP_POLLS == 0:
                    await self._sweep()
                await self._poll()
            except Exception:
                _LOG.exception("webhooks could not be read; trying again")
            n_polls += 1
            await asyncio.sleep(POLL_SECONDS)

    async def _poll(self) -> None:
        """Serve those whose next attempt is due."""
        due = await asyncio.to_thread(self._webhooks.list_due, limit=_MOST_DUE)
        letters = await asyncio.to_thread(self._webhooks.dead_letters.list_due, limit=_MOST_DUE)
        for letter in letters:
            if letter.number not in self._queued:
                self._queued.add(letter.number)
                self._letters.setdefault(letter.webhook, []).append(letter)
                self.kick(letter.webhook)
        for webhook in due:
            if webhook.number not in self._serving:
                self.kick(webhook.number)

    async def _sweep(self) -> None:
        """Look at all active webhooks: at the start, and to move idle ones on."""
        after: int | None = None
        while True:
            page = await asyncio.to_thread(
                self._webhooks.list, state=WebhookState.ACTIVE, after=after, limit=1_000
            )
            for webhook in page.items:
                await self._watch(webhook.number, webhook)
                self.kick(webhook.number)
            if (after := page.cursor) is None:
                return

    async def _watch(self, number: int, webhook: Webhook | None) -> None:
        """Be woken for the matches of an active webhook's mailbox, as its members are now."""
        names: Mapping[int, str] = {}
        is_active = webhook is not None and webhook.state is WebhookState.ACTIVE
        self._n_watched += 1
        self._latest[number] = turn = self._n_watched
        if webhook is not None and is_active:
            names = await asyncio.to_thread(self._mailboxes.names, webhook.mailbox)
            if self._latest.get(number) != turn:
                return  # a later call reads later members, and may have been faster
        del self._latest[number]
        before = self._watched.pop(number, None)
        if webhook is not None and is_active:
            watched = _Watched(webhook.mailbox, names, lambda: self._wake(number))
            self._server.hub.add(names, watched.wake)
            self._watched[number] = watched
        if before is not None:
            self._server.hub.remove(before.names, before.wake)

    def _wake(self, number: int) -> None:
        """Called on the publishing thread."""
        with self._lock:
            is_first = not self._woken
            self._woken.add(number)
        if is_first:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._kick_woken)

    def _kick_woken(self) -> None:
        with self._lock:
            woken, self._woken = self._woken, set()
        if not self._is_closed:
            for number in woken:
                self.kick(number)

    # ── one webhook ─────────────────────────────────────────────────────────────────────────

    async def _serve(self, number: int) -> None:
        """Send what a webhook has to get, until there is nothing, or an attempt fails."""
        try:
            is_more = True
            while is_more:
                await self._send_letters(number)
                is_more = await self._send_page(number)
        except Exception:
            _LOG.exception("webhook %d could not be served; trying again at the next sweep", number)

    async def _send_page(self, number: int) -> bool:
        """Send the next events; returns whether to go on at once."""
        webhook = await asyncio.to_thread(self._webhooks.get, number)
        if webhook is None or not self._is_due(webhook):
            return False
        epoch = self._server.archive.epoch
        if webhook.position.epoch != epoch:
            reason = "the history of events was restored from a backup: move the webhook"
            await asyncio.to_thread(self._webhooks.disable, number, reason)
            return False
        page, secrets = await asyncio.to_thread(self._read, webhook)
        if page.missed is not None:
            moment = self._server.live.store.moment
            body = spell_missed(epoch, page.missed, moment)
            position = Position(epoch, page.missed.stop - 1)
            return await self._send_one(webhook, secrets, position, body) is not None
        for match in page.matches:
            position = Position(epoch, match.event)
            body = spell_match(epoch, match)
            after = await self._send_one(webhook, secrets, position, body, match)
            if after is None:
                return False
            if after.position != position or after.state is not WebhookState.ACTIVE:
                return True  # it was moved or paused meanwhile: look again
            webhook = after
        if page.is_last and page.after > webhook.position.event:
            position = Position(epoch, page.after)
            await asyncio.to_thread(self._webhooks.advance, number, position)
        return not page.is_last

    def _is_due(self, webhook: Webhook) -> bool:
        next_at = webhook.attempt.next_at
        is_early = next_at is not None and next_at > self._server.live.store.moment
        return webhook.state is WebhookState.ACTIVE and not is_early

    def _read(self, webhook: Webhook) -> tuple[MailPage, Sequence[Secret]]:
        after = webhook.position.event
        page = self._mailboxes.read(webhook.mailbox, after=after, limit=_PAGE)
        has_some = page.matches or page.missed is not None
        return page, self._webhooks.secrets(webhook.number) if has_some else ()

    async def _send_one(
        self,
        webhook: Webhook,
        secrets: Sequence[Secret],
        position: Position,
        body: bytes,
        match: MailedMatch | None = None,  # None for a message about removed events
    ) -> Webhook | None:
        """Send one event and store the result; the webhook then, None if it has to wait."""
        identity = name_message(webhook.number, position)
        message = WebhookMessage(webhook.url, identity, body, secrets)
        begun = webhook.attempt.n_failed
        async with self._failing if begun else self._healthy:
            result = await self._send(message)
        if match is not None and result.is_success():
            self._on_sent([match])
        sent = Sent(webhook.number, position, match.numbers if match else (), begun, result)
        recorded = await asyncio.wrap_future(self._webhooks.submit(sent))
        if recorded is None or recorded.verdict in (Verdict.RETRY, Verdict.DISABLE):
            return None
        return recorded.webhook

    # ── dead letters ────────────────────────────────────────────────────────────────────────

    async def _send_letters(self, number: int) -> None:
        while letters := self._letters.get(number):
            letter = letters.pop(0)
            try:
                await self._send_letter(letter)
            finally:
                self._queued.discard(letter.number)
        self._letters.pop(number, None)

    async def _send_letter(self, letter: DeadLetter) -> None:
        webhook = await asyncio.to_thread(self._webhooks.get, letter.webhook)
        if webhook is None or webhook.state is not WebhookState.ACTIVE:
            return
        match, secrets = await asyncio.to_thread(self._read_letter, letter)
        identity = name_message(letter.webhook, letter.position)
        body = spell_match(letter.position.epoch, match)
        async with self._failing:
            result = await self._send(WebhookMessage(webhook.url, identity, body, secrets))
        if result.is_success():
            self._on_sent([match])
        record = self._webhooks.dead_letters.record
        await asyncio.to_thread(record, letter.number, letter.attempt.n_failed, result)

    def _read_letter(self, letter: DeadLetter) -> tuple[MailedMatch, Sequence[Secret]]:
        """The match of a letter; without its content if the archive no longer has it."""
        secrets = self._webhooks.secrets(letter.webhook)
        known = self._server.broker.subscriptions.get_many(letter.subscriptions)
        names = {number: own.id for number, own in known.items()}
        epoch, event = letter.position
        if epoch == self._server.archive.epoch:
            page = self._mailboxes.read_named(names, after=event - 1, limit=1, up_to=event)
            if page.matches:
                return page.matches[0], secrets
        ids = tuple(names.values())
        return MailedMatch(event, letter.died, 0, letter.subscriptions, ids, None), secrets
