"""The options of a scan under the reference's names, and the scanner that they make."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias
from uuid import UUID

from lance_ops import reading
from lance_ops.api.scanning.projection import Columns, Projection, project
from lance_ops.api.scanning.scanner import BatchSize, LanceScanner, default_batch_size
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import ColumnOrdering
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ROW_OFFSET, VERSION_COLUMNS
from lance_ops.snapshot import Snapshot

__all__ = ["Filter", "OrderBy", "ScanOptions", "arguments_of", "make_scanner", "refuse", "scan_request"]

Filter: TypeAlias = reading.UserFilter | None
"""Which rows: SQL text or a `pyarrow.compute` expression."""

OrderBy: TypeAlias = Sequence[ColumnOrdering | str] | str | None
"""Columns to sort by. A plain name sorts ascending with nulls last."""


@dataclass(frozen=True)
class ScanOptions:
    """The options of a scan; None leaves one at its default."""

    columns: Columns = None
    filter: Filter = None
    limit: int | None = None
    offset: int | None = None
    nearest: Mapping[str, Any] | None = None
    batch_size: int | None = None
    batch_size_bytes: int | None = None
    batch_readahead: int | None = None
    fragment_readahead: int | None = None
    scan_in_order: bool | None = None
    fragment_ids: tuple[int, ...] | None = None
    index_segments: Iterable[str | UUID] | None = None
    full_text_query: str | Mapping[str, Any] | None = None
    prefilter: bool | None = None
    with_row_id: bool | None = None
    with_row_address: bool | None = None
    use_stats: bool | None = None
    fast_search: bool | None = None
    io_buffer_size: int | None = None
    late_materialization: bool | Sequence[str] | None = None
    blob_handling: str | None = None
    use_scalar_index: bool | None = None
    include_deleted_rows: bool | None = None
    scan_stats_callback: Callable[[Any], None] | None = None
    strict_batch_size: bool | None = None
    order_by: OrderBy = None
    disable_scoring_autoprojection: bool | None = None
    row_addr_allowlist: bytes | None = None
    row_addr_blocklist: bytes | None = None
    substrait_aggregate: bytes | None = None

    def over(self, defaults: ScanOptions) -> ScanOptions:
        """Return these options, with `defaults` for those that are None."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(defaults, **{name: value for name, value in given.items() if value is not None})


def arguments_of(call: Mapping[str, Any], *, apart_from: Collection[str] = ()) -> dict[str, Any]:
    """Return the arguments of the method whose `locals()` are `call`, by name.

    A method with one of the reference's long signatures passes its arguments on by this function, so that it names each
    of them once. The method must call it before it binds a local variable. The result leaves out `self` and the names
    in `apart_from`, and contains the entries of `**kwargs`.
    """
    own = dict(call)
    collected = own.pop("kwargs", {})
    for name in ("self", *apart_from):
        own.pop(name, None)
    return own if "kwargs" in apart_from else own | collected


