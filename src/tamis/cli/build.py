"""`tamis build`: builds an index on disk from a file of subscriptions."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import tamis
from tamis.cli.arguments import expect_file, expect_no_file, expect_rejects_place
from tamis.cli.console import (
    StatusLine,
    describe_problem,
    draw_bar,
    make_console,
    print_columns,
    print_error,
    print_note,
    printable,
)
from tamis.cli.import_options import (
    build_format_option,
    import_options,
    import_or_refuse,
    is_rule_format,
    read_settings_of,
)
from tamis.cli.import_report import report_import
from tamis.cli.options import (
    column_options,
    definitions_option,
    limit_options,
    list_formats,
    missing_option,
    open_source,
    operators_option,
    output_option,
    processes_option,
    read_limits,
    read_rows,
    schema_option,
    sign_option,
)
from tamis.cli.output import prepare_kernels, print_json, write_lines
from tamis.errors import RowError
from tamis.input.details import has_expired
from tamis.input.rows import CutOffError
from tamis.language.moments import read_at
from tamis.validate import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.errors import ExpressionError
    from tamis.importers.model import Imported
    from tamis.importers.settings import Settings
    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.language.schema import Schema

SHOWN_REJECTS: Final = 10


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that is not in the index, and why."""

    row: SubscriptionRow
    reason: ExpressionError | RowError

    def to_dict(self) -> dict[str, Any]:
        """The row for programs: once corrected, it can be used as input again."""
        row = self.row
        fields = {
            "row": row.number,
            "file_line": row.file_line,
            "subscription_id": row.subscription_id,
            "expression": row.text,
        }
        fields |= {name: own for name, own in self._details().items() if name not in fields}
        given = {part: value for part, value in (row.given or {}).items() if _is_json(value)}
        if row.subscription_id is not None:  # it was valid, and is a string
            given.pop("subscription_id", None)
        fields |= given
        return fields | {k: v for k, v in self.reason.to_dict().items() if k not in fields}

    def _details(self) -> dict[str, Any]:
        details = self.row.details
        limits = {"valid_from": details.valid_from, "valid_until": details.valid_until}
        found: dict[str, Any] = {
            name: limit.isoformat() for name, limit in limits.items() if limit is not None
        }
        found |= {"tags": list(details.tags)} if details.tags else {}
        return found | {name: own for name, own in details.attributes.items() if _is_json(own)}


