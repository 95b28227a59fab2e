"""What a preview knows of rows that meet given keys: how many there are, and a few of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.api import LanceDataset
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS, ScanRequest, take_addresses
from lance_ops.verbs.contract import Section
from lance_ops.verbs.sections import SAMPLE_ROWS, sample_section, sample_title, short_columns

__all__ = ["ComingRows", "FirstRows", "MatchedKeys"]


@dataclass(frozen=True)
class FirstRows:
    """How many rows of a table were found, and the addresses of the first of them."""

    count: int
    first: Uint64Array

    @classmethod
    def among(cls, parts: Iterator[pa.Table]) -> FirstRows:
        """Count the rows of tables with a column of addresses; a join does not keep their order."""
        count, first = 0, np.array([], np.uint64)
        for part in parts:
            if len(first) < SAMPLE_ROWS:
                first = np.append(first, np.sort(part[ROW_ADDRESS].to_numpy())[: SAMPLE_ROWS - len(first)])
            count += part.num_rows
        return cls(count, first)

    def rows(self, data: LanceDataset, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the first rows."""
        return take_addresses(data.snapshot, self.first, ScanRequest(data.snapshot.schema.project(list(columns))))

    def sections(self, data: LanceDataset, title: str, on: Sequence[str]) -> list[Section]:
        """Return a section of the first rows, which shows the columns `on`; none without rows."""
        if not self.count:
            return []
        shown = self.rows(data, short_columns(data.schema, wanted=on))
        return [sample_section(sample_title(title, self.count), shown)]


@dataclass(frozen=True)
class ComingRows:
    """Rows of a source: how many, and how many of them have a key that the table lacks.

    `first` are its first rows, and `replacing` rows with the keys of the first rows that match, for an update.
    """

    count: int
    num_new: int
    first: pa.Table
    replacing: pa.Table


_NOT_ASKED_FOR = ComingRows(0, 0, pa.table({}), pa.table({}))


@dataclass(frozen=True)
class MatchedKeys:
    """How a table meets a source by key: its rows with a key of the source, and others that meet a condition.

    `unmatched` is empty without a condition, and `coming`, the source's side, unless it was asked for.
    """

    matched: FirstRows
    unmatched: FirstRows
    coming: ComingRows = _NOT_ASKED_FOR
