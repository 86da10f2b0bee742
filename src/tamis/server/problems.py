"""The one shape of errors: problem details (RFC 9457), with our code, place and hint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from tamis.broker.quotas import TooManyError
from tamis.errors import (
    EpochError,
    ExpressionError,
    HistoryError,
    InputError,
    MissingOperatorError,
    NameTakenError,
    NotAllowedError,
    RefusedError,
    StoreError,
    TamisError,
    TooOftenError,
    UnknownItemError,
)
from tamis.server.answers import spell_json
from tamis.subscriptions import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE: Final = "application/problem+json"

TITLES: Final = {
    400: "Bad request",
    401: "Key required",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "Too slow",
    409: "Conflict",
    410: "Gone",
    411: "Length required",
    412: "Precondition failed",
    413: "Too large",
    415: "Unsupported media type",
    421: "Wrong host",
    422: "Invalid content",
    428: "Precondition required",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Unavailable",
}
_REFUSALS: Final = {
    Reason.INVALID: 422,
    Reason.EXISTS: 409,
    Reason.UNKNOWN: 404,
    Reason.EXPIRED: 410,
    Reason.REVISION: 412,
    Reason.SHORTER: 409,
}
_KINDS: Final = (
    (HistoryError, 410, "history-lost"),
    (EpochError, 410, "history-lost"),
    (MissingOperatorError, 503, "missing-operator"),
    (StoreError, 503, "store-unavailable"),
    (NotAllowedError, 403, "not-yours"),
    (UnknownItemError, 404, "unknown-item"),
    (NameTakenError, 409, "name-taken"),
)


class Problem(HTTPException):
    """An error that a request ends with (RFC 9457).

    It is an `HTTPException` so that FastAPI lets it pass while it reads a body.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.status = status
        self.code = code
        self.hint = hint
        self.more = more

    def __str__(self) -> str:
        return self.detail

    def to_json(self, request_id: str | None = None) -> dict[str, Any]:
        """The problem details."""
        found: dict[str, Any] = {
            "type": f"urn:tamis:problem:{self.code}",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.hint is not None:
            found["hint"] = self.hint
        if request_id is not None:
            found["request_id"] = request_id
        return found | self.more

    def to_response(self, request_id: str | None = None) -> Response:
        """The answer to the request."""
        body = spell_json(self.to_json(request_id))
        return Response(body, self.status, self.headers, MEDIA_TYPE)


def describe(error: TamisError) -> Problem:
    """The problem that an error of the library is."""
    if isinstance(error, ExpressionError):
        place = {"line": error.line, "column": error.column, "span": list(error.span)}
        more: dict[str, Any] = {**place, "picture": error.picture()}
        if error.subscription_id is not None:
            more["subscription_id"] = error.subscription_id
        return Problem(422, error.code, error.message, hint=error.hint, **more)
    if isinstance(error, RefusedError):
        revision: dict[str, Any] = {} if error.revision is None else {"revision": error.revision}
        status = _REFUSALS[Reason(error.reason)]
        return Problem(
            status, f"refused-{error.reason}", error.message, hint=error.hint, **revision
        )
    if isinstance(error, TooOftenError):
        wait = {"retry-after": str(error.seconds)}
        return Problem(429, "too-often", error.message, hint=error.hint, headers=wait)
    if isinstance(error, TooManyError):
        code = f"too-many-{error.kind}"
        return Problem(403, code, error.message, hint=error.hint, limit=error.most)
    for kind, status, code in _KINDS:
        if isinstance(error, kind):
            return Problem(status, code, error.message, hint=error.hint)
    if isinstance(error, InputError):
        return Problem(422, getattr(error, "code", "bad-input"), error.message, hint=error.hint)
    return Problem(400, "error", error.message, hint=error.hint)
