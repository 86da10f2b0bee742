"""Where the words of subscriptions are in the events of their mailboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import TamisError
from tamis.language.check import check
from tamis.language.parser import parse
from tamis.logic.canonical import to_nnf
from tamis.search.highlights import Marker
from tamis.search.relaxing import list_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.broker.mail import MailedMatch
    from tamis.live.index import LiveIndex
    from tamis.search.model import Highlights
    from tamis.search.relaxing import HasWords

MOST_READ: Final = 200  # subscriptions of a page whose expressions are parsed


def highlight_matches(live: LiveIndex, matches: Sequence[MailedMatch]) -> list[Highlights]:
    """For each match, by attribute, where the found words begin and end, in characters.

    The words are those of the expressions in force: a subscription that has ended has none. On the
    page of a channel, only the first `MOST_READ` subscriptions are considered.
    """
    wanted = {
        number: name
        for match in matches
        for number, name in zip(match.numbers, match.subscriptions, strict=True)
    }
    words = _read_words(live, dict(list(wanted.items())[:MOST_READ]))
    return [
        Marker(_collect(words, match.numbers)).find(match.content) if words else {}
        for match in matches
    ]


def _collect(words: dict[int, tuple[HasWords, ...]], numbers: Iterable[int]) -> list[HasWords]:
    return list(dict.fromkeys(own for number in numbers for own in words.get(number, ())))


def _read_words(live: LiveIndex, wanted: dict[int, str]) -> dict[int, tuple[HasWords, ...]]:
    found = {}
    for own in live.store.get_many(list(wanted.values())).values():
        # The id may be of another subscription by now.
        if own.created in wanted and (words := _list_words(live, own.expression)):
            found[own.created] = words
    return found


def _list_words(live: LiveIndex, expression: str) -> tuple[HasWords, ...]:
    settings = live.settings
    try:
        schema = settings.schema_for([expression]).with_operators(settings.operators)
        parsed = parse(expression, settings.limits)
        condition = check(parsed, schema, settings.limits, expression)
    except TamisError:  # an operator is missing, or a type has changed: it is shown without marks
        return ()
    return tuple(dict.fromkeys(list_words(to_nnf(condition, settings.missing))))
