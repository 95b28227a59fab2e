"""A streaming query, planned and read as Spark does it: offsets travel as JSON, tasks are pickled."""

from __future__ import annotations

import json
import pickle
from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from lance_ops.spark.data_source import LanceChangeReader, LanceSource, LanceStreamReader

__all__ = ["Query"]


class Query:
    """A streaming query: its checkpoint, and one micro-batch after the other."""

    def __init__(self, uri: str, **options: str) -> None:
        self._options = {"path": uri, **options}
        self.reader = self._new_reader()
        self.offset = json.loads(json.dumps(self.reader.initialOffset()))

    def restart(self) -> None:
        """Start again from the checkpoint, in another process."""
        self.reader = self._new_reader()

    def next(self, limit: ReadLimit | None = None) -> list[int]:
        """Return the rows of the next micro-batch."""
        start = self.offset
        asked = self.reader.getDefaultReadLimit() if limit is None else limit
        self.offset = json.loads(json.dumps(self.reader.latestOffset(start, asked)))
        return self.rows(start, self.offset)

    def rows(self, start: dict[str, int], end: dict[str, int]) -> list[int]:
        return [row["x"] for row in self.values(start, end)]

    def values(self, start: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
        """Return the rows between two offsets with all their columns."""
        task = pickle.loads(pickle.dumps(self.reader))
        parts = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        return [row for part in parts for batch in task.read(part) for row in batch.to_pylist()]

    def _new_reader(self) -> LanceStreamReader | LanceChangeReader:
        source = LanceSource(self._options)
        schema = source.schema()
        assert isinstance(schema, StructType)
        self.source, self.schema = pickle.loads(pickle.dumps(source)), schema
        return self.source.streamReader(schema)  # type: ignore[no-any-return]
