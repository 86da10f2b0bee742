"""MinHash signatures of texts: how alike two stories are, from a few numbers each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from tamis.errors import InputError
from tamis.text import get_analyser

if TYPE_CHECKING:
    from collections.abc import Sequence

N_HASHES: Final = 128
# So many equal hashes: about half of all different runs of three words are in both texts.
LEAST_EQUAL: Final = N_HASHES // 2
TEXTS: Final = ("title", "body")
MOST_CHARACTERS: Final = 20_000  # of a story
_RUN: Final = 3
_SEED: Final = 1
_ANALYSER: Final = "standard"


def expect_library() -> None:
    """Raise an `InputError` if the library that makes signatures is not installed."""
    _import_library()


def sign(story: bytes | None) -> np.ndarray | None:
    """The signature of an event's JSON text; None if it has no words."""
    words = get_analyser(_ANALYSER).words(_read_text(story)[:MOST_CHARACTERS])
    if not words:
        return None
    n_runs = max(1, len(words) - _RUN + 1)
    hashes = _import_library()(num_perm=N_HASHES, seed=_SEED)
    hashes.update([" ".join(words[at : at + _RUN]) for at in range(n_runs)])
    return np.array(hashes.digest(), np.uint32)


def find_similar(signature: np.ndarray, others: Sequence[np.ndarray | None]) -> int | None:
    """The place of the first of the others that is similar; None if none is."""
    places = [place for place, own in enumerate(others) if own is not None]
    if not places:
        return None
    known = np.stack([own for own in others if own is not None])
    is_similar = (known == signature).sum(axis=1) >= LEAST_EQUAL
    first = int(is_similar.argmax())
    return places[first] if is_similar[first] else None


def _read_text(story: bytes | None) -> str:
    try:
        event = None if story is None else orjson.loads(story)
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(event, dict):
        return ""
    return "\n".join(own for name in TEXTS if isinstance(own := event.get(name), str))


def _import_library() -> Any:
    try:
        from rensa import RMinHash
    except ImportError:
        raise InputError(
            "similar stories are found with the package rensa, which is not installed",
            hint="pip install 'tamis[feeds]'",
        ) from None
    return RMinHash
