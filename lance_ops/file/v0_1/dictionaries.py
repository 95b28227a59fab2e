"""The dictionaries of 0.1 files: for each field, one list of values to which the keys of all its batches refer.

A table stores one list for all its files, in its manifest. The first write fixes the list: readers treat a longer list
as a different one.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.arrow import child_fields, children_of, is_text_or_bytes, with_child_fields, with_children
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import Dictionary, Field, Schema, with_dictionaries

__all__ = ["Dictionaries", "may_be_dictionary_values"]


def may_be_dictionary_values(arrow_type: pa.DataType) -> bool:
    """Return whether readers of 0.1 files support dictionaries of the type."""
    return bool(is_text_or_bytes(arrow_type) or pt.is_integer(arrow_type))


class Dictionaries:
    """The values of a schema's dictionary columns while files are written.

    Dictionaries that the schema already has do not change; the others grow by the values of the batches.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._values = {
            field.id: field.dictionary.values
            for field in schema.walk()
            if field.dictionary is not None and field.dictionary.values is not None
        }
        self._fixed = frozenset(self._values)

    def values_of(self, field: Field) -> pa.Array:
        """Return the values of a dictionary column so far."""
        return self._values.get(field.id, pa.nulls(0, field.arrow_type.value_type))

    def filled(self) -> Schema:
        """Return the schema with the values collected so far."""

        def with_values(field: Field) -> Dictionary:
            values = self.values_of(field)
            return Dictionary(0, len(values), values)

        return with_dictionaries(self._schema, with_values)

    def as_keys(self, field: Field, array: pa.Array) -> pa.Array:
        """Return the array with its dictionaries, at any depth, replaced by their keys.

        Raises `SchemaMismatch` for a null, and for a value that a fixed dictionary lacks; `InvalidInput` for more
        values than the keys can count.
        """
        if not any(node.is_dictionary for node in field.walk()):
            return array
        if field.is_dictionary:
            return self._keys_of(field, array)
        _refuse_nulls(field, array.null_count)
        children = [self.as_keys(below, child) for below, child in zip(field.children, children_of(array), strict=True)]
        fields = [each.with_type(child.type) for each, child in zip(child_fields(array.type), children, strict=True)]
        return with_children(array, children, with_child_fields(array.type, fields))

    def _keys_of(self, field: Field, array: pa.Array) -> pa.Array:
        given, known = array.dictionary, self.values_of(field)
        if given.equals(known) and not array.indices.null_count:
            return array.indices
        positions = _positions(given, known)
        if field.id not in self._fixed:
            known = self._add_missing(field, known, given.filter(positions.is_null()))
            positions = _positions(given, known)
        keys = positions.take(array.indices)
        if known.null_count:  # the null stands for an empty string, which readers show as a null
            keys = pc.if_else(array.is_null(), pc.index(known.is_null(), True).cast(keys.type), keys)
        self._refuse_unknown(field, array, keys, known)
        try:
            return keys.cast(field.arrow_type.index_type)
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"column {field.name!r}: {len(known)} distinct values, too many for its keys") from error

    def _add_missing(self, field: Field, known: pa.Array, missing: pa.Array) -> pa.Array:
        fresh = missing.drop_null().unique()
        if is_text_or_bytes(fresh.type) and pc.any(pc.equal(pc.binary_length(fresh), 0)).as_py():
            raise SchemaMismatch(
                f"column {field.name!r} has empty strings in its dictionary, and file version 0.1 cannot tell them "
                "from nulls: use another value, a column that is no dictionary, or a later version"
            )
        self._values[field.id] = pa.concat_arrays([known, fresh])
        return self._values[field.id]

    def _refuse_unknown(self, field: Field, array: pa.Array, keys: pa.Array, known: pa.Array) -> None:
        if not keys.null_count:
            return
        value = array.filter(keys.is_null())[0].as_py()
        if value is None:
            _refuse_nulls(field, keys.null_count)
        raise SchemaMismatch(
            f"column {self._schema.path_of(field.id)!r} has the value {value!r}, which is not among the {len(known)} "
            "of the table's dictionary, and file version 0.1 cannot add to it: overwrite the table, or write a later "
            "version"
        )


def _refuse_nulls(field: Field, null_count: int) -> None:
    if null_count:
        raise SchemaMismatch(
            f"column {field.name!r} has {null_count} nulls, and file version 0.1 holds none: "
            "fill them, or write a later version"
        )


def _positions(values: pa.Array, known: pa.Array) -> pa.Array:
    """Return the position of each value among the known values; null for a value that is not among them."""
    return pc.index_in(values, value_set=known)
