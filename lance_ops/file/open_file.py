"""The contract of an open data file: the class of each file version reads its own metadata and pages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import pyarrow as pa

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.container import Column
from lance_ops.file.page_reading import Budget, Extent, FileSource, RowSelection, Steps

__all__ = ["ColumnPart", "DescribedFile", "EqualPart", "LeafPage", "OpenFile", "Sections"]


_METADATA_FACTOR = 16  # metadata is parsed, and then Python objects
_FILE_BYTES_PER_INDEX_BYTE = 256  # three numbers for each chunk of some kilobytes


class ColumnPart(NamedTuple):
    """Part of a column's wanted rows: the reads that it takes, and what makes one array of their results."""

    steps: Sequence[Steps[Any]]
    to_array: Callable[[Sequence[Any]], pa.Array]


class EqualPart(NamedTuple):
    """The wanted rows of several fields that are decoded together; the steps return an array for each field.

    `places` says where the fields are among those that the caller asked for.
    """

    places: Sequence[int]
    steps: Steps[Sequence[pa.Array]]


@dataclass(frozen=True)
class Sections:
    """How many bytes each part of a 2.x file takes."""

    data_bytes: int
    column_metadata_bytes: int
    global_buffer_bytes: int


class DescribedFile(Protocol):
    """What a file says about its columns; one file may speak for others that say the same."""

    @property
    def path(self) -> str:
        """The file's full name, for errors."""

    @property
    def version(self) -> FileVersion:
        """The file's version."""

    @property
    def schema(self) -> Schema:
        """The file's own schema."""

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The id of each column's field in the file's own schema."""


class LeafPage(ABC):
    """A page of one leaf that is ready to be read; pages of several files can be read by one call."""

    @property
    def read_key(self) -> Hashable | None:
        """Pages of one leaf with equal keys are read by one call of `read_group`; None for a page that is not."""
        return None

    @classmethod
    @abstractmethod
    def read_group(
        cls, pages: Sequence[Self], rows: Sequence[RowSelection], file_starts: Sequence[int] = ()
    ) -> Steps[Any]:
        """Read rows of pages with equal keys, as if they were one page; or of a single page.

        If the pages come from several files laid end to end, `file_starts[i]` is where the file of page `i` begins.
        """


class OpenFile(ABC):
    """A file whose metadata is read. What only some versions have raises `InvalidInput` in the others."""

    version: FileVersion
    schema: Schema
    num_rows: int
    field_ids: tuple[int, ...]
    """The id of each column's field, in the file's own schema."""
    global_buffers: tuple[Extent, ...] = ()
    """Buffers that belong to the file as a whole; the first holds the schema and the number of rows."""
    metadata_bytes = 0
    """Bytes of column metadata and global buffers."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.path = source.name

    @property
    def decoded_bytes(self) -> int:
        """About how many bytes of memory the file takes once all of its columns have been read."""
        return _METADATA_FACTOR * self.metadata_bytes + self.source.size_bytes // _FILE_BYTES_PER_INDEX_BYTE

    @property
    def num_columns(self) -> int:
        """Number of columns that the file's schema asks for."""
        return len(self.field_ids)

    def prefetch_metadata(self, fields: Sequence[Field]) -> None:
        """Read the column metadata of several fields at once; otherwise each field would read its own."""
        return

    @abstractmethod
    def load_metadata(self, field: Field) -> None:
        """Read the metadata of a field's columns ahead of `column_parts`; raises the same errors."""

    @abstractmethod
    def column_parts(self, field: Field, rows: RowSelection, budget: Budget) -> list[ColumnPart]:
        """Return the reads of a field's wanted rows, in parts that each make one array and follow each other.

        The arrays are counted against the budget. Raises `InvalidInput` for a field that the file does not have; the
        caller has checked that the rows are in the file.
        """

    def equal_parts(self, fields: Sequence[Field], rows: RowSelection, budget: Budget) -> list[EqualPart]:
        """Return the reads of those fields that are decoded together, because their columns are stored alike.

        The steps raise `CorruptFile` and `UnsupportedFeature` without the column that causes them: the caller then
        reads each field on its own, by `column_parts`.
        """
        return []

    @abstractmethod
    def encoded_bytes(self, schema: Schema) -> int:
        """Return about how many bytes of the file a projection's columns take."""

    @abstractmethod
    def describe(self, index: int) -> list[tuple[str, ...]]:
        """Name the layout and encodings of each page of a column."""

    def sections(self) -> Sections:
        """Return how many bytes each part of a 2.x file takes."""
        raise self._no_column_metadata()

    def column(self, index: int) -> Column:
        """Return the pages of one column of a 2.x file."""
        raise self._no_column_metadata()

    def pages(self, fields: Sequence[Field], rows: RowSelection) -> list[list[list[tuple[LeafPage, RowSelection]]]]:
        """Return, for each leaf of each field, the pages that hold some of the rows, and those rows of the page.

        Only files of 2.1 and later have such pages.
        """
        raise InvalidInput(f"{self.path} is of version {self.version.value}: it has no pages of leaves")

    def batch_offsets(self) -> tuple[int, ...]:
        """Return the first row of each batch of a 0.1 file, and the end of the last batch."""
        raise self._no_batches()

    def batch_statistics(self, field_id: int) -> pa.StructArray | None:
        """Return null_count, min_value and max_value of a field for each batch of a 0.1 file, or None."""
        raise self._no_batches()

    def dictionary_values(self, field_id: int) -> pa.Array:
        """Return the values that a 0.1 file itself stores of a dictionary column."""
        raise InvalidInput(f"{self.path} has no dictionary of a field {field_id}")

    def _no_column_metadata(self) -> InvalidInput:
        return InvalidInput(f"{self.path} is of version {self.version.value}: it has no column metadata")

    def _no_batches(self) -> InvalidInput:
        return InvalidInput(f"{self.path} is of version {self.version.value}: only 0.1 files have batches")
