"""Imports a version, such as one that Spark has built, into a set that is being served."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.weights import WEIGHT
from tamis.live.requests import AT_ONCE
from tamis.subscriptions import Accepted, Replace, Subscribe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.live import LiveIndex
    from tamis.match.index import Index
    from tamis.subscriptions import Subscription

ADDED, REPLACED, UNCHANGED, REFUSED = OUTCOMES = ("added", "replaced", "unchanged", "refused")


class ImportedRow(NamedTuple):
    """What became of a subscription of the version."""

    id: str
    outcome: str
    change: int | None = None
    code: str | None = None  # of a refusal
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields that it has."""
        return {name: own for name, own in self._asdict().items() if own is not None}


def import_version(
    live: LiveIndex, version: Index, *, replaces: bool = False
) -> Iterator[ImportedRow]:
    """Add the subscriptions of an index to a live one, some thousand at a time, with a result for
    each. Those whose id exists are refused, unless `replaces` is set.
    """
    requests = _list_requests(version)
    while some := list(islice(requests, AT_ONCE)):
        yield from _add(live, some, replaces=replaces)


def _add(live: LiveIndex, asked: list[Subscribe], *, replaces: bool) -> Iterator[ImportedRow]:
    known = live.store.get_many([one.id for one in asked]) if replaces else {}
    requests = [_to_request(one, known.get(one.id)) for one in asked]
    changing = [request for request in requests if request is not None]
    results = iter(live.apply(changing))
    for one, request in zip(asked, requests, strict=True):
        name = one.id
        if request is None:
            yield ImportedRow(name, UNCHANGED)
            continue
        result = next(results)
        if isinstance(result, Accepted):
            outcome = REPLACED if isinstance(request, Replace) else ADDED
            yield ImportedRow(name, outcome, result.number)
        else:
            code = result.error.code if result.error is not None else result.reason.value
            yield ImportedRow(name, REFUSED, None, code, result.message)


def _to_request(asked: Subscribe, known: Subscription | None) -> Subscribe | Replace | None:
    """The request for a row; None if the subscription is the same already."""
    if known is None:
        return asked
    details = (asked.expression, asked.tags, asked.attributes, asked.valid_from, asked.valid_until)
    earlier = (known.expression, known.tags, known.attributes, known.valid_from, known.valid_until)
    if details == earlier and asked.owner in ("", known.owner):
        return None
    return Replace(
        asked.id,
        asked.expression,
        asked.owner or known.owner,
        asked.tags,
        asked.attributes,
        asked.valid_from,
        asked.valid_until,
    )


def _list_requests(version: Index) -> Iterator[Subscribe]:
    """A request for each subscription, in order."""
    catalogue, details = version.view.catalogue, version.view.details
    for ordinal, name in enumerate(catalogue.ids.to_pylist()):
        found = details.of(ordinal)
        tags = tuple(found.pop("tags", ()))
        limits = (found.pop("valid_from", None), found.pop("valid_until", None))
        owner = found.pop("owner", "")
        if catalogue.has_weights and (weight := catalogue.weights[ordinal].as_py()):
            found[WEIGHT] = weight
        is_owner = isinstance(owner, str)
        yield Subscribe(
            name,
            catalogue.text(ordinal),
            owner if is_owner else "",
            tags,
            found if is_owner else {**found, "owner": owner},
            *limits,
        )
