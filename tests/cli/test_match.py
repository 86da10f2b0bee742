"""`tamis match`: formats, outputs, counts, subsets, pipes, events that cannot be read."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

import tamis
from tests.cli.indexes import EVENTS, MATCHES, build_index, in_order, write_rows
from tests.cli.shell import environment, json_lines, run, run_process
from tests.waiting import HANG_SECONDS

LINES = "".join(json.dumps(event) + "\n" for event in EVENTS)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("match"))


def match(index, *arguments, stdin=LINES, code=0):
    result = run("match", index, *arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    return result


# ── formats ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.parquet"])
def test_every_format(tmp_path, index, name):
    path = write_rows(tmp_path / name, EVENTS)
    result = match(index, path, stdin=None)
    rows = json_lines(result.stdout)
    assert [row["event"] for row in rows] == [1, 2, 3]
    assert in_order(rows) == MATCHES
    assert result.stderr == ""


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.parquet"])
def test_standard_input(tmp_path, index, name):
    content = write_rows(tmp_path / name, EVENTS).read_bytes()
    result = match(index, "-", "--format", name.partition(".")[2], stdin=content)
    assert in_order(json_lines(result.stdout)) == MATCHES


def test_standard_input_is_the_default(index):
    assert in_order(json_lines(match(index).stdout)) == MATCHES


def test_types_and_paths_in_csv(tmp_path):
    rows = [
        ("whole", "n = 5"),
        ("real", "x > 1.5"),
        ("exact", "price = 0.10"),
        ("day", "born < DATE '2000-01-01'"),
        ("yes", "ok"),
        ("tag", "array_contains(tags, 'a,b')"),
        ("deep", "host.os = 'linux'"),
        ("text", "code = '007'"),
    ]
    schema = (
        "n INT, x DOUBLE, price DECIMAL(9,2), born DATE, ok BOOLEAN, tags ARRAY<STRING>, "
        "host.os STRING, code STRING"
    )
    path = build_index(tmp_path, rows, "--schema", schema)
    event = {"n": 5, "x": 2, "price": "0.1", "born": "1999-12-31", "ok": True}
    event |= {"tags": ["a,b"], "host.os": "linux", "code": "007", "other": "x"}
    result = match(path, write_rows(tmp_path / "e.csv", [event]), stdin=None)
    assert in_order(json_lines(result.stdout)) == [sorted(name for name, _ in rows)]


def test_empty_input(tmp_path, index):
    assert match(index, stdin="").stdout == ""
    (tmp_path / "e.csv").write_text("a,b\n")
    assert match(index, tmp_path / "e.csv", stdin=None).stdout == ""
    write_rows(tmp_path / "e.parquet", [])
    assert match(index, tmp_path / "e.parquet", stdin=None).stdout == ""


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty; a CSV file begins with a header line"),
        (b"a,b,a\n", 'two columns "a"'),
        (b'"a\n', "the header line cannot be read"),
        (b"a\0b\n", "is not text"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path, index, content, says):
    path = tmp_path / "e.csv"
    path.write_bytes(content)
    assert says in match(index, path, stdin=None, code=1).stderr
    assert says in match(index, "--format", "csv", stdin=content, code=1).stderr


def test_csv_whose_header_names_no_attribute(tmp_path, index):
    path = tmp_path / "e.csv"
    path.write_text("nobody,asks\n1,2\n")
    result = match(index, path, stdin=None)
    assert "the header names no attribute of the index" in result.stderr
    assert "it names nobody, asks; the index uses " in result.stderr
    path.write_text("nobody,age\n1,2\n")
    assert match(index, path, stdin=None).stderr == ""


def test_files_that_cannot_be_read(tmp_path, index):
    assert "No such file" in match(index, tmp_path / "e.csv", code=1).stderr
    assert "No such file" in match(index, tmp_path / "e.jsonl", code=1).stderr
    assert "known endings" in match(index, tmp_path / "e.xls", code=1).stderr


# ── outputs ─────────────────────────────────────────────────────────────────────────────────


def test_events_are_named_by_an_attribute(index):
    result = match(index, "--event-id", "id")
    assert [row["event"] for row in json_lines(result.stdout)] == ["e1", "e2", "e3"]
    stdin = '{"k": {"n": 1.5}, "age": 20}\n{"k": 7, "age": 20}\n{"age": 20}\n'
    result = match(index, "--event-id", "k.n", stdin=stdin)
    assert [row["event"] for row in json_lines(result.stdout)] == [1.5, None, None]
    assert result.stderr == ""


def test_an_event_id_that_no_event_has_is_told(index):
    result = match(index, "--event-id", "nosuch")
    assert [row["event"] for row in json_lines(result.stdout)] == [None] * 3
    assert result.stderr == "note: no event has the attribute nosuch, which --event-id names\n"
    nothing = match(index, "--event-id", "nosuch", stdin="")
    assert nothing.stderr == "note: there are no events in standard input\n"


@pytest.mark.parametrize("value", ["5.0", "[5.0, 1]", '{"k": 5.0}'])
def test_wrong_numbers_are_shown_as_written(index, value):
    result = match(index, stdin=f'{{"country": {value}}}\n').stderr
    shown = value.replace('"', "'")
    assert f"country, event 1: {shown} is not of type string" in result


def test_pairs(index):
    pairs = [(n, found) for n, all_found in enumerate(MATCHES, start=1) for found in all_found]
    rows = json_lines(match(index, "--output", "pairs").stdout)
    assert sorted((row["event"], row["subscription_id"]) for row in rows) == pairs
    assert [row["event"] for row in rows] == [1, 1, 2, 2]
    lines = match(index, "--output", "tsv").stdout.splitlines()
    assert sorted(lines) == [f"{n}\t{name}" for n, name in pairs]


def test_table(index):
    lines = match(index, "--output", "table", "--event-id", "id").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["event", "matches"],
        ["e1", "2"],
        ["e2", "2"],
        ["e3", "0"],
    ]
    assert all(name in lines[2] for name in MATCHES[1])


def test_only_matches(index):
    result = match(index, "--only-matches")
    assert [row["event"] for row in json_lines(result.stdout)] == [1, 2]


def test_names_cannot_break_a_line(tmp_path):
    name = 'a\tb\n"c\\\x1b'
    path = build_index(tmp_path, [(name, "age > 1")])
    event = json.dumps({"age": 2, "id": name}) + "\n"
    (row,) = json_lines(match(path, "--event-id", "id", stdin=event).stdout)
    assert row == {"event": name, "matches": [name]}
    (line,) = match(path, "--output", "tsv", "--event-id", "id", stdin=event).stdout.split("\n")[
        :-1
    ]
    assert line.split("\t") == ['a\\tb\\n"c\\\\\\u001b'] * 2
    assert "\x1b" not in match(path, "--output", "table", "--event-id", "id", stdin=event).stdout


@pytest.mark.parametrize(("n_matches", "end"), [(4, "s3"), (5, "s4"), (6, "s4, and 1 more")])
def test_a_table_counts_only_what_it_does_not_show(tmp_path, n_matches, end):
    path = tmp_path / "i"
    tamis.build({f"s{n}": "a = 1" for n in range(n_matches)}).save(path)
    shown = match(path, "--output", "table", stdin='{"a": 1}\n').stdout
    assert shown.splitlines()[1].split(maxsplit=2)[:2] == ["1", str(n_matches)]
    assert shown.rstrip().endswith(end)


def test_many_matches_are_cut_in_a_table(tmp_path):
    path = build_index(tmp_path, [(f"s{n}", "a = 1") for n in range(9)])
    shown = match(path, "--output", "table", stdin='{"a": 1}\n').stdout
    assert "s0, s1, s2, s3, s4, and 4 more" in shown


# ── counts and subsets ──────────────────────────────────────────────────────────────────────


def test_counts_by_event_are_sorted_and_have_an_example(index):
    lines = '{"age": 3}\n' + LINES
    rows = json_lines(match(index, "--counts", "event", stdin=lines).stdout)
    assert [(row["event"], row["matches"]) for row in rows] == [(2, 2), (3, 2), (1, 1), (4, 0)]
    listed = json_lines(match(index, stdin=lines).stdout)
    firsts = {row["event"]: row["matches"][0] if row["matches"] else None for row in listed}
    assert [row["example"] for row in rows] == [firsts[row["event"]] for row in rows]
    shown = match(index, "--counts", "event", "--output", "table", stdin=lines).stdout
    assert shown.splitlines()[0].split() == ["event", "matches", "example", "subscription"]
    tabbed = match(index, "--counts", "event", "--only-matches", "--output", "tsv", stdin=lines)
    assert tabbed.stdout == f"2\t2\t{firsts[2]}\n3\t2\t{firsts[3]}\n1\t1\tabsent\n"


def test_counts_by_subscription_are_sorted_and_have_the_first_event(index):
    lines = LINES + '{"age": 50, "country": "DE"}\n{"age": 50, "country": "FR"}\n'
    result = match(index, "--counts", "subscription", stdin=lines)
    assert json_lines(result.stdout) == [
        {"subscription_id": "adult", "matches": 3, "example": 1},
        {"subscription_id": "french", "matches": 1, "example": 1},
        {"subscription_id": "named", "matches": 1, "example": 2},
        {"subscription_id": "absent", "matches": 1, "example": 2},
    ]
    shown = match(index, "--counts", "subscription", "--output", "table", "--event-id", "id").stdout
    assert shown.splitlines()[0].split() == ["subscription", "matches", "example", "event"]
    assert shown.splitlines()[1].split() == ["adult", "1", "e1"]
    only = match(index, "--counts", "subscription", "--only-matches", stdin='{"age": 50}\n')
    assert [row["subscription_id"] for row in json_lines(only.stdout)] == ["adult", "absent"]


def test_counts_without_a_match_have_no_example(index):
    lines = '{"country": "DE", "age": 1}\n'
    rows = json_lines(match(index, "--counts", "subscription", stdin=lines).stdout)
    assert {(row["matches"], row["example"]) for row in rows} == {(0, None)}
    tabbed = match(index, "--counts", "subscription", "--output", "tsv", stdin=lines).stdout
    assert tabbed.splitlines()[0] == "adult\t0\t"
    assert match(index, "--counts", "event", "--output", "tsv", stdin=lines).stdout == "1\t0\t\n"
    assert match(index, "--counts", "event", stdin="").stdout == ""


def test_the_first_event_may_be_in_a_later_chunk(tmp_path, index):
    path = write_rows(tmp_path / "e.jsonl", [{"country": "DE"}] * 5000 + [{"age": 30}])
    rows = json_lines(match(index, path, "--counts", "subscription", stdin=None).stdout)
    assert rows[0] == {"subscription_id": "adult", "matches": 1, "example": 5001}


def test_subset(tmp_path, index):
    listed = tmp_path / "ids.txt"
    listed.write_text("absent\n\nadult\n")
    for subset in ("adult, absent", f"@{listed}"):
        rows = json_lines(match(index, "--subset", subset).stdout)
        assert [row["matches"] for row in rows] == [["adult"], ["absent"], []]
        counts = json_lines(match(index, "--subset", subset, "--counts", "event").stdout)
        assert [row["matches"] for row in counts] == [1, 1, 0]
        counts = json_lines(match(index, "--subset", subset, "--counts", "subscription").stdout)
        assert [row["subscription_id"] for row in counts] == ["adult", "absent"]


def test_lines_of_a_subset_may_have_blanks_and_a_byte_order_mark(tmp_path, index):
    listed = tmp_path / "ids.txt"
    listed.write_text("\ufeffadult \r\n \n\tabsent\n", encoding="utf-8", newline="")
    rows = json_lines(match(index, "--subset", f"@{listed}").stdout)
    assert [row["matches"] for row in rows] == [["adult"], ["absent"], []]


def test_a_selection_of_nothing_is_wrong_usage(tmp_path, index):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    for option in ("--subset", "--tagged"):
        for given in ("", " , "):
            result = match(index, option, given, code=2).stderr
            assert "it names nothing; leave the option out to match all" in result
    result = match(index, "--subset", f"@{empty}", code=2).stderr
    assert "has no ids; it needs one on each line" in " ".join(result.split())


def test_subset_that_is_not_there(tmp_path, index):
    result = match(index, "--subset", "adlt", code=1)
    assert 'no subscription "adlt"' in result.stderr
    assert 'did you mean "adult"?' in result.stderr
    assert "cannot read" in match(index, "--subset", f"@{tmp_path / 'none'}", code=1).stderr


def test_threads_and_many_chunks_give_the_same(tmp_path, index):
    path = write_rows(tmp_path / "e.jsonl", EVENTS * 4000)
    alone = match(index, path, stdin=None)
    rows = json_lines(alone.stdout)
    assert [row["event"] for row in rows] == list(range(1, 12_001))
    assert in_order(rows) == MATCHES * 4000
    assert match(index, path, "--threads", "3", stdin=None).stdout == alone.stdout
    counted = json_lines(match(index, path, "--counts", "subscription", stdin=None).stdout)
    assert {row["matches"] for row in counted} == {4000}


def test_threads_report_the_same(tmp_path, index):
    lines = (LINES * 1000 + BAD_LINES) * 4
    path = tmp_path / "e.jsonl"
    path.write_text(lines)
    alone, listed = match(index, path, stdin=None), tmp_path / "alone.jsonl"
    shared = match(index, path, "--threads", "3", stdin=None)
    assert (shared.stdout, shared.stderr) == (alone.stdout, alone.stderr)
    assert "8 lines without an event were skipped" in alone.stderr
    match(index, path, "--rejects", listed, stdin=None)
    match(index, path, "--threads", "3", "--rejects", tmp_path / "shared.jsonl", stdin=None)
    assert (tmp_path / "shared.jsonl").read_bytes() == listed.read_bytes()


def test_threads_print_what_comes_before_an_error(tmp_path, index):
    path = tmp_path / "e.jsonl.gz"
    path.write_bytes(gzip.compress((LINES * 20_000).encode())[:-100])
    alone = match(index, path, stdin=None, code=1)
    shared = match(index, path, "--threads", "3", stdin=None, code=1)
    assert (shared.stdout, shared.stderr) == (alone.stdout, alone.stderr)
    assert len(json_lines(alone.stdout)) > 4096


# ── what cannot be read ─────────────────────────────────────────────────────────────────────

BAD_LINES = '{"age": "old"}\nnonsense\n{"age": 20}\n[1]\n{"age": true, "vip": 1}\n'


def test_what_cannot_be_read_is_counted(index):
    result = match(index, stdin=BAD_LINES)
    rows = json_lines(result.stdout)
    assert [row["event"] for row in rows] == [1, 3, 5]
    assert in_order(rows) == [["absent"], ["absent", "adult"], ["absent"]]
    assert "note: 2 lines without an event were skipped, first line 2: not JSON" in result.stderr
    assert "note: 2 values were treated as missing: age, event 1: 'old'" in result.stderr
    assert "note: 1 value was treated as missing: vip, event 5" in result.stderr


@pytest.mark.parametrize(
    ("n_wrong", "more"),
    [(5, []), (6, ["1 more attribute"]), (9, ["4 more attributes"])],
)
def test_notes_name_a_few_attributes(tmp_path, n_wrong, more):
    path = tmp_path / "i"
    tamis.build({f"s{n}": f"a{n} = 1" for n in range(9)}).save(path)
    event = json.dumps({f"a{n}": "x" if n < n_wrong else 1 for n in range(9)}) + "\n"
    notes = match(path, stdin=event).stderr.splitlines()
    assert len([note for note in notes if "treated as missing" in note]) == 5
    assert [note for note in notes if "the same" in note] == [
        f"note: the same for {text}" for text in more
    ]


def test_rejects_file(tmp_path, index):
    listed = tmp_path / "r.jsonl"
    result = match(index, "--rejects", listed, stdin=BAD_LINES * 1000)
    assert "--rejects" not in result.stderr
    rejects = json_lines(listed.read_text())
    assert len(rejects) == 5000
    by_event = {(row["event"], row["attribute"]): row["code"] for row in rejects[:2000]}
    assert by_event[2, None] == "bad-json"
    assert by_event[4, None] == "bad-row"
    assert by_event[1, "age"] == by_event[5, "vip"] == "wrong-type"
    assert {"file_line", "message", "hint"} <= rejects[0].keys()


def test_strict(index):
    assert match(index, "--strict").stderr == ""
    result = match(index, "--strict", stdin=BAD_LINES, code=1)
    assert len(json_lines(result.stdout)) == 3


@pytest.mark.parametrize(
    ("line", "code"),
    [(b"1", "bad-csv"), (b"1,2,3", "bad-csv"), (b'"1"x,2', "bad-csv"), (b"1,\xff", "bad-encoding")],
)
def test_bad_line_of_csv(tmp_path, index, line, code):
    listed = tmp_path / "r.jsonl"
    stdin = b"age,name\n20,a\n\n" + line + b"\n30,b\n"
    result = match(index, "--format", "csv", "--rejects", listed, stdin=stdin)
    assert [row["event"] for row in json_lines(result.stdout)] == [1, 3]
    (reject,) = json_lines(listed.read_text())
    assert (reject["event"], reject["file_line"], reject["code"]) == (2, 4, code)


def test_index_that_cannot_be_read(tmp_path, index):
    result = match(tmp_path / "none", code=1)
    assert "does not exist" in result.stderr
    assert "tamis build" in result.stderr
    damaged = build_index(tmp_path)
    (content,) = damaged.glob("content-*.bin")
    content.write_bytes(content.read_bytes()[:-1])
    assert content.name in match(damaged, code=1).stderr


def test_a_damaged_index_is_reported_before_kernels_are_compiled(tmp_path, monkeypatch):
    def compile_kernels():
        raise AssertionError("the kernels were compiled first")

    monkeypatch.setattr("tamis.cli.match.prepare_kernels", compile_kernels)
    damaged = build_index(tmp_path)
    (damaged / "manifest.json").write_text("{}", encoding="utf-8")
    assert "manifest.json" in match(damaged, code=1).stderr


@pytest.mark.parametrize(
    "arguments", [[], ["i", "e", "more"], ["i", "--output", "xml"], ["i", "--threads", "0"]]
)
def test_usage(arguments):
    assert run("match", *arguments).exit_code == 2


# ── pipes ───────────────────────────────────────────────────────────────────────────────────


def test_a_real_pipe(index):
    done = run_process("match", index, "--only-matches", stdin=(LINES * 3000).encode())
    (note,) = done.stderr.decode().splitlines()  # once, however many chunks there were
    assert "missing in every event (9,000 events): tag (" in note
    rows = json_lines(done.stdout.decode())
    assert len(rows) == 6000
    assert (rows[-1]["event"], in_order(rows[-1:])) == (8999, MATCHES[1:2])


def test_a_slow_pipe_is_answered_at_once(index):
    process = subprocess.Popen(
        [sys.executable, "-m", "tamis", "match", str(index)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    try:
        for number in (1, 2):
            process.stdin.write(b'{"age": 20, "country": "DE"}\n')
            process.stdin.flush()
            answer = process.stdout.readline()
            assert json.loads(answer) == {"event": number, "matches": ["adult"]}
        process.stdin.close()
        assert process.wait(HANG_SECONDS) == 0
    finally:
        process.kill()
        process.stdout.close()


def test_a_reader_that_has_seen_enough(tmp_path, index):
    path = write_rows(tmp_path / "e.jsonl", EVENTS * 20_000)
    command = f"{sys.executable} -m tamis match {index} {path} --threads 2 | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        env=environment(),
        timeout=HANG_SECONDS,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


def test_the_library_says_the_same(index):
    opened = tamis.open(index)
    assert [sorted(opened.match(event)) for event in EVENTS] == MATCHES


# ── the best matches ────────────────────────────────────────────────────────────────────────

WEIGHED = (
    '{"id": "a", "expression": "level > 1", "weight": 1, "tags": ["x"]}\n'
    '{"id": "b", "expression": "level > 2", "weight": 2.5}\n'
    '{"id": "c", "expression": "TRUE", "tags": ["x"]}\n'
)


@pytest.fixture(scope="module")
def weighed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weighed")
    result = run("build", "-", "--format", "jsonl", "-o", folder / "w.tamis", stdin=WEIGHED)
    assert result.exit_code == 0, result.output
    return folder / "w.tamis"


LEVELS = '{"level": 3}\n{"level": 0}\n{"level": 2}\n'


def test_the_best_matches(weighed):
    rows = json_lines(match(weighed, "--top", "1", stdin=LEVELS).stdout)
    assert [row["matches"] for row in rows] == [["b"], ["c"], ["a"]]
    rows = json_lines(match(weighed, "--top", "9", "--tagged", "x", stdin=LEVELS).stdout)
    assert [row["matches"] for row in rows] == [["a", "c"], ["c"], ["a", "c"]]
    result = match(weighed, "--top", "2", "--with", "weight,tags", "--output", "tsv", stdin=LEVELS)
    assert result.stdout.splitlines()[:2] == ["1\tb\t2.5\t[]", '1\ta\t1.0\t["x"]']
    rows = json_lines(match(weighed, "--top", "1", "--only-matches", "--output", "pairs").stdout)
    assert {row["subscription_id"] for row in rows} <= {"a", "b", "c"}


@pytest.mark.parametrize("other", [("--counts", "event"), ("--bindings",)])
def test_the_best_of_what_is_not_listed(weighed, other):
    result = match(weighed, "--top", "1", *other, stdin=LEVELS, code=2)
    assert f"--top cannot be combined with {other[0]}" in result.stderr


def test_counts_of_tagged_subscriptions(weighed):
    result = match(weighed, "--counts", "subscription", "--tagged", "x", stdin=LEVELS)
    assert {row["subscription_id"]: row["matches"] for row in json_lines(result.stdout)} == {
        "a": 2,
        "c": 3,
    }
