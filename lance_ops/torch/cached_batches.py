"""Keep the batches of a first epoch on disk for the later ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

import pyarrow as pa

__all__ = ["CachedBatches"]


class CachedBatches:
    """Batches that are written to a temporary file while they are first iterated, and read from it afterwards.

    After an iteration that was left early, the next one calls `read` again. The file is removed together with this
    object, at the end of the process at the latest.
    """

    def __init__(self, read: Callable[[], Iterator[pa.RecordBatch]], folder: str | Path | None = None) -> None:
        self._read_source = read
        own_folder = mkdtemp(prefix="lance-ops-torch-", dir=folder)
        self._path = str(Path(own_folder) / "batches.arrow")
        self._is_whole = False
        self._remove = finalize(self, rmtree, own_folder, ignore_errors=True)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._read() if self._is_whole else self._write()

    def close(self) -> None:
        """Remove the file."""
        self._remove()

    def _write(self) -> Iterator[pa.RecordBatch]:
        writer: pa.RecordBatchStreamWriter | None = None
        for batch in self._read_source():
            if writer is None:
                writer = pa.ipc.new_stream(self._path, batch.schema)
            writer.write_batch(batch)
            yield batch
        if writer is not None:
            writer.close()
        else:
            Path(self._path).touch()
        self._is_whole = True

    def _read(self) -> Iterator[pa.RecordBatch]:
        if Path(self._path).stat().st_size == 0:
            return
        with pa.memory_map(self._path) as file, pa.ipc.open_stream(file) as reader:
            yield from reader
