"""Columns that a statement declares in Spark's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StringType, StructType, VarcharType

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.spark.sql_access.words import Kind, Reader, Word
from lance_ops.spark.translation import arrow_schema_of, schema_from_spark

__all__ = ["declared_arrow_schema", "declared_columns"]

_LAST = "a new column is the last one: leave the clause out, and order the columns in SELECT"
_KEY = "declare a key in a column's metadata, lance-schema:unenforced-primary-key; no table enforces keys"
_REFUSED = {
    "DEFAULT": "write the value in INSERT; ADD COLUMN a AS (value) gives it to the rows that are there",
    "GENERATED": "compute the value in INSERT, or once by ADD COLUMN a AS (expression)",
    "AFTER": _LAST,
    "FIRST": _LAST,
    "PRIMARY": _KEY,
    "FOREIGN": _KEY,
    "UNIQUE": _KEY,
    "CHECK": "no table enforces one: test rows before INSERT",
}
"""Words that begin a clause of a column which Lance tables do not have, and what to do instead."""
_OPENING = {"(": 1, "<": 1, ")": -1, ">": -1}


def declared_columns(columns: str) -> StructType:
    """Return the columns that Spark's words declare.

    Raises `UnsupportedFeature` for a NOT NULL within one, a text of bounded length, a collation, and a clause that
    columns of a Lance table do not have.
    """
    try:
        declared = StructType.fromDDL(columns)
    except ParseException:
        _check_clauses(columns)
        raise
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


def _check_clauses(columns: str) -> None:
    """Raise `UnsupportedFeature` for the first clause in the columns' declarations that tables do not have."""
    reader, depth, begins = Reader(columns), 0, 0
    for at, word in enumerate(reader.words):
        depth += _OPENING.get(word.value, 0) if word.kind is Kind.SIGN else 0
        if depth == 0 and word.value == ",":
            begins = at + 1
        elif depth == 0 and word.upper in _REFUSED and (at >= begins + 2 or _begins_constraint(reader.words, at)):
            raise UnsupportedFeature(f"{word.upper} for a column of a Lance table ({_REFUSED[word.upper]})")
        elif depth == 0 and word.value == "." and at == begins + 1:
            name = reader.words[begins].value
            raise UnsupportedFeature(
                f"a new field of column {name} alone (add a column AS (named_struct('a', {name}.a, …)), drop {name}, "
                "and rename the new column)"
            )


def _begins_constraint(words: Sequence[Word], at: int) -> bool:
    """Return whether a word that stands in place of a column's name begins a constraint, as PRIMARY KEY (id)."""
    return at + 1 < len(words) and words[at + 1].upper in ("KEY", "(")


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
