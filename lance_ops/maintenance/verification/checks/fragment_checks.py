"""Check one fragment: its data files, its deletion vector, and the ids and versions of its rows."""

from __future__ import annotations

from dataclasses import replace

from lance_ops.core.errors import LanceOpsError
from lance_ops.maintenance.verification.checks.checksum_checks import record_checksum_report
from lance_ops.maintenance.verification.checks.data_file_checks import check_data_file, decode_rows, open_data_file
from lance_ops.maintenance.verification.findings import DamageKind, FindingCollector
from lance_ops.snapshot import Snapshot
from lance_ops.table import DeletionFile, Fragment, decode_deletion_vector, deletion_checksum_report

__all__ = ["check_fragment", "check_rows"]


def check_fragment(
    snapshot: Snapshot, fragment: Fragment, found: FindingCollector, *, decode: bool, skip_rows: bool = False
) -> None:
    """Record where a fragment's files and rows contradict the manifest; with `decode`, read every page.

    With `skip_rows`, the pages are left to `check_rows`, except those of blobs.
    """
    found = found.of_fragment(fragment.id)
    opened = [(file, open_data_file(snapshot, file, found, checksums=decode)) for file in fragment.files]
    is_stated = snapshot.manifest.writer_version is not None and fragment.physical_rows
    if not is_stated:  # some early writers stated no count or a wrong one: the first file decides, as for readers
        counts = [reader.num_rows for _, reader in opened if reader is not None]
        fragment = replace(fragment, physical_rows=counts[0] if counts else fragment.physical_rows)
    for file, reader in opened:
        if reader is not None:
            with found.errors_as(DamageKind.FILE_CONTENT, reader.path):
                check_data_file(snapshot, fragment, file, reader, found, decode=decode, skip_rows=skip_rows)
    if fragment.deletion_file is not None:
        _check_deletions(snapshot, fragment, fragment.deletion_file, found)
    _check_sequences(snapshot, fragment, found)


def check_rows(snapshot: Snapshot, fragment: Fragment, start: int, stop: int, found: FindingCollector) -> None:
    """Record which columns cannot be decoded in a range of physical rows, except columns of blobs.

    Of a file that cannot be opened, or does not fit the manifest, `check_fragment` records why.
    """
    found = found.of_fragment(fragment.id)
    for file in fragment.files:
        reader = open_data_file(snapshot, file, FindingCollector(found.version), checksums=False)
        if reader is not None and reader.num_rows == fragment.physical_rows:
            with found.errors_as(DamageKind.FILE_CONTENT, reader.path):
                decode_rows(snapshot, fragment, file, reader, range(start, stop), found)


def _check_deletions(snapshot: Snapshot, fragment: Fragment, file: DeletionFile, found: FindingCollector) -> None:
    with found.errors_as(DamageKind.DELETION_VECTOR):
        location = snapshot.file_locations.deletion_file(fragment)
        if not found.is_there(location, 0):
            return
        data = location.store.get(location.path)
        report = deletion_checksum_report(file.file_type, data)
        if not record_checksum_report(report, location.uri, data.size, found):
            return
        decode_deletion_vector(file, data, fragment.physical_rows, location.uri)


def _check_sequences(snapshot: Snapshot, fragment: Fragment, found: FindingCollector) -> None:
    try:
        lineage = snapshot.lineage(fragment)
    except LanceOpsError:
        return  # the fragment's rows are unknown because a file cannot be opened, which is recorded already
    if snapshot.manifest.uses_stable_row_ids:
        with found.errors_as(DamageKind.ROW_IDS, snapshot.manifest_uri):
            _ = lineage.row_ids  # raises for another number of ids than rows, and for an id that was never given out
    with found.errors_as(DamageKind.ROW_VERSIONS, snapshot.manifest_uri):
        for versions in (lineage.created_at_versions, lineage.last_updated_at_versions):
            newest = int(versions.versions.max(initial=0))
            if newest > snapshot.version:
                detail = f"rows have version {newest}, which is newer than version {snapshot.version}"
                found.damaged(DamageKind.ROW_VERSIONS, detail, snapshot.manifest_uri)
