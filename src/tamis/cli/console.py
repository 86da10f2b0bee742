"""Output for people: colours on a terminal, carets, a status line for long work."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tamis.errors import ExpressionError, RejectWarning, TamisWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console
    from rich.text import Text

    from tamis.operators.faults import Fault
    from tamis.validate import Problem

_Item = TypeVar("_Item")

STYLES: Final = {"error": "bold red", "warning": "yellow"}
STATUS_AFTER_SECONDS = 1.0
SHOWN_IDS: Final = 5
STATUS_EVERY_SECONDS = 0.1
LOG_EVERY_SECONDS = 30.0
BAR_WIDTH = 24


# Rich is imported only where it prints something: most runs of `match` print only data.


@cache
def _console_class() -> type[Console]:
    from rich.console import Console

    class OwnConsole(Console):
        """A console that raises an error for a closed pipe, as printing does."""

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - the error that rich is handling

    return OwnConsole


def make_console(*, stderr: bool = False) -> Console:
    """A console that prints text unchanged; rich itself respects NO_COLOR and pipes."""
    return _console_class()(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
    )


def printable(text: str) -> str:
    """The text on one line, without control characters."""
    return "".join(c if c.isprintable() else " " if c in "\t\n" else "�" for c in text)


def print_error(message: str) -> None:
    """Print an error message to stderr, in the form that all commands use."""
    from rich.text import Text

    lines = [printable(line) for line in message.split("\n")]
    make_console(stderr=True).print(Text.assemble(("error: ", STYLES["error"]), "\n".join(lines)))


def print_columns(console: Console, rows: Iterable[Iterable[str | Text]], gap: int = 2) -> None:
    """The rows with aligned cells; the last column is not padded."""
    from rich.text import Text

    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        line = Text()
        for cell, width in zip(row[:-1], widths, strict=False):
            line.append_text(cell).append(" " * (width - len(cell) + gap))
        console.print(line.append_text(row[-1]))


def print_note(message: str) -> None:
    """Print a note to stderr, apart from the output."""
    from rich.text import Text

    make_console(stderr=True).print(Text.assemble(("note: ", "yellow"), printable(message)))


@contextmanager
def noting_warnings() -> Iterator[None]:
    """Print our warnings as notes, without a line of Python, whatever filters are set."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", TamisWarning)
        warnings.simplefilter("ignore", RejectWarning)  # each command lists its own
        show = warnings.showwarning

        def note(message: Any, category: type[Warning], *rest: Any, **options: Any) -> None:
            if issubclass(category, TamisWarning):
                print_note(str(message))
            else:
                show(message, category, *rest, **options)

        warnings.showwarning = note
        yield


def describe_problem(problem: Problem, place: str = "") -> Text:
    """The problem with its caret picture; `place` is the place of the expression."""
    from rich.text import Text

    reason = problem.reason
    severity = str(problem.severity)
    subject = []
    if isinstance(reason, ExpressionError):
        if reason.subscription_id is not None:
            subject.append(f'subscription "{printable(reason.subscription_id)}"')
        subject.append(f"{reason.line}:{reason.column}")
    message = f"{', '.join(subject)}: {reason.message}" if subject else reason.message
    text = Text.assemble(
        f"{place}: " if place else "",
        (severity, STYLES[severity]),
        f": {printable(message)} ",
        (f"[{reason.code}]", "dim"),
    )
    if isinstance(reason, ExpressionError) and reason.text is not None:
        line, _, carets = reason.picture().rpartition("\n")
        text.append(f"\n{line}\n").append(carets, STYLES[severity])
    if reason.hint is not None:
        text.append(f"\n  hint: {printable(reason.hint)}")
    return text


def draw_bar(count: int, total: int) -> str:
    """The progress of a known amount of work."""
    filled = "#" * (BAR_WIDTH * count // max(1, total))
    return f"[{filled:<{BAR_WIDTH}}] {count:,} of {total:,}"


class StatusLine:
    """A status line on stderr for long work.

    If stderr is not a terminal there is none; with `log_every`, the line of one long call is
    printed every so many seconds, for a log.
    """

    def __init__(self, log_every: float | None = None) -> None:
        self.log_every = log_every
        self.total: int | None = None  # known once all has been read
        self.is_shown = False
        self.is_terminal = sys.stderr.isatty()
        self.latest = time.monotonic() + STATUS_AFTER_SECONDS

    def watch_reading(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items, counted as they are read."""
        count = 0
        for count, item in enumerate(items, start=1):
            self.refresh(f"read {count:,}")
            yield item
        self.total = count

    def watch_checking(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items, counted as their work is done."""
        for count, item in enumerate(items, start=1):
            if self.total:
                self.refresh(f"checked {draw_bar(count, self.total)}")
            else:
                self.refresh(f"checked {count:,}")
            yield item

    @contextmanager
    def ticking(self, describe: Callable[[float], str]) -> Iterator[None]:
        """Redraw the line repeatedly while one long call runs; `describe` gets the seconds so far.

        An empty text leaves the line to others.
        """
        interval = STATUS_EVERY_SECONDS if self.is_terminal else self.log_every
        if interval is None:
            yield
            return
        begun, is_done = time.monotonic(), Event()
        show = self.refresh if self.is_terminal else _log

        def tick() -> None:
            while not is_done.wait(interval):
                if line := describe(time.monotonic() - begun):
                    show(line)

        ticker = Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            is_done.set()
            ticker.join()
            self.clear()

    def refresh(self, line: str) -> None:
        """Redraw the line, unless it was drawn very recently."""
        now = time.monotonic()
        if self.is_terminal and now >= self.latest:
            self.latest = now + STATUS_EVERY_SECONDS
            self.is_shown = True
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)  # noqa: T201

    def clear(self) -> None:
        """Clear the line for other output."""
        if self.is_shown:
            self.is_shown = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # noqa: T201


def _log(line: str) -> None:
    print(f"progress: {line}", file=sys.stderr, flush=True)  # noqa: T201


def describe_fault(fault: Fault) -> str:
    """A sentence about calls without an answer, and the affected subscriptions."""
    ids = list(fault.subscription_ids)
    shown = ", ".join(ids[:SHOWN_IDS]) + (", …" if len(ids) > SHOWN_IDS else "")
    n = fault.n_events
    affected = f"{fault.call or 'search'} is undefined for {n:,} event{'s' * (n != 1)} "
    return f"{affected}({fault.kind}: {fault.message}), of subscriptions {shown}"
