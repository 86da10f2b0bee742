"""Options of commands that import rules of other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli.console import print_note
from tamis.errors import InputError
from tamis.importers import IMPORTERS, Settings, import_rules, read_settings
from tamis.importers.learning import learn_types
from tamis.input.event_rows import read_events
from tamis.input.formats import Format
from tamis.language.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tamis.importers.model import Imported
    from tamis.input.sources import Source
    from tamis.language.limits import Limits

_Command = TypeVar("_Command", bound="Callable[..., Any]")

RULE_FORMATS = tuple(IMPORTERS)


def _to_settings(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Settings | None:
    return None if value is None else read_settings(value)


def import_options(command: _Command) -> _Command:
    """How rules are read; `read_settings_of` takes the values."""
    command = click.option(
        "--learn",
        "samples",
        multiple=True,
        metavar="EVENTS",
        help="Learn the types of fields from the events in this file. The option can be repeated.",
    )(command)
    command = click.option(
        "--layout",
        metavar="NAME",
        help="Where the events have the fields of Sigma rules: flat (the default), evtx or "
        "winlogbeat.",
    )(command)
    return click.option(
        "--settings",
        callback=_to_settings,
        metavar="FILE.toml",
        help="Read field mappings, log sources, placeholders and pipelines from this file.",
    )(command)


def read_settings_of(  # noqa: PLR0913 - one parameter per option
    rule_format: str,
    settings: Settings | None,
    layout: str | None,
    samples: Iterable[str],
    schema: Schema | None,
    limits: Limits | None = None,
) -> Settings:
    """The settings that the options give; declared types override learned ones."""
    if layout is not None and not IMPORTERS[rule_format].has_layouts:
        raise click.UsageError(
            f"--layout {layout} is for Sigma rules; {rule_format} has no layouts"
        )
    base = settings or Settings()
    types: dict[Any, Any] = {}
    for name in samples:
        learned = learn_types(read_sample(name))
        types |= {path: learned[path] for path in learned}
    for declared in (base.schema, schema):
        if declared is not None:
            types |= {path: declared[path] for path in declared}
    known = _without_inner(types)
    return base.updated(layout=layout, schema=Schema(known) if known else None, limits=limits)


def _without_inner(types: dict[Any, Any]) -> dict[Any, Any]:
    inner = {path[:length] for path in types for length in range(1, len(path))}
    return {path: type_ for path, type_ in types.items() if path not in inner}


def read_sample(name: str) -> Iterator[Mapping[str, Any]]:
    """The events of a file, without those that cannot be read; these are reported."""
    n_events, n_wrong, first = 0, 0, ""
    for row in read_events(name):
        if row.error is None:
            n_events += 1
            yield row.event
        else:
            n_wrong += 1
            first = first or row.error.message
    if not n_events:
        raise InputError(
            f"--learn: {name} contains no events" + (f", first {first}" if first else ""),
            hint="events are JSON objects or rows, such as those for tamis match",
        )
    if n_wrong:
        total = f"{n_wrong:,} of {n_events + n_wrong:,} rows"
        print_note(f"--learn: {total} of {name} are not events, first {first}")


def import_or_refuse(rule_format: str, sources: Iterable[Source], settings: Settings) -> Imported:
    """The rules; raises an error if there are none at all."""
    imported = import_rules(rule_format, sources, settings)
    if not imported.rules:
        raise InputError("the files hold no rules")
    return imported


def is_rule_format(name: str | None) -> bool:
    """Whether this is a format of rules, and not one of subscriptions."""
    return name in IMPORTERS


build_format_option = click.option(
    "--format",
    "file_format",
    type=click.Choice([*(str(known) for known in Format), *IMPORTERS]),
    help="Read the file in this format; by default its name decides, and '-' is jsonl. Rules of "
    "other systems are always named: sigma, elasticsearch, eventbridge.",
)
