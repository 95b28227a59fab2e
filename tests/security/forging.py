"""Make tables whose manifests and data files say what a hostile writer chose, in any store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

import lance_ops
from lance_ops import LanceDataset
from lance_ops.table import BasePath, DataFile, Fragment, Manifest, encode_manifest
from lance_ops.table.fragments import FragmentList

__all__ = ["forged", "with_file_of", "with_files", "with_fragments"]


def forged(dataset: LanceDataset, change: Callable[[Manifest], Manifest]) -> LanceDataset:
    """Return the table after its newest manifest was replaced by another one."""
    snapshot = dataset.snapshot
    snapshot.store.put(snapshot.committer.location(snapshot.version), encode_manifest(change(snapshot.manifest), b""))
    return lance_ops.dataset(dataset.uri, storage_options=dict(snapshot.storage_options))


def with_file_of(elsewhere: LanceDataset, dataset: LanceDataset) -> LanceDataset:
    """Return `dataset` after its first data file was replaced by that of another table, under a base path."""

    def change(manifest: Manifest) -> Manifest:
        fragment = manifest.fragments[0]
        (theirs,) = elsewhere.snapshot.fragments[0].files
        file = replace(fragment.files[0], path=theirs.path, file_size_bytes=theirs.file_size_bytes, base_id=1)
        return replace(
            manifest,
            base_paths=(BasePath(1, f"{elsewhere.uri}/data"),),
            fragments=manifest.fragments.with_changes({fragment.id: replace(fragment, files=(file,))}),
        )

    return forged(dataset, change)


def with_fragments(dataset: LanceDataset, fragments: Sequence[Fragment]) -> LanceDataset:
    """Return the table with these fragments and no others."""

    def change(manifest: Manifest) -> Manifest:
        return replace(manifest, fragments=FragmentList(fragments), max_fragment_id=max(each.id for each in fragments))

    return forged(dataset, change)


def with_files(uri: str, schema: pa.Schema, files: Sequence[tuple[bytes, int]]) -> LanceDataset:
    """Return a table with a fragment for each file of version 2.2, which holds all columns, and its number of rows."""
    dataset = lance_ops.write_dataset(schema.empty_table(), uri, data_storage_version="2.2")
    fragments = []
    for number, (data, num_rows) in enumerate(files):
        dataset.snapshot.store.put(f"data/{number}.lance", data)
        ids = tuple(field.id for field in dataset.snapshot.schema.fields)
        file = DataFile(f"{number}.lance", ids, tuple(range(len(ids))), 2, 2, len(data))
        fragments.append(Fragment(number, (file,), num_rows))
    return with_fragments(dataset, fragments)
