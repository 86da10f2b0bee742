"""Attributes that look misspelt, for callers who may see only some subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.broker.vocabulary import find_attributes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.lookalikes import Lookalike
    from tamis.language.schema import Schema
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

MOST_OWN: Final = 1_000  # subscriptions of an owner whose attributes may be named
SHOWN: Final = 3


def list_own(context: ServerContext, caller: Caller) -> list[str] | None:
    """The expressions of the caller, some of them if there are many; None for all of the set."""
    if caller.actor.is_admin:
        return None
    if not caller.actor.owner:
        return []
    page = context.match_server.live.list(owner=caller.actor.owner, limit=MOST_OWN)
    return [own.expression for own in page.subscriptions]


def keep_known(
    context: ServerContext, caller: Caller, found: Sequence[Lookalike]
) -> Sequence[Lookalike]:
    """Those that resemble an attribute which the caller may know; not on the event loop."""
    own = list_own(context, caller) if found else None
    if own is None:
        return found
    known = find_attributes(own)
    return [one for one in found if one.looks_like in known]


def note_misspelt(
    context: ServerContext, caller: Caller, before: Schema, text: str | None = None
) -> list[str]:
    """A note on misspelt attributes that the set did not have before, of one expression or of all;
    not on the event loop.
    """
    texts = None if text is None else [text]
    found = context.match_server.live.find_newly_misspelt(before, texts)
    found = list(keep_known(context, caller, found))
    if not found:
        return []
    what = "an attribute looks" if len(found) == 1 else f"{len(found):,} attributes look"
    shown = ", ".join(f"{one.attribute} like {one.looks_like}" for one in found[:SHOWN])
    more = ", …" if len(found) > SHOWN else ""
    note = f"{what} misspelt: {shown}{more}, which more subscriptions use"
    return [f"{note}. Replace the expressions if that is meant"]
