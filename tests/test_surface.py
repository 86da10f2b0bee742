"""The public face: small, typed at once, light to import."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.language.ast import Attribute, Comparison
from tamis.language.types import DOUBLE, NUMBER
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[1]


def test_all_is_there():
    assert all(hasattr(tamis, name) for name in tamis.__all__)


def test_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tamis.__version__ == project["version"]


def test_parse_types_from_the_expression_or_the_schema():
    inferred = tamis.parse("a > 1")
    assert isinstance(inferred, Comparison)
    assert inferred.left == Attribute(("a",), NUMBER)
    for schema in ("a DOUBLE", {"a": "double"}, pa.schema([("a", pa.float64())])):
        assert tamis.parse("a > 1", schema).left == Attribute(("a",), DOUBLE)


def test_parse_obeys_limits():
    with pytest.raises(tamis.LimitError):
        tamis.parse("a IN (1, 2)", limits=tamis.Limits(in_list=1))


def test_evaluate_takes_text_or_condition():
    condition = tamis.parse("NOT a = 1")
    for expression in ("NOT a = 1", condition):
        assert tamis.evaluate(expression, {"a": 2}) is True
        assert tamis.evaluate(expression, {"a": 1}) is False
        assert tamis.evaluate(expression, {}) is None
        assert tamis.evaluate(expression, {}, missing="satisfies_negation") is True


@pytest.mark.parametrize(
    "call",
    [
        lambda: tamis.evaluate("a = 1", {}, missing="maybe"),
        lambda: tamis.evaluate("a = 1", [1]),
        lambda: tamis.evaluate("a = ", {}),
        lambda: tamis.parse(5),
        lambda: tamis.parse("a = 1", 5),
        lambda: tamis.parse("a = 1", "a COLOUR"),
        lambda: tamis.parse("a = 1", '{"a": '),
        lambda: tamis.check("a = 1", 5),
    ],
)
def test_mistakes_are_ours(call):
    with pytest.raises(tamis.TamisError):
        call()


def test_check_collects():
    assert tamis.check("a = 1") == []
    (error,) = tamis.check("a = ")
    (warning,) = tamis.check("a > 5 AND a < 3")
    assert (error.severity, warning.severity) == ("error", "warning")
    assert tamis.check("a = 1", "b INT")[0].reason.code == "unknown-attribute"


def test_parts_are_found_when_named():
    assert tamis.input.__doc__
    assert tamis.validate.Severity.ERROR == "error"
    assert "spark" in dir(tamis)
    with pytest.raises(AttributeError, match="no attribute 'sparc'"):
        tamis.sparc  # noqa: B018


def test_import_loads_nothing_heavy():
    heavy = ["numba", "pandas", "pyspark", "pyarrow", "rich", "click", "re2", "numpy"]
    loaded = f"import sys, tamis; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", loaded],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
