"""Backfills of large fragments on a cluster: tasks compute pieces, and one task for each fragment joins them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.api import batch_udf_factory
from lance_ops.changing.columns import column_pieces
from lance_ops.errors import InvalidInput
from tests.pickling_runner import PicklingRunner

ROWS = 100
SCHEMA = pa.schema({"double": pa.int64()})


@dataclass
class Cluster(PicklingRunner):
    """A cluster of some slots."""

    slots: int = 1000

    def num_slots(self) -> int:
        return self.slots


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_pieces, "_ROWS_OF_PIECE", 10)
    monkeypatch.setattr(column_pieces, "_LEAST_PIECES", 2)


@pytest.fixture
def numbers(dataset_uri: str) -> lance_ops.LanceDataset:
    """A table of a fragment of 100 rows, of which some are deleted, and of one with 7 rows; `x` counts the rows."""
    table = pa.table({"x": pa.array(range(ROWS), pa.int64()), "s": [{"a": x} for x in range(ROWS)]})
    dataset = lance_ops.write_dataset(table, dataset_uri)
    dataset.insert(pa.table({"x": pa.array(range(ROWS, ROWS + 7)), "s": [{"a": x} for x in range(ROWS, ROWS + 7)]}))
    dataset.delete("x = 9 OR (x >= 20 AND x < 40) OR x = 99")
    return dataset


def check(dataset: lance_ops.LanceDataset, jobs: list[tuple[str, int]]) -> None:
    """Check the values, which jobs ran, and that no piece is left."""
    table = lance_ops.dataset(dataset.uri).to_table()
    assert table.num_rows == ROWS + 7 - 22
    assert table["double"].to_pylist() == [2 * x for x in table["x"].to_pylist()]
    assert jobs == [("add columns to", 10), ("join pieces to add columns to", 2)]
    assert pieces(dataset) == []
    dataset.validate()
    assert lance_ops.dataset(dataset.uri).verify().findings == ()


def pieces(dataset: lance_ops.LanceDataset) -> list[Path]:
    return sorted(Path(dataset.uri, "data").glob("backfill-*/*"))


def data_files(dataset: lance_ops.LanceDataset) -> set[str]:
    return {path.name for path in Path(dataset.uri, "data").glob("*")}


def test_expressions_are_computed_in_pieces(numbers: lance_ops.LanceDataset) -> None:
    runner = Cluster()
    numbers.add_columns({"double": "x * 2"}, runner=runner)
    check(numbers, runner.jobs)
    assert max(runner.task_bytes) < 4096


LOADED: list[str] = []


def load_doubling() -> Any:
    """Stand for a model that takes long to load."""
    LOADED.append("doubling")
    return lambda batch: pa.record_batch([pc.multiply(batch["x"], 2)], schema=SCHEMA)


def test_a_function_is_made_once_and_gets_batches_of_a_piece(numbers: lance_ops.LanceDataset) -> None:
    LOADED.clear()
    runner = Cluster()
    numbers.add_columns(batch_udf_factory(SCHEMA)(load_doubling), ["x"], runner=runner, batch_size=4)
    check(numbers, runner.jobs)
    assert LOADED == ["doubling"]


def test_columns_and_fields_are_cast_in_pieces(numbers: lance_ops.LanceDataset) -> None:
    runner = Cluster()
    numbers.alter_columns(
        {"path": "x", "data_type": pa.int16()}, {"path": "s.a", "data_type": pa.int32()}, runner=runner
    )
    assert runner.jobs == [("alter columns of", 10), ("join pieces to alter columns of", 2)]
    table = lance_ops.dataset(numbers.uri).to_table()
    assert table.schema.field("x").type == pa.int16()
    assert table.schema.field("s").type.field("a").type == pa.int32()
    assert table["s"].to_pylist() == [{"a": x} for x in table["x"].to_pylist()]
    numbers.update({"x": "300"}, where="x = 8")
    with pytest.raises(InvalidInput, match="does not fit"):
        numbers.alter_columns({"path": "x", "data_type": pa.int8()}, runner=Cluster())
    assert pieces(numbers) == []


def test_a_piece_without_live_rows_has_values_where_nulls_are_not_allowed(dataset_uri: str) -> None:
    inner = pa.field("a", pa.int64(), nullable=False)
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False), pa.field("s", pa.struct([inner]), nullable=False)])
    rows = [{"x": x, "s": {"a": x}} for x in range(ROWS)]
    dataset = lance_ops.write_dataset(pa.Table.from_pylist(rows, schema), dataset_uri)
    dataset.delete("x < 20")
    runner = Cluster()
    dataset.alter_columns(
        {"path": "x", "data_type": pa.int16()}, {"path": "s.a", "data_type": pa.int32()}, runner=runner
    )
    added = _schema_without_nulls()
    dataset.add_columns(lance_ops.BatchUDF(_values_without_nulls, added), ["x"], runner=runner)
    assert [num_tasks for _, num_tasks in runner.jobs] == [10, 1, 10, 1]
    table = lance_ops.dataset(dataset.uri).to_table()
    assert [str(table.schema.field(name).type) for name in ("x", "s")] == ["int16", "struct<a: int32 not null>"]
    assert table.select(["x", "s"]).to_pylist() == rows[20:]
    assert (
        table.select(added.names).to_pylist()
        == _values_without_nulls(table.combine_chunks().to_batches()[0]).to_pylist()
    )
    dataset.validate()
    assert lance_ops.dataset(dataset.uri).verify().findings == ()


def _schema_without_nulls() -> pa.Schema:
    number = pa.field("item", pa.float32(), nullable=False)
    types = {
        "text": pa.string(),
        "truth": pa.bool_(),
        "hash": pa.binary(4),
        "price": pa.decimal128(9, 2),
        "vector": pa.list_(number, 2),
        "list": pa.list_(number),
        "words": pa.list_(pa.field("item", pa.struct([pa.field("w", pa.string(), nullable=False)]), nullable=False), 2),
        "pair": pa.struct([number, pa.field("note", pa.string())]),
        "word": pa.dictionary(pa.int8(), pa.string()),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


def _values_without_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = [
        {
            "text": f"text {x}",
            "truth": x % 2 == 0,
            "hash": x.to_bytes(4),
            "price": Decimal(x),
            "vector": [x, 1],
            "list": [x] * (x % 3),
            "words": [{"w": f"{x}"}, {"w": "b"}],
            "pair": {"item": x, "note": None},
            "word": "ab"[x % 2],
        }
        for x in batch["x"].to_pylist()
    ]
    return pa.RecordBatch.from_pylist(rows, _schema_without_nulls())


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_all_types_and_file_versions_are_joined_or_computed_whole(dataset_uri: str, version: str) -> None:
    table = pa.table({"x": pa.array(range(ROWS), pa.int64())})
    dataset = lance_ops.write_dataset(table, dataset_uri, data_storage_version=version)
    dataset.delete("x < 30 AND x > 3")
    runner = Cluster()
    dataset.add_columns(_many_types, ["x"], runner=runner)
    assert len(runner.jobs) == (1 if version in ("legacy", "2.0") else 2)
    found = lance_ops.dataset(dataset.uri).to_table()
    expected = _many_types(found.select(["x"]).combine_chunks().to_batches()[0])
    assert found.drop_columns(["x"]).to_pylist() == expected.to_pylist()


def _many_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    xs = batch["x"].to_pylist()
    return pa.record_batch(
        {
            "text": pa.array([f"text {x} " * (x % 5 + 1) for x in xs]),
            "vector": pa.array([[x, x / 2] for x in xs], pa.list_(pa.float32(), 2)),
            "list": pa.array([list(range(x % 4)) for x in xs], pa.list_(pa.int32())),
            "word": pa.array(["ab"[x % 2] for x in xs]).dictionary_encode(),
        }
    )


@pytest.mark.parametrize("runner", [Cluster(slots=2), PicklingRunner()])
def test_where_there_are_few_slots_a_task_computes_a_fragment(
    numbers: lance_ops.LanceDataset, runner: PicklingRunner
) -> None:
    numbers.add_columns({"double": "x * 2"}, runner=runner)
    assert runner.jobs == [("add columns to", 2)]


def test_a_fragment_that_would_outlast_many_others_is_computed_in_pieces(
    numbers: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers.insert(pa.table({"x": range(200, 230), "s": [{"a": x} for x in range(30)]}), max_rows_per_file=10)
    monkeypatch.setattr(column_pieces, "_PIECES_OF_LARGE", 4)
    runner = Cluster(slots=4)
    numbers.add_columns({"double": "x * 2"}, runner=runner)
    assert runner.jobs == [("add columns to", 10), ("join pieces to add columns to", 5)]
    runner = Cluster(slots=2)
    numbers.add_columns({"triple": "x * 3"}, runner=runner)
    assert runner.jobs == [("add columns to", 5)], "no slot would wait"


class Doubling:
    """Doubles `x`, and notes the first one of each batch in a file; fails at one value."""

    def __init__(self, log: Path, fails_at: int | None = None) -> None:
        self.log = log
        self.fails_at = fails_at

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch["x"][0].as_py() == self.fails_at:
            raise RuntimeError("the machine went away")
        with self.log.open("a") as file:
            file.write(f"{batch['x'][0]}\n")
        return pa.record_batch([pc.multiply(batch["x"], 2)], schema=SCHEMA)

    def add_to(self, dataset: lance_ops.LanceDataset, checkpoint: str | None = "doubles") -> Cluster:
        runner = Cluster()
        function = lance_ops.BatchUDF(self, SCHEMA)
        dataset.add_columns(function, ["x"], runner=runner, checkpoint=checkpoint)
        return runner

    def computed(self) -> list[int]:
        return [int(line) for line in self.log.read_text().split()]


def test_a_failure_leaves_no_file(numbers: lance_ops.LanceDataset, tmp_path: Path) -> None:
    before = data_files(numbers)
    with pytest.raises(RuntimeError):
        Doubling(tmp_path / "log", fails_at=50).add_to(numbers, checkpoint=None)
    with pytest.raises(RuntimeError):
        Doubling(tmp_path / "log", fails_at=100).add_to(numbers, checkpoint=None)  # in the fragment that is not cut
    assert data_files(numbers) == before
    assert numbers.latest_version == 3


def test_another_attempt_computes_only_the_pieces_that_are_missing(
    numbers: lance_ops.LanceDataset, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError):
        Doubling(tmp_path / "first", fails_at=60).add_to(numbers)
    first = Doubling(tmp_path / "first").computed()
    assert first == [0, 10, 40, 50]
    moment = time.time() - 6.5 * 86400
    os.utime(next(path for path in pieces(numbers) if path.name.endswith("-0-10.piece")), (moment, moment))
    second = Doubling(tmp_path / "second")
    runner = second.add_to(lance_ops.dataset(numbers.uri))
    assert second.computed() == [0, 60, 70, 80, 90, 100]
    check(numbers, [("add columns to", 10), *runner.jobs[1:]])
    assert runner.jobs[0] == ("add columns to", 5)


def test_damaged_pieces_and_those_of_a_changed_fragment_are_computed_again(
    numbers: lance_ops.LanceDataset, tmp_path: Path
) -> None:
    every = [0, 10, 40, 50, 60, 70, 80, 90]
    with pytest.raises(RuntimeError):
        Doubling(tmp_path / "first", fails_at=100).add_to(numbers)
    assert Doubling(tmp_path / "first").computed() == every
    record, *of_fragment = sorted(pieces(numbers), key=lambda path: path.suffix)
    record.unlink()  # as if the first process had died before it joined them
    of_fragment[0].write_bytes(b"cut short")
    second = Doubling(tmp_path / "second", fails_at=100)
    with pytest.raises(RuntimeError):
        second.add_to(lance_ops.dataset(numbers.uri))
    assert second.computed() == every  # the conflict began another attempt
    numbers.delete("x = 98")
    third = Doubling(tmp_path / "third")
    third.add_to(numbers)
    assert third.computed() == [*every, 100]
    assert pieces(numbers) == []
    table = lance_ops.dataset(numbers.uri).to_table()
    assert table["double"].to_pylist() == [2 * x for x in table["x"].to_pylist()]
