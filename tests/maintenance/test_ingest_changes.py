"""Ingestion that changes the table's schema, and batches that replace their rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.errors import InvalidInput, RawFileRefused, RetryableConflict, SchemaMismatch
from lance_ops.maintenance.ingest import (
    ChangedBatches,
    ExtraColumns,
    IngestBatch,
    IngestMode,
    IngestOptions,
    IngestResult,
    RawFile,
    RawReading,
    ingest,
)
from lance_ops.maintenance.ingest.planning import plan_ingest
from lance_ops.maintenance.ingest.running import commit_ingest, execute
from tests.pickling_runner import PicklingRunner

ADD = IngestOptions(schema_mode=SchemaMode.ADD)
OVERWRITE = IngestOptions(schema_mode=SchemaMode.OVERWRITE)
REPLACE = IngestOptions(batch_column="batch", changed_batches=ChangedBatches.REPLACE)


def land(folder: Path, name: str, table: pa.Table) -> IngestBatch:
    path = folder / f"{name}.parquet"
    pq.write_table(table, path)
    return IngestBatch(name, (RawFile(str(path), path.stat().st_size, str(hash(str(table.to_pylist())))),))


def land_json(folder: Path, name: str, row: dict[str, Any]) -> IngestBatch:
    path = folder / f"{name}.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return IngestBatch(name, (RawFile(str(path), path.stat().st_size, name),))


def rows(uri: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lance_ops.dataset(uri).to_table().to_pylist()
    return found


NARROW = pa.table({"id": pa.array([1], pa.int32()), "x": pa.array([0.5], pa.float32()), "n": pa.nulls(1)})
WIDE = pa.table({"ID": [1 << 40], "x": [1e300], "n": ["text"], "more": [7]})


def test_added_columns_and_wider_types_are_one_version_before_the_rows(tmp_path: Path, dataset_uri: str) -> None:
    ingest(dataset_uri, [land(tmp_path, "a", NARROW)])
    with pytest.raises(SchemaMismatch, match=r"b\.parquet: column 'more' \(int64\) is not in the table"):
        ingest(dataset_uri, [land(tmp_path, "b", WIDE)])
    runner = PicklingRunner()
    result = ingest(dataset_uri, [land(tmp_path, "b", WIDE)], options=ADD, runner=runner)
    assert result.version == 3
    assert runner.jobs == [("read the columns for", 1), ("ingest into", 1), ("alter columns of", 1)]
    assert rows(dataset_uri) == [
        {"id": 1, "x": 0.5, "n": None, "more": None},
        {"id": 1 << 40, "x": 1e300, "n": "text", "more": 7},
    ]
    assert ingest(dataset_uri, [land(tmp_path, "b", WIDE)], options=ADD).version is None


def test_a_task_that_fails_leaves_the_schema_and_no_file(tmp_path: Path, dataset_uri: str) -> None:
    ingest(dataset_uri, [land(tmp_path, "a", NARROW)])
    before = set(Path(dataset_uri).rglob("*"))
    bad = land(tmp_path, "c", pa.table({"id": ["x"]}))
    with pytest.raises(SchemaMismatch, match=r"c\.parquet: column 'id' is int64 in the table and string in the data"):
        ingest(dataset_uri, [land(tmp_path, "b", WIDE), bad], options=ADD)
    assert set(Path(dataset_uri).rglob("*")) == before


def test_a_crash_between_the_schema_and_the_rows_is_mended_by_the_next_run(tmp_path: Path, dataset_uri: str) -> None:
    ingest(dataset_uri, [land(tmp_path, "a", NARROW)])
    batch = land(tmp_path, "b", WIDE)
    plan = plan_ingest(dataset_uri, [batch], options=ADD)
    outcomes = [execute(task) for task in plan.tasks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lance_ops.maintenance.ingest.running.ingest_commit.Append", None)
        with pytest.raises(TypeError):
            commit_ingest(plan, outcomes)
    dataset = lance_ops.dataset(dataset_uri)
    assert (dataset.version, dataset.schema.names) == (2, ["id", "x", "n", "more"])
    assert dataset.count_rows() == 1
    runner = PicklingRunner()
    assert ingest(dataset_uri, [batch], options=ADD, runner=runner).version == 3
    assert "alter columns of" not in dict(runner.jobs)
    assert lance_ops.dataset(dataset_uri).count_rows() == 2


ADD_BY_KEY = IngestOptions(schema_mode=SchemaMode.ADD, mode=IngestMode.UPSERT, keys=("id",))


@pytest.mark.parametrize("theirs", [ADD, IngestOptions(extra_columns=ExtraColumns.IGNORE)], ids=["add", "ignore"])
@pytest.mark.parametrize("ours", [ADD, ADD_BY_KEY], ids=["append", "upsert"])
def test_a_batch_that_another_run_ingested_before_our_change_of_the_schema_is_not_ingested_again(
    tmp_path: Path, dataset_uri: str, ours: IngestOptions, theirs: IngestOptions
) -> None:
    ingest(dataset_uri, [land(tmp_path, "a", pa.table({"id": [1], "v": [1]}))])
    batch = land(tmp_path, "b", pa.table({"id": [2], "v": [2], "more": [2]}))
    plan = plan_ingest(dataset_uri, [batch], options=ours)
    outcomes = [execute(task) for task in plan.tasks]
    ingest(dataset_uri, [batch], options=theirs)
    later = IngestOptions(mode=ours.mode, keys=ours.keys)
    ingest(dataset_uri, [land(tmp_path, "c", pa.table({"id": [2], "v": [3]}))], options=later)
    before = [(row["id"], row["v"]) for row in rows(dataset_uri)]
    with pytest.raises(RetryableConflict, match="ingested batch 'b' meanwhile"):
        commit_ingest(plan, outcomes)
    assert [(row["id"], row["v"]) for row in rows(dataset_uri)] == before
    written = {file.path for outcome in outcomes for fragment in outcome.fragments for file in fragment.files}
    assert written and written.isdisjoint(path.name for path in Path(dataset_uri).rglob("*"))
    assert ingest(dataset_uri, [batch], options=ours).skipped == ("b",)


def test_text_files_add_columns_but_do_not_change_types(tmp_path: Path, dataset_uri: str) -> None:
    table = pa.table({"code": ["007"], "n": pa.array([1], pa.int32())})
    ingest(dataset_uri, [land(tmp_path, "a", table)])
    path = tmp_path / "b.csv"
    path.write_text("code,n,day\n008,2,2026-01-02\n")
    ingest(dataset_uri, [IngestBatch("b", (RawFile(str(path), 1, "t"),))], options=ADD)
    assert lance_ops.dataset(dataset_uri).schema == table.schema.append(pa.field("day", pa.date32()))
    assert rows(dataset_uri)[1]["code"] == "008"


NESTED = {"id": 1, "s": {"x": 1, "n": None, "deep": {"a": "b"}}, "l": [], "n": None}


@pytest.mark.parametrize("isolated", [False, True])
def test_json_adds_fields_to_structs_and_gives_null_a_type(tmp_path: Path, dataset_uri: str, *, isolated: bool) -> None:
    options = IngestOptions(schema_mode=SchemaMode.ADD, reading=RawReading(isolated=isolated))
    ingest(dataset_uri, [land_json(tmp_path, "a", NESTED)], options=options)
    more = {"id": 2, "S": {"X": 2, "n": 0.5, "y": "new", "deep": {"c": [1]}}, "l": [3], "n": "text"}
    ingest(dataset_uri, [land_json(tmp_path, "b", more)], options=options)
    assert rows(dataset_uri) == [
        {"id": 1, "s": {"x": 1, "n": None, "deep": {"a": "b", "c": None}, "y": None}, "l": [], "n": None},
        {"id": 2, "s": {"x": 2, "n": 0.5, "deep": {"a": None, "c": [1]}, "y": "new"}, "l": [3], "n": "text"},
    ]
    with pytest.raises(RawFileRefused, match=r"c\.jsonl: line 1: column 's\.x': 2\.5 is no int64"):
        ingest(dataset_uri, [land_json(tmp_path, "c", {"s": {"x": 2.5}})], options=options)


@pytest.mark.parametrize(
    ("first", "second"), [({"v": [{"x": 1}]}, {"v": [{"x": 1, "y": 2}]}), ({"v": {}}, {"v": {"y": 2}})]
)
def test_a_field_that_cannot_be_added_is_refused_and_the_rows_stay_readable(
    tmp_path: Path, dataset_uri: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    ingest(dataset_uri, [land_json(tmp_path, "a", first)], options=ADD)
    with pytest.raises(
        SchemaMismatch,
        match=r"field 'v\.y' .* schema mode 'add' adds no field within a list or a map, or to a struct without",
    ):
        ingest(dataset_uri, [land_json(tmp_path, "b", second)], options=ADD)
    assert rows(dataset_uri) == [first]


def test_an_overwrite_takes_the_files_schema_and_forgets_other_batches(tmp_path: Path, dataset_uri: str) -> None:
    first, second = land(tmp_path, "a", NARROW), land(tmp_path, "b", WIDE)
    ingest(dataset_uri, [first])
    result = ingest(dataset_uri, [second], options=OVERWRITE)
    assert (result.version, rows(dataset_uri)) == (2, WIDE.to_pylist())
    assert ingest(dataset_uri, [second], options=OVERWRITE).version is None
    assert ingest(dataset_uri, [first], options=IngestOptions(extra_columns=ExtraColumns.IGNORE)).ingested == ("a",)


def batch_rows(tmp_path: Path, key: str, *values: int) -> IngestBatch:
    return land(tmp_path, key, pa.table({"v": list(values)}))


def replace(uri: str, *batches: IngestBatch) -> IngestResult:
    return ingest(uri, batches, options=REPLACE)


def test_a_changed_batch_exchanges_its_rows_in_one_version(tmp_path: Path, dataset_uri: str) -> None:
    replace(dataset_uri, batch_rows(tmp_path, "a", 1, 2), batch_rows(tmp_path, "b", 3))
    lance_ops.dataset(dataset_uri).optimize.compact_files()
    before = lance_ops.dataset(dataset_uri).version
    result = replace(
        dataset_uri, batch_rows(tmp_path, "a", 10), batch_rows(tmp_path, "b", 3), batch_rows(tmp_path, "c", 4)
    )
    assert (result.version, result.ingested, result.replaced, result.skipped) == (
        before + 1,
        ("a", "c"),
        ("a",),
        ("b",),
    )
    assert sorted((row["batch"], row["v"]) for row in rows(dataset_uri)) == [("a", 10), ("b", 3), ("c", 4)]
    again = replace(dataset_uri, batch_rows(tmp_path, "a", 10))
    assert again.version is None
    with pytest.raises(InvalidInput, match="'a' was ingested in version .* with other content"):
        ingest(dataset_uri, [batch_rows(tmp_path, "a", 11)], options=IngestOptions(batch_column="batch"))


def test_rows_of_a_batch_that_cannot_be_found_are_not_doubled(tmp_path: Path, dataset_uri: str) -> None:
    ingest(dataset_uri, [batch_rows(tmp_path, "a", 1)])
    with pytest.raises(InvalidInput, match="no column 'batch' for the batches' keys: use schema mode 'add'"):
        replace(dataset_uri, batch_rows(tmp_path, "a", 2))
    labelled = IngestOptions(schema_mode=SchemaMode.ADD, batch_column="batch", changed_batches=ChangedBatches.REPLACE)
    with pytest.raises(InvalidInput, match="no row names batch 'a' in column 'batch'"):
        ingest(dataset_uri, [batch_rows(tmp_path, "a", 2)], options=labelled)
    assert [row["v"] for row in rows(dataset_uri)] == [1]
    assert len(list(Path(dataset_uri, "data").iterdir())) == 1


def test_of_two_runs_that_replace_a_batch_the_rows_of_one_stay(tmp_path: Path, dataset_uri: str) -> None:
    replace(dataset_uri, batch_rows(tmp_path, "a", 1))
    new = batch_rows(tmp_path, "new", 5)
    plans = [plan_ingest(dataset_uri, [batch_rows(tmp_path, "a", value), new], options=REPLACE) for value in (2, 2)]
    outcomes = [[execute(task) for task in plan.tasks] for plan in plans]
    for plan, outcome in zip(plans, outcomes, strict=True):
        commit_ingest(plan, outcome)
    assert sorted(row["v"] for row in rows(dataset_uri)) == [2, 5]


class Meanwhile(PicklingRunner):
    """A runner that does something else once after it has run tasks."""

    def __init__(self, other: Callable[[], object]) -> None:
        super().__init__()
        self.others = [other]

    def map(self, *given: Any) -> Any:
        found = super().map(*given)
        if self.others:
            self.others.pop()()
        return found


def test_rows_that_replace_a_batch_are_written_again_if_the_schema_changes_meanwhile(
    tmp_path: Path, dataset_uri: str
) -> None:
    replace(dataset_uri, batch_rows(tmp_path, "a", 1), batch_rows(tmp_path, "b", 2))
    runner = Meanwhile(lambda: lance_ops.dataset(dataset_uri).add_columns({"more": "v * 10"}))
    result = ingest(dataset_uri, [batch_rows(tmp_path, "a", 3)], options=REPLACE, runner=runner)
    assert (result.version, result.replaced) == (3, ("a",))
    assert sorted((row["v"], row["more"]) for row in rows(dataset_uri)) == [(2, 20), (3, None)]
    assert [verb for verb, _ in runner.jobs].count("ingest into") == 2
    named = {file.path for fragment in lance_ops.dataset(dataset_uri).snapshot.fragments for file in fragment.files}
    assert named <= {path.name for path in Path(dataset_uri, "data").iterdir()}


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidInput, match="name one"):
        IngestOptions(changed_batches=ChangedBatches.REPLACE)
    with pytest.raises(InvalidInput, match="takes extra columns"):
        IngestOptions(schema_mode=SchemaMode.ADD, extra_columns=ExtraColumns.IGNORE)
