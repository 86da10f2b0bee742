"""Indexes that somebody altered on purpose: their checksums are right, and nothing else need be.

Run as a program it opens and uses mutants, one after the other, and prints the number of each
before it touches it: `python -m tests.index.mutants INDEX FIRST LAST SEED`. A crash or a hang shows
in what was printed last.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tamis
from tamis.errors import TamisError
from tamis.index.artefact import MANIFEST, _manifest_checksum
from tamis.index.dot import to_dot
from tamis.index.stats import compute_stats

ALIGNMENT = 64
SUBSCRIPTIONS = {
    "numbers": "n > 3 AND n < 90 AND d <= 2.5 AND f = 1.5",
    "more": "n IN (1, 5, 9) OR NOT d > 7 OR m BETWEEN 1.25 AND 9.75",
    "decimals": "m = 2.5 OR m < 1.001",
    "texts": "s = 'alpha' OR s IN ('beta', 'gamma') OR s >= 'delta'",
    "dates": "day >= DATE '2024-01-31' AND at < TIMESTAMP '2024-06-01 10:00:00'",
    "flags": "flag AND NOT other",
    "pairs": "n < k OR s = t",
    "arrays": "array_contains(tags, 'x') AND NOT arrays_overlap(tags, array('y', 'z'))",
    "nulls": "s IS NULL OR n IS NOT NULL AND d IS NULL",
    "like": "s LIKE 'al%a' OR s ILIKE '%BET_' OR contains(s, 'mm') OR s LIKE '_%'",
    "regex": "s RLIKE 'ga+m' OR t RLIKE '^.{3}$' OR startswith(t, 'x') OR endswith(t, 'q')",
    "words": "matches(body, 'quick fox') AND NOT matches(body, 'lazy')",
    "wildcards": "matches_any(body, 'qu* *ox *az* b?own') OR matches_phrase(body, 'quick br*')",
    "near": "near(body, 'quick fox', 2) OR near_in_order(body, 'quick br* fox', 1)",
    "phrase": "matches(body, '\"brown fox\"') OR matches(body, '\"a quick brown\"')",
    "xor": "xor(n > 3, s = 'alpha', flag)",
    "most": "at_least(2, n > 3, d < 7, s = 'beta', matches(body, 'fox'))",
    "always": "1 = 1",
    "never": "n > 5 AND n < 3",
    "same": "n > 3 AND n < 90 AND d <= 2.5 AND f = 1.5",
    "called": "n > 0 AND (mutant_even() OR d < 7)",
    "bound": "mutant_digit(?digit) AND ?digit > 4 AND (flag OR NOT mutant_near(3))",
    "joined": "mutant_digit(?x) AND mutant_near(2) AND ?x < 8 AND n > 1",
    "deep": "(n > 3 OR (d < 7 AND (s = 'beta' OR (k > 2 AND (flag OR n = 7)))))",
}
# Some have a limited validity, tags, weights and attributes.
ROWS: list[dict[str, Any]] = [
    {"id": name, "expression": text, "title": name.upper()} for name, text in SUBSCRIPTIONS.items()
]
ROWS[1] |= {"valid_from": "2020-01-01"}
ROWS[3] |= {"valid_until": "2090-01-01", "tags": ["red"]}
ROWS[2] |= {"weight": 2.5}
ROWS[4] |= {"weight": -1}
ROWS[5] |= {"valid_from": "2080-01-01", "valid_until": "2090-01-01"}
SCHEMA = (
    "n BIGINT, k BIGINT, d DOUBLE, f FLOAT, m DECIMAL(8,2), s STRING, t STRING, day DATE, "
    "at TIMESTAMP, flag BOOLEAN, other BOOLEAN, tags ARRAY<STRING>, body STRING"
)
EVENTS: list[dict[str, Any]] = [
    {},
    {"n": 5, "d": 2.5, "f": 1.5, "s": "alpha", "flag": True, "tags": ["x"], "k": 9},
    {"n": 7, "m": 2.5, "s": "gamma", "t": "xyq", "other": False, "tags": ["y", None], "k": 1},
    {"s": "BETA", "body": "A quick brown fox", "d": 8.0, "flag": False, "day": "2024-02-01"},
    {"body": "the lazy dog and the fox", "at": "2024-01-01 00:00:00", "n": 91, "t": "", "s": ""},
    {"s": "beta", "t": "beta", "n": 1, "d": float("nan"), "tags": [], "m": 0},
]


@tamis.operator("mutant_even()", reads=["n bigint"])
def mutant_even(event: Any) -> bool:
    """Whether n is even."""
    return bool(event["n"] % 2 == 0)


@tamis.operator("mutant_digit(?integer)", reads=["n bigint"])
def mutant_digit(event: Any) -> list[int]:
    """The digits of n."""
    return [int(digit) for digit in str(abs(event["n"]))]


@tamis.operator("mutant_near(integer)", reads=["k bigint"])
def mutant_near(event: Any, distance: int) -> bool:
    """Whether k is no further from zero."""
    return bool(abs(event["k"]) <= distance)


ODD_VALUES = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, "", "x", "../x", [], {}, [[]], [-1], [2**40],
    "<f8", "<i4", "|u1", "scalar", "text", "pattern", "array", "pair", "string", "integer",
]  # fmt: skip
ODD_NUMBERS = [-(2**31), -3, -2, -1, 0, 1, 2, 3, 7, 63, 64, 255, 256, 257, 1000, 2**31 - 1]


def seal(directory: Path, manifest: dict[str, Any], content: bytearray) -> None:
    """Write an index with checksums that are right, as far as it still has such."""
    entry = manifest.get("content")
    parts = entry.get("parts") if isinstance(entry, dict) else None
    for part in parts.values() if isinstance(parts, dict) else ():
        try:
            begin, n_bytes = part["offset"], part["bytes"]
            end = begin + n_bytes + -n_bytes % ALIGNMENT
            part["crc32"] = zlib.crc32(content[begin:end])
        except (TypeError, KeyError, ValueError, AttributeError, MemoryError):
            continue
    manifest["checksum"] = _manifest_checksum(manifest)
    (directory / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    for old in directory.glob("content-*"):
        old.unlink()
    name = entry.get("file") if isinstance(entry, dict) else None
    if isinstance(name, str) and name not in ("", ".") and "/" not in name:
        (directory / name).write_bytes(content)


def alter(rng: Random, manifest: dict[str, Any], content: bytearray) -> None:
    """Change one to three things."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(ALTERATIONS)(rng, manifest, content)


