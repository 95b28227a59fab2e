"""A stream that cannot be read: it says why when Spark asks where it begins.

Where `streamReader` raises an error, Spark's worker goes on to stop the reader that it does not have. Then the user
sees an `UnboundLocalError` of the worker after the error.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from lance_ops.core.errors import LanceOpsError
from lance_ops.spark.data_source.hidden_frames import without_frames

__all__ = ["RefusedStream"]


class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises the error that refused the stream, whichever of these Spark calls first."""

    def __init__(self, error: LanceOpsError) -> None:
        self._error = error

    @without_frames(of_stream=True)
    def initialOffset(self) -> NoReturn:  # noqa: N802 - Spark's name
        """Raise the error, to a query without a checkpoint."""
        raise self._error

    @without_frames(of_stream=True)
    def getDefaultReadLimit(self) -> NoReturn:  # noqa: N802 - Spark's name
        """Raise the error, to a query with a checkpoint."""
        raise self._error

    @without_frames(of_stream=True)
    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> NoReturn:  # noqa: N802 - Spark's name
        """Raise the error."""
        raise self._error

    @without_frames(of_stream=True)
    def prepareForTriggerAvailableNow(self) -> NoReturn:  # noqa: N802 - Spark's name
        """Raise the error, to a query that reads what is available."""
        raise self._error

    def read(self, partition: InputPartition) -> NoReturn:
        """Raise the error."""
        raise self._error
