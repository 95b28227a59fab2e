"""Check a version against its manifest: invariants, files and their sizes, deletion vectors, row ids and versions."""

from __future__ import annotations

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment, violations
from lance_ops.table.manifest import ObjectLocation

__all__ = ["validate", "validate_fragment"]


def validate(snapshot: Snapshot) -> None:
    """Raise `CorruptFile` for the first broken invariant, missing file, wrong size, deletion vector or row sequence."""
    broken = violations(snapshot.manifest)
    if broken:
        raise CorruptFile(snapshot.manifest_uri, "manifest", "; ".join(str(violation) for violation in broken))
    for fragment in snapshot.fragments:
        validate_fragment(snapshot, fragment)
    if snapshot.manifest.uses_stable_row_ids:
        _check_row_sequences(snapshot)
    for index in snapshot.manifest.indices:
        root = snapshot.index_root(index)
        for part in index.files:
            _check_size(ObjectLocation(root, f"{index.directory}/{part.path}"), part.size_bytes)


def validate_fragment(snapshot: Snapshot, fragment: Fragment) -> None:
    """Raise `CorruptFile` for a missing data file, a wrong size or row count, or a deleted row that does not exist."""
    for file in fragment.files:
        _check_size(snapshot.file_locations.data_file(file.base_id, file.path), file.file_size_bytes)
    _ = snapshot.deletion_vector(fragment)  # raises for a deleted row that does not exist
    snapshot.reader(fragment).check(snapshot.schema)


def _check_row_sequences(snapshot: Snapshot) -> None:
    _ = snapshot.row_id_index  # raises if two live rows have the same id
    version = snapshot.version
    for fragment in snapshot.fragments:
        lineage = snapshot.lineage(fragment)
        for versions in (lineage.created_at_versions, lineage.last_updated_at_versions):
            if versions.versions.max(initial=0) > version:
                raise CorruptFile(
                    snapshot.manifest_uri,
                    f"fragment {fragment.id}",
                    f"rows have version {versions.versions.max()}, which is newer than version {version}",
                )


def _check_size(location: ObjectLocation, stated: int) -> None:
    try:
        actual = location.store.size(location.path)
    except ObjectNotFound as error:
        raise CorruptFile(location.uri, "file", "the manifest names this file, but it does not exist") from error
    if stated and actual != stated:
        raise CorruptFile(location.uri, "size", f"{actual} bytes, but the manifest says {stated}")
