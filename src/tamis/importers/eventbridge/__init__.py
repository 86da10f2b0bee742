"""AWS EventBridge patterns: each field has a list of values and filters, one of which must fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.errors import RowError
from tamis.importers.checking import finish
from tamis.importers.conditions import spell
from tamis.importers.eventbridge.patterns import find_constants, read_pattern
from tamis.importers.fields import Fields
from tamis.importers.json_rules import Keys, convert_rules, read_rules
from tamis.importers.model import not_expressible
from tamis.importers.votes import elect_types
from tamis.language.types import parse_declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.importers.model import Imported, Rule
    from tamis.importers.settings import Settings
    from tamis.importers.sources import File
    from tamis.language.schema import Path
    from tamis.language.types import Type


def _check(rule: Mapping[str, Any]) -> RowError | None:
    """The error of a rule that matches no events: it is switched off, or runs on a schedule."""
    if rule.get("State") == "DISABLED":
        return RowError(
            "disabled", 'the rule is switched off ("State": "DISABLED")', hint="enable it first"
        )
    patterns = (rule.get(path[0]) for path in CONTENTS)
    if all(own is None for own in patterns):
        if "ScheduleExpression" in rule:
            return not_expressible("the rule has a schedule and no EventPattern: no event fires it")
        return RowError("bad-rule", "the rule has no EventPattern")
    return None


CONTENTS: Final = (("EventPattern",), ("eventPattern",), ("pattern",))
# In a pattern, the value of each member is a list or an object, never a text.
MARKS: Final = ("Name", "Arn", "EventBusName", "ScheduleExpression", "State")
# Attributes that are lists in all events of AWS.
_LISTS: Final[dict[Path, Type]] = {("resources",): parse_declared("one_or_many<string>")}
KEYS: Final = Keys((("Rules",),), CONTENTS, marks=MARKS, check=_check)


def import_files(files: Iterable[File], settings: Settings) -> Imported:
    """The patterns of files, given by name and content."""
    found = list(read_rules(files, KEYS))
    uses = [use for own in found if own.content for use in find_constants(own.content)]
    fields = Fields.of(elect_types(uses) | _LISTS, settings)

    def convert(rule: Rule, pattern: Any) -> str:
        notes: list[str] = []
        expression = spell(read_pattern(pattern, fields, notes))
        rule.notes = tuple(notes)
        return expression

    converted = convert_rules(found, fields, convert)
    return finish([rule for rule, _ in converted], [used for _, used in converted], settings.limits)
