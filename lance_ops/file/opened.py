"""What every file version has in common once its metadata is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.budget import Budget
from lance_ops.file.container import Column, Extent
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps

__all__ = ["Batches", "Chunk", "Columns", "LoadColumns", "OpenFile", "Sections"]

Chunk = tuple[list[Steps[Any]], Callable[[Sequence[Any]], pa.Array]]
"""The reads that a chunk of a column takes, and what makes an array of their results."""

LoadColumns = Callable[[Sequence[int]], Sequence[Column]]


class Columns(ABC):
    """The columns of one file, opened as far as they were needed."""

    @property
    @abstractmethod
    def field_ids(self) -> tuple[int, ...]:
        """The id, in the file's own schema, of each column's field."""

    @property
    def num_columns(self) -> int:
        """Number of columns that the file's schema asks for."""
        return len(self.field_ids)

    def expect(self, fields: Sequence[Field]) -> None:
        """Read at once what is missing of the metadata of columns, of which each would be read by itself otherwise."""
        return

    @abstractmethod
    def load(self, field: Field) -> None:
        """Read the metadata of a column ahead of `tasks`, which reads what is missing; raises as that does."""

    @abstractmethod
    def tasks(self, field: Field, rows: Rows, budget: Budget) -> list[Chunk]:
        """Return, for every chunk of a column's wanted rows, the reads it takes and what makes an array of them.

        What they make is spent from the budget. Raises `InvalidInput` for a field the file does not have; `rows` are in
        the file.
        """

    @abstractmethod
    def encoded_bytes(self, schema: Schema) -> int:
        """Return how many bytes of the file a projection's columns take, roughly."""

    @abstractmethod
    def describe(self, index: int) -> list[tuple[str, ...]]:
        """Name the layout and encodings of each page of a column."""


@dataclass(frozen=True)
class Sections:
    """How many bytes each part of a 2.x file takes."""

    data_bytes: int
    column_metadata_bytes: int
    global_buffer_bytes: int


@dataclass(frozen=True)
class Batches:
    """The batches of a 0.1 file: their first rows and the end of the last, and a column of statistics by field id."""

    offsets: tuple[int, ...]
    statistics: Mapping[int, Field]
    columns: Columns | None


@dataclass(frozen=True)
class OpenFile:
    """A file whose metadata is read.

    `global_buffers`, `load_columns` and `sections` are for 2.x files, `batches` is for 0.1 files.
    """

    version: FileVersion
    schema: Schema
    num_rows: int
    columns: Columns
    global_buffers: tuple[Extent, ...]
    load_columns: LoadColumns | None
    sections: Sections | None
    batches: Batches | None
