"""Choose the clause of a merge that applies to each source row, and compute the values of this clause.

A merge of the library writes a source row as it is, whether it updates a row of the table or is inserted. So where
values or conditions read both tables, or several clauses share the rows, Spark pairs each source row with each row of
the table that it matches. A pair gets the values of the first clause whose condition is true. A source row without a
match is a pair without a row of the table, and the other way round, if clauses are about rows that no source row
matches. Pairs that no clause takes are dropped.

The library matches rows by key alone: a source row updates all rows of the table that have its key. So an update is
refused if the table has another row of the same key. Deletions are by row address: Spark finds the addresses, and the
source rows of these pairs are left out.

Spark and the library must find the same pairs. So a key of the source has the type of the table's: Spark finds no
`float` 0.1 for a `double` 0.1, and the library, which casts it, would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from types import TracebackType
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS
from lance_ops.spark.translation import check_key_types

__all__ = ["Action", "Choice", "Choices", "ChosenRows", "choose_rows", "unused_name"]

Action: TypeAlias = Literal["UPDATE", "DELETE", "INSERT", "KEEP"]
"""What a clause does with its pairs. `KEEP` only tells the merge that these rows of the table are matched."""

_NESTED = (ArrayType, MapType, StructType)
_ACTION = "action"
_ADDRESS = "address"
_MOST_DELETED = 1 << 20
"""The most addresses of deleted rows. All of them travel with each task that reads the table's keys."""


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
    unmatched_by_source: Sequence[Choice] = ()

    def __iter__(self) -> Iterator[Choice]:
        yield from self.matched
        yield from self.unmatched_by_target
        yield from self.unmatched_by_source

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that any clause has a value for."""
        return tuple(dict.fromkeys(name for choice in self for name in choice.values))

    @property
    def changes_rows(self) -> bool:
        """Whether a clause updates or deletes rows of the table."""
        return any(choice.action in ("UPDATE", "DELETE") for choice in self)


class ChosenRows(AbstractContextManager["ChosenRows"]):
    """The pairs that take part: the rows to merge, and the addresses of the rows to delete.

    `columns` are the names in `pairs` of the columns that the merge writes, and `keys` those of the table's own keys.
    If rows of the table change, the pairs are persisted until the context ends, so that checks, addresses and rows
    come from the same pairs. Spark computes a lost block again, and then a source that is not deterministic may give
    other pairs.
    """

    def __init__(
        self, pairs: DataFrame, keys: Mapping[str, str], columns: Mapping[str, str], *, changes_rows: bool
    ) -> None:
        self._pairs = pairs.persist() if changes_rows else pairs
        self._keys, self._columns, self._changes_rows = keys, columns, changes_rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._changes_rows:
            self._pairs.unpersist()

    @property
    def rows(self) -> DataFrame:
        """The source rows to merge."""
        kept = self._pairs.where(F.col(_ACTION) != "DELETE")
        return kept.select(*(F.col(column).alias(name) for name, column in self._columns.items()))

    def check_keys(self) -> None:
        """Raise `InvalidInput` for a key with an update whose rows of the table need different treatment.

        Several rows of the table have that key, or an update and a deletion share its row. Or the key has a null, by
        which the library finds no row.
        """
        if not self._changes_rows:
            return
        refused = (
            self._pairs.where(F.col(_ADDRESS).isNotNull())
            .groupBy(*self._keys.values())
            .agg(
                _any_does("UPDATE").alias("updates"),
                _any_does("DELETE").alias("deletes"),
                (F.min(_ADDRESS) != F.max(_ADDRESS)).alias("repeats"),
            )
            .where(F.expr("updates AND (deletes OR repeats)") | (F.col("updates") & _is_any_null(self._keys.values())))
        )
        for row in refused.limit(1).collect():
            shown = ", ".join(f"{name} = {row[column]!r}" for name, column in self._keys.items())
            if any(row[column] is None for column in self._keys.values()):
                raise InvalidInput(
                    f"MERGE: an UPDATE of a row with the key {shown}: a null finds no row; exclude it by a condition"
                )
            if row["repeats"]:
                raise InvalidInput(
                    f"ambiguous merge: the table has several rows of the key {shown}, and an UPDATE whose clauses read "
                    "the table's row or share their rows writes one row for each key; leave one row of the table for "
                    "each key"
                )
            raise InvalidInput(
                f"ambiguous merge: one source row deletes a target row that another updates, {shown}; leave one source "
                "row for each key"
            )

    def deleted_addresses(self) -> pa.Array:
        """Return the addresses of the rows to delete; raise `UnsupportedFeature` if they are too many."""
        if not self._changes_rows:
            return pa.array([], pa.uint64())
        deleted = self._pairs.where(F.col(_ACTION) == "DELETE").select(_ADDRESS).distinct()
        found = deleted.limit(_MOST_DELETED + 1).toArrow()
        if found.num_rows > _MOST_DELETED:
            raise UnsupportedFeature(
                f"DELETE of more than {_MOST_DELETED:,} rows beside other clauses of one MERGE, or by a condition on "
                "the table (delete them by a statement of their own)"
            )
        return found.column(0).combine_chunks().cast(pa.uint64())


def choose_rows(
    source: DataFrame,
    source_name: str,
    table: DataFrame,
    target: str,
    keys: Mapping[str, str],
    choices: Choices,
    types: Mapping[str, DataType],
) -> ChosenRows:
    """Pair the rows of both tables, and return the pairs that take part.

    The clauses call the source `source_name`, and the table, which has the row addresses, `target`. `keys` are the
    source's expressions of the table's key columns, and `types` the types of the table's columns. Raises
    `UnsupportedFeature` for values that Spark may change on their way to the type of their column, and for a key that
    Spark may match otherwise than the library.
    """
    marker = unused_name(source.columns)
    marked = source.select("*", F.lit(True).alias(marker)).alias(source_name)
    given_keys = marked.select(*(F.expr(text).alias(name) for name, text in keys.items())).schema
    check_key_types("a joined MERGE", given_keys, types)
    is_same_key = reduce(Column.__and__, (_of(target, name) == F.expr(text) for name, text in keys.items()))
    joined = marked.join(table.alias(target), is_same_key, "full" if choices.unmatched_by_source else "left")
    address = _of(target, ROW_ADDRESS)
    in_source, in_table = _of(source_name, marker).isNotNull(), address.isNotNull()

    def chosen(value: Callable[[Choice], Column]) -> Column:
        of_both, of_source, of_table = (
            _first(side, value) for side in (choices.matched, choices.unmatched_by_target, choices.unmatched_by_source)
        )
        return F.when(in_source & in_table, of_both).when(in_source, of_source).otherwise(of_table)

    names = [name for name in choices.names if name not in keys]
    casts = {name: types[name] for name in _names_of_mixed_types(joined, choices, names)}
    for name, kind in casts.items():
        if isinstance(kind, _NESTED) and joined.sparkSession.conf.get("spark.sql.ansi.enabled") != "true":
            raise UnsupportedFeature(
                f"clauses of MERGE that give column {name!r} values of several types, in a session without "
                f"spark.sql.ansi.enabled (cast them to {kind.simpleString()} in the statement)"
            )
    own_keys = (F.when(in_table, _of(target, name)).otherwise(F.expr(text)) for name, text in keys.items())
    written = [*own_keys, *(chosen(_ValueOf(name, casts.get(name))) for name in names)]
    key_columns = {name: f"key_{number}" for number, name in enumerate(keys)}
    columns = {name: f"column_{number}" for number, name in enumerate((*keys, *names))}
    action = chosen(lambda choice: F.lit(choice.action))
    # Rows of the table that no clause takes tell whether a key of an update repeats.
    updates_unmatched = any(choice.action == "UPDATE" for choice in choices.unmatched_by_source)
    tells = in_table if updates_unmatched else in_source & in_table
    pairs = joined.where(action.isNotNull() | tells).select(
        *(_of(target, name).alias(column) for name, column in key_columns.items()),
        *(value.alias(column) for value, column in zip(written, columns.values(), strict=True)),
        action.alias(_ACTION),
        address.alias(_ADDRESS),
    )
    return ChosenRows(pairs, key_columns, columns, changes_rows=choices.changes_rows)


def unused_name(names: Sequence[str]) -> str:
    """Return a name that no column has, in any case."""
    longest = max(map(len, names), default=0)
    return "_" * (longest + 1)


def _is_any_null(columns: Iterable[str]) -> Column:
    return reduce(Column.__or__, (F.col(column).isNull() for column in columns))


def _any_does(action: Action) -> Column:
    return F.coalesce(F.max(F.col(_ACTION) == action), F.lit(False))


def _first(choices: Sequence[Choice], value: Callable[[Choice], Column]) -> Column:
    """Return the value of the first clause whose condition is true; null if there is none."""
    found = F.lit(None)
    for choice in reversed(choices):
        is_met = F.lit(True) if choice.condition is None else F.coalesce(F.expr(choice.condition), F.lit(False))
        found = F.when(is_met, value(choice)).otherwise(found)
    return found


def _names_of_mixed_types(joined: DataFrame, choices: Choices, names: Sequence[str]) -> list[str]:
    """Return the columns that clauses give values of different types. Spark would bring these to a type of its own."""
    values = [(name, choice.values[name]) for choice in choices for name in names if name in choice.values]
    found = joined.select(*(F.expr(text).alias(f"value_{number}") for number, (_, text) in enumerate(values))).schema
    types: dict[str, set[str]] = {name: set() for name in names}
    for (name, _), field in zip(values, found, strict=True):
        if not isinstance(field.dataType, NullType):
            types[name].add(field.dataType.simpleString())
    return [name for name in names if len(types[name]) > 1]


@dataclass(frozen=True)
class _ValueOf:
    """The value of one column by a clause, cast to `cast_to` as Spark assigns values; null if the clause has none.

    A value that does not fit fails the statement, in a session without ANSI mode, too. There `try_cast` would give
    nulls within nested values, so `choose_rows` refuses them.
    """

    name: str
    cast_to: DataType | None

    def __call__(self, choice: Choice) -> Column:
        text = choice.values.get(self.name)
        if text is None:
            return F.lit(None)
        return F.expr(text) if self.cast_to is None else self._assigned(F.expr(text), self.cast_to)

    def _assigned(self, value: Column, cast_to: DataType) -> Column:
        if isinstance(cast_to, _NESTED):
            return value.cast(cast_to)
        fitting = value.try_cast(cast_to)
        refusal = f"MERGE: a value does not fit column {self.name!r} of type {cast_to.simpleString()}"
        return F.when(value.isNull() | fitting.isNotNull(), fitting).otherwise(F.raise_error(F.lit(refusal)))


def _of(alias: str, name: str) -> Column:
    return F.col(".".join(f"`{part.replace('`', '``')}`" for part in (alias, name)))
