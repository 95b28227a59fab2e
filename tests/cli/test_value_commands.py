"""Updates, new columns, migrations and queries on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_ops.api import dataset, write_dataset
from lance_ops.cli import extras
from lance_ops.verbs import REASON_PROPERTY
from tests.cli.calls import answer, outcome, run, said, text
from tests.pickling_runner import PicklingRunner


@pytest.fixture
def numbers(dataset_uri: str) -> str:
    """Twelve rows in three fragments."""
    table = pa.table({"x": range(12), "name": [f"row {row}" for row in range(12)], "raw": [b"\xff"] * 12})
    write_dataset(table, dataset_uri, max_rows_per_file=4)
    return dataset_uri


def test_update_sets_columns_of_the_rows_that_match(numbers: str) -> None:
    given = ("update", numbers, "x=x + 100", "name = upper(name)", "--where", "x > 9")
    assert text(*given, "--dry-run").startswith("update x, name of 2 of 12 rows\n")
    assert said(*given) == "updated 2 rows: version 2"
    assert dataset(numbers).to_table(filter="x > 100").select(["x", "name"]).to_pylist() == [
        {"x": 110, "name": "ROW 10"},
        {"x": 111, "name": "ROW 11"},
    ]
    assert text("update", numbers, "x=1", "--where", "x > 900") == "no row matches; version 2 stays\n"


def test_add_columns_computes_them_without_a_rewrite_of_the_others(numbers: str) -> None:
    before = {file.path for fragment in dataset(numbers).snapshot.fragments for file in fragment.files}
    assert said("add-columns", numbers, "half=x / 2", "both=x = 3 OR x = 5", "--reason", "asked for") == (
        "added half (int64), both (bool): version 2"
    )
    after = {file.path for fragment in dataset(numbers).snapshot.fragments for file in fragment.files}
    assert before < after
    transaction = dataset(numbers).read_transaction(2)
    assert transaction is not None and transaction.transaction_properties[REASON_PROPERTY] == "asked for"
    assert dataset(numbers).to_table(filter="both")["half"].to_pylist() == [1, 2]


def test_their_tasks_may_run_elsewhere(numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = PicklingRunner()
    monkeypatch.setattr(extras, "start_spark", lambda *_: elsewhere, raising=False)
    assert answer("update", numbers, "x=1", "--where", "x = 0", "--spark", "local[2]")["num_rows_updated"] == 1
    assert answer("add-columns", numbers, "y=x", "--spark", "local[2]")["added"] == {"y": "int64"}
    assert [verb for verb, _ in elsewhere.jobs] == ["update", "add columns to"]


def test_values_of_files_go_to_the_rows_that_they_name(
    numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = tmp_path / "values.parquet"
    pq.write_table(pa.table({"_rowaddr": pa.array([1, 0], pa.uint64()), "y": [11, 10]}), values)
    added = answer("add-columns", numbers, "--from", str(values), "--dry-run")["preview"]
    assert added["summary"] == "add y to 12 rows"
    assert added["warnings"] == ["10 rows that the files do not name get nulls."]
    assert added["sections"][0]["lines"] == [["y", "int64"]] and dataset(numbers).version == 1
    assert "has no column 'y'" in run("update", numbers, "--from", str(values), "--dry-run").stderr
    assert said("add-columns", numbers, "--from", str(values), "--checkpoint", "y") == "added y (int64): version 2"
    assert said("update", numbers, "--from", str(values)) == "updated 2 rows: version 3"
    assert dataset(numbers).to_table(["y"], limit=3)["y"].to_pylist() == [10, 11, None]
    elsewhere = PicklingRunner()
    monkeypatch.setattr(extras, "start_spark", lambda *_: elsewhere, raising=False)
    assert answer("update", numbers, "--from", str(values), "--spark", "local[2]")["num_rows_updated"] == 2
    assert ("stage values for", 1) in elsewhere.jobs, "a task reads the file"
    for given in ([], ["y=1", "--from", str(values)]):
        assert run("add-columns", numbers, *given).exit_code == run("update", numbers, *given).exit_code == 2
    assert "update y of 2 of 12 rows" in text("update", numbers, "--from", str(values), "--dry-run")
    assert "checkpoint belongs to files" in run("update", numbers, "x=1", "--checkpoint", "x").stderr
    assert "belong to values" in run("update", numbers, "--from", str(values), "--where", "x = 1").stderr


def test_columns_of_a_function_are_shown_and_added(numbers: str) -> None:
    given = ("add-columns", numbers, "--function", "tests.verbs.made_columns:doubled", "--read-column", "x")
    shown = answer(*given, "--batch-size", "3", "--dry-run")["preview"]
    assert [section["title"] for section in shown["sections"]] == ["New columns", "New columns of the first rows"]
    assert said(*given, "--batch-size", "3") == "added doubled (int64): version 2"
    assert dataset(numbers).to_table(["doubled"])["doubled"].to_pylist() == [*range(0, 24, 2)]


def test_migrate_rewrites_the_files_of_other_versions_by_tasks(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(pa.table({"x": range(12)}), dataset_uri, max_rows_per_file=4, data_storage_version="2.0")
    elsewhere = PicklingRunner()
    monkeypatch.setattr(extras, "start_spark", lambda *_: elsewhere, raising=False)
    given = ("migrate", dataset_uri, "--data-storage-version", "2.1", "--spark", "local[2]")
    assert said(*given) == "rewrote 3 fragments in files of version 2.1: version 3"
    assert elsewhere.jobs == [("migrate to 2.1,", 3)]
    assert text(*given) == "every file has version 2.1; version 3 stays\n"
    assert outcome(*given) == {"fragments": 0, "version": 3, "data_storage_version": "2.1", "dry_run": False}
    files = [file for fragment in dataset(dataset_uri).snapshot.fragments for file in fragment.files]
    assert {(file.file_major_version, file.file_minor_version) for file in files} == {(2, 1)}
    assert run("migrate", dataset_uri, "--data-storage-version", "0.1").exit_code == 1


@pytest.mark.parametrize("given", [["x"], ["=1"], ["x= "], ["x=1", "x=2"]])
def test_a_word_that_is_no_assignment_is_refused(numbers: str, given: list[str]) -> None:
    for command in ("update", "add-columns"):
        assert run(command, numbers, *given).exit_code == 2
    assert dataset(numbers).version == 1


def test_query_prints_rows_by_condition_order_and_version(numbers: str) -> None:
    text("delete", numbers, "x = 11")
    shown = text("query", numbers, "--where", "x > 8", "--order-by", "x", "--descending", "--column", "x")
    assert shown.split() == ["2", "rows", "x", "10", "9"]
    assert "11" in text("query", numbers, "--where", "x > 8", "--version", "1")
    lines = text("query", numbers, "--limit", "2", "--json").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"x": 0, "name": "row 0", "raw": "/w=="},
        {"x": 1, "name": "row 1", "raw": "/w=="},
    ]
    assert text("query", numbers, "--where", "x > 99").split()[:2] == ["0", "rows"]


def test_query_explains_that_an_index_is_used(numbers: str) -> None:
    dataset(numbers).create_scalar_index("x", "BTREE")
    plan: Any = text("query", numbers, "--where", "x = 3", "--explain")
    assert "ScalarIndexQuery" in plan


def test_rows_are_counted_and_columns_measured_by_tasks(numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = PicklingRunner()
    monkeypatch.setattr(extras, "start_spark", lambda *_: elsewhere, raising=False)
    assert text("count", numbers) == "12 rows\n"
    assert answer("count", numbers, "x > 8", "--spark", "local[2]") == {"num_rows": 3, "version": 1}
    measured = answer("statistics", numbers, "--column", "x", "--column", "raw", "--spark", "local[2]")
    assert measured["x"] == {"num_rows": 12, "num_nulls": 0, "min": 0, "max": 11, "num_distinct": 12}
    assert measured["raw"]["min"] == "/w=="  # base64
    assert "row 9" in text("statistics", numbers, "--where", "x < 10")
    assert [verb for verb, _ in elsewhere.jobs] == ["count rows of", "measure columns of"]


def test_duplicates_are_counted_shown_and_deleted(numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = PicklingRunner()
    monkeypatch.setattr(extras, "start_spark", lambda *_: elsewhere, raising=False)
    dataset(numbers).update({"x": "x - x % 4"})
    assert text("duplicates", numbers, "--on", "x", "--examples", "2").split() == [
        *("3", "keys", "of", "12", "rows", "repeat", "x", "rows", "0", "4", "4", "4")
    ]
    assert answer("duplicates", numbers, "--on", "x", "--on", "name", "--spark", "local[2]")["num_keys"] == 0
    would = answer("duplicates", numbers, "--on", "raw", "--keep", "last", "--dry-run")["preview"]
    assert would["summary"] == "delete 11 of 12 rows: 1 keys have several" and dataset(numbers).version == 2
    assert run("duplicates", numbers, "--on", "raw", "--keep", "last", "--at-most-rows", "10").exit_code == 1
    assert run("duplicates", numbers, "--on", "raw", "--dry-run").exit_code == 2
    done = outcome("duplicates", numbers, "--on", "raw", "--keep", "last")
    assert done == {"num_deleted_rows": 11, "version": 3, "dry_run": False}
    assert dataset(numbers).to_table()["name"].to_pylist() == ["row 11"]
    assert text("duplicates", numbers, "--on", "x", "--keep", "first") == "no key has two rows; version 3 stays\n"
    assert [verb for verb, _ in elsewhere.jobs] == ["compare keys of"]
