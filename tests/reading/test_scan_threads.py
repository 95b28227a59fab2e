"""Large scans decode blocks in several threads with the result of one thread, and preload files' metadata."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Schema
from lance_ops.errors import CorruptFile
from lance_ops.reading import joined_blocks, scan_plan
from lance_ops.reading import scan_execution as scan
from lance_ops.snapshot.fragment_reader import FragmentReader

NUM_ROWS = 40_000


def test_blocks_are_decoded_in_several_threads_and_stay_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    strings = pa.array([f"value {number}" for number in rng.integers(0, 1 << 40, NUM_ROWS)])
    table = pa.table({"n": rng.integers(0, 1 << 60, NUM_ROWS), "s": strings})
    dataset = lance_ops.write_dataset(table, str(tmp_path / "table"))
    monkeypatch.setattr(scan_plan, "BLOCK_BYTES", 64 << 10)
    monkeypatch.setattr(scan, "available_cores", lambda: 1)
    alone = dataset.to_table()
    threads: set[int] = set()
    together = threading.Barrier(2, timeout=120)
    read = FragmentReader.read

    def recording(
        self: FragmentReader, schema: Schema, start: int = 0, stop: int | None = None, **options: Any
    ) -> pa.Table:
        if len(threads) < 2:  # each of two blocks waits for the other to start
            threads.add(threading.get_ident())
            together.wait()
        return read(self, schema, start, stop, **options)

    monkeypatch.setattr(FragmentReader, "read", recording)
    monkeypatch.setattr(scan, "available_cores", lambda: 2)
    assert dataset.to_table().equals(alone)
    assert alone.equals(table)
    assert len(threads) == 2


@pytest.mark.parametrize("condition", [None, "n >= 0"])
def test_a_single_block_is_read_by_the_calling_thread_without_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str | None
) -> None:
    dataset = lance_ops.write_dataset(pa.table({"n": range(40)}), tmp_path / "table", max_rows_per_file=20)
    groups: list[str] = []

    class RecordedJoiner(joined_blocks.BlockJoiner):
        def __init__(self, *arguments: Any) -> None:
            groups.append("made")
            super().__init__(*arguments)

    monkeypatch.setattr(scan, "BlockJoiner", RecordedJoiner)
    first, _ = dataset.get_fragments()
    started_by: list[threading.Thread] = []
    start = threading.Thread.start

    def recorded(thread: threading.Thread) -> None:
        started_by.append(threading.current_thread())
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", recorded)
    assert first.to_table(filter=condition)["n"].to_pylist() == [*range(20)]
    assert groups == [] and threading.current_thread() not in started_by
    assert dataset.to_table(filter=condition)["n"].to_pylist() == [*range(40)]
    assert groups == ["made"]


@pytest.mark.parametrize("condition", [None, "n >= 0"])
def test_files_are_preloaded_before_reads_and_a_corrupt_one_fails_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str | None
) -> None:
    dataset = lance_ops.write_dataset(
        pa.table({"n": range(40), "m": range(40)}), tmp_path / "table", max_rows_per_file=10
    )
    third = dataset.snapshot.fragments[2].files[0].path
    (tmp_path / "table" / "data" / third).write_bytes(b"nothing of the kind")
    monkeypatch.setattr(scan, "available_cores", lambda: 1)
    monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 1)
    done: list[tuple[str, int]] = []
    load, read = FragmentReader.load, FragmentReader.read

    def loading(self: FragmentReader, schema: Schema) -> None:
        done.append(("load", self.fragment.id))
        assert schema.names == (["n", "m"] if condition is None else ["n"])
        load(self, schema)

    def reading(
        self: FragmentReader, schema: Schema, start: int = 0, stop: int | None = None, **options: Any
    ) -> pa.Table:
        done.append(("read", self.fragment.id))
        return read(self, schema, start, stop, **options)

    monkeypatch.setattr(FragmentReader, "load", loading)
    monkeypatch.setattr(FragmentReader, "read", reading)
    batches = dataset.scanner(filter=condition, batch_size=10).to_batches()
    assert [next(batches).column("n").to_pylist() for _ in range(2)] == [[*range(10)], [*range(10, 20)]]
    assert done[:4] == [("load", fragment_id) for fragment_id in range(4)]
    assert {step for step, _ in done[4:]} == {"read"}
    with pytest.raises(CorruptFile, match=third):
        next(batches)


def test_a_scan_with_a_limit_opens_only_files_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.write_dataset(pa.table({"n": range(40)}), tmp_path / "table", max_rows_per_file=10)
    monkeypatch.setattr(scan, "available_cores", lambda: 1)
    monkeypatch.setattr(FragmentReader, "load", lambda *_: pytest.fail("a file was opened ahead"))
    assert dataset.to_table(filter="n >= 0", limit=3).column("n").to_pylist() == [0, 1, 2]
