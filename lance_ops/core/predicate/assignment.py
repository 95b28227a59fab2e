"""Assignments of new values to columns: parse an expression, evaluate it, and cast it to the column's type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import is_number, is_text
from lance_ops.core.errors import InvalidFilter, InvalidInput
from lance_ops.core.predicate import sql
from lance_ops.core.predicate.binding import build
from lance_ops.core.predicate.tree import Cast, Expression, Literal
from lance_ops.core.predicate.types import compute_type
from lance_ops.core.records import dataclass

__all__ = ["Assignment", "parse_assignment", "parse_value"]


@dataclass(frozen=True)
class Assignment:
    """A column, its type, and the expression of its new values."""

    column: str
    arrow_type: pa.DataType
    value: Expression

    @property
    def is_typed_null(self) -> bool:
        """Whether the expression is a constant null that has a type, such as `CAST(NULL AS INT)`."""
        value = self.value
        if isinstance(value, Cast) and not value.lenient:
            value = value.operand
        return isinstance(value, Literal) and not value.value.is_valid and not pa.types.is_null(self.arrow_type)

    def evaluate(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the value for each row, in the column's type; raise `InvalidInput` if one cannot be computed."""
        try:
            values = self.value.evaluate(rows)
            if isinstance(values, pa.Scalar):
                values = pa.repeat(values, rows.num_rows)
            return _stored(values, self.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise InvalidInput(f"column {self.column!r} = {self.value.to_sql()} cannot be computed: {error}") from error


def parse_value(text: str, schema: pa.Schema) -> Expression:
    """Parse an expression over the columns of a schema, in the dialect of `parse_filter`.

    Raises `InvalidFilter` and `UnsupportedFeature` as `parse_filter` does.
    """
    if not isinstance(text, str):
        raise InvalidFilter(f"an expression is SQL text, not {type(text).__name__}: {text!r}")
    return sql.parse_sql_value(text, schema)


def parse_assignment(column: str, arrow_type: pa.DataType, text: str, schema: pa.Schema) -> Assignment:
    """Parse a column's new value, cast to its type as SQL does; only whole numbers can become text."""
    value = parse_value(text, schema)
    target = compute_type(arrow_type)
    if value.type == target or pa.types.is_null(value.type):
        return Assignment(column, arrow_type, value)
    if not _fits(value, target):
        raise InvalidFilter(f"column {column!r} is {arrow_type} and {value.to_sql()} is {value.type}: cast it")
    return Assignment(column, arrow_type, build.cast(value, target))


def _fits(value: Expression, target: pa.DataType) -> bool:
    """Whether SQL casts implicitly: between types of one kind, from literal text, and to text."""
    given = value.type
    if is_text(target) or (is_text(given) and isinstance(value, Literal)):
        return not pa.types.is_nested(given)
    if is_number(target) or pa.types.is_boolean(target):
        return is_number(given) or pa.types.is_boolean(given)
    if pa.types.is_nested(target):
        return bool(pa.types.is_nested(given))
    return not (is_number(given) or is_text(given) or pa.types.is_nested(given))


def _stored(values: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    if values.type == arrow_type:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), arrow_type)
    if pa.types.is_dictionary(arrow_type):
        values = values.cast(arrow_type.value_type).dictionary_encode()
    return pc.cast(values, arrow_type)
