"""Batches of good and bad raw files, their ingestion, and what a table holds of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lance_ops
from lance_ops.maintenance.ingest import BadBatches, IngestBatch, IngestOptions, IngestResult, RawFile, ingest
from tests.pickling_runner import PicklingRunner

__all__ = ["SET_ASIDE", "data_files", "given", "junk", "named_files", "one_each", "parquet", "raw", "stored"]

SET_ASIDE = IngestOptions(bad_batches=BadBatches.SET_ASIDE)
NUMBERS = pa.table({"x": [1, 2]})


def raw(path: Path) -> RawFile:
    return RawFile(str(path), path.stat().st_size, path.name)


def parquet(folder: Path, name: str, table: pa.Table = NUMBERS) -> RawFile:
    pq.write_table(table, folder / name)
    return raw(folder / name)


def junk(folder: Path, name: str) -> RawFile:
    (folder / name).write_bytes(b"this is no Parquet")
    return raw(folder / name)


def one_each(*files: RawFile) -> list[IngestBatch]:
    return [IngestBatch(Path(file.uri).stem, (file,)) for file in files]


def stored(uri: str) -> list[int]:
    found: list[int] = lance_ops.dataset(uri).to_table()["x"].to_pylist()
    return sorted(found)


def data_files(uri: str) -> set[str]:
    return {path.name for path in (Path(uri) / "data").iterdir()}


def named_files(uri: str) -> set[str]:
    return {file.path for fragment in lance_ops.dataset(uri).snapshot.fragments for file in fragment.files}


def given(uri: str, batches: list[IngestBatch], options: IngestOptions = SET_ASIDE) -> IngestResult:
    return ingest(uri, batches, options=options, runner=PicklingRunner())
