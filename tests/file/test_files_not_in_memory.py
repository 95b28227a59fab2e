"""Reads of a mapped file that is not in memory load only the bytes that they need, and announce them early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.schema import Schema
from lance_ops.file import FileReader, FileWriter
from lance_ops.file.page_reading import FileSource, Ranges, SourceBytes, Steps, run_all
from lance_ops.store import LocalStore, MemoryStore
from lance_ops.store.contract import View
from lance_ops.store.local.memory_map_cache import MAPPED_FILES
from tests.residency import resident_bytes

ROWS = 1_000_000
COLUMNS = ("a", "b", "c")


@pytest.fixture
def path(tmp_path: Path, evict: Callable[[Path], None]) -> Path:
    """Write a file of 24 MB of random numbers and texts, and evict it from the page cache."""
    rng = np.random.default_rng(0)
    numbers = {name: rng.integers(0, 1 << 60, ROWS) for name in COLUMNS[:2]}
    rows = pa.table(numbers | {"c": pa.array(rng.integers(0, 1 << 30, ROWS)).cast(pa.string())})
    with FileWriter(LocalStore(str(tmp_path)), "file.lance", Schema.from_arrow(rows.schema)) as writer:
        writer.write_batch(rows)
    MAPPED_FILES.reset()
    evict(tmp_path / "file.lance")
    return tmp_path / "file.lance"


def test_a_take_of_few_rows_loads_few_pages_of_the_file(tmp_path: Path, path: Path) -> None:
    reader = FileReader(LocalStore(str(tmp_path)), path.name)

    taken = reader.take(reader.schema, np.array([3, ROWS // 2, ROWS - 9]))

    assert taken.num_rows == 3
    assert 0 < resident_bytes(path) < path.stat().st_size // 20


def test_a_scan_of_one_column_does_not_load_the_others(tmp_path: Path, path: Path) -> None:
    reader = FileReader(LocalStore(str(tmp_path)), path.name)

    assert reader.read(reader.schema.project(["b"])).num_rows == ROWS

    assert ROWS * 7 < resident_bytes(path) < path.stat().st_size // 2


class AnnouncedStore(MemoryStore):
    """A store that records which ranges were announced as needed."""

    def __init__(self) -> None:
        super().__init__()
        self.needed: list[tuple[int, int]] = []

    def view(self, path: str) -> View:
        return _AnnouncedView(self.get(path), self.needed)


class _AnnouncedView(View):
    def __init__(self, buffer: pa.Buffer, needed: list[tuple[int, int]]) -> None:
        super().__init__(buffer)
        self._needed = needed

    def will_need(self, starts: Int64Array, stops: Int64Array) -> None:
        self._needed += zip(starts.tolist(), stops.tolist(), strict=True)


def test_the_first_ranges_of_all_columns_are_announced_before_any_column_is_decoded() -> None:
    store = AnnouncedStore()
    store.put("file", bytes(100))
    announced: list[int] = []

    def steps(at: int) -> Steps[int]:
        for start in (at, at + 50):
            found: SourceBytes = yield Ranges.of((start, start + 2))
            announced.append(len(store.needed))
            assert (start, start + 2) in store.needed
            assert found.view(start, start + 2).tobytes() == bytes(2)
        return at

    assert run_all(FileSource(store, "file"), [steps(0), steps(10), steps(20)]) == [0, 10, 20]
    assert announced[0] == 3
    assert store.needed[:3] == [(0, 2), (10, 12), (20, 22)]
