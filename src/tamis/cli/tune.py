"""`tamis tune`: tries rules on events, and reports what to change."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tamis.cli.arguments import (
    expect_file,
    expect_other_file,
    expect_rejects_place,
    refuse_swapped_rules,
)
from tamis.cli.build import Feed, refuse_import_options, report_rejects
from tamis.cli.console import make_console, print_columns, print_error, print_note, printable
from tamis.cli.import_options import (
    build_format_option,
    import_options,
    import_or_refuse,
    is_rule_format,
    read_settings_of,
)
from tamis.cli.import_report import report_import
from tamis.cli.options import (
    choose_format,
    definitions_option,
    open_source,
    output_option,
    read_rows,
    schema_option,
)
from tamis.cli.output import open_sink, prepare_kernels, print_json, write_lines
from tamis.errors import InputError
from tamis.importers import IMPORTERS
from tamis.input.event_rows import read_events
from tamis.input.formats import FORMAT_BY_ENDING, find_format
from tamis.input.schemas import read_exclusion_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.importers.model import Imported
    from tamis.importers.settings import Settings
    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.language.schema import Schema
    from tamis.tuning import TuningReport

SHOWN: Final = 10


def _read_exclusions(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> dict[str, str] | None:
    return None if value is None else read_exclusion_file(value)


@click.command("tune")
@click.argument("rules")
@click.argument("events", nargs=-1, required=True)
@build_format_option
@import_options
@schema_option
@definitions_option
@click.option(
    "--exclude",
    "exclusions",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_read_exclusions,
    metavar="FILE.toml|FILE.json",
    help="Try rules without the events that an expression describes: id = \"User = 'backup'\".",
)
@click.option(
    "-o",
    "--changed",
    metavar="FILE.jsonl",
    help="Write the rules with their exclusions to this file; '-' is standard output.",
)
@click.option(
    "--noisy",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="Call a rule noisy that fires on more than this share of the events.",
)
@click.option(
    "--rejects",
    "rejects_file",
    metavar="FILE",
    help="Write the rules that are left out to this file, with the reasons, as JSON lines.",
)
@click.option("--html", metavar="FILE.html", help="Write the report as one page.")
@click.option("--tables", metavar="FOLDER", help="Write the report as CSV files.")
@output_option
def tune_command(  # noqa: PLR0913 - one parameter per option
    rules: str,
    events: tuple[str, ...],
    file_format: str | None,
    settings: Settings | None,
    layout: str | None,
    samples: tuple[str, ...],
    schema: Schema | None,
    definitions: dict[str, str] | None,
    exclusions: dict[str, str] | None,
    changed: str | None,
    noisy: float,
    rejects_file: str | None,
    html: str | None,
    tables: str | None,
    output: str,
) -> None:
    """Try RULES on EVENTS: what fires how often, what is silent or can never fire, what overlaps.

    RULES are subscriptions in a file or, with --format sigma, elasticsearch or eventbridge, rules
    in a file or folder. EVENTS are files, or folders of them.

    An invalid rule is reported and left out. Exit codes: 0 reported; 1 no rule can be tried, or
    most of the events cannot be read; 2 wrong usage.
    """
    from tamis.tuning import tune
    from tamis.tuning.page import to_html

    expect_rejects_place(rejects_file, rules, *events)
    endings = IMPORTERS[str(file_format)].endings if is_rule_format(file_format) else ()
    for option, place in (("-o", changed), ("--html", html)):
        expect_other_file(option, place, (rules,), endings)
        expect_other_file(option, place, events, FORMAT_BY_ENDING)
    imported = None
    if is_rule_format(file_format):
        known = read_settings_of(str(file_format), settings, layout, samples, schema)
        imported = import_or_refuse(str(file_format), [open_source(rules)], known)
        report_import(imported, counts_refused=False)
        schema, rows = imported.schema, imported.to_rows()
    else:
        expect_file(rules, "subscriptions")
        refuse_import_options(settings, layout, samples)
        rows = read_rows(rules, file_format, None, "expression")
    feed = Feed(rows)
    found = [_to_rule(row) for row in feed]
    rejected = _Rejected(feed, rules, rejects_file, imported)
    if rejected.why_useless(len(found)) is not None:
        if imported is None:
            refuse_swapped_rules(rules, events)
        rejected.report(0)
    prepare_kernels(building=True)
    given = _Events(events)
    report = tune(
        found,
        schema,
        iter(given),
        exclusions=exclusions,
        definitions=definitions,
        noisy_share=noisy,
    )
    feed.reject(report.rejects)
    report.invalid = rejected.rows()
    rejected.report(len(report.rules))
    given.report()
    for ignored in report.ignored_values:
        treated = "value is" if ignored.values == 1 else "values are"
        print_note(
            f"{ignored.values:,} {treated} treated as missing: {ignored.attribute}: "
            f"{printable(ignored.example)} is not of type {ignored.type}"
        )
    if html is not None:
        with open_sink(html) as sink:
            sink.write(to_html(report))
    if tables is not None:
        _write_tables(report, Path(tables))
    if changed is not None:
        texts = {own.rule_id: own.expression for own in report.backtests}
        excluding = (own | {"expression": texts[own["id"]]} for own in found if own["id"] in texts)
        write_lines(changed, excluding)
    if changed != "-":
        _print_json(report) if output == "json" else _print_tables(report)
    if given.is_useless:
        raise click.exceptions.Exit(1)


def _to_rule(row: SubscriptionRow) -> dict[str, Any]:
    tags = {"tags": list(row.details.tags)} if row.details.tags else {}
    return {"id": row.subscription_id, "expression": row.text, **tags, **row.details.attributes}


@dataclass(frozen=True, slots=True)
class _Rejected:
    """The rules that are left out."""

    feed: Feed
    file: str
    rejects_file: str | None
    imported: Imported | None

    def why_useless(self, n_valid: int) -> str | None:
        """The reason why nothing can be tried; None if something can."""
        if self.imported is None:
            return self.feed.why_useless(n_valid)
        return None if n_valid else "every rule was refused"

    def rows(self) -> list[tuple[str, str]]:
        """The ids of the rules, or their places, with the reasons."""
        return [
            (own.row.subscription_id or self._place(own.row.number), own.reason.message)
            for own in self.feed.rejects
        ]

    def _place(self, number: int) -> str:
        return f"row {number}" if self.imported is None else self.imported.find_place(number)

    def report(self, n_valid: int) -> None:
        """Report the rules; exits if there is no other."""
        from tamis.match.reports import describe_expired

        report_rejects(self.feed.rejects, self.rejects_file, self.file, self.imported)
        if self.feed.n_expired:
            print_note(describe_expired(self.feed.n_expired))
        reason = self.why_useless(n_valid)
        if reason is not None:
            print_error(f"the rules cannot be tried: {reason}")
            raise click.exceptions.Exit(1)
        if self.feed.rejects:
            n = len(self.feed.rejects)
            listed = "" if self.rejects_file else "; --rejects FILE lists them"
            print_note(f"{n:,} {'rule is' if n == 1 else 'rules are'} left out{listed}")


class _Events:
    """The events of files and folders; counts the rows that are not events."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._n_events = 0
        self._n_wrong = 0
        self._first = ""  # of the rows that are no events

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for place in [file for name in self._names for file in _find_files(name)]:
            for row in read_events(open_source(place), choose_format(place, None)):
                if row.error is None:
                    self._n_events += 1
                    yield row.event
                else:
                    self._n_wrong += 1
                    where = f"line {row.file_line}" if row.file_line else f"row {row.number}"
                    self._first = self._first or f"{place}, {where}: {row.error.message}"

    @property
    def is_useless(self) -> bool:
        """Whether more rows are left out than tried."""
        return self._n_wrong > self._n_events

    def report(self) -> None:
        """Print notes about what cannot be read."""
        from tamis.match.unseen import describe_no_events  # imports NumPy and more

        n_rows = self._n_wrong + self._n_events
        if not n_rows:
            print_note(describe_no_events(", ".join(self._names)))
        elif self.is_useless:
            counted = f"{self._n_wrong:,} of {n_rows:,} rows contain no event"
            print_error(f"{counted}, first {self._first}")
        elif self._n_wrong:
            rows = "row without an event is" if self._n_wrong == 1 else "rows without an event are"
            print_note(f"{self._n_wrong:,} {rows} left out, first {self._first}")


