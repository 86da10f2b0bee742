"""Reads the settings of a server: a TOML file, then environment variables, then flags."""

from __future__ import annotations

import os
import re
import tomllib
import types
import typing
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Union
from urllib.parse import urlsplit

from tamis.errors import InputError, suggest, warn
from tamis.feeds.parse_process import LEAST_MEMORY
from tamis.server.settings import Settings, Size, sections_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX: Final = "TAMIS_"
_UNITS: Final = {
    word: seconds
    for seconds, words in (
        (0.001, "ms millisecond milliseconds"),
        (1, "s sec secs second seconds"),
        (60, "m min mins minute minutes"),
        (3_600, "h hr hrs hour hours"),
        (86_400, "d day days"),
        (604_800, "w week weeks"),
    )
    for word in words.split()
}
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_LONGEST: Final = timedelta(days=365_000)  # so that the end of every lease is a date
_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"\s*(\d+)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)


# Variables that are no settings: of the library and the shell, and of its tests and benchmarks.
OTHER_VARIABLES: Final = frozenset(
    "ANALYSERS CACHE_BYTES CACHE_DIR KEY REGIONS REMOTE TICKET "
    "BASE BENCH_SIZE EFFORT NEEDS_BROWSER PICTURES SEED SOAK_SECONDS".split()
)
# Kubernetes sets these for a service with the name tamis.
_OF_CLUSTERS: Final = re.compile(r"SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP)(_\w+)?)?")
_ALLOWED: Final = (
    ("archive.keep", ("all", "matched", "none")),
    ("archive.readable", ("admin", "read")),
    ("operations.log_level", ("debug", "info", "warning", "error")),
    ("operations.log_format", ("text", "json")),
)
_ADDRESSES: Final = (
    ("server.public_url", "https://tamis.example.com"),
    ("server.follow", "http://writer:8080"),
)
# What would end everything at once if it were 0.
_POSITIVE: Final = (
    ("subscriptions.default_lease", "a duration such as 1 d"),
    ("subscriptions.longest_lease", "a duration such as 30 d"),
    ("archive.segment_size", "a size such as 64 MB"),
    ("archive.segment_age", "a duration such as 1 h"),
    ("archive.retain_for", 'a duration such as 30 d, or "none" for no limit,'),
    ("limits.forecast_time", "a duration such as 10 s"),
    ("limits.search_time", "a duration such as 10 s"),
    ("limits.request_timeout", "a duration such as 60 s"),
    ("limits.header_timeout", "a duration such as 10 s"),
    ("delivery.webhook_timeout", "a duration such as 20 s"),
    ("feeds.fetch_timeout", "a duration such as 30 s"),
    ("feeds.parse_timeout", "a duration such as 30 s"),
    ("feeds.connections", "at least 1"),
)


class _Given(NamedTuple):
    """A setting as it was given."""

    name: str  # with its section
    value: Any
    where: str


