"""Deletion files and row id sequences, written by one library and read by the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_ops.table import (
    DeletionFileType,
    FragmentList,
    Manifest,
    decode_deletion_vector,
    decode_manifest,
    encode_deletion_vector,
    encode_manifest,
    flags_for,
)
from lance_ops.table.fragments.deletion_file import MAX_ARROW_ROWS
from lance_ops.table.rows.row_id_runs import RowIds
from lance_ops.table.rows.row_sequences import decode_row_ids, decode_versions, encode_row_ids

pytestmark = pytest.mark.interop

ROWS = 10_000


@pytest.fixture(scope="module")
def lance() -> Any:
    """The reference implementation."""
    import lance

    return lance


@pytest.fixture
def uri(lance: Any, dataset_uri: str) -> str:
    """A table of one fragment, of one column that counts."""
    lance.write_dataset(pa.table({"a": range(ROWS)}), dataset_uri, enable_stable_row_ids=True)
    return dataset_uri


def newest(uri: str) -> Manifest:
    path = min(Path(uri, "_versions").glob("*.manifest"))
    return decode_manifest(path.read_bytes(), str(path))


KINDS = [  # at the very limit the reference writes either, as the rows were deleted at once or bit by bit
    (1, DeletionFileType.ARROW_ARRAY),
    (MAX_ARROW_ROWS - 1, DeletionFileType.ARROW_ARRAY),
    (MAX_ARROW_ROWS + 1, DeletionFileType.BITMAP),
    (9000, DeletionFileType.BITMAP),
]


@pytest.mark.parametrize(("deleted", "kind"), KINDS)
def test_deletion_files_of_the_reference_are_read(lance: Any, uri: str, deleted: int, kind: DeletionFileType) -> None:
    lance.dataset(uri).delete(f"a < {deleted}")

    (fragment,) = newest(uri).fragments
    assert fragment.deletion_file is not None
    assert fragment.deletion_file.file_type is kind
    path = Path(uri, "_deletions", fragment.deletion_file.name(0))
    vector = decode_deletion_vector(fragment.deletion_file, path.read_bytes(), fragment.physical_rows, str(path))
    assert vector == BitMap(range(deleted))
    assert fragment.num_rows == ROWS - deleted


@pytest.mark.parametrize("step", [1, 2, 7])
@pytest.mark.parametrize("deleted", [1, 1000, 9990])
def test_the_reference_reads_our_deletion_files(lance: Any, uri: str, deleted: int, step: int) -> None:
    manifest = newest(uri)
    gone = list(range(0, deleted, step))
    deletion_file, data = encode_deletion_vector(BitMap(gone), 1, 77)
    Path(uri, "_deletions").mkdir()
    Path(uri, "_deletions", deletion_file.name(0)).write_bytes(data)
    (fragment,) = manifest.fragments
    made = replace(
        manifest,
        version=2,
        fragments=FragmentList([replace(fragment, deletion_file=deletion_file)]),
        transaction_file="",
    )
    reader, writer = flags_for(made)
    made = replace(made, reader_feature_flags=reader, writer_feature_flags=writer)
    Path(uri, "_versions", "18446744073709551613.manifest").write_bytes(encode_manifest(made, b""))

    dataset = lance.dataset(uri)

    dataset.validate()
    assert dataset.version == 2
    assert dataset.to_table().column("a").to_pylist() == sorted(set(range(ROWS)) - set(gone))


def test_row_ids_and_versions_of_the_reference_are_read(lance: Any, uri: str) -> None:
    lance.write_dataset(pa.table({"a": range(ROWS, ROWS + 50)}), uri, mode="append")
    dataset = lance.dataset(uri)
    dataset.update({"a": "a + 100000"}, where="a % 3 = 0 and a < 900")
    dataset.delete("a = 5 or a = 10020")
    dataset = lance.dataset(uri)
    dataset.optimize.compact_files()
    dataset = lance.dataset(uri)
    dataset.update({"a": "a + 1"}, where="a > 10000")
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    table = lance.dataset(uri).to_table(columns=columns)

    found: list[list[np.ndarray[tuple[int], np.dtype[np.uint64]]]] = [[], [], []]
    for fragment in newest(uri).fragments:
        live = np.ones(fragment.physical_rows, np.bool_)
        if fragment.deletion_file:
            path = Path(uri, "_deletions", fragment.deletion_file.name(fragment.id))
            data = path.read_bytes()
            live[list(decode_deletion_vector(fragment.deletion_file, data, fragment.physical_rows, str(path)))] = False
        assert isinstance(fragment.row_ids, bytes)
        assert isinstance(fragment.created_at_versions, bytes)
        assert isinstance(fragment.last_updated_at_versions, bytes)
        row_ids = decode_row_ids(fragment.row_ids, fragment.physical_rows, "f")
        ids, _ = row_ids.expand()
        assert (decode_row_ids(encode_row_ids(row_ids), len(ids), "f").expand()[0] == ids).all()
        found[0].append(ids[live])
        found[1].append(decode_versions(fragment.created_at_versions, fragment.physical_rows, "f").expand()[live])
        found[2].append(decode_versions(fragment.last_updated_at_versions, fragment.physical_rows, "f").expand()[live])

    for name, parts in zip(columns, found, strict=True):
        assert np.concatenate(parts).tolist() == table.column(name).to_pylist()


def test_the_reference_reads_our_row_ids(lance: Any, uri: str) -> None:
    shuffled = np.random.default_rng(1).permutation(ROWS).astype(np.uint64) * np.uint64(3) + np.uint64(7)
    for version, ids in enumerate([shuffled, np.sort(shuffled), np.sort(shuffled) % np.uint64(20_000)], start=2):
        ids = np.unique(ids) if version == 4 else ids
        manifest = newest(uri)
        (fragment,) = manifest.fragments
        if len(ids) != ROWS:
            ids = np.concatenate((ids, np.arange(10**6, 10**6 + ROWS - len(ids), dtype=np.uint64)))
        changed = fragment.with_sequences(row_ids=encode_row_ids(RowIds.of(ids)))
        made = replace(
            manifest, version=version, fragments=FragmentList([changed]), transaction_file="", next_row_id=10**7
        )
        name = f"{(1 << 64) - 1 - version}.manifest"
        Path(uri, "_versions", name).write_bytes(encode_manifest(made, b""))

        dataset = lance.dataset(uri)
        assert dataset.version == version
        assert dataset.to_table(with_row_id=True).column("_rowid").to_pylist() == ids.tolist()