def make_scanner(snapshot: Snapshot, options: ScanOptions) -> LanceScanner:
    """Check the options against the snapshot, and return the scanner. Nothing is read.

    Rows come in the order of the fragments whatever `scan_in_order` says, as in the reference. `prefilter` and
    `disable_scoring_autoprojection` concern searches and have no effect.

    Raises `InvalidInput`, `InvalidFilter`, and `UnsupportedFeature` for a search.
    """
    refuse(
        snapshot.uri,
        nearest=options.nearest,
        full_text_query=options.full_text_query,
        index_segments=options.index_segments,
        substrait_aggregate=options.substrait_aggregate,
    )
    if options.strict_batch_size and options.batch_size_bytes is not None:
        raise InvalidInput("strict_batch_size and batch_size_bytes exclude each other: one counts rows, one bytes")
    for name in ("batch_size", "batch_size_bytes", "batch_readahead", "io_buffer_size"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise InvalidInput(f"{name} must be positive, not {value}")
    order_by = _orderings(options.order_by)
    reading.check_orderings(snapshot.schema, order_by)
    projection = project(
        snapshot,
        options.columns,
        with_row_id=bool(options.with_row_id),
        with_row_address=bool(options.with_row_address),
        blob_handling=options.blob_handling,
        also=[ordering.column_name for ordering in order_by],
    )
    request = scan_request(
        snapshot,
        projection,
        filter=options.filter,
        limit=options.limit,
        offset=options.offset,
        include_deleted_rows=options.include_deleted_rows,
        fragment_ids=options.fragment_ids,
        rows=reading.allowed_rows(snapshot, options.row_addr_allowlist, options.row_addr_blocklist),
        use_scalar_index=options.use_scalar_index,
        fragment_readahead=options.fragment_readahead or options.batch_readahead,
        use_stats=options.use_stats is not False,
        indexed_only=bool(options.fast_search),
        late_columns=_late_columns(snapshot, options.late_materialization),
        buffer_bytes=options.io_buffer_size,
    )
    in_bytes = options.batch_size_bytes
    across_fragments = bool(options.strict_batch_size) or request.predicate is not None
    batch_size = BatchSize(options.batch_size or default_batch_size(), in_bytes, across_fragments)
    return LanceScanner(snapshot, request, projection, batch_size, order_by, options.scan_stats_callback)


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
    use_stats: bool = True,
    indexed_only: bool = False,
    late_columns: frozenset[str] | None = None,
    buffer_bytes: int | None = None,
) -> reading.ScanRequest:
    """Check the arguments against the snapshot, and return the request for `lance_ops.reading`.

    Raises `InvalidInput` for a negative number, and `InvalidFilter` for a filter that does not fit the schema.
    """
    for name, value in (("limit", limit), ("offset", offset)):
        if value is not None and value < 0:
            raise InvalidInput(f"{name} must not be negative, not {value}")
    row_columns = projection.row_columns
    if include_deleted_rows and ROW_ID not in row_columns:
        raise InvalidInput("include_deleted_rows needs with_row_id=True: a deleted row is known by its null row id")
    return reading.ScanRequest(
        schema=projection.read,
        predicate=None if filter is None else reading.bind_filter(snapshot, filter, of_scan=True),
        limit=limit,
        offset=offset or 0,
        with_row_id=ROW_ID in row_columns,
        with_row_address=ROW_ADDRESS in row_columns,
        version_columns=tuple(name for name in VERSION_COLUMNS if name in row_columns),
        with_row_offset=ROW_OFFSET in row_columns,
        include_deleted_rows=bool(include_deleted_rows),
        fragment_ids=fragment_ids,
        rows=rows,
        use_scalar_index=use_scalar_index is not False,
        use_stats=use_stats,
        indexed_only=indexed_only,
        late_columns=late_columns,
        readahead=fragment_readahead,
        buffer_bytes=buffer_bytes,
    )


def refuse(where: str, **options: object) -> None:
    """Raise `UnsupportedFeature` if any of these options is set, naming the first one."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedFeature(f"option {name}={value!r}", where)


def _orderings(order_by: OrderBy) -> tuple[ColumnOrdering, ...]:
    asked = [order_by] if isinstance(order_by, str) else order_by or ()
    orderings = tuple(ColumnOrdering(each) if isinstance(each, str) else each for each in asked)
    for ordering in orderings:
        if not isinstance(ordering, ColumnOrdering):
            raise InvalidInput(f"order_by must be a list of names or ColumnOrdering, not {ordering!r}")
    return orderings


def _late_columns(snapshot: Snapshot, asked: bool | Sequence[str] | None) -> frozenset[str] | None:
    match asked:
        case None:
            return None
        case True:
            return frozenset(snapshot.schema.names)
        case False:
            return frozenset()
    return frozenset(snapshot.schema.lineage(path)[0].name for path in asked)