def _find_files(name: str) -> list[str]:
    if not Path(name).is_dir():
        return [name]
    found = sorted(str(own) for own in Path(name).rglob("*") if find_format(own.name) is not None)
    if not found:
        raise InputError(f"{name} has no file of events", hint="such as events.jsonl")
    return found


def _write_tables(report: TuningReport, folder: Path) -> None:
    from tamis.tuning.report import TABLES

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder} of --tables: {error.strerror}",
            hint="name a new folder, or one that exists",
        ) from None
    for name, rows in report.tables().items():
        with open_sink(str(folder / f"{name}.csv")) as sink:
            writer = csv.DictWriter(sink, TABLES[name], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _print_json(report: TuningReport) -> None:
    for kind, rows in report.tables().items():
        for row in rows:
            print_json({"kind": kind, **row})
    print_json({"kind": "summary", **_summarise(report)})


def _summarise(report: TuningReport) -> dict[str, int]:
    verdicts = ("fired", "noisy", "silent", "never")
    return {
        "events": report.n_events,
        "rules": len(report.rules),
        **{own: len(report.of_verdict(own)) for own in verdicts},
        "invalid": len(report.invalid),
        "overlaps": len(report.overlaps),
    }


def _print_tables(report: TuningReport) -> None:
    console = make_console()
    numbers = _summarise(report)
    print_columns(console, [list(numbers), [f"{n:,}" for n in numbers.values()]])
    fired = [own for own in report.rules if own.n_fired][:SHOWN]
    if fired:
        console.print()
        rows = [("fired", "", "rule", "title")]
        rows += [(f"{own.n_fired:,}", own.verdict, own.rule_id, own.title) for own in fired]
        print_columns(console, [[printable(cell) for cell in row] for row in rows])
    for verdict in ("noisy", "never"):
        explained = [own for own in report.of_verdict(verdict) if own.reasons]
        for own in explained[:SHOWN]:
            console.print(f"{verdict}  {own.rule_id}: {printable('; '.join(own.reasons))}")
    for overlap in report.overlaps[:SHOWN]:
        console.print(f"{overlap.kind}  {overlap.rule_id}  {overlap.other_id}")
    for backtest in report.backtests:
        console.print(
            f"exclusion  {backtest.rule_id}: {backtest.n_before:,} → {backtest.n_after:,} events"
        )
