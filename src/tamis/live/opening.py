"""Opens a live set: its settings, the newest version, and the changes since."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis import durable
from tamis.errors import IndexFormatError, InputError, StoreFormatError, warn
from tamis.index.build import build_contents
from tamis.index.text_columns import Columns
from tamis.index.uses import add_uses, count_uses, used_paths
from tamis.language.limits import NO_LIMITS
from tamis.language.names import parse_path, print_path
from tamis.language.schema import Schema
from tamis.live import checkpoints
from tamis.live.live_set import LivePart, LiveSet, empty_part, unreadable
from tamis.live.part_rows import list_rows
from tamis.live.settings import ExpectedTypes, Settings
from tamis.logic.evaluate import Missing
from tamis.places import LIVE, SUBSCRIPTIONS, holds_subscriptions, is_index, is_saved_index
from tamis.versions.log_position import LogPosition
from tamis.versions.manifest import checksum_of
from tamis.versions.store import IndexStore

if TYPE_CHECKING:
    import pathlib

    from tamis.language.limits import Limits
    from tamis.language.lookalikes import Use
    from tamis.language.schema import Path
    from tamis.language.signatures import Signature
    from tamis.subscriptions import SubscriptionStore

FORMAT: Final = "tamis-live"
FORMAT_VERSION: Final = 1
AT_ONCE: Final = 10_000  # changes of the log that are applied together
_RESTORE: Final = (
    "nothing is lost: restore it from a backup, or delete it and open the index with the schema "
    "and the mode of missing values that it had"
)


def find_store(folder: pathlib.Path, given: str | None) -> str | pathlib.Path:
    """The place of the subscriptions of the live index in a folder: the address that the caller
    passes, or the one that the folder names; by default the folder.
    """
    if folder.is_file():
        raise InputError(f"{folder} is a file; a folder for a live index is expected")
    body = _read(folder / LIVE)
    if body is None:
        is_apart = is_index(folder) and given is None and not holds_subscriptions(folder)
        if is_saved_index(folder) or is_apart:
            raise InputError(
                f"{folder} holds a saved index; a live index needs its own folder",
                hint="name another folder, and add the subscriptions there",
            )
        return given or folder
    named = body.get("store")
    if given is not None and named is None:
        raise InputError(
            f"the subscriptions of the live index in {folder} are in that folder, "
            "not in a database",
            hint="leave out the address of the database, or name another folder",
        )
    if named is None and not holds_subscriptions(folder):
        raise StoreFormatError(
            f"{folder / SUBSCRIPTIONS} is missing: it had the subscriptions of the live index",
            hint="restore it from a backup; to begin with none, name another folder",
        )
    return given or named or folder


def read_settings(  # noqa: PLR0913 - what is stored, and what is not
    folder: pathlib.Path,
    declared: Schema | None,
    missing: str | Missing | None,
    limits: Limits,
    operators: tuple[Signature, ...],
    *,
    database: str | None = None,
    is_created: bool = True,
) -> Settings:
    """The settings of the set in a folder; a new set gets those that the caller passes, if it may
    be created. `database` is the address of its subscriptions, if they are not in the folder.
    """
    if missing is not None and missing not in tuple(Missing):
        raise InputError(f"missing is {missing!r}; allowed: {', '.join(Missing)}")
    body = _read(folder / LIVE)
    if body is None and not is_created:
        raise InputError(
            f"there is no live index in {folder}", hint="create it: tamis.LiveIndex.open(folder)"
        )
    known = Missing(body["missing"]) if body else _find_missing(folder)
    known = known or Missing(missing or Missing.UNDEFINED)
    if missing is not None and known != missing:
        raise InputError(
            f"the set in {folder} was created with missing={known.value!r}, not {missing!r}",
            hint="leave it out, or create a set in another folder",
        )
    schema = None if not body or body["schema"] is None else Schema.of(body["schema"])
    address = None if database is None else database.replace(":***@", "@")  # without the password
    if body is None:
        _write(folder / LIVE, {"missing": known.value, "schema": None, "store": address})
    elif address is not None and address != body["store"]:
        warn(
            f"the subscriptions of the live index in {folder} were at {body['store']}; "
            f"those at {address} are used from now on"
        )
        # They may be others. If they are the same ones, saved versions have their types.
        body = {**body, "store": address, "inferred": None}
        _write(folder / LIVE, body)
    is_declared = schema is not None
    settings = Settings(schema or Schema({}), is_declared, known, limits, operators)
    return settings if body is None else _with_types(settings, body)


def read_types(folder: pathlib.Path, settings: Settings) -> Settings:
    """The settings with the types that the folder remembers by now."""
    return _with_types(settings, _read(folder / LIVE) or {})


def _with_types(settings: Settings, body: dict[str, Any]) -> Settings:
    expected, inferred = body.get("expected"), body.get("inferred")
    if expected is not None:
        types = ExpectedTypes(Schema.of(expected["types"]), expected["origin"])
        settings = replace(settings, expected=types)
    if inferred is not None:
        named = {parse_path(path): name for path, name in inferred["deciders"].items()}
        known = replace(settings, schema=Schema.of(inferred["types"]), deciders=named)
        settings = settings.with_types(known)
    return settings


def remember_types(folder: pathlib.Path, settings: Settings) -> None:
    """Store the types that subscriptions have fixed: those that need them stay readable when the
    subscriptions that fixed them are gone.
    """
    body = _read(folder / LIVE)
    if body is None or settings.is_declared or not settings.schema:
        return
    deciders = {print_path(path): name for path, name in settings.deciders.items()}
    inferred = {"types": settings.schema.to_json(), "deciders": deciders}
    if body.get("inferred") != inferred:
        _write(folder / LIVE, {**body, "inferred": inferred})


def write_expected(folder: pathlib.Path, expected: ExpectedTypes) -> None:
    """Store these types: later subscriptions are read with them after a restart too."""
    stored = {"types": expected.schema.to_json(), "origin": expected.origin}
    _write(folder / LIVE, {**(_read(folder / LIVE) or {}), "expected": stored})


def read_keep_log(folder: pathlib.Path, given: timedelta | None) -> timedelta | None:
    """How long the log is kept, which a caller may set; None for ever."""
    body = _read(folder / LIVE) or {}
    if given is not None:
        if not isinstance(given, timedelta) or given <= timedelta(0):
            raise InputError(
                f"keep_log is {given!r}; a timedelta greater than 0 is expected",
                hint="to keep everything: timedelta.max",
            )
        seconds = None if given == timedelta.max else given.total_seconds()
        if body.get("keep_log") != seconds:
            body = {**body, "keep_log": seconds}
            _write(folder / LIVE, body)
    seconds = body.get("keep_log")
    return None if seconds is None else timedelta(seconds=seconds)


def _find_missing(folder: pathlib.Path) -> Missing | None:
    """The mode of missing values of the newest version in a folder that has lost its settings;
    None if the folder has no version of a live set.
    """
    newest = IndexStore(folder).newest_whole()
    if newest is None or LogPosition.of(newest) is None:
        return None
    warn(
        f"{folder / LIVE} is missing; missing values are treated as in {newest.name}: "
        f"{newest.missing}. If the set had a declared schema, declare it again"
    )
    return Missing(newest.missing)


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    try:
        body: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise IndexFormatError(f"{path} cannot be read: {error}", hint=_RESTORE) from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise IndexFormatError(f"{path} does not describe a live index", hint=_RESTORE)
    if body.get("format_version") != FORMAT_VERSION:
        raise IndexFormatError(
            f"{path} has format version {body.get('format_version')}; this program reads "
            f"{FORMAT_VERSION}",
            hint=_RESTORE,
        )
    if body.get("checksum") != checksum_of(body):
        raise IndexFormatError(f"{path} is damaged: its checksum is wrong", hint=_RESTORE)
    return body


def _write(path: pathlib.Path, settings: dict[str, Any]) -> None:
    body = {"format": FORMAT, "format_version": FORMAT_VERSION, **settings}
    body["checksum"] = checksum_of(body)
    try:
        durable.make_directory(path.parent)
        durable.replace_file(path, [json.dumps(body, indent=1).encode()])
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}", hint="choose a writable folder"
        ) from None


def expect_one_history(folder: pathlib.Path, store: SubscriptionStore) -> None:
    """Begin a new epoch if a saved version includes changes that the store does not have: their
    numbers will be used again, and mean other changes then.
    """
    saved, last = checkpoints.find_saved_change(folder, store.epoch), store.last_change
    if saved > last:
        warn(
            f"the store at {store.where} ends at change {last}, and a saved version includes "
            f"change {saved}: an older copy of the store was restored. Saved versions are not "
            "used, and followers begin again"
        )
        store.renew_epoch()


class OpenedSet(NamedTuple):
    """A set, and the last change that its newest saved version includes."""

    live_set: LiveSet
    saved_change: int  # 0 if there is no version


def open_set(
    folder: pathlib.Path, store: SubscriptionStore, settings: Settings, declared: Schema | None
) -> OpenedSet:
    """The set as of the store's last change."""
    # What was accepted under other limits stays.
    unlimited = replace(settings, limits=NO_LIMITS)
    if declared is not None:  # for attributes whose types the folder does not remember
        unlimited = replace(unlimited, expected=ExpectedTypes(declared, "the declared schema"))
    loaded = checkpoints.load(folder, store, unlimited)
    live_set = loaded or _build_all(store, unlimited, store.last_change)
    while changes := store.changes(after=live_set.change, limit=AT_ONCE):
        live_set = live_set.apply(changes)
    known = replace(live_set.settings, limits=settings.limits, expected=settings.expected)
    if declared is not None and not (known.is_declared and declared == known.schema):
        known = known.declare(declared, _find_uses(live_set))
        _expect_readable(live_set, known)
        _write(folder / LIVE, {**(_read(folder / LIVE) or {}), "schema": declared.to_json()})
    # The newest part is sealed: to build it again would apply the limits to it.
    live_set = replace(live_set, settings=known, newest=None)
    return OpenedSet(live_set, 0 if loaded is None else loaded.change)


