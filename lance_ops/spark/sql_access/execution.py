"""`sql`: run one statement over Lance tables, or hand it to Spark.

The first words of a statement choose what reads it. A statement that is about a Lance table, by its path or by its name
in the namespace, is executed here; every other one goes to Spark unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from lance_ops.api.namespaces import Namespace, open_namespace
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.runners import Runner
from lance_ops.spark.data_source import BlobHandling, check_blob_handling
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.session_kind import check_is_running, is_switched_on
from lance_ops.spark.sql_access.copy_into import COPY_STATEMENTS
from lance_ops.spark.sql_access.index_statements import INDEX_STATEMENTS
from lance_ops.spark.sql_access.maintenance_statements import MAINTENANCE_STATEMENTS
from lance_ops.spark.sql_access.merge import MERGE_STATEMENTS
from lance_ops.spark.sql_access.queries import explain_query, lance_query, mentions_a_path, parse_error
from lance_ops.spark.sql_access.reference_statements import REFERENCE_STATEMENTS
from lance_ops.spark.sql_access.rewrites import move_insert_before_with, table_queries_as_selects
from lance_ops.spark.sql_access.row_changes import DUPLICATE_STATEMENTS, ERASURE_STATEMENTS, ROW_STATEMENTS
from lance_ops.spark.sql_access.shown_tables import COMMENT, DESCRIBE_STATEMENTS, SHOW_STATEMENTS
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_definition import ALTERATION_STATEMENTS, CREATION_STATEMENTS
from lance_ops.spark.sql_access.table_references import Tables
from lance_ops.spark.sql_access.words import EXPLAIN_MODES, Kind, Reader
from lance_ops.spark.translation import quoted_path

__all__ = ["sql", "use_namespace"]

_NAMESPACES: WeakKeyDictionary[SparkSession, Namespace] = WeakKeyDictionary()
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_NOT_OF_SPARK = (
    *(("OPTIMIZE",), ("VACUUM",), ("RESTORE",), ("COPY", "INTO"), ("ERASE", "FROM")),
    *(("DESCRIBE", "HISTORY"), ("DESC", "HISTORY"), ("DESCRIBE", "DETAIL"), ("DESC", "DETAIL")),
)
"""Statements that other libraries bring to Spark, too, so one that is about no Lance table is still handed over."""

_CHANGES = ("MERGE", "DELETE", "INSERT", "UPDATE")


def sql(
    session: SparkSession,
    query: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    namespace: Namespace | str | PathLike[str] | Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    runner: Runner | None = None,
    raw_storage_options: Mapping[str, str] | None = None,
    blob_handling: BlobHandling | None = None,
) -> DataFrame:
    """Run one statement; docs/spark.md lists those that Lance tables understand.

    `args` are the values of parameters, `:name` or `?`, in queries, conditions and values, as `SparkSession.sql` takes
    them. Behind the source of a MERGE they need names. Parameters in other words of statements are refused.
    `namespace` is as in `use_namespace`, for this statement only. `storage_options` open the tables that are named by a
    path; no plan of Spark shows them. `raw_storage_options` are fsspec's options for the files of COPY INTO. The runner
    executes the tasks of changes and of maintenance; it is `OnSpark` of the session by default. Changes happen at once;
    queries are as lazy as `spark.sql`. `blob_handling` is as in `lance_ops.spark.table`, for the tables that the
    statement's queries read. By default the queries of INSERT, CREATE TABLE and ADD | UPDATE COLUMNS … FROM and the
    source of MERGE read the bytes of blobs, and every other query, condition and value reads descriptions.

    Raises `InvalidInput` where a statement on a Lance table does not parse, `UnsupportedFeature` naming what is
    understood for one that is not, and what the verb of the statement raises. The errors of Spark are its own.
    """
    check_is_running(session)
    check_blob_handling("blob_handling", blob_handling)
    known = _NAMESPACES.get(session) if namespace is None else _namespace(namespace, None)
    reader = Reader(table_queries_as_selects(move_insert_before_with(query)))
    tables = Tables(
        session,
        known,
        dict(storage_options or {}),
        args,
        has_quoted_names=_has_quoted_names(session, reader),
        blob_handling=blob_handling,
    )
    statement = Statement(reader, tables, runner or OnSpark(session), dict(raw_storage_options or {}))
    head = reader.next.upper if reader.next is not None else ""
    if head == "WITH":
        _check_only_reads(statement)
    if head in _QUERIES:
        found = lance_query(reader.text, tables)
        return _by_spark(query, statement, head, "") if found is None else found
    form = ""
    for keywords, execute in _STATEMENTS:
        reader.at = 0
        if reader.accept(*keywords):
            made = execute(statement)
            if made is not None:
                return made
            form = form or " ".join(keywords)
    if mentions_a_path(reader.words):
        raise _not_understood(head, form)
    return _by_spark(query, statement, head, form)


def _by_spark(query: str, statement: Statement, head: str, form: str) -> DataFrame:
    """Hand a statement to Spark; raise the error of this library for one on a Lance table that Spark does not find.

    `form` are the keywords with which a statement of this library begins, if it begins so.
    """
    reader, tables = statement.reader, statement.tables
    try:
        return tables.spark_sql(query)
    except AnalysisException as error:
        missing = _missing_table(error)
        if missing is None and not isinstance(error, ParseException):
            raise
        if missing is not None and _names_alone(reader, missing) and tables.find((missing,)) is not None:
            is_known = head in _QUERIES or any(head == keywords[0] for keywords, _ in _STATEMENTS)
            refusal = parse_error(reader.text) if is_known else None
            if refusal is None and head in _QUERIES:
                raise
            raise (refusal or _not_understood(head, form)) from error
        for keywords in _NOT_OF_SPARK:
            reader.at = 0
            if reader.accept(*keywords):
                reader.accept("TABLE")
                statement.lance_table()
        raise


def _has_quoted_names(session: SparkSession, reader: Reader) -> bool:
    """Return whether the statement has names in double quotes, because the session reads these as names."""
    return any(word.kind is Kind.TEXT and reader.text[word.start] == '"' for word in reader.words) and all(
        is_switched_on(session, f"spark.sql.ansi.{name}") for name in ("enabled", "doubleQuotedIdentifiers")
    )


def _check_only_reads(statement: Statement) -> None:
    """Raise `UnsupportedFeature` for WITH before a statement that changes a Lance table."""
    reader = statement.reader
    reader.until("SELECT", "FROM", "VALUES", "TABLE", *_CHANGES, behind=")", what="a query")
    change = reader.accept_any(*_CHANGES)
    reader.accept_any("INTO", "FROM", "OVERWRITE")
    reader.accept("TABLE")
    if change is not None and reader.next is not None and reader.next.is_name and statement.table() is not None:
        raise UnsupportedFeature(
            f"WITH before {change} of a Lance table (write WITH into the statement, as in USING (WITH … SELECT "
            "…) AS x, IN (WITH … SELECT …) or INSERT INTO t WITH … SELECT …, or make it a temporary view)"
        )


def _not_understood(head: str, form: str) -> UnsupportedFeature:
    """Return the error for a statement that no function has executed; `form` are the words of one that has read it."""
    if form:
        return UnsupportedFeature(
            f"{form} in this form, with a Lance table (a table's name is lance.`path`, or one of the namespace, "
            "without a database or a catalog)"
        )
    heads = ", ".join(sorted({" ".join(keywords) for keywords, _ in _STATEMENTS}))
    return UnsupportedFeature(f"{head} of a Lance table in SQL (understood are SELECT, WITH, {heads})")


def _missing_table(error: AnalysisException) -> str | None:
    """Return the name of the table or view that Spark did not find, without its database; None for another error."""
    name = (error.getMessageParameters() or {}).get("relationName")
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND" or not name:
        return None
    return Reader(name).path("a table")[-1]


def _names_alone(reader: Reader, name: str) -> bool:
    """Return whether the statement has the name without a database; Spark's errors add the current one."""
    beside_dots = {at + step for at, word in enumerate(reader.words) if word.value == "." for step in (-1, 1)}
    return any(
        word.is_name and word.value.lower() == name.lower()
        for at, word in enumerate(reader.words)
        if at not in beside_dots
    )


