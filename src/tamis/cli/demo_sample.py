"""A larger sample for `tamis demo`: subscriptions and events like the small ones, drawn at random.

The seed is fixed, so they are the same in every run.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CATEGORIES: Final = (
    *("Sports", "NFL", "Finance", "Travel", "Music", "Science", "Food", "Cars", "Games", "Health"),
)
COUNTRIES: Final = ("FR", "DE", "US", "GB", "IT", "ES", "JP", "BR", "IN", "CA", "PL", "SE")
TAGS: Final = ("vip", "new", "mobile", "returning", "trial", "partner")
TOOLS: Final = ("powershell", "certutil", "whoami", "curl", "bitsadmin", "rundll32", "net", "ssh")
FLAGS: Final = ("-enc", "-urlcache", "/all", "--insecure", "/transfer", "-nop", "user", "-R")
SERVICES: Final = tuple(f"service-{number}" for number in range(40))
USERS: Final = tuple(f"user-{number}" for number in range(400))


def draw_subscriptions(n: int, seed: int = 1) -> dict[str, str]:
    """This many subscriptions, by id: a third each for ads, security and alerts."""
    random = Random(seed)
    return {f"sub-{number}": random.choice(_EXPRESSIONS)(random) for number in range(n)}


def draw_events(n: int, seed: int = 2) -> list[dict[str, Any]]:
    """This many events: visits, logins, programs and payments."""
    random = Random(seed)
    return [random.choice(_EVENTS)(random) for _ in range(n)]


# ── expressions ─────────────────────────────────────────────────────────────────────────────


def _visitor(random: Random) -> str:
    youngest = random.randint(15, 60)
    wanted = ", ".join(f"'{name}'" for name in sorted(random.sample(CATEGORIES, 2)))
    return (
        f"gender = '{random.choice('FM')}' AND category IN ({wanted}) "
        f"AND age BETWEEN {youngest} AND {youngest + random.randint(2, 12)}"
    )


def _customer(random: Random) -> str:
    return (
        f"country = '{random.choice(COUNTRIES)}' AND NOT category = '{random.choice(CATEGORIES)}' "
        f"AND (array_contains(tags, '{random.choice(TAGS)}') OR age < {random.randint(15, 25)})"
    )


def _command(random: Random) -> str:
    return (
        f"host.os = '{random.choice(('windows', 'linux'))}' "
        f"AND command LIKE '%{random.choice(TOOLS)} {random.choice(FLAGS)}%' "
        f"AND user = '{random.choice(USERS)}'"
    )


def _login(random: Random) -> str:
    return (
        f"kind = 'login' AND (password_ok XOR token_ok) AND user = '{random.choice(USERS)}' "
        f"AND NOT startswith(ip, '{random.randint(10, 99)}.')"
    )


def _slow(random: Random) -> str:
    return (
        f"service = '{random.choice(SERVICES)}' "
        f"AND (latency_ms > {random.randint(100, 900)}.5 OR level >= {random.randint(3, 5)})"
    )


def _large(random: Random) -> str:
    return (
        f"amount >= {random.randint(1, 99)}000.00 AND service = '{random.choice(SERVICES)}' "
        f"AND at >= TIMESTAMP '2024-{random.randint(1, 12):02d}-01'"
    )


_EXPRESSIONS: Final[tuple[Callable[[Random], str], ...]] = (
    *(_visitor, _customer, _command, _login, _slow, _large),
)


# ── events ──────────────────────────────────────────────────────────────────────────────────


def _draw_visit(random: Random) -> dict[str, Any]:
    return {
        "kind": "visit",
        "gender": random.choice("FM"),
        "age": random.randint(15, 80),
        "country": random.choice(COUNTRIES),
        "category": random.choice(CATEGORIES),
        "tags": random.sample(TAGS, random.randint(0, 2)),
    }


def _draw_login(random: Random) -> dict[str, Any]:
    return {
        "kind": "login",
        "user": random.choice(USERS),
        "ip": f"{random.randint(10, 99)}.0.113.{random.randint(1, 254)}",
        "password_ok": random.random() < 0.9,
        "token_ok": random.random() < 0.9,
    }


def _draw_program(random: Random) -> dict[str, Any]:
    return {
        "kind": "exec",
        "user": random.choice(USERS),
        "command": f"{random.choice(TOOLS)} {random.choice(FLAGS)} {random.getrandbits(64):x}",
        "host": {"os": random.choice(("windows", "linux"))},
    }


def _draw_payment(random: Random) -> dict[str, Any]:
    return {
        "kind": "payment",
        "service": random.choice(SERVICES),
        "level": random.randint(0, 5),
        "latency_ms": random.uniform(20, 1000),
        "amount": random.randint(1, 12_000_000) / 100,
        "at": f"2024-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}T09:30:00Z",
    }


_EVENTS: Final[tuple[Callable[[Random], dict[str, Any]], ...]] = (
    *(_draw_visit, _draw_login, _draw_program, _draw_payment),
)
