from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.indices import external_sort
from lance_ops.indices.external_sort import sort_rows
from lance_ops.indices.row_order import FIRST_COLUMN
from lance_ops.indices.sorted_merge import merge_sorted

VALUES = st.lists(st.none() | st.integers(-3, 3), max_size=30)


def batch_of(values: list[int | None], first_row: int = 0) -> pa.RecordBatch:
    rows = np.arange(first_row, first_row + len(values), dtype=np.uint64)
    return pa.record_batch({"value": pa.array(values, pa.int64()), "row": pa.array(rows)})


def batches_of(chunks: list[list[int | None]]) -> list[pa.RecordBatch]:
    starts = np.cumsum([0, *map(len, chunks)])
    return [batch_of(chunk, int(start)) for chunk, start in zip(chunks, starts, strict=False)]


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[tuple[int | None, int]]:
    return [(row["value"], row["row"]) for batch in batches for row in batch.to_pylist()]


def sorted_stably(chunks: list[list[int | None]]) -> list[tuple[int | None, int]]:
    rows = enumerate(value for chunk in chunks for value in chunk)
    return sorted(((value, row) for row, value in rows), key=lambda pair: (pair[0] is not None, pair[0] or 0))


@given(st.lists(VALUES, max_size=12), st.sampled_from([1, 800, 4000, 1 << 30]))
def test_any_budget_gives_the_order_of_one_stable_sort(chunks: list[list[int | None]], sort_bytes: int) -> None:
    with sort_rows(iter(batches_of(chunks)), sort_bytes) as batches:
        assert rows_of(batches) == sorted_stably(chunks)


@given(st.lists(st.tuples(VALUES, st.integers(1, 7)), max_size=6))
def test_merged_streams_are_one_stable_sort_of_them_all(streams: list[tuple[list[int | None], int]]) -> None:
    batches = [FIRST_COLUMN.sort(batch) for batch in batches_of([values for values, _ in streams])]
    blocks = [
        [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
        for batch, (_, size) in zip(batches, streams, strict=True)
    ]
    assert rows_of(merge_sorted(blocks)) == sorted_stably([values for values, _ in streams])


def test_more_runs_than_one_merge_takes_are_merged_in_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_sort, "FAN_IN", 3)
    chunks: list[list[int | None]] = [[number % 5, None, -number] for number in range(40)]
    with sort_rows(batches_of(chunks), sort_bytes=1) as batches:
        assert rows_of(batches) == sorted_stably(chunks)


def test_rows_that_fit_in_memory_are_sorted_without_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_disk(*_: object, **__: object) -> None:
        raise AssertionError("spilled")

    monkeypatch.setattr(external_sort, "TemporaryDirectory", no_disk)
    with sort_rows([batch_of([2, 1]), batch_of([0], 2)]) as batches:
        assert rows_of(batches) == [(0, 2), (1, 1), (2, 0)]
    with sort_rows([]) as batches:
        assert rows_of(batches) == []


def test_an_abandoned_sort_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with sort_rows(batches_of([[3, 1, 2]] * 20), sort_bytes=1) as batches:
        next(batches)
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_memory_stays_within_the_budget_while_spilling() -> None:
    budget = 8 << 20
    pool = pa.default_memory_pool()
    before, peak, last = pool.bytes_allocated(), 0, -1

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal peak
        for seed in range(40):
            peak = max(peak, pool.bytes_allocated() - before)
            yield batch_of(np.random.default_rng(seed).integers(0, 1 << 40, 50_000).tolist())

    with sort_rows(batches(), budget) as ordered:
        for batch in ordered:
            peak = max(peak, pool.bytes_allocated() - before)
            values = batch.column(0).to_numpy()
            assert last <= values[0]
            assert (np.diff(values) >= 0).all()
            last = int(values[-1])
    assert peak < budget
