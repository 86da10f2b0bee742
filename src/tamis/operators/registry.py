"""The registry: operators by name, each a plain Python function with a signature.

    @tamis.operator("distance_from(string, ?double)", reads=["lat double", "lon double"])
    def distance_from(event, place):
        return haversine((event["lat"], event["lon"]), PLACES[place])

The function gets the attributes that it reads and the constants of the call, and returns:

- without variables, True or False;
- with one variable, the value found, or a list (or set) of all values found;
- with several variables, a tuple of values, or a list of tuples;
- None if there is no answer: the call is undefined for that event.

With `batch` it gets an Arrow table of events and returns an Arrow array of as many answers.
"""

from __future__ import annotations

import importlib
import inspect
import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from tamis.errors import InputError, MissingOperatorError, SchemaError, suggest
from tamis.language.signatures import Signature, parse_signature
from tamis.operators.views import reading_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tamis.language.schema import Schema
    from tamis.operators.views import Reading

Function = TypeVar("Function", bound="Callable[..., Any]")
TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class Operator:
    """A function, and the properties that the engine needs to call it."""

    signature: Signature
    function: Callable[..., Any]
    cost: float | None = None  # in seconds per call; measured if None
    is_pure: bool = True  # same answer for same arguments and attributes
    timeout: float | None = TIMEOUT  # in seconds; None: no time limit
    is_batch: bool = False
    # The attributes read, by name; None for the whole event.
    reading: Mapping[str, Reading] | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reading", reading_of(self.signature))

    @property
    def name(self) -> str:
        """The name used in calls."""
        return self.signature.name


