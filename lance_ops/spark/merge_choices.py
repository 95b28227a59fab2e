"""Choose for each source row of a merge the clause that it takes part by, and compute the values of this clause.

A merge of the library writes a source row as it is, whether it updates a row of the table or is inserted. So where
values or conditions read both tables, or several clauses share the rows, Spark pairs each source row with the row of
the table that it matches, and gives the source row the values of the first clause whose condition is true. A source row
of no clause is dropped. Only the columns that the clauses read are joined.

A merge updates all rows that it matches, or deletes them. Where some clauses update and others delete, the source rows
of the latter are left out, and the addresses of their rows of the table are found for a deletion in the same merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from types import TracebackType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS

__all__ = ["Choice", "ChosenRows", "chosen_rows"]

_IS_MATCHED = "_is_matched"
_DELETES = "_is_deleted"
_MOST_DELETED = 1 << 20
"""So many addresses go with every task of the merge that reads the table's keys."""


@dataclass(frozen=True)
class Choice:
    """A clause: its condition, and its values by the table's column, as SQL over both tables.

    A clause that `deletes` stands beside others that update.
    """

    condition: str | None
    values: Mapping[str, str]
    deletes: bool = False


class ChosenRows(AbstractContextManager["ChosenRows"]):
    """The source rows that take part, by the columns that the merge writes, and the rows of the table to delete.

    Where there are both, Spark holds what it joined until the context ends, so that both come from the same rows.
    """

    def __init__(self, joined: DataFrame, keys: Sequence[str], written: Sequence[str], *, deletes: bool) -> None:
        self._joined = joined.persist() if deletes else joined
        self._keys, self._written, self._deletes = keys, written, deletes

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._deletes:
            self._joined.unpersist()

    @property
    def rows(self) -> DataFrame:
        """The source rows to merge."""
        kept = self._joined.where(~F.col(_DELETES)) if self._deletes else self._joined
        return kept.select(*(_named(name) for name in (*self._keys, *self._written)))

    def deleted_addresses(self) -> list[int]:
        """Return the addresses of the rows to delete.

        Raises `InvalidInput` if another source row updates one of them, and `UnsupportedFeature` if they are too many.
        """
        if not self._deletes:
            return []
        deleted = self._joined.where(F.col(_DELETES)).select(ROW_ADDRESS).distinct()
        updated = self._joined.where(~F.col(_DELETES)).join(deleted, ROW_ADDRESS, "left_semi")
        for row in updated.select(*map(_named, self._keys)).limit(1).collect():
            shown = ", ".join(f"{name} = {row[name]!r}" for name in self._keys)
            raise InvalidInput(
                f"ambiguous merge: one source row deletes a target row that another updates, {shown}; leave one source "
                "row for each key"
            )
        found = deleted.limit(_MOST_DELETED + 1).collect()
        if len(found) > _MOST_DELETED:
            raise UnsupportedFeature(
                f"DELETE of more than {_MOST_DELETED:,} rows beside UPDATE in one MERGE: delete them by a statement "
                "of its own"
            )
        return [row[0] for row in found]


def chosen_rows(
    source: DataFrame,
    table: DataFrame,
    target: str,
    keys: Mapping[str, str],
    choices: tuple[Sequence[Choice], Sequence[Choice]],
) -> ChosenRows:
    """Return the source rows that take part, with the columns of `keys` and those that any clause has a value for.

    `source` has its alias, and `table` gets the alias `target`. Where a choice deletes, `table` has the row addresses.
    `keys` are the source's expressions of the table's key columns. `choices` are the clauses of matched rows and of
    others. Without clauses, matched rows stay with nulls, so that the merge does not take their rows of the table for
    unmatched ones, and others are dropped.
    """
    matched, others = choices
    aliased = table.withColumn(_IS_MATCHED, F.lit(True)).alias(target)
    is_same_key = reduce(Column.__and__, (_of(target, name) == F.expr(text) for name, text in keys.items()))
    joined = source.join(aliased, is_same_key, "left")
    is_matched = _of(target, _IS_MATCHED).isNotNull()
    takes_part = F.when(is_matched, _any(matched) if matched else F.lit(True)).otherwise(_any(others))
    written = dict.fromkeys(name for choice in (*matched, *others) for name in choice.values if name not in keys)
    deletes = any(choice.deletes for choice in matched)
    marks = [Choice(choice.condition, {_DELETES: str(choice.deletes)}) for choice in matched]
    is_deleted = F.coalesce(is_matched & _first(marks, _DELETES), F.lit(False)).alias(_DELETES)
    chosen = joined.where(takes_part).select(
        *(F.expr(text).alias(name) for name, text in keys.items()),
        *(F.when(is_matched, _first(matched, name)).otherwise(_first(others, name)).alias(name) for name in written),
        *([is_deleted, _of(target, ROW_ADDRESS).alias(ROW_ADDRESS)] if deletes else []),
    )
    return ChosenRows(chosen, list(keys), list(written), deletes=deletes)


def _any(choices: Sequence[Choice]) -> Column:
    """Return whether a row takes part by any of the clauses."""
    return reduce(Column.__or__, map(_is_met, choices), F.lit(False))


def _first(choices: Sequence[Choice], name: str) -> Column:
    """Return a column's value by the first clause whose condition is true; null if this clause has none."""
    value = F.lit(None)
    for choice in reversed(choices):
        value = F.when(_is_met(choice), F.expr(choice.values.get(name, "NULL"))).otherwise(value)
    return value


def _is_met(choice: Choice) -> Column:
    return F.lit(True) if choice.condition is None else F.coalesce(F.expr(choice.condition), F.lit(False))


def _named(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


def _of(alias: str, name: str) -> Column:
    return F.col(".".join(f"`{part.replace('`', '``')}`" for part in (alias, name)))
