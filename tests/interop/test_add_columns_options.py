"""Every kind of transform and every option of `add_columns` does what it does in the reference."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.same_change import Change, Difference, check_change

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

NEW = pa.table({"r": range(6)})
INT64 = pa.schema({"d": pa.int64()})


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(6), pa.int32()),
            "v": [0.0, 1.0, None, 3.0, 4.0, 5.0],
            "s": list("abcdef"),
            "p": pa.array([{"x": i, "q": {"z": i}} if i != 3 else None for i in range(6)]),
            "l": pa.array([[i, i + 1] for i in range(6)]),
        }
    )


def add(*arguments: Any, **options: Any) -> Change:
    return lambda dataset, _: dataset.add_columns(*arguments, **options)


def stream(table: pa.Table, num_rows: int = 2, **options: Any) -> Change:
    """Return the addition of a stream, which is made anew for each library."""

    def change(dataset: Any, _: Any) -> None:
        batches = table.to_batches(max_chunksize=num_rows)
        dataset.add_columns(pa.RecordBatchReader.from_batches(table.schema, batches), **options)

    return change


def batches(num_rows: int, schema: pa.Schema | None) -> Change:
    return lambda dataset, _: dataset.add_columns(iter(NEW.to_batches(max_chunksize=num_rows)), reader_schema=schema)


def function(make: Callable[[pa.RecordBatch], Any], **options: Any) -> Change:
    return add(make, **options)


def udf(schema: pa.Schema | None, make: Callable[[pa.RecordBatch], Any], **options: Any) -> Change:
    return lambda dataset, library: dataset.add_columns(library.batch_udf(schema)(make), **options)


def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([batch["id"].cast(pa.int64())], ["d"])


def seen(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a column that says which columns and how many rows the function gets."""
    shape = f"{sorted(batch.schema.names)} {batch.num_rows}"
    return pa.record_batch([pa.array([shape] * batch.num_rows)], ["d"])


def narrow_after_the_first_row(batch: pa.RecordBatch) -> pa.RecordBatch:
    kind = pa.int64() if batch.num_rows == 1 else pa.int32()
    return pa.record_batch([batch["id"].cast(kind)], ["d"])


def failing(batch: pa.RecordBatch) -> pa.RecordBatch:
    raise ValueError("the function fails")


NOT_NULL = pa.schema([pa.field("d", pa.int64(), nullable=False)])
OTHER = pa.schema({"r": pa.int32()})

