"""Store results of a long-running function in a SQLite file, so that a second attempt does not compute them again.

The file has one table, `batches(place TEXT PRIMARY KEY, result BLOB)`. The primary key is the SHA-256 of a key that
names the function's columns, the rows and their files. A result is an Arrow IPC stream.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, StoreError
from lance_ops.core.records import dataclass

__all__ = ["Checkpoint"]


_LOCK_SECONDS = 60
"""How long a thread waits for the others that write; each write syncs the disk."""

_REMEDY = "remove the file, and its results are computed again"


@dataclass(frozen=True)
class Checkpoint:
    """Results by key, stored in the file at `path`. The first use creates the file. Several threads may use it.

    Raises `CorruptFile` for a file that is no checkpoint or is damaged, and `StoreError` for one that cannot be opened,
    read or written.
    """

    path: str

    def get(self, key: str) -> pa.Table | None:
        """Return the result stored for a key, if there is one."""
        with self._connection() as connection:
            row = connection.execute("SELECT result FROM batches WHERE place = ?", (_digest(key),)).fetchone()
        try:
            return pa.ipc.open_stream(row[0]).read_all() if row else None
        except (pa.ArrowException, TypeError, OSError) as error:
            raise CorruptFile(self.path, "a result of the checkpoint", f"{error}; {_REMEDY}") from error

    def put(self, key: str, result: pa.Table) -> None:
        """Store a result durably."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, result.schema) as writer:
            writer.write_table(result)
        with self._connection() as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO batches (place, result) VALUES (?, ?)",
                (_digest(key), sink.getvalue().to_pybytes()),
            )

    def remove(self) -> None:
        """Delete the file."""
        Path(self.path).unlink(missing_ok=True)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=_LOCK_SECONDS)) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS batches (place TEXT PRIMARY KEY, result BLOB)")
                yield connection
        except sqlite3.OperationalError as error:
            raise StoreError(f"checkpoint {self.path}: {error}; name a new file, or one that can be written") from error
        except sqlite3.DatabaseError as error:
            raise CorruptFile(self.path, "checkpoint", f"{error}; {_REMEDY}") from error


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
