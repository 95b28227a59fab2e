"""Results of a long-running function, kept beside the work so that a second attempt does not compute them again.

A SQLite file with one table, `batches(place TEXT PRIMARY KEY, result BLOB)`: a place names the rows and the files they
lie in, a result is an Arrow IPC stream.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

__all__ = ["Checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """Results by place, in the file at `path`, which is made when first needed. Several threads may use it."""

    path: str

    def get(self, place: str) -> pa.Table | None:
        """Return what was kept for a place."""
        with closing(self._connect()) as connection:
            row = connection.execute("SELECT result FROM batches WHERE place = ?", (_digest(place),)).fetchone()
        return pa.ipc.open_stream(row[0]).read_all() if row else None

    def put(self, place: str, result: pa.Table) -> None:
        """Keep a result, durably."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, result.schema) as writer:
            writer.write_table(result)
        with closing(self._connect()) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO batches (place, result) VALUES (?, ?)",
                (_digest(place), sink.getvalue().to_pybytes()),
            )

    def remove(self) -> None:
        """Delete the file."""
        Path(self.path).unlink(missing_ok=True)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path)
        connection.execute("CREATE TABLE IF NOT EXISTS batches (place TEXT PRIMARY KEY, result BLOB)")
        return connection


def _digest(place: str) -> str:
    return hashlib.sha256(place.encode()).hexdigest()
