"""Read a Lance table in Spark: a task reads a group of fragments and filters rows before they cross into the JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lance_ops import blobs, reading
from lance_ops.core.arrow import numbers_of, scalar
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.json import table_to_text
from lance_ops.core.schema import Schema
from lance_ops.reading import (
    ROW_ADDRESS,
    ROW_ID,
    SELECTABLE_ROW_COLUMNS,
    VERSION_COLUMNS,
    ScanRequest,
)
from lance_ops.snapshot import Snapshot
from lance_ops.spark import translation
from lance_ops.spark.data_source.hidden_frames import without_frames
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.partitioning import FragmentGroup, share_blocks
from lance_ops.spark.translation import FRAGMENT_ID, row_column, stored_paths

__all__ = ["LanceReader"]

_LOG = logging.getLogger("lance_ops")
_WORTH_SAYING_BYTES = 128 * 1024**2


class LanceReader(DataSourceReader):
    """Reads one version, or some fragments of it, with the filter of the options.

    It takes no filters from Spark; `pushing_reader` says why.
    """

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        fragment_ids: tuple[int, ...] | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        self._options = options
        self._snapshot = snapshot or options.open()
        self.shape = to_arrow_schema(schema, timezone="UTC")
        stored = self._snapshot.schema
        of_rows = {
            name
            for field in self.shape
            if (name := row_column(field.name, stored.names, options.case_rule)) is not None
        }
        asked = [field for field in self.shape if options.case_rule.find(field.name, tuple(of_rows)) is None]
        self._paths = tuple(stored_paths(asked, stored.fields, options.case_rule))
        read = stored.project(self._paths)
        self._fetches_blobs = options.blobs_as_bytes and read.holds_blobs_v2
        self.request = ScanRequest(
            read,
            None if options.filter is None else reading.bind_filter(self._snapshot, options.filter),
            with_row_id=ROW_ID in of_rows,
            with_row_address=bool(of_rows & {ROW_ADDRESS, FRAGMENT_ID}) or self._fetches_blobs,
            version_columns=tuple(name for name in VERSION_COLUMNS if name in of_rows),
            fragment_ids=fragment_ids,
        )
        self._with_fragment_id = FRAGMENT_ID in of_rows

    def columns_read(self) -> Schema:
        """Return the stored columns that are returned or tested by the filter."""
        tested = () if self.request.predicate is None else self.request.predicate.columns()
        return self._snapshot.schema.project(
            [*self._paths, *(name for name in tested if name not in SELECTABLE_ROW_COLUMNS)]
        )

    @without_frames()
    def partitions(self) -> Sequence[FragmentGroup]:
        """Share the rows that may match among tasks; see `plan`. Say once if a query reads a large table whole."""
        groups, size_bytes = self.plan()
        stored = self._snapshot.schema
        reads_everything = self.request.predicate is None and self.request.schema.num_leaves == stored.num_leaves
        if reads_everything and self._options.rows_needed is None and size_bytes >= _WORTH_SAYING_BYTES:
            _say_once(self._snapshot.uri)
        return groups

    def plan(self, num_slots: int | None = None) -> tuple[list[FragmentGroup], int]:
        """Share the rows that may match among tasks, in their order, by the bytes of the columns that are read.

        Also returns about how many bytes these are. `num_slots` is as in `share_blocks`. Raises `InvalidInput` where
        `check_is_stored` raises `ReadTooLarge`, which is a `NotImplementedError`: Spark takes that for a reader without
        partitions and drops its text.
        """
        request = self.request
        if request.predicate is None:
            request = replace(request, limit=self._options.rows_needed)
        try:
            plan = reading.plan_scan(self._snapshot, request)
            reading.check_is_stored(self._snapshot, plan)
        except UnsupportedFeature as error:
            raise InvalidInput(f"{type(error).__name__}: {error}") from error
        rows = [rows for rows, _ in plan.blocks.parts]
        return share_blocks(self._snapshot, rows, self.columns_read(), self._options.num_partitions, num_slots)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group's fragments in exactly the types that Spark expects.

        Spark runs one task even for a reader without partitions, and gives it a partition of its own: it has no rows.
        """
        if not isinstance(partition, FragmentGroup):
            return
        request = replace(
            self.request,
            fragment_ids=partition.fragment_ids,
            row_ranges=partition.row_ranges,
            limit=None if self.request.predicate is None else self._options.rows_needed,
        )
        for fragment_id, table in reading.scan_fragments(self._snapshot, reading.in_task(self._snapshot, request)):
            if self._with_fragment_id:
                table = table.append_column(FRAGMENT_ID, pa.repeat(scalar(fragment_id, pa.int32()), len(table)))
            for part in self._with_blobs(table):
                for batch in table_to_text(part, self._snapshot.uri).to_batches():
                    yield translation.fit(batch, self.shape, self._options.case_rule)

    def _with_blobs(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows with the bytes of blobs, if these are asked for: a bounded number of bytes at once."""
        if not self._fetches_blobs:
            yield table
            return
        reader = blobs.BlobReader(self._snapshot)
        for part in blobs.split_by_blob_bytes(table, self.request.schema):
            addresses = numbers_of(part.column(ROW_ADDRESS))
            for field in self.request.schema.fields:
                if field.holds_blobs_v2:
                    column = reader.with_bytes(part.column(field.name), field, addresses)
                    at = part.schema.get_field_index(field.name)
                    part = part.set_column(at, blobs.with_blobs_as(field, pa.large_binary()), column)
            yield part


@lru_cache(maxsize=64)
def _say_once(uri: str) -> None:
    _LOG.warning(
        "%s: this query reads all columns of all rows, because Spark prunes none of a Python source: "
        "lance_ops.spark.table(spark, uri).where(…).select(…).load() reads only what a query needs",
        uri,
    )
