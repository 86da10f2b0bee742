"""`tamis check`: formats, bad rows, bad files, exit codes, output."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.shell import json_lines, run

GOOD = [("s1", "age >= 18"), ("s2", "country = 'FR' AND NOT vip"), ("s3", "name IN ('é', 'b')")]
BAD = ("s4", "age >= 18 ANDD vip")
LINT = ("s5", "age > 30 AND age < 18")


def write(path, rows, names=("subscription_id", "expression")):
    """The rows as a file, in the format of its name."""
    if path.suffix == ".parquet":
        columns = list(zip(*rows, strict=True)) if rows else [[], []]
        pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([names, *rows])
    else:
        lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
        path.write_text("".join(lines), encoding="utf-8")
    return path


def check_json(*arguments, stdin=None):
    """(problems, summary, exit code) of a run with --output json."""
    result = run("check", *arguments, "--output", "json", stdin=stdin)
    *problems, summary = json_lines(result.stdout)
    assert summary.pop("kind") == "summary"
    assert all(problem.pop("kind") == "problem" for problem in problems)
    assert summary["ok"] + summary["errors"] == summary["rows"]
    return problems, summary, result.exit_code


def codes(problems):
    return [(problem["row"], problem["code"]) for problem in problems]


# ── formats ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["s.jsonl", "s.ndjson", "s.json", "s.csv", "s.parquet", "S.CSV"])
def test_every_format(tmp_path, name):
    lower = tmp_path / name.lower()
    write(lower, [*GOOD, BAD, LINT]).rename(tmp_path / name)
    problems, summary, exit_code = check_json(tmp_path / name)
    assert codes(problems) == [(4, "unexpected-token"), (5, "conflict")]
    assert [problem["subscription_id"] for problem in problems] == ["s4", "s5"]
    assert (summary["rows"], summary["errors"], summary["warnings"]) == (5, 1, 1)
    assert exit_code == 1


@pytest.mark.parametrize("name", ["s.jsonl", "s.csv", "s.parquet"])
def test_standard_input(tmp_path, name):
    content = write(tmp_path / name, [*GOOD, BAD]).read_bytes()
    file_format = name.partition(".")[2]
    problems, *_ = check_json("-", "--format", file_format, stdin=content)
    assert codes(problems) == [(4, "unexpected-token")]


def test_standard_input_is_json_lines_unless_told():
    problems, summary, exit_code = check_json("-", stdin='{"id": 1, "expression": "a = 1"}\n')
    assert (problems, summary["ok"], exit_code) == ([], 1, 0)


def test_format_overrides_the_name(tmp_path):
    path = write(tmp_path / "s.csv", GOOD).rename(tmp_path / "s.jsonl")
    assert check_json(path, "--format", "csv")[2] == 0


@pytest.mark.parametrize("name", ["s.jsonl", "s.csv", "s.parquet"])
def test_other_columns(tmp_path, name):
    path = write(tmp_path / name, GOOD, names=("key", "rule"))
    assert check_json(path, "--id-column", "key", "--expression-column", "rule")[2] == 0


@pytest.mark.parametrize("name", ["s.jsonl", "s.csv", "s.parquet"])
def test_id_will_do_for_subscription_id(tmp_path, name):
    assert check_json(write(tmp_path / name, GOOD, names=("id", "expression")))[2] == 0


def test_byte_order_mark_is_skipped(tmp_path):
    for name in ("s.jsonl", "s.csv"):
        path = write(tmp_path / name, GOOD)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        assert check_json(path)[2] == 0


def test_blank_lines_count_as_lines_but_not_as_rows(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('\n{"id": 1, "expression": "a = 1"}\n\n{"id": 2, "expression": ""}\r\n')
    (problem,), summary, _ = check_json(path)
    assert (problem["row"], problem["file_line"], summary["rows"]) == (2, 4, 2)


def test_csv_fields_may_hold_line_breaks(tmp_path):
    path = write(tmp_path / "s.csv", [("s1", "a = 1\nAND\nb = 2"), BAD])
    (problem,), *_ = check_json(path)
    assert (problem["row"], problem["file_line"]) == (2, 5)


def test_parquet_dictionaries_and_integers(tmp_path):
    path = tmp_path / "s.parquet"
    texts = pa.array([text for _, text in GOOD]).dictionary_encode()
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "expression": texts}), path)
    assert check_json(path)[2] == 0


# ── bad rows ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"id": 2, "expression": "a = 1"', "bad-json"),
        (b"nonsense", "bad-json"),
        (b'{"id": 2, "expression": "\\ud800"}', "bad-json"),
        (b'{"id": 2, "expression": "a = \'\xe9\'"}', "bad-encoding"),
        (b'["a"]', "bad-row"),
        (b"5", "bad-row"),
        (b"null", "bad-row"),
        (b'{"id": 2}', "missing-key"),
        (b'{"expression": "a = 1"}', "missing-key"),
        (b"{}", "missing-key"),
        (b'{"id": null, "expression": "a = 1"}', "bad-id"),
        (b'{"id": "", "expression": "a = 1"}', "bad-id"),
        (b'{"id": 1.5, "expression": "a = 1"}', "bad-id"),
        (b'{"id": true, "expression": "a = 1"}', "bad-id"),
        (b'{"id": [1], "expression": "a = 1"}', "bad-id"),
        (b'{"id": 2, "expression": null}', "not-text"),
        (b'{"id": 2, "expression": 5}', "not-text"),
        (b'{"id": 2, "expression": {}}', "not-text"),
        (b'{"id": 1, "expression": "a = 1"}', "duplicate-id"),
        (b'{"id": 2, "expression": ""}', "empty"),
        (b"[" * 100_000, "bad-json"),
    ],
)
def test_bad_line_of_json(tmp_path, line, code):
    good = '{{"id": {}, "expression": "a = 1"}}\n'
    path = tmp_path / "s.jsonl"
    path.write_bytes(good.format(1).encode() + line + b"\n" + good.format(3).encode())
    problems, summary, exit_code = check_json(path)
    assert codes(problems) == [(2, code)]
    assert (summary["rows"], summary["ok"], exit_code) == (3, 2, 1)
    assert code in run("check", path).stdout


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"s2", "bad-csv"),
        (b"s2,a IN (1, 2)", "bad-csv"),
        (b's2,"a" = 1', "bad-csv"),
        (b"s2,a = '\xe9'", "bad-encoding"),
        (b",a = 1", "bad-id"),
        (b"s2,", "empty"),
        (b"s1,a = 1", "duplicate-id"),
        (b"s2,a = \x00", "bad-character"),
        (b"s2,`a\x00` = 1", "bad-character"),
    ],
)
def test_bad_line_of_csv(tmp_path, line, code):
    path = tmp_path / "s.csv"
    # The zero byte is after the part of a file in which binary files are detected.
    padding = b"".join(b"p%d,a = 1\n" % number for number in range(600))
    path.write_bytes(b"id,expression\ns1,a = 1\n" + padding + line + b"\ns3,a = 1\n")
    problems, summary, exit_code = check_json(path)
    assert codes(problems) == [(602, code)]
    assert (summary["rows"], summary["ok"], exit_code) == (603, 602, 1)


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl"])
def test_weights_are_checked(tmp_path, name):
    rows = [("a", "x > 0", "2.5"), ("b", "x > 0", "abc"), ("c", "x > 0", "nan"), ("d", "x > 1", "")]
    file = write(tmp_path / name, rows, ("id", "expression", "weight"))
    problems, summary, exit_code = check_json(file)
    assert codes(problems) == [(2, "bad-weight"), (3, "bad-weight")]
    assert problems[0]["message"] == "the weight is 'abc'; allowed: a finite number"
    assert (summary["errors"], exit_code) == (2, 1)


def test_csv_quote_that_is_never_closed(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text('id,expression\ns1,a = 1\ns2,"a = 1\ns3,a = 1\n')
    (problem,), *_ = check_json(path)
    assert (problem["row"], problem["file_line"], problem["code"]) == (2, 3, "bad-csv")
    assert "not closed" in problem["message"]


def test_parquet_nulls_and_bad_text(tmp_path):
    path = tmp_path / "s.parquet"
    bad_text = pa.array([b"a = 1", b"\xff\xfe", None, b"a = 2"]).view(pa.string())
    pq.write_table(pa.table({"id": ["s1", "s2", "s3", None], "expression": bad_text}), path)
    problems, *_ = check_json(path)
    assert codes(problems) == [(2, "bad-encoding"), (3, "not-text"), (4, "bad-id")]
    assert [problem["file_line"] for problem in problems] == [None] * 3


def test_expression_longer_than_a_csv_field_usually_is(tmp_path):
    path = write(tmp_path / "s.csv", [("s1", "a = '" + "x" * 2_000_000 + "'"), ("s2", "a = 'x'")])
    problems, *_ = check_json(path)
    assert codes(problems) == [(1, "text-too-long")]
    assert check_json(path, "--limit-text-length", "3000000")[2] == 0


# ── bad files ───────────────────────────────────────────────────────────────────────────────


def assert_refused(*arguments, says, stdin=None):
    result = run("check", *arguments, stdin=stdin)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert says in " ".join(result.stderr.split())
    assert result.stderr.startswith("error: ")


def test_missing_file(tmp_path):
    assert_refused(tmp_path / "none.jsonl", says="none.jsonl: No such file")


def test_directory(tmp_path):
    folder = tmp_path / "folder.jsonl"
    folder.mkdir()
    assert_refused(folder, says="is a folder; a file of subscriptions is expected")


def test_unknown_ending(tmp_path):
    assert_refused(tmp_path / "s.xls", says="known endings: .jsonl .ndjson .json .csv .parquet .pq")


def test_empty_files(tmp_path):
    for name in ("s.csv", "s.parquet"):
        (tmp_path / name).touch()
    assert_refused(tmp_path / "s.csv", says="is empty")
    assert_refused(tmp_path / "s.parquet", says="cannot be read as Parquet")
    (tmp_path / "s.jsonl").touch()
    result = run("check", tmp_path / "s.jsonl")
    assert result.exit_code == 0
    assert "contains no rows" in result.stderr


def test_table_without_rows(tmp_path):
    for name in ("s.csv", "s.parquet"):
        assert check_json(write(tmp_path / name, []))[1]["rows"] == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x00\x01\x02\x03", "is not text: it contains zero bytes"),
        (b"\x1f\x8b\x08\x00", "is compressed with gzip"),
        (b"PAR1....", "is a Parquet file"),
        ('{"id": 1}'.encode("utf-16"), "is UTF-16 text"),
        (b"\x28\xb5\x2f\xfd", "is compressed with Zstandard"),
        (b"PK\x03\x04", "is a ZIP archive"),
        (b"BZh91AY&SY", "is compressed with bzip2"),
        (b"\xfd7zXZ\0", "is compressed with xz"),
        (b"\x04\x22\x4d\x18", "is compressed with LZ4"),
    ],
)
def test_binary_files(tmp_path, content, says):
    for name in ("s.jsonl", "s.csv"):
        (tmp_path / name).write_bytes(content)
        assert_refused(tmp_path / name, says=says)
    assert_refused("-", says=says, stdin=content)


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_missing_columns(tmp_path, name):
    path = write(tmp_path / name, GOOD, names=("subscription_id", "query"))
    assert_refused(path, says='no column "expression"; its columns: subscription_id, query')
    assert_refused(
        path,
        "--expression-column",
        "query",
        "--id-column",
        "key",
        says='no column "key"',
    )
    path = write(tmp_path / name, GOOD, names=("a", "b"))
    assert_refused(path, says='no column "subscription_id" (or "id") and no "expression"')


def test_csv_with_a_column_twice(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("id,expression,id\n1,a = 1,2\n")
    assert_refused(path, says='two columns "id"')


def test_truncated_parquet(tmp_path):
    path = write(tmp_path / "s.parquet", GOOD * 1000)
    content = path.read_bytes()
    for length in (4, 20, len(content) // 2, len(content) - 5):
        path.write_bytes(content[:length])
        assert_refused(path, says="cannot be read as Parquet")


def test_parquet_damaged_inside(tmp_path):
    rows = [(f"s{number}", f"a = {number}") for number in range(5000)]
    path = write(tmp_path / "s.parquet", rows)
    content = bytearray(path.read_bytes())
    content[200:2000] = b"\xff" * 1800
    path.write_bytes(content)
    result = run("check", path)
    assert result.exit_code == 1
    assert "s.parquet" in result.output


# ── options ─────────────────────────────────────────────────────────────────────────────────


def test_exit_codes(tmp_path):
    path = write(tmp_path / "s.jsonl", [*GOOD, LINT])
    assert run("check", path).exit_code == 0
    assert run("check", path, "--strict").exit_code == 1
    assert run("check", path, "--strict", "--no-lint").exit_code == 0
    assert run("check", write(path, [BAD])).exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a.jsonl", "b.jsonl"],
        ["a.jsonl", "--format", "xml"],
        ["a.jsonl", "--output", "yaml"],
        ["a.jsonl", "--processes", "0"],
        ["a.jsonl", "--limit-depth", "0"],
        ["a.jsonl", "--limit-depth", "100000"],
        ["a.jsonl", "--unknown"],
    ],
)
def test_usage(arguments):
    result = run("check", *arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_schema(tmp_path):
    path = write(
        tmp_path / "s.jsonl", [("s1", "age > 18"), ("s2", "agee > 18"), ("s3", "age = 'x'")]
    )
    declared = tmp_path / "schema.json"
    declared.write_text('{"age": "integer"}')
    for schema in ("age INT", '{"age": "integer"}', str(declared)):
        problems, *_ = check_json(path, "--schema", schema)
        assert codes(problems) == [(2, "unknown-attribute"), (3, "type-mismatch")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"age": "integer"', "is not JSON"),
        ('["age"]', "holds a list; an object is expected"),
        ('{"age": "colour"}', 'unknown type "colour"'),
        ('{"age": 5}', "5 is not the name of a type"),
        ("\xff", "is not JSON"),
    ],
)
def test_bad_schema_file(tmp_path, content, says):
    path = write(tmp_path / "s.jsonl", GOOD)
    schema = tmp_path / "schema.json"
    schema.write_bytes(content.encode("latin-1"))
    assert_refused(path, "--schema", schema, says=says)
    assert_refused(path, "--schema", tmp_path / "none.json", says="No such file")


@pytest.mark.parametrize("schema", ["age", "age COLOUR", '{"age": ', "age INT, age INT"])
def test_bad_schema_text(tmp_path, schema):
    assert_refused(write(tmp_path / "s.jsonl", GOOD), "--schema", schema, says="")


def test_warnings_follow_the_meaning_of_missing(tmp_path):
    path = write(tmp_path / "s.jsonl", [("s1", "NOT a < 5 AND a IS NULL")])
    assert codes(check_json(path)[0]) == [(1, "conflict")]
    assert codes(check_json(path, "--missing", "satisfies_negation")[0]) == []


def test_majority_decides_without_a_schema(tmp_path):
    rows = [("s1", "a = 'x'"), ("s2", "a = 1"), ("s3", "a > 2")]
    problems, *_ = check_json(write(tmp_path / "s.jsonl", rows))
    assert codes(problems) == [(1, "type-mismatch")]


@pytest.mark.parametrize(
    ("option", "text", "code"),
    [
        ("--limit-text-length", "a = 1 AND b = 2", "text-too-long"),
        ("--limit-depth", "NOT (NOT (NOT (a)))", "too-deep"),
        ("--limit-predicates", "a = 1 AND b = 2 AND c = 3", "too-many-predicates"),
        ("--limit-in-list", "a IN (1, 2, 3)", "list-too-long"),
        ("--limit-regex-length", "a RLIKE 'abc'", "regex-too-long"),
        ("--limit-xor-operands", "xor(a, b, c)", "too-many-operands"),
    ],
)
def test_limits(tmp_path, option, text, code):
    path = write(tmp_path / "s.jsonl", [("s1", text)])
    assert check_json(path)[2] == 0
    problems, *_ = check_json(path, option, "2")
    assert codes(problems) == [(1, code)]


def test_processes_give_the_same(tmp_path):
    rows = [(f"r{number}", f"a = {number}") for number in range(2500)]
    rows[7], rows[1500], rows[2400] = BAD, ("r3", "a = 1"), LINT
    path = write(tmp_path / "s.jsonl", rows)
    for schema in ([], ["--schema", "a INT, age INT, vip BOOLEAN"]):
        alone = check_json(path, *schema)
        shared = check_json(path, *schema, "--processes", "2")
        assert shared[0] == alone[0]
        assert codes(alone[0]) == [
            (8, "unexpected-token"),
            (1501, "duplicate-id"),
            (2401, "conflict"),
        ]


# ── output ──────────────────────────────────────────────────────────────────────────────────


def test_output_for_people(tmp_path):
    path = write(tmp_path / "s.jsonl", [*GOOD, BAD])
    shown = run("check", path).stdout
    assert f'{path}:4: error: subscription "s4", 1:11: expected AND, OR or the end' in shown
    assert "\n  age >= 18 ANDD vip\n            ^^^^\n" in shown
    heading, numbers = shown.splitlines()[-2:]
    assert heading.split() == ["rows", "ok", "errors", "warnings", "rows/s"]
    assert numbers.split()[:4] == ["4", "3", "1", "0"]


def test_json_has_every_key(tmp_path):
    path = write(tmp_path / "s.jsonl", [BAD, LINT])
    keys = {"row", "file_line", "subscription_id", "severity", "code", "line", "column", "span"}
    for problem in check_json(path)[0]:
        assert problem.keys() == keys | {"message", "hint"}


def test_ids_cannot_steer_the_terminal(tmp_path):
    path = write(tmp_path / "s.jsonl", [("\x1b[31mred\nline", "a = "), ("[bold]", "b = ")])
    shown = run("check", path).stdout
    assert "\x1b" not in shown
    assert "[bold]" in shown
    assert check_json(path)[0][0]["subscription_id"] == "\x1b[31mred\nline"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"id": "a", "expression": "x"}\n\0\n{"id": "b", "expression": "y"}\n'),
        ("a.csv", b"id,expression\na,x\nz,\0\nb,y\n"),
    ],
)
def test_a_zero_byte_below_the_first_line_is_an_error_of_its_row(tmp_path, name, content):
    from tamis.input.subscription_rows import read_subscriptions
    from tamis.validate import check_subscriptions

    path = tmp_path / name
    path.write_bytes(content)
    checked = list(check_subscriptions(read_subscriptions(path)))
    assert [one.is_ok for one in checked] == [True, False, True]


def test_a_byte_order_mark_stands_at_the_beginning_of_a_file_only(tmp_path):
    path = tmp_path / "s.jsonl"
    line = b'\xef\xbb\xbf{"id": "%d", "expression": "a = 1"}\n'
    path.write_bytes(line % 1 + line % 2)
    problems, _, code = check_json(path)
    assert [(problem["row"], problem["code"]) for problem in problems] == [(2, "bad-json")]
    assert code == 1


def test_problems_of_definitions_are_shown_once(tmp_path):
    rows = write(tmp_path / "a.jsonl", [("s1", "@odd AND age = 3"), ("s2", "NOT @odd")])
    (tmp_path / "d.json").write_text(json.dumps({"odd": "name = ' a '"}))
    options = (rows, "--definitions", tmp_path / "d.json")
    (problem,), summary, code = check_json(*options)
    assert (problem["row"], problem["subscription_id"]) == (0, "@odd")
    assert problem["code"] == "padded-string"
    assert (summary["rows"], summary["warnings"], code) == (2, 1, 0)
    shown = run("check", *options).stdout
    assert shown.count("definitions") == 1
    (tmp_path / "d.json").write_text(json.dumps({"odd": "name = ' a '", "bad": "x >"}))
    problems, summary, code = check_json(*options)
    assert [own["subscription_id"] for own in problems] == ["@odd", "@bad"]
    assert (summary["ok"], summary["errors"], code) == (2, 0, 1)
