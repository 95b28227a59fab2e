"""One statement while it is read and executed: its words, the tables that it may name, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from lance_ops.api import LanceDataset
from lance_ops.api.namespaces import TableDescription
from lance_ops.core.errors import (
    InvalidInput,
    RetryableConflict,
    SchemaMismatch,
    TooManyConcurrentWriters,
    UnsupportedFeature,
)
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS
from lance_ops.refs import keeping_version
from lance_ops.runners import InThreads, ReportProgress, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.sql_access.conditions import ConditionTranslation, EvaluatedConstants
from lance_ops.spark.sql_access.expressions import parse_expression
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.table_references import Tables
from lance_ops.spark.sql_access.words import Kind, Reader
from lance_ops.spark.translation import (
    CaseRule,
    check_whole_microseconds,
    quoted_path,
    stored_path,
    with_moments_of,
)
from lance_ops.writing import CONFLICT_RETRIES, retry_conflicts

__all__ = [
    "BEFORE_TABLE",
    "Statement",
    "TableInStatement",
    "assigned_column",
    "check_has_no_addresses",
    "check_no_default",
    "check_values",
    "read_key",
    "read_switch",
]

BEFORE_TABLE = ("IN", "ON", "FROM")
"""The words before the table in statements of SHOW and DROP. Each of them may stand there."""


def read_switch(text: str) -> bool:
    """Return what an option of two values says; raise `ValueError` for any other text."""
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def read_key(reader: Reader) -> str:
    """Read the key of a property: a text, or names with dots between them."""
    word = reader.next
    return reader.literal("a key") if word and word.kind is Kind.TEXT else ".".join(reader.path("a key"))


R = TypeVar("R")

_RETRY_TIMEOUT = timedelta(seconds=30)
"""No attempt begins later than this after the first conflict: an attempt that joins may itself take longer."""

_VALUES: Mapping[Callable[[str], Any], str] = {
    int: "a whole number",
    float: "a number",
    read_switch: "true or false",
}
"""What an option's value is, by the function that reads it."""


@dataclass(frozen=True)
class TableInStatement:
    """A table as a statement writes it, and the alias that the statement gives it."""

    description: TableDescription
    text: str
    name: str
    alias: str | None = None

    @property
    def qualifier(self) -> str:
        """What stands before a column of the table in the statement."""
        return self.alias or self.name

    @property
    def reference(self) -> str:
        """The reference to the table, for a query in which it has the same qualifier."""
        return f"{self.text} AS {quoted_path(self.qualifier)}"


