"""How many things one owner may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from tamis.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Table


class TooManyError(InputError):
    """An owner has as many things of a kind as allowed."""

    def __init__(self, owner: str, kind: str, most: int) -> None:
        super().__init__(
            f'"{owner}" has {most:,} {kind}, which is the limit',
            hint="remove some, or ask an administrator",
        )
        self.kind = kind  # in the plural
        self.most = most


def expect_room(
    connection: Connection,
    table: Table,
    owner: str,
    most: int | None,
    *which: ColumnElement[bool],
) -> None:
    """Raise a `TooManyError` if the owner has `most` rows of a table already; None is no limit.

    It is called in the transaction that adds one more.
    """
    if most is None:
        return
    query = select(func.count()).select_from(table).where(table.c.owner == owner, *which)
    if connection.execute(query).scalar_one() >= most:
        raise TooManyError(owner, table.name.removeprefix("tamis_"), most)