def read_settings(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings; `flags` are by name, such as "server.port".

    Raises an `InputError` that reports all unknown names and values of a wrong type.
    """
    settings = Settings()
    errors: list[InputError] = []
    for given in (
        [] if file is None else _read_file(file),
        _read_environment(environment or {}),
        _read_flags(flags or {}),
    ):
        for one in given:
            if isinstance(one, InputError):
                errors.append(one)
                continue
            try:
                settings = _set(settings, *one)
            except InputError as error:
                errors.append(error)
    if errors:
        raise _join(errors)
    return _check(settings)


def _join(errors: Sequence[InputError]) -> InputError:
    """One error that reports all."""
    if len(errors) == 1:
        return errors[0]
    hints = (f" ({own.hint})" if own.hint else "" for own in errors)
    lines = (f"  {own.message}{hint}" for own, hint in zip(errors, hints, strict=True))
    return InputError("\n".join([f"the settings have {len(errors)} errors:", *lines]))


def _read_file(file: Path) -> Iterator[_Given | InputError]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file} is not a TOML file: {error}") from None
    sections = [name for name, _ in sections_of(Settings())]
    for section, values in found.items():
        if section not in sections:
            message = f'{file}: there is no section "{section}"'
            yield InputError(message, hint=_hint(section, sections))
        elif not isinstance(values, dict):
            yield InputError(f"{file}: {section} is {values!r}; a section is expected")
        else:
            for name, value in values.items():
                yield _Given(f"{section}.{name}", value, str(file))


def _read_environment(environment: Mapping[str, str]) -> Iterator[_Given | InputError]:
    for variable, value in sorted(environment.items()):
        try:
            known = _find_variable(variable)
        except InputError as error:
            yield error
            continue
        if known is not None:
            yield _Given(known, value, variable)


def _read_flags(flags: Mapping[str, Any]) -> Iterator[_Given]:
    for name, value in flags.items():
        if value is not None:
            yield _Given(name, value, f"--{name.rpartition('.')[2].replace('_', '-')}")


def _find_variable(variable: str) -> str | None:
    """The setting of an environment variable; None for variables of other things.

    Raises an `InputError` for one that looks like a misspelt setting, and warns of others.
    """
    if not variable.startswith(PREFIX):
        return None
    rest = variable.removeprefix(PREFIX)
    if rest in OTHER_VARIABLES or _OF_CLUSTERS.fullmatch(rest):
        return None
    settings = Settings()
    for section, _ in sections_of(settings):
        if rest.lower().startswith(f"{section}_"):
            return f"{section}.{rest.lower().removeprefix(f'{section}_')}"
    known = [name.replace(".", "_").upper() for name, _, _ in settings.describe()]
    likely = suggest(rest, [*known, *OTHER_VARIABLES])
    if likely is not None:
        raise InputError(f"{variable}: there is no such setting", hint=_ask(PREFIX + likely))
    warn(f"the environment variable {variable} is ignored: it is not a setting of Tamis")
    return None


def _set(settings: Settings, name: str, value: Any, where: str) -> Settings:
    section, _, own = name.partition(".")
    values = getattr(settings, section)
    known = {each.name: each for each in fields(values)}
    if own not in known:
        raise InputError(f'{where}: there is no setting "{name}"', hint=_hint(own, known))
    kind = typing.get_type_hints(type(values))[own]
    try:
        read = _read(value, kind)
    except ValueError as error:
        shown = "…" if known[own].metadata["is_secret"] else repr(value)
        raise InputError(f"{where}: {name} is {shown}; {error} is expected") from None
    return replace(settings, **{section: replace(values, **{own: read})})


def _hint(word: str, known: Any) -> str:
    likely = suggest(word, known)
    return _ask(likely) if likely else f"known are: {', '.join(known)}"


def _ask(likely: str) -> str:
    return f'did you mean "{likely}"?'


def _read(value: Any, kind: Any) -> Any:
    if typing.get_origin(kind) in (Union, types.UnionType):
        (own,) = (each for each in typing.get_args(kind) if each is not type(None))
        return None if value in (None, "", "none") else _read(value, own)
    if kind is timedelta:
        return _read_duration(value)
    if kind is Size:
        return _read_size(value)
    if kind is bool:
        return _read_flag(value)
    if kind is Path:
        if isinstance(value, str | Path) and str(value):
            return Path(value)
        raise ValueError("a path")
    if typing.get_origin(kind) is tuple:
        given = value.split(",") if isinstance(value, str) else value
        if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
            return tuple(one.strip() for one in given if one.strip())
        raise ValueError("a list of texts")
    if kind is str:
        if isinstance(value, str):
            return value
        raise ValueError("text")
    return _read_number(value, kind)


def _read_number(value: Any, kind: Any) -> Any:
    wanted = "an integer that is not negative" if kind is int else "a number that is not negative"
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(wanted) from None
    is_plain = not isinstance(value, bool) and (isinstance(value, str) or number == value)
    if not is_plain or not 0 <= number < float("inf"):
        raise ValueError(wanted)
    return number


def _read_flag(value: Any) -> bool:
    known = {"true": True, "yes": True, "1": True, "on": True}
    known |= {"false": False, "no": False, "0": False, "off": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in known:
        return known[value.lower()]
    raise ValueError("true or false")


def _read_duration(value: Any) -> timedelta:
    wanted = f'a duration such as "30 s", "5 min", "12 h" or "7 days", at most {_LONGEST.days} days'
    if isinstance(value, timedelta):
        return value
    seconds = value
    if isinstance(value, str):
        found = _DURATION.fullmatch(value)
        unit = None if found is None else _UNITS.get(found[2].lower())
        seconds = None if found is None or unit is None else float(found[1]) * unit
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ValueError(wanted)
    if not 0 <= seconds <= _LONGEST.total_seconds():  # nor NaN
        raise ValueError(wanted)
    return timedelta(seconds=seconds)


def _read_size(value: Any) -> Size:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Size(value)
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('a number of bytes, or text such as "64 MB"')
    return Size(int(found[1]) * _SIZES[found[2].lower()])


def _check(settings: Settings) -> Settings:
    _check_values(settings)
    server = settings.server
    if (server.tls_certificate is None) != (server.tls_key is None):
        raise InputError("server.tls_certificate and server.tls_key must be given together")
    if settings.delivery.smtp_host and not settings.delivery.smtp_sender:
        raise InputError(
            "delivery.smtp_host is given, and delivery.smtp_sender is not",
            hint="give the address that digests come from, such as tamis@example.com",
        )
    if server.follow and (settings.stream.matches or settings.stream.versions):
        raise InputError(
            "server.follow is given together with stream.matches or stream.versions",
            hint="the server that writes takes matches and publishes versions",
        )
    if settings.stream.versions and not settings.stream.versions_every:
        raise InputError("stream.versions_every is 0; a duration such as 1 min is expected")
    feeds = settings.feeds
    if not timedelta() < feeds.least_interval <= feeds.most_interval:
        raise InputError("feeds.least_interval is not between 0 and feeds.most_interval")
    if feeds.parse_memory < LEAST_MEMORY:
        raise InputError(
            f"feeds.parse_memory is {feeds.parse_memory:,} bytes; at least 64 MB are expected"
        )
    return settings


def _check_values(settings: Settings) -> None:
    for name, allowed in _ALLOWED:
        if (value := _value(settings, name)) not in allowed:
            raise InputError(f"{name} is {value!r}; one of {', '.join(allowed)} is expected")
    for name in ("server.port", "delivery.smtp_port"):
        if (port := _value(settings, name)) > 65_535:
            raise InputError(f"{name} is {port}; 0 to 65535 are expected")
    for name, example in _POSITIVE:
        value = _value(settings, name)
        if value is not None and not value:
            raise InputError(f"{name} is 0; {example} is expected")
    for name, example in _ADDRESSES:
        value = _value(settings, name)
        if value and not _is_address(value):
            raise InputError(f"{name} is {value!r}; an address such as {example} is expected")
    if not 0 <= settings.operations.audit_share <= 1:
        raise InputError("operations.audit_share is not between 0 and 1")


def _value(settings: Settings, name: str) -> Any:
    section, _, own = name.partition(".")
    return getattr(getattr(settings, section), own)


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(text)
        return found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:  # a port that is no number
        return False


def environment() -> dict[str, str]:
    """The variables of this process that may be settings."""
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
