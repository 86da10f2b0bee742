"""Sends digests when they are due.

The position of a digest is stored after the mail server has accepted the message. If the process
is killed between the two, the same message, with the same id, is sent once more; an event is never
lost, and in no other case in two messages.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tamis.broker.digest_mails import MOST_SHOWN, DigestContents, write_mail, write_question
from tamis.broker.mailbox import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from email.message import EmailMessage

    from tamis.broker.digest_mails import Envelope
    from tamis.broker.digests import Digest
    from tamis.broker.mail import MailedMatch
    from tamis.broker.match_server import MatchServer

    SendMail = Callable[[EmailMessage], None]
    OnSent = Callable[[Sequence[MailedMatch]], None]
    Address = Callable[[Digest], Envelope]

POLL_SECONDS: Final = 10.0
_AT_ONCE: Final = 4  # messages that are sent at the same time
_CLOSE_SECONDS: Final = 10.0
_LOG: Final = logging.getLogger(__name__)


class DigestWorker:
    """The task that sends; used on one event loop."""

    def __init__(
        self, server: MatchServer, send: SendMail, address: Address, on_sent: OnSent
    ) -> None:
        """`send` raises an `OSError` if a mail server does not accept a message; it runs in a
        thread. `on_sent` gets the matches that a message shows, after it was accepted.
        """
        self._server = server
        self._digests = server.broker.digests
        self._send = send
        self._address = address
        self._on_sent = on_sent
        self._sending: set[asyncio.Task[None]] = set()
        self._polling = asyncio.get_running_loop().create_task(self._poll_all())

    async def close(self) -> None:
        """End; messages that are being sent get a little time."""
        self._polling.cancel()
        await asyncio.gather(self._polling, return_exceptions=True)
        if self._sending:
            await asyncio.wait(self._sending, timeout=_CLOSE_SECONDS)

    async def _poll_all(self) -> None:
        while True:
            try:
                due = await asyncio.to_thread(self._digests.list_due)
                places = asyncio.Semaphore(_AT_ONCE)
                await asyncio.gather(*(self._handle(digest, places) for digest in due))
            except Exception:
                _LOG.exception("digests could not be read; trying again")
            await asyncio.sleep(POLL_SECONDS)

    async def _handle(self, digest: Digest, places: asyncio.Semaphore) -> None:
        async with places:
            # Not cut off in the middle: a message that was accepted has to be recorded.
            task = asyncio.create_task(asyncio.to_thread(self._deliver, digest))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
            await asyncio.shield(task)

    def _deliver(self, digest: Digest) -> None:
        if digest.confirmed is None:
            self._ask(digest)
            return
        try:
            contents = self._collect(digest)
            is_empty = not contents.counts and contents.missed is None
            if not is_empty:
                self._send(write_mail(contents, self._address(digest)))
                self._on_sent([own for story in contents.stories for own in story.matches])
        except OSError as error:
            _LOG.warning("digest %d was not sent: %s", digest.number, error)
            self._digests.record_failure(digest.number, f"{type(error).__name__}: {error}")
        except Exception as error:
            _LOG.exception("digest %d could not be written", digest.number)
            self._digests.record_failure(digest.number, f"{type(error).__name__}: {error}")
        else:
            self._digests.record_sent(digest.number, contents.up_to, is_empty=is_empty)

    def _ask(self, digest: Digest) -> None:
        """Ask an address whether it wants a digest; give up if it did not answer."""
        confirmations = self._digests.confirmations
        if digest.asked is not None:
            if confirmations.give_up(digest.number):
                _LOG.info("digest %d was not confirmed in time; it is deleted", digest.number)
            return
        try:
            self._send(write_question(digest.number, self._address(digest)))
        except OSError as error:
            _LOG.warning("the question of digest %d was not sent: %s", digest.number, error)
            self._digests.record_failure(digest.number, f"{type(error).__name__}: {error}")
        else:
            confirmations.record_asked(digest.number)

    def _collect(self, digest: Digest) -> DigestContents:
        mailboxes, archive = self._server.mailboxes, self._server.archive
        head = mailboxes.head
        is_restored = digest.position.epoch != head.epoch
        after = digest.position
        if is_restored:  # its numbers mean other events; the clock decides what came before
            last = digest.last_sent or digest.created
            after = Position(head.epoch, archive.event_at(last))
        names = mailboxes.names(digest.mailbox)
        stories, page = mailboxes.read_stories(
            names, after=after.event, limit=MOST_SHOWN, up_to=head.event
        )
        counted = mailboxes.count(names, after=after.event, up_to=head.event)
        counts = {names[number]: count for number, count in counted.items() if count}
        return DigestContents(digest.number, after, head, counts, stories, page.missed, is_restored)
