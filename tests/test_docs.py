"""The documents are true: what they show runs, what they name exists, what exists is named."""

from __future__ import annotations

import ast
import doctest
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path

import click
import pytest

import tamis
from tamis.cli import main
from tamis.events.json_texts import parse_event
from tamis.language import DEFAULT_LIMITS, Limits, Schema
from tamis.language import ast as nodes
from tamis.language.ast import children, leaves
from tamis.language.functions import SIGNATURES
from tamis.language.limits import MAX_DEPTH
from tamis.language.parser import parse as parse_untyped
from tamis.language.tokens import KEYWORDS, REFUSED_WORDS
from tamis.logic.evaluate import Missing
from tamis.logic.truth import and_, not_, or_, xor
from tamis.validate import Severity
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[1]
LANGUAGE = ROOT / "docs" / "language.md"
README = ROOT / "README.md"
DOCUMENTS = [
    path
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
    if path.name != "CHANGELOG.md"  # it describes the past
]
# How-to pages are run from the first line to the last by test_howtos, and the pages about servers
# by tests.server.test_server_page, test_scale_page and tests.feeds.test_news_page, against running
# ones.
SERVERS = ("server.md", "scale.md", "news.md")
SEPARATE = [
    path for path in DOCUMENTS if not path.name.startswith("howto-") and path.name not in SERVERS
]
RESULTS = {"true": True, "false": False, "undefined": None}
ARROW = " → "


# ── blocks ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where it begins."""

    language: str
    text: str
    place: str


