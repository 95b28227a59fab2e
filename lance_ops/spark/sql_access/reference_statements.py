"""Names of versions: CREATE, DROP and SHOW of tags and branches, also as changes of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from lance_ops.api import LanceDataset
from lance_ops.api.namespaces import TableDescription
from lance_ops.core.errors import ReferenceNotFound, UnsupportedFeature
from lance_ops.spark.sql_access.statement import BEFORE_TABLE, Statement
from lance_ops.spark.sql_access.table_references import read_version_clause, version_or_name
from lance_ops.spark.sql_access.words import Kind

__all__ = ["REFERENCE_ALTERATIONS", "REFERENCE_STATEMENTS"]


def _name(statement: Statement, what: str) -> str:
    word = statement.reader.next
    return statement.reader.literal(what) if word and word.kind is Kind.TEXT else statement.reader.name(what)


def _create_reference(kind: str, *, replace: bool = False) -> Callable[[Statement], DataFrame]:
    """CREATE TAG | BRANCH [IF NOT EXISTS] name ON t [VERSION AS OF n | AS OF VERSION n]."""

    def create(statement: Statement) -> DataFrame:
        keep = statement.reader.accept("IF", "NOT", "EXISTS")
        name = _name(statement, f"the {kind}'s name")
        statement.reader.expect("ON")
        opened = statement.tables.open(statement.lance_table())
        _make_reference(statement, opened, kind, name, replace=replace, keep=keep)
        statement.reader.end()
        return statement.nothing()

    return create


def _make_reference(
    statement: Statement, opened: LanceDataset, kind: str, name: str, *, replace: bool, keep: bool
) -> None:
    reader = statement.reader
    clause = version_or_name(reader) if reader.accept("AS", "OF", "VERSION") else read_version_clause(reader)
    reader.end()
    if clause is not None:
        opened = statement.tables.open(TableDescription(opened.uri, opened.snapshot.storage_options), clause)
    there = name in (opened.tags.list() if kind == "tag" else opened.branches.list())
    if there and keep:
        return
    if kind == "branch":
        opened.create_branch(name)
    elif there and replace:
        opened.tags.update(name)
    else:
        opened.tags.create(name)


def _alter_reference(kind: str, *, replace: bool = False) -> Callable[[Statement, LanceDataset], None]:
    """ALTER TABLE t CREATE TAG | BRANCH [IF NOT EXISTS] name [AS OF VERSION n]."""

    def create(statement: Statement, opened: LanceDataset) -> None:
        keep = statement.reader.accept("IF", "NOT", "EXISTS")
        name = _name(statement, f"the {kind}'s name")
        _make_reference(statement, opened, kind, name, replace=replace, keep=keep)

    return create


def _drop_reference(kind: str) -> Callable[[Statement], DataFrame]:
    """DROP TAG | BRANCH [IF EXISTS] name ON t."""

    def drop(statement: Statement) -> DataFrame:
        quiet = statement.reader.accept("IF", "EXISTS")
        name = _name(statement, f"the {kind}'s name")
        statement.reader.expect("ON")
        opened = statement.tables.open(statement.lance_table())
        statement.reader.end()
        _remove_reference(opened, kind, name, quiet=quiet)
        return statement.nothing()

    return drop


def _replace_branch(statement: Statement) -> DataFrame:
    """Refuse CREATE OR REPLACE BRANCH name ON t."""
    name = _name(statement, "the branch's name")
    statement.reader.expect("ON")
    opened = statement.tables.open(statement.lance_table())
    raise _cannot_replace(opened, name)


def _alter_replace_branch(statement: Statement, opened: LanceDataset) -> None:
    """Refuse ALTER TABLE t CREATE OR REPLACE BRANCH name."""
    raise _cannot_replace(opened, _name(statement, "the branch's name"))


def _cannot_replace(opened: LanceDataset, name: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"CREATE OR REPLACE BRANCH {name} of {opened.uri} (a branch has versions of its own, which would be lost: "
        "write CREATE BRANCH IF NOT EXISTS to keep them, or DROP BRANCH first to remove them)"
    )


def _alter_drop_reference(kind: str) -> Callable[[Statement, LanceDataset], None]:
    """ALTER TABLE t DROP TAG | BRANCH [IF EXISTS] name."""

    def drop(statement: Statement, opened: LanceDataset) -> None:
        quiet = statement.reader.accept("IF", "EXISTS")
        name = _name(statement, f"the {kind}'s name")
        statement.reader.end()
        _remove_reference(opened, kind, name, quiet=quiet)

    return drop


def _remove_reference(opened: LanceDataset, kind: str, name: str, *, quiet: bool) -> None:
    try:
        if kind == "tag":
            opened.tags.delete(name)
        else:
            opened.branches.delete(name)
    except ReferenceNotFound:
        if not quiet:
            raise


def _show_tags(statement: Statement) -> DataFrame:
    """SHOW TAGS IN t."""
    opened = statement.opened_after(*BEFORE_TABLE)
    rows = [(name, tag["version"], tag["branch"]) for name, tag in sorted(opened.tags.list().items())]
    return statement.result("name string, version bigint, branch string", rows)


def _show_branches(statement: Statement) -> DataFrame:
    """SHOW BRANCHES IN t."""
    opened = statement.opened_after(*BEFORE_TABLE)
    rows: list[tuple[Any, ...]] = [
        (name, branch["parent_branch"], branch["parent_version"])
        for name, branch in sorted(opened.branches.list().items())
    ]
    return statement.result("name string, parent_branch string, parent_version bigint", rows)


REFERENCE_ALTERATIONS: tuple[tuple[tuple[str, ...], Callable[[Statement, LanceDataset], None]], ...] = (
    (("CREATE", "TAG"), _alter_reference("tag")),
    (("CREATE", "OR", "REPLACE", "TAG"), _alter_reference("tag", replace=True)),
    (("CREATE", "BRANCH"), _alter_reference("branch")),
    (("CREATE", "OR", "REPLACE", "BRANCH"), _alter_replace_branch),
    (("DROP", "TAG"), _alter_drop_reference("tag")),
    (("DROP", "BRANCH"), _alter_drop_reference("branch")),
)
"""Which words follow ALTER TABLE and a table's name, and what executes them."""

REFERENCE_STATEMENTS = (
    (("CREATE", "TAG"), _create_reference("tag")),
    (("CREATE", "OR", "REPLACE", "TAG"), _create_reference("tag", replace=True)),
    (("CREATE", "BRANCH"), _create_reference("branch")),
    (("CREATE", "OR", "REPLACE", "BRANCH"), _replace_branch),
    (("DROP", "TAG"), _drop_reference("tag")),
    (("DROP", "BRANCH"), _drop_reference("branch")),
    (("SHOW", "TAGS"), _show_tags),
    (("SHOW", "BRANCHES"), _show_branches),
)
"""Which words begin a statement, and what executes it."""
