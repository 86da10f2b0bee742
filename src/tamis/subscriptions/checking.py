"""Checks requests and converts them to the columns of the log.

Every database can store a checked request: its texts have no NUL, no lone surrogates and a limited
size.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from tamis.language.moments import HINT, read_moment
from tamis.language.types import WrongTypeError
from tamis.language.types.moments import to_microseconds
from tamis.subscriptions.model import (
    KEEP,
    ChangeKind,
    Reason,
    Refused,
    Renew,
    Replace,
    Subscribe,
    Unsubscribe,
)
from tamis.subscriptions.rows import TAG_SEPARATOR, join_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# In bytes of UTF-8. Ids and owners are in indexes, and PostgreSQL's hold 2,704 bytes.
ID_BYTES: Final = 512
OWNER_BYTES: Final = 512
TAGS_BYTES: Final = 4_096  # all tags of a subscription together
ATTRIBUTES_BYTES: Final = 8_192
EXPRESSION_BYTES: Final = 1_048_576
TICKET_HASH_BYTES: Final = 128


class Checked(NamedTuple):
    """A request that may be accepted."""

    kind: ChangeKind
    subscription_id: str
    columns: Mapping[str, Any]  # of `Row`: those that it sets
    if_revision: int | None


class WrongValueError(Exception):
    """Why a value is invalid."""


def check(request: Any) -> Checked | Refused:
    """The request, checked."""
    try:
        return _check(request)
    except WrongValueError as wrong:
        return Refused(Reason.INVALID, str(wrong))


def check_end(subscription_id: str) -> Checked:
    """The store's own request to write that a lease has ended."""
    return Checked(ChangeKind.EXPIRE, subscription_id, {}, None)


def _check(request: Any) -> Checked:
    # `type` is faster than `match`; a bulk load has millions of these.
    if type(request) is Subscribe:
        return Checked(ChangeKind.SUBSCRIBE, _id(request.id), _check_all(request), None)
    match request:
        case Replace():
            kind, given = ChangeKind.REPLACE, request._asdict()
            given = {name: given[name] for name in _COLUMNS if given[name] is not KEEP}
        case Renew():
            kind, given = ChangeKind.RENEW, {"valid_until": request.valid_until}
        case Unsubscribe():
            kind, given = ChangeKind.UNSUBSCRIBE, {}
        case _:
            raise WrongValueError(
                f"{request!r:.100} is not a request; "
                "Subscribe, Replace, Renew or Unsubscribe is expected"
            )
    if request.if_revision is not None and type(request.if_revision) is not int:
        raise WrongValueError(f"if_revision is {request.if_revision!r:.100}; a number is expected")
    columns = {name: _COLUMNS[name](value) for name, value in given.items()}
    return Checked(kind, _id(request.id), columns, request.if_revision)


def _check_all(request: Subscribe) -> dict[str, Any]:
    """The columns that a request sets, in the order of the table."""
    return {
        "owner": _owner(request.owner),
        "expression": _expression(request.expression),
        "tags": _tags(request.tags),
        "attributes": _attributes(request.attributes),
        "valid_from": _valid_from(request.valid_from),
        "valid_until": _valid_until(request.valid_until),
        "ticket_hash": _ticket_hash(request.ticket_hash),
    }


def is_storable(text: Any) -> bool:
    """Whether a database can store this text; if not, no row has it."""
    try:
        return "\0" not in text.encode().decode()
    except UnicodeEncodeError:
        return False


def _id(value: Any) -> str:
    return check_text(value, "id", ID_BYTES, may_be_empty=False)


def check_text(value: Any, name: str, limit: int, *, may_be_empty: bool = True) -> str:
    """The value, if every database can store it as text; raises `WrongValueError` otherwise."""
    if type(value) is not str:
        raise WrongValueError(f"{name} is {value!r:.100}; text is expected")
    if not value and not may_be_empty:
        raise WrongValueError(f"{name} is empty")
    if "\0" in value:
        raise WrongValueError(f"{name} holds the character NUL: {value!r:.100}")
    try:
        n_bytes = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise WrongValueError(f"{name} holds a lone surrogate: {value!r:.100}") from None
    if n_bytes > limit:
        raise WrongValueError(f"{name} has {n_bytes:,} bytes; at most {limit:,} are allowed")
    return value


def _owner(value: Any) -> str:
    return check_text(value, "owner", OWNER_BYTES)


def _expression(value: Any) -> str:
    return check_text(value, "expression", EXPRESSION_BYTES, may_be_empty=False)


def _tags(value: Any) -> str:
    if not isinstance(value, tuple | list) or not all(type(tag) is str for tag in value):
        raise WrongValueError(f"tags is {value!r:.100}; a list of texts is expected")
    return _check_tags(tuple(value))


@lru_cache(maxsize=1024)  # many subscriptions share few sets of tags
def _check_tags(given: tuple[str, ...]) -> str:
    tags = tuple(dict.fromkeys(given))
    if "" in tags:
        raise WrongValueError("a tag is empty")
    joined = check_text(join_tags(tags), "tags", TAGS_BYTES)
    if tags and joined.count(TAG_SEPARATOR) != len(tags) + 1:
        raise WrongValueError(f"a tag holds the control character U+001F: {tags!r:.100}")
    return joined


def _attributes(value: Any) -> str:
    if value == {}:
        return ""
    try:
        written = orjson.dumps(value)
        # Only values that JSON preserves: no dates, no NaN, no tuples.
        is_json = isinstance(value, dict) and orjson.loads(written) == value
    except (TypeError, ValueError, RecursionError):
        is_json = False
    if not is_json:
        raise WrongValueError(f"attributes is {value!r:.100}; a JSON object is expected")
    if len(written) > ATTRIBUTES_BYTES:
        raise WrongValueError(
            f"attributes has {len(written):,} bytes of JSON; "
            f"at most {ATTRIBUTES_BYTES:,} are allowed"
        )
    return written.decode()


def _moment(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if type(value) is datetime and value.tzinfo is UTC:
        return to_microseconds(value)
    try:
        return to_microseconds(read_moment(value))
    except (WrongTypeError, OverflowError):
        raise WrongValueError(f"{name} is {value!r:.100}; {HINT}") from None


def _valid_from(value: Any) -> int | None:
    return _moment(value, "valid_from")


def _valid_until(value: Any) -> int | None:
    return _moment(value, "valid_until")


def _ticket_hash(value: Any) -> bytes | None:
    if value is not None and not (isinstance(value, bytes) and len(value) <= TICKET_HASH_BYTES):
        raise WrongValueError(f"ticket_hash is not bytes, or more than {TICKET_HASH_BYTES} of them")
    return value


_COLUMNS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "owner": _owner,
    "expression": _expression,
    "tags": _tags,
    "attributes": _attributes,
    "valid_from": _valid_from,
    "valid_until": _valid_until,
    "ticket_hash": _ticket_hash,
}