CASES: dict[str, dict[str, Change]] = {
    "transforms: expressions": {
        "several": add({"w": "v * 2", "k": "id + 1"}),
        "of fields": add({"a": "p.x", "b": "p.q.z + 1"}),
        "of an item": add({"c": "l[1]"}),
        "of a struct": add({"e": "p"}),  # beside its fields the reference fails now and then
        "null": add({"a": "NULL", "b": "CAST(NULL AS INT)"}),
        "nulls of a type": add({"a": "CAST(NULL AS STRING)", "b": "CAST(NULL AS INT)"}),
        "a literal": add({"a": "1"}),
        "CASE": add({"a": "CASE WHEN v > 1 THEN 'x' ELSE s END"}),
        "of a row column": add({"a": "_rowid"}),
        "none": add({}),
        "of an unknown column": add({"a": "nope + 1"}),
        "of a column that is new": add({"a": "id + 1", "b": "a + 1"}),
        "that do not parse": add({"a": "1 +"}),
        "a number": add({"a": 1}),
        "for a number": add({1: "id"}),
        "for a taken name": add({"v": "id"}),
        "for a struct": add({"p": "id + 1"}),
        "for a name in another case": add({"V": "id + 1"}),
        "for a name with a dot": add({"a.b": "id + 1"}),
        "for a row column": add({"_rowid": "id"}),
    },
    "transforms: fields": {
        "one": add(pa.field("z", pa.int32())),
        "with metadata": add(pa.field("z", pa.int32(), metadata={"a": "b"})),
        "that forbids nulls": add(pa.field("z", pa.int32(), nullable=False)),
        "that exists": add(pa.field("v", pa.float64())),
        "a list": add([pa.field("z", pa.int32()), pa.field("y", pa.list_(pa.string()))]),
        "an empty list": add([]),
        "one name twice": add([pa.field("z", pa.int32()), pa.field("z", pa.string())]),
        "fields and others": add([pa.field("z", pa.int32()), 1]),
        "a schema": add(pa.schema([pa.field("z", pa.int32()), pa.field("y", pa.struct([("a", pa.int8())]))])),
        "a schema with metadata": add(pa.schema([pa.field("z", pa.int32())], {"a": "b"})),
        "an empty schema": add(pa.schema([])),
        "into a struct": add(pa.schema([pa.field("p", pa.struct([("a", pa.int8())]))])),
        "into a struct of a struct": add(pa.field("p", pa.struct([("q", pa.struct([("a", pa.int8())]))]))),
        "into a struct that has it": add(pa.schema([pa.field("p", pa.struct([("x", pa.int64())]))])),
    },
    "transforms: rows": {
        "a table": add(NEW),
        "a table with metadata": add(NEW.replace_schema_metadata({"a": "b"})),
        "a batch": add(NEW.to_batches()[0]),
        "a reader": stream(NEW),
        "a reader across fragments": stream(NEW, 4),
        "one row too few": stream(NEW.slice(1)),
        "one row too many": stream(pa.concat_tables([NEW, NEW.slice(5)])),
        "no row": stream(NEW.slice(6)),
        "that forbid nulls": add(pa.table([range(6)], schema=pa.schema([pa.field("r", pa.int64(), nullable=False)]))),
        "of a taken name": stream(pa.table({"v": range(6)})),
        "into a struct": add(pa.table({"p": [{"w": i} for i in range(6)]})),
        "a data frame": add(pd.DataFrame({"r": range(6)})),
        "dictionaries": add([{"r": i} for i in range(6)]),
        "None": add(None),
        "a number": add(3),
        "a text": add("a"),
    },
    "transforms: functions": {
        "plain": function(copied),
        "of a data frame": function(lambda batch: pd.DataFrame({"d": batch.to_pandas()["v"] * 2})),
        "of a table": function(lambda batch: pa.table({"d": batch["id"]})),
        "that fails": function(failing),
        "that returns None": function(lambda batch: None),
        "with too few rows": function(lambda batch: pa.record_batch([pa.array([1])], ["d"])),
        "of a taken name": function(lambda batch: pa.record_batch([batch["id"]], ["id"])),
        "of another type later": function(narrow_after_the_first_row),
        "a UDF": udf(INT64, copied),
        "a UDF without a schema": udf(None, copied),
        "a UDF that fails": udf(INT64, failing),
        "a UDF of a data frame": udf(INT64, lambda batch: pd.DataFrame({"d": batch["id"].to_pandas().astype("int64")})),
        "a UDF of another name": udf(pa.schema({"e": pa.int64()}), copied),
        "a UDF with a column too many": udf(
            INT64, lambda batch: pa.record_batch([batch["id"].cast(pa.int64()), batch["id"]], ["d", "e"])
        ),
        "a UDF of another type": udf(INT64, lambda batch: pa.record_batch([batch["id"]], ["d"])),
        "a UDF that forbids nulls": udf(
            NOT_NULL, lambda batch: pa.record_batch([batch["id"].cast(pa.int64())], schema=NOT_NULL)
        ),
    },
    "read_columns": {
        "some": function(seen, read_columns=["v", "id"]),
        "all": function(seen),
        "none": function(
            lambda batch: pa.record_batch([pa.array([batch.num_rows] * batch.num_rows)], ["d"]), read_columns=[]
        ),
        "with row ids": function(seen, read_columns=["v", "_rowid"]),
        "with row addresses": function(seen, read_columns=["_rowaddr", "id"]),
        "with both": function(seen, read_columns=["_rowaddr", "id", "_rowid"]),
        "a field of a struct": function(
            lambda batch: pa.record_batch([pa.array([str(row) for row in batch.to_pylist()])], ["d"]),
            read_columns=["p.x"],
        ),
        "unknown": function(seen, read_columns=["nope"]),
        "of a UDF": udf(pa.schema({"d": pa.string()}), seen, read_columns=["id"]),
        "beside expressions": add({"a": "id + 1"}, read_columns=["v"]),
        "beside fields": add(pa.field("z", pa.int32()), read_columns=["nope"]),
    },
    "reader_schema": {
        "of batches": batches(2, NEW.schema),
        "left out": batches(2, None),
        "beside expressions": add({"a": "id + 1"}, reader_schema=NEW.schema),
        "of another type for a table": add(NEW, reader_schema=OTHER),
    },
    "batch_size": {
        "smaller than a fragment": function(seen, batch_size=2),
        "larger than a fragment": function(seen, batch_size=100),
        "one": udf(pa.schema({"d": pa.string()}), seen, batch_size=1),
        "of expressions": add({"a": "id + 1"}, batch_size=1),
        "of a reader": stream(NEW, 3, batch_size=2),
        "zero": add({"a": "id + 1"}, batch_size=0),
        "zero for a reader": stream(NEW, batch_size=0),
        "negative": add({"a": "id + 1"}, batch_size=-1),
        "beside fields": add(pa.field("z", pa.int32()), batch_size=0),
    },
}
BOTH_SUCCEED = {"ours_succeeds": True, "theirs_succeeds": True}
FRAME = Difference("but not pandas' description of a data frame", **BOTH_SUCCEED)
COPIED = rows().append_column("d", rows()["id"])
CAST = Difference("A function's result is cast to its schema", rows=COPIED)
KNOWN = {
    ("transforms: expressions", "a literal"): Difference("Computed columns allow nulls", **BOTH_SUCCEED),
    ("transforms: expressions", "CASE"): Difference(
        "`CASE` and row columns", rows=rows().append_column("a", [["a", "b", "c", "x", "x", "x"]])
    ),
    ("transforms: expressions", "of a row column"): Difference(
        "`CASE` and row columns", rows=rows().append_column("a", [[0, 1, 2, 2**32, 2**32 + 1, 2**32 + 2]])
    ),
    ("transforms: expressions", "for a row column"): Difference(
        "A new or renamed column cannot have the name", ours_succeeds=False, theirs_succeeds=True
    ),
    ("transforms: rows", "a data frame"): FRAME,
    ("transforms: functions", "of a data frame"): FRAME,
    ("transforms: functions", "of a table"): Difference("may return a table", rows=COPIED),
    ("transforms: functions", "of another type later"): CAST,
    ("transforms: functions", "a UDF of another type"): CAST,
    ("reader_schema", "of another type for a table"): Difference("casts every form of data", **BOTH_SUCCEED),
}


