"""The nodes of a `pyarrow.compute` expression.

pyarrow has no way to walk an expression but pickles one as an Arrow file: a batch of one row holds its literals and
options, and the schema's metadata lists its nodes in order, parents first, as (key, value) pairs

    call NAME … end NAME              a function with the nodes between as arguments, `options COLUMN` before the end
    field_ref NAME                    a column
    nested_field_ref N, N field_refs  a field of a struct
    literal COLUMN                    a value

Keys repeat, which pyarrow's own metadata (a dict) does not show, so the pairs are read where Arrow's C data interface
puts them: a count, then length and bytes of each key and value, lengths as 32-bit integers of the machine.
(Substrait, the other way out of pyarrow, refuses a good part of the functions and types wanted here.)
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ArrowNodes"]


class ArrowNodes:
    """The pairs of an expression; a node is known by the position of its first."""

    def __init__(self, expression: pc.Expression) -> None:
        self._load, (data,) = expression.__reduce__()
        with pa.ipc.open_file(data) as file:
            self._values = file.get_batch(0)
            self._schema = file.schema
        self._pairs = list(_metadata_pairs(self._schema))

    def __getitem__(self, position: int) -> tuple[str, str]:
        return self._pairs[position]

    def value(self, column: str) -> Any:
        """Return the literal or the options in a column."""
        return self._values.column(int(column))[0]

    def end(self, start: int) -> int:
        """Return where the node that begins at `start` has ended."""
        key, value = self._pairs[start]
        if key == "nested_field_ref":
            return start + 1 + int(value)
        if key != "call":
            return start + 1
        at = start + 1
        while self._pairs[at][0] != "end":
            at = self.end(at)
        return at + 1

    def fields(self, start: int) -> list[tuple[str, ...]]:
        """Return the path of every column that the node at `start` names."""
        found: list[tuple[str, ...]] = []
        at, end = start, self.end(start)
        while at < end:
            key, value = self._pairs[at]
            if key == "nested_field_ref":
                found.append(tuple(name for _, name in self._pairs[at + 1 : self.end(at)]))
                at = self.end(at)
                continue
            if key == "field_ref":
                found.append((value,))
            at += 1
        return list(dict.fromkeys(found))

    def expression(self, start: int) -> pc.Expression:
        """Return the node at `start` as an expression of its own."""
        # one column more: without any there would be no row
        fields, columns = [*self._schema, pa.field("", pa.null())], [*self._values.columns, pa.nulls(1)]
        schema = pa.schema(fields, pa.KeyValueMetadata(self._pairs[start : self.end(start)]))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as file:
            file.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        return self._load(sink.getvalue())


def _metadata_pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    capsule = schema.__arrow_c_schema__()  # holds the memory read below
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    texts = []

    def number() -> int:
        nonlocal address
        value = ctypes.c_int32.from_address(address).value
        address += 4
        return value

    for _ in range(2 * number()):
        size_bytes = number()
        texts.append(ctypes.string_at(address, size_bytes).decode())
        address += size_bytes
    return zip(texts[::2], texts[1::2], strict=True)


class _ArrowSchema(ctypes.Structure):
    """The start of the C data interface's `struct ArrowSchema`."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))
