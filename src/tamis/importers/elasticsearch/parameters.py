"""Parameters of queries: those that are read, those that change no answer, and all others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tamis.importers.model import not_expressible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.errors import RowError

_ANY: Final = "boost _name"
# They decide how similar words are found, which is refused anyway, or only how scores arise.
_WORDS: Final = (
    "auto_generate_synonyms_phrase_query fuzzy_max_expansions fuzzy_prefix_length fuzzy_rewrite "
    "fuzzy_transpositions lenient max_expansions prefix_length tie_breaker"
)
_READ: Final = {
    "boosting": "positive negative negative_boost",
    "constant_score": "filter",
    "dis_max": "queries tie_breaker",
    "exists": "field",
    "function_score": (
        "query functions score_mode boost_mode max_boost exp field_value_factor gauss linear "
        "random_score script_score weight"
    ),
    "match": f"query analyzer operator minimum_should_match zero_terms_query {_WORDS}",
    "match_all": "",
    "match_none": "",
    "match_phrase": "query analyzer zero_terms_query",
    "multi_match": (
        f"query fields type analyzer operator minimum_should_match zero_terms_query {_WORDS}"
    ),
    "prefix": "value case_insensitive rewrite",
    "query_string": (
        "query fields default_field default_operator allow_leading_wildcard analyze_wildcard "
        f"analyzer fuzziness max_determinized_states rewrite type {_WORDS}"
    ),
    "range": "gt gte lt lte format",
    "regexp": "value flags case_insensitive max_determinized_states rewrite",
    "simple_query_string": (
        f"query fields default_operator analyze_wildcard analyzer flags {_WORDS}"
    ),
    "term": "value case_insensitive",
    "wildcard": "value wildcard case_insensitive rewrite",
}
# Others that are accepted with values that change nothing.
_DEFAULTS: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "match": {"fuzziness": (None, 0, "0")},
    "match_phrase": {"slop": (0,)},
    "multi_match": {"fuzziness": (None, 0, "0"), "slop": (0,)},
    "query_string": {
        "enable_position_increments": (True,),
        "escape": (False,),
        "phrase_slop": (0,),
    },
    "range": {"relation": (None, "INTERSECTS", "intersects")},
}
_HINTS: Final = {
    "analyzer": "declare the field with the analyser in the schema, such as body TEXT(english)",
    "time_zone": "write the zone after the time: 2024-01-31T12:00:00+02:00",
}


def check_parameters(kind: str, given: Mapping[str, Any], field: str = "") -> None:
    """Raise an error for a parameter that would change the answers of a query of that kind."""
    known = {*_READ[kind].split(), *_ANY.split()}
    for name, value in given.items():
        if name not in known and value not in _DEFAULTS.get(kind, {}).get(name, ()):
            raise refuse_parameter(kind, name, value, field)


def refuse_parameter(kind: str, name: str, value: Any, field: str = "") -> RowError:
    """The error of a parameter that cannot be expressed."""
    shown = json.dumps(value, ensure_ascii=False, default=str)[:60]
    place = f"{field}: " if field else ""
    return not_expressible(f"{place}{kind} with {name} {shown}", hint=_HINTS.get(name))
