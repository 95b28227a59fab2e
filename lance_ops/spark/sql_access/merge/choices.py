"""Choose the clause of a merge that applies to each pair of rows, and compute the values of this clause.

Spark pairs each source row with each row of the table that meets ON. A pair gets the values of the first clause whose
condition is true. A source row without a match is a pair without a row of the table, and the other way round, if
clauses are about rows that no source row matches. Pairs that no clause takes are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import DataType, NullType

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS
from lance_ops.spark.session_kind import is_switched_on
from lance_ops.spark.sql_access.expressions import unused_name
from lance_ops.spark.sql_access.merge.clauses import Action
from lance_ops.spark.translation import assigned_value, is_nested, quoted_path

__all__ = ["Choice", "Choices", "choose_rows"]


@dataclass(frozen=True)
class Choice:
    """A clause: what it does, its condition, and its values by the table's column, as SQL over both tables."""

    action: Action
    condition: str | None
    values: Mapping[str, str]


@dataclass(frozen=True)
class Choices:
    """The clauses for source rows that match a row of the table, and for rows of one side that match none, in order.

    `unmatched_by_target` are those for source rows, and `unmatched_by_source` those for rows of the table.
    """

    matched: Sequence[Choice]
    unmatched_by_target: Sequence[Choice]
    unmatched_by_source: Sequence[Choice]

    def __iter__(self) -> Iterator[Choice]:
        yield from self.matched
        yield from self.unmatched_by_target
        yield from self.unmatched_by_source

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that any clause has a value for."""
        return tuple(dict.fromkeys(name for choice in self for name in choice.values))


def choose_rows(
    source: DataFrame,
    source_name: str,
    table: DataFrame,
    target: str,
    on: str,
    choices: Choices,
    types: Mapping[str, DataType],
) -> DataFrame:
    """Pair the rows of both tables; return what happens to each pair, the address of its row, and its values.

    The clauses and `on` call the source `source_name`, and the table, which has the row addresses, `target`. `types`
    are the types of the table's columns. Raises `UnsupportedFeature` for values that Spark may change on their way to
    the type of their column.
    """
    marker = unused_name(source.columns)
    marked = source.select("*", F.lit(True).alias(marker)).alias(source_name)
    sides = (bool(choices.unmatched_by_target), bool(choices.unmatched_by_source))
    kind = {(False, False): "inner", (True, False): "left", (False, True): "right", (True, True): "full"}[sides]
    joined = marked.join(table.alias(target), F.expr(on), kind)
    address = F.col(quoted_path(target, ROW_ADDRESS))
    in_source, in_table = F.col(quoted_path(source_name, marker)).isNotNull(), address.isNotNull()

    def chosen(value: Callable[[Choice], Column]) -> Column:
        of_both, of_source, of_table = (
            _first(side, value) for side in (choices.matched, choices.unmatched_by_target, choices.unmatched_by_source)
        )
        return F.when(in_source & in_table, of_both).when(in_source, of_source).otherwise(of_table)

    values = {name: _ValueOf(name, types[name], _types_of_values(joined, choices, name)) for name in choices.names}
    for value in values.values():
        value.check(joined)
    action = chosen(lambda choice: F.lit(choice.action))
    columns = (chosen(value).alias(f"value_{number}") for number, value in enumerate(values.values()))
    pairs = joined.select(action.alias("action"), address.alias("address"), *columns).where("action IS NOT NULL")
    return pairs.toDF("action", "address", *choices.names)


def _first(choices: Sequence[Choice], value: Callable[[Choice], Column]) -> Column:
    """Return the value of the first clause whose condition is true; null if there is none."""
    found = F.lit(None)
    for choice in reversed(choices):
        is_met = F.lit(True) if choice.condition is None else F.coalesce(F.expr(choice.condition), F.lit(False))
        found = F.when(is_met, value(choice)).otherwise(found)
    return found


def _types_of_values(joined: DataFrame, choices: Choices, name: str) -> dict[str, DataType]:
    """Return the types of the expressions that clauses have for a column."""
    texts = dict.fromkeys(choice.values[name] for choice in choices if name in choice.values)
    found = joined.select(*(F.expr(text).alias(f"value_{number}") for number, text in enumerate(texts))).schema
    return {text: field.dataType for text, field in zip(texts, found, strict=True)}


@dataclass(frozen=True)
class _ValueOf:
    """The value of one column by a clause, as Spark assigns it to a column of type `kind`; null without a value.

    `given` are the types of the values. Nested values are cast only if they are of several types, because Spark would
    bring these to a type of its own.
    """

    name: str
    kind: DataType
    given: Mapping[str, DataType]

    def __call__(self, choice: Choice) -> Column:
        text = choice.values.get(self.name)
        if text is None:
            return F.lit(None)
        if is_nested(self.kind):
            return F.expr(text).cast(self.kind) if self._has_several_types else F.expr(text)
        refusal = f"MERGE: a value does not fit column {self.name!r} of type {self.kind.simpleString()}"
        return assigned_value(F.expr(text), self.given[text], self.kind, refusal)

    def check(self, frame: DataFrame) -> None:
        """Raise `UnsupportedFeature` for nested values of several types, whose cast would not fail but give nulls."""
        if (
            is_nested(self.kind)
            and self._has_several_types
            and not is_switched_on(frame.sparkSession, "spark.sql.ansi.enabled")
        ):
            raise UnsupportedFeature(
                f"clauses of MERGE that give column {self.name!r} values of several types, in a session without "
                f"spark.sql.ansi.enabled (cast them to {self.kind.simpleString()} in the statement)"
            )

    @property
    def _has_several_types(self) -> bool:
        return len({kind.simpleString() for kind in self.given.values() if not isinstance(kind, NullType)}) > 1
