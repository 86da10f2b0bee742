"""Pages of lists: every list has a cursor and a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from sqlalchemy import select

from tamis.arguments import expect_count
from tamis.broker.checking import expect_text
from tamis.errors import InputError
from tamis.subscriptions.checking import is_storable

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Column, Select, Table

    from tamis.broker.mailbox import Mailbox
    from tamis.subscriptions import SubscriptionStore

PAGE_SIZE: Final = 100
MOST_ROWS: Final = 10_000  # of one page

_T = TypeVar("_T")


class Page(NamedTuple, Generic[_T]):
    """One page of a list."""

    items: list[_T]
    cursor: Any  # `after` of the next page; None for the last page


class Cut(NamedTuple):
    """Which page of a list is asked for."""

    by: Column[Any]  # the order; unique within the list
    after: Any  # the cursor of the page before; None for the first page
    limit: int
    is_descending: bool = False


def select_owned(table: Table, mailbox: Mailbox | None, owner: str | None) -> Select[Any]:
    """The rows of a table that belong to a mailbox, and to an owner, if these are given."""
    query = select(table)
    if mailbox is not None:
        query = query.where(table.c.mailbox == str(mailbox))
    if owner is not None:
        query = query.where(table.c.owner == expect_text(owner, "owner"))
    return query


def read_page(
    store: SubscriptionStore, query: Select[Any], cut: Cut, convert: Callable[[Any], _T]
) -> Page[_T]:
    """A page of a query.

    An item that exists from the first page to the last is on exactly one page.
    """
    by, after = cut.by, cut.after
    limit = min(expect_count(cut.limit, "limit"), MOST_ROWS)
    if after is not None:
        _expect_cursor(by, after)
        query = query.where(by < after if cut.is_descending else by > after)
    query = query.order_by(by.desc() if cut.is_descending else by).limit(limit + 1)
    with store.read() as connection:
        rows = connection.execute(query).all()
    cursor = rows[limit - 1]._mapping[by] if len(rows) > limit else None
    return Page([convert(row) for row in rows[:limit]], cursor)


def _expect_cursor(by: Column[Any], after: Any) -> None:
    is_number = isinstance(after, int) and not isinstance(after, bool) and abs(after) < 2**63
    is_text = isinstance(after, str) and is_storable(after)
    if not (is_text if by.type.python_type is str else is_number):
        raise InputError(
            f"the cursor is {after!r:.100}; it is not one of this list",
            hint="pass on the cursor of the page before",
        )
