"""The index on disk: a valid one opens unchanged; the error of a damaged one names the damage."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tamis import durable
from tamis.errors import IndexFormatError, InputError
from tamis.index import artefact, saving
from tamis.index.artefact import FORMAT_VERSION
from tamis.index.saving import MANIFEST
from tamis.index.stored_texts import BLOCK
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tamis.match.index import Index
from tests.match.engines import ENGINES, save_quickly
from tests.match.examples import RANDOM_EVENTS, Example, draw_example, show_columns
from tests.waiting import HANG_SECONDS

pytestmark = RANDOM_EVENTS


@pytest.fixture(scope="module")
def example(seed: int) -> Example:
    return draw_example(seed, n_subscriptions=60, n_events=70, n_attributes=12)


@pytest.fixture(scope="module")
def index(example: Example) -> Index:
    return build(example.texts, example.schema)


@pytest.fixture(scope="module")
def saved(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved index that no test changes."""
    return save_quickly(index, tmp_path_factory.mktemp("artefact") / "index")


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def arrays_of(index: Index) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of an index, by name."""
    contents = index.contents
    for group in ("leaves", "nodes", "roots", "triggers"):
        for name, array in getattr(contents, group)._asdict().items():
            yield f"{group}.{name}", array
    yield "never", contents.never


def content_of(directory: Path) -> Path:
    """The one file next to the manifest."""
    (content,) = directory.glob("content-*.bin")
    return content


def file_of(directory: Path, name: str) -> Path:
    return directory / MANIFEST if name == MANIFEST else content_of(directory)


FILES = (MANIFEST, "content")


# ── round trip ──────────────────────────────────────────────────────────────────────────────


def test_arrays_are_equal_after_opening(index, saved):
    before, after = dict(arrays_of(index)), dict(arrays_of(Index.open(saved)))
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert array.dtype == after[name].dtype, name
        assert array.tobytes() == after[name].tobytes(), name


def test_contents_are_equal_after_opening(index, saved):
    before, after = index.contents, Index.open(saved).contents
    assert after.schema == before.schema
    assert after.missing is before.missing
    assert after.n_leaves == before.n_leaves
    assert after.ids.equals(before.ids)
    assert after.texts.to_arrow().equals(before.texts)
    assert [after.texts[at] for at in range(len(index))] == list(before.texts)
    assert after.tags.equals(before.tags)
    assert show_columns(after) == show_columns(before)
    assert after.provenance == before.provenance


def test_answers_are_equal_after_opening(index, saved, example):
    opened = Index.open(saved)
    for engine in ENGINES:
        before, after = (engine.ask(one, example.events) for one in (index, opened))
        assert before.tobytes() == after.tobytes(), engine.name
    assert index.match_batch(example.events).equals(opened.match_batch(example.events))
    assert [index.match(event) for event in example.events] == [
        opened.match(event) for event in example.events
    ]


@pytest.mark.parametrize("missing", Missing)
def test_the_meaning_of_missing_is_kept(missing, tmp_path):
    index = build({"s": "NOT a = 1"}, missing=missing)
    opened = Index.open(save_quickly(index, tmp_path / "index"))
    assert opened.contents.missing is missing
    assert bool(opened.match({})) == (missing is Missing.SATISFIES_NEGATION)


def test_saving_what_was_opened_gives_the_same_files(saved, tmp_path):
    again = save_quickly(Index.open(saved), tmp_path / "again")
    for path in saved.iterdir():
        if path.name != MANIFEST:
            assert (again / path.name).read_bytes() == path.read_bytes(), path.name
    manifests = [json.loads((place / MANIFEST).read_text("utf-8")) for place in (saved, again)]
    for manifest in manifests:
        del manifest["created_at"], manifest["checksum"]
    assert manifests[0] == manifests[1]


def test_the_manifest_says_what_is_there(saved, index):
    manifest = json.loads((saved / MANIFEST).read_text("utf-8"))
    assert manifest["format_version"] == FORMAT_VERSION
    assert manifest["counts"]["subscriptions"] == len(index)
    content = content_of(saved)
    assert {path.name for path in saved.iterdir()} == {MANIFEST, content.name}
    assert manifest["content"]["file"] == content.name
    whole = content.read_bytes()
    assert manifest["content"]["bytes"] == len(whole)
    end = 0
    for name, part in manifest["content"]["parts"].items():
        assert part["offset"] == end, "no byte is between the parts"
        assert part["offset"] % 64 == 0, name
        end = part["offset"] + part["bytes"] + -part["bytes"] % 64
        assert zlib.crc32(whole[part["offset"] : end]) == part["crc32"], name
    assert end == len(whole)
    assert {name for name, _ in arrays_of(index)} <= set(manifest["content"]["parts"])


def test_statistics_are_kept(index, tmp_path):
    contents = replace(index.contents, statistics={"leaf rates": [0.5, None]})
    artefact.save(contents, tmp_path / "index")
    opened = artefact.open_contents(tmp_path / "index")
    assert opened.statistics == {"leaf rates": [0.5, None]}


def test_texts_of_several_blocks(tmp_path):
    n_texts = 2 * BLOCK + 7
    index = build({str(at): f"a = {at}" for at in range(n_texts)})
    opened = Index.open(save_quickly(index, tmp_path / "index")).contents
    for at in (0, 1, BLOCK - 1, BLOCK, 2 * BLOCK, n_texts - 1):
        assert opened.texts[at].as_py() == f"a = {at}"
    for at in (-1, n_texts):
        with pytest.raises(IndexError):
            opened.texts[at]
    again = artefact.open_contents(save_quickly(Index(opened), tmp_path / "again"))
    assert again.texts.to_arrow().equals(opened.texts.to_arrow())


def test_an_open_index_holds_one_descriptor_at_most(saved):
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("descriptors cannot be counted here")
    before = len(list(descriptors.iterdir()))
    opened = Index.open(saved)
    assert len(list(descriptors.iterdir())) <= before + 1
    assert len(opened) > 0


def test_arrays_cannot_be_written_to(index, saved):
    for one in (index, Index.open(saved)):
        for name, array in arrays_of(one):
            assert not array.flags.writeable, name
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_the_files_may_go_once_it_is_open(index, example, copy):
    """A mapped index stays readable until it is closed, even if the directory was replaced."""
    opened = Index.open(copy)
    shutil.rmtree(copy)
    assert opened.match_batch(example.events).equals(index.match_batch(example.events))


def test_no_pickle(saved, index, example, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("pickle was used")

    for name in ("loads", "load", "Unpickler", "dumps", "dump", "Pickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(np, "load", refuse)
    opened = Index.open(saved)
    save_quickly(opened, saved.parent / "without pickle")
    assert opened.match(example.events[0]) == index.match(example.events[0])


def test_no_code_in_the_files(saved):
    for path in saved.iterdir():
        content = path.read_bytes()
        assert not content.startswith((b"\x80\x04", b"\x80\x05", b"\x93NUMPY", b"PK")), path.name


PRINT_MATCHES = """
import json, sys
from tamis.match.index import Index
index = Index.open(sys.argv[1])
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
print(json.dumps([index.match(event) for event in json.loads(sys.argv[2])]))
"""


def test_two_processes_open_the_same_index(tmp_path):
    index = build({str(at): f"a > {at} AND b <> 'x{at}'" for at in range(100)})
    path = save_quickly(index, tmp_path / "index")
    events = [{"a": 50, "b": "x7"}, {"a": 3, "b": "y"}, {}]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PRINT_MATCHES, str(path), json.dumps(events)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    try:
        for process in running:  # both have it open before either matches
            assert process.stdout.readline() == "ready\n", process.stderr.read()
        for process in running:
            printed, errors = process.communicate("go\n", timeout=HANG_SECONDS)
            assert json.loads(printed) == [index.match(event) for event in events], errors
    finally:
        for process in running:
            process.kill()
            process.communicate()


# ── damage ──────────────────────────────────────────────────────────────────────────────────


def assert_refused(path: Path, *mentions: str, verify: bool = True) -> None:
    with pytest.raises(IndexFormatError) as raised:
        Index.open(path, verify=verify)
    for mention in mentions:
        assert mention in raised.value.message
    assert raised.value.hint, "it says what to do"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verify", [True, False])
def test_a_missing_file(copy, name, verify):
    file_of(copy, name).unlink()
    assert_refused(copy, name, verify=verify)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verify", [True, False])
def test_a_truncated_file(copy, name, verify):
    content = file_of(copy, name).read_bytes()
    if not content:
        pytest.skip("empty: there is nothing to cut")
    file_of(copy, name).write_bytes(content[:-1])
    assert_refused(copy, name, verify=verify)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verify", [True, False])
def test_an_extended_file(copy, name, verify):
    with file_of(copy, name).open("ab") as file:
        file.write(b"\x00")
    assert_refused(copy, name, verify=verify)


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit(copy, name, seed):
    content = bytearray(file_of(copy, name).read_bytes())
    if not content:
        pytest.skip("empty: there is no bit")
    rng = np.random.default_rng(seed)
    places = {0, len(content) - 1, *rng.integers(0, len(content), 12).tolist()}
    for place in places:
        for bit in rng.choice(8, 3, replace=False).tolist():
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            file_of(copy, name).write_bytes(flipped)
            assert_refused(copy)
    file_of(copy, name).write_bytes(content)
    Index.open(copy)


def test_a_damaged_part_is_named(copy):
    content = content_of(copy)
    whole = bytearray(content.read_bytes())
    for name, part in json.loads((copy / MANIFEST).read_text("utf-8"))["content"]["parts"].items():
        if part["bytes"]:
            damaged = whole.copy()
            damaged[part["offset"]] ^= 1
            content.write_bytes(damaged)
            assert_refused(copy, content.name, f'"{name}"')


@pytest.mark.slow
def test_every_bit_of_the_manifest(copy):
    path = copy / MANIFEST
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            path.write_bytes(flipped)
            assert_refused(copy)


@pytest.mark.parametrize("name", FILES)
def test_an_unreadable_file(copy, name):
    path = file_of(copy, name)
    path.unlink()
    path.mkdir()
    assert_refused(copy, name)


@pytest.mark.parametrize(
    "version", [0, FORMAT_VERSION - 1, FORMAT_VERSION + 1, 999, None, "1", 1.5, []]
)
def test_another_version(copy, version):
    if version == FORMAT_VERSION:
        pytest.skip("that is ours")
    manifest = json.loads((copy / MANIFEST).read_text("utf-8")) | {"format_version": version}
    write_manifest(copy, manifest)
    assert_refused(copy, f"version {version}", str(FORMAT_VERSION))


def write_manifest(directory: Path, manifest: object, *, signs: bool = True) -> None:
    if signs:
        body = {key: value for key, value in manifest.items() if key != "checksum"}
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        manifest = body | {"checksum": zlib.crc32(text.encode())}
    (directory / MANIFEST).write_text(json.dumps(manifest), "utf-8")


def test_an_edited_manifest(copy):
    manifest = json.loads((copy / MANIFEST).read_text("utf-8"))
    for edited in (
        manifest | {"missing": "satisfies_negation"},
        manifest | {"checksum": manifest["checksum"] + 1},
        {key: value for key, value in manifest.items() if key != "checksum"},
        manifest | {"counts": manifest["counts"] | {"leaves": 1}},
        manifest | {"more": 1},
    ):
        write_manifest(copy, edited, signs=False)
        assert_refused(copy, MANIFEST, "checksum")


def test_a_reformatted_manifest_is_the_same_manifest(copy):
    manifest = json.loads((copy / MANIFEST).read_text("utf-8"))
    shuffled = dict(sorted(manifest.items(), reverse=True))
    (copy / MANIFEST).write_text(json.dumps(shuffled, indent=7), "utf-8")
    Index.open(copy)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"tamis-index"',
        b"\xff\xfe",
        b"{}",
        b"[" * 100_000,
        b'{"format": "other"}',
        b'{"format": "tamis-index"}',
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_is_no_manifest(copy, content):
    (copy / MANIFEST).write_bytes(content)
    assert_refused(copy)


def test_what_is_no_index(tmp_path):
    assert_refused(tmp_path / "nowhere", "nowhere", "does not exist")
    (tmp_path / "empty").mkdir()
    assert_refused(tmp_path / "empty", "empty", "manifest.json")
    (tmp_path / "file").write_text("not a directory")
    assert_refused(tmp_path / "file", "file")


def test_opening_without_verifying(saved, copy, index, example):
    """Sizes are still compared; contents are taken on trust."""
    opened = Index.open(saved, verify=False)
    assert opened.match_batch(example.events).equals(index.match_batch(example.events))
    texts = content_of(copy)
    content = bytearray(texts.read_bytes())
    parts = json.loads((copy / MANIFEST).read_text("utf-8"))["content"]["parts"]
    content[parts["texts"]["offset"] + parts["texts"]["bytes"] // 2] ^= 1
    texts.write_bytes(content)
    assert_refused(copy, texts.name, '"texts"')
    assert len(Index.open(copy, verify=False)) == len(index)


# ── writing ─────────────────────────────────────────────────────────────────────────────────

OLD, NEW = {"old": "a = 1"}, {"new": "a = 1", "other": "a = 2"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An index that is to be replaced."""
    return save_quickly(build(OLD), tmp_path / "index")


