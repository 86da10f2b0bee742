"""Options that several commands share."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

from tamis.errors import InputError
from tamis.input.compression import READ_ENDINGS
from tamis.input.formats import Format, list_titles
from tamis.input.rows import Columns
from tamis.input.schemas import read_definition_file, read_schema
from tamis.input.subscription_rows import read_subscriptions
from tamis.language.limits import DEFAULT_LIMITS, MAX_DEPTH, Limits
from tamis.language.moments import read_at
from tamis.logic.evaluate import Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.language.schema import Schema

_Command = TypeVar("_Command", bound="Callable[..., Any]")
_PREFIX: Final = "limit_"


def _to_schema(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Schema | None:
    return None if value is None else read_schema(value)


schema_option = click.option(
    "--schema",
    callback=_to_schema,
    metavar="DDL|FILE.json",
    help="Declare the types of the attributes: 'level BIGINT, tags ARRAY<STRING>', "
    "JSON, or a .json file. Without it they are inferred from the "
    "expressions.",
)


def _read_definitions(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> dict[str, str] | None:
    return None if value is None else read_definition_file(value)


definitions_option = click.option(
    "--definitions",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_read_definitions,
    metavar="FILE.toml|FILE.json",
    help="Named conditions that expressions refer to as @name: "
    'office_hours = "hour(ts) BETWEEN 8 AND 18".',
)

output_option = click.option(
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Print a table for people, or JSON lines for programs.",
)


def _load_operators(
    context: click.Context, parameter: click.Parameter, modules: tuple[str, ...]
) -> tuple[str, ...]:
    if modules:
        from tamis.operators.registry import REGISTRY

        # As `python -m` does: a module next to the files it is used with.
        sys.path.insert(0, "")
        REGISTRY.load(modules)
    return modules


operators_option = click.option(
    "--operators",
    callback=_load_operators,
    expose_value=False,
    is_eager=True,
    multiple=True,
    metavar="MODULE",
    help="Import a module that registers operators. The option can be repeated.",
)
# For jobs, whose workers must also import it.
job_operators_option = click.option(
    "--operators",
    callback=_load_operators,
    multiple=True,
    metavar="MODULE",
    help="Import a module that registers operators, here and on workers. The "
    "option can be repeated.",
)


def _read_key_file(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> bytes | None:
    if value is None:
        return None
    try:
        return Path(value).read_bytes().strip()
    except OSError as error:
        raise InputError(f"cannot read the key file {value}: {error.strerror or error}") from None


sign_option = click.option(
    "--sign",
    "signing_key",
    callback=_read_key_file,
    metavar="KEYFILE",
    help="Sign the index with the key in this file, which has 16 bytes or more.",
)


key_option = click.option(
    "--key",
    callback=_read_key_file,
    metavar="KEYFILE",
    help="Require that the index was signed with the key in this file.",
)


version_option = click.option(
    "--version",
    metavar="NAME",
    help="Open this version, such as v00000012, if INDEX holds versions; by default the newest.",
)


def opening_options(command: _Command) -> _Command:
    """How an index is opened; the keywords are those of `tamis.open`."""
    command = version_option(key_option(command))
    return click.option(
        "--untrusted",
        "trusted",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Check the whole structure of an index from an untrusted source first.",
    )(command)


def _to_moment(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> datetime | None:
    return None if value is None else read_at(value)


at_option = click.option(
    "--at",
    callback=_to_moment,
    metavar="MOMENT",
    help="Match the subscriptions that are valid at this moment (2030-01-31T12:00:00, in UTC) "
    "instead of now.",
)

missing_option = click.option(
    "--missing",
    type=click.Choice([str(known) for known in Missing]),
    default=str(Missing.UNDEFINED),
    show_default=True,
    help="Choose the result of a test on a missing attribute: undefined, or false so that its "
    "negation is true.",
)

processes_option = click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Share the work among this number of processes.",
)

format_option = click.option(
    "--format",
    "file_format",
    type=click.Choice([str(known) for known in Format]),
    help="Read the file in this format; by default its name decides, and '-' is jsonl.",
)


def list_formats(command: _Command) -> _Command:
    """Write the formats of files into the help of a command, where it has the fields `{formats}`
    and `{compressed}`."""
    names = {"formats": list_titles(), "compressed": ", ".join(READ_ENDINGS)}
    command.__doc__ = (command.__doc__ or "").format(**names)
    return command


def column_options(command: _Command) -> _Command:
    """The names of the columns of ids and expressions."""
    command = click.option(
        "--expression-column",
        metavar="NAME",
        default="expression",
        show_default=True,
        help="Take the expressions from this column.",
    )(command)
    return click.option(
        "--id-column",
        metavar="NAME",
        help="Take the ids from this column instead of subscription_id or id.",
    )(command)


def limit_options(command: _Command) -> _Command:
    """One option for each field of `Limits`; they are passed as keywords to `read_limits`."""
    for limit in reversed(fields(Limits)):
        highest = MAX_DEPTH if limit.name == "depth" else None
        command = click.option(
            f"--limit-{limit.name.replace('_', '-')}",
            f"{_PREFIX}{limit.name}",
            type=click.IntRange(min=1, max=highest),
            default=getattr(DEFAULT_LIMITS, limit.name),
            show_default=True,
            help=_LIMIT_HELP[limit.name],
        )(command)
    return command


_LIMIT_HELP: Final = {
    "text_length": "Reject expressions with more characters than this.",
    "depth": "Reject expressions whose parentheses, NOTs and calls are nested deeper than this.",
    "predicates": "Reject expressions with more predicates than this.",
    "in_list": "Reject expressions with more members than this in one IN list.",
    "regex_length": "Reject regular expressions with more characters than this.",
    "xor_operands": "Reject expressions with more operands than this in one XOR.",
}


def read_limits(options: dict[str, Any]) -> Limits:
    """The limits that the options give."""
    return Limits(**{name.removeprefix(_PREFIX): value for name, value in options.items()})


def read_rows(
    file: str, file_format: str | None, id_column: str | None, expression_column: str
) -> Iterator[SubscriptionRow]:
    """The subscriptions of a file, or of standard input for `-`."""
    columns = Columns(id_column, expression_column)
    return read_subscriptions(open_source(file), choose_format(file, file_format), columns)


def split_names(given: str) -> list[str]:
    """The names that an option lists, separated by commas."""
    return [name.strip() for name in given.split(",") if name.strip()]


def read_selection(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> list[str] | None:
    """The names that select subscriptions; `''`, often an unset variable, selects none."""
    names = None if given is None else split_names(given)
    if names == []:
        raise click.BadParameter("it names nothing; leave the option out to match all")
    return names


def choose_format(name: str, file_format: str | None) -> Format | None:
    """The requested format; None if the name determines it."""
    if file_format:
        return Format(file_format)
    return Format.JSONL if name == "-" else None


def open_source(name: str) -> str | IO[bytes]:
    """The file of that name, or standard input for `-`."""
    if name != "-":
        return name
    if sys.stdin is None:
        raise InputError("standard input is closed; '-' reads from it")
    return sys.stdin.buffer
