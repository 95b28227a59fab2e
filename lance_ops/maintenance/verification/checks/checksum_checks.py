"""Compare the bytes of one file with the checksums that it carries.

A file without checksums is not damaged: other writers make none, and their rewrites drop ours.
"""

from __future__ import annotations

from lance_ops.file import checksum_report
from lance_ops.maintenance.verification.findings import CheckedFile, DamageKind, FindingCollector
from lance_ops.table.manifest import ObjectLocation
from lance_ops.wire import ChecksumReport

__all__ = ["agrees_with_checksums", "record_checksum_report"]

_SHOWN = 5


def agrees_with_checksums(location: ObjectLocation, found: FindingCollector) -> bool:
    """Compare a data file, index file or sidecar with its checksums, and record the result.

    Returns False if some bytes do not have their checksum. Raises as the store does.
    """
    size = location.store.size(location.path)
    return record_checksum_report(checksum_report(location.store, location.path, size), location.uri, size, found)


def record_checksum_report(report: ChecksumReport, path: str, size_bytes: int, found: FindingCollector) -> bool:
    """Record a report on a file's checksums; return False if some bytes do not have their checksum."""
    found.files.append(CheckedFile(path, size_bytes, report.has_checksums))
    if not report.damaged:
        return True
    ranges = ", ".join(f"{start} to {stop}" for start, stop in report.damaged[:_SHOWN])
    more = ", …" if len(report.damaged) > _SHOWN else ""
    found.damaged(DamageKind.CHECKSUM, f"bytes {ranges}{more} of {size_bytes} do not have their checksum", path)
    return False
