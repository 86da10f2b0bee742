"""A version of an index: its parts, its schema, its counts. One JSON object on storage."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from operator import index
from typing import Any, Final

from tamis.errors import IndexFormatError, InputError
from tamis.language.lookalikes import Use
from tamis.language.schema import Schema
from tamis.places import VERSION
from tamis.versions.printing import format_table

FORMAT: Final = "tamis-index-version"
FORMAT_VERSION: Final = 2
PART_ID: Final = re.compile(r"[0-9a-f]{16}-[0-9a-f]{12}")
FILE_NAME: Final = re.compile(r"[a-z0-9-]+\.[a-z]+")
RESTORE: Final = "rebuild the index, or use an older version"
_NUMBER: Final = re.compile(r"([0-9]{1,18})")
COLUMNS: Final = ("version", "created_at", "subscriptions", "rejects", "parts", "bytes")


@dataclass(frozen=True, slots=True)
class PartKind:
    """How a part of this kind takes part in a version's answers."""

    hides_earlier: bool  # its subscriptions and its removed ids hide equal ids in earlier parts
    answers: bool = True  # if not, it is kept with the version: it matches and hides nothing


BASE: Final = "base"
DELTA: Final = "delta"
KINDS: Final = {BASE: PartKind(hides_earlier=False), DELTA: PartKind(hides_earlier=True)}


@dataclass(frozen=True, slots=True)
class Part:
    """One artefact among several that make an index together."""

    id: str  # its folder below parts/; never used again
    kind: str  # one of KINDS
    digest: str  # a hash of everything that determines its contents
    checksums: dict[str, int]  # the CRC-32 of every file, by name
    n_subscriptions: int
    n_hidden: int  # subscriptions that later parts replace or remove
    n_rejects: int
    n_nodes: int
    n_bytes: int
    attributes: tuple[tuple[str, ...], ...]  # paths that its subscriptions mention
    n_timed: int = 0  # subscriptions with a limited validity
    operators: tuple[str, ...] = ()  # names that its subscriptions call
    columns: tuple[str, ...] = ()  # names of attributes that its subscriptions have
    uses: tuple[Use, ...] = ()  # for each of `attributes`: how many subscriptions, and one of them

    @property
    def folder(self) -> str:
        """Where it is below the store's root."""
        return f"parts/{self.id}"

    def expect_file(self, name: str, checksum: int | None, where: str) -> None:
        """Raise an `IndexFormatError` unless the file has the checksum that it was published with;
        None is the checksum of a missing file."""
        if checksum is None:
            raise IndexFormatError(
                f"{where} has no {name}: it is incomplete, or its version was pruned", hint=RESTORE
            )
        if checksum != self.checksums.get(name):
            raise IndexFormatError(
                f"{where}/{name} is damaged: it is not the one that the version was published with",
                hint=RESTORE,
            )

    @property
    def answers(self) -> bool:
        """Whether its subscriptions are among those that the version matches."""
        return KINDS[self.kind].answers

    @property
    def hides_earlier(self) -> bool:
        """Whether it hides subscriptions of earlier parts."""
        return self.answers and KINDS[self.kind].hides_earlier

    @property
    def n_live(self) -> int:
        """How many of its subscriptions later parts do not hide."""
        return self.n_subscriptions - self.n_hidden


