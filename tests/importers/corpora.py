"""Rules and events of others, if they are next to the repository."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

DATA = Path(__file__).parents[3] / "shared" / "data"
RULES = DATA / "sigma-rules"
TRUTH = DATA / "sigma-regression-truth" / "regression_data"
OTRF = DATA / "otrf-security-datasets"

needs_rules = pytest.mark.skipif(not RULES.is_dir(), reason="the Sigma rules are not there")
needs_truth = pytest.mark.skipif(not TRUTH.is_dir(), reason="the regression data is not there")
needs_events = pytest.mark.skipif(not OTRF.is_dir(), reason="the OTRF events are not there")


def rule_files() -> list[Path]:
    """All files of Sigma rules."""
    return sorted(RULES.rglob("*.yml"))


class Truth(NamedTuple):
    """A file of the regression data: how many of its events its rule matches, at least."""

    file: str
    rule_id: str
    n_matches: int
    events: list[dict[str, Any]]


def read_truth() -> Iterator[Truth]:
    """All files of the regression data. In some only one of several events is meant."""
    for path in sorted(TRUTH.rglob("*.json")):
        (place,) = path.parent.glob("info.yml")
        info = yaml.safe_load(place.read_text(encoding="utf-8"))
        (test,) = info.get("regression_tests_info") or [{}]
        events = list(read_objects(path.read_text(encoding="utf-8-sig")))
        name = str(path.relative_to(TRUTH))
        yield Truth(name, info["rule_metadata"][0]["id"], test.get("match_count") or 1, events)


def flatten(event: dict[str, Any]) -> dict[str, Any]:
    """The fields of a Windows event by their own names."""
    inner = event["Event"]
    data = inner.get("EventData") or next(iter((inner.get("UserData") or {}).values()), {})
    return {**inner["System"], **data}


def read_objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects one after another."""
    decoder, position = json.JSONDecoder(), 0
    while position < len(text.rstrip()):
        found, position = decoder.raw_decode(text, position)
        position += len(text[position:]) - len(text[position:].lstrip())
        yield from found if isinstance(found, list) else [found]


def read_archives() -> Iterator[list[dict[str, Any]]]:
    """The events of each archive."""
    for path in sorted(OTRF.rglob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not name.endswith("/"):
                    yield list(map(json.loads, archive.read(name).splitlines()))
    for path in sorted(OTRF.rglob("*.tar.gz")):
        with tarfile.open(path) as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None:
                    yield list(map(json.loads, file.read().splitlines()))
