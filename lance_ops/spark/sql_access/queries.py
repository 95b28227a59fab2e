"""Run queries over Lance tables: each reference becomes a DataFrame that reads what the query needs of the table.

Only the references are replaced in the text. Spark gets the rest as the user wrote it, so that functions, hints and
types mean what they mean to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from sqlglot import exp

from lance_ops.api.namespaces import TableDescription
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Predicate
from lance_ops.core.predicate.binding import build
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import SourceOptions, visible_schema
from lance_ops.spark.sql_access.conditions import ConditionTranslation, EvaluatedConstants
from lance_ops.spark.sql_access.dialect import parse
from lance_ops.spark.sql_access.query_needs import QueryNeeds, is_of_cte, name_parts
from lance_ops.spark.sql_access.table_references import FORMAT, Tables, VersionClause, read_version_clause
from lance_ops.spark.sql_access.words import Reader, Word, split_words
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import quoted_path

__all__ = ["explain_query", "lance_query", "mentions_a_path", "parse_error", "run_query", "run_query_to_write"]

_COUNTED = "_rowaddr"
"""The column of a query that counts rows and names none: no file is read for it."""


@dataclass(frozen=True)
class _Reference:
    """A table in the text at `[start, stop)`, with its version.

    `alias` names it where the text does not, at the place `alias_at` behind it and its sample.
    """

    start: int
    stop: int
    alias_at: int
    table: exp.Table
    found: TableDescription
    clause: VersionClause | None
    alias: str | None


def run_query(text: str, tables: Tables) -> DataFrame:
    """Return the DataFrame of a query; one without a Lance table goes to Spark as it is."""
    found = lance_query(text, tables)
    return tables.spark_sql(text) if found is None else found


def run_query_to_write(text: str, tables: Tables, target: Snapshot | None) -> tuple[DataFrame, Snapshot | None]:
    """Return the DataFrame of a query whose rows are written to a table, and `target` if the query reads it, else None.

    `target` is the version of that table which the query reads; None if the table is not there yet.
    """
    tables = (tables if target is None else tables.reading(target)).for_query_to_write()
    frame = run_query(text, tables)
    return frame, target if target is not None and tables.has_read(target.uri) else None


def lance_query(text: str, tables: Tables) -> DataFrame | None:
    """Return the DataFrame of a query, or of another statement with a query in it, that reads Lance tables.

    Returns None if it reads none. Raises `InvalidInput` for a statement that names a Lance table by its path and cannot
    be parsed.
    """
    bound = _bind(text, tables)
    return None if bound is None else bound.run(tables)


def explain_query(text: str, tables: Tables, prefix: str) -> DataFrame | None:
    """Return Spark's plan of a query that reads Lance tables, followed by how each of these tables is read.

    Returns None if it reads none. `prefix` goes before the query to Spark. Raises as `lance_query` does, and
    `UnsupportedFeature` for a statement that changes a Lance table: Spark knows no plan of it.
    """
    bound = _bind(text, tables)
    if bound is None:
        return None
    if bound.changes_a_table:
        raise UnsupportedFeature(
            f"{prefix.strip()} of a statement that changes a Lance table (explain the SELECT that finds its rows)"
        )
    explained = bound.run(tables, prefix)
    plans = [f"== {each.title} ==\n{each.explain_plan()}\n" for each in bound.reads]
    shown = "\n".join([*(row[0] for row in explained.collect()), *plans])
    return tables.session.createDataFrame([(shown,)], explained.schema)


@dataclass(frozen=True)
class _BoundQuery:
    """A query whose references to Lance tables are found; `reads` says what it needs of each."""

    text: str
    tree: exp.Expr
    references: list[_Reference]
    reads: list[TableQuery]

    @property
    def changes_a_table(self) -> bool:
        """Whether the statement changes a Lance table: it is no query, and its target is one."""
        target = None if isinstance(self.tree, exp.Query) else self.tree.this
        named = target.find(exp.Table) if isinstance(target, exp.Expr) else None
        return any(reference.table is named for reference in self.references)

    def run(self, tables: Tables, prefix: str = "") -> DataFrame:
        """Hand the query to Spark with a DataFrame in place of each reference."""
        frames: dict[str, Any] = {f"t{i}": read.load() for i, read in enumerate(self.reads)}
        template = _literal(prefix) + _with_frames(self.text, self.references, frames)
        try:
            return tables.spark_sql(template, **frames)
        except AnalysisException as error:
            if isinstance(self.tree, exp.Query) and (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                # Spark suggests columns that a frame has, and the frames have only those that the query names. Spark
                # would execute any other statement at once: an INSERT OVERWRITE would leave no row.
                shapes: dict[str, Any] = {f"t{i}": _shape(read) for i, read in enumerate(self.reads)}
                tables.spark_sql(template, **shapes)
            raise


def _bind(text: str, tables: Tables) -> _BoundQuery | None:
    words = split_words(text)
    if tables.namespace is None and not mentions_a_path(words):
        return None
    parsed = _parse(text, words, tables)
    if parsed is None:
        return None
    tree, clauses = parsed
    references = sorted(_references(tree, clauses, words, tables), key=lambda each: each.start)
    if not references:
        return None
    needs = QueryNeeds(tree, words, tables.case_rule)
    reads = _reads(references, needs, tables, text)
    return _BoundQuery(text, tree, references, reads)


def mentions_a_path(words: Iterable[Word]) -> bool:
    """Return whether the words hold ``lance.`` and a quoted path."""
    listed = list(words)
    return any(
        one.upper == FORMAT.upper() and dot.value == "." and path.is_name
        for one, dot, path in zip(listed, listed[1:], listed[2:], strict=False)
    )


def parse_error(text: str) -> InvalidInput | None:
    """Return the error of a statement on a Lance table that cannot be parsed; None if it can."""
    try:
        parse(text)
    except InvalidInput as error:
        return InvalidInput(
            f"SQL with a Lance table that cannot be parsed: {error}. Write SELECT … in place of pipes (|>), or name "
            "the table by lance_ops.spark.create_view, and use spark.sql"
        )
    return None


def _parse(
    text: str, words: list[Word], tables: Tables
) -> tuple[exp.Expr, dict[int, tuple[int, VersionClause]]] | None:
    """Return the tree of the text without its version clauses, and these by the end of the name before them.

    Returns None for a text that does not parse. Raises `InvalidInput` if it has the path of a Lance table.
    """
    clauses = {}
    blanked = text
    reader = Reader(text)
    while not reader.ended:
        before = reader.words[reader.at - 1] if reader.at else None
        begin = reader.at
        if before is None or not before.is_name:
            reader.at = begin + 1
            continue
        try:
            clause = read_version_clause(reader)
        except InvalidInput:
            if tables.find(_name_before(reader.words, begin)) is not None:
                raise
            reader.at = begin + 1  # a version of another library's table, in its own words
            continue
        if clause is None:
            reader.at = begin + 1
            continue
        start, stop = reader.words[begin].start, reader.words[reader.at - 1].stop
        clauses[before.stop] = (stop, clause)
        blanked = blanked[:start] + " " * (stop - start) + blanked[stop:]
    try:
        return parse(blanked), clauses
    except InvalidInput as error:
        if mentions_a_path(words):
            raise (parse_error(blanked) or error) from error
        return None


def _name_before(words: Sequence[Word], end: int) -> tuple[str, ...]:
    """Return the parts of the name whose last part stands before a word."""
    parts = [words[end - 1].value]
    at = end - 2
    while at > 0 and words[at].upper == "." and words[at - 1].is_name:
        parts.insert(0, words[at - 1].value)
        at -= 2
    return tuple(parts)


def _references(
    tree: exp.Expr, clauses: dict[int, tuple[int, VersionClause]], words: Sequence[Word], tables: Tables
) -> Iterator[_Reference]:
    seen = set()
    for table in tree.find_all(exp.Table):
        last = table.this
        if not isinstance(last, exp.Identifier) or "start" not in last.meta or is_of_cte(table):
            continue
        if table.find_ancestor(exp.Hint) is not None:  # its places are those in the hint
            continue
        start, end = table.parts[0].meta["start"], last.meta["end"] + 1
        found = tables.find(name_parts(table))
        if found is None or start in seen:
            continue
        seen.add(start)
        stop, clause = clauses.get(end, (end, None))
        alias = None if table.alias or table.args.get("pivots") else last.name
        alias_at = _end_of_sample(words, stop) if table.args.get("sample") else stop
        yield _Reference(start, stop, alias_at, table, found, clause, alias)


def _end_of_sample(words: Sequence[Word], start: int) -> int:
    """Return where `TABLESAMPLE (…) [REPEATABLE (…)]` ends, which begins behind a place."""
    depth, end = 0, start
    for word in words:
        if word.start < start:
            continue
        if depth == 0 and word.upper not in ("TABLESAMPLE", "REPEATABLE", "("):
            break
        depth += {"(": 1, ")": -1}.get(word.upper, 0)
        end = word.stop
    return end


def _reads(references: Sequence[_Reference], needs: QueryNeeds, tables: Tables, text: str) -> list[TableQuery]:
    """Return what the query needs of each table. Spark evaluates the constants of all conditions at once."""
    constants = EvaluatedConstants(text, tables)
    reads = [_Read(each, needs, tables, constants, has_escapes="\\" in text) for each in references]
    constants.evaluate(asked for read in reads for asked in read.constants())
    return [read.query() for read in reads]


class _Read:
    """What a query reads of one table."""

    def __init__(
        self,
        reference: _Reference,
        needs: QueryNeeds,
        tables: Tables,
        constants: EvaluatedConstants,
        *,
        has_escapes: bool,
    ) -> None:
        self._table, self._needs = reference.table, needs
        snapshot = tables.open(reference.found, reference.clause).snapshot
        self._whole = TableQuery(tables.session, snapshot, blob_handling=tables.blob_handling)
        self._conjuncts = list(needs.conjuncts(reference.table, snapshot.schema.names))
        self._translation = ConditionTranslation(
            snapshot.schema,
            tables.case_rule,
            in_utc=tables.in_utc,
            has_escapes=has_escapes,
            args=tables.args,
            constants=constants,
            later=True,
        )

    def constants(self) -> Iterator[exp.Expr]:
        """Yield the constants that Spark evaluates before `query` is called."""
        for conjunct in self._conjuncts:
            yield from self._translation.constants_in(conjunct)

    def query(self) -> TableQuery:
        """Return the query of what is needed."""
        query, names = self._whole, self._whole.snapshot.schema.names
        unspelled = {name for name in names if "`" in name}  # a condition travels as SQL, which cannot name these
        pushed, num_exact = list[Predicate](), 0
        for conjunct in self._conjuncts:
            predicate = self._translation.predicate(conjunct)
            if predicate is not None and unspelled.isdisjoint(predicate.columns()):
                pushed.append(predicate)
                num_exact += not self._translation.depends_on_clock(conjunct)
        if pushed:
            query = query.where(build.all_of(*pushed))
        columns = self._needs.columns(self._table, names)
        if columns is not None:
            query = query.select(*(columns or (_COUNTED,)))
        limit = self._needs.limit(self._table)
        if limit is not None and num_exact == self._needs.where_parts(self._table):
            query = query.limit(limit)
        return query


def _shape(read: TableQuery) -> DataFrame:
    """Return a DataFrame without rows that has all columns of the table."""
    columns = visible_schema(SourceOptions(path=read.snapshot.uri, blob_handling=read.blob_handling), read.snapshot)
    return read.session.createDataFrame([], from_arrow_schema(columns))


def _with_frames(text: str, references: list[_Reference], frames: Iterable[str]) -> str:
    """Return the text as a template of Spark's, with a field in place of each reference."""
    parts, at = [], 0
    for reference, name in zip(references, frames, strict=True):
        alias = "" if reference.alias is None else f" AS {quoted_path(reference.alias)}"
        sample = text[reference.stop : reference.alias_at]
        parts += [_literal(text[at : reference.start]), f"{{{name}}}", _literal(sample + alias)]
        at = reference.alias_at
    return "".join([*parts, _literal(text[at:])])


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
