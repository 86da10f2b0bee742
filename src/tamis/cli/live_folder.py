"""How commands open a live index: to change it, or to read its store while another process has it
open.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tamis.cli.console import print_note
from tamis.cli.options import operators_option, output_option, schema_option
from tamis.cli.output import prepare_kernels
from tamis.errors import InputError, RefusedError, StoreInUseError
from tamis.logic.evaluate import Missing
from tamis.places import holds_subscriptions, is_live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.live import LiveIndex
    from tamis.subscriptions import SubscriptionStore

_Command = TypeVar("_Command", bound="Callable[..., Any]")

_IN_USE_HINT: Final = (
    "only one process can change a live index: end that process, or make the change there. "
    "tamis match and tamis sub list, show, export and log work meanwhile"
)
_NEXT: Final = {
    "exists": "to change it: tamis sub replace",
    "unknown": "tamis sub list shows the subscriptions",
    "expired": "to add it again: tamis sub add",
    "revision": "tamis sub show shows what changed; then pass its revision",
    "shorter": "to shorten it: tamis sub replace --valid-until",
}

folder_argument = click.argument("folder")

store_option = click.option(
    "--store",
    metavar="ADDRESS",
    help="Use the subscriptions in this PostgreSQL database, postgresql://user@host/database; by "
    "default the one that FOLDER names, or FOLDER itself.",
)

_missing_option = click.option(
    "--missing",
    type=click.Choice([str(known) for known in Missing]),
    help="Choose, when the live index is created, the result of a test on a missing attribute: "
    "undefined (the default), or false so that its negation is true.",
)


def changing_options(command: _Command) -> _Command:
    """How a live index is opened to be changed; see `changing`."""
    for option in (output_option, _missing_option, operators_option, schema_option, store_option):
        command = option(command)
    return command


@contextmanager
def changing(
    folder: str, options: dict[str, Any], *, is_created: bool = False
) -> Iterator[LiveIndex]:
    """The live index in a folder, open for changes; a new one if it may be created."""
    is_new = _expect_live(folder, is_created=is_created)
    prepare_kernels(building=True)
    from tamis.live import LiveIndex

    try:
        live = LiveIndex.open(folder, **options)
    except StoreInUseError as error:
        raise StoreInUseError(error.message, hint=_IN_USE_HINT) from None
    if is_new:
        print_note(f"a new live index was created in {folder}")
    try:
        yield live
        live.tidy()  # a command is too short for what is done in the background
    except RefusedError as error:
        raise InputError(error.message, hint=_NEXT.get(error.reason)) from None
    finally:
        live.close(saves_few=False)


@contextmanager
def reading(folder: str, store: str | None) -> Iterator[SubscriptionStore]:
    """The store of a live index, which another process may have open."""
    if store is None:
        _expect_live(folder)
    from tamis.live.opening import find_store
    from tamis.subscriptions import SubscriptionStore

    with SubscriptionStore.open(find_store(Path(folder), store), read_only=True) as opened:
        yield opened


def _expect_live(folder: str, *, is_created: bool = False) -> bool:
    """Whether the live index is new; raises an `InputError` if it may not be created."""
    if is_live(folder) or holds_subscriptions(folder):
        return False
    if Path(folder).is_file():
        raise InputError(f"{folder} is a file; a live index is a folder")
    if not is_created:
        raise InputError(
            f"there is no live index in {folder}",
            hint=f"create it: tamis sub add {folder} ID EXPRESSION, or tamis sub import "
            f"{folder} FILE",
        )
    return True
