"""Write small files of every version, type and layout, with this library and with the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.writer import FileWriter
from lance_ops.store.memory import MemoryStore
from lance_ops.table import DeletionFileType, encode_deletion_vector, encode_manifest
from lance_ops.table.rows import encode_bitmap
from tests.checksums import without_checksums
from tests.file.v2_0_pages import HAND_MADE
from tests.interop.file_cases import CASES, LEGACY_CASES, UNREAD_CASES
from tests.table.samples import (
    DICTIONARIES,
    DICTIONARY_SCHEMA,
    fragment,
    index,
    legacy_manifest,
    manifest,
    with_values,
)

__all__ = ["deletion_seeds", "file_seeds", "manifest_seeds", "write_ours", "write_theirs"]

_ROWS = 150
_MAX_BYTES = 48 * 1024


def file_seeds(*, reference: bool = True) -> Iterator[tuple[str, bytes]]:
    """Yield named data files; without `reference`, only those that this library writes."""
    for case in (*CASES, *UNREAD_CASES, *LEGACY_CASES):
        whole = case.table()
        for version in case.encodings or ("2.2",):
            for table in (whole.slice(0, _ROWS), whole):
                for who, data in _both(table, version, reference):
                    if len(data) <= _MAX_BYTES:
                        yield f"{case.name} {version} {len(table)} {who}", data
    for made in HAND_MADE:
        yield made.name, made.data()


def manifest_seeds(*, reference: bool = True) -> Iterator[tuple[str, bytes]]:
    """Yield named manifests of a table after appends, deletes, updates and indexing, with and without row ids."""
    yield "ours", encode_manifest(manifest(fragment(0), fragment(1, deleted=3), indices=(index(1),)), b"\x08\x01")
    legacy = legacy_manifest(with_values(DICTIONARY_SCHEMA, DICTIONARIES))
    yield "ours with dictionaries", encode_manifest(legacy, b"\x08\x01")
    if not reference:
        return
    import lance

    with tempfile.TemporaryDirectory() as folder:
        for stable in (False, True):
            uri = f"{folder}/{stable}"
            dataset = lance.write_dataset(pa.table({"x": range(300)}), uri, enable_stable_row_ids=stable)
            dataset = lance.write_dataset(pa.table({"x": range(300)}), uri, mode="append")
            dataset.delete("x % 7 = 1")
            dataset.create_scalar_index("x", "BTREE")
            dataset.update({"x": "x + 1"}, "x % 5 = 0")
            dataset.optimize.compact_files()
            for path in sorted(Path(uri, "_versions").glob("*.manifest")):
                yield f"pylance {stable} {path.name}", path.read_bytes()


def deletion_seeds() -> Iterator[tuple[str, bytes]]:
    """Yield named deletion files of both kinds, without digests, which would keep readers from changed bytes."""
    for name, vector in (
        ("few", BitMap([1, 5, 9])),
        ("many", BitMap(range(0, 12_000, 2))),
        ("runs", BitMap(range(6000)) | BitMap(range(100_000, 170_000))),
        ("bits", BitMap(range(0, 200_000, 3))),
    ):
        described, data = encode_deletion_vector(vector, 1, 1)
        is_bitmap = described.file_type is DeletionFileType.BITMAP  # which nothing but a digest may follow
        yield name, encode_bitmap(vector) if is_bitmap else without_checksums(data)


def _both(table: pa.Table, version: str, reference: bool) -> Iterator[tuple[str, bytes]]:
    with suppress(SchemaMismatch, UnsupportedFeature):  # for example nulls in a 0.1 file
        yield "ours", write_ours(table, version)
    if reference:
        yield "pylance", write_theirs(table, version)


def write_ours(table: pa.Table, version: str) -> bytes:
    """Return the file that this library writes, with pages of some kilobytes."""
    store = MemoryStore()
    with FileWriter(store, "f", Schema.from_arrow(table.schema), FileVersion(version), page_bytes=20_000) as writer:
        writer.write_batch(table)
    return bytes(store.get("f").to_pybytes())


def write_theirs(table: pa.Table, version: str) -> bytes:
    """Return the file that the reference writes."""
    with tempfile.TemporaryDirectory() as folder:
        if version == "0.1":
            import lance

            dataset = lance.write_dataset(table, folder, data_storage_version="legacy", max_rows_per_group=70)
            (path,) = Path(dataset.uri, "data").glob("*.lance")
        else:
            from lance.file import LanceFileWriter

            path = Path(folder, "f.lance")
            table = pa.Table.from_batches(table.combine_chunks().to_batches())
            with LanceFileWriter(str(path), table.schema, version=version) as writer:
                writer.write_batch(table)
        return path.read_bytes()
