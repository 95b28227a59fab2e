"""What users pass to a scan, turned into a `ScanRequest`."""

from __future__ import annotations

from typing import TypeAlias

from lance_ops.api.scanning.projection import Projection
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ROW_ADDRESS, ROW_ID, VERSION_COLUMNS, ScanRequest, UserFilter, bind_filter
from lance_ops.snapshot import Snapshot

__all__ = ["Filter", "refuse", "scan_request"]

Filter: TypeAlias = UserFilter | None


def scan_request(
    snapshot: Snapshot,
    projection: Projection,
    *,
    filter: Filter = None,
    limit: int | None = None,
    offset: int | None = None,
    include_deleted_rows: bool | None = None,
    fragment_ids: tuple[int, ...] | None = None,
    rows: RowAddressSet | None = None,
    use_scalar_index: bool | None = None,
    fragment_readahead: int | None = None,
) -> ScanRequest:
    """Check the arguments against the snapshot.

    Raises `InvalidInput` for a negative number, `InvalidFilter` for a filter that does not fit.
    """
    for name, value in (("limit", limit), ("offset", offset)):
        if value is not None and value < 0:
            raise InvalidInput(f"{name} must not be negative, not {value}")
    if include_deleted_rows and not projection.needs(ROW_ID):
        raise InvalidInput("include_deleted_rows needs with_row_id=True: a deleted row is known by its null row id")
    return ScanRequest(
        schema=projection.read,
        predicate=None if filter is None else bind_filter(snapshot, filter, whatever_arrow_can=True),
        limit=limit,
        offset=offset or 0,
        with_row_id=projection.needs(ROW_ID),
        with_row_address=projection.needs(ROW_ADDRESS),
        version_columns=tuple(name for name in VERSION_COLUMNS if projection.needs(name)),
        include_deleted_rows=bool(include_deleted_rows),
        fragment_ids=fragment_ids,
        rows=rows,
        use_scalar_index=use_scalar_index is not False,
        readahead=fragment_readahead,
    )


def refuse(where: str, **options: object) -> None:
    """Raise `UnsupportedFeature` for the first option that was given."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedFeature(f"option {name}={value!r}", where)
