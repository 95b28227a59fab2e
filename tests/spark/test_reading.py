"""Reads in planner and tasks without a Spark session: which version, which columns, which rows."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType, _parse_datatype_json_string

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, LanceOpsError, SchemaMismatch, VersionNotFound
from lance_ops.snapshot import FragmentReader
from lance_ops.spark import partitioning
from lance_ops.spark.data_source import LanceReader, LanceSource, table_reader


@pytest.fixture
def numbers(dataset_uri: str) -> str:
    """Twelve rows in three fragments; `s` has the children `a` and `b`."""
    rows = [{"x": i, "Name": f"n{i}", "s": {"a": i, "b": -i}} for i in range(12)]
    write_dataset(pa.Table.from_pylist(rows), dataset_uri, max_rows_per_file=4)
    return dataset_uri


def read(uri: str, schema: dict[str, str] | None = None, **options: str) -> pa.Table:
    """Read as Spark does: plan on the driver, then read each partition; without any, Spark makes one of its own."""
    source = LanceSource({"path": uri, **options})
    shape = source.schema() if schema is None else spark_schema(schema)
    assert isinstance(shape, StructType)
    reader = source.reader(shape)
    assert isinstance(reader, LanceReader)
    return rows_of(reader)


def rows_of(reader: LanceReader) -> pa.Table:
    parts: Sequence[InputPartition] = reader.partitions() or [InputPartition(None)]
    batches = [batch for part in parts for batch in reader.read(part)]
    return pa.Table.from_batches(batches, reader.shape)


def spark_schema(columns: dict[str, str]) -> StructType:
    """Return a schema by its columns' type names, or their JSON for structs."""
    fields = ", ".join(
        f'{{"name": "{name}", "type": {kind if kind.startswith("{") else chr(34) + kind + chr(34)}, '
        '"nullable": true, "metadata": {}}'
        for name, kind in columns.items()
    )
    parsed = _parse_datatype_json_string(f'{{"type": "struct", "fields": [{fields}]}}')
    assert isinstance(parsed, StructType)
    return parsed


def xs(table: pa.Table) -> list[int]:
    return table.column("x").to_pylist()  # type: ignore[no-any-return]


def test_a_filter_that_an_index_finds_nothing_for_plans_no_task_and_gives_no_rows(numbers: str) -> None:
    dataset(numbers).create_scalar_index("x", "BTREE")
    assert read(numbers, filter="x = 99").num_rows == 0


