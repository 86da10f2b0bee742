"""How often words occur in texts: measured on documents, or estimated from the queries.

Irmak orders terms by the number of queries that contain them (§3.3), since frequent search terms
are also frequent in texts. Measured shares of documents are better; `Index.term_frequencies`
measures them.
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
# The assumed share of the most used word if nothing was measured, and of a word never seen.
_MOST: Final = 0.5
_UNSEEN: Final = 1e-6
_NUMBERS: Final = (int, float, np.integer, np.floating)
_ALLOWED: Final = "use Index.term_frequencies, or write {'body': {'niger': 0.5, 'uranium': 1.0}}"


def check_frequencies(frequencies: Any) -> None:
    """Raise an error unless there is a share of documents for each term of each attribute."""
    if not isinstance(frequencies, Mapping):
        raise InputError(f"the frequencies are {frequencies!r:.60}", hint=_ALLOWED)
    for attribute, shares in frequencies.items():
        if not isinstance(shares, Mapping):
            raise InputError(f"the frequencies of {attribute} are {shares!r:.60}", hint=_ALLOWED)
        for term, share in shares.items():
            if not isinstance(share, _NUMBERS) or not 0 <= share <= 1:
                raise InputError(
                    f"the frequency of {term!r:.60} in {attribute} is {share!r:.60}; allowed: 0 "
                    "to 1, a share of documents",
                    hint=_ALLOWED,
                )


def estimate_term_rates(finished: Finished, frequencies: Frequencies) -> np.ndarray:
    """The estimated rate of each leaf that is a word or a phrase; NaN for other leaves."""
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
    # For words without a count, and among those never seen, the queries decide.
    counted = np.maximum(measured, _UNSEEN * shares)
    return np.clip(np.where(np.isnan(measured), _MOST * shares, counted), 0, 1)


def term_leaves(finished: Finished, column: int) -> np.ndarray:
    """The leaf of each term of a text column."""
    first = int(finished.leaves.column_codes[column])
    codes = first + 1 + 2 * np.arange(finished.columns[column].n_constants)
    return finished.leaves.posting_leaves[finished.leaves.posting_starts[codes]]
