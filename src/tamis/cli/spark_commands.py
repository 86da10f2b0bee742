"""The commands of `tamis spark`: options in, a job, a summary out."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli.console import make_console, print_columns, print_note, tell_fault
from tamis.cli.options import job_operators_option, missing_option, schema_option
from tamis.cli.spark import (
    RUN,
    SESSION,
    close_session,
    open_session,
    print_summary,
    spark_group,
    spark_session,
)
from tamis.cli.spark_io import (
    FORMATS,
    PARQUET,
    Events,
    choose_format,
    expect_free,
    read_events,
    read_subscriptions,
    read_typed_events,
    write_frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tamis.language.schema import Schema

_Command = TypeVar("_Command", bound="Callable[..., Any]")
_FORMAT = click.Choice(list(FORMATS))
SHOWN = 20

index_option = click.option(
    "--index", required=True, metavar="PATH", help="The folder of the index's versions."
)
version_option = click.option("--version", metavar="NAME", help="Instead of the current one.")
learn_option = click.option(
    "--learn", is_flag=True, help="Keep what operators cost and how often they hold."
)
at_option = click.option(
    "--at", metavar="MOMENT", help="Ask those that are valid then, in UTC, instead of now."
)


def event_options(command: _Command) -> _Command:
    """Where the events are and what they look like."""
    for option in (
        click.option(
            "--attributes", metavar="COLUMN", help="The column with whole events, in Parquet."
        ),
        click.option("--event-id", metavar="COLUMN", help="The column with the events' ids."),
        click.option("--events-format", type=_FORMAT, help="As the name tells, if not given."),
        click.option("--events", required=True, metavar="PATH", help="A file or a folder."),
    ):
        command = option(command)
    return command


def output_options(command: _Command) -> _Command:
    """Where the result goes."""
    for option in (
        click.option("--overwrite", is_flag=True, help="Replace what is there."),
        click.option("--output-format", type=_FORMAT, help="As the name tells, if not given."),
        click.option("--output", metavar="PATH", help="Write the table there."),
    ):
        command = option(command)
    return command


def spread_options(command: _Command) -> _Command:
    """How the work is spread."""
    kinds = click.Choice(["auto", "replicate", "split", "product"])
    command = click.option("--spread", type=kinds, default="auto", show_default=True)(command)
    return click.option(
        "--groups", type=click.IntRange(min=1), help="Into how many groups of parts."
    )(command)


def _open_events(spark: SparkSession, options: dict[str, Any]) -> Events:
    return read_events(
        spark,
        options["events"],
        options["events_format"],
        options["event_id"],
        options["attributes"],
    )


def _where(events: Events) -> dict[str, Any]:
    return {"event_id": events.event_id, "attributes": events.attributes}


# ── run ─────────────────────────────────────────────────────────────────────────────────────


@spark_group.command(RUN)
@click.argument("steps", nargs=-1, metavar="[STEP]…")
@click.pass_context
def run_command(context: click.Context, steps: tuple[str, ...]) -> None:
    """Run a pipeline: all steps that the file of --config has a table for, in its order.

    With STEPs only those. The first that fails ends it, with its exit code.
    """
    planned: list[str] = context.obj["steps"]
    if not planned:
        raise click.UsageError("a pipeline is a file: tamis spark --config FILE.toml run")
    for name in steps:
        if name not in planned:
            raise click.UsageError(f'no step "{name}"; the file has: {", ".join(planned)}')
    parent = context.parent
    assert parent is not None
    session = open_session(context)
    context.obj[SESSION] = session
    try:
        for name in steps or planned:
            make_console().print(f"{name}:", style="bold")
            command = spark_group.commands[name]
            with command.make_context(name, [], parent=parent) as own:
                command.invoke(own)
    finally:
        del context.obj[SESSION]
        close_session(session)


# ── build ───────────────────────────────────────────────────────────────────────────────────


@spark_group.command("build")
@click.option(
    "--subscriptions", metavar="PATH", help="A file or a folder; with --update, what changed."
)
@click.option("--subscriptions-format", type=_FORMAT, help="As the name tells, if not given.")
@index_option
@click.option("--id-column", default="subscription_id", show_default=True)
@click.option("--expression-column", default="expression", show_default=True)
@schema_option
@missing_option
@job_operators_option
@click.option("--parts", type=click.IntRange(min=1), help="How many; by size if not given.")
@click.option("--partition-by", type=click.Choice(["hash", "structure"]), default="hash")
@click.option("--full", is_flag=True, help="Take over no part of the version before.")
@click.option("--update", is_flag=True, help="Add to the current version, as a small part.")
@click.option("--remove", multiple=True, metavar="ID", help="With --update: no longer there.")
@click.option("--keep", type=click.IntRange(min=1), default=3, show_default=True, help="Versions.")
@click.option("--rejects", metavar="PATH", help="Write the table of rejects there.")
@click.pass_context
def build_command(context: click.Context, /, **options: Any) -> None:
    """Build subscriptions into the next version of an index.

    Exit codes: 0 built, with or without rejects; 1 not built; 2 wrong usage.
    """
    if not options["subscriptions"] and not (options["update"] and options["remove"]):
        raise click.UsageError("Missing option '--subscriptions'.")
    expect_free(options["rejects"], overwrite=True)
    started = time.monotonic()
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        report = _update(spark, options) if options["update"] else _build(spark, options)
        if options["rejects"]:
            table = pipeline.rejects(spark, options["index"])
            write_frame(table, options["rejects"], None, overwrite=True)
    if report.n_rejects and not options["rejects"]:
        print_note(f"{report.n_rejects:,} subscriptions were rejected; --rejects PATH lists them")
    print_summary(
        {
            "version": report.version.name,
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

    source = read_subscriptions(spark, options["subscriptions"], options["subscriptions_format"])
    schema: Schema | None = options["schema"]
    return pipeline.build(
        source,
        options["index"],
        schema=schema,
        missing=options["missing"],
        operators=options["operators"],
        id_column=options["id_column"],
        expression_column=options["expression_column"],
        parts=options["parts"],
        partition_by=options["partition_by"],
        incremental=not options["full"],
        retention=pipeline.Retention(versions=options["keep"]),
        provenance={"source": options["subscriptions"]},
    )


def _update(spark: SparkSession, options: dict[str, Any]) -> Any:
    import tamis.spark as pipeline

    source = None
    if options["subscriptions"]:
        source = read_subscriptions(
            spark, options["subscriptions"], options["subscriptions_format"]
        ).withColumnsRenamed(
            {
                options["id_column"]: "subscription_id",
                options["expression_column"]: "expression",
            }
        )
    return pipeline.update(spark, options["index"], source, removed=options["remove"])


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
    help="A row for each match, a list for each event, or counts, for which no pair is made.",
)
@click.option("--tags", is_flag=True, help="With the subscriptions' tags, in rows.")
@click.option("--bindings", is_flag=True, help="With the values of variables, in rows.")
@job_operators_option
@learn_option
@click.option("--rejects", metavar="PATH", help="Write the table of wrong values there.")
@spread_options
@output_options
@click.pass_context
def match_command(context: click.Context, /, **options: Any) -> None:
    """Which subscriptions does each event satisfy? Without --output the first rows are shown.

    Exit codes: 0 matched; 1 something cannot be read; 2 wrong usage.
    """
    if options["output"] and options["output"] == options["rejects"]:
        raise click.UsageError("--output and --rejects name the same place")
    for path in (options["output"], options["rejects"]):
        expect_free(path, overwrite=options["overwrite"])
    started = time.monotonic()
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        parts = _open_parts(options)
        events = _open_events(spark, options)
        learned = _gather(spark, parts)
        spread = {"spread": options["spread"], "groups": options["groups"], "learned": learned}
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
            rows = {"tags": options["tags"], "bindings": options["bindings"]}
            more = rows if options["kind"] == "rows" else {}
            found = kinds[options["kind"]](events.frame, parts, **_where(events), **spread, **more)
        n_rows = _deliver(found, options)
        if options["rejects"]:
            refused = pipeline.event_rejects(events.frame, parts, **_where(events))
            write_frame(refused, options["rejects"], None, overwrite=options["overwrite"])
    _tell_learned(learned, options)
    seconds = f"{time.monotonic() - started:.1f}"
    print_summary({"version": parts.version.name, "rows": n_rows, "seconds": seconds})


def _open_parts(options: dict[str, Any]) -> Any:
    """The version that answers, with its operators."""
    from tamis.spark import open_version

    parts = open_version(options["index"], options["version"], options["at"])
    return parts.with_operators(options["operators"])


def _gather(spark: SparkSession, parts: Any) -> Any:
    """Where workers tell of operators, if the index has any."""
    from tamis.spark import LearnedStatistics

    return LearnedStatistics(spark) if parts.version.typed_schema().operators else None


def _tell_learned(learned: Any, options: dict[str, Any]) -> None:
    """Say what operators did not answer; keep what they cost and how often they held."""
    if learned is None:
        return
    from tamis.spark import save_operator_statistics

    for fault in learned.faults:
        print_note(tell_fault(fault))
    if options["learn"] and learned.value:
        save_operator_statistics(options["index"], learned)


def _deliver(found: Any, options: dict[str, Any]) -> int | str:
    """Write the table and count its rows on the way, or show the first of them."""
    if not options["output"]:
        rows = found.limit(SHOWN).collect()
        table = [list(found.columns)] + [[str(value) for value in row] for row in rows]
        print_columns(make_console(), table)
        return len(rows) if len(rows) < SHOWN else f"{SHOWN} or more"
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observed = Observation()
    counted = found.observe(observed, F.count(F.lit(1)).alias("n"))
    write_frame(
        counted, options["output"], options["output_format"], overwrite=options["overwrite"]
    )
    return int(observed.get["n"])


@spark_group.command("stream")
@index_option
@event_options
@click.option("--output", required=True, metavar="PATH", help="A folder of Parquet for each batch.")
@click.option("--checkpoint", required=True, metavar="PATH", help="Where the stream remembers.")
@click.option("--rejects", metavar="PATH", help="The same for wrong values.")
@click.option("--bindings", is_flag=True, help="With the values of variables.")
@job_operators_option
@learn_option
@click.option("--every", metavar="TIME", default="1 second", show_default=True)
@click.option("--once", is_flag=True, help="Take in what is there, then stop.")
@click.option(
    "--files-per-trigger", type=click.IntRange(min=1), help="Take no more files into one batch."
)
@click.option("--metrics", metavar="FILE", help="Append a JSON line for each batch.")
@click.pass_context
def stream_command(context: click.Context, /, **options: Any) -> None:
    """Match files as they arrive, exactly once, by the version that is current at each batch.

    Exit codes: 0 stopped; 1 something cannot be read or written; 2 wrong usage.
    """
    totals = {"batches": 0, "matches": 0, "rejects": 0}
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        def tell(told: Any) -> None:
            if options["metrics"]:
                with open(options["metrics"], "a", encoding="utf-8") as sink:
                    sink.write(told.to_json() + "\n")

        listener = pipeline.MetricsListener(tell)

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
        learned = _gather(spark, pipeline.open_version(options["index"]))
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
            operators=options["operators"],
            learned=learned,
            **_where(events),
        )
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
    _tell_learned(learned, options)
    print_summary(totals)


# ── stats, backtest, diff, audit ────────────────────────────────────────────────────────────


@spark_group.command("stats")
@index_option
@event_options
@click.option("--sample-rows", type=click.IntRange(min=1), default=20_000, show_default=True)
@click.pass_context
def stats_command(context: click.Context, /, **options: Any) -> None:
    """What do the events look like? Kept with the index, for its next build."""
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        parts = pipeline.open_version(options["index"])
        kind = choose_format(options["events"], options["events_format"])
        events = (
            _open_events(spark, options).frame
            if kind == PARQUET
            else read_typed_events(spark, options["events"], kind, parts.version.typed_schema())
        )
        version = pipeline.save_statistics(
            events,
            options["index"],
            attributes=options["attributes"],
            sample_rows=options["sample_rows"],
        )
    told = version.statistics
    rows = [["attribute", "present", "distinct", "most frequent"]]
    for name, own in told["attributes"].items():
        top = ", ".join(f"{value} {share:.1%}" for value, share in own.get("top", [])[:3])
        rows.append([name, f"{own['present']:.1%}", str(own.get("distinct", "")), top])
    print_columns(make_console(), rows)
    print_summary({"version": version.name, "events": told["n_events"]})


@spark_group.command("backtest")
@index_option
@version_option
@at_option
@event_options
@job_operators_option
@click.option("--day", metavar="COLUMN", help="Count for each of its values, in Parquet.")
@click.option("--sample", type=click.FloatRange(0, 1, min_open=True), help="A share of the events.")
@output_options
@click.pass_context
def backtest_command(context: click.Context, /, **options: Any) -> None:
    """How many events would each subscription have matched? With --sample, about how many."""
    expect_free(options["output"], overwrite=options["overwrite"])
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        parts = _open_parts(options)
        events = _open_events(spark, options)
        told = pipeline.backtest(
            events.frame, parts, day=options["day"], sample=options["sample"], **_where(events)
        )
        found = told.totals if told.by_day is None else told.by_day
        order = ["subscription_id"] if told.by_day is None else ["day", "subscription_id"]
        n_rows = _deliver(found.orderBy(*order), options)
    print_summary(
        {
            "version": parts.version.name,
            "events": told.n_events,
            "looked at": told.n_looked_at,
            "rows": n_rows,
        }
    )


@spark_group.command("diff")
@index_option
@click.option("--before", required=True, metavar="NAME", help="A version.")
@click.option("--after", metavar="NAME", help="Another; the current one if not given.")
@at_option
@event_options
@job_operators_option
@click.option("--pairs", is_flag=True, help="The gained and the lost pairs, not only counts.")
@click.option("--allow", type=click.IntRange(min=0), default=0, show_default=True)
@output_options
@click.pass_context
def diff_command(context: click.Context, /, **options: Any) -> None:
    """What would another version answer? Subscriptions that answer otherwise, with counts.

    Exit codes: 0 no more than --allow subscriptions differ; 1 more do; 2 wrong usage.
    """
    expect_free(options["output"], overwrite=options["overwrite"])
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        moment = options["at"] or datetime.now(UTC)  # the same for both
        before, after = (
            pipeline.open_version(options["index"], options[name], moment).with_operators(
                options["operators"]
            )
            for name in ("before", "after")
        )
        events = _open_events(spark, options)
        found = pipeline.diff(events.frame, before, after, **_where(events))
        counts = found.counts.orderBy("subscription_id").persist()
        n_changed = counts.count()
        _deliver(found.pairs() if options["pairs"] else counts, options)
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
@click.option("--share", type=click.FloatRange(0, 1, min_open=True), default=0.001)
@click.option(
    "--by",
    type=click.Choice(["reference", "spark"]),
    default="reference",
    show_default=True,
    help="The reference evaluator, or Spark SQL's own.",
)
@output_options
@click.pass_context
def audit_command(context: click.Context, /, **options: Any) -> None:
    """Evaluate a share of the events again, by another evaluator.

    Exit codes: 0 all answers agree; 1 some do not; 2 wrong usage.
    """
    expect_free(options["output"], overwrite=options["overwrite"])
    with spark_session(context) as spark:
        import tamis.spark as pipeline

        parts = _open_parts(options)
        events = _open_events(spark, options)
        rows = pipeline.audit(
            events.frame, parts, share=options["share"], by=options["by"], **_where(events)
        ).persist()
        n_compared = rows.agg({"n_compared": "sum"}).collect()[0][0] or 0
        wrong = rows.where("subscription_id IS NOT NULL").drop("n_compared")
        n_wrong = wrong.count()
        if n_wrong or options["output"]:
            _deliver(wrong, options)
    print_summary({"version": parts.version.name, "compared": n_compared, "disagreements": n_wrong})
    if n_wrong:
        raise click.exceptions.Exit(1)
