"""Sessions of people who signed in with a key: a text that stands for the key for some hours.

A session is signed, not stored: it survives a restart of the server, and ends with its key. So the
browser never keeps the key itself.
"""

from __future__ import annotations

import base64
import hmac
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.broker.secrets import Purpose, Secret
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tamis.broker.keys import Key, Keys
    from tamis.broker.secrets import ServerSecret

SESSION_SECONDS: Final = 12 * 3_600  # a working day
_SESSION: Final = re.compile(r"(session_([0-9a-f]{12})_([0-9]{1,12}))_[A-Za-z0-9_-]{43}", re.ASCII)


class Session(NamedTuple):
    """Whoever signed in, and until when."""

    key: Key
    text: Secret  # what the browser keeps
    expires: datetime


class Sessions:
    """Begins and recognises sessions."""

    def __init__(self, keys: Keys, secret: ServerSecret, now: Callable[[], int]) -> None:
        """`now` returns microseconds."""
        self._keys = keys
        self._secret = secret
        self._now = now
        # Browsers share cookies between all servers of a host, whatever their ports.
        self.cookie = f"tamis_{secret.hash(Purpose.SESSION, 'cookie')[:6].hex()}"

    def begin(self, key: Key) -> Session:
        """A session of a key; it does not outlive the key."""
        seconds = self._now() // 1_000_000 + SESSION_SECONDS
        if key.expires is not None:
            seconds = min(seconds, int(key.expires.timestamp()))
        signed = f"session_{key.id}_{seconds}"
        return Session(key, Secret(f"{signed}_{self._sign(signed)}"), _to_moment(seconds))

    def find(self, text: str) -> Session | None:
        """The session with this text; None if it is invalid, or it or its key has ended."""
        found = _SESSION.fullmatch(text)
        if found is None:
            return None
        signed, key_id, seconds = found[1], found[2], int(found[3])
        is_right = hmac.compare_digest(text, f"{signed}_{self._sign(signed)}")
        if not is_right or self._now() >= seconds * 1_000_000:
            return None
        key = self._keys.find_valid(key_id)
        return None if key is None else Session(key, Secret(text), _to_moment(seconds))

    def make_token(self, session: Session) -> str:
        """What a page must send with each change: other pages cannot read it."""
        return self._secret.hash(Purpose.PAGE, session.text.reveal()).hex()

    def is_token(self, session: Session, shown: str) -> bool:
        """Whether a text is the token of a session, in constant time."""
        return hmac.compare_digest(self.make_token(session).encode(), shown.encode())

    def _sign(self, signed: str) -> str:
        return base64.urlsafe_b64encode(self._secret.hash(Purpose.SESSION, signed))[:43].decode()


def _to_moment(seconds: int) -> datetime:
    return from_microseconds(seconds * 1_000_000)
