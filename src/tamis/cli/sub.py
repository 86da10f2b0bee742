"""`tamis sub`: adds, replaces, renews and removes subscriptions of a live index."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tamis.cli.console import make_console, print_error, printable
from tamis.cli.live_folder import changing, changing_options, folder_argument
from tamis.cli.output import print_json
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.live import LiveIndex

_Command = TypeVar("_Command", bound="Callable[..., Any]")

DONE: Final = {
    "subscribe": "added",
    "replace": "replaced",
    "renew": "renewed",
    "unsubscribe": "removed",
}


@click.group("sub")
def sub_group() -> None:
    """Change and read the subscriptions of a live index.

    FOLDER holds the live index. Only one process can change it at a time; list, show, export and
    log work while another process has it open.
    """


def _read_attributes(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any] | None:
    """Attributes as NAME=VALUE; a value that is JSON is read as JSON."""
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{one!r} is not NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found if given else None


def _read_end(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> str | bool | None:
    """A moment; None for `none`, and False if the option is missing."""
    return False if given is None else None if given == "none" else given


def detail_options(command: _Command) -> _Command:
    """What a subscription has besides its id and its expression; see `_details`."""
    options = (
        click.option("--owner", metavar="NAME", help="Set the owner of the subscription."),
        click.option(
            "--tag",
            "tags",
            metavar="TAG",
            multiple=True,
            help="Set a tag of the subscription. The option can be repeated; '' sets no tags.",
        ),
        click.option(
            "--attribute",
            "attributes",
            metavar="NAME=VALUE",
            multiple=True,
            callback=_read_attributes,
            help="Set an attribute of the subscription, such as title=News; a value that is JSON "
            "is read as JSON. The option can be repeated.",
        ),
        click.option(
            "--valid-from",
            metavar="MOMENT",
            callback=_read_end,
            help="Set the start of its validity, such as 2030-01-31T12:00:00 (UTC).",
        ),
        click.option(
            "--valid-until",
            metavar="MOMENT",
            callback=_read_end,
            help="Set the end of its validity; such a subscription is a lease. 'none' removes the "
            "end.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


revision_option = click.option(
    "--if-revision",
    type=click.IntRange(min=1),
    help="Refuse the change unless the subscription still has this revision.",
)


def _details(
    owner: str | None,
    tags: tuple[str, ...],
    attributes: dict[str, Any] | None,
    valid_from: str | bool | None,
    valid_until: str | bool | None,
) -> dict[str, Any]:
    """The given details, as keywords of `LiveIndex.add` and `LiveIndex.replace`."""
    found: dict[str, Any] = {} if owner is None else {"owner": owner}
    if tags:
        found["tags"] = [tag for tag in tags if tag]
    if attributes is not None:
        found["attributes"] = attributes
    limits = {"valid_from": valid_from, "valid_until": valid_until}
    return found | {name: given for name, given in limits.items() if given is not False}


_DETAILS: Final = ("owner", "tags", "attributes", "valid_from", "valid_until")


def split_details(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Details of the subscription, options of the live index, and the form of the output."""
    output = options.pop("output")
    details = _details(*(options.pop(name) for name in _DETAILS))
    return details, options, output


@sub_group.command("add")
@folder_argument
@click.argument("subscription_id", metavar="ID")
@click.argument("expression")
@detail_options
@changing_options
def add_command(folder: str, subscription_id: str, expression: str, **options: Any) -> None:
    """Add the subscription ID with EXPRESSION; creates the live index if there is none.

    Exit codes: 0 added; 1 the expression is wrong, the id exists, or FOLDER cannot be used;
    2 wrong usage.
    """
    details, opening, output = split_details(options)
    with changing(folder, opening, is_created=True) as live:
        number = live.add(subscription_id, expression, **details)
        _report("subscribe", subscription_id, number, output)