def _any_part(rng: Random, manifest: dict[str, Any]) -> dict[str, Any]:
    parts = manifest["content"]["parts"]
    name = rng.choice([name for name in parts if parts[name].get("bytes")])
    return dict(parts[name])


def alter_number(rng: Random, manifest: dict[str, Any], content: bytearray) -> None:
    """One number of an array becomes an odd one, or another number of the same array."""
    part = _any_part(rng, manifest)
    if "dtype" not in part:
        return alter_byte(rng, manifest, content)
    end = part["offset"] + part["bytes"]
    array = np.frombuffer(content[part["offset"] : end], part["dtype"]).copy()
    at = rng.randrange(len(array))
    near = int(array[at]) + rng.choice((-2, -1, 1, 2)) if array.dtype.kind != "f" else 0
    new = rng.choice((rng.choice(ODD_NUMBERS), near, array[rng.randrange(len(array))]))
    if array.dtype.kind != "f":
        limits = np.iinfo(array.dtype)
        new = min(max(int(new), int(limits.min)), int(limits.max))
    array[at] = new
    content[part["offset"] : end] = array.tobytes()
    return None


def alter_byte(rng: Random, manifest: dict[str, Any], content: bytearray) -> None:
    """One byte of a part becomes another."""
    part = _any_part(rng, manifest)
    content[part["offset"] + rng.randrange(part["bytes"])] = rng.randrange(256)


