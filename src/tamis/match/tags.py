"""Warns about tags that no subscription has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import suggest, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

SHOWN: Final = 5


def report_tags(asked: Sequence[str], tags: pa.Array) -> None:
    """Warn about those that are not among the tags of the subscriptions."""
    known = [tag for tag in tags.unique().to_pylist() if tag is not None]
    unknown = [tag for tag in dict.fromkeys(asked) if tag not in known]
    if not unknown:
        return
    n = len(unknown)
    likely = suggest(unknown[0], known)
    hint = f'did you mean "{likely}"?' if likely else _describe_known(known)
    shown = f'the tag "{unknown[0]}"' if n == 1 else f'{n:,} of the tags, such as "{unknown[0]}"'
    warn(f"no subscription has {shown}; {hint}")


def _describe_known(known: list[str]) -> str:
    if not known:
        return "the index has no tags"
    return f"there are: {', '.join(known[:SHOWN])}" + (", …" if len(known) > SHOWN else "")
