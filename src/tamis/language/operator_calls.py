"""Checks calls of operators: the number of arguments, and the type of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import TamisError, TypeCheckError
from tamis.language.ast import Literal, OperatorCall, Value, Variable
from tamis.language.fitting import fit_constant, refuse, with_article

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.signatures import Parameter, Signature


def check_call(
    node: OperatorCall, signature: Signature, type_variable: Callable[[Variable], Variable]
) -> OperatorCall:
    """The call with constants of the right types, and variables where the operator binds values."""
    n_needed, n_given = len(signature.parameters), len(node.arguments)
    if n_needed != n_given:
        raise TypeCheckError(
            "wrong-arity",
            f"{signature.name}() takes {n_needed} argument{'s' * (n_needed != 1)}, found {n_given}",
            span=node.span,
            hint=str(signature),
        )
    arguments = tuple(
        type_variable(_bound(value, parameter, signature))
        if isinstance(value, Variable)
        else _constant(value, parameter, signature)
        for value, parameter in zip(node.arguments, signature.parameters, strict=True)
    )
    checked = OperatorCall(signature.name, arguments, signature.bound, node.span)
    _ask_operator(checked, signature)
    return checked


def _bound(value: Variable, parameter: Parameter, signature: Signature) -> Variable:
    if not parameter.is_bound:
        raise TypeCheckError(
            "unbound-variable",
            f"{signature.name}() does not bind ?{value.name}: it needs a constant there",
            span=value.span,
            hint=f"{signature}: only a place with a question mark may have a variable",
        )
    return value


def _constant(value: Value, parameter: Parameter, signature: Signature) -> Literal:
    if not isinstance(value, Literal):
        refuse(
            f"an argument of {signature.name}() is a constant or a variable",
            value.span,
            hint="operators read the attributes of the event themselves",
        )
    fitted = fit_constant(value, parameter.type)
    # A decimal constant that is not an integer stays a decimal on integers.
    is_other = fitted is not None and fitted.type.name != parameter.type.name
    if fitted is None or (is_other and parameter.type.name != "number"):
        refuse(
            f"{with_article(value)} where {signature.name}() takes {parameter.type}",
            value.span,
            hint=str(signature),
        )
    return fitted


def _ask_operator(node: OperatorCall, signature: Signature) -> None:
    """Raise an error for constants that the operator rejects."""
    if signature.check is None:
        return
    constants = [
        value.value
        for value, parameter in zip(node.arguments, signature.parameters, strict=True)
        if isinstance(value, Literal) and not parameter.is_bound
    ]
    try:
        signature.check(*constants)
    except TamisError as error:
        message, hint = error.message, error.hint
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # any error raised by the operator's check
        message, hint = _spell(error), None
    else:
        return
    raise TypeCheckError(
        "bad-argument", f"{signature.name}() rejects it: {message}", span=node.span, hint=hint
    )


def _spell(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__
