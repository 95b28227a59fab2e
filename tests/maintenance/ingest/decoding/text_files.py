"""Raw files of text, ingested one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.ingest import (
    IngestBatch,
    IngestOptions,
    RawFile,
    RawReading,
    TextReading,
    ingest,
)

__all__ = ["BOTH", "batch", "load"]


BOTH = pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])


def batch(path: Path, content: bytes) -> IngestBatch:
    path.write_bytes(content)
    return IngestBatch(path.name, (RawFile(str(path), len(content), str(hash(content))),))


def load(
    folder: Path,
    name: str,
    content: str | bytes,
    table: pa.Schema | None,
    text: TextReading | None = None,
    isolated: bool = False,
    **options: Any,
) -> list[dict[str, Any]]:
    """Ingest one file into a table of this schema, and return the rows."""
    raw = content if isinstance(content, bytes) else content.encode()
    uri = str(folder / "table.lance")
    if table is not None:
        lance_ops.write_dataset(table.empty_table(), uri, data_storage_version="2.2")
    reading = RawReading(isolated=isolated, text=text or TextReading())
    ingest(uri, [batch(folder / name, raw)], options=IngestOptions(reading=reading, **options))
    rows: list[dict[str, Any]] = lance_ops.dataset(uri).to_table().to_pylist()
    return rows
