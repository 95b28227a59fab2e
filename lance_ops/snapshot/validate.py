"""Check that a version is what it says: its invariants, its files and their sizes."""

from __future__ import annotations

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import violations

__all__ = ["validate"]


def validate(snapshot: Snapshot) -> None:
    """Raise `CorruptFile` for the first broken invariant, missing file, wrong size or wrong deletion vector."""
    broken = violations(snapshot.manifest)
    if broken:
        raise CorruptFile(snapshot.manifest_uri, "manifest", "; ".join(str(violation) for violation in broken))
    for fragment in snapshot.fragments:
        own_files = (file for file in fragment.files if file.base_id is None)
        for path, file in zip(fragment.data_paths(), own_files, strict=True):
            _check_size(snapshot, path, file.file_size_bytes)
        vector = snapshot.deletion_vector(fragment)
        if vector and vector.max() >= fragment.physical_rows:
            raise CorruptFile(
                snapshot.manifest_uri,
                f"fragment {fragment.id}",
                f"row {vector.max()} is deleted and there are {fragment.physical_rows}",
            )
        snapshot.reader(fragment).check()
    for index in snapshot.manifest.indices:
        for part in index.files if index.base_id is None else ():
            _check_size(snapshot, f"{index.directory}/{part.path}", part.size_bytes)


def _check_size(snapshot: Snapshot, path: str, stated: int) -> None:
    try:
        actual = snapshot.store.size(path)
    except ObjectNotFound as error:
        raise CorruptFile(snapshot.store.uri_of(path), "file", "the manifest names it and it is not there") from error
    if stated and actual != stated:
        raise CorruptFile(snapshot.store.uri_of(path), "size", f"{actual} bytes where the manifest says {stated}")
