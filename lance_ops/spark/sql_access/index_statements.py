"""Indices: CREATE, REFRESH, DROP and SHOW, also as changes of a table."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from lance_ops.api import LanceDataset
from lance_ops.core.errors import IndexNotFound, InvalidInput
from lance_ops.spark.sql_access.statement import BEFORE_TABLE, Statement

__all__ = ["INDEX_ALTERATIONS", "INDEX_STATEMENTS"]

_INDICES = "name string, type string, columns array<string>, numIndexedRows bigint, numUnindexedRows bigint"


def _create_index(statement: Statement) -> DataFrame:
    """CREATE INDEX [IF NOT EXISTS] name ON [TABLE] t [USING kind] (column) [USING kind]; by default a BTREE."""
    reader = statement.reader
    keep = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name("the index's name")
    reader.expect("ON")
    reader.accept("TABLE")
    _make_index(statement, statement.tables.open(statement.lance_table()), name, keep=keep)
    return statement.nothing()


def _alter_create_index(statement: Statement, opened: LanceDataset) -> None:
    """ALTER TABLE t CREATE INDEX [IF NOT EXISTS] name [USING kind] (column) [USING kind]."""
    keep = statement.reader.accept("IF", "NOT", "EXISTS")
    _make_index(statement, opened, statement.reader.name("the index's name"), keep=keep)


def _make_index(statement: Statement, opened: LanceDataset, name: str, *, keep: bool) -> None:
    reader = statement.reader
    kind = reader.name("the kind of index") if reader.accept("USING") else None
    reader.expect("(")
    column = statement.column_path(opened)
    reader.expect(")")
    if kind is None and reader.accept("USING"):
        kind = reader.name("the kind of index")
    reader.end()
    there = _has_index(opened, name)
    if not there:
        try:
            opened.create_scalar_index(column, (kind or "BTREE").upper(), name, replace=False, runner=statement.runner)
        except InvalidInput:
            opened.checkout_latest()
            there = _has_index(opened, name)  # another writer made it meanwhile
            if not there:
                raise
    if there and not keep:
        raise InvalidInput(f"{opened.uri} has an index {name!r}: DROP INDEX, or REFRESH INDEX to extend it to new rows")


def _refresh_index(statement: Statement) -> DataFrame:
    """REFRESH INDEX | INDEXES | INDICES [name] ON t: extend one index, or all, to the rows that it does not cover."""
    reader = statement.reader
    name = None if reader.peek("ON") else reader.name("the index's name")
    opened = statement.opened_after("ON")
    if name is not None and not _has_index(opened, name):
        known = ", ".join(index["name"] for index in opened.list_indices())
        raise IndexNotFound(f"{opened.uri} has no index {name!r}: there are {known or 'none'}")
    opened.optimize.optimize_indices(index_names=None if name is None else [name], runner=statement.runner)
    return statement.nothing()


def _drop_index(statement: Statement) -> DataFrame:
    """DROP INDEX [IF EXISTS] name ON t."""
    reader = statement.reader
    quiet = reader.accept("IF", "EXISTS")
    name = reader.name("the index's name")
    _remove_index(statement.opened_after("ON"), name, quiet=quiet)
    return statement.nothing()


def _alter_drop_index(statement: Statement, opened: LanceDataset) -> None:
    """ALTER TABLE t DROP INDEX [IF EXISTS] name."""
    quiet = statement.reader.accept("IF", "EXISTS")
    name = statement.reader.name("the index's name")
    statement.reader.end()
    _remove_index(opened, name, quiet=quiet)


def _remove_index(opened: LanceDataset, name: str, *, quiet: bool) -> None:
    if not quiet or _has_index(opened, name):
        opened.drop_index(name)


def _has_index(opened: LanceDataset, name: str) -> bool:
    return any(index["name"] == name for index in opened.list_indices())


def _show_indices(statement: Statement) -> DataFrame:
    """SHOW INDEX | INDEXES | INDICES IN t."""
    opened = statement.opened_after(*BEFORE_TABLE)
    rows = []
    for index in opened.describe_indices():
        known = opened.index_statistics(index.name)
        columns = list(index.field_names)
        rows.append((index.name, index.index_type, columns, known["num_indexed_rows"], known["num_unindexed_rows"]))
    return statement.result(_INDICES, rows)


INDEX_ALTERATIONS: tuple[tuple[tuple[str, ...], Callable[[Statement, LanceDataset], None]], ...] = (
    (("CREATE", "INDEX"), _alter_create_index),
    (("DROP", "INDEX"), _alter_drop_index),
)
"""Which words follow ALTER TABLE and a table's name, and what executes them."""

INDEX_STATEMENTS = (
    (("CREATE", "INDEX"), _create_index),
    (("REFRESH", "INDEX"), _refresh_index),
    (("REFRESH", "INDEXES"), _refresh_index),
    (("REFRESH", "INDICES"), _refresh_index),
    (("DROP", "INDEX"), _drop_index),
    (("SHOW", "INDEX"), _show_indices),
    (("SHOW", "INDEXES"), _show_indices),
    (("SHOW", "INDICES"), _show_indices),
)
"""Which words begin a statement, and what executes it."""
