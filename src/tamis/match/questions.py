"""The questions that callers put to an index, made from their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tamis.arguments import expect_count
from tamis.errors import InputError
from tamis.match.question import AskedPart, Question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from tamis.match.catalogue import Catalogue
    from tamis.match.engine import Engine
    from tamis.match.wanted_subscriptions import WantedSubscriptions

    Subset = Iterable[str] | None  # ids of the subscriptions to consider; None for all
    Tags = str | Sequence[str] | None  # tags, of which they have at least one; None for all


class Questions:
    """Makes questions to the parts of one index."""

    def __init__(self, catalogue: Catalogue, engines: Sequence[Engine], n_groups: int) -> None:
        self._catalogue = catalogue
        self._engines = engines
        self._n_groups = n_groups
        self._is_timed = any(len(engine.moments) for engine in engines)
        self._for_everyone = self._make([engine.moments.everyone for engine in engines])

    def ask(
        self,
        subset: Subset,
        tagged: Tags,
        at: Any,
        threads: int = 1,
        *,
        with_bindings: bool = False,
    ) -> Question:
        """The question that these arguments describe."""
        threads = expect_count(threads, "threads")
        if subset is None and tagged is None and at is None and not self._is_timed:
            asked = self._for_everyone
            is_plain = threads == 1 and not with_bindings
            return (
                asked if is_plain else replace(asked, threads=threads, with_bindings=with_bindings)
            )
        wanted = [engine.moments.find(at) for engine in self._engines]
        for is_wanted in self._choose(subset, tagged):
            wanted = [
                own.only(numbering.to_part(is_wanted))
                for own, numbering in zip(wanted, self._catalogue.numberings, strict=True)
            ]
        return self._make(wanted, threads, with_bindings=with_bindings)

    def _make(
        self,
        wanted: Sequence[WantedSubscriptions],
        threads: int = 1,
        *,
        with_bindings: bool = False,
    ) -> Question:
        parts = [
            AskedPart(number, engine, own, numbering)
            for number, (engine, own, numbering) in enumerate(
                zip(self._engines, wanted, self._catalogue.numberings, strict=True)
            )
        ]
        return Question(parts, self._n_groups, threads, with_bindings)

    def _choose(self, subset: Subset, tagged: Tags) -> Iterator[np.ndarray]:
        """bool[n_subscriptions] for each criterion of selection."""
        if subset is not None:
            if isinstance(subset, str) or not isinstance(subset, Iterable):
                raise InputError(
                    f"subset is {subset!r}; a list of subscription ids is expected",
                    hint=f"write [{subset!r}]",
                )
            yield self._catalogue.find(subset)
        if tagged is not None:
            tags = [tagged] if isinstance(tagged, str) else list(tagged)
            yield self._catalogue.find_tagged(tags)
