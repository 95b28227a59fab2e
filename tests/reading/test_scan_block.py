"""Columns that the scan of a block reads, and how often."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.reading import joined_blocks
from tests.reading.watched_columns import count_columns

ROWS = 400


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    numbers = np.arange(ROWS)
    parts = pa.StructArray.from_arrays([pa.array(numbers * 2), pa.array(numbers % 7)], names=["twice", "rest"])
    rows = pa.table({"id": numbers, "text": pa.array([f"row {n}" if n % 5 else None for n in numbers]), "parts": parts})
    return lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=200)


@pytest.fixture(params=[False, True], ids=["alone", "joined"])
def joined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have the two fragments read alone or together."""
    if not request.param:
        monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 1)
    return bool(request.param)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the columns that are read, by ranges and by offsets."""
    return count_columns(monkeypatch)


FILTERS: dict[str, Callable[[int], bool]] = {
    "id % 2 = 0": lambda n: n % 2 == 0,
    "id = 77": lambda n: n == 77,
    "id >= 0": lambda n: True,
    "id < 0": lambda n: False,
    "text = 'row 33' OR id = 399": lambda n: n in (33, 399),
    "text IS NULL": lambda n: n % 5 == 0,
    "parts.rest = 3": lambda n: n % 7 == 3,
    "parts IS NOT NULL AND id > 390": lambda n: n > 390,
}


@pytest.mark.parametrize("gone", ["false", "id % 3 = 0"])
@pytest.mark.parametrize("late", [None, True, False, ["text"]])
@pytest.mark.parametrize("columns", [["id"], ["text", "id"], ["parts", "text"], ["parts.twice", "id"]])
@pytest.mark.parametrize("condition", FILTERS)
def test_matching_rows_have_all_columns_whatever_columns_were_tested(
    dataset: lance_ops.LanceDataset, condition: str, columns: list[str], late: Any, gone: str, joined: bool
) -> None:
    dataset.delete(gone)
    matches = FILTERS[condition]
    kept = [n for n in range(ROWS) if matches(n) and not (gone != "false" and n % 3 == 0)]
    every = dataset.to_table(columns=columns, with_row_address=True)
    chosen = np.isin(every.column("_rowaddr").to_numpy(), [(n // 200 << 32) | n % 200 for n in kept])
    found = dataset.to_table(columns=columns, filter=condition, with_row_address=True, late_materialization=late)
    assert found == every.filter(pa.array(chosen))
    assert len(found) == len(kept)


@pytest.mark.parametrize("condition", ["id % 2 = 0", "id % 100 = 77"])
def test_a_tested_column_is_read_once(
    dataset: lance_ops.LanceDataset, read: Counter[str], condition: str, joined: bool
) -> None:
    dataset.to_table(filter=condition)
    reads = 1 if joined else 2
    assert read == {"id": reads, "text": reads, "parts": reads}


def test_a_partly_tested_struct_is_read_whole(dataset: lance_ops.LanceDataset, read: Counter[str]) -> None:
    table = dataset.to_table(columns=["parts"], filter="parts.rest = 3")
    assert table.column("parts").combine_chunks().field("rest").unique().to_pylist() == [3]
    assert read == {"parts": 4}


def test_a_column_tested_after_an_index_is_read_once(dataset: lance_ops.LanceDataset, read: Counter[str]) -> None:
    dataset.create_scalar_index("id", "BTREE")
    read.clear()
    found = dataset.to_table(columns=["id", "text"], filter="id < 30 AND text != 'row 3'")
    assert found.column("id").to_pylist() == [n for n in range(30) if n % 5 and n != 3]
    assert read["text"] == 1