def shuffle_array(rng: Random, manifest: dict[str, Any], content: bytearray) -> None:
    """The numbers of an array change their places, or all become one."""
    part = _any_part(rng, manifest)
    if "dtype" in part:
        end = part["offset"] + part["bytes"]
        array = np.frombuffer(content[part["offset"] : end], part["dtype"]).copy()
        if rng.random() < 0.5:
            np.random.default_rng(rng.randrange(2**32)).shuffle(array)
        else:
            array[:] = array[rng.randrange(len(array))]
        content[part["offset"] : end] = array.tobytes()


def swap_parts(rng: Random, manifest: dict[str, Any], content: bytearray) -> None:
    """Two names change what they stand for."""
    parts = manifest["content"]["parts"]
    one, other = rng.sample(sorted(parts), 2)
    parts[one], parts[other] = parts[other], parts[one]


def alter_shape(rng: Random, manifest: dict[str, Any], content: bytearray) -> None:
    """The manifest gives an array other dimensions."""
    parts = manifest["content"]["parts"]
    part = parts[rng.choice([name for name in parts if "shape" in parts[name]])]
    shape = part["shape"]
    n = int(np.prod(shape))
    part["shape"] = rng.choice(
        [
            [n],
            [1, n],
            [n, 1],
            [max(n - 1, 0)],
            [n + 1],
            [0],
            [-1],
            [n // 2, 2],
            [*shape, 1],
            shape * 2,
        ]
    )


def alter_manifest(rng: Random, manifest: dict[str, Any], content: bytearray) -> None:
    """A value somewhere in the manifest becomes an odd one, or goes."""
    node: Any = manifest
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = node[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
            node = inner
            continue
        if rng.random() < 0.15:
            del node[key]
        elif isinstance(inner, int) and rng.random() < 0.5:
            node[key] = inner + rng.choice((-64, -1, 1, 64))
        else:
            node[key] = rng.choice(ODD_VALUES)
        return


ALTERATIONS = [
    *[alter_number] * 6,
    *[shuffle_array] * 2,
    *[alter_manifest] * 3,
    alter_byte,
    swap_parts,
    alter_shape,
]


def use(directory: Path) -> str:
    """Open an index of somebody else's and do all that one does; what it came to."""
    try:
        index = tamis.open(directory, trusted=False)
        for event in EVENTS:
            index.match(event)
            index.match_bindings(event)
        index.match_batch(EVENTS * 200)
        index.match_lists(EVENTS)
        index.match_batch(EVENTS, at="2085-01-01", columns=index.view.details.names)
        for name in list(index)[:5]:
            index.attributes(name)
        index.count_by_event(EVENTS)
        index.count_by_subscription(EVENTS)
        for name in index.contents.ids.to_pylist()[:5]:
            index.explain(name, EVENTS[2])
            to_dot(index.contents, index.ordinal(name))
        compute_stats(index.contents, directory)
        index.tagged("red")
    except TamisError:
        return "refused"
    return "used"


def make_mutant(source: Path, directory: Path, seed: str) -> None:
    """The mutant of that seed."""
    rng = Random(seed)
    manifest = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    (content_file,) = source.glob("content-*.bin")
    content = bytearray(content_file.read_bytes())
    # A second alteration may have nothing left to alter.
    with suppress(KeyError, TypeError, ValueError, AttributeError, IndexError):
        alter(rng, manifest, content)
    seal(directory, manifest, content)


def main(source: str, first: str, last: str, seed: str) -> None:
    """Use the mutants from `first` to before `last`, and print what each came to."""
    for number in range(int(first), int(last)):
        directory = Path(tempfile.mkdtemp())
        try:
            make_mutant(Path(source), directory, f"{seed} {number}")
            print(number, end=" ", flush=True)
            print(use(directory), flush=True)
        finally:
            shutil.rmtree(directory)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    main(*sys.argv[1:])
