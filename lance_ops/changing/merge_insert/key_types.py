"""Refuse keys of a source that the cast to the table's types changes: they would match rows that they do not equal.

Arrow gives no error when it cuts a moment to its day or to its time of day. It gives none when it rounds a number to a
float of fewer bits, a decimal to a float, or a float to the digits of a decimal, or takes each number but 0 for true.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow import is_number, type_between
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.schema import split_path

__all__ = ["cast_may_change", "check_key_casts", "check_key_values"]

_DIGITS_OF_DOUBLE = 15
"""Each decimal of this many digits has a double of its own, which no other one shares."""


def cast_may_change(given: pa.DataType, stored: pa.DataType) -> bool:
    """Return whether a cast from the type `given` to `stored` may change a key without an error."""
    given, stored = (kind.value_type if pt.is_dictionary(kind) else kind for kind in (given, stored))
    if pt.is_date(stored) or pt.is_time(stored):
        return bool(pt.is_timestamp(given))
    if pt.is_decimal(stored):
        return bool(pt.is_floating(given))
    if pt.is_boolean(stored):
        return is_number(given)
    if not pt.is_floating(stored):
        return False
    if pt.is_decimal(given):
        return bool(stored.bit_width < 64 or given.precision > _DIGITS_OF_DOUBLE)
    return bool(pt.is_floating(given)) and given.bit_width > stored.bit_width


def check_key_casts(given: pa.Schema, on: Iterable[str], table: pa.Schema) -> None:
    """Raise `SchemaMismatch` for a key whose cast from the source's type to the table's may change values.

    A key that one of the schemas lacks is passed over.
    """
    for path in on:
        kinds = [_type_at(schema, path) for schema in (given, table)]
        if None not in kinds and cast_may_change(*kinds):
            raise SchemaMismatch(f"{_types_of(path, *kinds)}: the cast may change values ({_way(kinds[1])})")


def check_key_values(path: str, given: pa.Array, fitted: pa.Array) -> None:
    """Raise `SchemaMismatch` naming a value of a source's key that its cast to the table's type has changed."""
    given, fitted = (each.dictionary_decode() if pt.is_dictionary(each.type) else each for each in (given, fitted))
    if not cast_may_change(given.type, fitted.type):
        return
    changed = given.filter(_is_changed(given, fitted))
    if len(changed):
        raise SchemaMismatch(
            f"{_types_of(path, given.type, fitted.type)}: the cast changes {changed[0]} ({_way(fitted.type)})"
        )


def _is_changed(given: pa.Array, fitted: pa.Array) -> pa.Array:
    if pt.is_time(fitted.type):  # a moment has a day besides
        return given.is_valid()
    if pt.is_decimal(given.type) and pt.is_float64(fitted.type):
        shortest = (None if value is None else Decimal(repr(value)) for value in fitted.to_pylist())
        return pa.array([each != value for each, value in zip(shortest, given.to_pylist(), strict=True)], pa.bool_())
    is_changed = pc.not_equal(_comparable(given, given.type), _comparable(fitted, given.type))
    return pc.and_not(is_changed, pc.is_nan(given)) if pt.is_floating(given.type) else is_changed


def _comparable(values: pa.Array, given: pa.DataType) -> pa.Array:
    """Return keys in a type in which those before the cast and those after it compare: numbers as doubles."""
    if pt.is_timestamp(given):
        return values.cast(given)
    return values.cast(type_between(values.type, pa.float64())).cast(pa.float64())


def _type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    fields: Iterable[pa.Field] = schema
    kind = None
    for name in [path] if path in schema.names else split_path(path):
        found = [field for field in fields if field.name.lower() == name.lower()]
        if not found:
            return None
        kind = next((field.type for field in found if field.name == name), found[0].type)
        fields = kind if pt.is_struct(kind) else ()
    return kind


def _types_of(path: str, given: pa.DataType, stored: pa.DataType) -> str:
    return f"key {path!r} is {stored} in the table and {given} in the source"


def _way(stored: pa.DataType) -> str:
    return f"cast the source's key to {stored}, if that is what you mean"
