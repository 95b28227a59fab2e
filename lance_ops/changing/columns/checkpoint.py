"""Store results of a long-running function in a SQLite file, so that a second attempt does not compute them again.

The file has one table, `batches(place TEXT PRIMARY KEY, result BLOB)`. The primary key is the SHA-256 of a key that
names the function's columns, the rows and their files. A result is an Arrow IPC stream.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from lance_ops.core.records import dataclass

__all__ = ["Checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """Results by key, in the file at `path`, which is created when first needed. Several threads may use it."""

    path: str

    def get(self, key: str) -> pa.Table | None:
        """Return the result stored for a key, if there is one."""
        with closing(self._connect()) as connection:
            row = connection.execute("SELECT result FROM batches WHERE place = ?", (_digest(key),)).fetchone()
        return pa.ipc.open_stream(row[0]).read_all() if row else None

    def put(self, key: str, result: pa.Table) -> None:
        """Store a result durably."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, result.schema) as writer:
            writer.write_table(result)
        with closing(self._connect()) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO batches (place, result) VALUES (?, ?)",
                (_digest(key), sink.getvalue().to_pybytes()),
            )

    def remove(self) -> None:
        """Delete the file."""
        Path(self.path).unlink(missing_ok=True)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path)
        connection.execute("CREATE TABLE IF NOT EXISTS batches (place TEXT PRIMARY KEY, result BLOB)")
        return connection


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
