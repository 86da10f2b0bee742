"""`tamis eval`: evaluates one expression for events, with the reference evaluator."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import tamis
from tamis.cli.console import make_console, print_error, print_note, printable
from tamis.cli.options import (
    definitions_option,
    missing_option,
    open_source,
    operators_option,
    output_option,
    schema_option,
)
from tamis.cli.output import print_json
from tamis.errors import RowError
from tamis.events.json_texts import parse_event
from tamis.events.repeated_keys import check_keys, describe_repeated
from tamis.input.event_rows import EventRow, read_events
from tamis.input.formats import Format, detect_format, list_titles
from tamis.input.schemas import add_definitions
from tamis.logic.evaluate import Missing, evaluate
from tamis.operators.ask import ask
from tamis.operators.caller import print_call
from tamis.validate import find_near_misses, find_wrong_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language.schema import Schema
    from tamis.logic.truth import Truth
    from tamis.operators.ask import OperatorAnswers

RESULTS = {True: "true", False: "false", None: "undefined"}
RESULT_STYLES = {True: "green", False: "", None: "yellow"}
EVENT_WIDTH = 100
LOOKED = 100  # events in which names are compared, which takes longer than to evaluate one


@click.command("eval")
@click.argument("expression")
@click.option(
    "--event",
    "events",
    multiple=True,
    metavar="JSON",
    help="Evaluate the expression for this event. The option can be repeated.",
)
@click.option(
    "--events-file",
    metavar="FILE",
    help=f"Evaluate the expression for the events of this file: {list_titles(is_typed=True)}; "
    "'-' reads JSON from standard input.",
)
@schema_option
@definitions_option
@operators_option
@missing_option
@output_option
def eval_command(  # noqa: PLR0913 - one parameter per option
    expression: str,
    events: tuple[str, ...],
    events_file: str | None,
    schema: Schema | None,
    definitions: dict[str, str] | None,
    missing: str,
    output: str,
) -> None:
    """Evaluate EXPRESSION for each event: true, false or undefined.

    A value of the wrong type counts as missing and is reported on stderr.

    Exit codes: 0 evaluated, whatever the results; 1 the expression or an event cannot be read;
    2 wrong usage.
    """
    if not events and events_file is None:
        raise click.UsageError("no events; give --event or --events-file")
    if expression.isprintable() and Path(expression).is_file():
        raise click.UsageError(
            f"{expression} is a file; EXPRESSION is an expression. To check the subscriptions in a "
            f"file: tamis check {expression}"
        )
    if definitions is not None:
        schema = add_definitions(schema, definitions)
    condition = tamis.parse(expression, schema)
    rows = chain(_given_events(events), _events_of_file(events_file, len(events)))
    print_row = _print_json if output == "json" else _print_for_people
    has_errors = False
    told: set[str] = set()
    for row in rows:
        asked = ask(condition, row.event)
        truth = evaluate(condition, row.event, Missing(missing), asked.answers)
        wrong = find_wrong_values(condition, row.event)
        if row.repeated_key is not None:
            print_note(f"event {row.number}: {describe_repeated(row.repeated_key)}")
        print_row(row, None if row.error else truth, wrong, _why_undefined(asked))
        if row.error is None and row.number <= LOOKED:
            for name, like in find_near_misses(condition, row.event).items():
                if name not in told:
                    told.add(name)
                    print_note(f"event {row.number} has no {name}, but {like}: is one misspelt?")
        has_errors |= row.error is not None
    if has_errors:
        raise click.exceptions.Exit(1)


def _why_undefined(asked: OperatorAnswers) -> dict[str, str]:
    return {print_call(call): message for call, message in asked.failures.items()}


def _given_events(texts: Iterable[str]) -> Iterator[EventRow]:
    for number, text in enumerate(texts, start=1):
        try:
            event = parse_event(text)
            yield EventRow(number, None, event, repeated_key=check_keys(text, event))
        except RowError as error:
            yield EventRow(number, None, {}, error)


def _events_of_file(name: str | None, n_before: int) -> Iterator[EventRow]:
    if name is None:
        return
    file_format = Format.JSONL if name == "-" else detect_format(name)
    for row in read_events(open_source(name), file_format):
        yield replace(row, number=n_before + row.number)


def _print_for_people(
    row: EventRow, truth: Truth, wrong: dict[str, str], failures: dict[str, str]
) -> None:
    place = f"event {row.number}" + (f" (line {row.file_line})" if row.file_line else "")
    if row.error is not None:
        print_error(f"{place}: {row.error}")
        return
    shown = printable(json.dumps(row.event, ensure_ascii=False, default=_to_plain))
    shown = shown if len(shown) <= EVENT_WIDTH else shown[: EVENT_WIDTH - 1] + "…"
    line = f"{RESULTS[truth]:<9}  {shown}"
    make_console().print(line, style=RESULT_STYLES[truth])
    for name, reason in wrong.items():
        print_note(f"{place}: {name}: {reason}, treated as missing")
    for call, reason in failures.items():
        print_note(f"{place}: {call} is undefined: {reason}")


def _print_json(
    row: EventRow, truth: Truth, wrong: dict[str, str], failures: dict[str, str]
) -> None:
    row_result: dict[str, Any] = {"event": row.number, "file_line": row.file_line}
    if row.error is not None:
        row_result["error"] = {key: row.error.to_dict()[key] for key in ("code", "message", "hint")}
    else:
        row_result |= {"result": truth, "wrong_values": wrong}
        row_result |= {"failed_calls": failures} if failures else {}
    print_json(row_result)


def _to_plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return float(value) if isinstance(value, Decimal) else str(value)
