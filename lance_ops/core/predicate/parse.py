"""Parse a filter of any form (SQL text, pyarrow expression, predicate) into a predicate on a schema."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate import arrow, binding, sql, tree

__all__ = ["parse_filter"]


def parse_filter(
    given: str | pc.Expression | tree.Predicate, schema: pa.Schema, *, whatever_arrow_can: bool = False
) -> tree.Predicate:
    """Return a filter as a predicate on tables of that schema.

    Text is SQL in the dialect of the reference: back quotes around names, single or double quotes around text. A
    predicate for another schema is bound to this one. With `whatever_arrow_can`, pyarrow evaluates the conditions of a
    pyarrow expression that have no translation; such a predicate has no SQL text.

    Raises `InvalidFilter` for text that does not parse, an unknown column, types that do not fit or a value that is not
    a condition; `UnsupportedFeature` for a function or construct that this library does not know.
    """
    if isinstance(given, str):
        plain = sql.parse_plain(given, schema)
        return sql.parse_sql(given, schema) if plain is None else plain
    if isinstance(given, pc.Expression):
        return arrow.parse_arrow(given, schema, whatever_arrow_can=whatever_arrow_can)
    if not isinstance(given, tree.Predicate):
        raise InvalidFilter(f"a filter is SQL text, a pyarrow expression or a predicate, not {type(given).__name__}")
    columns = [node for node in given.walk() if isinstance(node, tree.Column)]
    if all(column == binding.resolve(schema, [binding.Name(name) for name in column.path]) for column in columns):
        return given
    return parse_filter(given.to_sql(), schema)
