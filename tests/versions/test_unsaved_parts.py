"""Rules on trial answer as parts do, without files."""

from __future__ import annotations

import pickle

import pytest

import tamis
from tamis.versions import IndexStore, open_version
from tamis.versions.unsaved_parts import make_unsaved_parts
from tests.versions.test_store import version_of, write


@pytest.fixture
def store(tmp_path) -> IndexStore:
    made = IndexStore(tmp_path / "index")
    part = write(made, {"x": "a = 1"})
    made.publish(lambda newest: version_of(part))
    return made


def test_rules_are_built_where_they_are_opened(store):
    rules = make_unsaved_parts(
        open_version(store), {"x": "a = 2", "y": "b > 1"}, tamis.DEFAULT_LIMITS
    )
    for own in (rules, pickle.loads(pickle.dumps(rules))):
        index = own.open()
        assert index.match({"a": 2, "b": 3}) == ["x", "y"]
        assert index.match({"a": 1}) == []


def test_an_invalid_rule_raises_its_error(store):
    with pytest.raises(tamis.ExpressionError):
        make_unsaved_parts(open_version(store), {"x": "a ="}, tamis.DEFAULT_LIMITS)