@sub_group.command("replace")
@folder_argument
@click.argument("subscription_id", metavar="ID")
@click.argument("expression", required=False)
@detail_options
@revision_option
@changing_options
def replace_command(
    folder: str,
    subscription_id: str,
    expression: str | None,
    if_revision: int | None,
    **options: Any,
) -> None:
    """Replace the expression or details of the subscription ID; what is not given stays.

    Given tags replace all tags, and given attributes all attributes.

    Exit codes: 0 replaced; 1 the expression is wrong, there is no such subscription, or FOLDER
    cannot be used; 2 wrong usage.
    """
    details, opening, output = split_details(options)
    if expression is None and not details:
        raise click.UsageError("give what to replace: EXPRESSION, or an option")
    if expression is not None:
        details["expression"] = expression
    with changing(folder, opening) as live:
        number = live.replace(subscription_id, **details, if_revision=if_revision)
        _report("replace", subscription_id, number, output)


@sub_group.command("renew")
@folder_argument
@click.argument("subscription_id", metavar="ID")
@click.argument("moment")
@revision_option
@changing_options
def renew_command(
    folder: str,
    subscription_id: str,
    moment: str,
    if_revision: int | None,
    output: str,
    **opening: Any,
) -> None:
    """Extend the lease of the subscription ID to MOMENT; 'none' removes its end.

    Exit codes: 0 renewed; 1 there is no such subscription, its lease has ended or ends later, or
    FOLDER cannot be used; 2 wrong usage.
    """
    until = None if moment == "none" else moment
    with changing(folder, opening) as live:
        number = live.renew(subscription_id, until, if_revision=if_revision)
        _report("renew", subscription_id, number, output)


@sub_group.command("remove")
@folder_argument
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@revision_option
@changing_options
def remove_command(
    folder: str, ids: tuple[str, ...], if_revision: int | None, output: str, **opening: Any
) -> None:
    """Remove subscriptions.

    Exit codes: 0 removed; 1 there is no such subscription, or FOLDER cannot be used; with several
    ids, the others are removed; 2 wrong usage.
    """
    if if_revision is not None and len(ids) > 1:
        raise click.UsageError("--if-revision is the revision of one subscription; name one id")
    with changing(folder, opening) as live:
        if len(ids) == 1:
            number = live.remove(ids[0], if_revision=if_revision)
            _report("unsubscribe", ids[0], number, output)
            return
        _remove_many(live, ids, output)


@sub_group.command("prune")
@folder_argument
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    required=True,
    help="How long the log is kept.",
)
@changing_options
def prune_command(folder: str, days: float, output: str, **opening: Any) -> None:
    """Delete entries of the log that only states older than some days need.

    Exit codes: 0 deleted, or none is that old; 1 FOLDER cannot be used; 2 wrong usage.
    """
    try:
        keep = timedelta(days=days)
    except OverflowError:
        keep = timedelta.max
    with changing(folder, opening) as live:
        n_deleted = live.prune(keep)
        if output == "json":
            print_json({"deleted": n_deleted, "horizon": live.store.horizon})
        else:
            make_console().print(
                f"deleted {n_deleted:,} entries; states from change {live.store.horizon:,} on can "
                "be rebuilt"
            )


def _remove_many(live: LiveIndex, ids: tuple[str, ...], output: str) -> None:
    from tamis.subscriptions import Accepted

    n_refused = 0
    for name, result in zip(ids, live.remove_many(ids), strict=True):
        if isinstance(result, Accepted):
            _report("unsubscribe", name, result.number, output)
        else:
            n_refused += 1
            print_error(result.message)
    if n_refused:
        raise InputError(f"{n_refused:,} of {len(ids):,} subscriptions were not removed")


def _report(kind: str, subscription_id: str, number: int, output: str) -> None:
    if output == "json":
        print_json({"kind": kind, "subscription_id": subscription_id, "change": number})
    else:
        make_console().print(f"{DONE[kind]} {printable(subscription_id)}: change {number:,}")
