"""How a live set reads expressions: its types, limits and operators."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.errors import InputError
from tamis.index.build import build_contents, collect_votes
from tamis.language.lookalikes import describe_use
from tamis.language.names import print_path
from tamis.language.schema import Schema
from tamis.language.types import ANY
from tamis.live.deciders import find_deciders, name_deciders
from tamis.versions.schemas import extend_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.index.build import Built
    from tamis.index.contents import Contents
    from tamis.language.limits import Limits
    from tamis.language.lookalikes import Use
    from tamis.language.schema import Path
    from tamis.language.signatures import Signature
    from tamis.language.types import Type
    from tamis.logic.evaluate import Missing
    from tamis.subscriptions import Subscription


@dataclass(frozen=True)
class ExpectedTypes:
    """The types that attributes get when the first subscription uses them, whatever it implies."""

    schema: Schema
    origin: str  # where events have them, for messages


NOTHING_EXPECTED: Final = ExpectedTypes(Schema({}), "")


@dataclass(frozen=True)
class Settings:
    """What decides how expressions are read. Types are declared; or expected or inferred, and then
    fixed.
    """

    schema: Schema  # all known attributes
    is_declared: bool
    missing: Missing
    limits: Limits
    operators: tuple[Signature, ...] = ()
    # The subscription that fixed the type of each attribute; without those of a declared schema.
    deciders: Mapping[Path, str] = field(default_factory=dict)
    expected: ExpectedTypes = NOTHING_EXPECTED  # not used with a declared schema

    def build(self, rows: Sequence[Subscription]) -> Built:
        """The part that has these subscriptions; those that are wrong are rejects."""
        schema = self.schema_for([row.expression for row in rows])
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
            numbers=np.array([row.created for row in rows], dtype=np.int64),
            operators=self.operators,
        )
        if built.rejects and not self.is_declared:
            name_deciders(built, self.deciders, self.expected, self.limits)
        return built

    def schema_for(self, expressions: list[str]) -> Schema:
        """The types by which expressions are read: the known ones, then those that they imply."""
        if self.is_declared:
            return self.schema
        found = collect_votes(expressions, self.limits).elect()
        expected = self.expected.schema
        used = Schema({path: expected[path] for path in found if expected.get(path) is not None})
        return extend_schema(extend_schema(self.schema, used), found)

    def find_type(self, path: Path) -> Type | None:
        """The type of an attribute by which the next expression is read, unless it is inferred."""
        known = self.schema.get(path)
        if self.is_declared or known not in (None, ANY):
            return known
        return self.expected.schema.get(path)

    def expect(self, schema: Schema, origin: str) -> Settings:
        """The settings with expected types. An attribute whose type is fixed keeps that."""
        if self.is_declared:
            return self
        free = {path: schema[path] for path in schema if self.schema.get(path) in (None, ANY)}
        known = self.expected.schema
        same = {path: known[path] for path in known if path not in free}
        return replace(self, expected=ExpectedTypes(Schema({**same, **free}), origin))

    def with_part(self, contents: Contents) -> Settings:
        """The settings with the types that the subscriptions of a part fix.

        Also those of attributes that no test needs, as in `a = 1 AND a = 2`: the expression must
        be readable whenever its part is built again.
        """
        if self.is_declared:
            return self
        found = contents.schema
        new = [path for path in found if self.schema.get(path) in (None, ANY)]
        new = [path for path in new if self.schema.get(path) != found[path]]
        if not new:
            return self
        schema = extend_schema(self.schema, Schema({path: found[path] for path in new}))
        named = find_deciders(contents, new, self.limits)
        return replace(self, schema=schema, deciders={**self.deciders, **named})

    def with_types(self, known: Settings) -> Settings:
        """The settings with types that are known already: those decide."""
        if self.is_declared:
            return self
        return replace(
            self,
            schema=extend_schema(known.schema, self.schema),
            deciders={**self.deciders, **known.deciders},
            expected=known.expected,
        )

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
