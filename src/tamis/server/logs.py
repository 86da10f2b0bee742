"""Log lines for people or for programs, without secrets, and one line for each record.

Values of clients cannot break a line, start another one, or control a terminal.
"""

from __future__ import annotations

import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from tamis.broker.secrets import redact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from tamis.server.settings import OperationSettings, Settings

REQUEST_ID: Final[ContextVar[str]] = ContextVar("request_id", default="")
FIELDS: Final = ("request_id", "key_id", "status", "seconds")  # of a record, if it has them
_SHORTEST: Final = 6  # characters of a configured secret: shorter ones are parts of other words
# Control characters, and those that end a line or change the direction of writing.
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_QUIET: Final = ("uvicorn", "httpx2", "httpcore2")  # they log addresses, which may be secret


class Redacting(logging.Filter):
    """Removes secrets from records: those that the server hands out, and those in its settings."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        super().__init__()
        self._known = [text for text in known if len(text) >= _SHORTEST]

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: the record is changed."""
        record.msg, record.args = self._clean(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._clean(record.exc_text)
        record.exc_info = None  # a later formatter would write it again, with secrets
        for name, value in list(vars(record).items()):
            if isinstance(value, str) and name not in ("msg", "exc_text"):
                setattr(record, name, self._clean(value))
        if not getattr(record, "request_id", ""):
            record.request_id = REQUEST_ID.get()
        return True

    def _clean(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, "…")
        return redact(text)


class TextFormatter(logging.Formatter):
    """A line for people; the lines of a traceback are indented."""

    def format(self, record: logging.LogRecord) -> str:
        moment = _moment(record).isoformat(sep=" ", timespec="milliseconds")
        head = f"{moment} {record.levelname} {record.name}: {record.getMessage()}"
        ids = [f"{name}={own}" for name in ("request_id", "key_id") if (own := _get(record, name))]
        lines = [" ".join([head, *ids]), *(record.exc_text or "").splitlines()]
        return "\n    ".join(escape(line) for line in lines)


class JsonFormatter(logging.Formatter):
    """A JSON object on one line, for programs."""

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "time": _moment(record).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        found |= {name: own for name in FIELDS if (own := _get(record, name)) not in (None, "")}
        if record.exc_text:
            found["exception"] = record.exc_text
        whole = {key: _storable(own) if isinstance(own, str) else own for key, own in found.items()}
        return _UNSEEN.sub(_to_json_escape, orjson.dumps(whole).decode())


def make_handler(
    settings: OperationSettings, secrets: Iterable[str] = (), stream: TextIO | None = None
) -> logging.Handler:
    """A handler that writes lines as the settings say."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(Redacting(secrets))
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    return handler


def configure(settings: Settings) -> None:
    """Log to stderr as the settings say; replaces what was configured."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
    root.addHandler(make_handler(settings.operations, settings.list_secrets()))
    root.setLevel(settings.operations.log_level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


def escape(text: str) -> str:
    """The text without characters that a terminal or a reader of lines acts on."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", _storable(text))


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _to_json_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _get(record: logging.LogRecord, name: str) -> Any:
    return getattr(record, name, None)
