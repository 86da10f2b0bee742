"""Builds an index from subscriptions in any supported form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamis.arguments import expect_count
from tamis.errors import InputError
from tamis.input.schemas import add_definitions, check_definitions, open_schema
from tamis.input.subscriptions import name_ids, open_subscriptions
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.logic.evaluate import Missing
from tamis.match.index import Index
from tamis.match.operators import read_registry
from tamis.match.reports import report_build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.index.build import Progress
    from tamis.index.frequencies import Frequencies


def build(  # noqa: PLR0913 - all that decides what the index is
    subscriptions: Any,
    schema: Any = None,
    *,
    missing: str | Missing = Missing.UNDEFINED,
    limits: Limits = DEFAULT_LIMITS,
    tags: Mapping[str, Sequence[str]] | None = None,
    weights: Mapping[str, float] | None = None,
    sample: Any = None,
    frequencies: Frequencies | None = None,
    processes: int = 1,
    operators: Any = (),
    definitions: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Index:
    """An index of subscriptions, as `tamis.build` takes them.

    `index.rejects` lists the subscriptions that are left out, with the reasons.

    `tags` gives subscriptions words by which `Index.tagged` finds them, `weights` a number by which
    `Index.match_top` orders matches. From a `sample` of events
    it is learned which tests seldom hold: single events are matched faster by it. `frequencies` is
    what `Index.term_frequencies` counted, and batches of texts are. `definitions` are conditions by
    name, which expressions refer to as `@name`. `progress` is called with how
    many subscriptions are read, and how many there are.
    """
    # Lazy: matching needs none of its modules, which are a third of all.
    from tamis.index.build import build_contents

    if missing not in tuple(Missing):
        raise InputError(f"missing is {missing!r}; allowed: {', '.join(Missing)}")
    processes = expect_count(processes, "processes")
    if not isinstance(tags, Mapping | None):
        raise InputError(
            f"tags are {tags!r}; a list of tags for each id is expected",
            hint='write {"some id": ["news"]}',
        )
    if not isinstance(weights, Mapping | None):
        raise InputError(
            f"weights are {weights!r}; a number for each id is expected",
            hint='write {"some id": 2.5}',
        )
    if not isinstance(limits, Limits):
        raise InputError(
            f"limits must be tamis.Limits, not {type(limits).__name__}",
            hint="write tamis.Limits(depth=20)",
        )
    tags, weights = name_ids(tags, "tags"), name_ids(weights, "weights")
    registry = read_registry(operators)
    given = open_subscriptions(subscriptions, tags)
    declared = None if schema is None else open_schema(schema)
    if definitions is not None:
        declared = add_definitions(declared, definitions)
    is_declared = declared is not None and not declared.is_open
    built = build_contents(
        given.pairs,
        declared,
        Missing(missing),
        limits,
        tags=given.details.tags,
        validity=given.details.validity,
        attributes=given.details.attributes,
        weights=weights,
        processes=processes,
        frequencies=frequencies,
        operators=() if registry is None else registry.signatures,
        progress=progress,
    )
    if definitions is not None:
        signatures = () if registry is None else registry.signatures
        check_definitions(built.contents.schema.with_operators(signatures), limits)
    if given.details.n_expired:
        built.contents.provenance["expired"] = given.details.n_expired
    index = Index(built.contents, rejects=built.rejects, registry=registry)
    report_build(index, is_declared=is_declared, named={"tags": tags, "weights": weights})
    if sample is None:
        return index
    from tamis.match.learn import learn

    learned = learn(built.contents, index.encode(sample))
    return Index(learned, rejects=built.rejects, registry=registry)
