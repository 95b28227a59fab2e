"""One statement while it is read and executed: its words, the tables that it may name, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from lance_ops.api.namespaces import TableDescription
from lance_ops.core.errors import InvalidInput
from lance_ops.runners import Runner
from lance_ops.spark.sql_access.table_references import Tables
from lance_ops.spark.sql_access.words import Reader

__all__ = ["Statement"]


@dataclass(frozen=True)
class Statement:
    """A statement that `reader` reads, with what its names mean and what runs its tasks."""

    reader: Reader
    tables: Tables
    runner: Runner

    def table(self) -> TableDescription | None:
        """Read a table's name; None if it is not one of a Lance table."""
        return self.tables.find(self.reader.path("a table"))

    def lance_table(self) -> TableDescription:
        """Read the name of a Lance table, in a statement that Spark does not have."""
        begin = self.reader.at
        found = self.table()
        if found is None:
            name = self.reader.between(begin, self.reader.at)
            raise InvalidInput(f"SQL: {name} is no Lance table: write lance.`path`, or a name of the namespace")
        return found

    def result(self, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        """Return a DataFrame of a few rows; the schema is in Spark's words."""
        return self.tables.session.createDataFrame(list(rows), schema)

    def nothing(self) -> DataFrame:
        """Return the result of a statement that says nothing."""
        return self.tables.session.createDataFrame([], "struct<>")