def blocks_of(path: Path, *languages: str) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```([\w-]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if match[1] in languages:
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(match[1], match[2].rstrip("\n"), f"{path.name}:{line}"))
    return found


def split_settings(text: str) -> tuple[dict[str, str], str]:
    """The settings in the first lines (`schema: …`), and the rest."""
    settings = {}
    lines = text.split("\n")
    while match := re.fullmatch(r"(schema|missing|limits): (.*)", lines[0]):
        settings[match[1]] = match[2]
        lines.pop(0)
    return settings, "\n".join(lines)


def limits_of(settings: dict[str, str]) -> Limits:
    pairs = (pair.split("=") for pair in settings.get("limits", "").split())
    return Limits(**{name: int(value) for name, value in pairs})


# ── the language ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Example:
    """An expression, and events with their results."""

    settings: dict[str, str]
    expression: str
    events: list[tuple[str, str]]
    place: str

    def parse(self):
        return tamis.parse(self.expression, self.settings.get("schema"))


def read_examples() -> list[Example]:
    examples = []
    for block in blocks_of(LANGUAGE, "tamis"):
        for number, text in enumerate(block.text.split("\n\n"), start=1):
            settings, body = split_settings(text)
            lines = body.split("\n")
            events = [line.rsplit(ARROW, 1) for line in lines if ARROW in line]
            expression = "\n".join(line for line in lines if ARROW not in line)
            pairs = [(event, result) for event, result in events]
            examples.append(Example(settings, expression, pairs, f"{block.place}#{number}"))
    return examples


EXAMPLES = read_examples()
ERRORS = blocks_of(LANGUAGE, "tamis-error")
WARNINGS = blocks_of(LANGUAGE, "tamis-warning")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_example_evaluates_as_shown(example):
    assert example.events, "an example shows at least one event"
    condition = example.parse()
    missing = example.settings.get("missing", "undefined")
    for event, result in example.events:
        # As Python reads JSON, and as our own shell does, with exact decimals.
        for read in (json.loads, parse_event):
            found = tamis.evaluate(condition, read(event), missing=missing)
            assert found is RESULTS[result], f"{example.expression} for {event}"


@pytest.mark.parametrize("block", ERRORS, ids=lambda block: block.place)
def test_error_is_as_shown(block):
    shown, _, expected = block.text.partition("\n\n")
    settings, expression = split_settings(shown)
    with pytest.raises(tamis.ExpressionError) as raised:
        tamis.parse(expression, settings.get("schema"), limits_of(settings))
    assert str(raised.value) == expected


@pytest.mark.parametrize("block", WARNINGS, ids=lambda block: block.place)
def test_warning_is_as_shown(block):
    shown, _, expected = block.text.partition("\n\n")
    settings, expression = split_settings(shown)
    problems = tamis.check(expression, settings.get("schema"))
    assert [str(problem.reason) for problem in problems] == [expected]


def forms_of(condition) -> set[str]:
    """The names of all forms that an expression uses."""
    found = {type(condition).__name__}
    if getattr(condition, "negated", False):
        found.add(f"NOT {type(condition).__name__}")
    for name in ("operator", "function"):
        if hasattr(condition, name):
            found.add(str(getattr(condition, name)))
    if getattr(condition, "ignores_case", False):
        found.add("ILIKE")
        found |= {"NOT ILIKE"} if condition.negated else set()
    if getattr(condition, "escape", "\\") != "\\":
        found.add("ESCAPE")
    for name in ("left", "right", "low", "high", "operand"):
        part = getattr(condition, name, None)
        if isinstance(part, nodes.Literal):
            found.add(f"{part.type.name} literal")
        elif isinstance(part, nodes.Attribute) and part.type is not None:
            found.add(f"{part.type.name} attribute")
    return found


def test_every_form_has_an_example():
    shown: set[str] = set()
    for example in EXAMPLES:
        pending = [example.parse()]
        while pending:
            node = pending.pop()
            pending.extend(children(node))
            shown |= forms_of(node)
        for leaf in leaves(parse_untyped(example.expression)):
            shown |= forms_of(leaf)
    negatable = ("In", "Between", "IsNull", "Like", "Rlike")
    wanted = {"And", "Or", "Not", "Xor", "Xnor", "AtLeast", "Attribute", "Literal", "ILIKE"}
    wanted |= {
        "Comparison",
        "StringTest",
        "ArraysOverlap",
        "ElementTest",
        "ESCAPE",
        "NOT ILIKE",
        *negatable,
    }
    wanted |= {f"NOT {name}" for name in negatable}
    wanted |= {"=", "<>", "<", "<=", ">", ">=", "<=>"}
    wanted |= {"startswith", "endswith", "contains", "array_contains", "arrays_overlap"}
    types = ("boolean", "integer", "float", "double", "decimal", "string", "date", "timestamp")
    wanted |= {f"{name} literal" for name in types} | {
        f"{name} attribute" for name in (*types, "number")
    }
    assert wanted <= shown, f"no example for {sorted(wanted - shown)}"


@pytest.mark.parametrize("spelling", ["==", "!=", "xor(", "xnor(", "r'", "R'", ") <> (", ") = ("])
def test_every_spelling_has_an_example(spelling):
    assert any(spelling in example.expression for example in EXAMPLES)


def test_every_word_and_function_is_named():
    text = LANGUAGE.read_text(encoding="utf-8")
    missing = [word for word in [*KEYWORDS, *REFUSED_WORDS, *SIGNATURES] if word not in text]
    assert not missing


def cells_in_code(cell: str) -> list[str]:
    return [code.replace(r"\|", "|") for code in re.findall(r"`([^`]+)`", cell)]


def is_valid(code: str, schema: str | None = None) -> bool:
    problems = tamis.check(code, schema)
    return all(problem.severity is not Severity.ERROR for problem in problems)


def test_what_is_not_supported_has_a_replacement():
    """The forms on the left are errors; those on the right are valid."""
    _, _, section = LANGUAGE.read_text(encoding="utf-8").partition("\n## What is not supported")
    table = section.partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) (?<!\\)\| (.*) \|$", table, re.MULTILINE)
    schema = "a BIGINT, b BIGINT, c BIGINT"
    assert len(rows) > 20
    for refused, instead in rows[1:]:
        assert not any(map(is_valid, cells_in_code(refused))), refused
        for code in cells_in_code(instead):
            assert is_valid(code) or is_valid(code, schema), code


def test_truth_table():
    rows = table_after("AND, OR and NOT follow this table")
    assert {(p, q) for p, q, *_ in rows} == set(product(RESULTS, RESULTS))
    for p, q, *results in rows:
        left, right = RESULTS[p], RESULTS[q]
        odd = xor((left, right))
        truths = [and_((left, right)), or_((left, right)), not_(left), odd, not_(odd)]
        assert [RESULTS[result] for result in results] == truths


def test_types_are_as_listed():
    for spelled, _, others in table_after("Each attribute has one type."):
        names = re.findall(r"`([^`]+)`", spelled.replace("p,s", "9,2").replace("<t>", "<date>"))
        names += re.findall(r"`([^`]+)`", others.replace("(n)", "(8)").partition(";")[0])
        types = {str(Schema.of({"a": name})["a"]).partition("(")[0] for name in names}
        assert len(types) == 1, names


def test_schema_notations_are_the_same():
    rows = table_after("Each of these is the same schema")
    schemas = [Schema.of(example.strip("`")) for _, example in rows[:3]]
    assert schemas[0] == schemas[1] == schemas[2]
    assert len(schemas[0]) == 3


def test_limits_are_as_listed():
    rows = {row[0].strip("`"): row for row in table_after("`--limit-depth 100` in the shell")}
    assert list(rows) == [limit.name for limit in fields(Limits)]
    for name, (_, default, *_) in rows.items():
        assert default.partition(", at most")[0] == f"{getattr(DEFAULT_LIMITS, name):,}"
    assert rows["depth"][1].endswith(f"at most {MAX_DEPTH}")


def test_missing_modes_are_named():
    text = LANGUAGE.read_text(encoding="utf-8")
    assert all(mode in text for mode in Missing)


# ── codes ───────────────────────────────────────────────────────────────────────────────────


def table_after(sentence: str, path: Path = LANGUAGE) -> list[list[str]]:
    """The cells of the first table after the sentence, without its header."""
    _, found, rest = path.read_text(encoding="utf-8").partition(sentence)
    assert found, sentence
    table = re.search(r"(?:^\|.*\|\n)+", rest, re.MULTILINE)
    assert table
    lines = table[0].strip().split("\n")[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


CODED = re.compile(r"[a-z]+(?:-[a-z]+)+")
RAISES_A_CODE = re.compile(
    r"(?:Parse|Limit|TypeCheck|UnknownAttribute|Expression|Row)Error|Finding|fail_here|make_problem"
)


SPELLED_OUT = {"language", "logic", "files.py", "validate.py"}  # here each such constant is a code


def codes_in_source() -> set[str]:
    """Every code in the source: first arguments of errors, and constants spelled like one."""
    package = ROOT / "src" / "tamis"
    found = set()
    for path in package.rglob("*.py"):
        has_codes_in_tables = path.relative_to(package).parts[0] in SPELLED_OUT
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if has_codes_in_tables and CODED.fullmatch(node.value):
                    found.add(node.value)
            elif isinstance(node, ast.Call) and node.args:
                name = ast.unparse(node.func).rpartition(".")[2]
                first = node.args[0]
                if RAISES_A_CODE.fullmatch(name) and isinstance(first, ast.Constant):
                    found.add(first.value)
    return found


CODE_TABLES = {
    "Errors of an expression:": "error",
    "Errors of a row in a file": "row",
    "Warnings do not reject.": "warning",
}


def documented_codes() -> dict[str, list[list[str]]]:
    return {
        kind: [[row[0].strip("`"), *row[1:]] for row in table_after(sentence)]
        for sentence, kind in CODE_TABLES.items()
    }


def test_codes_in_source_and_documents_are_the_same():
    documented = {row[0] for rows in documented_codes().values() for row in rows}
    assert documented == codes_in_source()


CODE_EXAMPLES = [
    (kind, row[0], row[2].strip("`"))
    for kind, rows in documented_codes().items()
    for row in rows
    if len(row) > 2 and row[2]
]


@pytest.mark.parametrize(("kind", "code", "expression"), CODE_EXAMPLES)
def test_example_of_a_code_gives_it(kind, code, expression):
    problems = [p for p in tamis.check(expression) if p.severity == kind]
    assert code in [problem.reason.code for problem in problems]


# ── Python ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "block",
    [block for path in SEPARATE for block in blocks_of(path, "python")],
    ids=lambda block: block.place,
)
def test_python_runs_as_shown(block, request, monkeypatch):
    if "local_session" in block.text:
        # There is one session in a process, and the tests have it.
        session = request.getfixturevalue("spark")
        monkeypatch.setattr("tamis.spark.local_session", lambda: session)
    test = doctest.DocTestParser().get_doctest(block.text + "\n", {}, block.place, None, None)
    assert test.examples, "a Python block shows a session, with >>>"
    collected: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=collected.append)
    assert not runner.failures, "".join(collected)


