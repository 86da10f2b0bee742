"""`tamis check`: reports the errors and warnings of a file's subscriptions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.arguments import expect_file
from tamis.cli.console import (
    StatusLine,
    describe_problem,
    make_console,
    print_columns,
    print_note,
)
from tamis.cli.options import (
    column_options,
    definitions_option,
    format_option,
    limit_options,
    list_formats,
    missing_option,
    operators_option,
    output_option,
    processes_option,
    read_limits,
    read_rows,
    schema_option,
)
from tamis.cli.output import print_json
from tamis.input.details import has_expired
from tamis.input.schemas import add_definitions
from tamis.language.moments import read_at
from tamis.logic.evaluate import Missing
from tamis.match.switches import Switches
from tamis.validate import Severity, check_subscriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.language.schema import Schema
    from tamis.validate import Checked


@dataclass
class Summary:
    """The number of valid rows."""

    rows: int = 0
    errors: int = 0  # rows rejected
    warnings: int = 0
    wrong_definitions: int = 0
    started: float = field(default_factory=time.monotonic)

    def count(self, checked: Checked) -> None:
        """Add one row, or a definition, which has no number."""
        if checked.row.number:
            self.rows += 1
            self.errors += not checked.is_ok
        else:
            self.wrong_definitions += not checked.is_ok
        self.warnings += sum(p.severity is Severity.WARNING for p in checked.problems)

    def to_dict(self) -> dict[str, Any]:
        """The counts as a dictionary for JSON."""
        seconds = time.monotonic() - self.started
        return {
            "rows": self.rows,
            "ok": self.rows - self.errors,
            "errors": self.errors,
            "warnings": self.warnings,
            "seconds": round(seconds, 3),
            "rows_per_second": round(self.rows / max(seconds, 1e-6)),
        }


@click.command("check")
@click.argument("file")
@format_option
@column_options
@schema_option
@definitions_option
@operators_option
@missing_option
@output_option
@click.option(
    "--lint/--no-lint",
    default=True,
    help="Look for suspicious expressions. Without it, checking is faster.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings, as for errors.")
@processes_option
@limit_options
@list_formats
def check_command(  # noqa: PLR0913 - one parameter per option
    file: str,
    file_format: str | None,
    id_column: str | None,
    expression_column: str,
    schema: Schema | None,
    definitions: dict[str, str] | None,
    missing: str,
    output: str,
    lint: bool,
    strict: bool,
    processes: int,
    **limits: Any,
) -> None:
    """Check the subscriptions in FILE; '-' is standard input.

    FILE is {formats}, and may be compressed ({compressed}).

    Each row has a subscription_id (or id) and an expression. An error is shown with its place,
    and the other rows are still checked; a suspicious expression gets a warning.

    Exit codes: 0 no errors, 1 errors (with --strict also warnings), 2 wrong usage.
    """
    expect_file(file, "subscriptions")
    rows = read_rows(file, file_format, id_column, expression_column)
    summary = Summary()
    status = StatusLine()
    print_checked = _print_json if output == "json" else _printer_for_people(file, status)
    noted = Noted(rows)
    read = status.watch_reading(noted)
    checked_rows = check_subscriptions(
        read,
        schema if definitions is None else add_definitions(schema, definitions),
        read_limits(limits),
        missing=Missing(missing),
        with_lint=lint,
        processes=processes,
    )
    try:
        for checked in status.watch_checking(checked_rows):
            summary.count(checked)
            if checked.problems:
                print_checked(checked)
    finally:
        status.clear()
    _print_summary(summary, output, file)
    noted.print_notes()
    is_wrong = summary.errors or summary.wrong_definitions
    if is_wrong or (strict and summary.warnings):
        raise click.exceptions.Exit(1)


class Noted:
    """The notes that building the rows would give, besides those on expressions."""

    def __init__(self, rows: Iterable[SubscriptionRow]) -> None:
        self._rows = rows
        self._columns: set[str] = set()
        self._switches = Switches()
        self._n_expired = 0
        self._now = read_at(None)

    def __iter__(self) -> Iterator[SubscriptionRow]:
        for row in self._rows:
            self._columns.update(row.details.attributes)
            self._switches.add_all(row.details.attributes.items())
            self._n_expired += has_expired(row, self._now)
            yield row

    def print_notes(self) -> None:
        """Print the errors and warnings."""
        from tamis.match.reports import describe_expired, describe_unused_columns

        expired = describe_expired(self._n_expired) if self._n_expired else None
        for note in (describe_unused_columns(sorted(self._columns), self._switches), expired):
            if note is not None:
                print_note(note)


def _print_json(checked: Checked) -> None:
    row = checked.row
    place = {
        "kind": "problem",
        "row": row.number,
        "file_line": row.file_line,
        "subscription_id": row.subscription_id,
    }
    for problem in checked.problems:
        print_json(place | problem.to_dict() | place)


def _printer_for_people(file: str, status: StatusLine) -> Callable[[Checked], None]:
    console = make_console()
    name = "stdin" if file == "-" else file

    def print_checked(checked: Checked) -> None:
        status.clear()
        number = checked.row.file_line or checked.row.number
        place = f"{name}:{number}" if number else "definitions"
        for problem in checked.problems:
            console.print(describe_problem(problem, place))
            console.print()

    return print_checked


def _print_summary(summary: Summary, output: str, file: str) -> None:
    numbers = summary.to_dict()
    if output == "json":
        print_json({"kind": "summary", **numbers})
        return
    if not summary.rows:
        make_console(stderr=True).print(f"{file} contains no rows")
    headings = ("rows", "ok", "errors", "warnings", "rows/s")
    keys = ("rows", "ok", "errors", "warnings", "rows_per_second")
    print_columns(make_console(), [headings, [f"{numbers[key]:,}" for key in keys]])
