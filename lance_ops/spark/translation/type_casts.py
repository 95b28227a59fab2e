"""Cast record batches between a table's types and the types that Spark sees, in both directions.

Arrow's cast is right for most flat columns; `store_assignment` has the others. It is not right for three properties of
nested columns. A struct's child may hold
arbitrary values where the struct is null; a list of the wrong length there stops a cast to a fixed-size list. Nulls
pass silently into a child that allows none. Timestamps finer than a microsecond must be cut, not refused. So this
module takes nested columns apart, casts the children, and puts them together again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core import arrow
from lance_ops.core.arrow import array_of_numbers
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.local_times import moments_of
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule
from lance_ops.spark.translation.store_assignment import check_assignable, decimals_of_floats, rounded

__all__ = ["fit"]


def fit(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    case_rule: CaseRule = CaseRule.SENSITIVE,
    time_zone: str = "UTC",
    *,
    rounds: bool = False,
) -> pa.RecordBatch:
    """Return the columns of `schema`, found in `batch` by name, with exactly its types and names.

    A date, or a timestamp without a zone, becomes a moment by the clock of `time_zone`. With `rounds` decimals lose
    digits after the point, and fractions become whole numbers, as Spark assigns them. Raises `SchemaMismatch` naming a
    column that is missing, or whose values do not fit the wanted type, or that the cast would give another meaning.
    """
    columns, rules = [], _Rules(case_rule, time_zone, rounds)
    for field in schema:
        found = case_rule.find(field.name, batch.schema.names)
        if found is None:
            raise SchemaMismatch(f"no column {field.name!r}: there are {', '.join(batch.schema.names)}")
        columns.append(_field(batch.column(found), field, field.name, 0, rules))
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class _Rules:
    """How names match, in which zone a date or a clock without a zone is a moment, and whether numbers are rounded."""

    case_rule: CaseRule
    time_zone: str
    rounds: bool


def _field(array: pa.Array, field: pa.Field, path: str, num_parent_nulls: int, rules: _Rules) -> pa.Array:
    """Cast a child.

    It may be null where its parent is null (`num_parent_nulls` times), elsewhere only if it is nullable.
    """
    if not field.nullable and array.null_count > num_parent_nulls:
        raise SchemaMismatch(f"column {path!r} holds nulls and may not")
    return _cast(array, field.type, path, rules)


def _cast(array: pa.Array, wanted: pa.DataType, path: str, rules: _Rules) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pt.is_dictionary(array.type) and not pt.is_dictionary(wanted):
        array = array.dictionary_decode()
    given = array.type
    if given == wanted:
        return array
    if pt.is_struct(given) and pt.is_struct(wanted):
        return _struct(array, wanted, path, rules)
    if pt.is_map(given) and pt.is_map(wanted):
        return _map(array, wanted, path, rules)
    if pt.is_nested(given) and pt.is_nested(wanted) and not (pt.is_struct(given) or pt.is_struct(wanted)):
        return _list(array, wanted, path, rules)
    return _leaf(array, wanted, path, rules)


def _struct(array: pa.Array, wanted: pa.DataType, path: str, rules: _Rules) -> pa.Array:
    children = dict(zip((child.name for child in array.type), array.flatten(), strict=True))
    fields = list(wanted)
    found = [rules.case_rule.find(field.name, tuple(children)) for field in fields]
    if None in found or not len({*found}) == len(found) == len(children):
        raise SchemaMismatch(
            f"column {path!r} has fields {', '.join(children)}, not {', '.join(f.name for f in fields)}: "
            "give each one, NULL where there is no value"
        )
    cast = [
        _field(children[name], field, f"{path}.{field.name}", array.null_count, rules)
        for name, field in zip(found, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(cast, fields=fields, mask=array.is_null())


def _list(array: pa.Array, wanted: pa.DataType, path: str, rules: _Rules) -> pa.Array:
    values = _field(array.flatten(), wanted.value_field, f"{path}.{wanted.value_field.name}", 0, rules)
    plain = pa.list_(wanted.value_field)
    rebuilt = pa.ListArray.from_arrays(_offsets(array), values, type=plain, mask=array.is_null())
    return rebuilt if plain == wanted else _attempt(lambda: rebuilt.cast(wanted), array.type, wanted, path)


def _map(array: pa.Array, wanted: pa.DataType, path: str, rules: _Rules) -> pa.Array:
    given = array.type
    entry = pa.struct([given.key_field, given.item_field])
    lists = array.cast(pa.list_(pa.field("entries", entry, nullable=False)))
    keys, items = lists.flatten().flatten()
    return pa.MapArray.from_arrays(
        _offsets(lists),
        _field(keys, wanted.key_field, f"{path}.key", 0, rules),
        _field(items, wanted.item_field, f"{path}.value", 0, rules),
        type=wanted,
        mask=array.is_null(),
    )


def _offsets(array: pa.Array) -> pa.Array:
    """Return offsets into `array.flatten()`, which drops the items of null slots and of slots outside the slice."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    return pa.concat_arrays([array_of_numbers(np.zeros(1, np.int32)), pc.cumulative_sum(lengths).cast(pa.int32())])


def _leaf(array: pa.Array, wanted: pa.DataType, path: str, rules: _Rules) -> pa.Array:
    given = array.type
    check_assignable(array, wanted, path)
    if rules.rounds:
        array = _attempt(lambda: rounded(array, wanted), given, wanted, path)
    if pt.is_timestamp(given) and pt.is_timestamp(wanted) and given.unit == "ns" != wanted.unit:
        array = _without_nanoseconds(array)
    if pt.is_duration(given) and given.unit == "ns" and pt.is_duration(wanted) and wanted.unit != "ns":
        array = array.cast(pa.duration("us"), safe=False)
    elif pt.is_timestamp(given) and pt.is_timestamp(wanted) and given.tz is not None and wanted.tz is None:
        array = pc.local_timestamp(array)  # Spark gives moments in the session's time zone
    elif pt.is_timestamp(wanted) and wanted.tz is not None and (pt.is_date(given) or getattr(given, "tz", "") is None):
        array = _attempt(lambda: moments_of(array, rules.time_zone), given, wanted, path)
    elif pt.is_floating(given) and pt.is_decimal(wanted):
        floats = array
        array = _attempt(lambda: decimals_of_floats(floats, wanted), given, wanted, path)
        # By way of their texts, because Arrow's cast of decimals to floats may miss the nearest float.
        if not rules.rounds and not pc.all(pc.equal(array.cast(pa.string()).cast(given), floats), min_count=0).as_py():
            raise SchemaMismatch(f"column {path!r} is {given} and does not fit {wanted}: the decimals would be rounded")
    elif (between := arrow.type_between(array.type, wanted)) != array.type:
        array = array.cast(between)
    if pt.is_dictionary(wanted) and not pt.is_dictionary(given):
        return _attempt(lambda: arrow.as_dictionary(array, wanted), given, wanted, path)
    return _attempt(lambda: array.cast(wanted), given, wanted, path)


def _without_nanoseconds(array: pa.Array) -> pa.Array:
    """Return timestamps in microseconds, each the last one that is not later, in the same time zone."""
    zone = array.type.tz
    moments = array.cast(pa.timestamp("ns", None if zone is None else "UTC"))  # a clock shows some moments twice
    return pc.floor_temporal(moments, unit="microsecond").cast(pa.timestamp("us", zone))


def _attempt(cast: Callable[[], pa.Array], given: pa.DataType, wanted: pa.DataType, path: str) -> pa.Array:
    try:
        return cast()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"column {path!r} is {given} and does not fit {wanted}: {error}") from error
