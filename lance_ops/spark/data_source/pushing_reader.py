"""A reader that takes filters from Spark's queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql.datasource import Filter

from lance_ops.core.predicate.binding import build
from lance_ops.spark.data_source.table_reader import LanceReader
from lance_ops.spark.translation import pushed_predicate

__all__ = ["PushingReader"]


class PushingReader(LanceReader):
    """Also takes the filters that Spark offers, where they have the same meaning in this library.

    Spark 4 keeps one reader for all scans of a DataFrame: the one planned last, with its filters. A second query over
    the DataFrame, or a second use of it in one query, then silently gets the filters of another. Therefore a user must
    ask for this reader (`push_filters`), and must `load` again for every use.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters that translate exactly, and yield the others back to Spark."""
        table = self._snapshot.schema.to_arrow_storage()
        for asked in filters:
            predicate = pushed_predicate(asked, table, self.shape)
            if predicate is None:
                yield asked
            else:
                known = self.request.predicate
                both = predicate if known is None else build.all_of(known, predicate)
                self.request = replace(self.request, predicate=both)
