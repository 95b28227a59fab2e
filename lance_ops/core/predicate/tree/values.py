"""Expressions that are not conditions: columns, literals, casts and calls of functions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import is_text
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import InvalidInput
from lance_ops.core.predicate.arrow_type_names import spell_arrow_type
from lance_ops.core.predicate.casts import cast_each, cast_values
from lance_ops.core.predicate.functions import FUNCTIONS
from lance_ops.core.predicate.tree.column_stats import Bounds, Statistics
from lance_ops.core.predicate.tree.nodes import Expression, StoredExpression, Values
from lance_ops.core.predicate.tree.sql_spelling import spell_path, spell_scalar, spell_text, sql_name
from lance_ops.core.predicate.types import computed, convert
from lance_ops.core.records import dataclass

__all__ = ["Call", "Cast", "Column", "ComputedNumber", "Literal", "PointNumber"]


@dataclass(frozen=True)
class Column(StoredExpression):
    """A column, or a field of a struct column, by its exact name; a field is null where its struct is null."""

    path: tuple[str, ...]
    arrow_type: pa.DataType

    @property
    def name(self) -> str:
        """The path's names joined by dots; a name that contains a dot is back-quoted."""
        return ".".join(f"`{name}`" if "." in name else name for name in self.path)

    @property
    def stored_type(self) -> pa.DataType:
        return self.arrow_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        if self.path[0] not in batch.schema.names:
            raise InvalidInput(f"the filter needs column {self.name!r}, and the batch has only {batch.schema.names}")
        values = batch.column(self.path[0])
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if len(self.path) > 1:
            values = pc.struct_field(values, list(self.path[1:]))
        return computed(values, self.type)

    def bounds(self, stats: Statistics) -> Bounds:
        known = stats.get(self.name)
        return Bounds.of_column(known, self.type) if known is not None else Bounds()

    def to_sql(self) -> str:
        return spell_path(self.path)

    def _own_columns(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True)
class Literal(Expression):
    """A value written in the filter."""

    value: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        return self.value.type

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return self.value

    def evaluate_as(self, batch: pa.RecordBatch, target: pa.DataType) -> Values:
        if target not in self._converted:
            self._converted[target] = convert(self.value, target)
        return self._converted[target]

    @cached_property
    def _converted(self) -> dict[pa.DataType, pa.Scalar]:
        """The value in each type requested so far; cached, because it is the same for every batch."""
        return {}

    def bounds(self, stats: Statistics) -> Bounds:
        return Bounds.of_literal(self.value) if not pa.types.is_nested(self.type) else Bounds()

    def to_sql(self) -> str:
        return spell_scalar(self.value)


@dataclass(frozen=True)
class ComputedNumber(Literal):
    """A number computed from literals. Beside a column it keeps its type, where a literal takes the column's."""


@dataclass(frozen=True)
class PointNumber(Literal):
    """A number written with a decimal point: exact beside decimals, and a double anywhere else."""

    @property
    def stored_type(self) -> pa.DataType:
        return pa.float64()

    def to_sql(self) -> str:
        digits = format(self.value.as_py(), "f")
        return digits if "." in digits else f"{digits}.0"


@dataclass(frozen=True)
class Cast(StoredExpression):
    """A value cast to another type. A value that does not fit is an error, or null if `lenient` (SQL's TRY_CAST)."""

    operand: Expression
    target: pa.DataType
    lenient: bool = False

    @property
    def stored_type(self) -> pa.DataType:
        return self.target

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        values = self.operand.evaluate(batch)
        if pa.types.is_float16(self.operand.stored_type) and is_text(self.type):
            values = pc.cast(values, pa.float16())  # has a spelling of its own
        cast_to = self.target if pa.types.is_float16(self.target) else self.type  # half floats lose digits
        return computed(cast_each(values, cast_to) if self.lenient else cast_values(values, cast_to), self.type)

    def to_sql(self) -> str:
        operand, name = self.operand.to_sql(), sql_name(self.target)
        if name is None:
            function = "arrow_try_cast" if self.lenient else "arrow_cast"
            return f"{function}({operand}, {spell_text(spell_arrow_type(self.target))})"
        return f"{'TRY_CAST' if self.lenient else 'CAST'}({operand} AS {name})"


@dataclass(frozen=True)
class Call(Expression):
    """A call of a function in the function table, by the function's first name."""

    function: str
    arguments: tuple[Expression, ...]
    result_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        values = [argument.evaluate(batch) for argument in self.arguments]
        return FUNCTIONS[self.function].evaluate(*values)

    def to_sql(self) -> str:
        operator = FUNCTIONS[self.function].operator
        if operator:
            return f"({operator.join(argument.to_operand_sql() for argument in self.arguments)})"
        return f"{self.function}({', '.join(argument.to_sql() for argument in self.arguments)})"