def _is_json(value: Any) -> bool:
    try:
        json.dumps({"": value}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # bytes and moments of Parquet, NaN, nesting
        return False
    return True


class Feed:
    """The subscriptions of a file on their way into the index, with the origin of each."""

    def __init__(self, rows: Iterable[SubscriptionRow]) -> None:
        self.rejects: list[Rejected] = []
        self.n_rows = 0
        self.n_expired = 0  # rows left out because they will never be valid again
        self.is_read = False
        self._rows = rows
        self._taken: dict[str, SubscriptionRow] = {}
        self._now = read_at(None)

    @property
    def n_taken(self) -> int:
        """The number of subscriptions passed on."""
        return len(self._taken)

    def __iter__(self) -> Iterator[SubscriptionRow]:
        for row in self._rows:
            self.n_rows += 1
            if has_expired(row, self._now):
                self.n_expired += 1
                continue
            error = row.error or self._refuse_duplicate(row)
            if error is not None:
                self.rejects.append(Rejected(row, error))
            elif row.subscription_id is not None:
                self._taken[row.subscription_id] = row
                yield row
        self.is_read = True

    def _refuse_duplicate(self, row: SubscriptionRow) -> RowError | None:
        first = self._taken.get(row.subscription_id or "")
        if first is None:
            return None
        place = f"row {first.number}" if not first.file_line else f"line {first.file_line}"
        return RowError("duplicate-id", f"the id was already given in {place}")

    def why_useless(self, n_built: int) -> str | None:
        """The reason why an index of these rows would be useless; None if it is not."""
        unread = [rejected for rejected in self.rejects if rejected.row.error is not None]
        cut_off = [one for one in unread if isinstance(one.reason, CutOffError)]
        if cut_off:
            return f"line {cut_off[0].row.file_line}: {cut_off[0].reason}"
        if len(unread) > self.n_rows - len(unread):
            first = unread[0].reason
            counted = f"{len(unread):,} of {self.n_rows:,} rows contain no subscription"
            return f"{counted}, the first one because: {first.message}" + (
                f"\n  hint: {first.hint}" if first.hint else ""
            )
        if not n_built:
            return "the file is empty" if not self.n_rows else "every row was rejected"
        return None

    def reject(self, errors: Iterable[ExpressionError]) -> None:
        """Add the errors of the expressions themselves."""
        for error in errors:
            self.rejects.append(Rejected(self._taken[error.subscription_id or ""], error))
        self.rejects.sort(key=lambda rejected: rejected.row.number)


@click.command("build")
@click.argument("file")
@click.option(
    "-o",
    "--index",
    "index_path",
    metavar="INDEX",
    required=True,
    help="Write the index to this directory.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing index.")
@build_format_option
@import_options
@column_options
@schema_option
@definitions_option
@operators_option
@missing_option
@click.option(
    "--rejects",
    "rejects_file",
    metavar="FILE",
    help="Write the rejected rows to this file, as JSON lines; '-' is standard output.",
)
@click.option("--strict", is_flag=True, help="Write no index if a row is rejected.")
@sign_option
@output_option
@processes_option
@limit_options
@list_formats
def build_command(  # noqa: PLR0913 - one parameter per option
    file: str,
    index_path: str,
    overwrite: bool,
    file_format: str | None,
    settings: Settings | None,
    layout: str | None,
    samples: tuple[str, ...],
    id_column: str | None,
    expression_column: str,
    schema: Schema | None,
    definitions: dict[str, str] | None,
    missing: str,
    rejects_file: str | None,
    strict: bool,
    signing_key: bytes | None,
    output: str,
    processes: int,
    **limits: Any,
) -> None:
    """Build an index of the subscriptions in FILE; '-' is standard input.

    FILE is {formats}, and may be compressed ({compressed}). With --format sigma, elasticsearch or
    eventbridge it is a file or a folder of such rules.

    An invalid row is rejected, and the others are built. The first rejects are shown on stderr;
    --rejects writes all of them to a file.

    Exit codes: 0 built, with or without rejects; 1 not built, because most rows hold no
    subscription, none can be used or, with --strict, one was rejected; 2 wrong usage.
    """
    from tamis.index.saving import expect_place
    from tamis.match.reports import describe_expired

    started = time.monotonic()
    is_import = is_rule_format(file_format)
    if not is_import:
        expect_file(file, "subscriptions")
    expect_no_file(index_path)
    expect_rejects_place(rejects_file, file)
    expect_place(index_path, overwrite=overwrite)
    prepare_kernels(building=True)
    status = StatusLine()
    imported = None
    if is_import:
        chosen = read_settings_of(
            str(file_format), settings, layout, samples, schema, read_limits(limits)
        )
        imported = import_or_refuse(str(file_format), [open_source(file)], chosen)
        report_import(imported, counts_refused=False)
        schema, rows = imported.schema, imported.to_rows()
    else:
        refuse_import_options(settings, layout, samples)
        rows = read_rows(file, file_format, id_column, expression_column)
    feed = Feed(status.watch_reading(rows))

    n_built = 0

    def progress(n_done: int, _: int | None) -> None:
        nonlocal n_built
        n_built = n_done

    def describe_progress(seconds: float) -> str:
        return f"built {draw_bar(n_built, feed.n_taken)}, {seconds:.0f} s" if feed.is_read else ""

    index, refused = None, []
    with status.ticking(describe_progress):
        try:
            index = tamis.build(
                feed,
                schema,
                definitions=definitions,
                missing=missing,
                limits=read_limits(limits),
                processes=processes,
                progress=progress,
            )
            refused = index.rejects
        except tamis.BuildError as error:  # reported below, with the rows themselves
            refused = error.rejects
    status.clear()
    feed.reject(refused)
    report_rejects(feed.rejects, rejects_file, file, imported)
    reason = feed.why_useless(0 if index is None else len(index)) or (
        f"{len(feed.rejects):,} rows were rejected" if strict and feed.rejects else None
    )
    if index is None or reason is not None:
        print_error(f"{index_path} was not written: {reason}")
        raise click.exceptions.Exit(1)
    index.contents.provenance.update(
        tamis=tamis.__version__, source=file, rows=feed.n_rows, rejects=len(feed.rejects)
    )
    if feed.n_expired:
        index.contents.provenance["expired"] = feed.n_expired
        print_note(describe_expired(feed.n_expired))
    index.save(index_path, overwrite=overwrite, key=signing_key)
    _print_summary(index, index_path, feed, time.monotonic() - started, output)


def refuse_import_options(
    settings: Settings | None, layout: str | None, samples: tuple[str, ...]
) -> None:
    if settings or layout or samples:
        raise click.UsageError(
            "--settings, --layout and --learn are for rules: --format sigma, elasticsearch or "
            "eventbridge"
        )


def report_rejects(
    rejects: list[Rejected], rejects_file: str | None, file: str, imported: Imported | None = None
) -> None:
    """Write the rejected rows to their file, or the first of them to stderr.

    Rows of rules that were imported are named by their own files.
    """
    if rejects_file is not None:
        write_lines(rejects_file, (rejected.to_dict() for rejected in rejects))
        return
    console = make_console(stderr=True)
    name = "stdin" if file == "-" else file
    for rejected in rejects[:SHOWN_REJECTS]:
        row = rejected.row
        place = f"{name}:{row.file_line or row.number}"
        if imported is not None:
            place = printable(imported.find_place(row.number))
        console.print(describe_problem(Problem(Severity.ERROR, rejected.reason), place))
        console.print()
    if len(rejects) > SHOWN_REJECTS:
        n_more = len(rejects) - SHOWN_REJECTS
        print_note(f"{n_more:,} more rows were rejected; --rejects FILE lists them all")


def _print_summary(index: tamis.Index, path: str, feed: Feed, seconds: float, output: str) -> None:
    from tamis.index.stats import compute_sharing

    numbers = {
        "subscriptions": len(index),
        "rejects": len(feed.rejects),
        "nodes": index.contents.n_nodes,
        "sharing": compute_sharing(index.contents),
        "bytes": sum(part.stat().st_size for part in Path(path).iterdir()),
        "seconds": round(seconds, 3),
    }
    if output == "json":
        print_json({"kind": "summary", "index": path, **numbers, "expired": feed.n_expired})
        return
    shown = [f"{numbers[key]:,}" for key in ("subscriptions", "rejects", "nodes")]
    shown += [f"{numbers['sharing']:.2f}", f"{numbers['bytes']:,}", f"{seconds:.2f}"]
    print_columns(make_console(), [list(numbers), shown])
