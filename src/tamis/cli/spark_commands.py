"""`tamis spark run, build, match, stream`: parse options, run a job, print a summary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.console import describe_fault, make_console, print_note
from tamis.cli.options import (
    definitions_option,
    job_operators_option,
    missing_option,
    read_selection,
    schema_option,
    split_names,
)
from tamis.cli.spark import (
    RUN,
    SESSION,
    close_session,
    open_session,
    print_summary,
    spark_group,
    spark_session,
)
from tamis.cli.spark_checks import check_columns, check_steps
from tamis.cli.spark_io import LOOKED_AT, read_events, read_subscriptions
from tamis.cli.spark_options import (
    FORMAT,
    Publisher,
    at_option,
    deliver,
    event_options,
    index_option,
    note_missing,
    open_events,
    open_parts,
    output_options,
    rejects_option,
    spread_options,
    version_option,
    where,
    write_counted,
    write_table,
)
from tamis.cli.spark_places import (
    PIPELINE,
    expect_outputs,
    fill_date,
    fixed_output,
)
from tamis.errors import InputError
from tamis.places import holds_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.cli.spark_io import Events
    from tamis.language.schema import Schema

learn_option = click.option(
    "--learn",
    is_flag=True,
    help="Store the cost of operators and how often they are true, for the next build.",
)


# ── run ─────────────────────────────────────────────────────────────────────────────────────


@spark_group.command(RUN)
@click.argument("steps", nargs=-1, metavar="[STEP]…")
@click.pass_context
def run_command(context: click.Context, steps: tuple[str, ...]) -> None:
    """Run a pipeline: all steps that the file of --config has a table for, in its order.

    With STEPs, run only those. The first step that fails ends the run, with its exit code. Paths
    and columns are checked before the first step; a second run for the same date replaces the
    tables of the first.

    Exit codes: 0 all steps were run; 1 a step failed, or the file or a path cannot be used; 2 wrong
    usage.
    """
    planned: list[str] = context.obj["steps"]
    if not planned:
        raise click.UsageError("a pipeline is a file: tamis spark --config FILE.toml run")
    for name in steps:
        if name not in planned:
            raise click.UsageError(f'no step "{name}"; the file has: {", ".join(planned)}')
    parent = context.parent
    assert parent is not None
    context.obj[PIPELINE] = True
    prepared = [
        spark_group.commands[name].make_context(name, [], parent=parent)
        for name in steps or planned
    ]
    check_steps(prepared)
    session = open_session(context)
    context.obj[SESSION] = session
    try:
        with spark_session(context):
            check_columns(prepared, session)
        for step in prepared:
            make_console().print(f"{step.info_name}:", style="bold")
            with step:
                step.command.invoke(step)
    finally:
        del context.obj[SESSION]
        close_session(session)


# ── build ───────────────────────────────────────────────────────────────────────────────────


@spark_group.command("build", cls=Publisher)
@click.option(
    "--subscriptions",
    callback=fill_date,
    metavar="PATH",
    help="Read the subscriptions of this file or folder; with --update, the changed ones. A store "
    "of subscriptions is named by its folder or its address, postgresql://…; with --update, its "
    "log has the changes.",
)
@click.option(
    "--as-of",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Read a store of subscriptions as of this change instead of the newest.",
)
@click.option(
    "--subscriptions-format",
    type=FORMAT,
    help="Read the subscriptions in this format; by default the names and contents "
    "of the files decide.",
)
@index_option
@click.option(
    "--id-column",
    metavar="NAME",
    help="Take the ids from this column instead of subscription_id or id.",
)
@click.option(
    "--expression-column",
    default="expression",
    show_default=True,
    help="Take the expressions from this column.",
)
@schema_option
@definitions_option
@missing_option
@job_operators_option
@click.option(
    "--parts",
    type=click.IntRange(min=1),
    help="Build this number of parts; by default the number of subscriptions decides.",
)
@click.option(
    "--partition-by",
    type=click.Choice(["hash", "structure"]),
    default="hash",
    show_default=True,
    help="Choose how subscriptions are divided into parts: by their ids (hash) or "
    "by the attributes they name (structure).",
)
@click.option("--full", is_flag=True, help="Rebuild all parts, even those that have not changed.")
@click.option(
    "--update", is_flag=True, help="Add the subscriptions to the current version, as a small part."
)
@click.option(
    "--remove",
    multiple=True,
    metavar="ID",
    help="Remove the subscription with this id; only with --update. The option can be repeated.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Keep this number of versions, and delete older ones.",
)
@rejects_option("Write the table of rejects to this path.")
@click.pass_context
def build_command(context: click.Context, /, **options: Any) -> None:
    """Build subscriptions into the next version of an index.

    Exit codes: 0 built, with or without rejects; 1 not built; 2 wrong usage.
    """
    if not options["subscriptions"] and not (options["update"] and options["remove"]):
        raise click.UsageError("Missing option '--subscriptions'.")
    expect_outputs(context, options)
    started = time.monotonic()
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        report = _update(spark, options) if options["update"] else _build(spark, options)
        if options["rejects"]:
            expect_outputs(context, options, report.version.name)
            table = pipeline.rejects(spark, options["index"])
            write_table(table, options, "rejects", overwrite=True)
    if not report.is_published:
        print_note(f"nothing has changed: {report.version.name} stays the newest version")
    if report.n_rejects and not options["rejects"]:
        n = report.n_rejects
        were, them = ("subscription was", "it") if n == 1 else ("subscriptions were", "them")
        print_note(f"{n:,} {were} rejected; --rejects PATH lists {them}")
    if report.unused:
        from tamis.match.reports import describe_unused

        print_note(describe_unused(report.unused))
    print_summary(
        {
            "version": report.version.name,
            **_describe_position(report.version),
            "subscriptions": report.n_subscriptions,
            "rejects": report.n_rejects,
            **({"expired": report.n_expired} if report.n_expired else {}),
            "parts": report.n_parts,
            "built": report.n_built,
            "bytes": report.version.n_bytes,
            "seconds": f"{time.monotonic() - started:.1f}",
        }
    )


def _build(spark: SparkSession, options: dict[str, Any]) -> Any:
    import tamis.spark as pipeline
    from tamis.versions import Retention

    source, provenance = options["subscriptions"], {}
    if not holds_subscriptions(source):
        provenance = {"source": source}
        source = read_subscriptions(spark, source, options["subscriptions_format"])
        if source.isEmpty():
            raise InputError(f"{options['subscriptions']} contains no subscriptions")
    schema: Schema | None = options["schema"]
    return pipeline.build(
        source,
        options["index"],
        as_of=options["as_of"],
        schema=schema,
        definitions=options["definitions"],
        missing=options["missing"],
        operators=options["operators"],
        id_column=options["id_column"],
        expression_column=options["expression_column"],
        parts=options["parts"],
        partition_by=options["partition_by"],
        incremental=not options["full"],
        retention=Retention(versions=options["keep"]),
        provenance=provenance,
    )


def _describe_position(version: Any) -> dict[str, Any]:
    """The change of the store that a version includes, if it was built from a store."""
    from tamis.versions.log_position import LogPosition

    position = LogPosition.of(version)
    return {} if position is None else {"change": position.change}


def _update(spark: SparkSession, options: dict[str, Any]) -> Any:
    import tamis.spark as pipeline

    source = options["subscriptions"]
    if source and not holds_subscriptions(source):
        named = {options["expression_column"]: "expression"}
        if options["id_column"]:
            named[options["id_column"]] = "subscription_id"
        source = read_subscriptions(
            spark, source, options["subscriptions_format"]
        ).withColumnsRenamed(named)
    return pipeline.update(
        spark,
        options["index"],
        source,
        as_of=options["as_of"],
        removed=options["remove"],
        operators=options["operators"],
    )


# ── match, stream ───────────────────────────────────────────────────────────────────────────


@spark_group.command("match")
@index_option
@version_option
@at_option
@event_options
@click.option(
    "--kind",
    type=click.Choice(["rows", "lists", "by-subscription", "by-event"]),
    default="rows",
    show_default=True,
    help="Choose the result: a row for each match, a list for each event, or "
    "counts, which are the fastest.",
)
@click.option(
    "--top",
    metavar="K",
    type=click.IntRange(min=1),
    help="Keep only the K matches of highest weight of each event, and add their weights to the "
    "rows.",
)
@click.option(
    "--tagged",
    metavar="TAG,…",
    callback=read_selection,
    help="Match only subscriptions that have one of these tags.",
)
@click.option("--tags", is_flag=True, help="Add the subscriptions' tags to the rows.")
@click.option(
    "--with",
    "columns",
    metavar="NAME,…",
    help="Add these attributes of the subscriptions to the rows, such as title,link.",
)
@click.option(
    "--with-event",
    "event_columns",
    metavar="NAME,…|*",
    help="Add these attributes of the events to the rows, such as user,host.name; * adds the "
    "whole event, as JSON.",
)
@click.option(
    "--bindings", is_flag=True, help="Add the values of each match's variables to the rows."
)
@job_operators_option
@learn_option
@rejects_option("Write the table of invalid values to this path.")
@spread_options
@output_options
@click.pass_context
def match_command(context: click.Context, /, **options: Any) -> None:
    """Match events against an index. Without --output the first rows are shown.

    Exit codes: 0 matched; 1 something cannot be read; 2 wrong usage.
    """
    if options["output"] and options["output"] == options["rejects"]:
        raise click.UsageError("--output and --rejects name the same place")
    if options["top"] and (options["kind"] != "rows" or options["bindings"]):
        other = "--bindings" if options["bindings"] else f"--kind {options['kind']}"
        raise click.UsageError(f"--top cannot be combined with {other}")
    expect_outputs(context, options)
    started = time.monotonic()
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        parts = open_parts(options)
        expect_outputs(context, options, parts.version.name)
        events = open_events(spark, options)
        note_missing(events, parts)
        learned = _gather(spark, parts)
        spread = {"spread": options["spread"], "groups": options["groups"], "learned": learned}
        if options["tagged"] is not None:
            spread["tagged"] = options["tagged"]
        if options["kind"] == "by-subscription":
            found = pipeline.count_by_subscription(
                events.frame, parts, attributes=events.attributes, **spread
            )
        else:
            kinds: dict[str, Any] = {
                "rows": pipeline.match,
                "lists": pipeline.match_lists,
                "by-event": pipeline.count_by_event,
            }
            rows = {name: options[name] for name in ("tags", "bindings", "top")}
            if options["columns"]:
                rows["columns"] = split_names(options["columns"])
            if options["event_columns"]:
                rows["event_columns"] = split_names(options["event_columns"])
            more = rows if options["kind"] == "rows" else {}
            found = kinds[options["kind"]](events.frame, parts, **where(events), **spread, **more)
        n_rows = deliver(found, options)
        _deliver_rejects(events, parts, options)
    _report_learned(learned, options)
    seconds = f"{time.monotonic() - started:.1f}"
    print_summary({"version": parts.version.name, "rows": n_rows, "seconds": seconds})


def _deliver_rejects(events: Events, parts: Any, options: dict[str, Any]) -> None:
    """Write the table of values that cannot be read; without one, check the first events."""
    import tamis.spark as pipeline

    if options["rejects"]:
        refused = pipeline.event_rejects(events.frame, parts, **where(events))
        n_rejects = write_counted(refused, options, "rejects")
        where_from, listed = "", f"{options['rejects']} lists them"
    else:
        first = events.frame.limit(LOOKED_AT)
        n_rejects = pipeline.event_rejects(first, parts, **where(events)).count()
        where_from, listed = f" of the first {LOOKED_AT:,} events", "--rejects PATH lists all"
    if n_rejects:
        things = "value or event" if n_rejects == 1 else "values or events"
        print_note(f"{n_rejects:,} {things}{where_from} cannot be read; {listed}")


def _gather(spark: SparkSession, parts: Any) -> Any:
    """The accumulator for operators, if the index has any."""
    from tamis.spark import LearnedStatistics

    return LearnedStatistics(spark) if parts.version.typed_schema().operators else None


def _report_learned(learned: Any, options: dict[str, Any]) -> None:
    """Report calls without an answer; store the costs and selectivities of operators."""
    if learned is None:
        return
    from tamis.spark import save_operator_statistics

    for fault in learned.faults:
        print_note(describe_fault(fault))
    if options["learn"] and learned.value:
        save_operator_statistics(options["index"], learned)


@spark_group.command("stream")
@index_option
@event_options
@click.option(
    "--output",
    required=True,
    callback=fixed_output,
    metavar="PATH",
    help="Write a folder of Parquet for each batch below this path.",
)
@click.option(
    "--checkpoint",
    required=True,
    callback=fixed_output,
    metavar="PATH",
    help="Store the progress of the stream in this folder.",
)
@click.option(
    "--rejects",
    callback=fixed_output,
    metavar="PATH",
    help="Write the values that cannot be read in each batch below this path.",
)
@click.option(
    "--with-event",
    "event_columns",
    metavar="NAME,…|*",
    help="Add these attributes of the events to the rows; * adds the whole event, as JSON, which "
    "a server needs that delivers the matches.",
)
@click.option(
    "--bindings", is_flag=True, help="Add the values of each match's variables to the rows."
)
@job_operators_option
@learn_option
@click.option(
    "--every",
    metavar="TIME",
    default="1 second",
    show_default=True,
    help="Start a batch at this interval.",
)
@click.option("--once", is_flag=True, help="Match the existing files, then stop.")
@click.option(
    "--files-per-trigger",
    type=click.IntRange(min=1),
    help="Take at most this number of files into one batch.",
)
@click.option(
    "--metrics", metavar="FILE", help="Append a line of JSON for each batch to this file."
)
@click.pass_context
def stream_command(context: click.Context, /, **options: Any) -> None:
    """Match files as they arrive, exactly once, with the current version at each batch.

    Exit codes: 0 stopped; 1 something cannot be read or written; 2 wrong usage.
    """
    totals = {"batches": 0, "matches": 0, "rejects": 0}

    def describe_totals() -> str:
        return ", ".join(f"{n:,} {name}" for name, n in totals.items())

    with spark_session(context, describe_totals) as spark:
        import tamis.spark as pipeline
        from tamis.versions import open_version

        def write_metrics(metrics: Any) -> None:
            if options["metrics"]:
                with open(options["metrics"], "a", encoding="utf-8") as sink:
                    sink.write(metrics.to_json() + "\n")

        listener = pipeline.MetricsListener(write_metrics)

        def count(report: Any) -> None:
            listener.on_batch(report)
            totals["batches"] += 1
            totals["matches"] += report.n_matches
            totals["rejects"] += report.n_rejects

        spark.streams.addListener(listener)
        events = read_events(
            spark,
            options["events"],
            options["events_format"],
            options["event_id"],
            options["attributes"],
            is_stream=True,
            files_per_trigger=options["files_per_trigger"],
        )
        parts = open_version(options["index"])
        note_missing(events, parts)
        learned = _gather(spark, parts)
        query = pipeline.stream(
            events.frame,
            options["index"],
            options["output"],
            checkpoint=options["checkpoint"],
            rejects=options["rejects"],
            trigger={"availableNow": True}
            if options["once"]
            else {"processingTime": options["every"]},
            on_batch=count,
            bindings=options["bindings"],
            event_columns=split_names(options["event_columns"] or ""),
            operators=options["operators"],
            learned=learned,
            **where(events),
        )
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
    _report_learned(learned, options)
    print_summary(totals)
