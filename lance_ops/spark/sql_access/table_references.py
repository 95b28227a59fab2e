"""Read how SQL names a table and a version of it, and open what it names.

lance.`/data/flights.lance`        a path or URI
flights                            a name of the namespace
… VERSION AS OF 3                  a version by number
… VERSION AS OF 'release'          a tag, or else a branch; `main` is the main branch, and a text of digits that neither
                                   has for a name is a version's number
… TIMESTAMP AS OF '2026-01-31'     the version that was newest at that moment, in the session's time zone
…@v3                               the same as VERSION AS OF 3
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lance_ops.api import LanceDataset, dataset
from lance_ops.api.namespaces import Namespace, TableDescription
from lance_ops.core.errors import InvalidInput, ReferenceNotFound, UnsupportedFeature
from lance_ops.core.file_names import MAIN_BRANCH
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import public_uri
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import BlobHandling
from lance_ops.spark.sql_access.words import Kind, Reader
from lance_ops.spark.translation import CaseRule, quoted_path, session_case_rule

__all__ = ["FORMAT", "Tables", "VersionClause", "read_version_clause", "version_or_name"]

FORMAT = "lance"
"""The name before a path: ``lance.`/data/flights.lance` ``."""

_AT_VERSION = re.compile(r"v([0-9]+)", re.IGNORECASE)
_MOMENTS = ("TIMESTAMP", "SYSTEM_TIME")
_VERSIONS = ("VERSION", "SYSTEM_VERSION")
_UNITS = tuple(unit + end for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND") for end in ("", "S"))
_BRANCH_AT_VERSION = re.compile(r"(.+)@v([0-9]+)")
_NUMBER = re.compile("[0-9]+")
_BITS_OF_VERSION = 64


@dataclass(frozen=True)
class VersionClause:
    """Which version a reference names: a number, the text of a tag, branch or number, or the SQL of a moment."""

    version: int | None = None
    name: str | None = None
    moment: str | None = None


def read_version_clause(reader: Reader) -> VersionClause | None:
    """Read the version behind a table's name, if there is one."""
    if reader.accept("@"):
        match = _AT_VERSION.fullmatch(reader.name("v and a version's number"))
        if match is None:
            raise InvalidInput("SQL on a Lance table: @ is followed by v and a version's number, as in flights@v3")
        return VersionClause(version=int(match[1]))
    begin = reader.at
    reader.accept("FOR")
    for words, is_moment in ((_VERSIONS, False), (_MOMENTS, True)):
        for word in words:
            if reader.accept(word, "AS", "OF"):
                return VersionClause(moment=_moment(reader)) if is_moment else version_or_name(reader)
    reader.at = begin
    return None


def version_or_name(reader: Reader) -> VersionClause:
    """Read a version's number, or a tag's or branch's name in quotes."""
    word = reader.next
    if word is None or word.kind is not Kind.TEXT:
        return VersionClause(version=reader.number("a version's number, or a tag or branch in quotes"))
    return VersionClause(name=reader.literal("a name"))


def _checked(version: int) -> int:
    if version.bit_length() > _BITS_OF_VERSION:
        raise InvalidInput(f"VERSION AS OF {version}: a version's number fits into {_BITS_OF_VERSION} bits")
    return version


def _moment(reader: Reader) -> str:
    """Read one value: a text, a literal as DATE '…', or a call; intervals may be added and subtracted."""
    begin, word = reader.at, reader.next
    if word is None or word.kind not in (Kind.TEXT, Kind.NAME):
        raise reader.error("a moment in quotes, or a call that returns one")
    reader.at += 1
    if word.kind is Kind.NAME:
        if reader.accept("("):
            if not reader.peek(")"):
                reader.until(what="an argument")
            reader.expect(")")
        elif reader.next is not None and reader.next.kind is Kind.TEXT:
            reader.at += 1
    while reader.accept_any("+", "-"):
        _read_interval(reader)
    return reader.between(begin, reader.at)


