"""Find the rows that have one of a subject's keys: the join of `delete_by_keys`, as a predicate that holds no key.

The keys are the side of the join that is in memory, as a hash table. Rows are streamed past it, batch by batch. Every
process that tests rows holds all distinct keys, in the types of the columns that it tests, and their hash table: some
70 bytes for a number, and 120 for a text of 16 characters. A task has the place of the keys alone (`shared_table`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.changing import SourceKeys, merge_insert
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidFilter, InvalidInput
from lance_ops.core.predicate import Column, Expression, Predicate, Statistics, TruthSet, Values
from lance_ops.core.records import dataclass
from lance_ops.maintenance.erasure.shared_table import SharedTable
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import NO_CODE

__all__ = ["HasKey", "distinct_keys"]

_FAMILIES: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "numbers": (pt.is_integer, pt.is_floating, pt.is_decimal),
    "texts": (pt.is_string, pt.is_large_string, pt.is_string_view),
    "bytes": (pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary, pt.is_binary_view),
    "days": (pt.is_date,),
    "moments": (lambda kind: pt.is_timestamp(kind) and kind.tz is None,),
    "moments of a time zone": (lambda kind: pt.is_timestamp(kind) and kind.tz is not None,),
    "times of day": (pt.is_time,),
    "durations": (pt.is_duration,),
}
"""The types that a cast compares. A day and a moment are of two families: a cast of a moment loses its time of day."""


def distinct_keys(keys: pa.Table) -> pa.Table:
    """Return each key once, without those that have a null in them, which match nothing.

    Raises `UnsupportedFeature` for a column of a type without equality.
    """
    columns = [_decoded(column.combine_chunks()) for column in keys.columns]
    codes = SourceKeys(columns, keys.schema.names).codes
    _, firsts = np.unique(codes, return_index=True)
    found = pa.table(columns, names=keys.schema.names)
    return rows_at(found, np.sort(firsts[codes[firsts] != NO_CODE]))


@dataclass(frozen=True)
class HasKey(Predicate):
    """Is true for rows whose columns have the values of a key. It is false, and never unknown, where one is null."""

    key_columns: tuple[Column, ...]
    keys: SharedTable

    @classmethod
    def bind(cls, snapshot: Snapshot, keys: SharedTable) -> HasKey:
        """Find the columns in a version, by the names that the keys have.

        Raises `InvalidFilter` for a column that the version lacks, or whose type is of another family than the keys'.
        """
        schema = snapshot.schema.to_arrow_storage()
        try:
            columns = tuple(merge_insert.key_column(schema, name) for name in keys.table.schema.names)
        except InvalidInput as error:
            raise InvalidFilter(
                f"{snapshot.uri} at version {snapshot.version}: the keys do not fit: {error}"
            ) from error
        bound = cls(columns, keys)
        bound.fitted()
        return bound

    def fitted(self) -> pa.Table:
        """Return the keys that rows may have, in the types of the columns; other keys match nothing."""
        return self.keys.derived(_fitted, tuple(column.type for column in self.key_columns))

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.key_columns

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        columns = [column.evaluate(batch) for column in self.key_columns]
        found = np.zeros(batch.num_rows, np.bool_)
        found[self.keys.derived(_hash_table, tuple(column.type for column in self.key_columns)).hits(columns)[0]] = True
        return pa.array(found)

    def possible_truths(self, stats: Statistics) -> TruthSet:
        return TruthSet.ANY

    def to_sql(self) -> str:
        return f"({', '.join(column.to_sql() for column in self.key_columns)}) IN (given keys)"


def _hash_table(keys: pa.Table, types: tuple[pa.DataType, ...]) -> SourceKeys:
    fitted = _fitted(keys, types)
    return SourceKeys([column.combine_chunks() for column in fitted.columns], fitted.schema.names)


def _fitted(keys: pa.Table, types: tuple[pa.DataType, ...]) -> pa.Table:
    """Return the keys that these types hold, in these types; raise `InvalidFilter` for a type that no key can have.

    A version may store a column in another type than the keys have. If both types are of one family, a key matches the
    values that equal it: the cast of the key to the column's type and back gives the key again. Across families a cast
    cannot tell: the text "0042" may name the same subject as the number 42.
    """
    names = keys.schema.names
    columns, held = [], np.ones(keys.num_rows, np.bool_)
    for name, given, kind in zip(names, keys.columns, types, strict=True):
        column = fitted = given.combine_chunks()
        if column.type != kind:
            try:
                fitted = _cast_within_family(column, kind)
                held &= _is_same(column, fitted)
            except pa.ArrowNotImplementedError as error:
                raise InvalidFilter(
                    f"keys of type {column.type} match no values of column {name!r}, which stores {kind}: cast the "
                    "keys to that type, if it means the same"
                ) from error
        columns.append(fitted)
    return rows_at(pa.table(columns, names=names), np.flatnonzero(held))


def _family(kind: pa.DataType) -> object:
    """Return what stands for the types whose values can be compared; a type that has no kin stands for itself."""
    return next((family for family, has in _FAMILIES.items() if any(test(kind) for test in has)), kind)


def _cast_within_family(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast each value; one that the type cannot hold becomes null, or another value.

    Raises `ArrowNotImplementedError` for types of two families, as Arrow does for a cast that it does not have.
    """
    if _family(column.type) != _family(kind):
        raise pa.ArrowNotImplementedError(f"{column.type} and {kind} are of two families")
    return _cast(column, kind)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return column.cast(kind, safe=False)
    except pa.ArrowInvalid:
        return pa.concat_arrays([_cast_one(column.slice(at, 1), kind) for at in range(len(column))])


def _cast_one(value: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return value.cast(kind, safe=False)
    except pa.ArrowInvalid:
        return pa.nulls(1, kind)


def _is_same(given: pa.Array, fitted: pa.Array) -> np.ndarray:
    """Return which values did not change by a cast; raise `ArrowNotImplementedError` if there is no cast back."""
    back = _cast(fitted, given.type)
    same = pc.equal(given, back)
    if pt.is_floating(given.type):
        same = pc.or_(same, pc.and_(pc.is_nan(given), pc.is_nan(back)))
    found: np.ndarray = same.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pt.is_dictionary(column.type) else column
