"""Warnings about suspicious subscriptions of an index, which are not errors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import BuildError, RejectWarning, suggest, warn
from tamis.index.attributes import parse_attributes
from tamis.index.stored_texts import all_texts
from tamis.index.uses import count_uses, used_paths
from tamis.language.lookalikes import (
    describe_lookalikes,
    find_alike,
    find_likeness,
    find_lookalikes,
    fold,
)
from tamis.language.schema import Schema
from tamis.language.weights import WEIGHT
from tamis.match.switches import Switches, is_switch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.errors import ExpressionError
    from tamis.index.contents import Contents
    from tamis.language.lookalikes import Lookalike
    from tamis.match.index import Index

SHOWN: Final = 3
SAMPLE: Final = 100  # subscriptions that are checked
COMPARED: Final = re.compile(r"\S\s*[=<>]|\b(?:IN|LIKE|AND|OR|IS)\b")
SEVERAL: Final = re.compile(r"\w\s*[;|]\s*\w")
READ: Final = ("expression", "subscription_id", "tags", "valid_from", "valid_until", WEIGHT)
NOT_WEIGHT: Final = ("eight", "freight", "height")  # similar words
LIMITS: Final = {  # other names of valid_from and valid_until
    **dict.fromkeys(("startdate", "startsat", "validsince"), "valid_from"),
    **dict.fromkeys(("enddate", "endsat", "expires", "expiresat", "expiry"), "valid_until"),
    **dict.fromkeys(("expirydate", "validtill", "validto"), "valid_until"),
}


def report_build(
    index: Index, *, is_declared: bool, named: Mapping[str, Mapping[str, Any] | None]
) -> None:
    """Warn of what is not in the index, of attributes that look misspelt, and of tags and weights
    that no subscription gets.

    `named` has, by argument, what was given for ids of subscriptions. In a declared schema all
    names are meant: what it does not have is a reject already.
    """
    if index.rejects and len(index):  # without any, `refuse_useless` or the caller reports them
        warn(_describe_rejects(index), RejectWarning)
    if n_expired := index.contents.provenance.get("expired"):
        warn(describe_expired(n_expired), RejectWarning)
    contents = index.contents
    columns = describe_unused_columns(contents.attribute_names, find_switches(contents))
    for note in (
        columns,
        describe_separators(contents.tags.flatten().to_pylist()),
        describe_swapped(contents),
    ):
        if note is not None:
            warn(note)
    found = [] if is_declared else lookalikes(index.contents)
    if found:
        warn(describe_lookalikes(found))
    refused = {reject.subscription_id for reject in index.rejects}
    for argument, given in named.items():
        unknown = [one for one in given or () if one not in index and one not in refused]
        if unknown:
            warn(_describe_unknown(unknown, argument, index))


def refuse_useless(index: Index) -> None:
    """Raise a `BuildError` if there were subscriptions and each of them is a reject."""
    if len(index) or not index.rejects:
        return
    n, first = len(index.rejects), index.rejects[0]
    what = f"all {n:,} subscriptions were rejected, for example {_describe_reject(first)}"
    if n == 1:
        picture = first.picture()
        what = f"the only subscription was rejected: {_describe_reject(first)}"
        what += f"\n{picture}" if picture else ""
    raise BuildError(f"no index was built: {what}", index.rejects)


def report_unused(index: Index, schema: Any) -> None:
    """Warn of declared attributes that no subscription uses.

    An Arrow or Spark schema describes events, which may have more than subscriptions ask for.
    """
    if isinstance(schema, str | os.PathLike | Mapping | Schema) and index.unused_attributes:
        warn(describe_unused(index.unused_attributes))


def lookalikes(contents: Contents) -> list[Lookalike]:
    """The attributes of an index that are probably misspelt; uses are counted only for similar
    names.
    """
    alike = dict.fromkeys(chain.from_iterable(find_alike(used_paths(contents))))
    return find_lookalikes(count_uses(contents, alike)) if alike else []


def find_switches(contents: Contents) -> Switches:
    """The columns by which subscriptions of an index seem to be switched off."""
    switches = Switches()
    if any(map(is_switch, contents.attribute_names)) and contents.attributes is not None:
        for text in all_texts(contents.attributes).to_pylist():
            switches.add_all(parse_attributes(text).items())
    return switches


def describe_unused_columns(names: Iterable[str], switches: Switches) -> str | None:
    """A note on columns of subscriptions that are stored but have no effect."""
    found = []
    names = tuple(names)
    for name in names:
        likely = find_likeness((name,), ((read,) for read in READ))
        if likely == (WEIGHT,) and (WEIGHT in names or fold(name) in NOT_WEIGHT):
            continue
        meant = likely[0] if likely is not None else LIMITS.get(fold(name))
        if meant is not None:
            found.append(f"{name} looks like {meant}: rename it if that is meant")
        elif name == "id":
            found.append("id is not the id, which is in subscription_id")
    found += switches.describe()
    if not found:
        return None
    what = "a column is" if len(found) == 1 else f"{len(found):,} columns are"
    return f"{what} stored with the subscriptions and not used: {'; '.join(found)}"


def describe_swapped(contents: Contents) -> str | None:
    """A note on expressions that are words, with ids that look like expressions."""
    texts, ids = all_texts(contents.texts)[:SAMPLE].to_pylist(), contents.ids[:SAMPLE].to_pylist()
    if not texts or not all(map(str.isidentifier, texts)) or not all(map(COMPARED.search, ids)):
        return None
    return (
        f'the ids look like expressions and the expressions like ids, such as "{ids[0]}" and '
        f'"{texts[0]}"; subscriptions are {{id: expression}}'
    )


def describe_separators(tags: Iterable[str]) -> str | None:
    """A note on tags that seem to be several in one."""
    odd = [tag for tag in dict.fromkeys(tags) if SEVERAL.search(tag)]
    if not odd:
        return None
    what = "a tag seems" if len(odd) == 1 else f"{len(odd):,} tags seem"
    return f'{what} to be several in one: "{odd[0]}". Separate tags by commas, or write a list'


def describe_unused(names: Sequence[str]) -> str:
    """A note on attributes of a schema that no subscription uses."""
    shown = ", ".join(names[:SHOWN]) + (" and others" if len(names) > SHOWN else "")
    what = f"{shown}, which the schema declares"
    if len(names) > 1:
        what = f"{len(names):,} attributes that the schema declares: {shown}"
    return (
        f"no subscription in the index uses {what}. Correct the name in the schema or remove it, "
        "unless this is intended"
    )


def describe_expired(n_expired: int) -> str:
    """One sentence about subscriptions that will never be valid again."""
    what = "1 subscription has" if n_expired == 1 else f"{n_expired:,} subscriptions have"
    return f"{what} expired (valid_until is past) and {'is' if n_expired == 1 else 'are'} left out"


def _describe_rejects(index: Index) -> str:
    n = len(index.rejects)
    what = "1 subscription was" if n == 1 else f"{n:,} subscriptions were"
    first = _describe_reject(index.rejects[0])
    return (
        f"{what} rejected and {'is' if n == 1 else 'are'} not in the index, for example "
        f"{first}; index.rejects lists {'it' if n == 1 else 'them'}"
    )


def _describe_reject(reject: ExpressionError) -> str:
    own = "" if reject.subscription_id is None else f'subscription "{reject.subscription_id}": '
    return f"{own}{reject.message}"


def _describe_unknown(unknown: list[Any], argument: str, index: Index) -> str:
    likely = suggest(str(unknown[0]), index.ids[:10_000].to_pylist())
    n = len(unknown)
    what = f"an id in {argument} belongs" if n == 1 else f"{n:,} ids in {argument} belong"
    hint = f'; did you mean "{likely}"?' if likely else "; correct or remove it"
    return f'{what} to no subscription: {"such as " * (n > 1)}"{unknown[0]}"{hint}'