class Registry:
    """Operators by name; names are case-insensitive."""

    def __init__(self, operators: Iterable[Operator] = ()) -> None:
        self._operators: dict[str, Operator] = {}
        for one in operators:
            self.add(one)

    def add(self, operator: Operator) -> None:
        """Register an operator; a name can be registered once, except by the same function loaded
        again.
        """
        key = operator.name.lower()
        other = self._operators.get(key)
        if other is not None and not _is_same(other, operator):
            raise SchemaError(
                f"operator {operator.name} is registered already, by {_place_of(other)}",
                hint="give one of them another name, or use a separate registry",
            )
        self._operators[key] = operator

    def get(self, name: str) -> Operator | None:
        """The operator of that name, or None."""
        return self._operators.get(name.lower())

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signatures of all operators."""
        return tuple(operator.signature for operator in self._operators.values())

    def load(self, paths: str | Iterable[str]) -> Registry:
        """Import modules that register operators, or register functions named `module:function`."""
        for path in module_names(paths):
            self._load(path)
        return self

    def _load(self, path: str) -> None:
        if not isinstance(path, str) or not path:
            raise InputError(f"operators has {path!r}; allowed: names of modules, such as 'geo'")
        module_name, _, name = path.partition(":")
        try:
            module = importlib.import_module(module_name)
        except Exception as error:  # any error raised by the import
            is_plain = isinstance(error, ImportError)
            why = str(error) if is_plain else f"{type(error).__name__}: {error}"
            is_file = path.endswith(".py")
            hint = f"name the module, not its file: {path[:-3].replace('/', '.')}"
            raise InputError(
                f'operators "{path}" cannot be imported: {why}', hint=hint if is_file else None
            ) from error
        found = (
            [getattr(module, name, None)]
            if name
            else [value for value in vars(module).values() if hasattr(value, ATTRIBUTE)]
        )
        for function in found:
            own = getattr(function, ATTRIBUTE, None)
            if own is None:
                raise InputError(
                    f'"{path}" is not an operator', hint="decorate the function: @tamis.operator(…)"
                )
            self.add(own)

    def find(self, names: Iterable[str]) -> dict[str, Operator]:
        """The operators of these names; raises an error for a name that is not registered."""
        found: dict[str, Operator] = {}
        for name in names:
            own = self.get(name)
            if own is None:
                raise MissingOperatorError(f"operator {name} is not registered")
            found[name] = own
        return found

    def resolve(self, signatures: Iterable[Signature]) -> dict[str, Operator]:
        """The operators of an index, by name; the error names all that are missing or different."""
        found: dict[str, Operator] = {}
        missing: list[str] = []
        for signature in signatures:
            own = self.get(signature.name)
            if own is None:
                missing.append(str(signature))
            elif own.signature.parameters != signature.parameters:
                raise MissingOperatorError(
                    f"the index calls {signature}; the operator registered is {own.signature}"
                )
            else:
                _expect_reads(signature, own.signature)
                found[signature.name] = own
        if missing:
            known = [operator.name for operator in self._operators.values()]
            likely = suggest(missing[0].partition("(")[0], known)
            raise MissingOperatorError(
                f"the index needs operators that are not registered: {', '.join(missing)}",
                hint=f'did you mean "{likely}"?'
                if likely
                else "import the module that registers them, or name it: operators=['module']; "
                "operators=None opens an index for inspection only",
            )
        return found


REGISTRY: Final = Registry()
ATTRIBUTE: Final = "__tamis_operator__"


def operator(  # noqa: PLR0913 - all that the engine should know about an operator
    signature: str,
    *,
    reads: Iterable[str] | None = None,
    cost: float | None = None,
    pure: bool = True,
    timeout: float | None = TIMEOUT,
    batch: bool = False,
    check: Callable[..., Any] | None = None,
    registry: Registry = REGISTRY,
) -> Callable[[Function], Function]:
    """Register the decorated function as an operator that expressions can call.

    `reads` names the attributes that it gets, each with an optional type ("lat double"). A `pure`
    operator is called once for equal attributes. `cost` is in seconds per call; without it the cost
    is measured. A call that takes longer than `timeout` seconds is abandoned, and undefined.
    `check` gets the constants of each call in a subscription and raises an error if they are
    invalid: the subscription is then rejected.
    """
    for what, seconds, most in (("cost", cost, None), ("timeout", timeout, TIMEOUT_MAX)):
        if seconds is not None and not _is_duration(seconds, most):
            raise SchemaError(
                f"operator {signature}: {what} is {seconds!r}; allowed: seconds above 0, or None"
            )
    for what, flag in (("pure", pure), ("batch", batch)):
        if not isinstance(flag, bool):
            raise SchemaError(f"operator {signature}: {what} is {flag!r}; allowed: True, False")
    declared = parse_signature(signature, reads, check)

    def register(function: Function) -> Function:
        _expect_callable(function, declared, "the events" if batch else "the event")
        if check is not None:
            _expect_callable(check, declared, None)
        own = Operator(declared, function, cost, pure, timeout, batch)
        registry.add(own)
        try:
            setattr(function, ATTRIBUTE, own)
        except (AttributeError, TypeError):  # methods and builtins take no attributes
            named: Any = partial(function)
            setattr(named, ATTRIBUTE, own)
            return cast("Function", named)
        return function

    return register


def module_names(modules: str | Iterable[str]) -> tuple[str, ...]:
    """The modules, given as one name or several."""
    return (modules,) if isinstance(modules, str) else tuple(modules)


def with_registered(schema: Schema, registry: Registry = REGISTRY) -> Schema:
    """The schema with all registered operators added; those of the schema take precedence."""
    more = [own for own in registry.signatures if schema.operator(own.name) is None]
    return schema.with_operators((*schema.operators, *more)) if more else schema


def with_checks(
    schema: Schema, modules: Iterable[str] = (), registry: Registry = REGISTRY
) -> Schema:
    """The schema with the checks of constants registered in this process; without a check for an
    operator that has none.
    """
    with suppress(InputError):
        registry.load(modules)

    def add(signature: Signature) -> Signature:
        own = registry.get(signature.name)
        is_same = own is not None and own.signature.parameters == signature.parameters
        return replace(signature, check=own.signature.check) if own and is_same else signature

    return schema.with_operators(map(add, schema.operators)) if schema.operators else schema


def _expect_reads(stored: Signature, own: Signature) -> None:
    """Raise an error if the code reads more than the index was built for: Spark would not pass
    it.
    """
    if stored.reads is None:
        return
    known = {read.path for read in stored.reads}
    if own.reads is None or any(read.path not in known for read in own.reads):
        raise MissingOperatorError(
            f"the index calls {stored}, {stored.kind}; the operator registered is {own.kind}",
            hint="rebuild the index: the operator reads other attributes now",
        )


def _is_duration(seconds: Any, most: float | None) -> bool:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return False
    return math.isfinite(seconds) and 0 < seconds <= (seconds if most is None else most)


def _expect_callable(function: Any, declared: Signature, events: str | None) -> None:
    """Raise an error if the function cannot be called with the constants of a call, after `events`
    if it takes them.
    """
    if not callable(function):
        raise SchemaError(f"operator {declared}: {function!r} is not a function")
    n_constants = len(declared.parameters) - len(declared.bound)
    try:
        inspect.signature(function).bind(*[None] * (n_constants + (events is not None)))
    except ValueError:
        return  # some builtins have no signature
    except TypeError as error:
        constants = f"{n_constants} constant{'s' * (n_constants != 1)}" if n_constants else ""
        given = " and ".join(filter(None, (events, constants))) or "nothing"
        which = "its function" if events else "its check"
        raise SchemaError(
            f"operator {declared}: {which} is called with {given}"
            f"{' alone' if events and not constants else ''}: {error}",
            hint=(
                "the function returns the values of places with a question mark; they are not "
                "passed to it"
            ),
        ) from None


def _place_of(operator: Operator) -> str:
    function = operator.function
    module = getattr(function, "__module__", "?")
    return f"{module}:{getattr(function, '__qualname__', repr(function))}"


def _is_same(one: Operator, other: Operator) -> bool:
    """Whether both are the same code, perhaps loaded twice, not bound to another object and not
    another closure.
    """
    if one.function is other.function:
        return True
    return _place_of(one) == _place_of(other) and _state_of(one) == _state_of(other)


def _state_of(operator: Operator) -> list[Any]:
    function = operator.function
    cells = getattr(function, "__closure__", None) or ()
    owner = getattr(function, "__self__", None)
    is_plain = owner is None or inspect.ismodule(owner)
    # Objects define their equality; most are equal only to themselves.
    state = [None if is_plain else owner, *(cell.cell_contents for cell in cells)]
    is_local = "<" in getattr(function, "__qualname__", "")
    return [*state, getattr(function, "__code__", None)] if is_local else state
