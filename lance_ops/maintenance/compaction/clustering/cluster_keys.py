"""Order rows by columns, or along a Z curve through columns, and find the range of keys that a row falls in.

A row's key is followed by its address, so no two rows are equal: many rows of one value are still cut into ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
import pyarrow as pa

from lance_ops import indices
from lance_ops.core import predicate
from lance_ops.core.arrow import array_of_numbers, numbers_of, rows_at
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS

__all__ = ["Curve", "Linear", "ZOrder", "cluster_columns", "cut_points", "keyed", "order_of", "ranks"]

_CODE_BITS = 63
_MAX_BITS_PER_COLUMN = 10


class Curve(Protocol):
    """Maps the values of the cluster columns to sort keys."""

    def keys(self, values: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the columns to sort by, the first one first; `values` has an array for each cluster column."""
        ...


@dataclass(frozen=True)
class Linear:
    """The columns themselves: rows of equal first values are sorted by the second column, and so on."""

    def keys(self, values: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the values."""
        return list(values)


@dataclass(frozen=True)
class ZOrder:
    """A Z curve: rows that are near in every column are mostly near on the curve.

    A value counts as the number of `cuts` of its column that are not greater. The cuts are quantiles of a sample, so a
    skewed column is spread evenly. The bits of the columns' numbers take turns in the key, highest bits first.
    """

    cuts: tuple[pa.RecordBatch, ...]
    num_bits: int

    @classmethod
    def of(cls, sample: Sequence[pa.Array]) -> Self:
        """Choose the cuts from sampled values, an array for each column."""
        num_bits = min(_CODE_BITS // len(sample), _MAX_BITS_PER_COLUMN)
        return cls(tuple(cut_points(_alone(values), 1 << num_bits) for values in sample), num_bits)

    def keys(self, values: Sequence[pa.Array]) -> list[pa.Array]:
        """Return one column of positions on the curve."""
        numbers = [ranks(cuts, _alone(column)).view(np.uint64) for cuts, column in zip(self.cuts, values, strict=True)]
        codes: Uint64Array = np.zeros(len(values[0]), np.uint64)
        for bit in reversed(range(self.num_bits)):
            for number in numbers:
                codes = codes << np.uint64(1) | number >> np.uint64(bit) & np.uint64(1)
        return [array_of_numbers(codes)]


def cluster_columns(schema: Schema, paths: Sequence[str]) -> tuple[predicate.Column, ...]:
    """Return the columns to order rows by.

    Raises `InvalidInput` for an unknown column, one that is named twice, one inside a list, and for too many columns;
    `UnsupportedFeature` for values without an order.
    """
    if len(set(paths)) < len(paths):
        raise InvalidInput(f"cluster_by names a column twice: {', '.join(paths)}")
    if len(paths) > _CODE_BITS:
        raise InvalidInput(f"cluster_by has {len(paths)} columns: at most {_CODE_BITS} can count")
    columns = []
    for path in paths:
        lineage = schema.single_valued_lineage(path, "cluster_by")
        if not indices.is_sortable(lineage[-1].arrow_type):
            raise UnsupportedFeature(f"cluster_by on values of {lineage[-1].arrow_type}", f"column {path!r}")
        columns.append(predicate.Column(tuple(field.name for field in lineage), lineage[-1].arrow_type))
    return tuple(columns)


def keyed(keys: Sequence[pa.Array], addresses: pa.Array) -> pa.RecordBatch:
    """Return the keys of rows with their addresses, as `order_of` sorts them."""
    names = [f"key {number}" for number in range(len(keys))]
    return pa.RecordBatch.from_arrays([*keys, addresses], [*names, ROW_ADDRESS])


def order_of(keys: pa.RecordBatch) -> indices.RowOrder:
    """Return the order of all columns, ascending, with nulls before all values."""
    return indices.RowOrder((indices.Direction(nulls_first=True),) * keys.num_columns)


def cut_points(keys: pa.RecordBatch, num_ranges: int) -> pa.RecordBatch:
    """Return at most `num_ranges` - 1 of the keys, in order, that cut them into ranges of about equal numbers."""
    ordered = order_of(keys).sort(keys)
    places = np.arange(1, num_ranges, dtype=np.int64) * keys.num_rows // num_ranges
    return rows_at(ordered, np.unique(places[places < keys.num_rows]) if keys.num_rows else places[:0])


def ranks(cuts: pa.RecordBatch, keys: pa.RecordBatch) -> Int64Array:
    """Return for each key how many of the sorted cuts are not greater: the number of the range that it falls in."""
    order = numbers_of(order_of(keys).indices(pa.concat_batches([cuts, keys]))).astype(np.int64)
    is_cut = order < cuts.num_rows  # equal rows keep their order, so a cut comes before the keys that are equal to it
    found: Int64Array = np.empty(len(order), np.int64)
    found[order] = np.cumsum(is_cut)
    return found[cuts.num_rows :]


def _alone(values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([values], ["key 0"])
