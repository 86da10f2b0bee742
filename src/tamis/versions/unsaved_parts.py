"""A few rules as an index without files: each process builds it from the rules."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tamis.index.build import build_contents, collect_votes
from tamis.logic.evaluate import Missing
from tamis.operators.registry import REGISTRY, with_checks, with_registered
from tamis.versions.manifest import BASE, Part
from tamis.versions.part_files import describe_part
from tamis.versions.part_set import PartSet
from tamis.versions.schemas import extend_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.index.build import Built
    from tamis.index.contents import Contents
    from tamis.language.limits import Limits
    from tamis.language.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedParts(PartSet):
    """One part without files: each process builds it when it needs it."""

    rules: tuple[tuple[str, str], ...]
    schema: Schema
    limits: Limits

    def map_part(self, part: Part) -> Contents:
        """The arrays of the rules, built now."""
        return self.build().contents

    def build(self) -> Built:
        """The index of the rules."""
        schema = with_checks(self.schema, self.operators)
        return build_contents(self.rules, schema, Missing(self.version.missing), self.limits)


def make_unsaved_parts(like: PartSet, rules: Mapping[str, str], limits: Limits) -> UnsavedParts:
    """The rules under the schema of a version; the first invalid rule raises its error."""
    found = collect_votes(list(rules.values()), limits).elect()
    known = with_registered(found, REGISTRY.load(like.operators))
    schema = extend_schema(like.version.typed_schema(), known)
    pairs = tuple(rules.items())
    digest = hashlib.sha256(repr((pairs, schema.to_json(), limits)).encode()).hexdigest()
    made = UnsavedParts(
        like.storage,
        replace(like.version, parts=()),
        (),
        operators=like.operators,
        rules=pairs,
        schema=schema,
        limits=limits,
    )
    built = made.build()
    if built.rejects:
        raise built.rejects[0]
    own = {"id": digest, "kind": BASE, "digest": digest, "checksums": {}}
    part = describe_part(built.contents, **own, n_rejects=0, n_bytes=0)
    version = replace(made.version, parts=(part,), schema=schema.to_json())
    return replace(made, version=version, parts=(part,))
