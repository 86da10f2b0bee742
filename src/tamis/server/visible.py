"""Which subscriptions and events a caller may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import ExpressionError, RefusedError
from tamis.live.deciders import hide_decider, hide_users
from tamis.server.context import in_thread
from tamis.server.problems import Problem
from tamis.subscriptions import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.errors import TamisError
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext


async def keep_visible(
    context: ServerContext, caller: Caller, lists: Sequence[list[str]]
) -> list[list[str]]:
    """Lists of ids, without those of subscriptions that the caller may not see."""
    if caller.actor.is_admin:
        return list(lists)
    own = await _find_own(context, caller, {name for ids in lists for name in ids})
    return [[name for name in ids if name in own] for ids in lists]


async def expect_visible(context: ServerContext, caller: Caller, ids: Iterable[str]) -> None:
    """Raise a `Problem` for an id that is unknown or hidden: both in the same words."""
    asked = list(ids)
    known = set(await in_thread(context.match_server.live.store.get_many, asked))
    if not caller.actor.is_admin:
        known &= await _find_own(context, caller, known)
    for name in asked:
        if name not in known:
            raise Problem(404, "unknown-subscription", f'there is no subscription "{name}"')


def conceal(context: ServerContext, caller: Caller | None, error: TamisError) -> TamisError:
    """The error, without what it says about subscriptions that the caller may not see; not on the
    event loop.
    """
    if caller is not None and caller.actor.is_admin:
        return error
    owner = "" if caller is None else caller.actor.owner
    store = context.match_server.live.store
    if isinstance(error, ExpressionError) and error.decider is not None:
        hide_users(error)
        found = store.get(error.decider)
        if found is None or not owner or found.owner != owner:
            hide_decider(error)
    if isinstance(error, RefusedError) and error.reason == Reason.EXISTS:
        error.revision = None  # its owner finds it by other ways
    return error


async def _find_own(context: ServerContext, caller: Caller, names: set[str]) -> set[str]:
    """Those of the subscriptions that belong to the caller."""
    owner = caller.actor.owner
    if not owner or not names:
        return set()
    known = await in_thread(context.match_server.live.store.get_many, list(names))
    return {name for name, found in known.items() if found.owner == owner}
