"""The types that attributes can have. Each type has one record, a `Kind`, in the module of its
family: how its values are read, compared with constants, printed and stored."""

from tamis.language.types.addresses import IP, parse_network
from tamis.language.types.catalogue import ANY, KINDS, array_type, parse_type, read_text, read_value
from tamis.language.types.moments import DATE, TIMESTAMP, parse_date, parse_timestamp
from tamis.language.types.numbers import (
    DOUBLE,
    FLOAT,
    INTEGER,
    MAX_DECIMAL_DIGITS,
    NUMBER,
    Written,
    decimal_digits,
    decimal_type,
    fits_decimal,
    print_as_double,
    read_float,
    round_to_float,
)
from tamis.language.types.texts import BOOLEAN, STRING, print_string, text_type
from tamis.language.types.type import (
    INT64_MAX,
    INT64_MIN,
    Kind,
    Type,
    WrongTypeError,
    plain_value,
    spell_value,
)

__all__ = [
    "ANY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT64_MAX",
    "INT64_MIN",
    "INTEGER",
    "IP",
    "KINDS",
    "MAX_DECIMAL_DIGITS",
    "NUMBER",
    "STRING",
    "TIMESTAMP",
    "Kind",
    "Type",
    "Written",
    "WrongTypeError",
    "array_type",
    "decimal_digits",
    "decimal_type",
    "fits_decimal",
    "parse_date",
    "parse_network",
    "parse_timestamp",
    "parse_type",
    "plain_value",
    "print_as_double",
    "print_string",
    "read_float",
    "read_text",
    "read_value",
    "round_to_float",
    "spell_value",
    "text_type",
]
