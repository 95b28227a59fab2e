"""Columns that a statement declares in Spark's words."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StringType, StructType, VarcharType

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.spark.translation import arrow_schema_of, schema_from_spark

__all__ = ["declared_arrow_schema", "declared_columns"]


def declared_columns(columns: str) -> StructType:
    """Return the columns that Spark's words declare.

    Raises `UnsupportedFeature` for a NOT NULL within one, a text of bounded length, and a collation.
    """
    declared = StructType.fromDDL(columns)
    assert isinstance(declared, StructType)
    for column in declared.fields:
        if isinstance(column.dataType, CharType | VarcharType):
            raise UnsupportedFeature(
                f"column {column.name} of type {column.dataType.simpleString()} (declare it STRING)"
            )
        if isinstance(column.dataType, StringType) and column.dataType.simpleString() != "string":
            raise UnsupportedFeature(f"a collation of column {column.name} (tables compare the bytes of texts)")
        path = next(_required_within(column.dataType), None)
        if path is not None:
            raise UnsupportedFeature(
                f"NOT NULL of a struct's field, {column.name}.{path} (leave it out, or declare the column NOT NULL)"
            )
    return declared


def _required_within(kind: DataType) -> Iterator[str]:
    """Yield the paths of struct fields, at any depth of a type, that are declared NOT NULL."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            if not field.nullable:
                yield field.name
            yield from (f"{field.name}.{path}" for path in _required_within(field.dataType))
    elif isinstance(kind, ArrayType):
        yield from (f"element.{path}" for path in _required_within(kind.elementType))
    elif isinstance(kind, MapType):
        yield from (f"value.{path}" for path in _required_within(kind.valueType))


def declared_arrow_schema(declared: StructType) -> pa.Schema:
    """Return columns in the types of a table; all are nullable."""
    return schema_from_spark(arrow_schema_of(declared), {})
