"""Write tables as raw files of any format, and read such files back, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from lance_ops.maintenance.ingest import RawFile, RawLimits, RawReader, RawReading

__all__ = ["MANY", "TABLE", "deep_json", "raw", "read", "write", "write_ipc", "write_parquet"]

MANY = 3_000_000
"""More rows than a block or a batch holds."""


def raw(path: Path) -> RawFile:
    return RawFile(str(path), path.stat().st_size, "t")


def read(path: Path, isolated: bool, limits: RawLimits | None = None) -> pa.Table:
    with RawReader({}, RawReading(limits or RawLimits(), isolated)) as reader:
        return pa.Table.from_batches(list(reader.batches(raw(path))), reader.schema(raw(path)))


def write_parquet(path: Path, table: pa.Table) -> Path:
    pa.parquet.write_table(table, path, compression="zstd")
    return path


def write_ipc(path: Path, table: pa.Table) -> Path:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


TABLE = pa.table(
    {
        "id": np.arange(5000),
        "text": pa.array([None if row % 7 == 0 else f"tëxt {row}" for row in range(5000)]),
        "list": pa.array([[float(row)] * (row % 3) for row in range(5000)]),
        "struct": pa.array([{"x": row, "y": {"z": str(row)}} for row in range(5000)]),
        "code": pa.array([str(row % 3) for row in range(5000)]).dictionary_encode(),
    }
)


def deep_json(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth
