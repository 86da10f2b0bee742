"""`tamis match`: which subscriptions of an index does each event satisfy?"""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import tamis
from tamis.cli.arguments import expect_file, expect_rejects_place, refuse_swapped
from tamis.cli.console import StatusLine, describe_fault, make_console, print_note
from tamis.cli.event_rejects import EventRejects
from tamis.cli.match_follow import ending_at_interrupt, open_arriving, watch_set
from tamis.cli.options import (
    at_option,
    choose_format,
    format_option,
    list_formats,
    open_source,
    opening_options,
    operators_option,
    read_selection,
    split_names,
)
from tamis.cli.output import open_sink, prepare_kernels
from tamis.errors import InputError
from tamis.input.formats import detect_format
from tamis.language.names import parse_path
from tamis.places import is_live

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tamis.cli.event_feed import EventFeed
    from tamis.cli.match_run import Run
    from tamis.events.encoder import EncodedEvents

OUTPUTS: Final = ("json", "pairs", "tsv", "table")  # see `match_output.PRINTERS`


def read_subset(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> list[str] | None:
    """The listed ids, or the lines of the file after @."""
    if given is None or not given.startswith("@"):
        return read_selection(context, parameter, given)
    try:
        lines = Path(given[1:]).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read {given[1:]}: {reason}") from None
    ids = [line for line in lines if line.strip()]
    if not ids:
        raise click.BadParameter(f"{given[1:]} has no ids; it needs one on each line")
    return ids


@click.command("match")
@click.argument("index_path", metavar="INDEX")
@click.argument("events", default="-")
@format_option
@operators_option
@opening_options
@click.option(
    "--output",
    type=click.Choice(OUTPUTS),
    default=OUTPUTS[0],
    show_default=True,
    help="Choose the output: a line of JSON for each event (json) or for each match (pairs), "
    "tabs instead of JSON for each match (tsv), or a table for people (table).",
)
@click.option(
    "--counts",
    type=click.Choice(["subscription", "event"]),
    help="Print the number of matches of each subscription or of each event, with an example; "
    "the highest number comes first.",
)
@click.option(
    "--top",
    metavar="K",
    type=click.IntRange(min=1),
    help="Print only the K matches of highest weight of each event, the highest first; equal "
    "weights by id.",
)
@click.option("--bindings", is_flag=True, help="Print the values of each match's variables.")
@click.option(
    "--event-id", metavar="NAME", help="Name events by this attribute instead of their number."
)
@click.option(
    "--subset",
    metavar="ID,…|@FILE",
    callback=read_subset,
    help="Match only these subscriptions; @FILE names a file with one id on each line.",
)
@click.option(
    "--tagged",
    metavar="TAG,…",
    callback=read_selection,
    help="Match only subscriptions that have one of these tags.",
)
@at_option
@click.option(
    "--with",
    "columns",
    metavar="NAME,…",
    help="Print these attributes of each subscription that matches, such as title,link; also "
    "expression, tags, valid_from and valid_until.",
)
@click.option(
    "--with-event",
    "event_columns",
    metavar="NAME,…|*",
    help="Print these attributes of the event with its matches, such as user,host.name; * prints "
    "the whole event.",
)
@click.option(
    "--only-matches", is_flag=True, help="Leave out events and subscriptions without a match."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Share the work among this number of threads.",
)
@click.option(
    "--rejects",
    "rejects_file",
    metavar="FILE",
    help="Write lines and values that cannot be read to this file, as JSON lines.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if something cannot be read.")
@click.option(
    "--follow",
    is_flag=True,
    help="Answer each event as it comes, wait for further lines of a file, and see changes of a "
    "live index. Ctrl-C ends it.",
)
@list_formats
def match_command(  # noqa: PLR0913 - one parameter per option
    index_path: str,
    events: str,
    file_format: str | None,
    trusted: bool,
    key: bytes | None,
    version: str | None,
    output: str,
    counts: str | None,
    top: int | None,
    bindings: bool,
    event_id: str | None,
    subset: list[str] | None,
    tagged: list[str] | None,
    at: datetime | None,
    columns: str | None,
    event_columns: str | None,
    only_matches: bool,
    threads: int,
    rejects_file: str | None,
    strict: bool,
    follow: bool,
) -> None:
    """Match EVENTS against INDEX: a file of {formats}, or stdin.

    INDEX may be the folder of a live index: answers are as of its last change.

    Prints the matches of each event as they are found. A value of the wrong type counts as
    missing, and a line that is not an event is skipped; notes on stderr count both.

    Exit codes: 0 matched; 1 the index or most of the events cannot be read, or with --strict any
    part of them; 2 wrong usage.
    """
    # NumPy and all that: other commands start without it
    from tamis.cli.event_feed import EventFeed
    from tamis.cli.match_run import Run
    from tamis.match.index import Index

    refuse_combined(
        {"--counts": counts, "--bindings": bindings},
        {"--top": top, "--with": columns, "--with-event": event_columns},
    )
    if follow and counts:
        raise click.UsageError("--counts cannot be combined with --follow: counts need an end")
    started = time.monotonic()
    refuse_swapped(index_path, events)
    expect_file(events, "events")
    expect_rejects_place(rejects_file, events)
    opened = tamis.open(index_path, version=version, trusted=trusted, key=key)
    # Of a live index, its state now: `--follow` shows later ones.
    index = Index.showing(opened.view) if is_live(index_path) else opened
    run = Run(index, output, only_matches=only_matches, threads=threads, bindings=bindings)
    run.is_changing = follow
    run.at, run.top = at, top
    _select(run, subset, tagged)
    _show_columns(run, columns, event_columns, event_id)
    prepare_kernels()  # after all errors of the index and the options: compiling takes a while
    status = StatusLine()
    source = open_arriving(events, file_format) if follow else open_source(events)
    chosen = choose_format(events, file_format)
    with open_sink(rejects_file) if rejects_file else nullcontext() as sink:
        rejects = EventRejects(index, sink)
        feed = EventFeed(index, source, chosen or detect_format(events), rejects)
        feed.need(run.needed)
        if not follow:
            feed.threads = threads
        else:
            follow_set(opened, run, rejects, feed)

        def batches() -> Iterator[tuple[list[Any], EncodedEvents]]:
            for rows, found, batch in feed.batches():
                yield run.name_events(rows, found), batch
                status.refresh(f"{rejects.n_events:,} events, {run.n_matches:,} matches")
                if follow and sink is not None:
                    sink.flush()

        try:
            with ending_at_interrupt(source):
                run.ways[counts](batches())
        finally:
            status.clear()
    rejects.report(events, feed.find_names, is_listed=rejects_file is not None)
    _note_faults(index)
    for option, name in run.missing_attributes() if rejects.n_events else ():
        print_note(f"no event has the attribute {name}, which {option} names")
    if status.is_terminal:
        seconds = time.monotonic() - started
        summary = f"{rejects.n_events:,} events, {run.n_matches:,} matches, {seconds:.2f} s"
        make_console(stderr=True).print(summary, style="dim")
    if rejects.is_useless or (strict and rejects.n_rejects):
        raise click.exceptions.Exit(1)


def _select(run: Run, subset: list[str] | None, tagged: list[str] | None) -> None:
    if subset is not None:
        run.subset = find_ids(subset, run.index)
    if tagged is not None:
        run.tagged = tagged
        run.index.tagged(*tagged)  # warns of unknown tags once, before the first event is read


def _show_columns(
    run: Run, columns: str | None, event_columns: str | None, event_id: str | None
) -> None:
    if columns is not None:
        run.show_details(split_names(columns))
    if event_columns is not None:
        run.show_events(split_names(event_columns))
    if event_id is not None:
        run.event_id = parse_path(event_id)


def follow_set(opened: tamis.Index, run: Run, rejects: EventRejects, feed: EventFeed) -> None:
    """Match each event against the newest state of a live index, without waiting for more
    events.
    """

    def show(changed: tamis.Index) -> None:
        rejects.show(changed)
        feed.show(changed)
        run.show(changed)

    feed.linger = 0.0
    feed.on_events = watch_set(opened, show)


def refuse_combined(modes: dict[str, Any], others: dict[str, Any]) -> None:
    """Refuse both of the modes at once, and each with options that it has no use for."""
    if all(modes.values()):
        raise click.UsageError("--bindings cannot be combined with --counts")
    for mode in (name for name, given in modes.items() if given):
        for option in (name for name, given in others.items() if given is not None):
            raise click.UsageError(f"{option} cannot be combined with {mode}")


def _note_faults(index: tamis.Index) -> None:
    for fault in index.operators.faults:
        print_note(describe_fault(fault))
    for name, n_running in index.operators.abandoned.items():
        print_note(f"calls of {name} that timed out and still run: {n_running}")


def find_ids(listed: list[str], index: tamis.Index) -> list[str]:
    """The ids, without the blanks around them unless these belong to an id of the index."""
    ids = [one if one in index else one.strip() for one in listed]
    for subscription_id in ids:
        index.ordinal(subscription_id)  # raises an error before the first event is read
    return ids
