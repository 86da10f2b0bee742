"""Analysers of users: their own stop words and stems.

A process that Tamis starts, and a command of the shell, imports the modules that the environment
variable TAMIS_ANALYSERS names when it meets the name of an analyser that it does not know.
"""

from __future__ import annotations

import os
import pickle
import re
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tamis.errors import SchemaError
from tamis.text.segment import segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

VARIABLE: Final = "TAMIS_ANALYSERS"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Definition:
    """What a user has registered."""

    name: str
    like: str  # an analyser of Tamis: the words, their folded form, and what is not given below
    stop_words: tuple[str, ...] | None  # None: those of `like`
    stem: Callable[[str], str] | None  # None: as `like`
    version: str  # of the stems

    @property
    def digest(self) -> str:
        """A short name for everything that an index depends on."""
        content = repr((self.like, self.stop_words, self.stem is not None, self.version))
        return blake2b(content.encode(), digest_size=8).hexdigest()


_DEFINITIONS: Final[dict[str, Definition]] = {}


def define(
    name: str,
    like: str,
    stop_words: Iterable[str] | None,
    stem: Callable[[str], str] | None,
    version: str,
) -> Definition:
    """The definition, if it is valid."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SchemaError(
            f"the name of an analyser is {name!r:.60}",
            hint="allowed: small letters, digits and _, as in medical_english",
        )
    words = None if stop_words is None else _read_stop_words(name, stop_words)
    if stem is not None:
        _check_stem(name, stem, version)
    return Definition(name, like, words, stem, version)


def _read_stop_words(name: str, stop_words: Iterable[str]) -> tuple[str, ...]:
    words = stop_words.split() if isinstance(stop_words, str) else list(stop_words)
    for word in words:
        if not isinstance(word, str) or [*segment(word)] != [word]:
            raise SchemaError(
                f'analyser "{name}": {word!r:.60} is not a stop word',
                hint="a stop word is one word of a text; e-mail, for example, is two",
            )
    return tuple(sorted({*words}))


def _check_stem(name: str, stem: Callable[[str], str], version: str) -> None:
    try:
        pickle.dumps(stem)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise SchemaError(
            f'analyser "{name}": other processes cannot import {stem!r:.60}',
            hint="define the function at the top level of a module",
        ) from None
    if not version:
        raise SchemaError(
            f'analyser "{name}" has its own stems, but no version',
            hint="give a version, and another one when a stem changes: version='1'",
        )


def add_definition(definition: Definition) -> None:
    """Register a definition; raises an error if the name has another one."""
    known = _DEFINITIONS.setdefault(definition.name, definition)
    if known != definition:
        raise SchemaError(
            f'an analyser "{definition.name}" is already registered with other words or stems',
            hint="choose another name: indexes may depend on the first one",
        )


def all_definitions() -> tuple[Definition, ...]:
    """All that is registered in this process, to be sent to others."""
    return tuple(_DEFINITIONS.values())


def add_definitions(definitions: Iterable[Definition]) -> None:
    """Register what another process has sent."""
    for definition in definitions:
        add_definition(definition)


def find_definition(name: str) -> Definition | None:
    """The definition of that name; imports the modules that the environment names if there is
    none.
    """
    if name not in _DEFINITIONS:
        for module in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
            _import(module)
    return _DEFINITIONS.get(name)


def registered_names() -> list[str]:
    """The names of all registered analysers."""
    return sorted(_DEFINITIONS)


def _import(module: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise SchemaError(
            f'{VARIABLE} names the module "{module}", which cannot be imported: {error}',
            hint="modules are looked for in the folders of PYTHONPATH",
        ) from None
