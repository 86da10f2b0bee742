"""A mail server on a real socket that keeps what it gets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.controller import Controller


class MailServer:
    """Accepts every message."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.accepted: list[bytes] = []

    async def handle_DATA(self, _server, _session, envelope) -> str:  # noqa: N802
        self.accepted.append(envelope.content)
        return "250 OK"

    def texts(self, address: str) -> list[str]:
        """What was sent to an address, as plain text."""
        mails = [message_from_bytes(own, policy=policy.default) for own in self.accepted]
        return [_read_text(own) for own in mails if address in str(own["to"])]


def _read_text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return body.get_content()


@contextmanager
def run_mail_server() -> Iterator[MailServer]:
    """Receive on a free port of 127.0.0.1 until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = MailServer(port)
    controller = Controller(server, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield server
    finally:
        controller.stop()