def use_namespace(
    session: SparkSession,
    namespace: Namespace | str | PathLike[str] | Mapping[str, str] | None,
    storage_options: Mapping[str, str] | None = None,
) -> Namespace | None:
    """Let `sql` of this session find tables by name, and return the namespace.

    A namespace is a folder or prefix, a pattern of paths, a YAML file, URIs by name, or a `Namespace`; see
    `lance_ops.api.namespaces`. None ends it. A name of the namespace comes before a view of Spark that is
    written alike; a view comes before a name that differs in case.
    """
    if namespace is None:
        _NAMESPACES.pop(session, None)
        return None
    known = _namespace(namespace, storage_options)
    _NAMESPACES[session] = known
    return known


def _namespace(
    given: Namespace | str | PathLike[str] | Mapping[str, str], storage_options: Mapping[str, str] | None
) -> Namespace:
    return given if isinstance(given, Namespace) else open_namespace(given, storage_options)


def _explain(statement: Statement) -> DataFrame | None:
    reader = statement.reader
    reader.accept_any(*EXPLAIN_MODES)
    begin = reader.words[reader.at].start if reader.next is not None else len(reader.text)
    return explain_query(reader.text[begin:], statement.tables, reader.text[:begin])


def _create_view(statement: Statement) -> DataFrame | None:
    """CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW name [(columns)] AS query: it holds the versions that are newest now.

    The words between the name and AS are read after the query was found to read a Lance table. Raises
    `UnsupportedFeature` for a view of Spark's catalog, and for IF NOT EXISTS, which Spark refuses for temporary views.
    """
    reader = statement.reader
    replace = reader.accept("OR", "REPLACE")
    is_global = reader.accept("GLOBAL")
    is_temporary = reader.accept_any("TEMP", "TEMPORARY") is not None
    if not reader.accept("VIEW"):
        return None
    keep = reader.accept("IF", "NOT", "EXISTS")
    name = reader.path("the view's name")
    behind_name = reader.at
    if not reader.peek("AS") and not reader.ended:
        reader.until("AS", what="AS")
    if len(name) > 1 or not reader.accept("AS") or reader.ended:
        return None
    frame = lance_query(reader.rest("a query"), statement.tables)
    if frame is None:
        return None
    if not is_temporary:
        raise UnsupportedFeature(
            f"CREATE VIEW {name[0]} over a Lance table (Spark's catalog would keep a query that it cannot "
            "resolve: write CREATE TEMPORARY VIEW, in each session)"
        )
    if keep:
        raise UnsupportedFeature(
            f"IF NOT EXISTS of the temporary view {name[0]} (Spark has none either: write CREATE OR REPLACE TEMPORARY "
            "VIEW, or leave IF NOT EXISTS out)"
        )
    reader.at = behind_name
    columns = _view_columns(reader)
    reader.expect("AS")
    if columns and len(columns) != len(frame.columns):
        raise InvalidInput(f"view {name[0]} names {len(columns)} columns, and its query gives {len(frame.columns)}")
    frame = _with_names(frame, columns) if columns else frame
    make = {
        (False, False): frame.createTempView,
        (False, True): frame.createOrReplaceTempView,
        (True, False): frame.createGlobalTempView,
        (True, True): frame.createOrReplaceGlobalTempView,
    }
    make[is_global, replace](quoted_path(name[0]))  # Spark parses it
    return statement.nothing()


