"""Look up which keys of an in-memory source the rows of a table have.

Every distinct key has a code, a small number. A key with a null in it has no code: as in SQL, a null equals nothing.

A value is looked up by 64 bits: its own bits for a number, a hash for a text. After a lookup by hash the values are
compared. If two different values have the same hash, all values of the column are looked up by value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops import kernels
from lance_ops.core.arrow import bits_of_floats, is_text
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint64Array
from lance_ops.kernels import read_only
from lance_ops.table.rows import NO_CODE, KeyCodeTable

__all__ = ["SourceKeys", "key_hashes"]

_ODD = np.uint64(0x9E3779B97F4A7C15)


class SourceKeys:
    """Keys of one or more columns. The pickled form includes the columns, so it is as large as the source's keys."""

    def __init__(self, columns: Sequence[pa.Array], names: Sequence[str]) -> None:
        """Take one array for each key column; raise `UnsupportedFeature` for a nested or half-float type."""
        columns = _decoded(columns)
        for column, name in zip(columns, names, strict=True):
            if pt.is_nested(column.type) or pt.is_float16(column.type):
                raise UnsupportedFeature(f"keys of type {column.type}", f"column {name!r}")
        self._columns = [_ColumnCodes(column) for column in columns]
        self._pairs: list[KeyCodeTable] = []
        codes = self._columns[0].codes
        for column in self._columns[1:]:
            both = (codes != NO_CODE) & (column.codes != NO_CODE)
            table = KeyCodeTable(_pair(codes[both], column.codes[both], column.count))
            codes = np.full(len(codes), NO_CODE)
            codes[both] = table.codes
            self._pairs.append(table)
        self.codes = codes
        """The code of each source row."""
        self.num_codes = self._pairs[-1].count if self._pairs else self._columns[0].count
        """The number of distinct keys."""
        self._in_order = self.num_codes == len(codes)  # no key is null or occurs twice: a row's code is its number
        if self._in_order:
            self._rows, self._starts = codes, np.arange(self.num_codes + 1)
        else:
            order = np.argsort(codes, kind="stable")
            self._rows = order[np.searchsorted(codes[order], 0) :]
            self._starts = np.searchsorted(codes[self._rows], np.arange(self.num_codes + 1))

    @property
    def are_distinct(self) -> bool:
        """Whether no two source rows have the same key."""
        return len(self._rows) == self.num_codes

    @property
    def values(self) -> pa.Array:
        """The distinct values of the first key column."""
        return self._columns[0].values

    def hits(self, columns: Sequence[pa.Array]) -> tuple[Int64Array, Int64Array]:
        """Return the ascending positions of rows whose key the source has, and the code of each."""
        columns = _decoded(columns)
        positions, codes = self._columns[0].hits(columns[0])
        for column, column_codes, pairs in zip(columns[1:], self._columns[1:], self._pairs, strict=True):
            among, others = column_codes.hits(column.take(pa.array(positions)))
            pair_hits, found = pairs.hits(_pair(codes[among], others, column_codes.count))
            positions, codes = positions[among[pair_hits]], found
        return positions, codes

    def rows_of(self, positions: Int64Array, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return pairs (position, source row): one for each source row that has the key of the position's code."""
        if self._in_order:
            return positions, codes
        if self.are_distinct:
            return positions, self._rows[codes]
        counts = self._starts[codes + 1] - self._starts[codes]
        hits = np.repeat(np.arange(len(codes)), counts)
        within = np.arange(len(hits)) - np.repeat(np.cumsum(counts) - counts, counts)
        return positions[hits], self._rows[self._starts[codes][hits] + within]

    def last_row_of(self, codes: Int64Array) -> Int64Array:
        """Return the last source row of each key."""
        if self.are_distinct:
            return self.rows_of(codes, codes)[1]
        last: Int64Array = self._rows[self._starts[codes + 1] - 1]
        return last


def key_hashes(columns: Sequence[pa.Array]) -> tuple[Uint64Array, BoolArray]:
    """Return a hash of each row's key, and whether a null is in it. Keys that are equal have the same hash.

    The columns must have the same types wherever their hashes are compared.
    """
    columns = _decoded(columns)
    hashes = np.zeros(len(columns[0]), np.uint64)
    has_null = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        present, words = _words(column)
        values = np.zeros(len(column), np.uint64)
        values[present] = words
        if column.null_count:
            has_null |= column.is_null().to_numpy(zero_copy_only=False)
        hashes = _scattered(hashes + _ODD ^ values)
    return hashes, has_null


def _decoded(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the columns with values in place of dictionaries: each batch may number the same values otherwise."""
    return [column.dictionary_decode() if pt.is_dictionary(column.type) else column for column in columns]


def _scattered(words: Uint64Array) -> Uint64Array:
    """Return words whose high bits depend on all bits of the given ones (the finalizer of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class _ColumnCodes:
    """The codes of one column's values."""

    def __init__(self, column: pa.Array) -> None:
        self._type = column.type
        present, words = _words(column)
        table = KeyCodeTable(words)
        self.codes, self.values, self.count = table.codes, column, table.count
        if table.count < len(column):
            self.codes = np.full(len(column), NO_CODE)
            self.codes[present] = table.codes
            firsts = np.empty(table.count, np.int64)
            firsts[table.codes[::-1]] = np.arange(len(column))[present][::-1]
            self.values = column.take(pa.array(firsts))
        self._table: KeyCodeTable | None = table
        if _is_hashed(self._type) and not self._are_equal(column, np.arange(len(column))[present], table.codes):
            self._table = None
            self.values = pc.unique(column.drop_null())
            self.codes, self.count = self._by_value(column), len(self.values)

    def hits(self, column: pa.Array) -> tuple[Int64Array, Int64Array]:
        """Return the positions of values that have a code in a column of a compatible type, and their codes."""
        column = column.cast(self._type) if column.type != self._type else column
        if self._table is not None:
            present, words = _words(column)
            positions, codes = self._table.hits(words)
            if not isinstance(present, slice):
                positions = present[positions]
            if not _is_hashed(self._type) or self._are_equal(column, positions, codes):
                return positions, codes
        codes = self._by_value(column)
        positions = np.flatnonzero(codes != NO_CODE)
        return positions, codes[positions]

    def _are_equal(self, column: pa.Array, positions: Int64Array, codes: Int64Array) -> bool:
        """Return whether each value at a position is the value of its code, and does not only share its hash."""
        same = pc.all(pc.equal(column.take(pa.array(positions)), self.values.take(pa.array(codes))))
        return bool(same.as_py() is not False)

    def _by_value(self, column: pa.Array) -> Int64Array:
        found = pc.index_in(column, value_set=self.values, skip_nulls=True)
        codes: Int64Array = found.fill_null(NO_CODE).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes


def _is_hashed(arrow_type: pa.DataType) -> bool:
    return not (pt.is_primitive(arrow_type) and arrow_type.bit_width <= 64)


def _words(column: pa.Array) -> tuple[Int64Array | slice, Uint64Array]:
    """Return the positions of non-null values, and 64 bits of each: equal values have equal bits."""
    where: Int64Array | slice = slice(None)
    present, kind = column, column.type
    if column.null_count:
        where, present = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)), column.drop_null()
    if not len(present):
        return where, np.empty(0, np.uint64)
    if pt.is_boolean(kind):
        return where, present.cast(pa.uint8()).to_numpy().astype(np.uint64)
    if pt.is_floating(kind):
        return where, bits_of_floats(present)
    if not _is_hashed(kind):
        width = kind.bit_width // 8
        stored = np.frombuffer(present.buffers()[1], f"<i{width}")[present.offset : present.offset + len(present)]
        return where, stored.astype(np.int64, copy=False).view(np.uint64)
    content = _bytes_of(present)
    _, offsets, data = content.buffers()
    ends = np.frombuffer(offsets, np.int64)[content.offset : content.offset + len(content) + 1]
    joined = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    hashes: Uint64Array = np.empty(len(content), np.uint64)
    kernels.xxh64(read_only(joined), read_only(ends), hashes)
    return where, hashes


def _bytes_of(values: pa.Array) -> pa.Array:
    kind = values.type
    if is_text(kind):
        return values.cast(pa.large_string()).cast(pa.large_binary())
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return values.cast(pa.large_binary())
    if not pt.is_decimal(kind):
        raise UnsupportedFeature(f"keys of type {kind}")
    width = kind.bit_width // 8
    plain = pa.Array.from_buffers(pa.binary(width), len(values), values.buffers(), offset=values.offset)
    return plain.cast(pa.large_binary())


def _pair(left: Int64Array, right: Int64Array, num_right: int) -> Uint64Array:
    pairs: Uint64Array = (left * num_right + right).view(np.uint64)
    return pairs