def open_as_of(
    folder: pathlib.Path, store: SubscriptionStore, settings: Settings, change: int
) -> LiveSet:
    """The set as of an earlier change; raises a `HistoryError` if that was pruned."""
    unlimited = replace(settings, limits=NO_LIMITS)
    live_set = checkpoints.load(folder, store, unlimited, before=change)
    live_set = live_set or _build_all(store, unlimited, change)
    while live_set.change < change:
        n_left = min(AT_ONCE, change - live_set.change)
        live_set = live_set.apply(store.changes(after=live_set.change, limit=n_left))
    return live_set


def _find_uses(live_set: LiveSet) -> dict[Path, Use]:
    """The attributes that subscriptions use."""
    parts = [part.contents for part in live_set.parts]
    return add_uses(count_uses(contents, used_paths(contents)) for contents in parts)


def _expect_readable(live_set: LiveSet, declared: Settings) -> None:
    """Raise an `InputError` if an expression contradicts the declared types in a test that no part
    needs, as in `a = 1 AND a = 2`.
    """
    for part in live_set.parts:
        rows = list_rows(part.contents, part.is_hidden)
        columns = Columns(rows["subscription_id"], rows["expression"])
        built = build_contents(
            columns, declared.schema, declared.missing, NO_LIMITS, operators=declared.operators
        )
        if built.rejects:
            first = built.rejects[0]
            raise InputError(
                f'subscription "{first.subscription_id}" contradicts the schema: {first.message}',
                hint="declare what the subscriptions use, or replace them first",
            )


def _build_all(store: SubscriptionStore, settings: Settings, change: int) -> LiveSet:
    """The set without a version, from the whole state of the store as of a change."""
    rows = list(store.state_at(change))
    if not rows:
        return LiveSet(change, settings, (empty_part(settings),))
    built = settings.build(rows)
    if built.rejects:
        raise unreadable(built.rejects)
    part = LivePart(built.contents, change)
    return LiveSet(change, settings.with_part(built.contents), (part,))
