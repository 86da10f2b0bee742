"""Rules in files of JSON: one rule in a file, a list of them, or one on each line."""

from __future__ import annotations

import json
from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import RowError
from tamis.importers.model import Document, Rule
from tamis.importers.sources import check_size, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tamis.importers.fields import Fields
    from tamis.importers.sources import File
    from tamis.language.schema import Path
    from tamis.language.types import Type


class Found(NamedTuple):
    """A rule without its expression, and what it was written as."""

    rule: Rule
    content: Any  # None if there is an error


class Keys(NamedTuple):
    """Where a format keeps its rules."""

    lists: tuple[tuple[str, ...], ...]  # paths of lists of rules in one object
    contents: tuple[tuple[str, ...], ...]  # paths of the content in a rule
    names: tuple[str, ...] = ("id", "_id", "subscription_id", "Name", "name")
    titles: tuple[str, ...] = ("title", "Description", "description")
    # Members whose texts show that an object is a rule, although it has no content.
    marks: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any]], RowError | None] = lambda _: None  # of such an object


def read_rules(files: Iterable[File], keys: Keys) -> Iterator[Found]:
    """The rules of all files."""
    for name, content in files:
        if isinstance(content, RowError):
            yield _refused(Rule(None, name), content)
            continue
        documents = list(_split(name, content))
        if not documents:
            yield _refused(Rule(None, name), "the file is empty; a rule is expected")
        for document in documents:
            yield from _read_document(document, keys)


def convert_rules(
    found: Iterable[Found], fields: Fields, convert: Callable[[Rule, Any], str]
) -> list[tuple[Rule, dict[Path, Type]]]:
    """The rules with their expressions or errors, and the attributes that each tests."""
    converted = []
    for own in found:
        try:
            if own.content is not None:
                _check_values(own.content)
                own.rule.expression = convert(own.rule, own.content)
        except RowError as error:
            own.rule.refuse(error)
        except RecursionError:
            own.rule.refuse(RowError("bad-rule", "the rule is nested too deeply"))
        converted.append((own.rule, fields.take_used()))
    return converted


class _Repeating(dict[str, Any]):
    """An object of which a key is given twice."""

    key = ""


def _load(text: str) -> Any:
    """The JSON value; objects that give a key twice are `_Repeating`."""
    return json.loads(text, object_pairs_hook=_make_object)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    repeating = _Repeating(made)
    counts = Counter(name for name, _ in pairs)
    repeating.key = next(name for name, n in counts.items() if n > 1)
    return repeating


def _check_values(value: Any) -> None:
    """Raise an error for an infinite number, such as 1e400, and for a key that is given twice."""
    if isinstance(value, dict | list):
        if isinstance(value, _Repeating):
            raise RowError("bad-json", f'the key "{value.key}" is given twice in one object')
        for own in value.values() if isinstance(value, dict) else value:
            _check_values(own)
    elif isinstance(value, float) and not isfinite(value):
        raise RowError("bad-rule", "a number of the rule is beyond a double, such as 1e400, or NaN")


def _split(name: str, content: bytes) -> Iterator[Document]:
    """The whole file if it is one JSON value, and its lines otherwise."""
    whole = Document(name, 1, 1, content)
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        lines = content.split(b"\n")
        if len(lines) > 1 and all(_is_object(line) for line in lines if line.strip()):
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield Document(name, number, number, line)
            return
    if content.strip():
        yield whole


def _is_object(line: bytes) -> bool:
    return line.strip().startswith(b"{") and line.strip().endswith(b"}")


def _read_document(document: Document, keys: Keys) -> Iterator[Found]:
    rule = Rule(_stem(document), document.place)
    try:
        rule.source = text = decode(document).strip()
        value = _load(text)
    except RowError as error:
        yield _refused(rule, error)
        return
    except RecursionError:
        yield _refused(rule, RowError("bad-json", "the JSON is nested too deeply"))
        return
    except ValueError as error:
        yield _refused(rule, RowError("bad-json", f"not JSON: {error}"))
        return
    members = value if isinstance(value, list) else _find_list(value, keys)
    if members is None:
        yield _read_sized(rule, value, keys)
        return
    for number, member in enumerate(members, 1):
        place = f"{rule.place}, element {number}"
        own = Rule(f"{rule.rule_id}#{number}", place, json.dumps(member, ensure_ascii=False))
        yield _read_sized(own, member, keys)


def _read_sized(rule: Rule, value: Any, keys: Keys) -> Found:
    try:
        check_size(len(rule.source.encode("utf-8", "surrogatepass")))
    except RowError as error:
        rule.source = ""
        return _refused(rule, error)
    return _read_rule(rule, value, keys)


def _find_list(value: Any, keys: Keys) -> list[Any] | None:
    for path in keys.lists:
        found = _get(value, path)
        if isinstance(found, list):
            return found
    return None


def _read_rule(rule: Rule, value: Any, keys: Keys) -> Found:
    if not isinstance(value, dict):
        return _refused(rule, f"the rule is {json.dumps(value)[:60]}; an object is expected")
    name = next((value[key] for key in keys.names if isinstance(value.get(key), str | int)), None)
    contents = (_get(value, path) for path in keys.contents)
    content = next((found for found in contents if found is not None), None)
    if content is None and not any(isinstance(value.get(key), str) for key in keys.marks):
        content = value
    if content is not value:
        rule.rule_id = rule.rule_id if name is None or name == "" else str(name)
        titles = (value[key] for key in keys.titles if isinstance(value.get(key), str))
        rule.title = next(titles, "")
        rule.attributes = {"title": rule.title} if rule.title else {}
        if (error := keys.check(value)) is not None:
            return _refused(rule, error)
    if isinstance(content, str):  # as services return it: JSON inside a text
        try:
            content = _load(content)
        except (ValueError, RecursionError) as error:
            return _refused(rule, RowError("bad-json", f"not JSON: {error}"))
    if not isinstance(content, dict) or not content:
        what = "the rule" if content is value else f"{keys.contents[0][-1]} of the rule"
        shown = json.dumps(content)[:60]
        return _refused(rule, f"{what} is {shown}; an object with members is expected")
    return Found(rule, content)


def _get(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _refused(rule: Rule, error: str | RowError) -> Found:
    rule.refuse(RowError("bad-rule", error) if isinstance(error, str) else error)
    return Found(rule, None)


def _stem(document: Document) -> str:
    name = document.name.replace("\\", "/").rpartition("/")[2]
    stem = name.partition(".")[0] or name
    return stem if document.number == 1 else f"{stem}#{document.number}"
