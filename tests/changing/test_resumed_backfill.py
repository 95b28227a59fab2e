"""Backfills that go on from the files of an earlier attempt, and functions that a process makes once."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.api import batch_udf_factory
from lance_ops.errors import InvalidInput, UnsupportedFeature
from lance_ops.runners import InThreads
from lance_ops.writing import task_shares
from tests.pickling_runner import PicklingRunner

SCHEMA = pa.schema({"double": pa.int64()})


@pytest.fixture
def numbers(dataset_uri: str) -> lance_ops.LanceDataset:
    """A table of five fragments; `x` is 0 to 19."""
    return lance_ops.write_dataset(pa.table({"x": range(20)}), dataset_uri, max_rows_per_file=4)


class Doubling:
    """Doubles `x`; fails at one value."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.calls: list[int] = []
        self.fails_at = fails_at

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        first = batch["x"][0].as_py()
        if first == self.fails_at:
            raise RuntimeError("the machine went away")
        self.calls.append(first)
        return pa.record_batch([pc.multiply(batch["x"], 2)], schema=SCHEMA)

    def add_to(self, dataset: lance_ops.LanceDataset, checkpoint: str | None = "doubles") -> None:
        dataset.add_columns(lance_ops.BatchUDF(self, SCHEMA), ["x"], runner=InThreads(1), checkpoint=checkpoint)


def data_files(dataset: lance_ops.LanceDataset) -> list[Path]:
    return list(Path(dataset.uri, "data").glob("*.lance"))


def records(dataset: lance_ops.LanceDataset) -> list[Path]:
    return sorted(Path(dataset.uri, "data").glob("backfill-*/*.json"))


def check(dataset: lance_ops.LanceDataset) -> None:
    """Check the values, and that no record is left."""
    table = lance_ops.dataset(dataset.uri).to_table()
    assert table["double"].to_pylist() == [2 * x for x in table["x"].to_pylist()]
    assert not records(dataset)
    dataset.validate()


def test_a_second_attempt_computes_only_what_the_first_did_not_finish(numbers: lance_ops.LanceDataset) -> None:
    with pytest.raises(RuntimeError, match="went away"):
        Doubling(fails_at=12).add_to(numbers)
    assert numbers.latest_version == 1 and len(data_files(numbers)) == 8  # three columns are finished
    second = Doubling()
    second.add_to(lance_ops.dataset(numbers.uri))
    assert second.calls == [12, 16]
    check(numbers)
    assert len(data_files(numbers)) == 10


@pytest.mark.parametrize("checkpoint", [None, "doubles"])
def test_fragments_that_share_a_task_have_their_own_files(
    numbers: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch, checkpoint: str | None
) -> None:
    monkeypatch.setattr(task_shares, "_MAX_TASKS", 2)
    with pytest.raises(RuntimeError):
        Doubling(fails_at=12).add_to(numbers, checkpoint)
    assert len(data_files(numbers)) == 5 + (0 if checkpoint is None else 3)
    again = Doubling()
    again.add_to(numbers, checkpoint)
    assert again.calls == [x for x in range(0, 20, 4) if checkpoint is None or x >= 12]
    check(numbers)


def test_fragments_that_changed_and_files_that_are_damaged_are_computed_again(numbers: lance_ops.LanceDataset) -> None:
    with pytest.raises(RuntimeError):
        Doubling(fails_at=16).add_to(numbers)
    finished = records(numbers)
    assert [record.stem for record in finished] == ["0", "1", "2", "3"]
    numbers.delete("x = 1")
    numbers.insert(pa.table({"x": [20, 21]}))
    finished[1].write_text("{")
    Path(numbers.uri, "data", json.loads(finished[2].read_text())["file"]["path"]).write_bytes(b"cut short")
    again = Doubling()
    again.add_to(numbers)
    assert again.calls == [0, 4, 8, 16, 20]
    check(numbers)