def test_docstring_of_the_package_is_true():
    assert doctest.testmod(tamis).failed == 0


# ── the shell ───────────────────────────────────────────────────────────────────────────────


def shell_commands(path: Path) -> list[tuple[str, str, str]]:
    """(place, command, output shown below it or nothing) of the shell blocks."""
    found = []
    for block in blocks_of(path, "sh", "console"):
        if block.language == "sh":
            lines = [line.partition(" # ")[0].strip() for line in block.text.split("\n")]
            found += [(block.place, line, "") for line in lines if line and line[0] != "#"]
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((block.place, command, output.strip("\n")))
    return found


SHELL = [command for path in DOCUMENTS for command in shell_commands(path)]
ALONE = [command for path in SEPARATE for command in shell_commands(path)]
OURS = [each for each in ALONE if each[1].startswith("tamis ") or " | tamis " in each[1]]


@pytest.mark.parametrize(("place", "command", "shown"), OURS)
@pytest.mark.usefixtures("tamis_on_path")
def test_shell_command_runs_as_shown(place, command, shown, tmp_path):
    for name, text in files_shown(ROOT / "docs" / "cli.md").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), f"{place}: {done.stderr}"
    if shown:
        assert mask_speed(done.stdout + done.stderr).rstrip() == mask_speed(shown)


