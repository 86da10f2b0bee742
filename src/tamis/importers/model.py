"""What an importer returns: rules, each as a subscription or with the reason why not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import RowError
from tamis.input.subscription_rows import Details, SubscriptionRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.language.schema import Schema


def not_expressible(message: str, *, hint: str | None = None) -> RowError:
    """The error of a rule that is valid but cannot be written in our language."""
    return RowError("not-expressible", message, hint=hint)


class Document(NamedTuple):
    """One document of a file: what may hold a rule."""

    name: str  # of the file
    number: int  # of the document in the file, from 1
    line: int  # in the file, where it begins, from 1
    content: bytes

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self.name}:{self.line}"


@dataclass(slots=True)
class Rule:
    """A rule: either `expression` or `error` is None."""

    rule_id: str | None
    place: str
    source: str = ""  # as its author wrote it
    title: str = ""
    expression: str | None = None
    error: RowError | None = None
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what is read differently than its author may expect

    def refuse(self, error: RowError) -> None:
        """Replace the expression by the reason why there is none."""
        self.expression, self.error = None, error

    def to_dict(self) -> dict[str, Any]:
        """The subscription as a row that `tamis build` reads; of a refused rule, the reason."""
        row: dict[str, Any] = {"id": self.rule_id}
        if self.error is not None:
            return row | {"title": self.title, "place": self.place} | self.error.to_dict()
        row["expression"] = self.expression
        if self.tags:
            row["tags"] = list(self.tags)
        return row | dict(self.attributes)


@dataclass(slots=True)
class Imported:
    """The rules of all files, in order, and the schema that their expressions need."""

    rules: list[Rule]
    schema: Schema

    @property
    def accepted(self) -> list[Rule]:
        """The rules that are subscriptions now."""
        return [rule for rule in self.rules if rule.error is None]

    @property
    def refused(self) -> list[Rule]:
        """The rules that are not, each with an error."""
        return [rule for rule in self.rules if rule.error is not None]

    @property
    def notes(self) -> list[str]:
        """What is read differently than authors may expect: with a count and an example."""
        counts = Counter(note for rule in self.accepted for note in dict.fromkeys(rule.notes))
        example = {note: rule for rule in reversed(self.accepted) for note in rule.notes}
        return [
            f"{note} ({n:,} {'rule' if n == 1 else 'rules'}, such as {example[note].place})"
            for note, n in counts.most_common()
        ]

    def to_rows(self) -> Iterator[SubscriptionRow]:
        """The rules as rows of a file of subscriptions."""
        for number, rule in enumerate(self.rules, 1):
            details = Details(rule.tags, None, None, rule.attributes)
            given = None
            if rule.error is not None:
                given = {
                    "subscription_id": rule.rule_id,
                    "title": rule.title,
                    "place": rule.place,
                }
            yield SubscriptionRow(
                number, None, rule.rule_id, rule.expression or "", rule.error, given, details
            )

    def find_place(self, number: int) -> str:
        """Where the rule of a row is, with its title or id: for people."""
        rule = self.rules[number - 1]
        name = rule.title or rule.rule_id
        return f'{rule.place}: rule "{name}"' if name else rule.place
