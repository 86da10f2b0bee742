"""The questions that callers put to an index, made from their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tamis.arguments import expect_count
from tamis.errors import InputError
from tamis.language.moments import read_at
from tamis.match.question import AskedPart, Question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from tamis.match.view import View
    from tamis.match.wanted_subscriptions import WantedSubscriptions

    Subset = Iterable[str] | None  # ids of the subscriptions to consider; None for all
    Tags = str | Sequence[str] | None  # tags, of which they have at least one; None for all


class Questions:
    """Makes questions to the parts of one view."""

    def __init__(self, view: View) -> None:
        self._catalogue = view.catalogue
        self._engines = view.engines
        self._encoders = view.encoder.parts
        self._rejects = view.single_rejects
        self._moments = view.moments
        self._clock = view.clock
        self._n_groups = min(engine.n_groups for engine in view.engines)
        self._is_timed = any(map(len, view.moments))
        self._for_everyone = self._make([moments.everyone for moments in view.moments])

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
        moment = self._clock() if at is None else read_at(at)
        wanted = [moments.find(moment) for moments in self._moments]
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
            AskedPart(number, engine, encoder, self._rejects, own, numbering)
            for number, (engine, encoder, own, numbering) in enumerate(
                zip(
                    self._engines,
                    self._encoders,
                    wanted,
                    self._catalogue.numberings,
                    strict=True,
                )
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
