"""A large scan decodes its blocks side by side, and answers as one thread would."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Schema
from lance_ops.snapshot import scan, scan_plan
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
    together = threading.Barrier(2, timeout=30)
    read = FragmentReader.read

    def recording(self: FragmentReader, schema: Schema, start: int = 0, stop: int | None = None) -> pa.Table:
        if len(threads) < 2:  # two blocks must be in work at once for either to go on
            threads.add(threading.get_ident())
            together.wait()
        return read(self, schema, start, stop)

    monkeypatch.setattr(FragmentReader, "read", recording)
    monkeypatch.setattr(scan, "available_cores", lambda: 2)
    assert dataset.to_table().equals(alone)
    assert alone.equals(table)
    assert len(threads) == 2
