"""Write 0.1 files: batches of rows, for each batch one page of every field.

The format does not store validity, so a null is refused instead of becoming a zero.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow import is_text_or_bytes, items_of
from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.core.ndarrays import Uint8Array
from lance_ops.core.schema import Dictionary, Field, Schema, with_dictionaries
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import FixedSizeListValues, FixedWidth, VariableWidth
from lance_ops.file.arrow_values import copy_array, values_of
from lance_ops.file.checksums import ChecksumWriter
from lance_ops.file.file_body import FileBody
from lance_ops.file.page_reading import Extent
from lance_ops.file.v0_1.dictionaries import Dictionaries, may_be_dictionary_values
from lance_ops.file.v0_1.page_statistics import bounds_of, has_statistics
from lance_ops.pb import file_pb2, table_pb2
from lance_ops.store import BytesLike, StoreWriter
from lance_ops.wire import MAGIC, frame, metadata_to_pb, schema_to_pb

__all__ = ["V01Body"]

_BATCH_ROWS = 1024
"""The rows of a batch, as in the reference; each batch has statistics, by which reads are pruned."""

_FOOTER = struct.Struct("<QHH4s")
_CELL = np.dtype("<i8")
_EMPTY = (0, 0)


class V01Body(FileBody):
    """The body of a 0.1 file: pages batch by batch, then page table, statistics, schema, metadata and checksums."""

    def __init__(
        self, sink: StoreWriter, schema: Schema, dictionaries: Dictionaries, batch_offsets: Sequence[int] = (0,)
    ) -> None:
        for field in schema.walk():
            _check_type(field)
        self._sink = ChecksumWriter(sink)
        self._schema = schema
        self._offsets = [0]
        self._pages: list[dict[int, tuple[int, int]]] = []
        self._dictionaries = dictionaries
        self._pending: list[pa.RecordBatch] = []
        self._num_pending = 0
        self._sizes = chain((stop - start for start, stop in pairwise(batch_offsets)), repeat(_BATCH_ROWS))
        self._batch_rows = next(self._sizes)
        self._statistics: dict[int, list[tuple[object, object]]] = {
            field.id: [] for field in _fields_of_structs(schema.fields) if has_statistics(field.arrow_type)
        }

    def add(self, columns: Sequence[pa.Array], num_rows: int) -> None:
        keyed = [
            self._dictionaries.as_keys(field, column)
            for field, column in zip(self._schema.fields, columns, strict=True)
        ]
        self._pending.append(pa.RecordBatch.from_arrays(keyed, names=self._schema.names))
        self._num_pending += num_rows
        if self._num_pending >= self._batch_rows:
            table = pa.Table.from_batches(self._pending)
            start = 0
            while table.num_rows - start >= self._batch_rows:
                self._write_batch(table.slice(start, self._batch_rows))
                start += self._batch_rows
                self._batch_rows = next(self._sizes)
            rest = table.slice(start).combine_chunks()
            self._pending = rest.to_batches() if rest.num_rows else []
            self._num_pending = rest.num_rows

    def add_global_buffer(self, data: BytesLike) -> int:
        raise UnsupportedFeature("global buffers in file version 0.1")

    def write_buffer(self, data: BytesLike) -> Extent:
        raise UnsupportedFeature("blobs outside of pages in file version 0.1")

    def finish(self, metadata: Mapping[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self._num_pending:
            self._write_batch(pa.Table.from_batches(self._pending))
        ids = [field.id for field in self._schema.walk()]
        message = file_pb2.Metadata(batch_offsets=self._offsets)
        if ids:
            message.page_table_position = self._write_page_table(self._pages, min(ids), max(ids))
        self._write_statistics(message)
        message.manifest_position = self._write_manifest(metadata)
        position = self._sink.tell()
        self._sink.write(frame(message.SerializeToString()))
        self._sink.end_pages()
        self._sink.finish(b"", _FOOTER.pack(position, *FileVersion.V0_1.footer, MAGIC))
        return tuple(ids), ()

    def _write_batch(self, table: pa.Table) -> None:
        pages: dict[int, tuple[int, int]] = {}
        for field, column in zip(self._schema.fields, table.columns, strict=True):
            array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
            self._write_field(field, array, pages, in_list=False)
        self._pages.append(pages)
        self._offsets.append(self._offsets[-1] + table.num_rows)

    def _write_field(self, field: Field, array: pa.Array, pages: dict[int, tuple[int, int]], *, in_list: bool) -> None:
        arrow_type = array.type
        if pt.is_null(arrow_type):
            pages[field.id] = (self._sink.tell(), len(array))
            return
        if array.null_count:
            raise SchemaMismatch(
                f"column {field.name!r} has {array.null_count} nulls, and file version 0.1 holds none: "
                "fill them, or write a later version"
            )
        if pt.is_struct(arrow_type):
            for index, child in enumerate(field.children):
                self._write_field(child, array.field(index), pages, in_list=in_list)
            return
        if not in_list and field.id in self._statistics:
            self._statistics[field.id].append(bounds_of(array))
        if pt.is_list(arrow_type) or pt.is_large_list(arrow_type):
            offsets, items = items_of(array)
            dtype = "<i8" if pt.is_large_list(arrow_type) else "<i4"
            pages[field.id] = (self._put(offsets.astype(dtype).view(np.uint8)), len(offsets))
            self._write_field(field.children[0], items, pages, in_list=True)
            return
        _refuse_empty_strings(field, array)
        pages[field.id] = (self._put_values(array, field.name), len(array))

    def _put_values(self, array: pa.Array, name: str) -> int:
        """Write a page of values and return its position."""
        values = values_of(array)
        while isinstance(values, FixedSizeListValues):
            if values.validity is not None:
                raise SchemaMismatch(
                    f"fixed-size lists of column {name!r} have null items, and file version 0.1 holds none: "
                    "fill them, or write a later version"
                )
            values = values.items
        if isinstance(values, FixedWidth):
            return self._put(values.data[: values.size_bytes])
        assert isinstance(values, VariableWidth)
        start = self._put(values.data[: values.size_bytes])
        return self._put((values.offsets.astype(_CELL) + start).view(np.uint8))

    def _put(self, data: Uint8Array) -> int:
        position = self._sink.tell()
        if len(data):
            self._sink.write(memoryview(np.ascontiguousarray(data)))  # type: ignore[arg-type]  # an array has the buffer protocol
        return position

    def _write_page_table(self, batches: Sequence[Mapping[int, tuple[int, int]]], first: int, last: int) -> int:
        cells = [[batch.get(field_id, _EMPTY) for batch in batches] for field_id in range(first, last + 1)]
        return self._put(np.array(cells, _CELL).reshape(-1).view(np.uint8))

    def _write_statistics(self, message: file_pb2.Metadata) -> None:
        columns = {field_id: bounds for field_id, bounds in self._statistics.items() if bounds}
        if not columns:
            return
        arrow_fields = []
        arrays = []
        for field_id, bounds in columns.items():
            field = next(node for node in self._schema.walk() if node.id == field_id)
            statistic_fields = [
                pa.field("null_count", pa.int64(), nullable=False),
                pa.field("min_value", field.arrow_type, field.nullable),
                pa.field("max_value", field.arrow_type, field.nullable),
            ]
            empty = b"" if pt.is_binary(field.arrow_type) or pt.is_large_binary(field.arrow_type) else ""
            lows, highs = ([empty if value is None else value for value in side] for side in zip(*bounds, strict=True))
            parts = [
                np.zeros(len(bounds), np.int64),
                pa.array(lows, field.arrow_type),
                pa.array(highs, field.arrow_type),
            ]
            arrow_fields.append(pa.field(str(field_id), pa.struct(statistic_fields), nullable=False))
            arrays.append([pa.array(part) for part in parts])
        schema = Schema.from_arrow(pa.schema(arrow_fields))
        pages: dict[int, tuple[int, int]] = {}
        for field, children in zip(schema.fields, arrays, strict=True):
            for child, array in zip(field.children, children, strict=True):
                pages[child.id] = (self._put_values(array, child.name), len(array))
        ids = [field.id for field in schema.walk()]
        message.statistics.page_table_position = self._write_page_table([pages], 0, max(ids))
        message.statistics.fields.extend(ids)
        message.statistics.schema.extend(schema_to_pb(schema))

    def _write_manifest(self, metadata: Mapping[str, str]) -> int:
        """Write the dictionaries' values, then the schema with their positions; return the schema's position."""

        def write_dictionary(field: Field) -> Dictionary:
            values = self._dictionaries.values_of(field)
            position = self._put_values(copy_array(values), field.name) if len(values) else 0
            return Dictionary(position, len(values))

        schema = with_dictionaries(self._schema, write_dictionary)
        manifest = table_pb2.Manifest(fields=schema_to_pb(schema), schema_metadata=metadata_to_pb(metadata), version=1)
        manifest.data_format.file_format = "lance"
        manifest.data_format.version = FileVersion.V0_1.value
        if not self._sink.tell():
            self._sink.write(bytes(8))  # a manifest position of 0 means that there is no manifest
        position = self._sink.tell()
        self._sink.write(frame(manifest.SerializeToString()))
        return position


def _refuse_empty_strings(field: Field, array: pa.Array) -> None:
    """Raise `SchemaMismatch` for empty strings in a nullable field, which every reader reads as nulls."""
    if field.nullable and is_text_or_bytes(array.type) and pc.any(pc.equal(pc.binary_length(array), 0)).as_py():
        raise SchemaMismatch(
            f"column {field.name!r} has empty strings, and file version 0.1 cannot tell them from nulls: "
            "make the column not nullable, or write a later version"
        )


def _fields_of_structs(fields: Sequence[Field]) -> Iterator[Field]:
    """Yield fields that have a value for every row: all but those in lists."""
    for field in fields:
        yield field
        if field.logical_type == "struct":
            yield from _fields_of_structs(field.children)


def _check_type(field: Field) -> None:
    kind = field.logical_type.partition(":")[0]
    is_fixed_size_list_of_structs = kind == "fixed_size_list" and bool(field.children)
    if kind == "map" or is_fixed_size_list_of_structs or (kind == "struct" and not field.children):
        raise UnsupportedFeature(f"{field.logical_type} in file version 0.1", f"column {field.name!r}")
    arrow_type = field.arrow_type
    if pt.is_dictionary(arrow_type) and not may_be_dictionary_values(arrow_type.value_type):
        raise UnsupportedFeature(f"{field.logical_type} in file version 0.1", f"column {field.name!r}")