def _read_interval(reader: Reader) -> None:
    """Read the word INTERVAL and its value: INTERVAL 1 DAY 2 HOURS, INTERVAL '1' DAY or INTERVAL '1 day'."""
    reader.expect("INTERVAL")
    while True:
        word = reader.next
        if word is None or word.kind not in (Kind.TEXT, Kind.NUMBER):
            raise reader.error("an interval, as INTERVAL 1 DAY")
        reader.at += 1
        has_unit = reader.accept_any(*_UNITS) is not None
        if reader.accept("TO") and reader.accept_any(*_UNITS) is None:
            raise reader.error("a unit of time")
        if not has_unit or reader.next is None or reader.next.kind is not Kind.NUMBER:
            return


@dataclass(frozen=True)
class Tables:
    """What the tables of a statement's names are. `storage_options` are those of tables that are named by a path.

    `args` are the values of the parameters in its queries, as `SparkSession.sql` takes them. A table in `pinned`, by
    its URI, is read at that version where the statement names none. `has_quoted_names` says that the statement has
    names in double quotes, which only Spark reads as names. `blob_handling` is that of the tables that queries read.

    A reference is opened once, so all uses of it in a statement read the same version.
    """

    session: SparkSession
    namespace: Namespace | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    args: Mapping[str, Any] | Sequence[Any] | None = field(default=None, repr=False)
    pinned: Mapping[str, int] = field(default_factory=dict)
    has_quoted_names: bool = False
    blob_handling: BlobHandling | None = None
    _places: dict[tuple[str, bool], TableDescription | None] = field(default_factory=dict, repr=False, compare=False)
    _opened: dict[tuple[str, VersionClause | None], LanceDataset] = field(
        default_factory=dict, repr=False, compare=False
    )

    def reading(self, snapshot: Snapshot) -> Tables:
        """Return tables of the same names.

        The table of the snapshot, by its path or its name, is opened at the snapshot's version. Other tables are opened
        again.
        """
        return replace(self, pinned={snapshot.uri: snapshot.version}, _opened={})

    def has_read(self, uri: str) -> bool:
        """Return whether the newest version of a table, or the pinned one, was opened: a query reads it."""
        return any(clause is None and opened.uri == uri for (_, clause), opened in self._opened.items())

    def for_query_to_write(self) -> Tables:
        """Return the same names for a query whose rows are written: of blobs it reads the bytes, unless told otherwise.

        A description of where bytes are says nothing in another table.
        """
        return self if self.blob_handling is not None else replace(self, blob_handling="all_binary")

    def spark_sql(self, text: str, **frames: Any) -> DataFrame:
        """Return what Spark makes of a text in which `{name}` stands for a frame, with the statement's parameters.

        Without frames the text is no template, and braces in it are braces.
        """
        if not self.args:
            return self.session.sql(text, **frames)
        args: Any = dict(self.args) if isinstance(self.args, Mapping) else list(self.args)
        return self.session.sql(text, args=args, **frames)

    @property
    def case_rule(self) -> CaseRule:
        """How the session matches names of columns."""
        return session_case_rule(self.session)

    @property
    def in_utc(self) -> bool:
        """Whether the session reads moments without a zone as UTC."""
        return self.session.conf.get("spark.sql.session.timeZone") in ("UTC", "Etc/UTC", "Z", "GMT")

    def find(self, parts: tuple[str, ...]) -> TableDescription | None:
        """Return where the table is; None if the name is not one of a Lance table."""
        name = parts[-1]
        is_path = len(parts) == 2 and parts[0].lower() == FORMAT
        stored = self._stored_table(name, after_spark=not is_path) if is_path or len(parts) == 1 else None
        if stored is not None:
            return stored
        return self.at(name) if is_path else None

    def place(self, parts: tuple[str, ...], *, named: bool) -> TableDescription | None:
        """Return where a table of that name is or would be created; with `named` in the namespace, too."""
        if len(parts) == 2 and parts[0].lower() == FORMAT:
            return self.find(parts) or self.at(parts[1])
        if len(parts) > 1 or self.namespace is None:
            return None
        stored = self._stored_table(parts[0])
        return self.namespace.declare_table(parts[0]) if stored is None and named else stored

    def _stored_table(self, name: str, *, after_spark: bool = False) -> TableDescription | None:
        """Return the table of the namespace that has a name by the session's case rule; None if there is none.

        With `after_spark` a table or view of Spark comes before a name that differs in case. Raises `InvalidInput` if
        several tables have the name in other cases. The namespace is asked once for each name.
        """
        if self.namespace is None:
            return None
        asked = name, after_spark
        if asked not in self._places:
            self._places[asked] = self._place_in(self.namespace, name, after_spark=after_spark)
        return self._places[asked]

    def _place_in(self, namespace: Namespace, name: str, *, after_spark: bool) -> TableDescription | None:
        """Ask the namespace; see `_stored_table`."""
        table = namespace.find_table(name)
        if table is not None or "/" in name or self.case_rule is CaseRule.SENSITIVE:
            return table
        found = namespace.tables_like(name)
        if found and after_spark and self.session.catalog.tableExists(quoted_path(name)):
            return None
        if len(found) > 1:
            raise InvalidInput(
                f"SQL on a Lance table: {name!r} may be any of the tables {', '.join(found)}: write the name as the "
                "namespace does"
            )
        return next(iter(found.values()), None)

    def at(self, uri: str) -> TableDescription:
        """Return the table at a path or URI; raise `InvalidInput`, without showing it, if it holds a secret."""
        if public_uri(uri) != uri:
            raise InvalidInput("a URI with a password, token or signature in it: pass credentials in storage_options")
        return TableDescription(uri, self.storage_options)

    def open(self, table: TableDescription, clause: VersionClause | None = None) -> LanceDataset:
        """Open a version, by default the newest one. Raises `UnsupportedFeature` if names are in double quotes."""
        if self.has_quoted_names:
            raise UnsupportedFeature(
                "names in double quotes (spark.sql.ansi.doubleQuotedIdentifiers) in a statement on a Lance table: "
                "write them in backticks, and texts in single quotes"
            )
        reference = table.location, clause
        if reference not in self._opened:
            self._opened[reference] = self._open(table, clause)
        return self._opened[reference]

    def _open(self, table: TableDescription, clause: VersionClause | None) -> LanceDataset:
        opened = dataset(table.location, storage_options=table.storage_options)
        if clause is None:
            version = self.pinned.get(opened.uri)
            return opened if version is None else opened.checkout_version(version)
        if clause.moment is not None:
            moment = self.moment(clause.moment)
            return dataset(table.location, asof=moment, storage_options=table.storage_options)
        if clause.name is None:
            assert clause.version is not None
            return opened.checkout_version(_checked(clause.version))
        if clause.name in opened.tags.list():
            return opened.checkout_version(clause.name)
        branches = opened.branches.list()
        if _NUMBER.fullmatch(clause.name) and clause.name not in branches:
            return opened.checkout_version(_checked(int(clause.name)))
        match = _BRANCH_AT_VERSION.fullmatch(clause.name)
        branch, version = (match[1], _checked(int(match[2]))) if match else (clause.name, None)
        if branch != MAIN_BRANCH and branch not in branches:
            raise ReferenceNotFound(
                f"{opened.uri} has no tag and no branch {clause.name!r} ('branch@v3' is a version of a branch)"
            )
        return opened.checkout_version((branch, version))

    def moment(self, sql: str) -> datetime:
        """Return the moment that an expression of Spark's SQL means, in the session's time zone."""
        row = self.session.sql(f"SELECT unix_micros(CAST(({sql}) AS TIMESTAMP)) AS micros").first()
        if row is None or row.micros is None:
            raise InvalidInput(f"TIMESTAMP AS OF {sql}: that is no moment")
        seconds, micros = divmod(int(row.micros), 1_000_000)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)