def test_every_argument_has_cases() -> None:
    arguments = set(signature(lance.LanceDataset.add_columns).parameters) - {"self"}
    assert {option.partition(":")[0] for option in CASES} == arguments


@pytest.mark.parametrize(("option", "case"), [(option, case) for option in CASES for case in CASES[option]])
def test_additions_do_the_same(tmp_path: Path, option: str, case: str) -> None:
    check_change(tmp_path, rows(), CASES[option][case], KNOWN.get((option, case)))


EMPTY = {
    "expressions": add({"a": "id + 1"}),
    "a field": add(pa.field("z", pa.int32())),
    "a stream": stream(NEW.slice(6)),
    "a function": function(copied),
    "a UDF": udf(INT64, copied),
}


@pytest.mark.parametrize("case", EMPTY)
def test_additions_to_a_table_without_rows_do_the_same(tmp_path: Path, case: str) -> None:
    check_change(tmp_path, rows().slice(6), EMPTY[case])


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
@pytest.mark.parametrize("case", ["expressions", "a field", "a function", "a UDF", "a stream"])
def test_additions_to_tables_of_older_versions_do_the_same(tmp_path: Path, case: str, version: str) -> None:
    change = stream(NEW, 4) if case == "a stream" else EMPTY[case]
    table = rows().select(["id", "s"])
    nulls = Difference("Tables of 0.1 get fields of nulls", rows=table.append_column("z", pa.nulls(6)))
    known = nulls if (case, version) == ("a field", "legacy") else None
    check_change(tmp_path, table, change, known, data_storage_version=version)


@pytest.mark.parametrize("deleted", [None, "id = 4"])
def test_a_checkpoint_keeps_the_batches_of_a_function_that_fails(tmp_path: Path, deleted: str | None) -> None:
    calls: dict[str, list[int]] = {"lance_ops": [], "lance": []}

    def resumed(dataset: Any, library: Any) -> list[bool]:
        file, called = tmp_path / f"{library.__name__}.results", calls[library.__name__]
        if deleted:
            dataset.delete(deleted)

        @library.batch_udf(INT64, checkpoint_file=str(file))  # type: ignore[untyped-decorator]
        def fails_once(batch: pa.RecordBatch) -> pa.RecordBatch:
            ids = batch["id"].to_pylist()  # the reference also gives it the deleted row's batch, which is empty
            called.extend(ids)
            if ids and len(called) == 3:
                raise RuntimeError("once")
            return copied(batch)

        with pytest.raises((RuntimeError, OSError), match="once"):
            dataset.add_columns(fails_once, read_columns=["id"], batch_size=1)
        found = file.exists()
        dataset.add_columns(fails_once, read_columns=["id"], batch_size=1)
        return [found, file.exists()]

    check_change(tmp_path, rows(), resumed)
    assert sorted(calls["lance_ops"]) == sorted(calls["lance"])
    assert len(calls["lance"]) == (6 if deleted is None else 5) + 1  # only the row that failed is computed again


def test_the_function_gets_batches_in_order_and_its_column_is_computed(tmp_path: Path) -> None:
    def change(dataset: Any, _: Any) -> list[int]:
        firsts: list[int] = []

        def tripled(batch: pa.RecordBatch) -> pa.RecordBatch:
            firsts.append(batch["id"][0].as_py())
            return pa.record_batch([pc.multiply(batch["id"], 3)], ["t"])

        dataset.add_columns(tripled, read_columns=["id"], batch_size=2)
        return firsts[1:]  # the first call only asks for the schema

    check_change(tmp_path, rows(), change)
