"""The codes of languages: those of ISO 639 that the registry of language tags (BCP 47) has.

They are in `languages.txt`; `eng=en` means that the registry has the shorter or newer code.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

# Undetermined, multiple, no language, another: nothing that a condition could ask for.
_NONE: Final = {"und": "", "mul": "", "zxx": "", "mis": ""}


def find_language(code: str) -> str | None:
    """The code of a language as tags have it, in small letters: "en" of "eng"; empty if it is the
    code of no certain language, None if there is no such code.
    """
    return _load_codes().get(code.lower())


@cache
def _load_codes() -> dict[str, str]:
    words = (files("tamis.feeds") / "languages.txt").read_text("ascii").split()
    pairs = (word.partition("=") for word in words)
    return {code: short or code for code, _, short in pairs} | _NONE
