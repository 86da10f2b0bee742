"""Attributes whose names resemble another's and are probably misspelt.

Two names are similar if they differ only in case, underscores or surrounding blanks, or in one
letter: inserted, deleted, replaced, or two adjacent letters swapped. Different digits are not a
misspelling (`port1` and `port2`), and names of fewer than three letters differ too easily. The name
"`a.b`" is similar to the path `a.b`.
"""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tamis.language.schema import Path

MIN_LENGTH: Final = 3  # of the shorter of two names that differ in a letter
TIMES: Final = 10  # how many times more often the other one must be used
SHOWN: Final = 3


class Use(NamedTuple):
    """The number of subscriptions that use an attribute, and one of them."""

    n_subscriptions: int
    subscription_id: str | None


class Lookalike(NamedTuple):
    """An attribute in few subscriptions that resembles one in many."""

    attribute: str  # as an expression spells it
    looks_like: str
    n_subscriptions: int  # that use it
    n_like: int  # that use the other one
    subscription_id: str | None  # one that uses it

    def __str__(self) -> str:
        used = f"{self.attribute} ({describe_use(Use(*self[2::2]))})"
        return f"{used} looks like {self.looks_like} ({_count(self.n_like)})"


def find_lookalikes(uses: Mapping[Path, Use]) -> list[Lookalike]:
    """The attributes that resemble another one that is used much more often, rarest first.

    If the names differ in a letter, it must be used `TIMES` as often; if they differ only in case,
    underscores or dots, more often.
    """
    best: dict[Path, tuple[int, Path]] = {}
    for pair in find_alike(uses):
        rare, common = sorted(pair, key=lambda path: uses[path].n_subscriptions)
        n_rare, n_common = uses[rare].n_subscriptions, uses[common].n_subscriptions
        times = 1 if is_same_but_case(rare, common) else TIMES
        if 0 < n_rare < n_common and n_common >= times * n_rare:
            best[rare] = max(best.get(rare, (0, rare)), (n_common, common))
    found = [
        Lookalike(print_path(rare), print_path(common), *_of(uses[rare], n_common))
        for rare, (n_common, common) in best.items()
    ]
    return sorted(found, key=lambda one: (one.n_subscriptions, -one.n_like, one.attribute))


def _of(use: Use, n_common: int) -> tuple[int, int, str | None]:
    return use.n_subscriptions, n_common, use.subscription_id


def describe_lookalikes(found: Collection[Lookalike]) -> str:
    """One sentence about misspelt attributes, with examples and a remedy."""
    n = len(found)
    what = "an attribute looks" if n == 1 else f"{n:,} attributes look"
    shown = "; ".join(str(one) for one in list(found)[:SHOWN]) + ("; …" if n > SHOWN else "")
    return (
        f"{what} misspelt: {shown}. Correct the expressions, or declare a schema that has "
        f"{'both names' if n == 1 else 'all names'} if they are right"
    )


def describe_use(use: Use) -> str:
    """The number of subscriptions that use an attribute, and which."""
    if use.subscription_id is None:
        return _count(use.n_subscriptions)
    such_as = "" if use.n_subscriptions == 1 else f"{_count(use.n_subscriptions)}, such as "
    return f'{such_as or "subscription "}"{use.subscription_id}"'


def _count(n_subscriptions: int) -> str:
    return f"{n_subscriptions:,} subscription{'s' * (n_subscriptions != 1)}"


# ── names ───────────────────────────────────────────────────────────────────────────────────


def find_likeness(path: Path, others: Iterable[Path]) -> Path | None:
    """The first of the most similar other names."""
    alike = [other for other in others if is_alike(path, other)]
    return min(alike, key=lambda other: not is_same_but_case(path, other), default=None)


def is_alike(one: Path, other: Path) -> bool:
    """Whether two different paths are similar: all steps but one are equal."""
    if one == other:
        return False
    if len(one) != len(other):
        return is_same_but_case(one, other)
    different = [(a, b) for a, b in zip(one, other, strict=True) if fold(a) != fold(b)]
    if not different:
        return True
    return len(different) == 1 and _is_one_letter(*map(fold, different[0]))


def is_same_but_case(one: Path, other: Path) -> bool:
    """Whether two paths differ only in case, underscores, blanks around names, and the dots in a
    name.
    """
    return _fold_path(one) == _fold_path(other)


def fold(name: str) -> str:
    """A name without case, underscores and surrounding blanks."""
    return name.strip().casefold().replace("_", "") or name


def _fold_path(path: Path) -> str:
    return ".".join(map(fold, path))


def find_alike(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """All pairs of similar paths, without comparing all pairs.

    Two names that differ in one letter are equal after a letter is removed from one or both.
    """
    near: dict[str, list[Path]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        for key in dict.fromkeys(_without_a_letter(_fold_path(path))):
            near[key].append(path)
    seen: set[tuple[Path, Path]] = set()
    for own in near.values():
        for at, one in enumerate(own):
            for other in own[:at]:
                if (other, one) not in seen and is_alike(one, other):
                    seen.add((other, one))
                    yield other, one


class Likenesses:
    """Finds the names that are similar to one, among names that become more. Threads share it."""

    def __init__(self) -> None:
        self._near: dict[str, list[Path]] = defaultdict(list)
        self._known: set[Path] = set()
        self._lock = Lock()

    def add(self, paths: Iterable[Path]) -> None:
        """Add names; those that are known change nothing."""
        with self._lock:
            for path in paths:
                if path not in self._known:
                    self._known.add(path)
                    for key in dict.fromkeys(_without_a_letter(_fold_path(path))):
                        self._near[key].append(path)

    def find(self, path: Path) -> list[Path]:
        """The names that are similar to this one, which need not be among them."""
        keys = dict.fromkeys(_without_a_letter(_fold_path(path)))
        with self._lock:
            near = [other for key in keys for other in self._near.get(key, ())]
        return [other for other in dict.fromkeys(near) if is_alike(path, other)]


def _without_a_letter(name: str) -> Iterator[str]:
    yield name
    for at, letter in enumerate(name):
        if letter != "." and not letter.isdigit():
            yield name[:at] + name[at + 1 :]


def _is_one_letter(one: str, other: str) -> bool:
    """Whether two names differ only by an inserted, deleted or replaced letter, or by two swapped
    ones.
    """
    short, long = sorted((one, other), key=len)
    if len(short) < MIN_LENGTH or len(long) - len(short) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :] and not long[at].isdigit()
    rest, other_rest = short[at:], long[at:]
    if rest[1:] == other_rest[1:]:
        return not (rest[0].isdigit() or other_rest[0].isdigit())
    return rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
