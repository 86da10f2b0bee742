"""Elasticsearch queries, as a percolator holds them: the query DSL and query strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.importers.checking import finish
from tamis.importers.conditions import spell
from tamis.importers.elasticsearch.dsl import QueryReader, find_constants
from tamis.importers.fields import AS_IT_COMES, Fields
from tamis.importers.json_rules import Keys, convert_rules, read_rules
from tamis.importers.model import not_expressible
from tamis.importers.votes import elect_types
from tamis.language.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.errors import RowError
    from tamis.importers.model import Imported, Rule
    from tamis.importers.settings import Settings
    from tamis.importers.sources import File

# Members of a search that select documents beside the query.
_SELECTING: Final = ("knn", "min_score", "post_filter", "runtime_mappings")


def _check(search: Mapping[str, Any]) -> RowError | None:
    """The error of a search whose query alone is not what it finds."""
    found = next((name for name in _SELECTING if search.get(name) is not None), None)
    if found is None:
        return None
    return not_expressible(f"a search with {found}, which selects documents beside its query")


KEYS: Final = Keys((("hits", "hits"),), (("_source", "query"), ("query",)), check=_check)


def import_files(files: Iterable[File], settings: Settings) -> Imported:
    """The queries of files, given by name and content."""
    found = list(read_rules(files, KEYS))
    uses = [use for own in found if own.content for use in find_constants(own.content)]
    # Elasticsearch indexes 5 and true in a keyword field as "5" and "true".
    elected = {
        field: AS_IT_COMES if type_ == STRING else type_
        for field, type_ in elect_types(uses).items()
    }
    fields = Fields.of(elected, settings, AS_IT_COMES)

    def convert(rule: Rule, query: Any) -> str:
        reader = QueryReader(fields)
        expression = spell(reader.read(query))
        rule.notes = tuple(reader.notes)
        return expression

    converted = convert_rules(found, fields, convert)
    return finish([rule for rule, _ in converted], [used for _, used in converted], settings.limits)
