"""How often the words of texts are there: measured on documents, or guessed from the queries.

Irmak orders terms by how many queries have them (§3.3): what many search for, many write about.
Shares of documents that were counted are better, and `Index.term_frequencies` counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tamis.errors import InputError
from tamis.index.columns import TEXT
from tamis.language.names import print_path

if TYPE_CHECKING:
    from tamis.index.columns import Column
    from tamis.index.finish import Finished

Frequencies: TypeAlias = Mapping[str, Mapping[str, float]]  # attribute, term: share of documents
# What the most used word is taken for where nothing was counted, and a word that was never seen.
_MOST: Final = 0.5
_UNSEEN: Final = 1e-6
_NUMBERS: Final = (int, float, np.integer, np.floating)
_ALLOWED: Final = "what Index.term_frequencies counts: {'body': {'niger': 0.5, 'uranium': 1.0}}"


def check_frequencies(frequencies: Any) -> None:
    """Refuse what is no share of documents for each term of each attribute."""
    if not isinstance(frequencies, Mapping):
        raise InputError(f"the frequencies are {frequencies!r:.60}", hint=_ALLOWED)
    for attribute, shares in frequencies.items():
        if not isinstance(shares, Mapping):
            raise InputError(f"the frequencies of {attribute} are {shares!r:.60}", hint=_ALLOWED)
        for term, share in shares.items():
            if not isinstance(share, _NUMBERS) or not 0 <= share <= 1:
                raise InputError(
                    f"the frequency of {term!r:.60} in {attribute} is {share!r:.60}; "
                    "shares of documents go from 0 to 1",
                    hint=_ALLOWED,
                )


def estimate_term_rates(finished: Finished, frequencies: Frequencies) -> np.ndarray:
    """How often each leaf that is a word or a phrase is true; NaN for other leaves."""
    rates = np.full(finished.n_leaves, np.nan, dtype=np.float32)
    children = finished.nodes.children
    uses = np.bincount(children[children < finished.n_leaves], minlength=finished.n_leaves)
    for at, column in enumerate(finished.columns):
        if column.kind == TEXT:
            leaves = term_leaves(finished, at)
            shares = uses[leaves] / (uses[leaves].max(initial=0) + 1)
            known = frequencies.get(print_path(column.attributes[0].path))
            rates[leaves] = _MOST * shares if known is None else _measured(column, known, shares)
    return rates


def _measured(column: Column, known: Mapping[str, float], shares: np.ndarray) -> np.ndarray:
    measured = np.array(
        [known.get(term, np.nan) for term in column.constants or ()], dtype=np.float64
    )
    # For words that nobody counted, and among those that were never seen, the queries decide.
    counted = np.maximum(measured, _UNSEEN * shares)
    return np.clip(np.where(np.isnan(measured), _MOST * shares, counted), 0, 1)


def term_leaves(finished: Finished, column: int) -> np.ndarray:
    """The leaf of each term of a text column."""
    first = int(finished.leaves.column_codes[column])
    codes = first + 1 + 2 * np.arange(finished.columns[column].n_constants)
    return finished.leaves.posting_leaves[finished.leaves.posting_starts[codes]]