def test_a_table_without_rows_gives_none(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": pa.array([], pa.int64())}), dataset_uri)
    assert read(dataset_uri).num_rows == 0


def test_a_moment_reads_the_version_that_was_newest_then(numbers: str) -> None:
    opened = dataset(numbers)
    first = opened.versions()[0]["timestamp"]
    assert first is not None
    opened.delete("x > 3")
    assert xs(read(numbers)) == [0, 1, 2, 3]
    assert read(numbers, timestamp=first.isoformat()).num_rows == 12
    assert read(numbers, timestampAsOf=first.isoformat()).num_rows == 12
    assert read(numbers, versionAsOf="1").num_rows == 12
    with pytest.raises(VersionNotFound, match="no retained version is as old"):
        read(numbers, timestampAsOf="2001-01-01")


def test_a_branch_is_read_at_its_newest_version_or_at_a_given_one(numbers: str) -> None:
    branch = dataset(numbers).create_branch("trial")
    first = branch.version
    branch.delete("x > 0")
    assert xs(read(numbers, branch="trial")) == [0]
    assert read(numbers, branch="trial", version=str(first)).num_rows == 12
    assert read(numbers).num_rows == 12
    dataset(numbers).tags.create("short", ("trial", branch.version))
    assert xs(read(numbers, tag="short")) == [0]


def test_a_source_stays_at_the_version_of_a_branch_that_it_found(numbers: str) -> None:
    branch = dataset(numbers).create_branch("trial")
    source = LanceSource({"path": numbers, "branch": "trial"})
    schema = source.schema()
    assert isinstance(schema, StructType)
    branch.delete("x > 0")
    reader = source.reader(schema)
    assert isinstance(reader, LanceReader)
    assert rows_of(reader).num_rows == 12


def test_a_dataset_made_again_under_its_path_is_refused_by_frames_of_the_old_one(numbers: str) -> None:
    source = LanceSource({"path": numbers})
    shape = source.schema()
    assert isinstance(shape, StructType)
    task = pickle.dumps(source.reader(shape))
    LanceDataset.drop(numbers)
    write_dataset(pa.table({"x": [99], "Name": ["other"], "s": [{"a": 9, "b": 9}]}), numbers)
    with pytest.raises(VersionNotFound, match="version 1 is not the one that was opened before"):
        pickle.loads(pickle.dumps(source)).reader(shape)
    with pytest.raises(VersionNotFound, match="made again under this URI; open it again"):
        pickle.loads(task)
    assert xs(read(numbers)) == [99]


def test_names_are_matched_without_case_unless_the_session_says_otherwise(numbers: str) -> None:
    assert read(numbers, columns="NAME,X").column_names == ["Name", "x"]
    asked = read(numbers, {"X": "integer", "NAME": "string"})
    assert asked.column_names == ["X", "NAME"]
    assert asked.column("NAME").to_pylist() == [f"n{i}" for i in range(12)]
    with pytest.raises(InvalidInput, match="no column 'NAME'"):
        read(numbers, {"NAME": "string"}, case_sensitive="true")
    with pytest.raises(InvalidInput, match="no column 'NAME'"):
        read(numbers, columns="NAME", case_sensitive="true")


def test_a_name_that_two_columns_differ_from_in_case_is_refused(dataset_uri: str) -> None:
    write_dataset(pa.table({"key": [1], "KEY": [2]}), dataset_uri)
    assert read(dataset_uri, {"KEY": "long"}).to_pylist() == [{"KEY": 2}]
    with pytest.raises(SchemaMismatch, match="'Key' may be any of key, KEY"):
        read(dataset_uri, {"Key": "long"})


def test_a_part_of_a_struct_is_read_by_option_and_by_schema(numbers: str) -> None:
    assert read(numbers, columns="S.B").to_pylist() == [{"s": {"b": -i}} for i in range(12)]
    part = '{"type": "struct", "fields": [{"name": "B", "type": "long", "nullable": true, "metadata": {}}]}'
    source = LanceSource({"path": numbers})
    reader = source.reader(spark_schema({"s": part}))
    assert isinstance(reader, LanceReader)
    assert [field.name for field in reader.request.schema.walk()] == ["s", "b"]
    assert read(numbers, {"s": part}).to_pylist() == [{"s": {"B": -i}} for i in range(12)]


def test_row_columns_come_on_demand(numbers: str) -> None:
    assert not {"_rowid", "_rowaddr", "_fragid"} & {*read(numbers).column_names}
    table = read(numbers, columns="x", with_fragment_id="true", with_version_columns="true")
    assert table.column_names == ["x", "_fragid", "_row_created_at_version", "_row_last_updated_at_version"]
    assert table.column("_fragid").to_pylist() == [i // 4 for i in range(12)]
    assert table.column("_row_created_at_version").to_pylist() == [1] * 12
    assert read(numbers, columns="_rowaddr, x").column_names == ["x", "_rowaddr"]
    assert read(numbers, {"_fragid": "integer"}).column("_fragid").to_pylist() == [i // 4 for i in range(12)]


def test_a_row_column_that_the_table_has_itself_is_the_tables(dataset_uri: str) -> None:
    write_dataset(pa.table({"_fragid": [77]}), dataset_uri)
    assert read(dataset_uri).to_pylist() == [{"_fragid": 77}]
    with pytest.raises(LanceOpsError, match="'_fragid' of its own"):
        read(dataset_uri, with_fragment_id="true")


# -- how the rows are shared among tasks ------------------------------------------------------------------------------


def planned(uri: str, **options: str) -> LanceReader:
    source = LanceSource({"path": uri, **options})
    schema = source.schema()
    assert isinstance(schema, StructType)
    reader = source.reader(schema)
    assert isinstance(reader, LanceReader)
    return reader


@pytest.fixture
def one_fragment(dataset_uri: str) -> str:
    """A thousand rows in one fragment, of which every seventh is deleted."""
    write_dataset(pa.table({"x": range(1000), "even": [i % 2 == 0 for i in range(1000)]}), dataset_uri)
    dataset(dataset_uri).delete("x % 7 = 0")
    return dataset_uri


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("condition", [None, "x >= 100 AND x < 900", "x >= 100 AND x < 900 AND even"])
def test_one_large_fragment_is_cut_into_row_ranges(one_fragment: str, condition: str | None, indexed: bool) -> None:
    if indexed:
        dataset(one_fragment).create_scalar_index("x", "BTREE")
    options = {"num_partitions": "4", **({} if condition is None else {"filter": condition})}
    reader = planned(one_fragment, **options)
    parts = [pa.Table.from_batches(reader.read(part), reader.shape) for part in reader.partitions()]
    assert len(parts) == 4
    assert [x for part in parts for x in xs(part)] == dataset(one_fragment).to_table(filter=condition)["x"].to_pylist()
    looked_at = 1000 if condition is None else 800
    assert all(0 < part.num_rows <= looked_at / 3 for part in parts)


def test_a_number_of_partitions_is_not_exceeded(numbers: str) -> None:
    for count in range(1, 13):
        groups = planned(numbers, num_partitions=str(count)).partitions()
        assert len(groups) <= count
        assert xs(read(numbers, num_partitions=str(count))) == [*range(12)]
    assert len(planned(numbers).partitions()) == 3


@pytest.fixture
def wide(dataset_uri: str) -> str:
    """Forty fragments whose bytes do not compress; `wide` has 15 times the bytes of `x`."""
    values = np.random.default_rng(1).integers(0, 1 << 62, (4000, 16))
    vectors = pa.FixedSizeListArray.from_arrays(values[:, 1:].ravel(), 15)
    write_dataset(pa.table({"x": values[:, 0], "wide": vectors}), dataset_uri, max_rows_per_file=100)
    return dataset_uri


def test_partitions_are_sized_by_the_columns_that_are_read(wide: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioning, "_BYTES_PER_PARTITION", 4000 * 8)
    monkeypatch.setattr(partitioning, "_TASKS_PER_CORE", 0)
    monkeypatch.setattr("lance_ops.snapshot.stored_sizes._NOT_WORTH_OPENING", 0)
    opened: list[int] = []
    encoded_bytes = FragmentReader.encoded_bytes

    def counting(self: FragmentReader, *args: object) -> int:
        opened.append(self.fragment.id)
        return encoded_bytes(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(FragmentReader, "encoded_bytes", counting)
    assert 16 <= len(planned(wide).partitions()) <= 20
    assert opened == []
    assert 1 <= len(planned(wide, columns="x").partitions()) <= 2
    assert 14 <= len(planned(wide, columns="wide").partitions()) <= 18
    # The filter's column is read, too.
    assert 15 <= len(planned(wide, columns="wide", filter="x >= 0").partitions()) <= 20
    assert len(opened) <= 3 * 16


def test_a_read_for_some_rows_plans_no_others(numbers: str) -> None:
    reader = planned(numbers, rows_needed="6")
    assert [part.row_ranges for part in reader.partitions()] == [((0, 0, 4),), ((1, 0, 2),)]
    dataset(numbers).delete("x IN (0, 1, 5)")
    assert xs(read(numbers, rows_needed="4")) == [2, 3, 4, 6]
    found = planned(numbers, rows_needed="1", filter="x % 2 = 0")
    batches = [batch for part in found.partitions() for batch in found.read(part)]
    assert [batch.column("x").to_pylist() for batch in batches] == [[2], [4], [8]]


def test_a_read_of_everything_names_its_remedy_once(
    numbers: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "lance_ops")
    planned(numbers).partitions()
    assert caplog.messages == []  # not for a small table
    monkeypatch.setattr(table_reader, "_WORTH_SAYING_BYTES", 1)
    for options in ({"columns": "x"}, {"filter": "x = 1"}, {"rows_needed": "5"}):
        planned(numbers, **options).partitions()
    assert caplog.messages == []
    for _ in range(2):
        planned(numbers).partitions()
    assert len(caplog.messages) == 1
    assert "lance_ops.spark.table(spark, uri)" in caplog.text