def test_what_clean_up_may_soon_remove_is_computed_again(numbers: lance_ops.LanceDataset) -> None:
    with pytest.raises(RuntimeError):
        Doubling(fails_at=12).add_to(numbers)
    for record, days in zip(records(numbers), (6.5, 5.5, 8), strict=True):
        moment = time.time() - days * 86400
        for path in (record, Path(numbers.uri, "data", json.loads(record.read_text())["file"]["path"])):
            os.utime(path, (moment, moment))
    again = Doubling()
    again.add_to(numbers)
    assert again.calls == [0, 8, 12, 16]
    check(numbers)


def test_what_clean_up_removes_after_it_was_taken_over_is_computed_again(numbers: lance_ops.LanceDataset) -> None:
    with pytest.raises(RuntimeError):
        Doubling(fails_at=12).add_to(numbers)
    first = Path(numbers.uri, "data", json.loads(records(numbers)[0].read_text())["file"]["path"])

    class BesideCleanUp(Doubling):
        def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            first.unlink(missing_ok=True)
            return super().__call__(batch)

    again = BesideCleanUp()
    again.add_to(numbers)
    assert again.calls == [12, 16, 0]
    check(numbers)


def test_another_name_or_another_expression_is_another_backfill(numbers: lance_ops.LanceDataset) -> None:
    with pytest.raises(RuntimeError):
        Doubling(fails_at=16).add_to(numbers)
    other = Doubling(fails_at=16)
    with pytest.raises(RuntimeError):
        other.add_to(numbers, checkpoint="other")
    assert other.calls == [0, 4, 8, 12]
    with pytest.raises(InvalidInput):
        numbers.add_columns({"y": "CAST(x * 10 AS TINYINT)"}, runner=InThreads(1), checkpoint="y")  # 130 is too much
    assert len(records(numbers)) == 4 + 4 + 3
    numbers.add_columns({"y": "x * 10"}, runner=InThreads(1), checkpoint="y")
    assert numbers.to_table()["y"].to_pylist() == [10 * x for x in range(20)]


def test_a_conflict_takes_the_files_of_the_first_attempt_over(numbers: lance_ops.LanceDataset) -> None:
    other = lance_ops.dataset(numbers.uri)

    class Raced(Doubling):
        def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            if len(self.calls) == 4:
                other.insert(pa.table({"x": [20]}))
            return super().__call__(batch)

    raced = Raced()
    raced.add_to(numbers)
    assert raced.calls == [0, 4, 8, 12, 16, 20]
    check(numbers)


def test_a_checkpoint_is_refused_where_it_cannot_help(numbers: lance_ops.LanceDataset, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="of expressions or of a function"):
        numbers.add_columns(pa.field("n", pa.int8()), checkpoint="n")
    with pytest.raises(InvalidInput, match="a name"):
        numbers.add_columns({"n": "x"}, checkpoint="")
    old = lance_ops.write_dataset(pa.table({"x": [1]}), tmp_path / "old.lance", data_storage_version="legacy")
    with pytest.raises(UnsupportedFeature, match="version 0.1"):
        old.add_columns({"n": "x"}, checkpoint="n")


LOADED: list[str] = []


def load_doubling() -> Doubling:
    """Stand for a model that takes long to load."""
    LOADED.append("doubling")
    return Doubling()


def load_minus() -> Any:
    """Stand for another one."""
    LOADED.append("minus")
    return lambda batch: pa.record_batch([pc.negate(batch["x"])], names=["minus"])


def test_a_process_makes_the_function_once_for_all_tasks(numbers: lance_ops.LanceDataset) -> None:
    LOADED.clear()
    made = batch_udf_factory(SCHEMA)(load_doubling)
    runner = PicklingRunner()
    numbers.add_columns(made, ["x"], runner=runner)
    check(numbers)
    assert runner.jobs == [("add columns to", 5)] and LOADED == ["doubling"]
    numbers.add_columns(batch_udf_factory()(load_minus), ["x"])  # without a schema it is tried with the first row
    assert numbers.to_table()["minus"].to_pylist() == [-x for x in range(20)]
    assert LOADED == ["doubling", "minus"]
    assert made(numbers.to_table().to_batches()[0])["double"][1].as_py() == 2
    assert LOADED == ["doubling", "minus", "doubling"]  # one function at a time is held
    with pytest.raises(InvalidInput, match="with brackets"):
        batch_udf_factory(load_doubling)
