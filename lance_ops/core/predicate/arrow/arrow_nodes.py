"""Read the nodes of a `pyarrow.compute` expression from its pickled form.

pyarrow cannot walk an expression, but pickles it as an Arrow file. A batch of one row holds its literals and options.
The schema's metadata lists its nodes, parents first, as (key, value) pairs:

    call NAME … end NAME              a function with the nodes between as arguments, `options COLUMN` before the end
    field_ref NAME                    a column
    nested_field_ref N, N field_refs  a field of a struct
    literal COLUMN                    a value

Keys repeat, and pyarrow returns metadata as a dict, which loses all but one pair of a key. The pairs are therefore read
from Arrow's C data interface: a count, then the length and the bytes of each key and value. The count and the lengths
are 32-bit integers in the machine's byte order. (pyarrow can also export Substrait, but refuses many of the functions
and types that filters need.)
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ArrowNodes"]


class ArrowNodes:
    """The pairs of an expression; a node is identified by the position of its first pair."""

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
        """Return the position after the last pair of the node at `start`."""
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
        """Return the path of every column that the node at `start` reads, each once."""
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
        # The added column gives the batch its one row, even if the expression has no literals.
        fields, columns = [*self._schema, pa.field("", pa.null())], [*self._values.columns, pa.nulls(1)]
        schema = pa.schema(fields, pa.KeyValueMetadata(self._pairs[start : self.end(start)]))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as file:
            file.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        return self._load(sink.getvalue())


def _metadata_pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    capsule = schema.__arrow_c_schema__()  # keeps the memory that is read below
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
