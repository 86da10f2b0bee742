"""Reads Sigma rules from YAML; an error belongs to its rule and stops no other."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tamis.errors import MissingDependencyError, RowError
from tamis.importers.model import Document, Rule, not_expressible
from tamis.importers.sigma.checks import check_rule, name_kind
from tamis.importers.sources import check_size, decode, split_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sigma.filters import SigmaFilter
    from sigma.rule import SigmaRule

    from tamis.importers.sources import File

try:
    import yaml
    from sigma.collection import SigmaCollection, deep_dict_update
    from sigma.correlations import SigmaCorrelationRule
    from sigma.exceptions import SigmaError
    from sigma.modifiers import reverse_modifier_mapping
    from sigma.rule.base import SigmaYAMLLoader, check_alias_expansion
except ImportError as error:
    raise MissingDependencyError(
        f"Sigma rules are read by pySigma, which is not installed ({error.name})",
        hint="pip install 'tamis[sigma]'",
    ) from None


Loaded: TypeAlias = tuple[Document, str, Any]  # with its text, and its content or its error


@dataclass(slots=True)
class Read:
    """A rule and what pySigma read of it; a filter has no rule of ours."""

    rule: Rule
    sigma: SigmaRule | None = None


@dataclass(slots=True)
class ReadFilter:
    """A filter of pySigma, and the rule that stands for it in reports."""

    rule: Rule
    sigma: SigmaFilter


@dataclass(slots=True)
class ReadRules:
    """The rules of all files, and the filters that apply to them."""

    rules: list[Read]
    filters: list[ReadFilter]

    def __iter__(self) -> Any:
        return iter(self.rules)


def read_rules(files: Iterable[File]) -> ReadRules:
    """All rules of the files."""
    found = ReadRules([], [])
    for name, content in files:
        if isinstance(content, RowError):
            found.rules.append(Read(Rule(None, name, error=content)))
            continue
        documents = split_documents(name, content)
        if not documents:
            error = RowError("bad-rule", "the file is empty; a Sigma rule is expected")
            found.rules.append(Read(Rule(None, name, error=error)))
        _read_file(documents, found)
    return found


def _read_file(documents: list[Document], found: ReadRules) -> None:
    """Read the documents of a file; those with `action` change how the later ones are read."""
    loaded: list[Loaded] = []
    for document in documents:
        text = ""
        try:
            check_size(len(document.content))
            text = decode(document)
            loaded.append((document, text, _load(text)))
        except RowError as error:
            loaded.append((document, text, error))
    if not any(isinstance(own, dict) and "action" in own for _, _, own in loaded):
        for document, text, content in loaded:
            name = _given_name(content) or _default_name(document)
            _read_one(document, text, content, name, found)
        return
    names: set[str] = set()
    for number, (document, text, content) in enumerate(_apply_actions(loaded), 1):
        given = _given_name(content)
        # A rule that repeats another one has its id.
        name = given if given and given not in names else f"{given or _stem(document)}#{number}"
        names.add(name)
        _read_one(document, text, content, name, found)


def _apply_actions(loaded: list[Loaded]) -> Iterator[Loaded]:
    """The rules of a file, each with what `global` adds to all, or `repeat` to the one before."""
    shared: Loaded | None = None
    previous: Loaded | None = None
    for document, text, content in loaded:
        own = document, text, content
        if not isinstance(content, dict):
            yield own
            continue
        action = content.pop("action", None)
        if action is None:
            if shared is not None and not content.keys() & {"correlation", "filter"}:
                own = _merge(own, own, shared)
            previous = own
            yield own
        elif action == "global":
            shared = previous = own
        elif action == "reset":
            shared = None
        elif action == "repeat":
            previous = own if previous is None else _merge(own, previous, own)
            yield previous
        else:
            message = f"the action is {action!r}; global, repeat or reset is expected"
            yield document, text, RowError("bad-rule", message)


def _merge(place: Loaded, base: Loaded, added: Loaded) -> Loaded:
    """The content of a rule with what another document adds to it."""
    document, _, _ = place
    texts = [text.strip() for _, text, _ in sorted((base, added), key=lambda own: own[0].number)]
    text = "\n---\n".join(texts)
    if not isinstance(base[2], dict):  # an error of that rule
        return document, text, base[2]
    try:
        return document, text, deep_dict_update(deepcopy(base[2]), deepcopy(added[2]))
    except (AttributeError, TypeError):
        message = "what an action adds is a mapping, and what the rule has there is none"
        return document, text, RowError("bad-rule", message)


MOST_LEVELS: Final = 500  # of nesting; the compiled composer of YAML crashes at some ten thousand
_EQUAL_KEY: Final = re.compile(r"Duplicate key '(True|False|0|1)'")
_INDENTATION: Final = re.compile(r"^[ \t?-]*", re.MULTILINE)


def _expect_shallow(text: str) -> None:
    """Raise an error for YAML that is nested deeply; only suspicious texts are parsed for it."""
    widest = max(map(len, _INDENTATION.findall(text)))
    if text.count("[") + text.count("{") + widest <= MOST_LEVELS:
        return
    depth = 0
    for event in yaml.parse(text, yaml.CLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_LEVELS:
            raise RowError("bad-yaml", f"the YAML is nested more than {MOST_LEVELS} levels deep")


def _load(text: str) -> Any:
    try:
        _expect_shallow(text)
        content = yaml.load(text, SigmaYAMLLoader)
        check_alias_expansion(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        if (twice := _EQUAL_KEY.fullmatch(reason)) is not None:
            raise RowError(
                "bad-yaml",
                f"{place}the key {twice[1].lower()} is given twice: without quotes, 1 and true are "
                "the same key, and so are 0 and false",
                hint=f"write keys in quotes: '{twice[1].lower()}'",
            ) from None
        raise RowError("bad-yaml", f"not YAML: {place}{reason}") from None
    except SigmaError as error:
        raise RowError("bad-yaml", str(error)) from None
    except RecursionError:
        raise RowError("bad-yaml", "the YAML is nested too deeply") from None
    except ValueError as error:  # of a date that does not exist, or a number that is too long
        raise RowError("bad-yaml", f"not YAML: {error}") from None
    return content


def _read_one(document: Document, text: str, content: Any, name: str, found: ReadRules) -> None:
    if isinstance(content, RowError):
        found.rules.append(Read(Rule(None, document.place, text, error=content)))
        return
    rule = Rule(name, document.place, text.strip(), _title(content))
    try:
        if not isinstance(content, dict):
            kind = name_kind(content)
            raise RowError("bad-rule", f"the document is {kind}; a Sigma rule is a mapping")
        rule.notes = tuple(check_rule(content))
        read = SigmaCollection.from_dicts([content], collect_filters=True, resolve_references=False)
    except Exception as error:  # whatever a rule makes pySigma raise is its error
        rule.refuse(describe_error(error))
        found.rules.append(Read(rule))
        return
    found.filters += [ReadFilter(rule, own) for own in read.filters]
    for own in read.rules:
        if isinstance(own, SigmaCorrelationRule):
            rule.refuse(refuse_correlation())
            found.rules.append(Read(rule))
        else:
            found.rules.append(Read(rule, own))


def refuse_correlation() -> RowError:
    """The error of a correlation rule."""
    return not_expressible(
        "a correlation rule counts or joins events; an expression tests one event",
        hint="the rules that it refers to are imported; correlate their matches",
    )


def describe_error(error: Exception) -> RowError:
    """The error of a rule that pySigma cannot read."""
    if isinstance(error, RowError):
        return error
    if isinstance(error, RecursionError):
        return RowError("bad-rule", "the rule is nested too deeply")
    if isinstance(error, SigmaError):
        message = " ".join(str(error.args[0] if error.args else error).split())
        message = message if len(message) <= SHOWN else f"{message[:SHOWN]} …"
        if (found := _UNSUITED.fullmatch(message)) is not None:
            return _refuse_value(found[1], found[2])
        is_upper = _UPPER_CASE.match(message) is not None
        hint = "and, or, not and of are written in lower case" if is_upper else None
        return RowError("bad-rule", message, hint=hint)
    return RowError("bad-rule", f"pySigma cannot read it: {type(error).__name__}: {error}")


# Messages of pySigma.
SHOWN: Final = 500  # characters
_UNSUITED: Final = re.compile(r"Modifier (\w+) incompatible to value type of '(.*)'")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_UPPER_CASE: Final = re.compile(r"Expected end of text, found '(AND|OR|NOT|OF|And|Or|Not|Of)'")
_VALUES: Final = {
    "<sigma.types.SigmaNull": "null",
    "SigmaRegularExpression(": "a regular expression",
    "SigmaFieldReference(": "the name of another field",
    "SigmaCIDRExpression(": "a network",
    "SigmaCompareExpression(": "a comparison",
    "SigmaExpansion(": "several alternatives",
}
_WANTED: Final = {
    ("exists",): "true or false",
    ("gt", "gte", "lt", "lte", "minute", "hour", "day", "week", "month", "year"): (
        "a number without quotes"
    ),
    ("ignorecase", "multiline", "s"): "a regular expression, with re before it,",
}


def _refuse_value(modifier: str, value: str) -> RowError:
    name = reverse_modifier_mapping.get(modifier, modifier)
    kinds = (kind for start, kind in _VALUES.items() if value.startswith(start))
    wanted = next((own for names, own in _WANTED.items() if name in names), "a text")
    shown = value.lower() if wanted == "a text" else repr(value)
    message = f"the modifier {name} does not take {next(kinds, shown)}; {wanted} is expected"
    is_unquoted = wanted == "a text" and _NUMBER.fullmatch(value)
    return RowError("bad-rule", message, hint="write the number in quotes" if is_unquoted else None)


def _given_name(content: Any) -> str | None:
    """The id of a rule, or its name."""
    given: Mapping[str, Any] = content if isinstance(content, dict) else {}
    for key in ("id", "name"):
        if isinstance(given.get(key), str) and given[key].strip():
            return str(given[key]).strip()
    return None


def _default_name(document: Document) -> str:
    stem = _stem(document)
    return stem if document.number == 1 else f"{stem}#{document.number}"


def _stem(document: Document) -> str:
    """The name of the file without its folder and ending."""
    return document.name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] or document.name


def _title(content: Any) -> str:
    title = content.get("title") if isinstance(content, dict) else None
    return title if isinstance(title, str) else ""
