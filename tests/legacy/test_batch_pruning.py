"""Scans of 0.1 tables read only the batches whose statistics allow a match, and still return every row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_ops
from lance_ops.file.v0_1.batch_columns import BatchColumns

ROWS = 5000
COLUMNS = {
    "i": pa.array(range(ROWS)),
    "f": pa.array([math.nan if i % 7 == 0 else i - 2500.5 for i in range(ROWS)]),
    "s": pa.array([f"{i:05}" + "é" * 90 for i in range(ROWS)]),
    "b": pa.array([bytes([i // 1024]) * 80 for i in range(ROWS)]),
    "d": pa.array([i // 50 for i in range(ROWS)], pa.date32()),
    "st": pa.StructArray.from_arrays([pa.array(range(ROWS, 0, -1))], ["x"]),
}


@pytest.fixture
def batches_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[str, int]]]:
    """Yield one set, to which each read adds its column and batch number."""
    read = set()
    whole: Any = BatchColumns._read_batch

    def counted(self: BatchColumns, field: Any, batch: Any, budget: Any) -> Any:
        read.add((field.name, batch.page))
        return whole(self, field, batch, budget)

    monkeypatch.setattr(BatchColumns, "_read_batch", counted)
    return iter([read])


def write_ours(uri: str, table: pa.Table) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(table, uri, data_storage_version="0.1")


def write_theirs(uri: str, table: pa.Table) -> lance_ops.LanceDataset:
    import lance

    lance.write_dataset(table, uri, data_storage_version="legacy")
    return lance_ops.dataset(uri)


writers = pytest.mark.parametrize("write", [write_ours, pytest.param(write_theirs, marks=pytest.mark.interop)])


@writers
@pytest.mark.parametrize(
    ("predicate", "column", "batches"),
    [
        ("i >= 1500 AND i < 1600", "i", {1}),
        ("i = 4999 OR i < 10", "i", {0, 4}),
        ("i > 5000", "i", set()),
        ("i IS NULL", "i", set()),
        ("f < -2499.0", "f", {0}),
        ("f >= 2498.0", "f", {0, 1, 2, 3, 4}),  # NaN is above all numbers, and the statistics do not record it
        ("s >= '04999'", "s", {4}),
        ("b > X'03'", "b", {3, 4}),
        ("d < date '1970-01-10'", "d", {0}),
        ("st.x > 4990", "st", {0}),
    ],
)
def test_scan_reads_only_batches_that_may_match(
    write: Any, predicate: str, column: str, batches: set[int], dataset_uri: str, batches_read: Any
) -> None:
    dataset = write(dataset_uri, pa.table(COLUMNS))
    wanted = lance_ops.write_dataset(pa.table(COLUMNS), f"{dataset_uri}2").to_table(["i"], filter=predicate)
    read = next(batches_read)
    read.clear()
    assert dataset.to_table(["i"], filter=predicate).column("i").to_pylist() == wanted.column("i").to_pylist()
    assert {batch for name, batch in read if name == column} == batches


@writers
def test_batch_without_an_upper_bound_is_read(write: Any, dataset_uri: str, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("b", pa.binary(), nullable=False)])
    rows = [b"\xff" * 70, b"a"]
    dataset = write(dataset_uri, pa.table([pa.array(rows)], schema=schema))
    assert dataset.count_rows(filter="b > X'61'") == 1
    assert dataset.count_rows(filter="b = X'61'") == 1


@pytest.mark.interop
def test_predicate_finds_zeros_that_replace_nulls(dataset_uri: str) -> None:
    dataset = write_theirs(dataset_uri, pa.table({"i": pa.array([5, None, 7]), "s": pa.array(["b", None, ""])}))
    assert dataset.to_table().to_pylist() == [{"i": 5, "s": "b"}, {"i": 0, "s": None}, {"i": 7, "s": None}]
    for predicate, count in {"i = 0": 1, "i < 5": 1, "i IS NULL": 0, "s IS NULL": 2, "s IS NOT NULL": 1}.items():
        assert dataset.count_rows(filter=predicate) == count


@given(
    rows=st.lists(
        st.tuples(st.integers(-5, 5), st.sampled_from([-1.5, -0.0, 0.0, 2.0, math.nan]), st.text("ab", min_size=1)),
        min_size=1,
        max_size=8,
    ),
    column=st.sampled_from(["i", "f", "s"]),
    operator=st.sampled_from(["<", "<=", "=", "!=", ">=", ">"]),
    value=st.data(),
)
def test_pruned_scan_returns_the_same_rows_as_an_unpruned_scan(
    rows: list[tuple[int, float, str]], column: str, operator: str, value: st.DataObject
) -> None:
    literal = {"i": "{}", "f": "{}", "s": "'{}'"}[column].format(
        value.draw(
            {"i": st.integers(-6, 6), "f": st.sampled_from([-1.5, 0.0, 2.5]), "s": st.text("ab", max_size=2)}[column]
        )
    )
    i, f, s = (pa.array(list(values)) for values in zip(*rows, strict=True))
    table = pa.table({"i": i, "f": f, "s": s})
    table = pa.concat_tables([table.take([n] * 1024) for n in range(len(rows))])  # one batch for each row
    predicate = f"{column} {operator} {literal}"
    legacy = lance_ops.write_dataset(table, "memory://legacy", mode="overwrite", data_storage_version="0.1")
    modern = lance_ops.write_dataset(table, "memory://modern", mode="overwrite")
    assert legacy.count_rows(filter=predicate) == modern.count_rows(filter=predicate)
