"""`tamis spark stats, backtest, diff, audit`: reports on events, versions and answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from tamis.cli.console import make_console, print_columns, print_note
from tamis.cli.options import job_operators_option
from tamis.cli.spark import print_summary, spark_group, spark_session
from tamis.cli.spark_formats import find_format
from tamis.cli.spark_io import read_typed_events
from tamis.cli.spark_options import (
    Publisher,
    at_option,
    deliver,
    event_options,
    index_option,
    note_missing,
    open_events,
    open_parts,
    output_options,
    version_option,
    where,
)
from tamis.cli.spark_places import expect_outputs
from tamis.input.formats import Format


@spark_group.command("stats", cls=Publisher)
@index_option
@event_options
@click.option(
    "--sample-rows",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="Keep a sample of this number of events with the index.",
)
@click.pass_context
def stats_command(context: click.Context, /, **options: Any) -> None:
    """Store statistics of the events with the index, for its next build.

    Exit codes: 0 stored; 1 the index or the events cannot be used; 2 wrong usage.
    """
    with spark_session(context) as spark:
        import tamis.spark as pipeline
        from tamis.versions import open_version

        parts = open_version(options["index"])
        kind = find_format(options["events"], options["events_format"], "--events-format")
        events = (
            open_events(spark, options).frame
            if kind is Format.PARQUET
            else read_typed_events(spark, options["events"], kind, parts.version.typed_schema())
        )
        version = pipeline.save_statistics(
            events,
            options["index"],
            attributes=options["attributes"],
            sample_rows=options["sample_rows"],
        )
    statistics = version.statistics
    rows = [["attribute", "present", "distinct", "most frequent"]]
    for name, own in statistics["attributes"].items():
        top = ", ".join(f"{value} {share:.1%}" for value, share in own.get("top", [])[:3])
        rows.append([name, f"{own['present']:.1%}", str(own.get("distinct", "")), top])
    print_columns(make_console(), rows)
    print_summary({"version": version.name, "events": statistics["n_events"]})


@spark_group.command("backtest")
@index_option
@version_option
@at_option
@event_options
@job_operators_option
@click.option(
    "--day",
    metavar="COLUMN",
    help="Count for each value of this column of the events (Parquet only).",
)
@click.option(
    "--sample",
    type=click.FloatRange(0, 1, min_open=True),
    help="Use only this share of the events, and estimate the counts.",
)
@click.option(
    "--change",
    nargs=2,
    multiple=True,
    metavar="ID EXPRESSION",
    help="Count what the subscription ID gains and loses by another EXPRESSION. "
    "The option can be repeated.",
)
@output_options
@click.pass_context
def backtest_command(context: click.Context, /, **options: Any) -> None:
    """Count the events that each subscription would have matched; estimate with --sample.

    With --change, only the changed subscriptions are counted, before and after the change. Nothing
    is published.

    Exit codes: 0 counted; 1 the index, the events or the change cannot be used, or a result exists
    already; 2 wrong usage.
    """
    if options["change"] and options["day"]:
        raise click.UsageError("--change cannot be combined with --day")
    expect_outputs(context, options)
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        parts = open_parts(options)
        expect_outputs(context, options, parts.version.name)
        events = open_events(spark, options)
        note_missing(events, parts)
        given = {"sample": options["sample"], **where(events)}
        if options["change"]:
            _show_changes(
                pipeline.backtest(events.frame, parts, changed=dict(options["change"]), **given),
                options,
            )
            return
        result = pipeline.backtest(events.frame, parts, day=options["day"], **given)
        found = result.totals if result.by_day is None else result.by_day
        order = ["subscription_id"] if result.by_day is None else ["day", "subscription_id"]
        n_rows = deliver(found.orderBy(*order), options)
    print_summary(
        {
            "version": parts.version.name,
            "events": result.n_events,
            "looked at": result.n_looked_at,
            "rows": n_rows,
        }
    )


def _show_changes(result: Any, options: dict[str, Any]) -> None:
    n_rows = deliver(result.totals.orderBy("subscription_id"), options)
    if not options["output"]:
        make_console().print()
        deliver(result.samples.orderBy(*result.samples.columns), options)
    print_summary(
        {
            "version": result.version,
            "events": result.n_events,
            "looked at": result.n_looked_at,
            "rows": n_rows,
        }
    )


@spark_group.command("diff")
@index_option
@click.option(
    "--before",
    required=True,
    metavar="NAME",
    help="Compare the answers of this version with those of another.",
)
@click.option(
    "--after",
    metavar="NAME",
    help="Compare with this version; by default with the current one.",
)
@at_option
@event_options
@job_operators_option
@click.option(
    "--pairs", is_flag=True, help="Write the gained and the lost pairs instead of counts."
)
@click.option(
    "--allow",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Exit with 0 as long as no more than this number of subscriptions differ.",
)
@output_options
@click.pass_context
def diff_command(context: click.Context, /, **options: Any) -> None:
    """Compare two versions: list the subscriptions whose matches differ, with counts.

    Exit codes: 0 no more than --allow subscriptions differ; 1 more do; 2 wrong usage.
    """
    expect_outputs(context, options)
    with spark_session(context) as spark:
        import tamis.spark as pipeline
        from tamis.versions import open_version

        moment = options["at"] or datetime.now(UTC)  # the same for both
        before, after = (
            open_version(options["index"], options[name], moment).with_operators(
                options["operators"]
            )
            for name in ("before", "after")
        )
        expect_outputs(context, options, after.version.name)
        events = open_events(spark, options)
        found = pipeline.diff(events.frame, before, after, **where(events))
        counts = found.counts.orderBy("subscription_id").persist()
        n_changed = counts.count()
        deliver(found.pairs() if options["pairs"] else counts, options)
    names = {"before": before.version.name, "after": after.version.name}
    print_summary({**names, "different": n_changed, "allowed": options["allow"]})
    if n_changed > options["allow"]:
        raise click.exceptions.Exit(1)


@spark_group.command("audit")
@index_option
@version_option
@at_option
@event_options
@job_operators_option
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.001,
    show_default=True,
    help="Evaluate this share of the events again.",
)
@click.option(
    "--by",
    type=click.Choice(["reference", "spark"]),
    default="reference",
    show_default=True,
    help="Choose the evaluator: the reference evaluator or Spark SQL.",
)
@output_options
@click.pass_context
def audit_command(context: click.Context, /, **options: Any) -> None:
    """Evaluate a share of the events again, by another evaluator.

    Exit codes: 0 all answers agree; 1 some do not; 2 wrong usage.
    """
    expect_outputs(context, options)
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        parts = open_parts(options)
        expect_outputs(context, options, parts.version.name)
        events = open_events(spark, options)
        result = pipeline.audit(
            events.frame, parts, share=options["share"], by=options["by"], **where(events)
        )
        n_compared, n_wrong = result.counts
        if n_wrong or options["output"]:
            deliver(result.disagreements, options)
    print_summary({"version": result.version, "compared": n_compared, "disagreements": n_wrong})
    if not n_compared:
        share = f"the share {options['share']:g} chose no event, or none that matches"
        print_note(f"nothing was compared: {share}; --share 1 compares all")
    if n_wrong:
        raise click.exceptions.Exit(1)
