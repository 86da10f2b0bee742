"""Writes the index of one closed segment.

Each event becomes a document of tantivy:

    words    the words of all fields, one field after the other, each with the field's number
    folded   the same before stemming, for wildcards
    marks    f0, c0: field 0 and column 0 are there; c0=text: a string; ?: the event is doubtful
    n0       the code of column 0
    number   the number of the event

An event is doubtful if its JSON is unusual. Its other marks do not count: whoever reads it decides.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from tamis import durable
from tamis.errors import RowError
from tamis.events.json_texts import is_json, parse_exactly
from tamis.search.columns import Reader
from tamis.search.event_file import EventWriter
from tamis.search.fields import is_long, spell_term
from tamis.search.library import load_tantivy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from tamis.search.sources import Sources

FORMAT: Final = 2
FACTS: Final = "words.json"
HEAP: Final = 64 << 20  # bytes of words that are sorted at a time
WORDS, FOLDED, MARKS, NUMBER = "words", "folded", "marks", "number"
DOUBTFUL: Final = "?"
_MOST_BRACKETS: Final = 100  # parsers differ in how deeply they read


def describe(sources: Sources) -> dict[str, Any]:
    """What an index depends on: it is rebuilt if that has changed."""
    return {
        "format": FORMAT,
        "tantivy": load_tantivy().__version__,
        "sources": sources.spell(),
        "versions": {own.analyser: own.versions() for own in (*sources.fields, *sources.folded)},
    }


def digest_of(sources: Sources) -> str:
    """The name of an index of these sources, with these versions."""
    spelled = orjson.dumps(describe(sources), option=orjson.OPT_SORT_KEYS)
    return blake2b(spelled, digest_size=8).hexdigest()


def make_schema(n_columns: int) -> Any:
    """Tantivy's schema."""
    builder = load_tantivy().SchemaBuilder()
    builder.add_text_field(WORDS, tokenizer_name="whitespace")
    for name in (FOLDED, MARKS):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    builder.add_unsigned_field(NUMBER, indexed=True, fast=True)
    for slot in range(n_columns):
        builder.add_integer_field(f"n{slot}", fast=True)
    return builder.build()


def spell_mark(slot: int, text: str) -> str:
    """A string of a column."""
    return f"c{spell_term(slot, text)}"


class _Counts:
    """What the facts of an index say about its events."""

    def __init__(self) -> None:
        self.n_events = self.n_words = self.first = self.last = 0
        self.present: Counter[str] = Counter()  # by mark: of the events that are not doubtful
        self.doubtful: list[int] = []

    def add(self, number: int, document: _Document) -> None:
        """Count an event."""
        self.first = self.first or number
        self.last = number
        self.n_events += 1
        self.n_words += len(document.words)
        if document.is_doubtful:
            self.doubtful.append(number)
        else:
            self.present.update(document.present)


class _Document(NamedTuple):
    words: list[str]
    folded: list[str]
    present: list[str]
    texts: list[str]
    codes: list[tuple[str, int]]
    is_doubtful: bool


def write_index(target: Path, batches: Iterable[pa.RecordBatch], sources: Sources) -> None:
    """Index archived events in a new folder, which appears when it is complete."""
    tantivy = load_tantivy()
    with durable.new_directory(target) as draft:
        index = tantivy.Index(make_schema(len(sources.columns)), path=str(draft))
        writer = index.writer(HEAP, 1)  # one thread: events stay in order
        texts = EventWriter(draft)
        analyse = _Analyst(sources)
        counts = _Counts()
        for number, moment, change, text in _list_events(batches):
            found = analyse.read(text)
            if found is None:  # nothing matches it
                continue
            writer.add_document(_make_document(number, found))
            texts.add(number, moment, change, text)
            counts.add(number, found)
        writer.commit()
        writer.wait_merging_threads()
        texts.close()
        facts = describe(sources) | vars(counts)
        facts |= {"checksums": {own.name: durable.checksum(own) for own in _list_files(draft)}}
        durable.replace_file(draft / FACTS, [orjson.dumps(facts)])


def _list_events(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, int, bytes]]:
    for batch in batches:
        yield from zip(
            batch.column("number").to_pylist(),
            batch.column("moment").cast("int64").to_pylist(),
            batch.column("change").to_pylist(),
            batch.column("event").cast("binary").to_pylist(),
            strict=True,
        )


def _make_document(number: int, found: _Document) -> Any:
    document = load_tantivy().Document()
    document.add_text(WORDS, " ".join(found.words))
    document.add_text(FOLDED, " ".join(found.folded))
    marks = [DOUBTFUL] if found.is_doubtful else [*found.present, *found.texts]
    document.add_text(MARKS, " ".join(marks))
    document.add_unsigned(NUMBER, number)
    for name, code in found.codes:
        document.add_integer(name, code)
    return document


class _Analyst:
    """Reads what an index needs of events."""

    def __init__(self, sources: Sources) -> None:
        self._fields, self._folded = sources.fields, sources.folded
        self._readers = [Reader(own) for own in sources.columns]

    def read(self, text: bytes) -> _Document | None:
        """The document of an event; None if it cannot be read."""
        try:
            event = parse_exactly(text)
        except RowError:
            return None
        is_doubtful = not is_json(text) or text.count(b"{") + text.count(b"[") > _MOST_BRACKETS
        found = _Document([], [], [], [], [], is_doubtful)
        for slot, field in enumerate(self._fields):
            content = field.text(event)
            if content is not None:
                found.present.append(f"f{slot}")
                found.words.extend(spell_term(slot, own) for own in field.split(content))
        for slot, field in enumerate(self._folded):
            content = field.text(event)
            words = set() if content is None else set(field.split(content)) - {""}
            found.folded.extend(spell_term(slot, own) for own in words)
            if any(map(is_long, words)):  # a wildcard does not find a digest
                found = found._replace(is_doubtful=True)
        for slot, reader in enumerate(self._readers):
            self._read_column(slot, reader, event, found)
        return found

    def _read_column(self, slot: int, reader: Reader, event: Any, found: _Document) -> None:
        value = reader.read(event)
        if value is None:
            return
        found.present.append(f"c{slot}")
        if isinstance(value, list):
            found.texts.extend(spell_mark(slot, own) for own in value)
        else:
            found.codes.append((f"n{slot}", value))


def _list_files(folder: Path) -> list[Path]:
    """The files whose contents are checked: not the names of locks and drafts."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".tamis"))
