"""`tamis demo`: checks and matches a small set of subscriptions, and explains each step."""

from __future__ import annotations

import json
import time
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

import tamis
from tamis.cli.console import describe_problem, make_console, print_columns
from tamis.cli.demo_speed import show_speed
from tamis.cli.explain import print_explanation
from tamis.cli.output import prepare_kernels
from tamis.input.event_rows import read_events
from tamis.input.formats import list_titles
from tamis.input.schemas import read_schema
from tamis.input.subscription_rows import read_subscriptions
from tamis.validate import check_subscriptions

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.input.event_rows import EventRow
    from tamis.language.schema import Schema
    from tamis.validate import Checked

MARKS: Final = {True: ("true", "bold green"), False: ("-", "dim"), None: ("?", "yellow")}

SAMPLES: Final = files("tamis.cli") / "samples"

NEAR_MISS: Final = ("alert-slow", "pay-2")

NEXT_STEPS: Final = (
    """tamis eval "age >= 18 AND NOT country = 'DE'" --event '{"age": 30}'""",
    f"tamis build --help    # an index of your subscriptions: {list_titles()}",
    "tamis match --help    # your events against it",
    "tamis spark --help    # both in bulk, on this machine or a cluster",
)


@click.command("demo")
@click.argument("subject", required=False, type=click.Choice(["detections", "news"]))
@click.option(
    "--spark/--no-spark", default=True, help="Repeat the steps on Spark, if it is installed."
)
def demo_command(subject: str | None, spark: bool) -> None:
    """Show what Tamis does: a small set of subscriptions, checked, indexed and matched.

    With the argument news: feeds are read, and standing searches find their items. With the
    argument detections: Sigma rules are imported, events are matched, and rules are tuned.

    Exit codes: 0 shown; 1 a package or Java is missing; 2 wrong usage.
    """
    if subject == "detections":
        from tamis.cli.demo_detections import show_detections

        show_detections()
        return
    console = make_console()
    prepare_kernels(load=True, building=True)
    if subject == "news":
        from tamis.cli.demo_news import show_news

        show_news(console)
        return
    with as_file(SAMPLES) as samples:
        schema = read_schema(str(samples / "schema.json"))
        rows = list(read_subscriptions(samples / "subscriptions.jsonl"))
        events = list(read_events(samples / "events.jsonl"))
    checked = list(check_subscriptions(rows, schema))
    _show_subscriptions(console, checked)
    _show_problems(console, checked)
    _show_events(console, events)
    _show_truths(console, checked, events, schema)
    index = _show_index(console, checked, events, schema)
    _show_near_miss(console, index, events)
    _title(console, "7. How fast is it?")
    show_speed(console, schema)
    is_same = not spark or _show_spark(console, index, events, schema)
    _show_next(console, 9 if spark else 8)
    if not is_same:
        raise click.exceptions.Exit(1)


def _show_subscriptions(console: Console, checked: list[Checked]) -> None:
    _title(console, f"1. {len(checked)} subscriptions, for ads, security and alerts")
    print_columns(
        console, ((_verdict(row), row.row.subscription_id or "", row.row.text) for row in checked)
    )
    n_good = sum(row.is_ok for row in checked)
    console.print(f"\nEach is parsed and typed against a schema. {n_good} are valid.")


def _verdict(row: Checked) -> Text:
    if not row.is_ok:
        return Text("error", "bold red")
    return Text("warning", "yellow") if row.problems else Text("ok", "green")


def _show_problems(console: Console, checked: list[Checked]) -> None:
    _title(console, "2. The errors of the others")
    for row in checked:
        for problem in row.problems:
            console.print(describe_problem(problem))
            console.print()
    console.print("An error rejects one subscription, never the rest. A warning rejects none.")


def _show_events(console: Console, events: list[EventRow]) -> None:
    _title(console, f"3. {len(events)} events")
    for row in events:
        event_id, *attributes = row.event.items()
        console.print(f"{event_id[1]:<7}  {json.dumps(dict(attributes), default=float)}")


def _show_truths(
    console: Console, checked: list[Checked], events: list[EventRow], schema: Schema
) -> None:
    _title(console, "4. Which subscriptions does each event match?")
    lines = [[Text(""), *(Text(row.event["event_id"], "bold") for row in events)]]
    for row in checked:
        if row.is_ok:
            condition = tamis.parse(row.row.text, schema)
            truths = (tamis.evaluate(condition, event.event) for event in events)
            marks = (Text(*MARKS[truth]) for truth in truths)
            lines.append([Text(row.row.subscription_id or ""), *marks])
    print_columns(console, lines)
    console.print("\ntrue  the event matches the subscription")
    console.print("?     undefined: an attribute that would decide is missing; no match")
    console.print("-     false; no match")
    console.print(
        "\nvisit-2 has no category, so it is unknown whether it is Finance: ad-not-finance is ?."
    )


def _show_index(
    console: Console, checked: list[Checked], events: list[EventRow], schema: Schema
) -> tamis.Index:
    from tamis.match.build import build  # no warning: the schema is for the measurement too

    _title(console, "5. The same by an index")
    good = [(row.row.subscription_id or "", row.row.text) for row in checked if row.is_ok]
    given = [row.event for row in events]
    # Once before it is timed: the kernels for these attributes may not be loaded yet.
    build(good, schema).match_lists(given)
    started = time.perf_counter()
    index = build(good, schema)
    built = time.perf_counter()
    found = index.match_lists(given).to_pylist()
    matched = time.perf_counter()
    lines = [
        (Text(row.event["event_id"], "bold"), ", ".join(sorted(matches, key=index.ordinal)) or "-")
        for row, matches in zip(events, found, strict=True)
    ]
    print_columns(console, lines)
    console.print(
        f"\n{len(index)} subscriptions were built into {index.contents.n_nodes} shared nodes in "
        f"{1000 * (built - started):.1f} ms,\n{len(events)} events matched in "
        f"{1000 * (matched - built):.1f} ms."
    )
    return index


def _show_near_miss(console: Console, index: tamis.Index, events: list[EventRow]) -> None:
    subscription_id, event_id = NEAR_MISS
    _title(console, f"6. Why does {event_id} not match {subscription_id}?")
    event = next(row.event for row in events if row.event["event_id"] == event_id)
    print_explanation(console, index.explain(subscription_id, event))


def _show_spark(
    console: Console, index: tamis.Index, events: list[EventRow], schema: Schema
) -> bool:
    from tamis.cli.demo_spark import show_spark

    _title(console, "8. The same on Spark")
    expected = {(row.event["event_id"], name) for row in events for name in index.match(row.event)}
    with as_file(SAMPLES) as samples:
        return show_spark(console, samples, schema, expected)


def _show_next(console: Console, number: int) -> None:
    _title(console, f"{number}. Try next")
    for step in NEXT_STEPS:
        console.print(step)
    console.print("\nMatching is described in docs/matching.md, the language in docs/language.md.")


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(title, style="bold")
    console.print()
