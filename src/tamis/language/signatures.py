"""Signatures of operators: the form of a call, without the code that answers it.

`distance_from(string, ?double)` takes a constant and returns a value: a parameter with a question
mark is *bound* by the operator, and a call may have a variable there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import SchemaError
from tamis.language.functions import SIGNATURES
from tamis.language.names import parse_path, print_path, split_listed
from tamis.language.tokens import KEYWORDS, REFUSED_WORDS
from tamis.language.types import KINDS, STRING, Type, parse_type
from tamis.language.value_functions import find_function

if TYPE_CHECKING:
    from collections.abc import Callable

Path = tuple[str, ...]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNATURE: Final = re.compile(r"\s*([^\s(]*)\s*\((.*)\)\s*", re.DOTALL)
_READ: Final = re.compile(r"\s*((?:[^\s`]|`(?:[^`]|``)*`)+)(?:\s+(\S.*?))?\s*", re.DOTALL)
_RESERVED: Final = KEYWORDS | REFUSED_WORDS.keys() | {"DATE", "TIMESTAMP", "ARRAY"}
_EXAMPLE: Final = "write a signature as in: distance_from(string, ?double)"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a call: its type, and whether the operator binds it."""

    type: Type
    is_bound: bool = False

    def __str__(self) -> str:
        return f"?{self.type}" if self.is_bound else str(self.type)


class Read(NamedTuple):
    """An attribute that an operator reads, with its type; without a type it is passed unchanged."""

    path: Path
    type: Type | None = None

    def __str__(self) -> str:
        name = print_path(self.path)
        return name if self.type is None else f"{name} {self.type}"


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator's name and parameters, and the attributes of events that it reads."""

    name: str
    parameters: tuple[Parameter, ...]
    reads: tuple[Read, ...] | None = None  # None: any
    # Raises an error for constants that the operator does not support; available where its code is.
    check: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def __reduce__(self) -> Any:
        # A check is code, which stays in the process that defines it.
        return Signature, (self.name, self.parameters, self.reads)

    @property
    def bound(self) -> tuple[int, ...]:
        """The arguments that the operator binds."""
        return tuple(at for at, parameter in enumerate(self.parameters) if parameter.is_bound)

    @property
    def kind(self) -> str:
        """The notation of the type in a schema: `operator`, with the attributes it reads if
        known.
        """
        if self.reads is None:
            return "operator"
        return f"operator({', '.join(map(str, self.reads))})"


def parse_signature(
    text: str, reads: Iterable[str] | None = None, check: Callable[..., Any] | None = None
) -> Signature:
    """The signature written in `text`; raises `SchemaError` if it is invalid."""
    found = _SIGNATURE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise SchemaError(f"{text!r} is not the signature of an operator", hint=_EXAMPLE)
    name, listed = found[1], found[2].strip()
    _check_name(name)
    parameters = tuple(_parse_parameter(text, part) for part in split_listed(listed))
    return Signature(name, parameters, None if reads is None else parse_reads(name, reads), check)


def parse_kind(text: str, kind: str) -> Signature:
    """The signature of a schema's entry, such as `loc_in(string)` of kind `operator(lat, lon)`."""
    rest = kind.strip()[len("operator") :].strip()
    if not rest:
        return parse_signature(text)
    if not (rest.startswith("(") and rest.endswith(")")):
        raise SchemaError(f'unknown type "{kind}" of {text}', hint="allowed: operator(lat, lon)")
    return parse_signature(text, split_listed(rest[1:-1]))


def is_kind(type_: str) -> bool:
    """Whether a schema's entry of this type declares an operator."""
    return re.match(r"\s*operator\s*(\(|$)", type_, re.IGNORECASE) is not None


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SchemaError(f'"{name}" cannot be the name of an operator', hint=_EXAMPLE)
    if name.upper() in _RESERVED:
        raise SchemaError(f'"{name}" cannot be the name of an operator: it is a keyword')
    if (find_function(name) or name.lower()) in SIGNATURES:
        known = SIGNATURES[find_function(name) or name.lower()]
        raise SchemaError(f'"{name}" cannot be the name of an operator: {known} is a function')


def _parse_parameter(text: str, part: str) -> Parameter:
    spelled = part.strip()
    type_ = parse_type(spelled.removeprefix("?"))
    if type_.name in ("array", "any"):
        raise SchemaError(f"{text}: a parameter is a scalar, not {type_}", hint=_EXAMPLE)
    if KINDS[type_.name].show is not None:
        raise SchemaError(f"{text}: a parameter cannot be of type {type_}", hint="declare a string")
    return Parameter(type_, spelled.startswith("?"))


def parse_reads(name: str, reads: Iterable[str]) -> tuple[Read, ...]:
    """The attributes that the operator of that name reads, each with an optional type."""
    is_list = isinstance(reads, Iterable) and not isinstance(reads, str)
    listed = tuple(reads) if is_list else (None,)
    if not all(isinstance(attribute, str) for attribute in listed):
        raise SchemaError(
            f"operator {name} reads {reads!r}; allowed: a list of names of attributes",
            hint="types are optional: reads=['lat double', 'lon double']",
        )
    return tuple(_parse_read(name, str(attribute)) for attribute in listed)


def read_as_text(attribute: str) -> str:
    """The attribute read by an operator that uses the text of one attribute."""
    return str(Read(parse_path(attribute), STRING))


def _parse_read(name: str, attribute: str) -> Read:
    found = _READ.fullmatch(attribute)
    if found is None:
        raise SchemaError(f"operator {name} reads {attribute!r}; allowed: a name, or name TYPE")
    try:
        return Read(parse_path(found[1]), None if found[2] is None else parse_type(found[2]))
    except SchemaError as error:
        raise SchemaError(
            f"operator {name} reads {attribute!r}: {error.message}", hint=error.hint
        ) from None
