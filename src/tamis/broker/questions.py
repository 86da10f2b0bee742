"""Questions about an event that store nothing: whom does it match, and why not?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.broker.outcomes import describe_rejects
from tamis.match.readouts.numbers import NamedNumbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tamis.archive import Archive
    from tamis.broker.outcomes import IgnoredValues
    from tamis.live.index import LiveIndex
    from tamis.match.explain import Explanation
    from tamis.match.view import View

DRAFT = "draft"  # the name of an expression that is not a subscription


class MatchedEvent(NamedTuple):
    """The subscriptions that an event satisfies."""

    ids: list[str]
    change: int  # by the set as of this change
    moment: datetime
    ignored: list[IgnoredValues]


def match_event(
    live: LiveIndex,
    event: Mapping[str, Any],
    *,
    tagged: Sequence[str] | None = None,
    subset: Sequence[str] | None = None,
) -> MatchedEvent:
    """The subscriptions that an event satisfies, as if it were published now.

    Raises an `InputError` for an id of `subset` that does not exist.
    """
    view, moment = live.view_now()
    assert view.change is not None
    encoded = view.encoder.encode([event])
    question = view.ask(_choose(view, tagged, subset), None, moment)
    (ids,) = question.put([encoded], NamedNumbers()).ids
    return MatchedEvent(ids, view.change, moment, describe_rejects(encoded.rejects))


def _choose(
    view: View, tagged: Sequence[str] | None, subset: Sequence[str] | None
) -> Sequence[str] | None:
    """The ids to consider. A tag that no subscription has is no mistake of the server's owner, who
    would read the warning.
    """
    if tagged is None:
        return subset
    is_tagged = view.catalogue.find_tagged(tagged, is_reported=False)
    names = view.catalogue.names(np.flatnonzero(is_tagged))
    if subset is None:
        return names
    view.catalogue.find(subset)  # raises an error if one is unknown
    return list(set(names) & set(subset))


def explain_draft(live: LiveIndex, expression: str, event: Mapping[str, Any]) -> Explanation:
    """Why an event satisfies an expression that is not a subscription, or why not.

    Raises the `ExpressionError` of an expression that is wrong.
    """
    return live.draft({DRAFT: expression}).explain(DRAFT, event)


def find_matched(live: LiveIndex, archive: Archive, after: int, up_to: int) -> dict[int, list[str]]:
    """The subscriptions that each event in (after, up_to] matched when it was published, by event;
    without those that have ended since.
    """
    catalogue = live.view.catalogue
    numbers = np.concatenate(
        [
            numbering.shown(part.contents.numbers)
            for part, numbering in zip(catalogue.parts, catalogue.numberings, strict=True)
        ]
    )
    order = np.argsort(numbers)
    known = numbers[order]
    found: dict[int, list[str]] = {}
    while after < up_to:
        page = archive.read_matches(known.tolist(), after=after, limit=up_to - after, up_to=up_to)
        for match in page.matches:
            places = np.searchsorted(known, match.subscriptions)
            found[match.event] = catalogue.names(order[places])
        after = max(page.after, after + 1)
    return found
