"""An index from somebody else: its damage is reported, and nothing else happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from tamis.errors import IndexFormatError, InputError
from tamis.index.artefact import MANIFEST
from tests.effort import examples
from tests.index.mutants import EVENTS, ROWS, SCHEMA, SUBSCRIPTIONS, seal, use
from tests.match.examples import RANDOM_EVENTS, draw_example
from tests.waiting import HANG_SECONDS

pytestmark = RANDOM_EVENTS

KEY = b"0123456789abcdef"
MODES = ("undefined", "satisfies_negation")
PER_PROCESS = 500


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> dict[str, Path]:
    """An index of every kind of test, in both missing modes."""
    folder = tmp_path_factory.mktemp("structure")
    for mode in MODES:
        index = tamis.build(ROWS, SCHEMA, missing=mode)
        assert not index.rejects
        index.save(folder / mode)
    return {mode: folder / mode for mode in MODES}


def read(directory: Path) -> tuple[dict, bytearray]:
    (content,) = directory.glob("content-*.bin")
    return json.loads((directory / MANIFEST).read_text()), bytearray(content.read_bytes())


@pytest.mark.parametrize("mode", MODES)
def test_what_was_built_here_is_valid(saved, mode):
    assert use(saved[mode]) == "used"


def test_random_indexes_are_valid(seed, tmp_path):
    for number in range(examples(15)):
        example = draw_example(seed + number, n_subscriptions=40, n_events=20, n_attributes=8)
        index = tamis.build(example.texts, example.schema)
        index.save(tmp_path / "index", overwrite=True)
        opened = tamis.open(tmp_path / "index", trusted=False)
        assert opened.match_batch(example.events).equals(index.match_batch(example.events))


def test_an_empty_index_is_valid(tmp_path):
    tamis.build({}).save(tmp_path / "index")
    assert len(tamis.open(tmp_path / "index", trusted=False)) == 0


@pytest.mark.parametrize("mode", MODES)
def test_mutants_neither_crash_nor_hang(saved, mode, seed):
    """A separate process uses mutants, so that a crash is noticed and names the mutant."""
    n_used = n_refused = 0
    for first in range(0, examples(300), PER_PROCESS):
        last = min(first + PER_PROCESS, examples(300))
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.index.mutants"]
        done = subprocess.run(
            [*command, saved[mode], str(first), str(last), str(seed)],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )
        shown = done.stdout.split("\n")[-2:]
        assert done.returncode == 0, f"mutant {shown} of seed {seed}: {done.stderr[-3000:]}"
        n_used += done.stdout.count(" used")
        n_refused += done.stdout.count(" refused")
    print(f"{n_refused} refused, {n_used} used")
    assert n_used + n_refused == examples(300)
    assert n_refused > n_used > 0


# ── names and files ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["../content-0123456789abcdef.bin", "/etc/passwd", "", ".", 7])
def test_a_content_elsewhere_is_refused(saved, tmp_path, name):
    directory = shutil.copytree(saved["undefined"], tmp_path / "index")
    manifest, content = read(directory)
    manifest["content"]["file"] = name
    seal(directory, manifest, content)
    with pytest.raises(IndexFormatError, match="not a valid name of a content file"):
        tamis.open(directory)


def test_a_pipe_in_the_place_of_the_content_is_not_waited_for(saved, tmp_path):
    directory = shutil.copytree(saved["undefined"], tmp_path / "index")
    (content,) = directory.glob("content-*.bin")
    content.unlink()
    os.mkfifo(content)
    with pytest.raises(IndexFormatError, match="is not a file"):
        tamis.open(directory)


def test_reading_instead_of_mapping_outlives_the_file(saved, tmp_path):
    directory = shutil.copytree(saved["undefined"], tmp_path / "index")
    index = tamis.open(directory, mmap=False)
    expected = tamis.open(saved["undefined"]).match_batch(EVENTS)
    (content,) = directory.glob("content-*.bin")
    with content.open("r+b") as file:
        file.truncate(10)
    assert index.match_batch(EVENTS).equals(expected)


# ── signatures ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def signed(saved, tmp_path) -> Path:
    tamis.open(saved["undefined"]).save(tmp_path / "signed", key=KEY)
    return tmp_path / "signed"


def test_a_signed_index_opens_with_its_key_and_without(signed):
    assert len(tamis.open(signed, key=KEY)) == len(tamis.open(signed)) == len(SUBSCRIPTIONS)
    assert len(tamis.open(signed, key=KEY.decode())) == len(SUBSCRIPTIONS)


def test_another_key_or_no_signature_is_refused(signed, saved):
    with pytest.raises(IndexFormatError, match="was not signed with this key"):
        tamis.open(signed, key=KEY[::-1])
    with pytest.raises(IndexFormatError, match="is not signed"):
        tamis.open(saved["undefined"], key=KEY)
    with pytest.raises(InputError, match="the key has 5 bytes; at least 16"):
        tamis.open(signed, key="short")


def test_a_changed_constant_breaks_the_signature(signed):
    """Checksums can be made again; the answers would be others."""
    manifest, content = read(signed)
    content[manifest["content"]["parts"]["constants.floats"]["offset"]] ^= 1
    (file,) = signed.glob("content-*.bin")
    file.write_bytes(content)
    # As if the checksum were the same, which somebody who tries can have.
    with pytest.raises(IndexFormatError, match="is not the one that was signed"):
        tamis.open(signed, key=KEY, verify=False)
    seal(signed, manifest, content)
    tamis.open(signed)
    with pytest.raises(IndexFormatError, match="was not signed with this key"):
        tamis.open(signed, key=KEY)


def test_a_changed_manifest_breaks_the_signature(signed):
    manifest, content = read(signed)
    manifest["missing"] = "satisfies_negation"
    seal(signed, manifest, content)
    tamis.open(signed)
    with pytest.raises(IndexFormatError, match="was not signed with this key"):
        tamis.open(signed, key=KEY)
