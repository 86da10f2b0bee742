"""How is a document split into words? Analysers, by name.

    >>> from tamis.text import get_analyser
    >>> get_analyser("english").words("The Hashing of Houses")
    ['', 'hash', '', 'hous']

`analysers` describes each of them; `finder` finds the words of an index in many texts at once.
"""

from tamis.text.analysers import (
    ANALYSERS,
    ANY_WORD,
    DEFAULT_ANALYSER,
    LANGUAGE_CODES,
    Analyser,
    get_analyser,
    register_analyser,
)

__all__ = [
    "ANALYSERS",
    "ANY_WORD",
    "DEFAULT_ANALYSER",
    "LANGUAGE_CODES",
    "Analyser",
    "get_analyser",
    "register_analyser",
]
