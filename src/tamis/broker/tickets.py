"""Tickets: who shows the ticket of a subscription may renew, replace and end it (Liu §5.1)."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.broker.secrets import Purpose, Secret, ServerSecret, new_ticket

if TYPE_CHECKING:
    from typing import Any


MOST_RIGHT: Final = 100_000  # hashes of tickets that are remembered; the least recent ones go


class Ticket(NamedTuple):
    """A new ticket."""

    secret: Secret  # for the subscriber, shown once
    hash: bytes  # the `ticket_hash` of the subscription


class Tickets:
    """Makes tickets and verifies them."""

    def __init__(self, secret: ServerSecret) -> None:
        self._secret = secret
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._lock = Lock()

    def make(self) -> Ticket:
        """A ticket for a new subscription."""
        ticket = new_ticket()
        made = Ticket(ticket, self._secret.hash(Purpose.TICKET, ticket.reveal()))
        self._remember(made.hash)
        return made

    def verify(self, shown: Any, ticket_hash: bytes | None) -> bool:
        """Whether this is the ticket of a subscription with that hash.

        It takes the same time for every wrong ticket, and if there is no subscription or it has
        no ticket (None).
        """
        text = shown if isinstance(shown, str) else ""
        is_right = self._secret.verify(Purpose.TICKET, text, ticket_hash)
        if is_right and ticket_hash is not None:
            self._remember(ticket_hash)
        return is_right

    def was_right(self, shown: str) -> bool:
        """Whether this was the ticket of a subscription, as far as this process has seen."""
        return self._secret.hash(Purpose.TICKET, shown) in self._right

    def _remember(self, ticket_hash: bytes) -> None:
        with self._lock:
            self._right[ticket_hash] = None
            self._right.move_to_end(ticket_hash)
            while len(self._right) > MOST_RIGHT:
                self._right.popitem(last=False)
