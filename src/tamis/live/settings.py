"""How a live set reads expressions: its types, limits and operators."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tamis.errors import InputError
from tamis.index.build import build_contents, collect_votes
from tamis.index.uses import count_uses, used_paths
from tamis.language.lookalikes import describe_use
from tamis.language.names import print_path
from tamis.language.schema import Schema
from tamis.language.types import ANY
from tamis.live.deciders import name_deciders
from tamis.versions.schemas import extend_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.index.build import Built
    from tamis.index.contents import Contents
    from tamis.language.limits import Limits
    from tamis.language.lookalikes import Use
    from tamis.language.schema import Path
    from tamis.language.signatures import Signature
    from tamis.logic.evaluate import Missing
    from tamis.subscriptions import Subscription


@dataclass(frozen=True)
class Settings:
    """What decides how expressions are read. Types are declared, or inferred and then fixed."""

    schema: Schema  # all known attributes
    is_declared: bool
    missing: Missing
    limits: Limits
    operators: tuple[Signature, ...] = ()
    # The subscription that fixed the type of each attribute; without those of a declared schema.
    deciders: Mapping[Path, str] = field(default_factory=dict)

    def build(self, rows: Sequence[Subscription]) -> Built:
        """The part that has these subscriptions; those that are wrong are rejects."""
        schema = self._schema_for(rows)
        built = build_contents(
            [(row.id, row.expression) for row in rows],
            schema,
            self.missing,
            self.limits,
            tags={row.id: row.tags for row in rows if row.tags},
            validity={
                row.id: (row.valid_from, row.valid_until)
                for row in rows
                if row.valid_from or row.valid_until
            },
            attributes={row.id: own for row in rows if (own := _attributes_of(row))},
            operators=self.operators,
        )
        if built.rejects and not self.is_declared:
            name_deciders(built, self.deciders, self.limits)
        return built

    def _schema_for(self, rows: Sequence[Subscription]) -> Schema:
        if self.is_declared:
            return self.schema
        found = collect_votes([row.expression for row in rows], self.limits).elect()
        return extend_schema(self.schema, found)

    def with_part(self, contents: Contents) -> Settings:
        """The settings with the types that the subscriptions of a part fix."""
        if self.is_declared:
            return self
        used = [*used_paths(contents), *contents.plan.paths]
        new = [path for path in dict.fromkeys(used) if self.schema.get(path) in (None, ANY)]
        if not new:
            return self
        schema = extend_schema(self.schema, Schema({path: contents.schema[path] for path in new}))
        named = {
            path: use.subscription_id
            for path, use in count_uses(contents, new).items()
            if use.subscription_id is not None
        }
        return replace(self, schema=schema, deciders={**self.deciders, **named})

    def declare(self, schema: Schema, uses: Mapping[Path, Use]) -> Settings:
        """The settings with a declared schema; raises an `InputError` if it contradicts what the
        subscriptions use.
        """
        for path, use in uses.items():
            known, declared = self.schema.get(path), schema.get(path)
            if declared == known or (known == ANY and declared is not None):
                continue
            what = "does not have it" if declared is None else f"declares it as {declared}"
            raise InputError(
                f"attribute {print_path(path)} is used as {known} by {describe_use(use)}; "
                f"the schema {what}",
                hint="declare what the subscriptions use, or replace them first",
            )
        return replace(self, schema=schema, is_declared=True, deciders={})


def _attributes_of(row: Subscription) -> dict[str, Any]:
    """The details of a subscription for results."""
    return {"owner": row.owner, **row.attributes} if row.owner else dict(row.attributes)