def assert_still_old(path: Path) -> None:
    assert Index.open(path).match({"a": 1}) == ["old"]
    assert [one.name for one in path.parent.iterdir()] == [path.name], "nothing is left next to it"
    assert {one.name for one in path.iterdir()} == {MANIFEST, content_of(path).name}


def test_what_exists_is_not_overwritten(old):
    with pytest.raises(InputError, match="exists") as raised:
        build(NEW).save(old)
    assert "overwrite" in (raised.value.hint or "")
    assert_still_old(old)


def test_overwriting(old):
    before = Index.open(old)
    build(NEW).save(old, overwrite=True)
    assert Index.open(old).match({"a": 1}) == ["new"]
    assert before.match({"a": 1}) == ["old"], "who had the old one open still has it"
    assert [one.name for one in old.parent.iterdir()] == [old.name]


def test_overwriting_what_is_not_there(tmp_path):
    build(NEW).save(tmp_path / "index", overwrite=True)
    assert Index.open(tmp_path / "index").match({"a": 1}) == ["new"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_is_no_index_is_never_overwritten(tmp_path, overwrite):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("words")
    (tmp_path / "file").write_text("words")
    for path in (precious, tmp_path / "file"):
        with pytest.raises(InputError, match=path.name):
            build(NEW).save(path, overwrite=overwrite)
    assert (precious / "thesis.txt").read_text() == "words"
    assert (tmp_path / "file").read_text() == "words"


def test_directories_above_are_not_made(tmp_path):
    """A path with a typing mistake is no wish for another directory."""
    with pytest.raises(InputError, match="does not exist"):
        build(NEW).save(tmp_path / "a" / "index")
    assert list(tmp_path.iterdir()) == []


def fail_at(n_calls: int, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[int]:
    """Let a function fail at its n-th call; how often it was called."""
    original, calls = getattr(owner, name), [0]

    def failing(*arguments: object, **options: object) -> object:
        calls[0] += 1
        if calls[0] == n_calls:
            raise OSError(28, "No space left on device")
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, failing)
    return calls


def fails_at(n_calls: int, place: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether saving fails where the disk fails at its n-th call."""
    with monkeypatch.context() as patched:
        calls = fail_at(n_calls, patched, os, "fsync")
        try:
            index.save(place, overwrite=True)
        except InputError as error:
            assert "No space left" in error.message  # noqa: PT017 - one of many calls fails
            return True
    assert calls[0] == n_calls - 1 > len(FILES)
    return False


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    """At whichever file the disk fails."""
    place, index = tmp_path / "index", build(NEW)
    for n_calls in range(1, 100):
        if not fails_at(n_calls, place, index, monkeypatch):
            break
        assert list(tmp_path.iterdir()) == []
    assert Index.open(place).match({"a": 1}) == ["new"]


def test_a_failed_overwriting_leaves_what_was(tmp_path, monkeypatch):
    """Until the manifest is replaced; what fails after that leaves the new one."""
    place, index = tmp_path / "index", build(NEW)
    found = []
    for n_calls in range(1, 100):
        build(OLD).save(place, overwrite=True)
        if not fails_at(n_calls, place, index, monkeypatch):
            break
        found += Index.open(place).match({"a": 1})
        assert {one.name for one in place.iterdir()} == {MANIFEST, content_of(place).name}
    assert found == ["old", "old", "old", "new"]


@pytest.mark.parametrize("n_calls", [1, 2])
def test_a_failed_replacement_leaves_what_was(old, n_calls, monkeypatch):
    index = build(NEW)
    with monkeypatch.context() as patched:
        fail_at(n_calls, patched, os, "replace")
        with pytest.raises(InputError):
            index.save(old, overwrite=True)
    assert_still_old(old)


def test_a_failed_removal_of_the_old_is_no_failure_of_the_new(old, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(saving, "remove_content", lambda *_, **__: None)
        build(NEW).save(old, overwrite=True)
    assert Index.open(old).match({"a": 1}) == ["new"]
    assert len(list(old.glob("content-*"))) == 2
    build(OLD).save(old, overwrite=True)
    assert_still_old(old)


def test_a_writer_that_dies_leaves_the_old_or_the_new(old, monkeypatch):
    """Killed at each step, so that nothing is cleaned up."""
    index = build(NEW)
    seen = set()
    for n_calls in range(1, 20):
        copy = Path(shutil.copytree(old, old.with_name(f"copy{n_calls}")))
        with monkeypatch.context() as patched:
            patched.setattr(saving, "remove_content", lambda *_, **__: None)
            patched.setattr(Path, "unlink", lambda *_, **__: None)
            calls = fail_at(n_calls, patched, os, "fsync")
            with suppress(InputError):
                index.save(copy, overwrite=True)
        seen.add(tuple(Index.open(copy).match({"a": 1})))
        index.save(copy, overwrite=True)
        assert {one.name for one in copy.iterdir()} == {MANIFEST, content_of(copy).name}
        if calls[0] < n_calls:
            break
    assert seen == {("old",), ("new",)}


def test_a_reader_meets_an_overwriting(old, monkeypatch):
    """The content that the manifest named is gone before it is opened: the new one is read."""
    read_manifest = artefact._read_manifest
    is_overwritten = []

    def read_then_overwrite(directory: Path) -> dict:
        manifest = read_manifest(directory)
        if not is_overwritten:
            is_overwritten.append(True)
            build(NEW).save(directory, overwrite=True)
        return manifest

    with monkeypatch.context() as patched:
        patched.setattr(artefact, "_read_manifest", read_then_overwrite)
        opened = Index.open(old)
    assert opened.match({"a": 1}) == ["new"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, ValueError])
def test_an_interrupted_write_leaves_what_was(old, interruption, monkeypatch):
    def interrupt(_: object) -> None:
        raise interruption

    with monkeypatch.context() as patched:
        patched.setattr(durable, "sync_directory", interrupt)
        with pytest.raises(interruption):
            build(NEW).save(old, overwrite=True)
    assert_still_old(old)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="file"):
        build(NEW).save(tmp_path / "file" / "index")
