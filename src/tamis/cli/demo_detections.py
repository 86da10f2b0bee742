"""`tamis demo detections`: imports Sigma rules, matches events, and shows what to tune."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tamis
from tamis.cli.console import make_console, print_columns
from tamis.cli.explain import print_explanation
from tamis.cli.output import prepare_kernels
from tamis.importers import import_rules
from tamis.input.event_rows import read_events
from tamis.tuning import tune
from tamis.tuning.page import to_html

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.importers.model import Imported
    from tamis.tuning import TuningReport

SAMPLES: Final = files("tamis.cli") / "samples" / "detections"
REPORT: Final = "detections.html"
WHOAMI: Final = "f1086bf7-a0c4-4a37-9102-01e573caf4a0"
SCHTASKS: Final = "92626ddd-662c-49e3-ac59-f6535f12d189"
EXCLUSION: Final = r"User = 'CORP\\svc_backup' AND ParentImage = 'C:\\Tools\\agent.exe'"
NOISY_SHARE: Final = 0.2  # of a sample of this size


def show_detections() -> None:
    """Show all steps, and write the report into this folder."""
    console = make_console()
    prepare_kernels(load=True, building=True)
    with as_file(SAMPLES) as samples:
        imported = import_rules("sigma", [samples / "rules"])
        events = [dict(row.event) for row in read_events(samples / "events.jsonl")]
    _show_rules(console, imported)
    rows = [rule.to_dict() for rule in imported.accepted]
    report = tune(
        rows, imported.schema, events, exclusions={SCHTASKS: EXCLUSION}, noisy_share=NOISY_SHARE
    )
    _show_fired(console, report)
    _show_reasons(console, imported, events)
    _show_tuning(console, report)
    Path(REPORT).write_text(to_html(report, "Detections on a sample"), encoding="utf-8")
    _title(console, f"6. All of it on one page: {REPORT}")
    console.print("tamis import sigma RULES -o rules.jsonl    # your rules")
    console.print("tamis tune RULES EVENTS --format sigma --html report.html    # on your events")


def _show_rules(console: Console, imported: Imported) -> None:
    _title(console, f"1. {len(imported.rules)} Sigma rules, by their authors (DRL 1.1)")
    for rule in imported.rules:
        author = rule.attributes.get("author", "")
        console.print(f"{rule.title}  {f'({author})' if author else ''}".rstrip(), style="bold")
        text = f"refused: {rule.error.message}" if rule.error else rule.expression
        console.print(f"  {text}\n")


def _show_fired(console: Console, report: TuningReport) -> None:
    _title(console, f"2. What fired on {report.n_events} events")
    lines = [("fired", "", "level", "rule")]
    lines += [(f"{own.n_fired}", own.verdict, own.level, own.title) for own in report.rules]
    print_columns(console, lines)


def _show_reasons(console: Console, imported: Imported, events: list[dict[str, Any]]) -> None:
    index = tamis.build([rule.to_dict() for rule in imported.accepted], imported.schema)
    whoami = [own for own in events if own.get("OriginalFileName") == "whoami.exe"]
    for number, (event, word) in enumerate(zip(reversed(whoami), ("", "not "), strict=True), 3):
        _title(console, f"{number}. Why does {event['CommandLine']!r} {word}fire Renamed Whoami?")
        print_explanation(console, index.explain(WHOAMI, event))


def _show_tuning(console: Console, report: TuningReport) -> None:
    _title(console, "5. What to tune")
    for own in report.of_verdict("noisy"):
        console.print(f"noisy:   {own.title}, {own.n_fired} of {report.n_events} events")
    for own in report.of_verdict("silent"):
        console.print(f"silent:  {own.title}")
    for own in report.of_verdict("never"):
        console.print(f"never:   {own.title}: {'; '.join(own.reasons)}")
    for test in report.backtests:
        console.print(
            f"\nWith the exclusion {test.exclusion}\nthe noisy rule fires on {test.n_after} of "
            f"these {test.n_before} events."
        )


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(title, style="bold")
    console.print()
