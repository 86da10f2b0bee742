"""What are the words of a document? Analysers, by name.

    >>> from tamis.text import get_analyser
    >>> get_analyser("english").words("The Hashing of Houses")
    ['', 'hash', '', 'hous']

`analysers` says what each name stands for; `finder` finds the words of an index in many texts at
once.
"""

from tamis.text.analysers import ANALYSERS, ANY_WORD, DEFAULT_ANALYSER, Analyser, get_analyser

__all__ = ["ANALYSERS", "ANY_WORD", "DEFAULT_ANALYSER", "Analyser", "get_analyser"]
