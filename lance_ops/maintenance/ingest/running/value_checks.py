"""Refuse rows without a key, and values that the cast to the table's types changes without an error of Arrow.

A number beyond the range of a shorter float becomes infinite, and a moment becomes its day. Of a key, each change is
refused: rows of different keys would become rows of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.changing.merge_insert import cast_may_change, check_key_values
from lance_ops.core.arrow import items_of, type_between
from lance_ops.core.errors import SchemaMismatch
from lance_ops.writing import conform_to_schema

__all__ = ["ValueChecks"]


class ValueChecks:
    """Checks the batches of one file, which have one schema; `num_rows` counts their rows.

    `stored` are the types that the rows are written in, and `keys` the columns that need a value in each row.
    """

    def __init__(self, stored: pa.Schema, keys: Sequence[str]) -> None:
        self.num_rows = 0
        self._stored = stored
        self._keys = keys
        self._lossy: dict[str, pa.DataType] | None = None

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise `SchemaMismatch` for a missing key, and for a value that would be written as another one.

        Only columns whose types may change values are looked at.
        """
        if self._lossy is None:
            types = {field.name: field.type for field in self._stored}
            self._lossy = {
                field.name: types[field.name]
                for field in batch.schema
                if field.name in types and _may_lose(field.type, types[field.name])
            }
        for name in self._keys:
            self._check_key(batch, name)
        for name, wanted in self._lossy.items():
            for path, values, kind in _leaves(name, batch.column(name), wanted):
                _check_leaf(path, values, kind)
        self.num_rows += batch.num_rows

    def _check_key(self, batch: pa.RecordBatch, name: str) -> None:
        if name not in batch.schema.names:
            raise SchemaMismatch(f"there is no column {name!r}, by which rows are merged")
        given, field = batch.column(name), self._stored.field(name)
        if given.null_count:
            row = self.num_rows + pc.index(pc.is_null(given), True).as_py() + 1
            raise SchemaMismatch(f"row {row}: column {name!r} is null, and rows are merged by it")
        if cast_may_change(given.type, field.type):
            fitted = conform_to_schema(batch.select([name]), pa.schema([field]))
            check_key_values(name, given, fitted.column(name).combine_chunks())


def _may_lose(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a cast between these types may make a number infinite, or cut a moment."""
    if given == wanted:
        return False
    given, wanted = _plain(given), _plain(wanted)
    if _becomes_shorter(given, wanted) or _is_cut(given, wanted):
        return True
    return any(_may_lose(child.type, to) for _, child, to in _pairs(given, wanted))


def _becomes_shorter(given: pa.DataType, wanted: pa.DataType) -> bool:
    if not pt.is_floating(wanted) or wanted.bit_width == 64:
        return False
    if pt.is_floating(given):
        return bool(given.bit_width > wanted.bit_width)
    return bool(pt.is_decimal(given) or (pt.is_integer(given) and wanted.bit_width == 16))


def _is_cut(given: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pt.is_timestamp(given) and pt.is_date(wanted))


def _leaves(path: str, array: pa.Array, wanted: pa.DataType) -> Iterator[tuple[str, pa.Array, pa.DataType]]:
    """Yield the parts of an array that a cast may change, each with its path and the wanted type."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pt.is_dictionary(array.type):
        array = array.dictionary
    wanted = _plain(wanted)
    if not _children(array.type):
        yield path, array, wanted
        return
    is_struct = pt.is_struct(array.type)
    for number, child, to in _pairs(array.type, wanted):
        if _may_lose(child.type, to):
            items = array.flatten()[number] if is_struct else _items(array)
            yield from _leaves(f"{path}.{child.name}" if is_struct else path, items, to)


def _items(array: pa.Array) -> pa.Array:
    """Return the items of a list, without those beneath nulls, or the entries of a map."""
    return items_of(array)[1] if pt.is_map(array.type) else array.flatten()


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values that a type of extensions or dictionaries stands for."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return kind.value_type if pt.is_dictionary(kind) else kind


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [] if pt.is_run_end_encoded(kind) else [kind.field(number) for number in range(kind.num_fields)]


def _pairs(given: pa.DataType, wanted: pa.DataType) -> Iterator[tuple[int, pa.Field, pa.DataType]]:
    """Yield the number and field of each child of a type, and what it becomes. Fields of structs pair by name."""
    targets = _children(wanted)
    if not targets or pt.is_struct(given) != pt.is_struct(wanted):
        return
    by_name = {field.name: field.type for field in targets}
    for number, child in enumerate(_children(given)):
        to = by_name.get(child.name) if pt.is_struct(given) else targets[0].type
        if to is not None:
            yield number, child, to


def _check_leaf(path: str, values: pa.Array, wanted: pa.DataType) -> None:
    if _is_cut(values.type, wanted):
        found, loss = _with_time_of_day(values), "lose its time of day"
    else:
        found, loss = _that_become_infinite(values, wanted), "become infinite"
    if len(found):
        raise SchemaMismatch(
            f"column {path!r} is {wanted} in the table and {values.type} in the data: {found[0]} would {loss}; mend "
            "the file, or change the column's type with alter_columns"
        )


def _with_time_of_day(moments: pa.Array) -> pa.Array:
    clock = moments if moments.type.tz is None else pc.local_timestamp(moments)
    return moments.filter(pc.not_equal(clock, pc.floor_temporal(clock, unit="day")))


def _that_become_infinite(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    shorter = values.cast(type_between(values.type, wanted)).cast(wanted)
    is_infinite = pc.is_inf(shorter.cast(pa.float32()))  # which Arrow does not tell of half floats
    if not pc.any(is_infinite).as_py():
        return values[:0]
    return values.filter(pc.and_(is_infinite, pc.is_finite(values)) if pt.is_floating(values.type) else is_infinite)
