"""Imports go one way, and `import tamis` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS

SOURCE = Path(__file__).parents[1] / "src" / "tamis"

ROOT = "tamis"  # the package's own __init__.py, the public face

ENGINE = {"errors", "arguments", "durable", "kernels", "language", "text", "logic"}
ENGINE |= {"operators", "events", "index", "match"}
SHARED = ENGINE | {"input", "places", "validate"}

# What each part may import, type-only and lazy imports included.
ALLOWED = {
    "errors": set(),
    "arguments": {"errors"},
    "durable": set(),
    "kernels": set(),
    "places": {"errors"},
    "language": {"errors", "text"},
    "text": {"errors", "kernels"},
    "logic": {"errors", "language", "text"},
    "subscriptions": {"errors", "arguments", "durable", "language", "places"},
    "archive": {"errors", "arguments", "durable", "kernels", "language"},
    "operators": {"errors", "kernels", "language", "text", "logic"},
    "index": {"errors", "durable", "kernels", "language", "text", "logic", "operators"},
    "events": {"errors", "kernels", "language", "text", "logic", "operators", "index"},
    "input": {"errors", "language", "events"},
    "importers": {"errors", "language", "text", "input"},
    "match": ENGINE - {"match"} | {"input"},
    "validate": {"errors", "language", "text", "logic", "operators", "input"},
    "tuning": ENGINE | {"input"},
    "search": ENGINE | {"input", "archive"},
    "versions": ENGINE | {"input", "places"},
    "spark": SHARED | {"versions", "subscriptions"},
    "live": SHARED | {"versions", "subscriptions"},
    "broker": SHARED | {"versions", "subscriptions", "live", "archive", "search"},
    "client": {"errors"},
    "outgoing": set(),
    "feeds": SHARED | {"versions", "subscriptions", "live", "archive", "broker", "outgoing", ROOT},
    ROOT: SHARED | {"versions", "spark", "live", "broker"},
    "server": SHARED
    | {"versions", "subscriptions", "live", "archive", "search", "broker", "outgoing", "feeds"}
    | {ROOT},
    "lab": SHARED | {"versions", "spark", "live", "broker", ROOT},
    "cli": SHARED
    | {
        "versions",
        "spark",
        "subscriptions",
        "live",
        "archive",
        "search",
        "broker",
        "client",
        "feeds",
        "server",
        "lab",
        "importers",
        "tuning",
        ROOT,
    },
    "__main__": {"cli"},
}

HEAVY = ["pyspark", "pandas", "starlette", "uvicorn", "matplotlib", "polars", "numba"]
HEAVY += ["sqlalchemy", "feedparser", "httpx2"]


def part_of(module: str) -> str:
    """The part of the house a module belongs to: "tamis.index.build" is in "index"."""
    _, _, below = module.partition(".")
    return below.partition(".")[0] or ROOT


def module_of(path: Path) -> str:
    """The dotted name of a source file."""
    names = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def imported_modules(source: str, package: str) -> set[str]:
    """Every module of ours that the source of a module in `package` imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(named_modules(node, package))
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            found.update(
                argument.value
                for argument in node.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )
    return {name for name in found if name == ROOT or name.startswith(f"{ROOT}.")}


def named_modules(node: ast.ImportFrom, package: str) -> set[str]:
    """The modules a `from` import names, its relative dots resolved."""
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, base] if base else above)
    if base != ROOT:
        return {base}
    # `from tamis import index` imports a part; `from tamis import build` the face itself.
    parts = {alias.name for alias in node.names} & ALLOWED.keys()
    is_face = len(parts) < len(node.names)
    return {f"{ROOT}.{part}" for part in parts} | ({ROOT} if is_face else set())


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", source_files(), ids=module_of)
def test_imports_go_one_way(path):
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    part = part_of(module)
    assert part in ALLOWED, f'say in ALLOWED what the new part "{part}" may import'
    imported = imported_modules(path.read_text(encoding="utf-8"), package)
    wrong = {name for name in imported if part_of(name) not in ALLOWED[part] | {part}}
    assert not wrong, f"{part} may import {sorted(ALLOWED[part])}"


def test_table_has_no_cycle():
    order: list[str] = []
    while len(order) < len(ALLOWED):
        ready = [part for part in ALLOWED if part not in order and ALLOWED[part] <= set(order)]
        assert ready, f"a cycle among {sorted(set(ALLOWED) - set(order))}"
        order += ready


def test_modules_have_no_cycle():
    modules = {module_of(path) for path in source_files()}
    needed = {
        module_of(path): needed_modules(path.read_text(encoding="utf-8"), modules)
        for path in source_files()
    }
    try:
        TopologicalSorter(needed).prepare()
    except CycleError as error:
        pytest.fail(" ← ".join(error.args[1]))


def needed_modules(source: str, modules: set[str]) -> set[str]:
    """Those of the modules that a source imports when it runs, lazy imports included.

    Imports for annotations alone are left out: they load nothing, and a record may be passed to a
    function of the module that makes it. `from tamis.logic import rules` needs the module `rules`
    and not the package, whose `__init__` is empty or exports what lies below it.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= below & modules
            named |= {node.module or ""} if below - modules else set()
        else:
            named |= imported_modules(ast.unparse(node), "") if is_import(node) else set()
    return named & modules


def is_import(node: ast.AST) -> bool:
    """Whether a node imports a module by its whole name."""
    is_call = isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func)
    return is_call or isinstance(node, ast.Import)


def test_cycles_are_found():
    modules = {"tamis.a", "tamis.b", "tamis.c.d"}
    source = """
if TYPE_CHECKING:
    from tamis.a import A
def f():
    from tamis.b import b
from tamis.c import d
"""
    assert needed_modules(source, modules) == {"tamis.b", "tamis.c.d"}
    assert needed_modules("importlib.import_module('tamis.a')", modules) == {"tamis.a"}


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import os, tamis.index.build", {"tamis.index.build"}),
        ("from tamis.match import explain", {"tamis.match"}),
        ("from tamis import match, errors", {"tamis.match", "tamis.errors"}),
        ("from tamis import build", {"tamis"}),
        ("from . import nodes", {"tamis.logic"}),
        ("from ..index import build", {"tamis.index"}),
        ("from .. import index", {"tamis.index"}),
        ("def f():\n    import tamis.lab", {"tamis.lab"}),
        ("if TYPE_CHECKING:\n    from tamis.cli import main", {"tamis.cli"}),
        ("importlib.import_module('tamis.server')", {"tamis.server"}),
        ("from tamisier import sieve", set()),
    ],
)
def test_every_way_to_import_is_seen(source, modules):
    assert imported_modules(source, "tamis.logic") == modules


@pytest.mark.parametrize(
    ("module", "heavy"),
    [("tamis", HEAVY), ("tamis.versions", ["pyspark", "py4j"])],
)
def test_import_is_light(module, heavy):
    loaded = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    finished = subprocess.run(
        [sys.executable, "-c", loaded],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert (finished.stdout, finished.stderr) == ("[]\n", "")
