"""`tamis remote`: match, explain, check and forecast; nothing is stored."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.console import make_console, print_columns, print_note, printable
from tamis.cli.options import output_option
from tamis.cli.output import print_data, print_json, spell_json
from tamis.cli.remote import access_options, connecting, remote_group, ticket_option
from tamis.errors import InputError, RowError, TamisWarning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tamis.client.answers import CheckedDraft, ExplainedPart


def _read_event(context: click.Context, parameter: click.Parameter, given: str) -> dict[str, Any]:
    """An event as JSON text, or on standard input for '-'."""
    from tamis.events.json_texts import parse_event
    from tamis.events.repeated_keys import check_keys, describe_repeated

    text = sys.stdin.buffer.read() if given == "-" else given.encode()
    try:
        event = parse_event(text)
    except RowError as error:
        raise InputError(f"the event: {error.message}", hint="write a JSON object") from None
    if (repeated := check_keys(text, event)) is not None:
        print_note(describe_repeated(repeated))
    return event


event_argument = click.argument("event", callback=_read_event)


@remote_group.command("match")
@event_argument
@click.option(
    "--tag",
    "tags",
    metavar="TAG",
    multiple=True,
    help="Consider only subscriptions with this tag. The option can be repeated.",
)
@access_options
def match_command(
    event: dict[str, Any], tags: tuple[str, ...], server: str | None, key_file: Path | None
) -> None:
    """Print the ids of the subscriptions that EVENT would match; nothing is published.

    EVENT is a JSON object, or '-' to read it from standard input.

    Exit codes: 0 matched, even if there are none; 1 EVENT or the server cannot be used; 2 wrong
    usage.
    """
    with connecting(server, key_file) as client, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TamisWarning)  # rejects too: they are listed here only
        found = client.match(event, tagged=list(tags) or None)
    for own in caught:
        print_note(str(own.message))
    for name in found:
        print_data(f"{printable(name)}\n")


@remote_group.command("explain")
@click.argument("subscription_id", metavar="ID")
@click.option(
    "--event",
    metavar="JSON",
    required=True,
    callback=_read_event,
    help="Explain the answer for this event; '-' reads it from standard input.",
)
@click.option(
    "--draft", "is_draft", is_flag=True, help="Take the first argument as an expression, not an id."
)
@ticket_option
@access_options
@output_option
def explain_command(  # noqa: PLR0913 - one parameter per option
    subscription_id: str,
    event: dict[str, Any],
    is_draft: bool,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    output: str,
) -> None:
    """Explain why the subscription ID matches an event, or why not.

    Exit codes: 0 explained; 1 there is no such subscription, or the event or the server cannot be
    used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        if is_draft:
            found = client.explain_draft(subscription_id, event)
        else:
            found = client.explain(subscription_id, event, ticket=ticket)
    if output == "json":
        print_json(found)
        return
    make_console().print(printable(found["sentence"]))
    for line in _draw(found["tree"], 1):
        make_console().print(line)
    if found["changes"]:
        make_console().print("it would match if:")
    for change in found["changes"]:
        make_console().print(printable(f"  {change}"))


def _draw(step: ExplainedPart, depth: int) -> Iterator[str]:
    values = [f"{name} is {_spell(value)}" for name, value in step.get("values", {}).items()]
    remarks = "; ".join([*([", ".join(values)] if values else []), *step.get("notes", [])])
    shown = f"  ({remarks})" if remarks else ""
    yield "  " * depth + printable(f"{step['truth']}: {step['expression']}{shown}")
    for own in step.get("operands", []):
        yield from _draw(own, depth + 1)


def _spell(value: Any) -> str:
    return "missing" if value is None else spell_json(value)


@remote_group.command("check")
@click.argument("expression")
@access_options
@output_option
def check_command(expression: str, server: str | None, key_file: Path | None, output: str) -> None:
    """Check EXPRESSION against the server's set: errors, warnings, types, similar subscriptions.

    Exit codes: 0 valid, with or without warnings; 1 the expression is wrong, or the server cannot
    be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        found = client.check(expression)
    if output == "json":
        print_json(found)
    else:
        _print_checked(found)
    if not found["is_valid"]:
        raise click.exceptions.Exit(1)


def _print_checked(found: CheckedDraft) -> None:
    console = make_console()
    for own in found["problems"]:
        hint = f" (hint: {own['hint']})" if own.get("hint") else ""
        place = f"{own['line']}:{own['column']}: " if own.get("line") else ""
        console.print(printable(f"{place}{own['severity']}: {own['message']}{hint}"))
    if not found["is_valid"]:
        return
    console.print(printable(f"valid: {found['canonical']}"))
    for attribute in found["attributes"]:
        console.print(printable(f"  {attribute['name']}: {attribute['type']}"))
    similar = found["similar"]
    if similar is None:
        return
    _print_ids("equal", similar["equal"])
    _print_ids("wider", similar["wider"])
    _print_ids("narrower", similar["narrower"])


def _print_ids(name: str, ids: list[str]) -> None:
    if ids:
        make_console().print(printable(f"{name}: {', '.join(ids)}"))


@remote_group.command("forecast")
@click.argument("expression")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=7,
    show_default=True,
    help="Look back this number of days.",
)
@click.option(
    "--instead-of", metavar="ID", help="Compare with what the subscription ID matches now."
)
@access_options
@output_option
def forecast_command(  # noqa: PLR0913 - one parameter per option
    expression: str,
    days: int,
    instead_of: str | None,
    server: str | None,
    key_file: Path | None,
    output: str,
) -> None:
    """Print how many of the archived events of the last days EXPRESSION would have matched.

    It is for those who may read all events.

    Exit codes: 0 printed; 1 the expression is wrong, or the server cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        found = client.forecast(expression, days=days, subscription_id=instead_of)
    if output == "json":
        print_json(found)
        return
    rows = [[own["day"], f"{own['events']:,}", f"{own['matches']:,}"] for own in found["days"]]
    print_columns(make_console(), [["day", "events", "matches"], *rows])
    changed = (("newly", found["newly_matching"]), ("no longer", found["no_longer_matching"]))
    for how, matches in changed:
        if matches is not None:
            make_console().print(f"{how} matching: {matches['events']:,}")
    for note in found["notes"]:
        print_note(note)
    if not found["looked_at"]["is_complete"]:
        print_note(f"only the newest {found['looked_at']['events']:,} events were read")