@dataclass(frozen=True)
class Statement:
    """A statement that `reader` reads, with what its names mean and what runs its tasks.

    `raw_storage_options` are those of raw files that it names.
    """

    reader: Reader
    tables: Tables
    runner: Runner
    raw_storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def on_progress(self) -> ReportProgress | None:
        """What is told how far the rows are that Spark writes, if the runner has it."""
        return self.runner.on_progress if isinstance(self.runner, OnSpark | InThreads) else None

    def table(self) -> TableDescription | None:
        """Read a table's name; None if it is not one of a Lance table, and for a path in quotes, as Delta's."""
        word = self.reader.next
        if word is not None and word.kind is Kind.TEXT:
            self.reader.at += 1
            return None
        return self.tables.find(self.reader.path("a table"))

    def named_table(self, *stops: str) -> TableInStatement | None:
        """Read a table's name and then its alias, unless one of these keywords comes; None if it is no Lance table."""
        begin = self.reader.at
        table = self.table()
        if table is None:
            return None
        text, name = self.reader.between(begin, self.reader.at), self.reader.words[self.reader.at - 1].value
        return TableInStatement(table, text, name, self.alias(*stops))

    def lance_table(self) -> TableDescription:
        """Read the name of a Lance table, in a statement that Spark does not have."""
        begin = self.reader.at
        found = self.table()
        if found is None:
            name = self.reader.between(begin, self.reader.at)
            word = self.reader.words[begin]
            if word.kind is Kind.TEXT:
                raise InvalidInput(f"SQL: {name} is no name of a Lance table: write lance.`{word.value}`")
            raise InvalidInput(f"SQL: {name} is no Lance table: write lance.`path`, or a name of the namespace")
        return found

    def opened_after(self, *keywords: str) -> LanceDataset:
        """Read one of these keywords and the name of a Lance table, which ends the statement; open the table."""
        if self.reader.accept_any(*keywords) is None:
            raise self.reader.error(" or ".join(keywords))
        table = self.lance_table()
        self.reader.end()
        return self.tables.open(table)

    def alias(self, *stops: str) -> str | None:
        """Read the alias of a table, unless one of these keywords comes next."""
        reader = self.reader
        if reader.accept("AS"):
            return reader.name("an alias")
        word = reader.next
        if word is None or not word.is_name or word.upper in stops:
            return None
        return reader.name("an alias")

    def predicate(self, schema: Schema, condition: str, qualifier: str = "") -> Predicate | None:
        """Return the predicate that is true for exactly the rows for which Spark's condition is; None if unknown.

        The condition is on one table of this schema; `qualifier` may stand before its columns.
        """
        tree = parse_expression(condition)
        for column in tree.find_all(exp.Column):
            table = [name.lower() for name in name_parts(column)[:-1]]
            if table not in ([], [qualifier.lower()]):
                return None
        tables, constants = self.tables, EvaluatedConstants(condition, self.tables)
        translation = ConditionTranslation(
            schema,
            self.case_rule,
            in_utc=tables.in_utc,
            has_escapes="\\" in condition,
            args=tables.args,
            constants=constants,
        )
        constants.evaluate(translation.constants_in(tree))
        return translation.predicate(tree)

    def column(self, opened: LanceDataset, path: tuple[str, ...], *names: str | None) -> str:
        """Return the table's spelling of a top-level column, with or without the table's name before it."""
        path = _without_table(path, names)
        found = self.case_rule.find(path[0], opened.snapshot.schema.names) if len(path) == 1 else None
        if found is None:
            known = ", ".join(opened.snapshot.schema.names)
            raise InvalidInput(f"SQL on a Lance table: no column {'.'.join(path)!r} in {opened.uri}: there are {known}")
        return found

    def column_path(self, opened: LanceDataset) -> str:
        """Read the path of a column; return it in the table's spelling. Raises `InvalidInput` if there is none."""
        return self.stored_path(opened, self.reader.path("a column"))

    def column_paths(self, opened: LanceDataset, *, if_exists: bool = False) -> list[str]:
        """Read paths of columns, in brackets or not; with `if_exists` skip paths that name no column."""
        found = []
        in_brackets = self.reader.accept("(")
        while True:
            path = self.reader.path("a column")
            try:
                found.append(self.stored_path(opened, path))
            except SchemaMismatch:  # several columns may be meant
                raise
            except InvalidInput:
                if not if_exists:
                    raise
            if not self.reader.accept(","):
                break
        if in_brackets:
            self.reader.expect(")")
        return found

    def stored_path(self, opened: LanceDataset, parts: tuple[str, ...]) -> str:
        """Return the path of a column in the table's spelling; raise `InvalidInput` if there is none."""
        path = ".".join(f"`{part}`" if "." in part else part for part in parts)
        return stored_path(path, opened.snapshot.schema, self.case_rule)

    def check_new_name(self, opened: LanceDataset, name: str, *, besides: str | None = None) -> None:
        """Raise `InvalidInput` if a column other than `besides` has this name by the session's case rule."""
        there = self.case_rule.find(name, [each for each in opened.snapshot.schema.names if each != besides])
        if there is not None:
            raise InvalidInput(f"SQL on a Lance table: {opened.uri} has a column {there!r}: give {name!r} another name")

    def properties(self) -> dict[str, str]:
        """Read ('key' = 'value', …); a value may be a number or a word as well."""
        reader = self.reader
        reader.expect("(")
        found = {}
        while not reader.accept(")"):
            key = read_key(reader)
            reader.expect("=")
            value = reader.next
            if value is None or value.kind is Kind.SIGN:
                raise reader.error("a value")
            reader.at += 1
            found[key] = value.value
            reader.accept(",")
        return found

    def options(
        self, verb: str, known: Mapping[str, Callable[[str], Any]], instead: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Read WITH (name = value, …) if it comes next; `known` says by name what reads a value.

        Raises `InvalidInput` for another name, and for a value that its function does not read. `instead` says what to
        write in place of some other names.
        """
        reader = self.reader
        found: dict[str, Any] = {}
        if not reader.accept("WITH"):
            return found
        reader.expect("(")
        while not reader.accept(")"):
            name = reader.name("an option").lower()
            if name not in known:
                remedy = f"write {instead[name]}" if instead and name in instead else f"there are {', '.join(known)}"
                raise InvalidInput(f"{verb} has no option {name!r}: {remedy}")
            reader.expect("=")
            word, parse = reader.next, known[name]
            try:
                found[name] = parse(word.value if word else "")
            except ValueError:
                raise reader.error(f"{_VALUES[parse]} for {name}") from None
            reader.at += 1
            reader.accept(",")
        return found

    @property
    def case_rule(self) -> CaseRule:
        """How the session matches names of columns."""
        return self.tables.case_rule

    def retried(self, opened: LanceDataset, attempt: Callable[[Snapshot], R]) -> R:
        """Call `attempt` with the opened version; after a conflict call it again with the newest one.

        An attempt runs the queries of the statement, too, so that what they read is of the version that it changes. It
        may take long, so the time counts from the first conflict. A method of `LanceDataset` in it gets
        `conflict_retries=0`. Raises as `retry_conflicts` does.
        """

        def retryable(current: Snapshot) -> R:
            try:
                return attempt(current)
            except TooManyConcurrentWriters as lost:
                raise RetryableConflict(str(lost.__cause__)) from lost

        kept = keeping_version(retryable, opened.snapshot)
        return retry_conflicts(opened.snapshot, kept, CONFLICT_RETRIES, _RETRY_TIMEOUT, from_first_conflict=True)

    def rows_for(self, frame: DataFrame, opened: LanceDataset, keys: Iterable[str] = ()) -> DataFrame | pa.Table:
        """Return a query's rows in the form that a verb which matches rows by `keys` takes.

        It is the frame if Spark runs the tasks, and the verb checks the keys. Otherwise it is an Arrow table, and this
        method checks them first. Raises `UnsupportedFeature` as `check_whole_microseconds` does.
        """
        if isinstance(self.runner, OnSpark):
            return frame
        check_whole_microseconds("a merge by key", opened.snapshot, keys, self.runner)
        return with_moments_of(frame, opened.snapshot.schema.to_arrow_storage(), self.case_rule).toArrow()

    def result(self, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        """Return a DataFrame of a few rows; the schema is in Spark's words."""
        return self.tables.session.createDataFrame(list(rows), schema)

    def nothing(self) -> DataFrame:
        """Return the result of a statement that says nothing."""
        return self.tables.session.createDataFrame([], "struct<>")


def assigned_column(reader: Reader, *tables: str | None) -> str:
    """Read the name of a column, with or without one of the table's names before it.

    Raises `UnsupportedFeature` for a field of a struct.
    """
    path = _without_table(reader.path("a column"), tables)
    if len(path) > 1:
        raise UnsupportedFeature(
            f"a value for {'.'.join(path)} alone in a Lance table (merge the whole struct: MERGE INTO … USING (SELECT "
            f"key, named_struct('{path[-1]}', …) AS {path[0]} FROM …) … UPDATE SET {path[0]} = …)"
        )
    return path[0]


def _without_table(path: tuple[str, ...], tables: Sequence[str | None]) -> tuple[str, ...]:
    """Return the path of a column without the name of the table that may stand before it."""
    has_table = len(path) == 2 and path[0].lower() in (name.lower() for name in tables if name)
    return path[1:] if has_table else path


def check_has_no_addresses(statement: Statement, snapshot: Snapshot) -> None:
    """Raise `UnsupportedFeature` for a table with a column `_rowaddr`, by which Spark would name its rows."""
    if statement.case_rule.find(ROW_ADDRESS, snapshot.schema.names) is not None:
        raise UnsupportedFeature(f"a change by an expression of Spark, of a table that has a column {ROW_ADDRESS!r}")


def check_no_default(text: str) -> None:
    """Raise `UnsupportedFeature` for the value DEFAULT, which columns of Lance tables do not have."""
    if text.upper() == "DEFAULT":
        raise UnsupportedFeature("DEFAULT as a value of a Lance table (write NULL, or leave the column out of INSERT)")


def check_values(reader: Reader) -> None:
    """Raise `UnsupportedFeature` if one of the VALUES that come next is DEFAULT."""
    words = reader.words[reader.at :] if reader.peek("VALUES") else []
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if before.upper in ("(", ",") and after.upper in (")", ","):
            check_no_default(word.upper)
