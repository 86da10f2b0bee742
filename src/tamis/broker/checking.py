"""Checks of what callers pass in: names, URLs, addresses, moments. Errors are `InputError`s."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from tamis.broker.secrets import redact
from tamis.errors import InputError, suggest
from tamis.language.moments import read_at
from tamis.language.types.moments import from_microseconds, to_microseconds
from tamis.subscriptions.checking import WrongValueError, check_text

if TYPE_CHECKING:
    from datetime import datetime
    from enum import StrEnum

    _E = TypeVar("_E", bound=StrEnum)

NAME_BYTES: Final = 512
URL_BYTES: Final = 2_048
ADDRESS_BYTES: Final = 254  # the longest address of SMTP
_LOCAL_BYTES: Final = 64
_ERROR_CHARACTERS: Final = 500
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LABEL: Final = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
# No quoted local parts and no comments: nobody has them, and headers cannot be injected.
_ADDRESS: Final = re.compile(rf"[\w!#$%&'*+/=?^`{{|}}~.-]+@{_LABEL}(?:\.{_LABEL})*")


def expect_text(
    value: Any, argument: str, limit: int = NAME_BYTES, *, may_be_empty: bool = False
) -> str:
    """The value, if it is text of a limited size without control characters."""
    try:
        text = check_text(value, argument, limit, may_be_empty=may_be_empty)
    except WrongValueError as wrong:
        raise InputError(str(wrong)) from None
    if _CONTROL.search(text):
        raise InputError(f"{argument} holds a control character: {text!r:.100}")
    return text


def expect_member(value: Any, kinds: type[_E], argument: str) -> _E:
    """The member of an enumeration with this value; suggests the nearest one."""
    try:
        return kinds(value)
    except ValueError:
        near = suggest(value, list(kinds)) if isinstance(value, str) else None
        allowed = ", ".join(kinds)
        raise InputError(
            f"{argument} is {value!r:.100}; one of {allowed} is expected",
            hint=None if near is None else f'did you mean "{near}"?',
        ) from None


class UrlHints(NamedTuple):
    """What to do about a URL that is refused."""

    example: str
    user: str  # if it has a user name or a password


WEBHOOK_HINTS: Final = UrlHints(
    "https://example.com/hook", "the receiver knows the sender by the signature; leave them out"
)


def expect_url(value: Any, argument: str = "url", hints: UrlHints = WEBHOOK_HINTS) -> str:
    """The value, if it is the URL of a web server, without a password or a fragment."""
    text = expect_text(value, argument, URL_BYTES)
    if "@" in re.split("[/?#]", text.partition("://")[2])[0]:  # not shown: it may be a password
        raise InputError(
            f"{argument} holds a user name or a password",
            hint=hints.user,
        )
    try:
        parts = urlsplit(text)
        host = parts.hostname
        parts.port  # noqa: B018 - raises an error if it is not a number
    except ValueError as error:
        raise InputError(f"{argument} is {text!r:.200}: {error}") from None
    if parts.scheme not in ("http", "https") or not host or not text.isprintable() or " " in text:
        raise InputError(
            f"{argument} is {text!r:.200}; a URL is expected",
            hint=f'write "{hints.example}"',
        )
    if "#" in text:
        raise InputError(f"{argument} is {text!r:.200}; a fragment (#…) is not sent to a server")
    return text


def expect_address(value: Any, argument: str = "address") -> str:
    """The value, if it can be the address of a mailbox: name@host, without a display name."""
    text = expect_text(value, argument, ADDRESS_BYTES)
    local = text.partition("@")[0]
    is_dotted = local.startswith(".") or local.endswith(".") or ".." in local
    if not _ADDRESS.fullmatch(text) or is_dotted or len(local.encode()) > _LOCAL_BYTES:
        raise InputError(
            f"{argument} is {text!r:.100}; an e-mail address is expected",
            hint='write "ann@example.com", without a name and without "<" and ">"',
        )
    return text


def expect_moment(value: Any) -> int | None:
    """A given moment in microseconds; None stays None."""
    return None if value is None else to_microseconds(read_at(value))


def to_moment(micros: int | None) -> datetime | None:
    """A stored moment; None stays None."""
    return None if micros is None else from_microseconds(micros)


def clean_error(error: str | None) -> str | None:
    """An error message of the outside world, as it may be stored and shown."""
    if error is None:
        return None
    text = error.encode("utf-8", "replace").decode()
    return redact(_CONTROL.sub(" ", text))[:_ERROR_CHARACTERS]