def _view_columns(reader: Reader) -> list[tuple[str, str | None]]:
    """Read names of columns in brackets, each with its comment, which may be None; return none without brackets."""
    columns: list[tuple[str, str | None]] = []
    if not reader.accept("("):
        return columns
    while not columns or reader.accept(","):
        name = reader.name("a column")
        columns.append((name, reader.literal("a comment in quotes") if reader.accept("COMMENT") else None))
    reader.expect(")")
    return columns


def _with_names(frame: DataFrame, columns: Sequence[tuple[str, str | None]]) -> DataFrame:
    """Return a frame with these names and comments of its columns."""
    named = frame.toDF(*(name for name, _ in columns))
    if all(comment is None for _, comment in columns):
        return named
    found = ((col(quoted_path(name)), name, comment) for name, comment in columns)
    return named.select(
        *(
            column if comment is None else column.alias(name, metadata={COMMENT: comment})
            for column, name, comment in found
        )
    )


_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Statement], DataFrame | None]], ...] = (
    (("EXPLAIN",), _explain),
    (("CREATE",), _create_view),
    *DUPLICATE_STATEMENTS,
    *ERASURE_STATEMENTS,
    *ROW_STATEMENTS,
    *COPY_STATEMENTS,
    *MERGE_STATEMENTS,
    *REFERENCE_STATEMENTS,
    *CREATION_STATEMENTS,
    *ALTERATION_STATEMENTS,
    *INDEX_STATEMENTS,
    *MAINTENANCE_STATEMENTS,
    *SHOW_STATEMENTS,
    *DESCRIBE_STATEMENTS,
)
"""Which words begin a statement, and what executes it; None says that it is about no Lance table."""
