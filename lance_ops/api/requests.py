"""What users pass to a scan, turned into a `ScanRequest`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.snapshot.filters import UserFilter, bind_filter
from lance_ops.snapshot.scan import ROW_ADDRESS, ROW_ID, ScanRequest
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["Columns", "Filter", "refuse", "scan_request"]

Columns: TypeAlias = Sequence[str] | Mapping[str, str] | None
"""Column names or dotted paths; None means all."""

Filter: TypeAlias = UserFilter | None


def scan_request(
    snapshot: Snapshot,
    *,
    columns: Columns = None,
    filter: Filter = None,
    limit: int | None = None,
    offset: int | None = None,
    with_row_id: bool | None = None,
    with_row_address: bool | None = None,
    include_deleted_rows: bool | None = None,
    fragment_ids: tuple[int, ...] | None = None,
    use_scalar_index: bool | None = None,
    fragment_readahead: int | None = None,
) -> ScanRequest:
    """Check the arguments against the snapshot's schema.

    Raises `InvalidInput` for an unknown column or a negative number, `InvalidFilter` for a filter that does not fit.
    """
    if isinstance(columns, str) or (columns is not None and not isinstance(columns, (Sequence, Mapping))):
        raise InvalidInput(f"columns must be a list of names, not {columns!r}")
    if isinstance(columns, Mapping):
        raise UnsupportedFeature("columns as a mapping of names to SQL expressions", snapshot.uri)
    for name, value in (("limit", limit), ("offset", offset)):
        if value is not None and value < 0:
            raise InvalidInput(f"{name} must not be negative, not {value}")
    if include_deleted_rows and not with_row_id:
        raise InvalidInput("include_deleted_rows needs with_row_id=True: a deleted row is known by its null row id")
    names = None if columns is None else [name for name in columns if name not in (ROW_ID, ROW_ADDRESS)]
    asked = columns or ()
    return ScanRequest(
        schema=snapshot.schema if names is None else snapshot.schema.project(names),
        predicate=None if filter is None else bind_filter(snapshot, filter),
        limit=limit,
        offset=offset or 0,
        with_row_id=bool(with_row_id) or ROW_ID in asked,
        with_row_address=bool(with_row_address) or ROW_ADDRESS in asked,
        include_deleted_rows=bool(include_deleted_rows),
        fragment_ids=fragment_ids,
        use_scalar_index=use_scalar_index is not False,
        readahead=fragment_readahead,
    )


def refuse(where: str, **options: object) -> None:
    """Raise `UnsupportedFeature` for the first option that was given."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedFeature(f"option {name}={value!r}", where)
