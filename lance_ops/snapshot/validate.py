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
        sizes = {path: file.file_size_bytes for path, file in zip(fragment.data_paths(), fragment.files, strict=False)}
        for path, stated in sizes.items():
            _check_size(snapshot, path, stated)
        vector = snapshot.deletion_vector(fragment)
        if vector and vector.max() >= fragment.physical_rows:
            raise CorruptFile(
                snapshot.manifest_uri,
                f"fragment {fragment.id}",
                f"row {vector.max()} is deleted and there are {fragment.physical_rows}",
            )
        snapshot.reader(fragment).check()
    for index in snapshot.manifest.indices:
        for file in index.files:
            _check_size(snapshot, f"{index.directory}/{file.path}", file.size_bytes)


def _check_size(snapshot: Snapshot, path: str, stated: int) -> None:
    try:
        actual = snapshot.store.size(path)
    except ObjectNotFound as error:
        raise CorruptFile(snapshot.store.uri_of(path), "file", "the manifest names it and it is not there") from error
    if stated and actual != stated:
        raise CorruptFile(snapshot.store.uri_of(path), "size", f"{actual} bytes where the manifest says {stated}")
