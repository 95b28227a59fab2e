"""Values by row: columns that are added or replaced from data that names rows by `_rowaddr` or `_rowid`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.changing import RowBuckets, row_buckets
from lance_ops.changing.columns.backfill import BackfillTask
from lance_ops.errors import InvalidInput, RawFileRefused, RetryableConflict, SchemaMismatch, TooManyConcurrentWriters
from lance_ops.runners import InThreads
from lance_ops.writing import task_shares
from tests.pickling_runner import PicklingRunner

LOCATE, ORDER, ADD, REPLACE = "locate rows of", "order rows of", "add columns to", "replace values in"
ROWS = [x for x in range(20) if x != 5]


def made(uri: str, *, stable: bool = False, **options: Any) -> lance_ops.LanceDataset:
    """A table of five fragments, of which row 5 is deleted; `x` is 0 to 19."""
    dataset = lance_ops.write_dataset(
        pa.table({"x": range(20), "v": [f"old{x}" for x in range(20)]}),
        uri,
        max_rows_per_file=4,
        enable_stable_row_ids=stable,
        **options,
    )
    dataset.delete("x = 5")
    return dataset


def keyed(dataset: lance_ops.LanceDataset, key: str, where: str | None = None, column: str = "new") -> pa.Table:
    """The keys of rows, in another order than the table's, with a value for each."""
    rows = dataset.to_table(["x"], filter=where, with_row_id=True, with_row_address=True)
    rows = rows.take(np.random.default_rng(1).permutation(len(rows)))
    return pa.table({column: pa.array([f"v{x}" for x in rows["x"].to_pylist()], pa.string()), key: rows[key]})


def values(dataset: lance_ops.LanceDataset, column: str = "new") -> dict[int, str | None]:
    rows = lance_ops.dataset(dataset.uri).to_table(["x", column]).to_pylist()
    return {row["x"]: row[column] for row in sorted(rows, key=lambda row: row["x"])}


def left(dataset: lance_ops.LanceDataset) -> list[str]:
    """The folders that a verb left behind."""
    return sorted(path.name for path in Path(dataset.uri, "data").iterdir() if path.is_dir())


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize(("key", "stable"), [("_rowaddr", False), ("_rowid", False), ("_rowid", True)])
def test_new_columns_have_the_values_of_the_rows_they_name_and_nulls_elsewhere(
    dataset_uri: str, key: str, stable: bool, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_buckets, "_PAIRS_PER_BUCKET", 5)
    dataset = made(dataset_uri, stable=stable, data_storage_version=version)
    if stable:
        dataset.optimize.compact_files(target_rows_per_fragment=8)
    num_fragments = len(dataset.get_fragments())
    runner = PicklingRunner()
    dataset.add_columns(keyed(dataset, key, "x % 3 != 0"), runner=runner)
    assert values(dataset) == {x: None if x % 3 == 0 else f"v{x}" for x in ROWS}
    assert runner.jobs == [(LOCATE, 1), (ORDER, 3), (ADD, num_fragments)]
    assert not left(dataset)
    assert dataset.verify().ok


def test_fragments_that_share_a_task_get_their_own_values(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_shares, "_MAX_TASKS", 2)
    dataset = made(dataset_uri)
    runner = PicklingRunner()
    dataset.add_columns(keyed(dataset, "_rowaddr", "x > 6"), runner=runner)
    dataset.update_columns(keyed(dataset, "_rowaddr", "x IN (1, 6, 11)", "v"), runner=runner)
    assert values(dataset) == {x: f"v{x}" if x > 6 else None for x in ROWS}
    assert values(dataset, "v") == {x: f"v{x}" if x in (1, 6, 11) else f"old{x}" for x in ROWS}
    assert dict(runner.jobs) == {LOCATE: 1, ORDER: 1, ADD: 2, REPLACE: 2}


def test_many_files_of_pairs_have_fewer_buckets(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_buckets, "_PAIRS_PER_BUCKET", 5)
    monkeypatch.setattr(row_buckets, "_MOST_MESSAGE_BYTES", 96)
    snapshot = made(dataset_uri).snapshot
    for num_files, num_buckets in ((1, 4), (4, 3), (5, 2), (100, 1)):
        buckets = RowBuckets.of(snapshot, 20, num_files)
        assert len(buckets.firsts) == num_buckets
        assert buckets.message_bytes * num_files <= 96 or num_buckets == 1


