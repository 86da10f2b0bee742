"""`tamis remote`: subscribe, replace, renew, unsubscribe, get and list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tamis.cli.console import make_console, print_columns, print_error, print_note, printable
from tamis.cli.options import output_option
from tamis.cli.output import print_data, print_json
from tamis.cli.remote import access_options, connecting, remote_group, ticket_option
from tamis.cli.sub import detail_options, revision_option, split_details
from tamis.errors import InputError
from tamis.language.moments import spell_moment, spell_second

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tamis.client import Subscription

_HEADINGS: Final = ("id", "revision", "owner", "tags", "valid until", "expression")
lease_option = click.option(
    "--lease",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Let the subscription be valid for this number of seconds from now.",
)


group_option = click.option(
    "--group-similar",
    metavar="AGE",
    help="For so long, such as 3d, let a match say to which earlier match it is similar.",
)


@remote_group.command("subscribe")
@click.argument("expression")
@click.option(
    "--id",
    "subscription_id",
    metavar="ID",
    help="Give the subscription this id; by default the server makes one.",
)
@detail_options
@lease_option
@click.option(
    "--history",
    metavar="AGE|EVENT",
    help="Begin the mailbox with archived events: since an age such as 7d, or after this event.",
)
@group_option
@access_options
@output_option
def subscribe_command(  # noqa: PLR0913 - one parameter per option
    expression: str,
    subscription_id: str | None,
    lease: float | None,
    history: str | None,
    group_similar: str | None,
    server: str | None,
    key_file: Path | None,
    **options: Any,
) -> None:
    """Subscribe with EXPRESSION, and print the ticket. It is shown only now.

    Whoever has the ticket may replace, renew and end the subscription: keep it in a file that only
    you can read.

    Exit codes: 0 subscribed; 1 the expression is wrong, the id exists, or the server cannot be
    used; 2 wrong usage.
    """
    details, _, output = split_details(options)
    since = int(history) if history is not None and history.isdecimal() else history
    with connecting(server, key_file) as client:
        made = client.subscribe(
            expression,
            id=subscription_id,
            lease=lease,
            history=since,
            group_similar=group_similar,
            **details,
        )
    if output == "json":
        print_json(_to_json(made) | {"ticket": made.ticket, "notes": made.notes})
        return
    print_data(f"{made.ticket}\n")
    print_note(f"subscribed {made.id}{_spell_end(made)}; keep the ticket: it is not shown again")
    for note in made.notes:
        print_note(note)


@remote_group.command("replace")
@click.argument("subscription_id", metavar="ID")
@click.argument("expression", required=False)
@detail_options
@group_option
@revision_option
@ticket_option
@access_options
@output_option
def replace_command(  # noqa: PLR0913 - one parameter per option
    subscription_id: str,
    expression: str | None,
    group_similar: str | None,
    if_revision: int | None,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    **options: Any,
) -> None:
    """Replace the expression or details of the subscription ID; what is not given stays.
    With --group-similar none, similar matches are no longer grouped.

    It needs the ticket of the subscription, or the key of an admin.

    Exit codes: 0 replaced; 1 the expression is wrong, there is no such subscription, the ticket is
    wrong, or the server cannot be used; 2 wrong usage.
    """
    details, _, output = split_details(options)
    if expression is not None:
        details["expression"] = expression
    if group_similar is not None:
        details["group_similar"] = None if group_similar == "none" else group_similar
    if not details:
        raise click.UsageError("give what to replace: EXPRESSION, or an option")
    if "owner" in details:
        raise click.UsageError("the owner of a subscription cannot be replaced")
    with connecting(server, key_file) as client:
        changed = client.replace(subscription_id, ticket=ticket, if_revision=if_revision, **details)
    _report("replaced", changed, output)


@remote_group.command("renew")
@click.argument("subscription_id", metavar="ID")
@click.argument("moment", required=False)
@lease_option
@ticket_option
@access_options
@output_option
def renew_command(  # noqa: PLR0913 - one parameter per option
    subscription_id: str,
    moment: str | None,
    lease: float | None,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    output: str,
) -> None:
    """Extend the lease of the subscription ID to MOMENT; by default for the server's default.

    It needs the ticket of the subscription, or the key of an admin.

    Exit codes: 0 renewed; 1 there is no such subscription, its lease ends later, the ticket is
    wrong, or the server cannot be used; 2 wrong usage.
    """
    if moment is not None and lease is not None:
        raise click.UsageError("MOMENT and --lease are both given")
    with connecting(server, key_file) as client:
        changed = client.renew(subscription_id, moment, lease=lease, ticket=ticket)
    _report("renewed", changed, output)


@remote_group.command("unsubscribe")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@revision_option
@ticket_option
@access_options
@output_option
def unsubscribe_command(  # noqa: PLR0913 - one parameter per option
    ids: tuple[str, ...],
    if_revision: int | None,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    output: str,
) -> None:
    """End subscriptions. It needs the ticket of the subscription, or the key of an admin.

    Exit codes: 0 ended; 1 there is no such subscription, the ticket is wrong, or the server cannot
    be used; with several ids, the others are ended; 2 wrong usage.
    """
    from tamis.client import ServerError

    if if_revision is not None and len(ids) > 1:
        raise click.UsageError("--if-revision is the revision of one subscription; name one id")
    n_refused = 0
    with connecting(server, key_file) as client:
        for name in ids:
            try:
                client.unsubscribe(name, ticket=ticket, if_revision=if_revision)
            except ServerError as error:
                if len(ids) == 1:
                    raise
                n_refused += 1
                print_error(str(error))
                continue
            if output == "json":
                print_json({"id": name, "status": "ended"})
            else:
                make_console().print(f"ended {printable(name)}")
    if n_refused:
        raise InputError(f"{n_refused:,} of {len(ids):,} subscriptions were not ended")


@remote_group.command("get")
@click.argument("subscription_id", metavar="ID")
@ticket_option
@access_options
@output_option
def get_command(
    subscription_id: str,
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
    output: str,
) -> None:
    """Print the subscription ID.

    Exit codes: 0 printed; 1 there is none that you may see, or the server cannot be used; 2 wrong
    usage.
    """
    with connecting(server, key_file) as client:
        _print([client.get(subscription_id, ticket=ticket)], output)


@remote_group.command("list")
@click.option("--owner", metavar="NAME", help="List only the subscriptions of this owner.")
@click.option("--tag", metavar="TAG", help="List only subscriptions that have this tag.")
@click.option("--text", metavar="TEXT", help="List only subscriptions that contain this text.")
@click.option(
    "--state",
    type=click.Choice(["waiting", "valid", "expired"]),
    help="List only subscriptions in this state now.",
)
@access_options
@output_option
def list_command(
    server: str | None, key_file: Path | None, output: str, **filters: str | None
) -> None:
    """List your subscriptions, by id; with the key of an admin, all.

    Exit codes: 0 listed, even if there are none; 1 the server cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        _print(client.list(limit=1_000, **filters), output)


