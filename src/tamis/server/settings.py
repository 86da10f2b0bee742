"""The settings of a server: what there is, and the defaults. `settings_reading` reads them."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Size(int):
    """A number of bytes; in settings, text such as "64 MB" too."""


def _setting(default: Any, text: str, *, is_secret: bool = False) -> Any:
    known = {"text": text, "is_secret": is_secret}
    return field(default=default, metadata=known, repr=not is_secret)


@dataclass(frozen=True)
class ServerSettings:
    """Where the server listens, and what it stores where."""

    folder: Path = _setting(Path("tamis.server"), "The folder that has everything.")
    host: str = _setting("127.0.0.1", "The address to listen on.")
    port: int = _setting(8080, "The port to listen on; 0 chooses a free one.")
    public_url: str = _setting("", "The address by which clients reach the server, for links.")
    tls_certificate: Path | None = _setting(None, "A PEM file; with it, the server speaks HTTPS.")
    tls_key: Path | None = _setting(None, "The PEM file of the private key.")
    follow: str = _setting(
        "", "The address of the server that writes to the folder; this one then only reads."
    )
    allow_anonymous_publishing: bool = _setting(False, "Whether events need no key.")
    shutdown_timeout: timedelta = _setting(
        timedelta(seconds=10), "How long open requests may take when the server stops."
    )


@dataclass(frozen=True)
class SubscriptionSettings:
    """The set of subscriptions."""

    store: str = _setting(
        "", "The address of a PostgreSQL database; empty for SQLite in the folder.", is_secret=True
    )
    schema: Path | None = _setting(None, "A file that declares the types of attributes.")
    missing: str = _setting("", "What a test on a missing attribute means; chosen once.")
    operators: tuple[str, ...] = _setting((), "Modules that define operators.")
    default_lease: timedelta = _setting(
        timedelta(days=1), "How long a subscription is valid if it does not say."
    )
    longest_lease: timedelta | None = _setting(None, "The longest allowed validity.")


@dataclass(frozen=True)
class ArchiveSettings:
    """The published events and their matches."""

    keep: str = _setting("all", "The events whose texts are kept: all, matched or none.")
    segment_size: Size = _setting(Size(64 << 20), "The open segment is closed at this size.")
    segment_age: timedelta = _setting(timedelta(hours=1), "The open segment is closed then.")
    retain_for: timedelta | None = _setting(timedelta(days=30), "How long segments are kept.")
    retain_size: Size | None = _setting(None, "The size above which the oldest segments go.")
    readable: str = _setting(
        "admin", "Who may read all events: admin, or read for every key with the role read."
    )
    idempotency: timedelta = _setting(
        timedelta(hours=24), "How long an idempotency key is remembered."
    )


@dataclass(frozen=True)
class LimitSettings:
    """What one key may use, unless the key itself says otherwise."""

    requests_per_second: float = _setting(1_000.0, "Requests of one key per second.")
    subscriptions: int = _setting(1_000_000, "Subscriptions of one owner.")
    webhooks: int = _setting(1_000, "Webhooks of one owner.")
    feeds: int = _setting(10_000, "Result feeds of one owner that are not revoked.")
    channels: int = _setting(10_000, "Channels of one owner.")
    event_size: Size = _setting(Size(1 << 20), "The size of one event.")
    batch_size: Size = _setting(Size(64 << 20), "The size of a request, unpacked.")
    batch_events: int = _setting(1_000_000, "Events of a request: small ones take more memory.")
    import_size: Size = _setting(Size(1 << 30), "The size of an import, unpacked.")
    expression_size: Size = _setting(Size(1 << 20), "The size of one expression.")
    forecast_events: int = _setting(1_000_000, "Events that one forecast reads, the newest.")
    forecast_time: timedelta = _setting(timedelta(seconds=10), "How long one forecast reads.")
    search_events: int = _setting(
        1_000_000, "Events that one page of a search reads where there is no index."
    )
    search_time: timedelta = _setting(timedelta(seconds=10), "How long one page of a search reads.")
    request_size: Size = _setting(
        Size(4 << 20), "The size of a request that has neither events nor rows to import."
    )
    streams: int = _setting(20_000, "Streams of one key that are open at the same time.")
    wrong_secrets_per_second: float = _setting(
        5.0,
        "Wrong secrets for one key or ticket, and different keys, from one address, per second.",
    )
    request_timeout: timedelta = _setting(
        timedelta(seconds=60), "How long the body of a request may take."
    )
    header_size: Size = _setting(Size(32 << 10), "The size of the headers of a request.")
    header_timeout: timedelta = _setting(
        timedelta(seconds=10), "How long the headers of a request may take."
    )


@dataclass(frozen=True)
class DeliverySettings:
    """How matches reach people."""

    allow_private_addresses: bool = _setting(
        False, "Whether webhooks may reach private and loopback addresses."
    )
    webhook_timeout: timedelta = _setting(timedelta(seconds=20), "Patience with a webhook.")
    disable_webhooks_after: timedelta = _setting(
        timedelta(days=5), "A webhook that fails for so long is disabled."
    )
    smtp_host: str = _setting("", "The mail server for digests; empty for none.")
    smtp_port: int = _setting(587, "The port of the mail server.")
    smtp_user: str = _setting("", "The user at the mail server.")
    smtp_password: str = _setting("", "The password at the mail server.", is_secret=True)
    smtp_sender: str = _setting("", "The address that digests come from.")
    smtp_starttls: bool = _setting(True, "Whether the connection is encrypted.")
    trusted_domains: tuple[str, ...] = _setting(
        (), "Domains whose addresses get digests without confirming them; * for all."
    )


@dataclass(frozen=True)
class StreamSettings:
    """A Spark stream that matches instead of the server."""

    matches: str = _setting(
        "", "The output of the stream, whose matches are delivered; empty if the server matches."
    )
    versions: str = _setting(
        "", "The folder or URI where the set is published for the stream; empty for none."
    )
    versions_every: timedelta = _setting(
        timedelta(minutes=1), "The time between two versions, if the set has changed."
    )


@dataclass(frozen=True)
class FeedSettings:
    """How feeds of others are read (sources)."""

    enabled: bool = _setting(True, "Whether sources are read.")
    allow_private_addresses: bool = _setting(
        False, "Whether sources may be at private and loopback addresses."
    )
    least_interval: timedelta = _setting(
        timedelta(minutes=15), "The shortest time between two fetches of a source."
    )
    most_interval: timedelta = _setting(timedelta(days=1), "The longest one.")
    fetch_timeout: timedelta = _setting(timedelta(seconds=30), "How long one fetch may take.")
    parse_timeout: timedelta = _setting(
        timedelta(seconds=30), "How long the parser may take for one document."
    )
    parse_memory: Size = _setting(
        Size(256 << 20), "The memory of the process that reads documents."
    )
    document_size: Size = _setting(Size(16 << 20), "The size of a document, unpacked.")
    connections: int = _setting(32, "Sources that are fetched at the same time.")
    host_pause: timedelta = _setting(
        timedelta(seconds=1), "The time between two requests to the same host."
    )
    obey_robots: bool = _setting(False, "Whether robots.txt may forbid a fetch.")
    user_agent: str = _setting("", "How the reader introduces itself; empty for Tamis/VERSION.")
    keep_seen: timedelta = _setting(
        timedelta(days=400), "How long an item is remembered after a source last showed it."
    )


@dataclass(frozen=True)
class OperationSettings:
    """How the server is watched."""

    log_level: str = _setting("info", "debug, info, warning or error.")
    log_format: str = _setting("text", "text or json.")
    traces: bool = _setting(False, "Whether requests make OpenTelemetry spans.")
    audit_share: float = _setting(
        0.001, "The share of events that the reference evaluator judges again."
    )
    least_free_space: Size = _setting(
        Size(64 << 20), "The server is not ready if its disk has less free space."
    )
    metrics_need_key: bool = _setting(False, "Whether /metrics needs a key of an admin.")


@dataclass(frozen=True)
class Settings:
    """All settings, by section of the file."""

    server: ServerSettings = field(default_factory=ServerSettings)
    subscriptions: SubscriptionSettings = field(default_factory=SubscriptionSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    feeds: FeedSettings = field(default_factory=FeedSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    operations: OperationSettings = field(default_factory=OperationSettings)

    def describe(self) -> list[tuple[str, str, str]]:
        """Each setting: its name, its value as the file would have it, and what it is."""
        return [
            (f"{section}.{own.name}", _show(getattr(values, own.name), own), own.metadata["text"])
            for section, values in sections_of(self)
            for own in fields(values)
        ]

    def list_secrets(self) -> list[str]:
        """The secrets among the values, and the passwords in addresses."""
        found = [
            str(getattr(values, own.name))
            for _, values in sections_of(self)
            for own in fields(values)
            if own.metadata["is_secret"] and getattr(values, own.name)
        ]
        passwords = [password for text in found if (password := _find_password(text))]
        return found + passwords


def _find_password(address: str) -> str | None:
    try:
        return urlsplit(address).password
    except ValueError:
        return None


def sections_of(settings: Settings) -> list[tuple[str, Any]]:
    """The sections and their values."""
    return [(own.name, getattr(settings, own.name)) for own in fields(Settings)]


def _show(value: Any, own: Field[Any]) -> str:
    if own.metadata["is_secret"] and value:
        return '"…"'
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return f'"{_spell_duration(value)}"'
    if isinstance(value, Size):
        return f'"{_spell_size(value)}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{one}"' for one in value) + "]"
    if isinstance(value, str | Path):
        return f'"{value}"'
    return str(value)


def _spell_duration(value: timedelta) -> str:
    seconds = value.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _spell_size(value: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if value and value % size == 0:
            return f"{value // size} {unit}"
    return str(value)
