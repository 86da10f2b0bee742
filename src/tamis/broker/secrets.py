"""Secrets: the server's own, and the tickets, keys and tokens that it hands out.

A handed-out secret is random and shown once. The database has only its keyed hash, so that neither
a stolen database nor a stolen backup lets anybody in. Each kind has its own prefix, so that secret
scanners and `redact` recognise it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
import stat
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tamis.durable import create_file, make_directory
from tamis.errors import InputError, StoreError
from tamis.subscriptions.failures import translated

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

FILE: Final = "secret"  # in the server's folder
SERVER_SECRET_BYTES: Final = 32
_RANDOM_BYTES: Final = 32  # of what is handed out
_SIGNING_BYTES: Final = range(24, 65)  # as Standard Webhooks requires
_NO_HASH: Final = bytes(32)
# All that this module hands out; base64 of 24 bytes has 32 characters.
_HANDED_OUT: Final = re.compile(
    r"(tkt_|feed_|whsec_|unsub_[0-9]+_|confirm_[0-9]+_|tamis_[0-9a-f]{12}_"
    r"|session_[0-9a-f]{12}_[0-9]+_)[A-Za-z0-9+/=_-]{32,}",
    re.ASCII,
)
_API_KEY: Final = re.compile(r"tamis_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)


class Purpose(StrEnum):
    """What a hash is for: the hash of a text for one purpose says nothing about another."""

    TICKET = "ticket"
    API_KEY = "api key"
    FEED = "feed"
    UNSUBSCRIBE = "unsubscribe"
    CONFIRM = "confirm"
    SESSION = "session"
    PAGE = "page"  # that a change comes from a page of the server


class Secret:
    """A text that only `reveal` returns: it does not appear in messages, logs or tracebacks."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({redact(self._text) if _HANDED_OUT.fullmatch(self._text) else '…'!r})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)


class ServerSecret:
    """The key of all hashes. Whoever loses it invalidates every ticket, key and token."""

    def __init__(self, value: bytes) -> None:
        if not isinstance(value, bytes) or len(value) < SERVER_SECRET_BYTES:
            raise InputError(
                f"the server's secret is shorter than {SERVER_SECRET_BYTES} bytes, or not bytes"
            )
        self._value = value

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The secret in the folder of a server; created if there is none."""
        path = folder / FILE
        with translated(str(path)):
            if not path.exists():
                make_directory(folder)
                create_file(path, [secrets.token_bytes(SERVER_SECRET_BYTES)], mode=0o600)
            mode = stat.S_IMODE(path.stat().st_mode)
            value = path.read_bytes()
        if mode & 0o077:
            raise StoreError(
                f"other users have access to {path}: its mode is {mode:04o}",
                hint=f"chmod 600 {path}; if it may have been read, make new keys and tickets",
            )
        if len(value) != SERVER_SECRET_BYTES:
            raise StoreError(
                f"{path} has {len(value)} bytes; {SERVER_SECRET_BYTES} are expected",
                hint="restore it from a backup: without it, no ticket and no key is valid",
            )
        return cls(value)

    def hash(self, purpose: Purpose, text: str) -> bytes:
        """The keyed hash of a text, for one purpose."""
        message = f"{purpose.value}\0{text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._value, message, "sha256")

    def verify(self, purpose: Purpose, text: str, known: bytes | None) -> bool:
        """Whether a text has a known hash, in constant time; False if there is none."""
        is_equal = hmac.compare_digest(self.hash(purpose, text), known or _NO_HASH)
        return is_equal and known is not None

    def __repr__(self) -> str:
        return "ServerSecret(…)"


def new_ticket() -> Secret:
    """A ticket: tkt_ and 32 random bytes."""
    return Secret(f"tkt_{secrets.token_urlsafe(_RANDOM_BYTES)}")


def new_feed_token() -> Secret:
    """The token in the address of a feed."""
    return Secret(f"feed_{secrets.token_urlsafe(_RANDOM_BYTES)}")


def new_api_key() -> tuple[str, Secret]:
    """The id of a key, which is no secret, and the key."""
    key_id = secrets.token_hex(6)
    return key_id, Secret(f"tamis_{key_id}_{secrets.token_urlsafe(_RANDOM_BYTES)}")


def find_key_id(text: str) -> str | None:
    """The id in the text of a key; None if the text cannot be a key."""
    found = _API_KEY.fullmatch(text)
    return None if found is None else found[1]


def new_signing_secret() -> Secret:
    """A secret to sign webhooks with: whsec_ and base64, as Standard Webhooks says."""
    random = secrets.token_bytes(_RANDOM_BYTES)
    return Secret(f"whsec_{base64.b64encode(random).decode()}")


def check_signing_secret(text: str) -> Secret:
    """A given secret, if it is one that Standard Webhooks allows."""
    encoded = text.removeprefix("whsec_") if isinstance(text, str) else ""
    try:
        n_bytes = len(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        n_bytes = 0
    if n_bytes not in _SIGNING_BYTES or not text.startswith("whsec_"):
        raise InputError(
            "the signing secret is invalid; whsec_ and the base64 of "
            f"{_SIGNING_BYTES[0]} to {_SIGNING_BYTES[-1]} bytes are expected",
            hint="leave it out to get a random one",
        )
    return Secret(text)


def redact(text: str) -> str:
    """The text with all secrets of this module replaced by their prefix."""
    return _HANDED_OUT.sub(r"\1…", text)
