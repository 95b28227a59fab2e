"""What is read of mapped files, and how long they stay mapped."""

from __future__ import annotations

import gc
import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from lance_ops.store.local.file_mapping import FileMapping
from tests.residency import resident_bytes

Evict = Callable[[Path], None]

SIZE = 24 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20) * (SIZE >> 20))
    return path


@contextmanager
def mapped(path: Path) -> Iterator[FileMapping]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        mapping = FileMapping(descriptor, path.stat().st_size)
    finally:
        os.close(descriptor)
    yield mapping


def need(mapping: FileMapping, *ranges: tuple[int, int]) -> None:
    pairs = np.array(ranges, np.int64).reshape(-1, 2)
    mapping.will_need(pairs[:, 0], pairs[:, 1])


def settled(path: Path, expected: int) -> int:
    """Return how much of a file is in memory once as much as that is, and a moment has passed."""
    deadline = time.monotonic() + 30
    while resident_bytes(path) < expected and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    return resident_bytes(path)


def test_only_the_needed_ranges_are_read_from_the_disk(path: Path, evict: Evict) -> None:
    evict(path)
    page = mmap.PAGESIZE
    with mapped(path) as mapping:
        need(mapping, (5 * page + 7, 5 * page + 9), (12 << 20, (12 << 20) + 3 * page), (SIZE - 1, SIZE))
        assert settled(path, 5 * page) == 5 * page


def test_nested_ranges_are_read_once(path: Path, evict: Evict) -> None:
    evict(path)
    with mapped(path) as mapping:
        need(mapping, (0, 1 << 20), (9, 10), (1 << 19, 2 << 20), (7, 7))
        assert settled(path, 2 << 20) == 2 << 20


def test_many_ranges_are_not_requested_if_some_are_in_memory(path: Path, evict: Evict) -> None:
    evict(path)
    there = [(0, 4096), (8 << 20, (8 << 20) + 1), (SIZE - 1, SIZE)]
    with mapped(path) as mapping:
        need(mapping, *there)
        before = 3 * mmap.PAGESIZE
        assert settled(path, before) == before
        need(mapping, there[0], (4 << 20, 5 << 20), there[1], (12 << 20, 13 << 20), there[2])
        assert settled(path, before) == before
        need(mapping, there[0], (4 << 20, 5 << 20), (9 << 20, 10 << 20), (12 << 20, 13 << 20), there[2])
        assert settled(path, before + (3 << 20)) == before + (3 << 20)


@pytest.mark.parametrize("ranges", [(), [(0, 0)], [(SIZE, SIZE)], [(3 * SIZE, 4 * SIZE)]])
def test_advice_for_invalid_ranges_does_nothing(path: Path, evict: Evict, ranges: list[tuple[int, int]]) -> None:
    evict(path)
    with mapped(path) as mapping:
        need(mapping, *ranges)
        assert settled(path, 0) == 0
        assert mapping.buffer.size == SIZE


def test_a_file_stays_mapped_exactly_while_a_slice_of_it_lives(path: Path) -> None:
    def is_mapped() -> bool:
        gc.collect()
        return str(path) in Path("/proc/self/maps").read_text()

    expected = path.read_bytes()[77:99]
    with mapped(path) as mapping:
        part = mapping.buffer.slice(77, 22)
    del mapping
    assert is_mapped()
    assert part.to_pybytes() == expected
    del part
    assert not is_mapped()


def test_a_file_that_cannot_be_mapped_raises_os_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="No such device"):
            FileMapping(reading, 10)
    finally:
        os.close(reading)
        os.close(writing)
