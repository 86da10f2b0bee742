"""`tamis sub import`: adds the subscriptions of a file to a live index."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

import click

from tamis.cli.arguments import expect_file, expect_rejects_place
from tamis.cli.build import SHOWN_REJECTS, Rejected
from tamis.cli.console import StatusLine, describe_problem, make_console, print_columns, print_note
from tamis.cli.live_folder import changing, changing_options, folder_argument
from tamis.cli.options import column_options, format_option, list_formats, read_rows
from tamis.cli.output import open_sink, print_json, spell_json
from tamis.cli.sub import sub_group
from tamis.errors import RowError
from tamis.language.lookalikes import describe_lookalikes
from tamis.validate import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.language.lookalikes import Lookalike
    from tamis.live import LiveIndex
    from tamis.subscriptions import Refused, Replace, Subscribe, Subscription

AT_ONCE: Final = 5_000  # rows: those of one transaction


@sub_group.command("import")
@folder_argument
@click.argument("file")
@click.option(
    "--replace", "replaces", is_flag=True, help="Replace subscriptions whose id exists already."
)
@format_option
@column_options
@click.option(
    "--rejects",
    "rejects_file",
    metavar="FILE",
    help="Write the refused rows to this file, as JSON lines; '-' is standard output.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if a row is refused.")
@changing_options
@list_formats
def import_command(  # noqa: PLR0913 - one parameter per option
    folder: str,
    file: str,
    replaces: bool,
    file_format: str | None,
    id_column: str | None,
    expression_column: str,
    rejects_file: str | None,
    strict: bool,
    output: str,
    **opening: Any,
) -> None:
    """Add the subscriptions in FILE to the live index in FOLDER; '-' is standard input.

    FILE is {formats}, and may be compressed ({compressed}).

    A row that is wrong is refused, and the others are added. The first refused rows are shown on
    stderr; --rejects writes all of them to a file. With --replace, a row whose subscription is the
    same already changes nothing.

    Exit codes: 0 imported, with or without refused rows; 1 every row was refused, FOLDER or FILE
    cannot be used or, with --strict, a row was refused; 2 wrong usage.
    """
    expect_file(file, "subscriptions")
    expect_rejects_place(rejects_file, file)
    rows = read_rows(file, file_format, id_column, expression_column)
    status = StatusLine()
    with (
        open_sink(rejects_file) if rejects_file else nullcontext() as sink,
        changing(folder, opening, is_created=True) as live,
    ):
        done = Import(live, file, status, sink, replaces=replaces)
        try:
            done.run(rows)
        finally:
            status.clear()
        done.print_summary(output)
    if (strict and done.n_refused) or (done.n_rows and done.n_refused == done.n_rows):
        raise click.exceptions.Exit(1)


@dataclass
class Import:
    """One import: what became of its rows."""

    live: LiveIndex
    file: str
    status: StatusLine
    sink: IO[str] | None
    replaces: bool = field(kw_only=True)
    n_rows: int = 0
    n_added: int = 0
    n_replaced: int = 0
    n_unchanged: int = 0
    n_refused: int = 0
    started: float = field(default_factory=time.monotonic)
    _misspelt: list[Lookalike] = field(default_factory=list)
    _tags: dict[str, None] = field(default_factory=dict)
    _lines: dict[str, int] = field(default_factory=dict)  # where each id was given

    def run(self, rows: Iterable[SubscriptionRow]) -> None:
        """Add all rows, some thousand at a time."""
        before = self.live.settings.schema
        left = iter(rows)
        while some := list(islice(left, AT_ONCE)):
            self._add(some)
            self.status.refresh(f"{self.n_rows:,} rows, {self.n_refused:,} refused")
        self._misspelt = self.live.find_newly_misspelt(before)

    def _add(self, rows: list[SubscriptionRow]) -> None:
        from tamis.subscriptions import Accepted, Replace

        self.n_rows += len(rows)
        known = self._find_known(rows)
        asked = list(self._ask(rows, known))
        results = self.live.apply([request for _, request in asked])
        given = (own.tags for _, own in asked)
        self._tags |= dict.fromkeys(tag for own in given if isinstance(own, tuple) for tag in own)
        for (row, request), result in zip(asked, results, strict=True):
            if not isinstance(result, Accepted):
                self._refuse(row, result.error or RowError(result.reason.value, result.message))
            elif isinstance(request, Replace):
                self.n_replaced += 1
            else:
                self.n_added += 1

    def _find_known(self, rows: list[SubscriptionRow]) -> dict[str, Subscription]:
        if not self.replaces:
            return {}
        ids = [row.subscription_id for row in rows if row.subscription_id is not None]
        return self.live.store.get_many(ids)

    def _ask(
        self, rows: list[SubscriptionRow], known: dict[str, Subscription]
    ) -> Iterator[tuple[SubscriptionRow, Subscribe | Replace]]:
        """The requests of the rows that can be read; the others are refused here."""
        from tamis.live.requests import ask

        for row in rows:
            error = row.error or self._refuse_duplicate(row)
            request = None if error is not None else ask(row)
            if error is not None:
                self._refuse(row, error)
            elif (own := known.get(row.subscription_id or "")) is None:
                yield row, request  # type: ignore[misc]
            elif own._asdict().items() >= request._asdict().items():  # type: ignore[union-attr]
                self.n_unchanged += 1
            else:
                yield row, _to_replace(request)

    def _refuse_duplicate(self, row: SubscriptionRow) -> RowError | None:
        name = row.subscription_id or ""
        place = row.file_line or row.number
        first = self._lines.setdefault(name, place)
        if first == place:
            return None
        where = f"line {first}" if row.file_line else f"row {first}"
        return RowError("duplicate-id", f"the id was already given in {where}")

    def _refuse(self, row: SubscriptionRow, error: Any) -> None:
        self.n_refused += 1
        if self.sink is not None:
            self.sink.write(spell_json(Rejected(row, error).to_dict()) + "\n")
        elif self.n_refused <= SHOWN_REJECTS:
            self.status.clear()
            name = "stdin" if self.file == "-" else self.file
            place = f"{name}:{row.file_line or row.number}"
            console = make_console(stderr=True)
            console.print(describe_problem(Problem(Severity.ERROR, error), place))
            console.print()

    def print_summary(self, output: str) -> None:
        """The counts, and the number of the last change."""
        from tamis.match.reports import describe_separators

        numbers = {
            "rows": self.n_rows,
            "added": self.n_added,
            "replaced": self.n_replaced,
            "unchanged": self.n_unchanged,
            "refused": self.n_refused,
            "change": self.live.change,
        }
        if not self.n_rows:
            print_note(f"{self.file} contains no rows")
        if self._misspelt:
            print_note(describe_lookalikes(self._misspelt))
        if (note := describe_separators(self._tags)) is not None:
            print_note(note)
        if self.sink is None and self.n_refused > SHOWN_REJECTS:
            n_more = self.n_refused - SHOWN_REJECTS
            print_note(f"{n_more:,} more rows were refused; --rejects FILE lists them all")
        if output == "json":
            seconds = round(time.monotonic() - self.started, 3)
            print_json({"kind": "summary", **numbers, "seconds": seconds})
            return
        shown = [f"{number:,}" for number in numbers.values()]
        print_columns(make_console(), [list(numbers), shown])


def _to_replace(request: Subscribe | Refused | None) -> Replace:
    from tamis.subscriptions import Replace

    assert request is not None
    return Replace(**request._asdict())