def _to_json(found: Subscription) -> dict[str, Any]:
    """A subscription as JSON values; without what only a new one has."""
    values = found._asdict()
    del values["ticket"], values["notes"]
    for name in ("valid_from", "valid_until"):
        values[name] = values[name] and spell_moment(values[name])
    return values | {"tags": list(found.tags)}


def _report(what: str, changed: Subscription, output: str) -> None:
    if output == "json":
        print_json(_to_json(changed))
        return
    revision = f"revision {changed.revision:,}{_spell_end(changed)}"
    make_console().print(f"{what} {printable(changed.id)}: {revision}")


def _print(found: Iterable[Subscription], output: str) -> None:
    if output == "json":
        for own in found:
            print_json(_to_json(own))
        return
    rows = [_list_cells(own) for own in found]
    if rows:
        print_columns(make_console(), [_HEADINGS, *rows])
    else:
        print_note("there are no subscriptions")


def _list_cells(found: Subscription) -> list[str]:
    until = "" if found.valid_until is None else spell_second(found.valid_until)
    texts = [found.id, f"{found.revision:,}", found.owner, ", ".join(found.tags), until]
    return [printable(text) for text in (*texts, found.expression)]


def _spell_end(found: Subscription) -> str:
    until = found.valid_until
    return "" if until is None else f", valid until {spell_second(until)}"
