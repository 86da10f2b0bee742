"""`tamis match --follow`: events that arrive one by one, and a set that changes between them."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final

import click

from tamis.cli.options import choose_format, open_source
from tamis.input.compression import codec_of_name
from tamis.input.formats import DELIMITERS, Format, detect_format
from tamis.input.growing import ArrivingLines, follow_file, follow_pipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import tamis

LINES: Final = (Format.JSONL, *DELIMITERS)  # formats whose rows are lines


def open_arriving(events: str, file_format: str | None) -> Any:
    """The events of a pipe or a growing file."""
    chosen = choose_format(events, file_format) or detect_format(events)
    if chosen not in LINES:
        allowed = ", ".join(LINES)
        raise click.UsageError(f"--follow reads lines ({allowed}); {events} is {chosen}")
    if events != "-":
        if codec_of_name(events) is not None:
            raise click.UsageError(f"--follow cannot read a compressed file such as {events}")
        return follow_file(events, has_header=chosen in DELIMITERS)
    source = open_source(events)
    descriptor = _find_pipe()
    return source if descriptor is None else follow_pipe(descriptor, "stdin")


def _find_pipe() -> int | None:
    """The descriptor of standard input, unless it is a file, which has an end."""
    try:
        descriptor = sys.stdin.fileno()
        return None if S_ISREG(os.fstat(descriptor).st_mode) else descriptor
    except (OSError, ValueError):
        return None


@contextmanager
def ending_at_interrupt(source: Any) -> Iterator[None]:
    """Ctrl-C ends the events, after those that are there already were answered."""
    if not isinstance(source, ArrivingLines):
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(*_: Any) -> None:
        source.stop()
        signal.signal(signal.SIGINT, before)  # the next one ends the program

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        source.stop()
        signal.signal(signal.SIGINT, before)


def watch_set(index: tamis.Index, show: Callable[[tamis.Index], None]) -> Callable[[], None]:
    """A function that calls `show` if a live set has changed since it was last called."""
    from tamis.live import Follower
    from tamis.match.index import Index

    if not isinstance(index, Follower):
        return lambda: None
    shown = index.view

    def look() -> None:
        nonlocal shown
        index.refresh()
        if index.view is not shown:
            shown = index.view
            show(Index.showing(shown))

    return look
