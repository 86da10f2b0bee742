"""What is delivered besides answers to requests, as long as the application runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tamis.broker.digest_worker import DigestWorker
from tamis.broker.webhook_worker import WebhookWorker
from tamis.server.mailer import Mailer
from tamis.server.webhook_sender import WebhookSender

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from tamis.broker.mailbox import Mailbox
    from tamis.broker.match_server import MatchServer
    from tamis.server.metrics import HandedOver
    from tamis.server.settings import Settings

    Observe = Callable[[str, Sequence[HandedOver]], None]


class Deliveries:
    """The workers of an application; without them, nothing is sent, and nothing is lost."""

    def __init__(self, server: MatchServer, settings: Settings, observe: Observe) -> None:
        """`observe` gets what was delivered, with the way that it took."""
        self._server = server
        self._observe = observe
        self.sender = WebhookSender(settings.delivery)
        self.mailer = Mailer(settings, server.secret)
        self._webhooks: WebhookWorker | None = None
        self._digests: DigestWorker | None = None

    async def __aenter__(self) -> Self:
        self._webhooks = WebhookWorker(
            self._server, self.sender.send, partial(self._observe, "webhook")
        )
        if self.mailer.is_configured:
            self._digests = DigestWorker(
                self._server,
                self.mailer.send,
                self.mailer.address,
                partial(self._observe, "digest"),
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._digests is not None:
            await self._digests.close()
            self._digests = None
        if self._webhooks is not None:
            await self._webhooks.close()
            self._webhooks = None
        await self.sender.close()

    async def refresh_webhook(self, number: int) -> None:
        """Look at a webhook again: it has changed."""
        if self._webhooks is not None:
            await self._webhooks.refresh(number)

    async def refresh_mailbox(self, mailbox: Mailbox) -> None:
        """Look at a channel again: its members have changed."""
        if self._webhooks is not None:
            await self._webhooks.refresh_mailbox(mailbox)
