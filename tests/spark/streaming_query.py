"""A streaming query, planned and read as Spark does it: offsets travel as JSON, tasks are pickled.

Spark keeps no offset before the first micro-batch: it asks for it to plan that micro-batch, and again to read it.
"""

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
        self.offset = self._first_offset()
        self._start = self.offset
        self._has_read = False

    def restart(self) -> None:
        """Start again from the checkpoint, in another process."""
        self.reader = self._new_reader()

    def next(self, limit: ReadLimit | None = None) -> list[int]:
        """Return the rows of the next micro-batch."""
        self.plan(limit)
        return self.run()

    def plan(self, limit: ReadLimit | None = None) -> None:
        """Put the end of the next micro-batch into the checkpoint."""
        self._start = self.offset
        asked = self.reader.getDefaultReadLimit() if limit is None else limit
        self.offset = json.loads(json.dumps(self.reader.latestOffset(self._start, asked)))

    def run(self) -> list[int]:
        """Return the rows of the micro-batch that was planned last."""
        found = self.rows(self._start if self._has_read else self._first_offset(), self.offset)
        self._has_read = True
        return found

    def rows(self, start: dict[str, int], end: dict[str, int]) -> list[int]:
        return [row["x"] for row in self.values(start, end)]

    def values(self, start: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
        """Return the rows between two offsets with all their columns."""
        task = pickle.loads(pickle.dumps(self.reader))
        parts = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        return [row for part in parts for batch in task.read(part) for row in batch.to_pylist()]

    def _first_offset(self) -> dict[str, int]:
        offset: dict[str, int] = json.loads(json.dumps(self.reader.initialOffset()))
        return offset

    def _new_reader(self) -> LanceStreamReader | LanceChangeReader:
        source = LanceSource(self._options)
        schema = source.schema()
        assert isinstance(schema, StructType)
        self.source, self.schema = pickle.loads(pickle.dumps(source)), schema
        return self.source.streamReader(schema)  # type: ignore[no-any-return]