@pytest.mark.parametrize(("key", "stable"), [("_rowaddr", False), ("_rowid", True)])
def test_replaced_values_are_in_the_fragments_that_have_a_named_row(dataset_uri: str, key: str, stable: bool) -> None:
    dataset = made(dataset_uri, stable=stable)
    runner = PicklingRunner()
    counts = dataset.update_columns(keyed(dataset, key, "x IN (1, 4, 6)", "v"), runner=runner)
    assert counts == {"num_rows_updated": 3}
    assert values(dataset, "v") == {x: f"v{x}" if x in (1, 4, 6) else f"old{x}" for x in ROWS}
    assert runner.jobs[-1] == (REPLACE, 2)
    if stable:
        changed = dataset.to_table(["x"], filter=f"_row_last_updated_at_version = {dataset.version}")
        assert sorted(changed["x"].to_pylist()) == [1, 4, 6]
    assert not left(dataset)
    assert dataset.verify().ok
    nothing = keyed(dataset, key, "false", "v")
    assert (dataset.update_columns(nothing), dataset.version) == ({"num_rows_updated": 0}, 3)


def twice(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(2, 1)])


def without_a_key(rows: pa.Table) -> pa.Table:
    return rows.set_column(1, "_rowaddr", pa.array([None, *rows["_rowaddr"].to_pylist()[1:]], pa.uint64()))


def at(address: int) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.slice(0, 1).set_column(1, "_rowaddr", pa.array([address], pa.uint64()))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (twice, r"name the same row, such as _rowaddr \d+ \(fragment \d, row \d\)"),
        (without_a_key, "1 rows of the data have no _rowaddr"),
        (at(1 << 32 | 1), r"deleted in version 2 .*_rowaddr 4294967297 \(fragment 1, row 1\)"),
        (at(1 << 32 | 9), r"has no row at _rowaddr 4294967305 \(fragment 1, row 9\)"),
        (at(77 << 32), r"has no fragment of _rowaddr .*\(fragment 77, row 0\)"),
    ],
)
def test_keys_that_name_no_single_row_are_refused_before_a_column_is_written(
    dataset_uri: str, data: Callable[[pa.Table], pa.Table], error: str
) -> None:
    dataset = made(dataset_uri)
    before = sorted(Path(dataset_uri).rglob("*"))
    rows = keyed(dataset, "_rowaddr")
    with pytest.raises(InvalidInput, match=error):
        dataset.add_columns(data(rows))
    with pytest.raises(InvalidInput, match=error):
        dataset.update_columns(data(rows).rename_columns(["v", "_rowaddr"]))
    assert sorted(Path(dataset_uri).rglob("*")) == before


def test_data_that_cannot_be_values_by_row_is_refused(dataset_uri: str) -> None:
    dataset = made(dataset_uri, stable=True)
    with pytest.raises(InvalidInput, match="no row of version 2 has _rowid 5"):
        dataset.add_columns(pa.table({"_rowid": pa.array([5], pa.uint64()), "new": ["x"]}))
    with pytest.raises(InvalidInput, match="no column _rowaddr or _rowid .* it has v"):
        dataset.update_columns(pa.table({"v": ["x"]}))
    with pytest.raises(InvalidInput, match="no column beside '_rowid'"):
        dataset.add_columns(pa.table({"_rowid": pa.array([1], pa.uint64())}))
    with pytest.raises(SchemaMismatch, match="'w' is not in the table"):
        dataset.update_columns(pa.table({"_rowid": pa.array([1], pa.uint64()), "w": ["x"]}))
    assert not left(dataset)


def test_a_struct_that_lacks_a_field_is_refused_before_nulls_replace_its_values(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"s": [{"x": 1, "in": {"y": 2, "z": 3}}]}), dataset_uri)
    row = pa.array([0], pa.uint64())
    for part, field in ({"x": 5}, "s.in"), ({"x": 5, "in": {"y": 6}}, "s.in.z"):
        with pytest.raises(SchemaMismatch, match=f"no field '{field}', and nulls would replace"):
            dataset.update_columns(pa.table({"_rowaddr": row, "s": [part]}))
    dataset.update_columns(pa.table({"_rowaddr": row, "s": [{"in": {"z": 6, "y": 5}, "x": 4}]}))
    assert dataset.to_table().to_pylist() == [{"s": {"x": 4, "in": {"y": 5, "z": 6}}}]