@dataclass(frozen=True, slots=True)
class Version:
    """What readers need, and what the next build may use."""

    number: int  # one more than the version before it
    parts: tuple[Part, ...]  # bases first, then others in the order of their publication
    schema: dict[str, Any]  # Schema.to_json
    missing: str  # how tests on missing attributes are evaluated
    partitioning: dict[str, Any] = field(default_factory=dict)  # which part has a subscription
    statistics: dict[str, Any] = field(default_factory=dict)  # of events and operators
    provenance: dict[str, Any] = field(default_factory=dict)  # what it was built from
    created_at: str = ""  # in ISO's format, UTC

    def __repr__(self) -> str:
        return format_table(COLUMNS, [self.summary()])

    def summary(self) -> list[Any]:
        """One row of a table of versions, with the columns `COLUMNS`."""
        return [
            self.name,
            self.created_at.partition(".")[0],
            self.n_subscriptions,
            self.n_rejects,
            len(self.parts),
            self.n_bytes,
        ]

    @property
    def name(self) -> str:
        """Its name on storage and in results, such as v00000012."""
        return version_name(self.number)

    @property
    def answering(self) -> tuple[Part, ...]:
        """The parts whose subscriptions it matches, in order."""
        return tuple(part for part in self.parts if part.answers)

    @property
    def silent(self) -> tuple[Part, ...]:
        """The other parts: a build leaves them as they are."""
        return tuple(part for part in self.parts if not part.answers)

    @property
    def n_subscriptions(self) -> int:
        """How many subscriptions it has that are neither replaced nor removed, and that had not
        expired when their part was built."""
        return sum(part.n_live for part in self.answering)

    @property
    def n_rejects(self) -> int:
        """How many subscriptions were rejected."""
        return sum(part.n_rejects for part in self.answering)

    @property
    def n_bytes(self) -> int:
        """The size of all parts."""
        return sum(part.n_bytes for part in self.parts)

    @property
    def attributes(self) -> list[tuple[str, ...]]:
        """The paths that some subscription mentions."""
        return sorted({path for part in self.answering for path in part.attributes})

    @property
    def uses(self) -> dict[tuple[str, ...], Use]:
        """How many subscriptions use each attribute in tests, and one of these subscriptions.

        Attributes that only operators read are left out, and parts that older programs wrote."""
        found: dict[tuple[str, ...], Use] = {}
        for part in self.answering:
            for path, use in zip(part.attributes, part.uses, strict=False):
                n, first = found.get(path, Use(0, None))
                if use.n_subscriptions:
                    found[path] = Use(n + use.n_subscriptions, first or use.subscription_id)
        return found

    @property
    def columns(self) -> list[str]:
        """The names of attributes that some subscription has."""
        return sorted({name for part in self.answering for name in part.columns})

    def typed_schema(self) -> Schema:
        """The schema as the language knows it."""
        return Schema.of(self.schema)

    def numbered(self, number: int) -> Version:
        """The same version with another number, created now."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        return replace(self, number=number, created_at=now)

    def to_bytes(self) -> bytes:
        """The manifest, with a checksum of itself."""
        body = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        body["checksum"] = checksum_of(body)
        return json.dumps(body, ensure_ascii=False, indent=1).encode()


class Versions(tuple[Version, ...]):
    """Versions, oldest first; the last one is current."""

    __slots__ = ()

    def __repr__(self) -> str:
        marks = [None] * (len(self) - 1) + ["current"]
        rows = [[*own.summary(), mark] for own, mark in zip(self, marks, strict=False)]
        return format_table([*COLUMNS, ""], rows)

    def to_pandas(self) -> Any:
        """A row for each version: version, created_at, subscriptions, rejects, parts, bytes."""
        import pandas as pd

        return pd.DataFrame([version.summary() for version in self], columns=list(COLUMNS))


class DamagedManifestError(IndexFormatError):
    """A version's manifest was changed or cut short."""


def version_name(number: int) -> str:
    """The name of the version with this number."""
    return f"v{number:08d}"


def read_number(which: Any) -> int | None:
    """The number of the version that a caller names: 12, "12" or "v00000012"; None for another
    text. Raises an `InputError` for a value of another type.
    """
    if isinstance(which, str):
        found = VERSION.fullmatch(which) or _NUMBER.fullmatch(which)
        return int(found[1]) if found else None
    if isinstance(which, bool) or not hasattr(which, "__index__"):
        raise InputError(
            f"version is {which!r}; a number such as 1 or a name such as {version_name(1)} is "
            "expected"
        )
    return index(which)


def read_version(content: bytes, where: str) -> Version:
    """The version that a manifest describes."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise DamagedManifestError(f"{where} is not the manifest of an index version", hint=RESTORE)
    if body.get("format_version") != FORMAT_VERSION:
        raise IndexFormatError(
            f"{where} has format version {body.get('format_version')}; this program reads "
            f"{FORMAT_VERSION}",
            hint="rebuild the index with this version of the program",
        )
    if body.get("checksum") != checksum_of(body):
        raise DamagedManifestError(f"{where} is damaged: its checksum is wrong", hint=RESTORE)
    known = {each.name for each in fields(Version)}
    values = {key: value for key, value in body.items() if key in known}
    try:
        version = Version(**values | {"parts": tuple(map(read_part, body["parts"]))})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedManifestError(f"{where} is damaged: {error!r}", hint=RESTORE) from None
    _expect_known_kinds(version, where)
    return version


def _expect_known_kinds(version: Version, where: str) -> None:
    """Raise an `IndexFormatError` for a kind of part that may hide subscriptions in its own way."""
    for part in version.parts:
        if part.kind not in KINDS:
            raise IndexFormatError(
                f'{where} has a part of the kind "{part.kind}"; this program reads '
                f"{', '.join(KINDS)}",
                hint="open it with the program that built it, or a newer one",
            )


def read_part(body: dict[str, Any]) -> Part:
    """A part from its JSON object; raises ValueError if it names files outside its folder."""
    if not PART_ID.fullmatch(body["id"]) or not all(map(FILE_NAME.fullmatch, body["checksums"])):
        raise ValueError(f"invalid part {body['id']!r} or files {sorted(body['checksums'])}")
    paths = tuple(tuple(path) for path in body["attributes"])
    names = {name: tuple(body.get(name, ())) for name in ("operators", "columns")}
    uses = tuple(Use(*use) for use in body.get("uses", ()))
    return Part(**body | {"attributes": paths, "uses": uses, **names})


def checksum_of(body: dict[str, Any]) -> int:
    """The CRC-32 of the other fields of a file that has its own checksum."""
    own = {key: value for key, value in body.items() if key != "checksum"}
    return zlib.crc32(json.dumps(own, sort_keys=True, ensure_ascii=False).encode())
