"""Names the subscription that fixed the type of an attribute, for those that contradict it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.index.build import collect_votes
from tamis.index.deciders import DECLARE, find_path
from tamis.index.uses import count_uses, find_user_bits
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.errors import ExpressionError
    from tamis.index.build import Built
    from tamis.index.contents import Contents
    from tamis.language.limits import Limits
    from tamis.language.schema import Path
    from tamis.live.live_set import LiveSet
    from tamis.live.settings import ExpectedTypes

N_NAMED: Final = 3  # users of an attribute
N_SEARCHED: Final = 10_000  # subscriptions: more are in a part only if nothing remembers its types
_HIDDEN: Final = (
    "a subscription was added that you cannot see: it belongs to someone else, or it has ended"
)


def name_deciders(
    built: Built, deciders: Mapping[Path, str], expected: ExpectedTypes, limits: Limits
) -> None:
    """Add to the hint of each reject of a wrong type why the attribute has its type."""
    schema = built.contents.schema
    for reject in built.rejects:
        if reject.code != "type-mismatch":
            continue
        path = find_path(reject, schema, limits)
        if path is None:
            continue
        if expected.schema.get(path) is not None:
            why = f"{print_path(path)} is {schema.get(path)} in {expected.origin}"
            reject.hint = f"{reject.hint or DECLARE}; {why}"
        elif path in deciders:
            reject.decider = deciders[path]
            why = f"{print_path(path)} is {schema.get(path)} since {_name(reject.decider)}"
            reject.hint = f"{reject.hint or DECLARE}; {why}"


def find_deciders(contents: Contents, paths: Sequence[Path], limits: Limits) -> dict[Path, str]:
    """The first subscription of a part that uses each attribute, or at least names it."""
    uses = count_uses(contents, paths)
    found = {
        path: uses[path].subscription_id or _find_namer(contents, path, limits) for path in paths
    }
    return {path: name for path, name in found.items() if name is not None}


def _find_namer(contents: Contents, path: Path, limits: Limits) -> str | None:
    """The first subscription whose expression names an attribute that no test needs, among those
    that are searched in no time.
    """
    for at in range(min(len(contents.ids), N_SEARCHED)):
        text = contents.texts[at].as_py()
        if path[-1] in text and path in collect_votes([text], limits).elect():
            return str(contents.ids[at].as_py())
    return None


def name_users(errors: Iterable[ExpressionError], live_set: LiveSet) -> None:
    """Add to the hint of each error that names a decider how many subscriptions use the attribute
    now, and the first of them, if there are others than the decider.
    """
    settings = live_set.settings
    found: dict[Path, str] = {}
    for error in errors:
        path = find_path(error, settings.schema, settings.limits) if error.decider else None
        if path is None:
            continue
        if path not in found:
            found[path] = _describe_users(path, live_set)
        if found[path] != _list_users(1, [str(error.decider)]):
            error.users = found[path]
            error.hint = f"{error.hint}{error.users}"


def _describe_users(path: Path, live_set: LiveSet) -> str:
    n_users, first = 0, []
    for part in live_set.parts:
        is_user = find_user_bits(part.contents, [path]) & np.uint64(1) > 0
        if part.is_hidden is not None:
            is_user &= ~part.is_hidden
        ordinals = np.flatnonzero(is_user)
        n_users += len(ordinals)
        first += [str(part.contents.ids[own].as_py()) for own in ordinals[:N_NAMED].tolist()]
    return _list_users(n_users, first[:N_NAMED])


def _list_users(n_users: int, first: list[str]) -> str:
    noun = "subscription uses" if n_users == 1 else "subscriptions use"
    names = ", ".join(f'"{name}"' for name in first)
    more = ", …" if n_users > len(first) else ""
    return f"; now {n_users:,} {noun} it{': ' if names else ''}{names}{more}"


def hide_users(error: ExpressionError) -> None:
    """Leave out the subscriptions that use the attribute: whoever reads the error may not see
    them.
    """
    if error.hint is not None:
        error.hint, error.users = error.hint.removesuffix(error.users), ""


def hide_decider(error: ExpressionError) -> None:
    """Keep the type in the hint, but not the subscription that fixed it: whoever reads the error
    may not see it.
    """
    hide_users(error)
    if error.decider is not None and error.hint is not None:
        error.hint = error.hint.removesuffix(_name(error.decider)) + _HIDDEN
        error.decider = None


def _name(decider: str) -> str:
    return f'subscription "{decider}" was added'
