"""A set of parts, ready to answer: what an `Index` shows.

It is never modified. After a change of the set, a new view takes its place; it shares the engines,
the encoders and all else that belongs to parts that are in both.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tamis.events.encoder import EventEncoder
from tamis.language.moments import read_at
from tamis.match.catalogue import Catalogue
from tamis.match.details import Details
from tamis.match.elements import ElementMatcher
from tamis.match.engine import Engine
from tamis.match.joined_operators import JoinedOperators
from tamis.match.questions import Questions
from tamis.match.unseen import FirstEvents, NeededAttributes, SingleRejects
from tamis.match.wanted_subscriptions import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tamis.index.contents import Contents
    from tamis.match.catalogue import IndexPart
    from tamis.match.operators import Operators
    from tamis.operators.registry import Registry


def read_clock() -> datetime:
    """The current time."""
    return read_at(None)


class View:
    """Everything that is needed to match events against some parts. Threads share it."""

    def __init__(  # noqa: PLR0913 - all that decides what it answers
        self,
        parts: Sequence[IndexPart],
        registry: Registry | None,
        *,
        n_groups: int | None = None,
        clock: Callable[[], datetime] = read_clock,
        change: int | None = None,
        like: View | None = None,
    ) -> None:
        """`clock` gives the moment of questions that name none. `change` is the last change of a
        set that changes. `like` is an earlier view of some of the same parts: what it hides of
        them is hidden still.
        """
        self.change = change
        self.registry = registry
        self.clock = clock
        self.single_rejects: SingleRejects = (
            SingleRejects() if like is None else like.single_rejects
        )
        self.first_events: FirstEvents = FirstEvents() if like is None else like.first_events
        self.engines: tuple[Engine, ...] = _make_engines(parts, registry, n_groups, like)
        self.moments: tuple[Moments, ...] = _make_moments(parts, self.engines, like)
        self.is_timed = any(map(len, self.moments))  # some subscription is not always valid
        self.catalogue: Catalogue = Catalogue(parts)
        self.details = Details(self.catalogue)  # details of subscriptions besides expressions
        # By it results name subscriptions. After a removal it is still that of the earlier view,
        # so that the columns of all parts are not gathered again.
        self.listing, self.listed_details = self.catalogue, self.details
        if like is not None and like.listing.has_parts_of(self.catalogue):
            self.listing, self.listed_details = like.listing, like.listed_details
        contents = [part.contents for part in parts]
        reused = None if like is None else like.encoder
        self.encoder: EventEncoder = (
            like.encoder
            if like is not None and like.catalogue.has_parts_of(self.catalogue)
            else EventEncoder(*contents, like=reused, match_elements=ElementMatcher)
        )
        self.asked = NeededAttributes(lambda: self.shown, self.encoder.table)
        self.has_operators = any(engine.has_operators for engine in self.engines)
        self.ask = Questions(self).ask

    def frozen(self, moment: datetime) -> View:
        """The same view, whose questions are about one moment unless they name another."""
        parts, change = self.catalogue.parts, self.change
        return View(parts, self.registry, clock=lambda: moment, change=change, like=self)

    @cached_property
    def shown(self) -> tuple[Contents, ...]:
        """The arrays of each part; subscriptions that later parts replace match nothing."""
        return tuple(part.hide() for part in self.catalogue.parts)

    @cached_property
    def operators(self) -> Operators | JoinedOperators:
        """The operators that subscriptions call: their limits, faults and statistics."""
        if len(self.engines) == 1:
            return self.engines[0].operators
        return JoinedOperators([engine.operators for engine in self.engines])

    def list_valid(self, at: datetime) -> np.ndarray:
        """The ordinals of the subscriptions that are valid at a moment."""
        flags = [
            numbering.shown(moments.find(at).flags())
            for moments, numbering in zip(self.moments, self.catalogue.numberings, strict=True)
        ]
        return np.flatnonzero(np.concatenate(flags))


def _make_engines(
    parts: Sequence[IndexPart], registry: Registry | None, n_groups: int | None, like: View | None
) -> tuple[Engine, ...]:
    known = {} if like is None else {id(engine.contents): engine for engine in like.engines}
    engines = []
    for part in parts:
        engine = known.get(id(part.contents))
        if engine is None:
            engine = Engine(part.contents, registry, n_groups)
            if like is not None and engine.has_operators:
                engine.operators.limits = like.operators.limits
                engine.operators.learn(like.operators.statistics)
        engines.append(engine)
    return tuple(engines)


def _make_moments(
    parts: Sequence[IndexPart], engines: Sequence[Engine], like: View | None
) -> tuple[Moments, ...]:
    """Those of `like` are used where nothing else is hidden: they have cached arrays of roots."""
    known = {}
    if like is not None:
        known = {id(own): found for own, found in zip(like.engines, like.moments, strict=True)}
    made = []
    for engine, part in zip(engines, parts, strict=True):
        earlier = known.get(id(engine))
        if earlier is not None and earlier.is_hidden is part.is_hidden:
            made.append(earlier)
        else:
            made.append(Moments(engine, part.is_hidden, earlier))
    return tuple(made)