def test_a_struct_in_a_list_or_a_map_that_lacks_a_field_is_refused(dataset_uri: str) -> None:
    whole, part = pa.struct({"x": pa.int64(), "y": pa.int64()}), pa.struct({"x": pa.int64()})

    def rows(struct: pa.DataType, item: dict[str, int]) -> pa.Table:
        kinds = {"l": pa.list_(pa.list_(struct, 1)), "m": pa.map_(pa.string(), struct)}
        return pa.table({"l": [[[item]]], "m": [[("k", item)]]}, pa.schema(kinds))

    dataset = lance_ops.write_dataset(rows(whole, {"x": 1, "y": 2}), dataset_uri)
    row = pa.array([0], pa.uint64())
    for name, field in ("l", "l.y"), ("m", "m.value.y"):
        with pytest.raises(SchemaMismatch, match=f"no field '{field}', and nulls would replace"):
            dataset.update_columns(rows(part, {"x": 5}).select([name]).append_column("_rowaddr", [row]))
    dataset.update_columns(rows(whole, {"x": 3, "y": 4}).append_column("_rowaddr", [row]))
    assert dataset.to_table() == rows(whole, {"x": 3, "y": 4})


@pytest.mark.parametrize(("key", "given"), [("_rowaddr", "_RowAddr"), ("_rowid", "_ROWID")])
def test_the_name_of_the_key_matches_without_case(dataset_uri: str, tmp_path: Path, key: str, given: str) -> None:
    dataset = made(dataset_uri)
    rows = keyed(dataset, key, "x < 3").rename_columns({key: given})
    dataset.add_columns(rows)
    pq.write_table(rows.rename_columns({"new": "v"}), tmp_path / "values.parquet")
    dataset.update_columns(str(tmp_path / "values.parquet"))
    for column, elsewhere in ("new", None), ("v", "old9"):
        found = values(dataset, column)
        assert [found[x] for x in (0, 1, 2, 9)] == ["v0", "v1", "v2", elsewhere]
    assert dataset.schema.names == ["x", "v", "new"]
    rows = rows.append_column(key.title(), rows[given])
    with pytest.raises(SchemaMismatch, match=f"column '{key}' may be any of {given}, {key.title()}"):
        dataset.update_columns(rows.rename_columns({"new": "v"}))


class FailsAt:
    """Runs tasks one after another and stops before that of one fragment."""

    def __init__(self, fragment_id: int) -> None:
        self.fragment_id = fragment_id

    def map(self, function: Any, tasks: Any, job: Any = None, discard: Any = None) -> list[Any]:
        def run(task: Any) -> Any:
            if isinstance(task, BackfillTask) and self.fragment_id in task.fragment_ids:
                raise ConnectionError("the machine went away")
            return function(task)

        return InThreads(1).map(run, tasks, job, discard)


@pytest.mark.parametrize("replaces", [False, True], ids=["add", "replace"])
def test_a_second_attempt_reads_what_was_staged_and_writes_what_was_not_finished(
    dataset_uri: str, replaces: bool
) -> None:
    dataset = made(dataset_uri)
    column = "v" if replaces else "new"
    rows = keyed(dataset, "_rowaddr", column=column)
    change = dataset.update_columns if replaces else dataset.add_columns
    with pytest.raises(ConnectionError):
        change(rows, runner=FailsAt(3), checkpoint="values")
    assert len(left(dataset)) == 2, "the staged rows, and the records of finished files"
    kept = set(Path(dataset_uri, "data").glob("*.lance"))
    no_rows = rows.slice(0, 0)  # the staged rows count
    change(no_rows, runner=InThreads(1), checkpoint="values")
    assert values(dataset, column) == {x: f"v{x}" for x in ROWS}
    assert len(set(Path(dataset_uri, "data").glob("*.lance")) - kept) == 2
    assert not left(dataset)
    assert dataset.verify().ok


def test_a_second_attempt_reads_files_again_only_if_they_have_changed(dataset_uri: str, tmp_path: Path) -> None:
    dataset, file = made(dataset_uri), tmp_path / "values.csv"
    file.write_text("_rowaddr,v\n0,first\n0,first again\n")
    with pytest.raises(InvalidInput, match="name the same row"):
        dataset.update_columns(file, checkpoint="values")
    file.write_text("_rowaddr,v\n0,mended\n1,mended\n")
    with pytest.raises(ConnectionError):
        dataset.update_columns(file, runner=FailsAt(0), checkpoint="values")
    runner = PicklingRunner()
    assert dataset.update_columns(file, runner=runner, checkpoint="values") == {"num_rows_updated": 2}
    assert [job for job, _ in runner.jobs] == ["read the columns of", LOCATE, ORDER, REPLACE]
    assert [values(dataset, "v")[x] for x in range(3)] == ["mended", "mended", "old2"]


