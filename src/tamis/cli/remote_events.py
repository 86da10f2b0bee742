"""`tamis remote publish`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from tamis.cli.arguments import expect_file
from tamis.cli.console import make_console, print_columns, print_error, print_note, printable
from tamis.cli.options import output_option
from tamis.cli.output import print_data, print_json
from tamis.cli.remote import access_options, connecting, open_packed, remote_group
from tamis.errors import InputError
from tamis.input.json_arrays import BrokenArrayError, is_array, read_elements
from tamis.input.sniffing import guess_lines, read_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tamis.client import Ignored, Published

SHOWN_REJECTS: Final = 10
BATCH_BYTES: Final = 4 << 20
BATCH_LINES: Final = 10_000


class _Batch(NamedTuple):
    """Some lines of a file."""

    text: bytes
    lines: list[int]  # their numbers in the file


@remote_group.command("publish")
@click.argument("file", default="-")
@click.option("--ids", is_flag=True, help="Print which subscriptions each event matched.")
@click.option(
    "--run",
    metavar="NAME",
    help="Name this run: if the same file is published again under this name, nothing is "
    "published twice.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if a line is rejected.")
@access_options
@output_option
def publish_command(  # noqa: PLR0913 - one parameter per option
    file: str,
    ids: bool,
    run: str | None,
    strict: bool,
    server: str | None,
    key_file: Path | None,
    output: str,
) -> None:
    """Publish the events in FILE, one JSON object per line or one array; '-' is standard input.

    Files that end in .gz or .zst are unpacked. Events are sent in batches, and each batch is on the
    server's disk before the next one is sent. A line that is not an event is rejected, and the
    others are published.

    Exit codes: 0 published, with or without rejected lines; 1 most lines were rejected, FILE or the
    server cannot be used or, with --strict, a line was rejected; 2 wrong usage.
    """
    expect_file(file, "events")
    totals = {"accepted": 0, "matched": 0, "matches": 0, "rejected": 0}
    with connecting(server, key_file) as client, open_packed(file) as (stream, name):
        head = _read_head(stream, name)
        try:
            for number, batch in enumerate(_read_batches(stream, head)):
                key = None if run is None else f"{run}-{number}"
                done = client.publish(batch.text, ids=ids, idempotency_key=key)
                _report(done, batch, output, n_shown=totals["rejected"])
                for counted in ("accepted", "matched", "matches"):
                    totals[counted] += getattr(done, counted) or 0
                totals["rejected"] += len(done.rejected)
        except BrokenArrayError as error:
            raise _refuse_rest(error, name, totals["accepted"]) from None
    if output != "json":
        stderr = make_console(stderr=True) if ids else make_console()
        print_columns(stderr, [list(totals), [f"{n:,}" for n in totals.values()]])
    if not totals["accepted"] and not totals["rejected"]:
        print_note(f"{name} has no events: nothing was published")
    is_mostly_bad = totals["rejected"] > totals["accepted"]
    if is_mostly_bad:
        _explain_rejects(head, name)
    if is_mostly_bad or (strict and totals["rejected"]):
        raise click.exceptions.Exit(1)


def _read_head(stream: Any, name: str) -> bytes:
    """The first bytes of the file; raises an `InputError` if they are not those of a text."""
    try:
        return read_head(stream, name, "JSON lines")
    except InputError as error:
        hint = "write one JSON object per line, compressed with gzip or Zstandard if you like"
        raise InputError(error.message, hint=hint) from None


def _refuse_rest(error: BrokenArrayError, name: str, n_published: int) -> InputError:
    """The error of an array that cannot be read from some line on."""
    before = f"{n_published:,} events before it were published" if n_published else ""
    return InputError(
        f"{name} is not a JSON array: line {error.line}: {error.message}",
        hint=before or "nothing was published",
    )


def _explain_rejects(head: bytes, name: str) -> None:
    guess = guess_lines(head, "convert it to JSON lines")
    what = guess or "one JSON object per line is expected, or one array of objects"
    print_error(f"most lines of {name} are not events: {what}")


def _read_batches(stream: Any, head: bytes) -> Iterator[_Batch]:
    texts: list[bytes] = []
    numbers: list[int] = []
    n_bytes = 0
    for number, text in _read_elements(stream) if is_array(head) else _read_lines(stream):
        texts.append(text)
        numbers.append(number)
        n_bytes += len(text)
        if n_bytes >= BATCH_BYTES or len(texts) == BATCH_LINES:
            yield _Batch(b"\n".join(texts), numbers)
            texts, numbers, n_bytes = [], [], 0
    if texts:
        yield _Batch(b"\n".join(texts), numbers)


def _read_lines(stream: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    for number, line in enumerate(stream, start=1):
        if line.strip():
            yield number, line.rstrip(b"\r\n")


def _read_elements(stream: Any) -> Iterator[tuple[int, bytes]]:
    """The elements of an array as lines, with the numbers of the lines where they begin."""
    for one in read_elements(stream):
        # A string of JSON has no line breaks: those of an element are only between its tokens.
        line = one.text.replace("\r", " ").replace("\n", " ")
        yield one.file_line, line.encode(errors="surrogateescape")


def _report(done: Published, batch: _Batch, output: str, n_shown: int) -> None:
    rejected = [
        {"line": batch.lines[own.row], "code": own.code, "message": own.message}
        for own in done.rejected
    ]
    if output == "json":
        shown = {name: getattr(done, name) for name in ("epoch", "first_event", "accepted")}
        shown |= {name: getattr(done, name) for name in ("change", "matched", "matches", "ids")}
        ignored = [_spell_ignored(own) for own in done.ignored]
        print_json(shown | {"rejected": rejected, "ignored_values": ignored, "notes": done.notes})
        return
    for own in rejected[: max(0, SHOWN_REJECTS - n_shown)]:
        print_error(f"line {own['line']}: {own['message']}")
    for one in done.ignored:
        print_note(one.describe())
    for note in done.notes:
        print_note(note)
    if done.ids is not None and done.first_event is not None:
        for event, names in enumerate(done.ids, start=done.first_event):
            print_data("\t".join([str(event), *map(printable, names)]) + "\n")


def _spell_ignored(own: Ignored) -> dict[str, Any]:
    return {
        "attribute": own.attribute,
        "count": own.n_values,
        "example": own.example,
        "message": own.message,
    }
