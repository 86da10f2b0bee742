"""Gives messages to a mail server (SMTP)."""

from __future__ import annotations

import re
import smtplib
import ssl
from typing import TYPE_CHECKING, Final

from tamis.broker.digest_mails import Envelope
from tamis.broker.secrets import Purpose

if TYPE_CHECKING:
    from email.message import EmailMessage

    from tamis.broker.digests import Digest
    from tamis.broker.secrets import ServerSecret
    from tamis.server.settings import Settings

_PATIENCE: Final = 60.0  # seconds, for each answer of the mail server
_TLS_PORT: Final = 465  # encrypted from the start
_PREFIXES: Final = {Purpose.UNSUBSCRIBE: "unsub", Purpose.CONFIRM: "confirm"}
_TOKEN: Final = re.compile(r"(unsub|confirm)_([1-9][0-9]{0,17})_([0-9a-f]{64})", re.ASCII)


class Mailer:
    """Sends digests, and knows their addresses."""

    def __init__(self, settings: Settings, secret: ServerSecret) -> None:
        self._settings = settings.delivery
        self._secret = secret
        server = settings.server
        self._base = server.public_url.rstrip("/") or f"http://{server.host}:{server.port}"

    @property
    def is_configured(self) -> bool:
        """Whether there is a mail server."""
        return bool(self._settings.smtp_host)

    def address(self, digest: Digest) -> Envelope:
        """Who writes to whom, and how the receiver ends it."""
        sender = self._settings.smtp_sender
        unsubscribe = f"{self._base}/digests/{self._make_token(Purpose.UNSUBSCRIBE, digest)}"
        confirm = f"{self._base}/digests/confirm/{self._make_token(Purpose.CONFIRM, digest)}"
        host = sender.rpartition("@")[2].strip("> ") or "localhost"
        return Envelope(sender, digest.address, unsubscribe, confirm, host)

    def must_confirm(self, address: str) -> bool:
        """Whether an address is asked before it gets a digest."""
        domain = address.rpartition("@")[2].lower()
        return not any(
            own in ("*", domain) for own in map(str.lower, self._settings.trusted_domains)
        )

    def _make_token(self, purpose: Purpose, digest: Digest) -> str:
        """The token to end or to confirm a digest; it is invalid once the digest is deleted."""
        known = self._secret.hash(purpose, _describe(digest))
        return f"{_PREFIXES[purpose]}_{digest.number}_{known.hex()}"

    def verify(self, purpose: Purpose, token: str, digest: Digest) -> bool:
        """Whether this is the token of a digest for a purpose, in constant time."""
        found = _TOKEN.fullmatch(token)
        is_for_it = found is not None and found[1] == _PREFIXES[purpose]
        shown = bytes.fromhex(found[3]) if found is not None and is_for_it else None
        return self._secret.verify(purpose, _describe(digest), shown)

    def send(self, mail: EmailMessage) -> None:
        """Give a message to the mail server; raises an `OSError` unless it accepts it."""
        own = self._settings
        tls = ssl.create_default_context()
        if own.smtp_port == _TLS_PORT:
            connection: smtplib.SMTP = smtplib.SMTP_SSL(
                own.smtp_host, own.smtp_port, timeout=_PATIENCE, context=tls
            )
        else:
            connection = smtplib.SMTP(own.smtp_host, own.smtp_port, timeout=_PATIENCE)
        with connection:
            if own.smtp_starttls and own.smtp_port != _TLS_PORT:
                connection.starttls(context=tls)
            if own.smtp_user:
                connection.login(own.smtp_user, own.smtp_password)
            connection.send_message(mail)


def find_number(token: str) -> int | None:
    """The number of the digest that a token is for; None if it cannot be a token."""
    found = _TOKEN.fullmatch(token)
    return None if found is None else int(found[2])


def _describe(digest: Digest) -> str:
    return f"{digest.number} {digest.created.isoformat()} {digest.address}"
