"""How are expressions written? Grammar, types, positions, printer, limits."""

from tamis.language.bulk import Parsed, parse_many
from tamis.language.check import check
from tamis.language.infer import infer_schema, infer_schema_from_events
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.language.printer import print_expression, print_for_spark
from tamis.language.schema import Schema
from tamis.language.search_box import search_query

__all__ = [
    "DEFAULT_LIMITS",
    "Limits",
    "Parsed",
    "Schema",
    "check",
    "infer_schema",
    "infer_schema_from_events",
    "parse",
    "parse_many",
    "print_expression",
    "print_for_spark",
    "search_query",
]
