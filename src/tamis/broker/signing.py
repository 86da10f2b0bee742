"""The secrets that webhooks are signed with. Several are valid while one replaces another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, delete, insert, or_, select, update

from tamis.broker.secrets import Secret, check_signing_secret, new_signing_secret
from tamis.broker.tables import SIGNING_SECRETS, take_numbers
from tamis.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_SECRETS: Final = 4  # each request has a signature for each of them


def make_secret(given: str | None) -> Secret:
    """The given secret, checked, or a random one."""
    return new_signing_secret() if given is None else check_signing_secret(given)


def add_secret(connection: Connection, webhook: int, secret: Secret, now: int) -> None:
    """Sign with a secret from now on."""
    row = {"number": take_numbers(connection), "webhook": webhook, "secret": secret.reveal()}
    connection.execute(insert(SIGNING_SECRETS), row | {"created": now, "valid_until": None})


def rotate_secret(
    connection: Connection, webhook: int, secret: Secret, now: int, overlap: int
) -> None:
    """Replace the secret; the one before it stays valid for some microseconds."""
    table = SIGNING_SECRETS.c
    is_over = and_(table.webhook == webhook, table.valid_until <= now)
    connection.execute(delete(SIGNING_SECRETS).where(is_over))
    if len(find_secrets(connection, webhook, now)) >= MOST_SECRETS:
        raise InputError(
            f"{MOST_SECRETS} signing secrets are valid at once; no more are allowed",
            hint="wait until one of them has ended, or rotate with a shorter overlap",
        )
    is_last = and_(table.webhook == webhook, table.valid_until.is_(None))
    connection.execute(update(SIGNING_SECRETS).where(is_last).values(valid_until=now + overlap))
    add_secret(connection, webhook, secret, now)


def find_secrets(connection: Connection, webhook: int, now: int) -> list[Secret]:
    """The valid secrets, the newest first."""
    table = SIGNING_SECRETS.c
    is_valid = or_(table.valid_until.is_(None), table.valid_until > now)
    query = select(table.secret).where(table.webhook == webhook, is_valid)
    found = connection.execute(query.order_by(table.number.desc())).scalars()
    return [Secret(text) for text in found]
