"""Damaged indexes raise the errors that docs/matching.md lists."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

import tamis
from tamis.index import artefact
from tamis.text.analysers import analyser_versions
from tests.cli.indexes import build_index
from tests.cli.shell import run

GUIDE = Path(__file__).parents[2] / "docs" / "matching.md"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("whole"))


def set_version(path):
    manifest = path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format_version": 99}))


def content_of(path):
    """The one file next to the manifest."""
    (file,) = path.glob("content-*.bin")
    return file


def cut(path):
    file = content_of(path)
    file.write_bytes(file.read_bytes()[:-4])


def flip(path):
    parts = json.loads((path / "manifest.json").read_text())["content"]["parts"]
    file = content_of(path)
    content = bytearray(file.read_bytes())
    content[parts["nodes.children"]["offset"]] ^= 1
    file.write_bytes(content)


def stem_otherwise(path):
    versions = analyser_versions("english") | {"PyStemmer": "3.0.0"}
    with patch.object(artefact, "analyser_versions", return_value=versions):
        index = tamis.build({"s": "matches(body, 'houses')"}, "body TEXT(english)")
        index.save(path, overwrite=True)


DAMAGES = {
    "the path does not exist": shutil.rmtree,
    "another directory": lambda path: (path / "manifest.json").unlink(),
    "another format": set_version,
    "other versions of the analysers' libraries": stem_otherwise,
    "a file is missing": lambda path: content_of(path).unlink(),
    "cut short": cut,
    "altered": flip,
}


def documented() -> dict[str, str]:
    rows = re.findall(r"^\| ([a-z' ]+) \| `(ads\.tamis.*)` \|$", GUIDE.read_text(), re.MULTILINE)
    return dict(rows)


def test_every_damage_is_documented():
    assert documented().keys() == DAMAGES.keys()


@pytest.mark.parametrize("what", DAMAGES)
def test_refused_as_documented(what, whole, tmp_path):
    path = tmp_path / "ads.tamis"
    shutil.copytree(whole, path)
    DAMAGES[what](path)
    result = run("stats", path)
    assert (result.exit_code, result.stdout) == (1, "")
    said = result.stderr.splitlines()[0].removeprefix("error: ").replace(f"{tmp_path}/", "")
    # Names of content and sizes are each index's own.
    own = r"(?<=content-)[0-9a-f]+|\d+"
    assert re.sub(own, "0", said) == re.sub(own, "0", documented()[what])
    assert "hint: " in result.stderr