@pytest.mark.parametrize("stable", [False, True])
def test_after_a_conflict_only_stable_ids_still_name_the_same_rows(dataset_uri: str, stable: bool) -> None:
    dataset = made(dataset_uri, stable=stable)
    rows = keyed(dataset, "_rowid")

    class Raced(PicklingRunner):
        def map(self, function: Any, tasks: Any, job: Any = None, discard: Any = None) -> list[Any]:
            if job.verb == ADD and len(self.jobs) == 2:
                lance_ops.dataset(dataset_uri).optimize.compact_files(target_rows_per_fragment=8)
            return super().map(function, tasks, job, discard)

    if stable:
        dataset.add_columns(rows, runner=Raced())
        assert values(dataset) == {x: f"v{x}" for x in ROWS}
    else:
        with pytest.raises(RetryableConflict):
            dataset.add_columns(rows, runner=Raced())
        assert "new" not in lance_ops.dataset(dataset_uri).schema.names
    assert not left(dataset)


def test_tasks_read_values_from_raw_files_in_the_types_of_the_table(dataset_uri: str, tmp_path: Path) -> None:
    dataset = made(dataset_uri)
    files = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for number, file in enumerate(files):
        file.write_text(f"_rowaddr,v,_rowid\n{number},007,{number}\n")
    runner = PicklingRunner()
    assert dataset.update_columns(files, runner=runner) == {"num_rows_updated": 2}
    assert runner.jobs[-4:] == [("stage values for", 2), (LOCATE, 1), (ORDER, 1), (REPLACE, 1)]
    assert [values(dataset, "v")[x] for x in range(3)] == ["007", "007", "old2"]
    added = tmp_path / "new.csv"
    added.write_text("_rowaddr,new\n3,1.5\n")
    dataset.add_columns(added)
    assert dataset.schema.field("new").type == pa.float64()
    assert dataset.to_table(["x", "new"], filter="new IS NOT NULL").to_pylist() == [{"x": 3, "new": 1.5}]
    assert not left(dataset)


def test_a_file_that_lacks_a_column_of_another_is_refused_before_its_nulls_replace_values(
    dataset_uri: str, tmp_path: Path
) -> None:
    dataset = made(dataset_uri)
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("_rowaddr,v,x\n0,new,100\n")
    second.write_text("_rowaddr,x\n1,101\n")
    with pytest.raises(SchemaMismatch, match=r"2.csv has no column 'v'"):
        dataset.update_columns([first, second])
    with pytest.raises(RawFileRefused, match=r"none.csv"):
        dataset.update_columns(tmp_path / "none.csv")
    with pytest.raises(RawFileRefused, match="it is a folder: name each of its files"):
        dataset.update_columns(tmp_path)
    with pytest.raises(InvalidInput, match=r"in.lance is a dataset"):
        dataset.add_columns("in.lance")
    with pytest.raises(InvalidInput, match="raw files have the types of their columns"):
        dataset.update_columns(first, pa.schema([("v", pa.string())]))
    assert not left(dataset) and lance_ops.dataset(dataset_uri).version == 2


def test_values_of_stable_ids_are_replaced_after_a_conflict_as_often_as_the_caller_allows(dataset_uri: str) -> None:
    dataset = made(dataset_uri, stable=True)
    rows = keyed(dataset, "_rowid", "x = 1", "v")
    lance_ops.dataset(dataset_uri).update({"v": "'other'"}, "x = 1")
    with pytest.raises(TooManyConcurrentWriters):
        dataset.update_columns(rows, conflict_retries=0)
    assert values(dataset, "v")[1] == "other"
    dataset.update_columns(rows)
    assert values(dataset, "v")[1] == "v1"


def test_columns_are_added_after_a_conflict_as_often_as_the_caller_allows(dataset_uri: str) -> None:
    dataset = made(dataset_uri, stable=True)
    rows = keyed(dataset, "_rowid", "x > 1")
    lance_ops.dataset(dataset_uri).delete("x = 1")

    def doubled(batch: pa.RecordBatch) -> pa.Table:
        return pa.table({"double": pc.multiply(batch["x"], 2)})

    for transforms in (rows, {"more": "x + 1"}, doubled):
        stale = lance_ops.dataset(dataset_uri, dataset.version)
        with pytest.raises(TooManyConcurrentWriters):
            stale.add_columns(transforms, conflict_retries=0)
        stale.add_columns(transforms)
    assert lance_ops.dataset(dataset_uri).to_table(filter="x = 2").to_pylist() == [
        {"x": 2, "v": "old2", "new": "v2", "more": 3, "double": 4}
    ]
