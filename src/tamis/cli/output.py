"""Output for programs: JSON lines to files, ids of any kind, large amounts."""

from __future__ import annotations

import json
import re
import secrets
import sys
from contextlib import contextmanager
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from tamis.cli.console import print_note
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# Characters that control a terminal or end a line for some readers, and lone surrogates, which
# cannot be written. JSON has this escape; in TSV it is ours.
UNSEEN: Final = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000))
}
# Marks a decimal until its quotes are removed. No text of others can have it.
_DECIMAL: Final = secrets.token_hex(16)


def spell_json(value: Any) -> str:
    """The value as JSON on one line that can be shown anywhere; decimals as they are written."""
    text = json.dumps(value, ensure_ascii=False, default=_mark_decimal).translate(UNSEEN)
    return re.sub(f'"{_DECIMAL}([^"]*)"', r"\1", text) if _DECIMAL in text else text


def _mark_decimal(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{_DECIMAL}{value}"
    raise TypeError(f"{type(value).__name__} is not JSON")


def print_json(value: Any) -> None:
    """The value as a line of standard output."""
    print_data(spell_json(value) + "\n")


def print_data(text: str) -> None:
    """Write the text to standard output at once, unchanged: `click.echo` removes what it takes for
    colours.
    """
    sys.stdout.write(text)
    sys.stdout.flush()


def write_lines(name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write the rows as JSON lines to a file or to standard output."""
    with open_sink(name) as sink:
        for row in rows:
            sink.write(spell_json(row) + "\n")


@contextmanager
def open_sink(name: str) -> Iterator[IO[str]]:
    """A text file to write to; standard output for `-`."""
    if name == "-":
        yield sys.stdout
        return
    try:
        sink = Path(name).open("w", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot write {name}: {error.strerror}") from None
    with sink:
        yield sink


def prepare_kernels(*, load: bool = False, building: bool = False) -> None:
    """Compile the kernels if this machine has not done so yet, and say so.

    With `load` they are loaded in any case, so that what follows can be timed. `building` looks at
    those that build an index as well.
    """
    if building:
        import_module("tamis.index.build")
    import_module("tamis.match.index")  # and with it every kernel that matching uses
    from tamis.kernels.cold import announce
    from tamis.match.warmup import warm_up

    if announce(print_note) or load:
        warm_up()
