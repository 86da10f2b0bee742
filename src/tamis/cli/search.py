"""`tamis search`: what would an expression have matched?"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import orjson

from tamis.cli.console import make_console, print_columns, print_note, printable
from tamis.cli.options import output_option
from tamis.cli.output import print_data
from tamis.cli.server_access import KEY_VARIABLE, RemoteServer, find_running
from tamis.errors import ExpressionError, InputError
from tamis.language.moments import AGE_HINT, read_age, read_at, spell_moment

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEFORE: Final = 20  # characters that are shown before the first found word
_SHOWN: Final = 70  # and at most in all
_PAGE: Final = 100
# What expressions have and searches for words do not: comparisons, calls and strings.
_CONDITION: Final = re.compile(r"[<>=]|\w\(|(?<!\w)'")
_SEARCH_WORDS: Final = "to search for words, name the attributes to search: --in title --in body"


def _read_moment(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> datetime | None:
    """A moment, or an age."""
    if given is None:
        return None
    if (age := read_age(given)) is not None:
        try:
            return datetime.now(UTC) - age
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        return read_at(given)
    except InputError as error:
        raise click.BadParameter(f"{error.message}; {AGE_HINT}") from None


@click.command("search")
@click.argument("words", nargs=-1, metavar="[SERVER] QUERY")
@click.option(
    "--in",
    "attributes",
    metavar="ATTRIBUTE",
    multiple=True,
    help="QUERY is a search-box query over this attribute. The option can be repeated.",
)
@click.option(
    "--language",
    "languages",
    metavar="CODE",
    multiple=True,
    help="With --in: search texts in this language with its stems, such as de. Repeatable.",
)
@click.option(
    "--since", metavar="AGE|MOMENT", callback=_read_moment, help="Only events since then: 7d, 12h."
)
@click.option(
    "--until", metavar="AGE|MOMENT", callback=_read_moment, help="Only events before then."
)
@click.option(
    "--order",
    type=click.Choice(["newest", "relevance"]),
    default="newest",
    show_default=True,
    help="Which events come first.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Print at most this number of events.",
)
@click.option("--store", metavar="ADDRESS", help="The database of a server that does not run.")
@output_option
def search_command(  # noqa: PLR0913 - one parameter per option
    words: tuple[str, ...],
    attributes: tuple[str, ...],
    languages: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    order: str,
    limit: int,
    store: str | None,
    output: str,
) -> None:
    """Print the archived events that QUERY would have matched as a subscription.

    SERVER is the folder of a match server, by default the one that `tamis serve` uses, or the
    address of one; then the environment variable TAMIS_KEY must have a key that may read all
    events. QUERY is an expression, or with --in what people type into a search box.

    Exit codes: 0 searched, even if nothing was found; 1 QUERY or SERVER cannot be used; 2 wrong
    usage.
    """
    server, query = _split(words)
    is_about_words = not attributes and _CONDITION.search(query) is None
    if is_about_words:
        _expect_expression(query)
    asked: dict[str, Any] = {"order": order}
    asked |= {"query": query, "attributes": list(attributes)} if attributes else {}
    asked |= {} if attributes else {"expression": query}
    if languages and not attributes:
        raise click.UsageError(
            "--language belongs to a search-box query: name attributes with --in"
        )
    asked |= {"languages": list(languages)} if languages else {}
    for name, moment in (("since", since), ("until", until)):
        asked |= {} if moment is None else {name: spell_moment(moment)}
    hits, notes, is_more = _find(server, store, asked, limit)
    for note in notes:
        print_note(note)
    if output == "json":
        for hit in hits:
            print_data(f"{orjson.dumps(hit).decode()}\n")
    elif hits:
        rows = [[str(own["event"]), own["moment"][:16], printable(_show(own))] for own in hits]
        print_columns(make_console(), [["event", "moment", "found"], *rows])
    else:
        print_note("nothing was found")
    if output != "json" and not hits and is_about_words:
        print_note(f"words of an expression are Boolean attributes; {_SEARCH_WORDS}")
    if is_more:
        print_note(f"there are more than {limit:,}: raise --limit, or narrow the query")


def _split(words: tuple[str, ...]) -> tuple[str, str]:
    """The server and the query."""
    places = [own for own in words if _is_place(own)]
    if not words or list(words) == places[:1]:
        raise click.UsageError("Missing argument 'QUERY'.")
    if len(words) > 2:
        raise click.UsageError(f"{len(words)} arguments are given; write the query in quotes.")
    if places and list(words[1:]) == places:
        raise click.UsageError(
            f"{words[0]} is not a server, but {words[1]} seems to be one: the server comes first."
        )
    return (_find_default(), words[0]) if len(words) == 1 else (words[0], words[1])


def _is_place(word: str) -> bool:
    return word.startswith(("http://", "https://")) or Path(word).is_dir()


def _find_default() -> str:
    """The folder that `tamis serve` uses."""
    from tamis.server.settings_reading import environment, read_settings

    return str(read_settings(None, environment()).server.folder)


def _expect_expression(query: str) -> None:
    """Raise an `ExpressionError` if what looks like words is not an expression."""
    import tamis

    try:
        tamis.parse(query)
    except ExpressionError as error:
        error.hint = _SEARCH_WORDS
        raise


def _find(
    place: str, store: str | None, asked: dict[str, Any], limit: int
) -> tuple[list[dict[str, Any]], list[str], bool]:
    """The hits, notes about the query, and whether there are more."""
    if place.startswith(("http://", "https://")):
        running: RemoteServer | None = RemoteServer(place, os.environ.get(KEY_VARIABLE))
    else:
        running = find_running(Path(place))
    pages = _find_in_folder(Path(place), store, asked) if running is None else _ask(running, asked)
    hits: list[dict[str, Any]] = []
    notes: list[str] = []
    for page in pages:
        notes = page["notes"]
        hits += page["hits"]
        if len(hits) > limit or (len(hits) == limit and page["cursor"] is None):
            break
    return hits[:limit], notes, len(hits) > limit


def _ask(running: RemoteServer, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cursor = None
    while True:
        page = running.ask("POST", "/v1/search", asked | {"limit": _PAGE, "cursor": cursor})
        yield page
        if (cursor := page["cursor"]) is None:
            return


def _find_in_folder(
    folder: Path, store: str | None, asked: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The same from the files of a server that does not run."""
    from tamis.broker.following_server import FollowingServer
    from tamis.broker.match_server import MatchServerSettings
    from tamis.broker.searching import search_pages

    with FollowingServer.open(folder, MatchServerSettings(store=store)) as opened:
        yield from search_pages(opened.searcher, asked, _PAGE)


def _show(hit: dict[str, Any]) -> str:
    """The text around the first word that was found; without words, the event."""
    for name, spans in hit["highlights"].items():
        text: Any = hit["content"]
        for part in name.split("."):
            text = text.get(part) if isinstance(text, dict) else None
        if isinstance(text, str):
            begin = text.rfind(" ", 0, max(0, spans[0][0] - _BEFORE)) + 1  # of a word
            shown = " ".join(text[begin : begin + _SHOWN].split())
            return f"{'…' if begin else ''}{shown}{'…' if begin + _SHOWN < len(text) else ''}"
    whole = orjson.dumps(hit["content"]).decode()
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"
