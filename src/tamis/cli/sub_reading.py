"""`tamis sub list`, `show`, `export` and `log`: read the subscriptions of a live index, which
another process may have open.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from tamis.cli.console import StatusLine, make_console, print_columns, print_note, printable
from tamis.cli.live_folder import folder_argument, reading, store_option
from tamis.cli.options import output_option
from tamis.cli.output import open_sink, print_json, spell_json
from tamis.cli.sub import sub_group
from tamis.errors import InputError
from tamis.language.moments import spell_moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tamis.subscriptions import Change, Subscription, SubscriptionStore

SHOWN_CHANGES: Final = 20  # of one subscription
POLL_SECONDS: Final = 0.2
STATES: Final = ("waiting", "valid", "expiring", "expired")  # see `tamis.subscriptions.State`


def describe(subscription: Subscription) -> dict[str, Any]:
    """A subscription for programs."""
    from tamis.live.requests import describe as describe_row

    row = describe_row(subscription)
    return row | {"revision": subscription.revision}


@sub_group.command("list")
@folder_argument
@click.option("--tag", metavar="TAG", help="List only the subscriptions that have this tag.")
@click.option("--owner", metavar="NAME", help="List only the subscriptions of this owner.")
@click.option(
    "--text",
    metavar="TEXT",
    help="List only the subscriptions that have this text in their id or expression.",
)
@click.option(
    "--state",
    type=click.Choice(STATES),
    help="List only the subscriptions in this state; by default those that wait or are valid.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="List at most this number of subscriptions.",
)
@click.option(
    "--after", metavar="ID", help="List the subscriptions after this id: the next page of a list."
)
@store_option
@output_option
def list_command(  # noqa: PLR0913 - one parameter per option
    folder: str,
    tag: str | None,
    owner: str | None,
    text: str | None,
    state: str | None,
    limit: int,
    after: str | None,
    store: str | None,
    output: str,
) -> None:
    """List subscriptions of FOLDER, by id.

    Exit codes: 0 listed, even if there are none; 1 FOLDER cannot be read; 2 wrong usage.
    """
    with reading(folder, store) as opened:
        page = opened.list(after=after, owner=owner, tag=tag, text=text, state=state, limit=limit)
    if output == "json":
        for own in page.subscriptions:
            print_json(describe(own))
    elif page.subscriptions:
        headings = ["id", "expression", "owner", "tags", "valid until", "revision"]
        print_columns(make_console(), [headings, *map(_cells, page.subscriptions)])
    else:
        print_note("no subscription is listed")
    if page.cursor is not None:
        print_note(f"there are more; the next page: --after {printable(page.cursor)}")


def _cells(own: Subscription) -> list[str]:
    cells = [own.id, own.expression, own.owner, ", ".join(own.tags), _spell(own.valid_until)]
    return [printable(cell) for cell in cells] + [str(own.revision)]


def _spell(moment: datetime | None) -> str:
    return "" if moment is None else moment.replace(tzinfo=None).isoformat(sep=" ")


@sub_group.command("show")
@folder_argument
@click.argument("subscription_id", metavar="ID")
@store_option
@output_option
def show_command(folder: str, subscription_id: str, store: str | None, output: str) -> None:
    """Show the subscription ID and its last changes, the newest first.

    A subscription that was removed, or whose lease has ended, is shown by its changes.

    Exit codes: 0 shown; 1 the log has no such id, or FOLDER cannot be read; 2 wrong usage.
    """
    with reading(folder, store) as opened:
        history = opened.history(subscription_id, limit=SHOWN_CHANGES)
        current = opened.get(subscription_id)
    if not history:
        raise InputError(
            f'there is no subscription "{subscription_id}" in {folder}',
            hint=f"tamis sub list {folder} shows the subscriptions",
        )
    if output == "json":
        own = None if current is None else describe(current)
        changes = [_describe_change(change) for change in history]
        print_json({"subscription": own, "changes": changes})
        return
    console = make_console()
    shown = {} if current is None else describe(current)
    rows = [[name, printable(_spell_value(value))] for name, value in shown.items()]
    print_columns(console, rows or [["subscription_id", f"{printable(subscription_id)} (ended)"]])
    console.print()
    print_columns(console, [HEADINGS, *map(_change_cells, history)])


def _spell_value(value: Any) -> str:
    return value if isinstance(value, str) else spell_json(value)


@sub_group.command("export")
@folder_argument
@click.option(
    "-o",
    "--to",
    "target",
    metavar="FILE",
    default="-",
    help="Write the subscriptions to this file instead of standard output.",
)
@click.option(
    "--as-of",
    type=click.IntRange(min=0),
    help="Write the subscriptions as of this change, and not as of the last one.",
)
@store_option
def export_command(folder: str, target: str, as_of: int | None, store: str | None) -> None:
    """Write all subscriptions of FOLDER as JSON lines, which tamis sub import reads back.

    Subscriptions whose lease has ended are left out. Revisions are not written.

    Exit codes: 0 written; 1 FOLDER cannot be read; 2 wrong usage.
    """
    from tamis.live.requests import describe as describe_row

    status = StatusLine()
    with reading(folder, store) as opened, open_sink(target) as sink:
        for own in status.watch_reading(_held(opened, as_of)):
            sink.write(spell_json(describe_row(own)) + "\n")
    status.clear()


def _held(store: SubscriptionStore, as_of: int | None) -> Iterator[Subscription]:
    """The subscriptions as of a change whose lease has not ended."""
    now = store.moment
    for own in store.state_at(store.last_change if as_of is None else as_of):
        if own.valid_until is None or own.valid_until > now:
            yield own


HEADINGS: Final = ["change", "moment", "kind", "id", "expression"]


@sub_group.command("log")
@folder_argument
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="N",
    help="Print the changes after this number; by default all that the log has.",
)
@click.option(
    "--follow", is_flag=True, help="Wait for further changes, and print them as they come."
)
@store_option
@output_option
def log_command(
    folder: str, after: int | None, follow: bool, store: str | None, output: str
) -> None:
    """Print the changes of the subscriptions of FOLDER, in order.

    Ctrl-C ends --follow.

    Exit codes: 0 printed; 1 FOLDER cannot be read, or the log no longer has the changes after N;
    2 wrong usage.
    """
    is_empty = True
    with reading(folder, store) as opened, suppress(KeyboardInterrupt):
        for changes in _read_log(opened, after, follow=follow):
            if output == "json":
                for change in changes:
                    print_json(_describe_change(change))
            else:
                _print_changes(changes, with_headings=is_empty)
            is_empty = False
    if is_empty:
        print_note("there are no changes")


def _print_changes(changes: Sequence[Change], *, with_headings: bool) -> None:
    rows = [*([HEADINGS] if with_headings else []), *map(_change_cells, changes)]
    # All pages have the same columns, and are printed as they are read.
    padded = [[*map(str.ljust, row, _WIDTHS), *row[len(_WIDTHS) :]] for row in rows]
    print_columns(make_console(), padded)


_WIDTHS: Final = (6, 26, 11, 8)


def _read_log(
    store: SubscriptionStore, after: int | None, *, follow: bool
) -> Iterator[Sequence[Change]]:
    """Pages of the log; with `follow`, it waits for more."""
    epoch = store.epoch
    last = store.horizon if after is None else after
    while True:
        if changes := store.changes(after=last, epoch=epoch):
            last = changes[-1].number
            yield changes
        elif follow:
            time.sleep(POLL_SECONDS)
        else:
            return


def _describe_change(change: Change) -> dict[str, Any]:
    own = change.subscription
    return {
        "change": change.number,
        "kind": change.kind.value,
        "subscription_id": change.subscription_id,
        "moment": spell_moment(change.moment),
        "subscription": None if own is None else describe(own),
    }


def _change_cells(change: Change) -> list[str]:
    own = change.subscription
    text = "" if own is None else own.expression
    if own is not None and own.valid_until is not None:
        text += f"  (until {_spell(own.valid_until)})"
    cells = [str(change.number), _spell(change.moment), change.kind.value]
    return [*cells, printable(change.subscription_id), printable(text)]
