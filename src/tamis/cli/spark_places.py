"""Where tables are written: `{date}` and `{version}` in paths, and tables that a pipeline may
replace.

A pipeline (`tamis spark run`) puts an empty file into every table it writes. The name of the file
identifies the step, its input and the date: so a second run for the same date replaces its own
tables and nothing else, including tables that a killed run left unfinished.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import InputError

if TYPE_CHECKING:
    import click

PIPELINE: Final = "is_pipeline"
DATE: Final = "{date}"
VERSION: Final = "{version}"
OUTPUTS: Final = ("output", "rejects")
_NAMED: Final = re.compile(r"\{[^{}]*\}")
# Spark's names of the files of a table, and their checksums; and the mark of a pipeline.
_OF_A_TABLE: Final = re.compile(
    r"part-\d{5,}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[-.\w]*"
    r"|\.part-\d{5,}-[-.\w]*\.crc|_SUCCESS|\._SUCCESS\.crc|_temporary|\.spark-staging-[-\w]*"
    r"|_tamis-\d{4}-\d\d-\d\d-[a-z-]+-[0-9a-f]{16}"
)


# ── names in paths ──────────────────────────────────────────────────────────────────────────


def read_date(text: str | None) -> str:
    """The date that paths name; today in UTC if none is given."""
    if text is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f'--date is "{text}"; write YYYY-MM-DD, as 2026-01-31') from None


def fill_date(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The value with the date filled in."""
    return None if value is None else value.replace(DATE, context.obj["date"])


def fill_output(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """The path of a table with the date filled in; `{version}` is filled in when it is known."""
    wrong = [name for name in _NAMED.findall(value or "") if name not in (DATE, VERSION)]
    if wrong:
        raise InputError(f"--{parameter.name} has {wrong[0]}; allowed: {DATE}, {VERSION}")
    return fill_date(context, parameter, value)


def fixed_output(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """The path of a stream's tables, which must stay the same."""
    if value and (DATE in value or VERSION in value):
        raise InputError(
            f"--{parameter.name} is {value}; a stream has one place, for all dates and versions",
            hint="each batch has a folder below it, and each row names the version",
        )
    return value


# ── what may be written ─────────────────────────────────────────────────────────────────────


def expect_outputs(
    context: click.Context, options: dict[str, Any], version: str | None = None
) -> None:
    """Raise an error for paths where tables must not be written, before anything is computed.

    A path with `{version}` is checked when the version is known.
    """
    for name in OUTPUTS:
        path = options.get(name)
        if path is None or (VERSION in path) != (version is not None):
            continue
        options[name] = path.replace(VERSION, version or "")
        # The rejects of a build are always replaced: they are those of the newest version.
        overwrite = options.get("overwrite", True)
        expect_free(options[name], overwrite=overwrite, mark=mark_of(context))


def expect_free(path: str, *, overwrite: bool, mark: str | None = None) -> None:
    """Raise an error for a path where a table must not be written; the run's own table may be."""
    from tamis.versions.storage import Storage

    found = [stored.name for stored in Storage(path).list()]
    if found and not overwrite and mark not in found:
        raise InputError(
            f"{path} exists",
            hint="name another one, or say --overwrite"
            if mark is None
            else f"write {DATE} or {VERSION} in its name, or set overwrite = true",
        )
    if not all(map(_OF_A_TABLE.fullmatch, found)):
        # For example an index, or a folder of events.
        raise InputError(
            f"{path} exists and is not a table: it is not overwritten", hint="name another one"
        )


def mark_of(context: click.Context) -> str | None:
    """The name of the file that marks a pipeline's tables; None outside a pipeline."""
    if not context.obj.get(PIPELINE):
        return None
    options = context.params
    source = [options.get(name) for name in ("index", "subscriptions", "events")]
    digest = hashlib.sha256(json.dumps(source).encode()).hexdigest()[:16]
    return f"_tamis-{context.obj['date']}-{context.info_name}-{digest}"
