"""Sends one message to a webhook, signed as Standard Webhooks says."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx2
from standardwebhooks.webhooks import Webhook as Signer

from tamis import __version__
from tamis.broker.retries import DeliveryResult
from tamis.errors import InputError
from tamis.outgoing import CheckedClient, RefusedAddressError, resolve

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tamis.broker.webhook_messages import WebhookMessage
    from tamis.outgoing import Resolve
    from tamis.server.settings import DeliverySettings


class WebhookSender:
    """Connects to checked addresses only, follows no redirects, and reads no bodies."""

    def __init__(
        self,
        settings: DeliverySettings,
        resolver: Resolve = resolve,
        clock: Callable[[], float] = time.time,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._client = CheckedClient(
            allow_private=settings.allow_private_addresses, resolver=resolver, tls=tls
        )
        self._patience = settings.webhook_timeout.total_seconds()
        self._clock = clock

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def expect_allowed(self, url: str) -> None:
        """Raise a `RefusedAddressError` if the host of a URL has an address that is not public
        now, and an `OSError` if it has none, or if they are not found in time.
        """
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise InputError(f"url is {url!r:.200}: {error}") from None
        async with asyncio.timeout(self._patience):
            await self._client.find_addresses(parsed)

    async def send(self, message: WebhookMessage) -> DeliveryResult:
        """Send a message once; never raises an error for what the receiver does."""
        began = time.perf_counter()
        status, error, retry_after, is_final = None, None, None, False
        try:
            async with asyncio.timeout(self._patience):
                status, retry_after = await self._post(message)
        except TimeoutError:
            error = f"no answer within {self._patience:g} s"
        except RefusedAddressError as refused:
            error, is_final = str(refused), True
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as failed:
            error = f"{type(failed).__name__}: {failed}"
        if status is not None and not 200 <= status < 300:
            error = f"the answer is {status}"
            if 300 <= status < 400:
                error += ", and redirects are not followed"
        milliseconds = round((time.perf_counter() - began) * 1_000)
        return DeliveryResult(status, milliseconds, error, retry_after, is_final)

    async def _post(self, message: WebhookMessage) -> tuple[int, float | None]:
        """The status of the answer, and for how many seconds it asks to wait."""
        url = httpx2.URL(message.url)
        answer = await self._client.send("POST", url, self._sign(message), message.body)
        await answer.aclose()  # without the body, which may be endless
        return answer.status_code, _read_delay(answer.headers.get("retry-after"))

    def _sign(self, message: WebhookMessage) -> dict[str, str]:
        moment = datetime.fromtimestamp(int(self._clock()), UTC)
        text = message.body.decode()
        signatures = [
            Signer(secret.reveal()).sign(message.id, moment, text) for secret in message.secrets
        ]
        return {
            "content-type": "application/json",
            "user-agent": f"Tamis/{__version__}",
            "webhook-id": message.id,
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": " ".join(signatures),
        }


def _read_delay(text: str | None) -> float | None:
    """The seconds of a Retry-After header; a date there is ignored."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 10
    return float(text) if text is not None and is_number else None
