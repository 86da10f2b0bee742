"""A stable 128-bit name for each canonical node, equal on every machine (A-Tree §4.2.1).

The paper adds and multiplies child ids, which collides easily; hashing the sorted digests of the
children is also independent of their order, and does not collide.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from tamis.language.ast import (
    AtLeast,
    Condition,
    IsNull,
    Not,
    attributes,
    children,
)
from tamis.language.printer import print_expression

DIGEST_BYTES = 16


@lru_cache(maxsize=65_536)
def digest(node: Condition) -> bytes:
    """The content digest of a canonical node, independent of the order of its operands."""
    below = children(node)
    if not below or isinstance(node, Not):
        return _hash(_spell_leaf(node))
    k = node.k if isinstance(node, AtLeast) else 0
    heading = f"{type(node).__name__}/{k}/".encode()
    return _hash(heading + b"".join(sorted(map(digest, below))))


def _spell_leaf(node: Condition) -> bytes:
    """The leaf's text and the types of its attributes: `a < b` on strings is not `a < b` on
    numbers.
    """
    types = () if isinstance(node, IsNull) else (str(x.type) for x in attributes(node))
    return "\0".join((print_expression(node), *types)).encode()


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()
