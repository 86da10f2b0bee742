"""Real detection rules and log events, if they are next to the repository: Sigma's rules as
expressions, and Windows events of the Security Datasets.

Only what most rules use is converted; a rule with anything else is left out.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tamis.language.types.texts import print_string

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
# The event that a category of log sources is about.
EVENT_IDS: Final = {
    "process_creation": 1,
    "network_connection": 3,
    "image_load": 7,
    "create_remote_thread": 8,
    "process_access": 10,
    "file_event": 11,
    "registry_set": 13,
    "pipe_created": 17,
    "dns_query": 22,
    "ps_module": 4103,
    "ps_script": 4104,
}
_PLACES: Final = {"contains": "%{}%", "startswith": "{}%", "endswith": "%{}"}
_TOKEN: Final = re.compile(r"\(|\)|(?:1|all) of [\w*]+|\w+")


class UnusualError(Exception):
    """A rule that is not converted."""


def find_data() -> bool:
    """Whether the rules and events are there, and what reads them."""
    try:
        import yaml  # noqa: F401
    except ImportError:
        return False
    return (DATA / "sigma-rules").is_dir() and (DATA / "otrf-security-datasets").is_dir()


def read_rules() -> dict[str, str]:
    """Expressions by the name of their file."""
    import yaml

    rules = {}
    for path in sorted((DATA / "sigma-rules").glob("rules*/**/*.yml")):
        rule = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        try:
            rules[path.stem] = convert(rule)
        except UnusualError:
            continue
    return rules


def read_schema(rules: dict[str, str]) -> dict[str, str]:
    """All attributes are texts, except for the numbers of events."""
    names = {name for text in rules.values() for name in re.findall(r"`([^`]+)`", text)}
    return {f"`{name}`": "string" for name in sorted(names)} | {"`EventID`": "integer"}


def read_lines(n_lines: int) -> list[bytes]:
    """Distinct events, as lines of JSON, of all archives in their order: as many of each archive,
    and of large ones more if that is not enough.
    """
    archives = sorted((DATA / "otrf-security-datasets").glob("**/*.zip"))
    each = -(-n_lines // max(1, len(archives)))
    lines = _distinct_lines(archives, each)
    if len(lines) < n_lines:
        lines = _distinct_lines(archives, n_lines)
    return lines[:n_lines]


def _distinct_lines(archives: Sequence[Path], each: int) -> list[bytes]:
    lines: dict[bytes, None] = {}
    for path in archives:
        lines |= dict.fromkeys(_lines_in(path, each))
    return list(lines)


def _lines_in(path: Path, n_lines: int) -> Iterator[bytes]:
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as stream:
        for line, _ in zip(stream, range(n_lines), strict=False):
            if isinstance(json.loads(line), dict):
                yield line.strip()


# ── conversion ──────────────────────────────────────────────────────────────────────────────


def convert(rule: dict[str, Any]) -> str:
    """The expression of a rule."""
    detection = dict(rule["detection"])
    condition = detection.pop("condition")
    if not isinstance(condition, str):
        raise UnusualError
    parts = {name: _convert_part(part) for name, part in detection.items()}
    text = " ".join(_convert_token(token, parts) for token in _TOKEN.findall(condition))
    event_id = EVENT_IDS.get(rule["logsource"].get("category"))
    return text if event_id is None else f"`EventID` = {event_id} AND ({text})"


def _convert_token(token: str, parts: dict[str, str]) -> str:
    if token in ("(", ")") or token.lower() in ("and", "or", "not"):
        return token.upper()
    if " of " not in token:
        if token not in parts:
            raise UnusualError
        return parts[token]
    how, _, names = token.partition(" of ")
    pattern = re.compile("[^_].*" if names == "them" else names.replace("*", ".*"))
    chosen = [part for name, part in parts.items() if pattern.fullmatch(name)]
    return _join(chosen, "OR" if how == "1" else "AND")


def _join(texts: Sequence[str], operator: str) -> str:
    if not texts:
        raise UnusualError
    return "(" + f" {operator} ".join(texts) + ")"


def _convert_part(part: Any) -> str:
    """A selection: an object of tests, or a list of such objects."""
    if isinstance(part, list):
        return _join([_convert_part(own) for own in part], "OR")
    if not isinstance(part, dict):  # keywords in any field
        raise UnusualError
    return _join([_convert_test(key, value) for key, value in part.items()], "AND")


def _convert_test(key: str, given: Any) -> str:
    name, *modifiers = key.split("|")
    values = given if isinstance(given, list) else [given]
    is_all = "all" in modifiers
    kinds = [own for own in modifiers if own != "all"]
    if len(kinds) > 1 or "`" in name or not name:
        raise UnusualError
    kind = kinds[0] if kinds else ""
    tests = [_convert_value(f"`{name}`", kind, value) for value in values]
    return _join(tests, "AND" if is_all else "OR")


def _convert_value(name: str, kind: str, value: Any) -> str:
    if value is None and not kind:
        return f"{name} IS NULL"
    if name == "`EventID`":
        if kind or not str(value).isdigit():
            raise UnusualError
        return f"{name} = {value}"
    if isinstance(value, bool) or value is None:
        raise UnusualError
    if kind == "re":
        return f"{name} RLIKE {print_string(str(value))}"
    if kind and kind not in _PLACES:
        raise UnusualError
    text = escape(str(value)).replace("*", "%").replace("?", "_")
    return f"{name} ILIKE {print_string(_PLACES.get(kind, '{}').format(text))}"


def escape(text: str) -> str:
    """The text as a pattern of LIKE that only it satisfies."""
    return re.sub(r"([\\%_])", r"\\\1", text)
