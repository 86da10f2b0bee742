"""`tamis explain`: why a subscription of an index matches an event, or why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

import tamis
from tamis.cli.arguments import refuse_swapped
from tamis.cli.console import make_console, print_note, printable
from tamis.cli.options import (
    at_option,
    open_source,
    opening_options,
    operators_option,
    output_option,
)
from tamis.cli.output import print_json
from tamis.events.json_texts import parse_event
from tamis.events.repeated_keys import check_keys, describe_repeated

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

    from tamis.match.explain import Explanation

MARK_STYLES: Final = {"✓": "green", "✗": "red", "?": "yellow"}


@click.command("explain")
@click.argument("index_path", metavar="INDEX")
@click.argument("subscription_id")
@click.option(
    "--event",
    metavar="JSON",
    required=True,
    help="Explain the answer for this event; '-' reads it from standard input.",
)
@at_option
@operators_option
@opening_options
@output_option
def explain_command(  # noqa: PLR0913 - one parameter per option
    index_path: str,
    subscription_id: str,
    event: str,
    at: datetime | None,
    trusted: bool,
    key: bytes | None,
    version: str | None,
    output: str,
) -> None:
    """Explain why SUBSCRIPTION_ID of INDEX matches an event, or why not.

    Shows the expression as a tree with what each part is for the event: ✓ true, ✗ false,
    ? undefined. If it does not match, also shows the fewest tests that would have to be true.

    Exit codes: 0 explained, whatever the answer; 1 no such index or subscription, or the event
    cannot be read; 2 wrong usage.
    """
    refuse_swapped(index_path, subscription_id)
    source = open_source(event) if event == "-" else event
    text = source if isinstance(source, str) else source.read()
    parsed = parse_event(text)
    if (repeated := check_keys(text, parsed)) is not None:
        print_note(describe_repeated(repeated))
    index = tamis.open(index_path, version=version, trusted=trusted, key=key)
    explanation = index.explain(subscription_id, parsed, at=at)
    if output == "json":
        print_json(explanation.to_dict())
    else:
        print_explanation(make_console(), explanation)


def print_explanation(console: Console, explanation: Explanation) -> None:
    """The sentence, the tree, and the tests that would have to change."""
    sentence, *tree = str(explanation).split("\n")
    console.print(Text(printable(sentence), "bold"))
    for line in tree:
        console.print(_colour(printable(line)))
    if explanation.changes:
        console.print("\nIt would match if:")
        for change in explanation.changes:
            console.print(f"  {printable(change)}")


def _colour(line: str) -> Text:
    """A line of the tree with its mark coloured; the mark follows the branches."""
    place = len(line) - len(line.lstrip(" │├└"))
    text = Text(line)
    text.stylize(MARK_STYLES.get(line[place : place + 1], ""), place, place + 1)
    return text
