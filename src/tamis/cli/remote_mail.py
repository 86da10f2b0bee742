"""`tamis remote`: read, acknowledge and follow a mailbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli.console import make_console, print_note, printable
from tamis.cli.output import print_json
from tamis.cli.remote import access_options, connecting, remote_group, ticket_option
from tamis.language.moments import spell_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tamis.client import Client, Match

_Command = TypeVar("_Command", bound="Callable[..., Any]")


class _Box:
    """A mailbox: that of a subscription, or of a channel."""

    def __init__(
        self, client: Client, name: str, is_channel: bool, consumer: str, ticket: str | None
    ) -> None:
        self._client = client
        self._name = None if is_channel else name
        self._consumer = consumer
        self._options: dict[str, Any] = {"channel": name if is_channel else None, "ticket": ticket}

    def read(self, **options: Any) -> Any:
        return self._client.matches(self._name, **self._options, consumer=self._consumer, **options)

    def follow(self, after: str | None, consumer: str | None) -> Any:
        return self._client.stream(self._name, **self._options, after=after, consumer=consumer)

    def acknowledge(self, cursor: str) -> str:
        return self._client.acknowledge(
            self._name, cursor, **self._options, consumer=self._consumer
        )


def _mailbox_options(command: _Command) -> _Command:
    """Which mailbox, and as whom: arguments of `_Box`."""
    options = (
        click.argument("name", metavar="ID"),
        click.option(
            "--channel", "is_channel", is_flag=True, help="Read the channel that has this name."
        ),
        click.option(
            "--consumer",
            metavar="NAME",
            default="default",
            show_default=True,
            help="Read as this consumer, whose acknowledgements are stored.",
        ),
        ticket_option,
        access_options,
    )
    for option in reversed(options):
        command = option(command)
    return command


@remote_group.command("read")
@_mailbox_options
@click.option(
    "--after", metavar="CURSOR", help="Begin after this cursor, instead of what is acknowledged."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=100,
    show_default=True,
    help="Print at most this number of matches.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0, 60),
    default=0,
    metavar="SECONDS",
    help="Wait this number of seconds for the first match.",
)
@click.option(
    "--ack", "acknowledges", is_flag=True, help="Acknowledge the matches after they are printed."
)
def read_command(  # noqa: PLR0913 - one parameter per option
    name: str,
    is_channel: bool,
    consumer: str,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    after: str | None,
    limit: int,
    wait: float,
    acknowledges: bool,
) -> None:
    """Print the matches of the subscription ID that are not acknowledged, as JSON lines.

    Each line has the cursor after which to go on.

    Exit codes: 0 printed, even if there are none; 1 there is no such mailbox, or the server cannot
    be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        box = _Box(client, name, is_channel, consumer, ticket)
        reached = None
        for match in _read_pages(box, after, limit, wait):
            print_json(_to_json(match))
            reached = match.cursor
        if acknowledges and reached is not None:
            box.acknowledge(reached)


def _read_pages(box: _Box, after: str | None, limit: int, wait: float) -> Iterator[Match]:
    """At most so many matches. A page of a long history may be empty, although more follows."""
    lost: set[str] = set()
    end = time.monotonic() + wait
    while True:
        page = box.read(after=after, limit=limit, wait=wait)
        if page.missed is not None:
            missed = f"events {page.missed.first:,} to {page.missed.last:,}"
            print_note(f"{missed} were removed by retention before they were read")
        for own in page.lost_histories:
            if own.subscription not in lost:
                print_note(f"the history of {own.subscription} cannot be read: {own.reason}")
            lost.add(own.subscription)
        yield from page.matches
        after, limit = page.cursor, limit - len(page.matches)
        if page.is_complete or not limit:
            return
        # It is waited for the first match only.
        wait = 0 if page.matches else max(0.0, min(wait, end - time.monotonic()))


@remote_group.command("ack")
@_mailbox_options
@click.argument("cursor")
def ack_command(  # noqa: PLR0913 - one parameter per option
    name: str,
    is_channel: bool,
    consumer: str,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    cursor: str,
) -> None:
    """Acknowledge all matches of the subscription ID up to CURSOR.

    It prints where the consumer is then: an acknowledgement never moves back.

    Exit codes: 0 acknowledged; 1 the cursor is wrong, there is no such mailbox, or the server
    cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        reached = _Box(client, name, is_channel, consumer, ticket).acknowledge(cursor)
    make_console().print(printable(reached))


@remote_group.command("follow")
@_mailbox_options
@click.option("--after", metavar="CURSOR", help="Begin after this cursor; 0 is the first event.")
@click.option(
    "--count", "most", type=click.IntRange(min=1), help="End after this number of matches."
)
@click.option(
    "--ack", "acknowledges", is_flag=True, help="Acknowledge each match after it is printed."
)
def follow_command(  # noqa: PLR0913 - one parameter per option
    name: str,
    is_channel: bool,
    consumer: str,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    after: str | None,
    most: int | None,
    acknowledges: bool,
) -> None:
    """Print the matches of the subscription ID as they come, as JSON lines, until Ctrl-C.

    It begins with the next event; with --ack, after what the consumer has acknowledged. After a
    lost connection it goes on with the next match.

    Exit codes: 0 ended by Ctrl-C or --count; 1 there is no such mailbox, the right to it was lost,
    or the server cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        box = _Box(client, name, is_channel, consumer, ticket)
        try:
            found = box.follow(after, consumer if acknowledges else None)
            for number, match in enumerate(found, start=1):
                print_json(_to_json(match))
                if acknowledges:
                    box.acknowledge(match.cursor)
                if number == most:
                    return
        except KeyboardInterrupt:
            return


def _to_json(match: Match) -> dict[str, Any]:
    return {
        "cursor": match.cursor,
        "event": match.event,
        "moment": spell_moment(match.moment),
        "subscriptions": list(match.subscriptions),
        "content": match.content,
        **({} if match.similar_to is None else {"similar_to": match.similar_to}),
    }