def mask_speed(text: str) -> str:
    """The text without what differs from run to run: seconds and rows per second."""
    text = re.sub(r'("(?:seconds|rows_per_second)"): [\d.]+', r"\1: 0", text)
    return re.sub(r"(?<=warnings  rows/s\n)(.*?)[\d,]+$", r"\g<1>0", text, flags=re.MULTILINE)


def files_shown(path: Path) -> dict[str, str]:
    """Files whose contents a document shows: a block after a paragraph that ends in "`name`:"."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    pattern = r"`([\w.]+)`:\n\n```\w+\n(.*?)^```$"
    return dict(re.findall(pattern, text, re.MULTILINE | re.DOTALL))


@pytest.fixture
def tamis_on_path(tmp_path_factory, monkeypatch):
    """`tamis` in the shell is this source tree's, whether or not it is installed, and `python` is
    this one."""
    folder = tmp_path_factory.mktemp("bin")
    for name, run in (("tamis", "-m tamis "), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {run}"$@"\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"), prepend=":")
    monkeypatch.setenv("NO_COLOR", "1")


def commands_of(group: click.Group, prefix: str = "tamis") -> list[tuple[str, click.Command]]:
    found = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found.append((f"{prefix} {name}", command))
        if isinstance(command, click.Group):
            found += commands_of(command, f"{prefix} {name}")
    return found


@pytest.mark.parametrize(("name", "command"), commands_of(main))
def test_every_command_and_option_is_documented(name, command):
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert f"`{name}" in text or f"{name} " in text, f"{name} is in no document"
    options = [
        option
        for parameter in command.params
        for option in parameter.opts
        if isinstance(parameter, click.Option) and not option.startswith("--limit-")
    ]
    assert not [option for option in options if option not in text]


def test_every_command_named_in_a_document_exists():
    known = {name for name, _ in commands_of(main)} | {"tamis --version", "tamis --help"}
    for place, command, _ in OURS:
        named = re.findall(r"(?:^|\| )tamis (\S+)", command)
        assert {f"tamis {word}" for word in named} <= known, f"{place}: {command}"


# ── paths and targets ───────────────────────────────────────────────────────────────────────


def prose_of(path: Path) -> str:
    """The document without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


PATH = re.compile(r"`((?:\.?[\w-]+/)+[\w.-]*|[\w-]+\.(?:md|toml|txt|py))`")


def is_in_the_house(name: str) -> bool:
    """Whether a path from the root or from the package, or a bare name, is there."""
    places = [ROOT / name, ROOT / "src" / "tamis" / name]
    bare = name.rstrip("/")
    if "/" not in bare:
        places += [found for part in ("src", "tests") for found in (ROOT / part).rglob(bare)]
    return any(place.exists() for place in places)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_paths_exist(path):
    text = prose_of(path)
    named = {match[1] for match in PATH.finditer(text)}
    linked = {match[1] for match in re.finditer(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)}
    if path not in SEPARATE:  # a how-to page makes files, in its blocks
        blocks = blocks_of(path, "console", "csv", "json", "python", "toml")
        named -= {name for name in named if any(name in block.text for block in blocks)}
        named -= files_shown(path).keys()
    wrong = [name for name in named if not is_in_the_house(name)]
    wrong += [name for name in linked if not (path.parent / name).exists()]
    assert not wrong


def test_architecture_is_short_and_has_every_package():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 15_000, (
        "move mechanisms to docs/design.md, figures to docs/speed.md"
    )
    folders = [found.parent for found in (ROOT / "src" / "tamis").glob("*/__init__.py")]
    missing = [folder.name for folder in folders if f"| `{folder.name}/` |" not in text]
    assert not missing, (
        "the table of packages has a line for each: its question, and what to read first"
    )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_within_a_document_have_a_heading(path):
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    wanted = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert wanted <= anchors


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`|\d )make ([a-z][\w-]*)", text, re.MULTILINE))
        assert named <= targets, path.name
