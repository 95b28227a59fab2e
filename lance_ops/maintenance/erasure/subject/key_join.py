"""Find the rows that have one of a subject's keys: the join of `delete_by_keys`, as a predicate that holds no key.

The keys are the side of the join that is in memory, as a hash table. Rows are streamed past it, batch by batch. Every
process that tests rows holds all distinct keys, in the types of the columns that it tests, and their hash table: some
70 bytes for a number, and 120 for a text of 16 characters. A task has the place of the keys alone (`shared_table`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops.changing import SourceKeys, merge_insert
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidFilter, InvalidInput
from lance_ops.core.predicate import Column, Expression, Predicate, Statistics, TruthSet, Values, compute_type, computed
from lance_ops.core.records import dataclass
from lance_ops.maintenance.erasure.subject.fitted_keys import fitted
from lance_ops.maintenance.erasure.subject.shared_table import SharedTable
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import NO_CODE

__all__ = ["HasKey", "distinct_keys"]


def distinct_keys(keys: pa.Table) -> pa.Table:
    """Return each key once, in types to compute in, without those that have a null in them, which match nothing.

    Raises `UnsupportedFeature` for a column of a type without equality.
    """
    columns = [_to_compute(column.combine_chunks()) for column in keys.columns]
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
    values that equal it. Across families a cast cannot tell: the text "0042" may name the same subject as the number
    42.
    """
    names = keys.schema.names
    columns, held = [], np.ones(keys.num_rows, np.bool_)
    for name, given, kind in zip(names, keys.columns, types, strict=True):
        column = _to_compute(given.combine_chunks())
        try:
            values, fits = fitted(column, kind)
        except pa.ArrowNotImplementedError as error:
            raise InvalidFilter(
                f"keys of type {column.type} match no values of column {name!r}, which stores {kind}: cast the "
                "keys to that type, if it means the same"
            ) from error
        columns.append(values)
        held &= fits
    return rows_at(pa.table(columns, names=names), np.flatnonzero(held))


def _to_compute(values: pa.Array) -> pa.Array:
    """Return values in the type to compute in, as columns give theirs: no dictionaries, views or half floats."""
    return computed(values, compute_type(values.type))
