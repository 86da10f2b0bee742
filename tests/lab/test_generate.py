"""Workloads as files: readable by the product, the same in memory and on Spark in kind."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import tamis
from tamis.errors import InputError
from tamis.lab.workloads import generate as generating
from tamis.lab.workloads.generate import (
    WORKLOADS,
    Request,
    describe_sharing,
    generate,
    generate_on_spark,
    make_workload,
    read_settings,
)


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", WORKLOADS)
def test_text_and_parquet_hold_the_same(name, tmp_path):
    paths = generate(Request(name, 30, 10, {"seed": 3}), tmp_path / "out")
    assert all(path.exists() for path in paths)
    folder = tmp_path / "out"
    rows = read_lines(folder / "subscriptions.jsonl")
    assert rows == pq.read_table(folder / "subscriptions.parquet").to_pylist()
    workload = make_workload(name, {"seed": 3})
    assert [row["expression"] for row in rows] == workload.expressions(30)
    assert read_lines(folder / "events.jsonl") == workload.events(10)
    stored = pq.read_table(folder / "events.parquet").to_pylist()
    assert [{k: v for k, v in row.items() if v is not None} for row in stored] == workload.events(
        10
    )
    schema = json.loads((folder / "schema.json").read_text())
    index = tamis.build({row["subscription_id"]: row["expression"] for row in rows}, schema)
    assert not index.rejects


def test_files_in_the_way_stay(tmp_path):
    (tmp_path / "events.jsonl").write_text("mine")
    with pytest.raises(InputError, match=r"events\.jsonl.* exists already"):
        generate(Request("abe_gen", 3, 3, {}), tmp_path)
    assert (tmp_path / "events.jsonl").read_text() == "mine"


def test_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r'no workload "ads" in the lab; allowed: abe_gen, ads_like'
    ):
        generate(Request("ads", 3, 3, {}), tmp_path)
    with pytest.raises(InputError, match=r'no parameter "dept"; allowed: n_expressions, .*depth'):
        generate(Request("abe_gen", 3, 3, {"dept": 3}), tmp_path)
    with pytest.raises(InputError, match='"depth" is not a parameter; allowed: name=number'):
        read_settings(["depth"])
    assert read_settings(["depth=4", "alpha = 0.5"]) == {"depth": 4, "alpha": 0.5}


def test_what_does_not_fit_is_refused_before_work(tmp_path):
    with pytest.raises(InputError, match=r"expressions and 0 events need about [\d.]+ GB") as error:
        generate(Request("abe_gen", 10**10, 0, {}), tmp_path)
    assert "Spark" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_on_spark_chunks_have_seeds_of_their_own(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(generating, "CHUNK", 40)
    request = Request("ads_like", 100, 50, {"seed": 5})
    drawn = [generating.DrawChunks(request, "subscriptions", 100)._draw(at) for at in range(3)]
    assert [table.num_rows for table in drawn] == [40, 40, 20]
    monkeypatch.undo()
    generate_on_spark(spark, request, tmp_path / "out")
    stored = spark.read.parquet(str(tmp_path / "out" / "subscriptions.parquet"))
    rows = sorted(stored.collect(), key=lambda row: int(row.subscription_id[1:]))
    assert [row.subscription_id for row in rows] == [f"s{at}" for at in range(100)]
    whole = generating.DrawChunks(request, "subscriptions", 100)._draw(0)
    assert [row.expression for row in rows] == whole["expression"].to_pylist()
    assert spark.read.json(str(tmp_path / "out" / "events.jsonl")).count() == 50
    texts = [table["expression"].to_pylist() for table in drawn]
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seed": 2**63}, "seed is 9223372036854775808; allowed: 0 to"),
        ({"n_dimensions": 10**12}, "n_dimensions is 1000000000000; allowed: numbers up to"),
        ({"alpha": float("inf")}, "alpha is inf; allowed: numbers up to"),
    ],
)
def test_numbers_without_measure_are_refused(settings, said):
    with pytest.raises(InputError, match=said):
        make_workload("abe_gen", settings)


def test_long_documents_count_in_the_estimate(tmp_path):
    with pytest.raises(InputError, match=r"50,000,000 events need about [0-9.]+ GB"):
        generate(Request("keywords", 10, 50_000_000, {}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_sharing_is_told():
    """Near the paper's 18.35 uses of a predicate and 4.33 of a subexpression."""
    predicates, *rest = describe_sharing(Request("abe_gen", 5_000, 0, {}))
    assert predicates.startswith("level 1: each of ")
    assert 15 < float(predicates.split()[-2]) < 22
    assert len(rest) >= 1
    assert describe_sharing(Request("in_sets", 10, 0, {})) == []
