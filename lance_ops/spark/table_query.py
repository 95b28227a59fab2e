"""Say what to read of a table before Spark plans: Spark prunes no columns of a Python source, and pushes no limit.

    flights = table(spark, "/data/flights.lance")
    frame = flights.where("delay > 60 OR delay IS NULL").select("id", "delay").load()     # a DataFrame
    flights.limit(10).load().show()

Only the columns of `select` are read. The filter of `where` is answered by this library, with indices and statistics,
in the tasks that read. What comes after `load` is Spark's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from os import PathLike, fspath

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lance_ops.api import dataset
from lance_ops.core.errors import InvalidInput, WrongType
from lance_ops.core.predicate import Predicate
from lance_ops.core.predicate.binding import build
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import public_uri
from lance_ops.core.schema import split_path
from lance_ops.reading import UserFilter, bind_filter, plan_scan
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import (
    BlobHandling,
    LanceReader,
    SourceOptions,
    check_blob_handling,
    visible_schema,
)
from lance_ops.spark.planned_read import planned_frame
from lance_ops.spark.private_options import private_format
from lance_ops.spark.session_kind import check_is_running
from lance_ops.spark.translation import quoted_path, row_column, session_case_rule, stored_path

__all__ = ["TableQuery", "table"]


@dataclass(frozen=True)
class TableQuery:
    """One version of a table and what to read of it. Each method returns a new query; `load` returns a DataFrame."""

    session: SparkSession
    snapshot: Snapshot
    predicate: Predicate | None = None
    columns: tuple[str, ...] | None = None
    num_rows: int | None = None
    blob_handling: BlobHandling | None = None

    @property
    def title(self) -> str:
        """The name and the version of the table, as Spark's plans show them."""
        return f"lance {self.snapshot.uri.rstrip('/').rpartition('/')[2]} v{self.snapshot.version}"

    def where(self, condition: UserFilter) -> TableQuery:
        """Keep the rows that match this condition and those before; it is SQL text or a pyarrow expression.

        Raises `InvalidFilter` for a condition that does not fit the table, and `InvalidInput` after `limit`: Spark
        would filter the rows within the limit, and this would limit the rows that match.
        """
        if isinstance(condition, Column):
            raise WrongType("where takes SQL text or a pyarrow expression, not a Column of Spark: use .load().where(…)")
        if self.num_rows is not None:
            raise InvalidInput("where comes before limit; to filter the rows within the limit, use .load().where(…)")
        asked = bind_filter(self.snapshot, condition)
        return replace(self, predicate=asked if self.predicate is None else build.all_of(self.predicate, asked))

    def select(self, *columns: str) -> TableQuery:
        """Read only these columns, nested fields as `a.b`, or row columns as `_rowid`; the DataFrame has this order.

        Raises `InvalidInput` naming a column that the table does not have, and for a second `select`.
        """
        if not columns:
            raise InvalidInput("select needs the name of a column")
        if not all(isinstance(name, str) for name in columns):
            raise WrongType("select takes names of columns: use .load().select(…) for expressions")
        if self.columns is not None:
            raise InvalidInput(f"the columns are chosen already: {', '.join(self.columns)}")
        return replace(self, columns=tuple(map(self._stored, columns)))

    def limit(self, num_rows: int) -> TableQuery:
        """Return at most `num_rows` rows; the least of several limits counts. Tasks stop when they have enough rows."""
        if isinstance(num_rows, bool) or not isinstance(num_rows, int) or num_rows < 0:
            raise InvalidInput(f"limit is a number of rows, not {num_rows!r}")
        return replace(self, num_rows=num_rows if self.num_rows is None else min(num_rows, self.num_rows))

    def load(self) -> DataFrame:
        """Return the DataFrame. `load` itself reads a small table; Spark's tasks read a larger one, at each query.

        A read is small below 32 MB in the files and up to 64 MB of decoded rows. The DataFrame then holds these rows,
        and `load` raises the errors of damaged files. It needs no Python worker, which takes longer to start than such
        a read takes. Other reads are planned here, with indices, and Spark knows their size, by which it chooses joins;
        `planned_frame` says which ones Spark plans.
        """
        frame = self._without_rows() if self.num_rows == 0 else self._planned()
        if frame is None:
            source = private_format(self.session, self.snapshot.storage_options)
            frame = self.session.read.format(source).options(**self._options()).load(self.snapshot.uri)
        if self.columns is not None:
            frame = frame.select(*map(self._quoted, self.columns))
        return frame if self.num_rows is None else frame.limit(self.num_rows)

    def explain_plan(self) -> str:
        """Describe how the rows are found, one node in each line, as `LanceDataset.scanner(…).explain_plan` does."""
        reader, _ = self._reader()
        return plan_scan(self.snapshot, reader.request).explain()

    def _without_rows(self) -> DataFrame:
        return self.session.createDataFrame([], self._reader()[1])

    def _planned(self) -> DataFrame | None:
        reader, schema = self._reader()
        return planned_frame(self.session, reader, schema, self.title)

    def _reader(self) -> tuple[LanceReader, StructType]:
        given = SourceOptions.parse({**self._options(), "path": self.snapshot.uri})
        options = replace(given, storage_options=self.snapshot.storage_options)
        schema = from_arrow_schema(visible_schema(options, self.snapshot))
        return LanceReader(options, schema, snapshot=self.snapshot), schema

    def _options(self) -> dict[str, str]:
        options = {
            "version": str(self.snapshot.version),
            "filter": None if self.predicate is None else self.predicate.to_sql(),
            "columns": None if self.columns is None else json.dumps(self.columns),
            "rows_needed": str(self.num_rows) if self.num_rows else None,
            "blob_handling": self.blob_handling,
            "case_sensitive": str(session_case_rule(self.session).value).lower(),
        }
        return {name: value for name, value in options.items() if value is not None}

    def _quoted(self, path: str) -> str:
        """Return a stored path as Spark's own calls take it: a name may hold a back quote."""
        names = (path,) if path in self.snapshot.schema.names else split_path(path)
        return quoted_path(*names)

    def _stored(self, path: str) -> str:
        schema, rule = self.snapshot.schema, session_case_rule(self.session)
        of_rows = row_column(path, schema.names, rule)
        if of_rows is not None:
            return of_rows
        found = rule.find(path, schema.names) or stored_path(path, schema, rule)
        return f"`{found}`" if found in schema.names and "." in found else found


def table(
    session: SparkSession,
    uri: str | PathLike[str],
    version: int | str | tuple[str | None, int | None] | None = None,
    asof: datetime | str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    blob_handling: BlobHandling | None = None,
) -> TableQuery:
    """Open a table to read it in Spark; `version` and `asof` are as in `lance_ops.dataset`.

    `blob_handling` is as the option of `format("lance")`: `all_binary` reads blobs as bytes, and
    `blobs_descriptions`, the default, as descriptions of where their bytes are.

    The version is settled here, and the errors are those of `lance_ops.dataset`. No plan of Spark shows the storage
    options. Raises `InvalidInput` for a URI that holds a secret, without showing it, and for another `blob_handling`,
    and `WrongType` for a truth value as the version, which Python takes for a number.
    """
    check_is_running(session)
    if isinstance(version, bool):
        raise WrongType(f"version is a number, a tag's name or (branch, version), not {version}")
    path = fspath(uri)
    if public_uri(path) != path:
        raise InvalidInput("a URI with a password, token or signature in it: pass credentials in storage_options")
    check_blob_handling("blob_handling", blob_handling)
    opened = dataset(path, version, asof, storage_options=storage_options)
    return TableQuery(session, opened.snapshot, blob_handling=blob_handling)
