"""The questions that callers put to an index, made from their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.arguments import expect_count
from tamis.errors import InputError
from tamis.language.moments import read_at
from tamis.match.question import AskedPart, Question
from tamis.match.single_events import SingleEvents

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from tamis.match.view import View
    from tamis.match.wanted_subscriptions import WantedSubscriptions

    Subset = Iterable[str] | None  # ids of the subscriptions to consider; None for all
    Tags = str | Sequence[str] | None  # tags, of which they have at least one; None for all


class _Asked(NamedTuple):
    wanted: Sequence[WantedSubscriptions]
    question: Question


class Questions:
    """Makes questions to the parts of one view."""

    def __init__(self, view: View) -> None:
        self._catalogue = view.catalogue
        self._listing = view.listing
        self._engines = view.engines
        self._coders = view.encoder.coders
        self._singles = SingleEvents(
            view.encoder.reader, view.single_rejects, has_operators=view.has_operators
        )
        self._moments = view.moments
        self._clock = view.clock
        self._n_groups = min(engine.n_groups for engine in view.engines)
        self._is_timed = view.is_timed
        everyone = [moments.everyone for moments in view.moments]
        self._for_everyone = self._make(everyone)
        self._last = _Asked(everyone, self._for_everyone)

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
        if subset is None and tagged is None:
            is_timed = at is not None or self._is_timed
            asked = self._ask_at(at) if is_timed else self._for_everyone
            is_plain = threads == 1 and not with_bindings
            return (
                asked if is_plain else replace(asked, threads=threads, with_bindings=with_bindings)
            )
        wanted = self._find_valid(at)
        for is_wanted in self._choose(subset, tagged):
            wanted = [
                own.only(numbering.to_part(is_wanted))
                for own, numbering in zip(wanted, self._catalogue.numberings, strict=True)
            ]
        return self._make(wanted, threads, with_bindings=with_bindings)

    def _find_valid(self, at: Any) -> list[WantedSubscriptions]:
        moment = self._clock() if at is None else read_at(at)
        return [moments.find(moment) for moments in self._moments]

    def _ask_at(self, at: Any) -> Question:
        """The question at a moment; the last one if the same subscriptions are valid."""
        wanted = self._find_valid(at)
        last = self._last  # read once: another thread may replace it
        if all(map(is_, last.wanted, wanted)):
            return last.question
        question = self._make(wanted)
        self._last = _Asked(wanted, question)
        return question

    def _make(
        self,
        wanted: Sequence[WantedSubscriptions],
        threads: int = 1,
        *,
        with_bindings: bool = False,
    ) -> Question:
        parts = [
            AskedPart(number, engine, coder, own, numbering, listing)
            for number, (engine, coder, own, numbering, listing) in enumerate(
                zip(
                    self._engines,
                    self._coders,
                    wanted,
                    self._catalogue.numberings,
                    self._listing.numberings,
                    strict=True,
                )
            )
        ]
        return Question(parts, self._singles, self._n_groups, threads, with_bindings)

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
