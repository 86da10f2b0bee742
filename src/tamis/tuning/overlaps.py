"""Rules that mean the same, and rules that others contain."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.language.ast import And, Or, leaves
from tamis.logic.digest import digest
from tamis.logic.implication import implies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.language.ast import Condition

MOST_CANDIDATES: Final = 200  # rules that are compared with one
LEAST_SHARED: Final = 0.9  # of the events of two rules that fire together
LEAST_FIRED: Final = 5
LEAST_ALIKE: Final = 0.8  # of the tests of two silent rules that both have
LEAST_TESTS: Final = 4


class Overlap(NamedTuple):
    """Two rules, and how they are related."""

    kind: str  # equal, contained, together or alike
    rule_id: str
    other_id: str  # of the wider one, if the first is contained in it
    share: float  # of their events that both fire on, or of their tests; 1 if it is certain


def find_overlaps(
    canonical: Mapping[str, Condition], fired: Mapping[str, set[int]]
) -> list[Overlap]:
    """Rules that are equal, contained in another, or that fire on the same events; of those that
    did not fire, pairs that have nearly the same tests.
    """
    found = list(_find_equal(canonical))
    known = {frozenset((own.rule_id, own.other_id)) for own in found}
    for overlap in _find_contained(canonical):
        pair = frozenset((overlap.rule_id, overlap.other_id))
        if pair not in known:
            known.add(pair)
            found.append(overlap)
    silent = {name: own for name, own in canonical.items() if not fired.get(name)}
    likely = (*_find_together(fired), *_find_alike(silent))
    return found + [own for own in likely if frozenset((own.rule_id, own.other_id)) not in known]


def _find_equal(canonical: Mapping[str, Condition]) -> Iterator[Overlap]:
    first: dict[bytes, str] = {}
    for name, condition in canonical.items():
        known = first.setdefault(digest(condition), name)
        if known != name:
            yield Overlap("equal", name, known, 1.0)


def _parts(condition: Condition) -> tuple[Condition, ...]:
    return condition.operands if isinstance(condition, And) else (condition,)


def _find_contained(canonical: Mapping[str, Condition]) -> Iterator[Overlap]:
    """A rule implies a wider one only if it has a part that implies the wider one's rarest part."""
    holders: defaultdict[Condition, list[str]] = defaultdict(list)
    for name, condition in canonical.items():
        for part in _parts(condition):
            holders[part].append(name)
    for wider, condition in canonical.items():
        rarest = min(_parts(condition), key=lambda part: len(holders[part]))
        keys = (rarest, *(rarest.operands if isinstance(rarest, Or) else ()))
        candidates = dict.fromkeys(name for key in keys for name in holders.get(key, ()))
        for name in [own for own in candidates if own != wider][:MOST_CANDIDATES]:
            if implies(canonical[name], condition):
                yield Overlap("contained", name, wider, 1.0)


def _find_together(fired: Mapping[str, set[int]]) -> list[Overlap]:
    """Pairs whose events are nearly the same ones."""
    by_event: defaultdict[int, list[str]] = defaultdict(list)
    for name, rows in fired.items():
        if len(rows) >= LEAST_FIRED:
            for row in rows:
                by_event[row].append(name)
    shared: Counter[tuple[str, str]] = Counter()
    for names in by_event.values():
        if len(names) <= MOST_CANDIDATES:
            ordered = sorted(names)
            shared.update((a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :])
    found = []
    for (a, b), n_shared in shared.items():
        share = n_shared / len(fired[a] | fired[b])
        if share >= LEAST_SHARED:
            found.append(Overlap("together", a, b, share))
    return sorted(found, key=lambda own: -own.share)


def _find_alike(silent: Mapping[str, Condition]) -> list[Overlap]:
    """Pairs of rules with nearly the same tests."""
    tests = {name: frozenset(leaves(condition)) for name, condition in silent.items()}
    holders = Counter(test for own in tests.values() for test in own)
    by_test: defaultdict[Condition, list[str]] = defaultdict(list)
    found = []
    for name, own in tests.items():
        if len(own) < LEAST_TESTS:
            continue
        # Two such rules share at least one of so many of their rarest tests.
        n_first = len(own) - math.ceil(LEAST_ALIKE * len(own)) + 1
        rarest = sorted(own, key=lambda test: (holders[test], repr(test)))[:n_first]
        others = dict.fromkeys(other for test in rarest for other in by_test[test])
        for other in list(others)[:MOST_CANDIDATES]:
            share = len(own & tests[other]) / len(own | tests[other])
            if share >= LEAST_ALIKE:
                found.append(Overlap("alike", name, other, share))
        for test in rarest:
            by_test[test].append(name)
    return sorted(found, key=lambda own: -own.share)
