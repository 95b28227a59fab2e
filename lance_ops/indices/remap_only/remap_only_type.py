"""The contract of an index type that this library only remaps: which files name rows, and how a remap writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, LanceOpsError, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter, copy_verified
from lance_ops.indices.remap_only.remapped_addresses import Remap, remap_address_tree
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = ["AddressColumn", "RemapOnlyType"]


@dataclass(frozen=True)
class AddressColumn:
    """The column of a file that names rows. `remap` gives its new values, for `batch_rows` rows of the file at a time.

    If the schema's metadata has `tree_key`, its value is the number of a global buffer with a set of addresses, which
    is remapped too.
    """

    name: str
    remap: Remap
    batch_rows: int
    tree_key: str | None = None


@dataclass(frozen=True)
class RemapOnlyType:
    """An index type. The name of the message that holds an index's details identifies the type.

    `address_columns` maps a pattern of file names to the column with addresses. `copied` is the pattern of the files
    without addresses. A pattern is a regular expression that matches the whole name. A type without address columns
    describes rows together, as a bloom filter does: it is not remapped, and covers none of the rows that moved.

    `keeps_entries_of_deleted_rows` says that a remap leaves the entries of deleted rows in their places, under the
    addresses that they had, because other files refer to entries by position.
    """

    details_name: str
    newest_index_version: int
    address_columns: Mapping[str, AddressColumn]
    copied: str = ""
    keeps_entries_of_deleted_rows: bool = False

    @property
    def names_rows(self) -> bool:
        """Whether an index names single rows."""
        return bool(self.address_columns)

    def checked_files(self, store: Store, metadata: IndexMetadata) -> tuple[IndexFile, ...]:
        """Return the index's files; `store` is its directory, which is listed if the metadata names no file.

        Raises `UnsupportedFeature` for an index version or a file that this library does not know, and if no file names
        rows.
        """
        where = f"index {metadata.name!r}"
        if (metadata.index_version or 0) > self.newest_index_version:
            raise UnsupportedFeature(f"version {metadata.index_version} of {self.details_name}", where)
        files = metadata.files or tuple(IndexFile(info.path, info.size_bytes) for info in store.list())
        for file in files:
            if self._column_of(file.path) is None and not (self.copied and re.fullmatch(self.copied, file.path)):
                raise UnsupportedFeature(f"file {file.path!r} of {self.details_name}", where)
        if not any(map(self._column_of, (file.path for file in files))):
            raise UnsupportedFeature(f"{self.details_name} without a file that names rows", where)
        return files

    def remap(
        self, store: Store, metadata: IndexMetadata, moves: RowAddressMap, store_out: Store
    ) -> tuple[IndexFile, ...]:
        """Write the index with the new addresses of its rows; `store` and `store_out` are directories of an index.

        The files are not synced. After a failure the written files are deleted; clean-up deletes those that could not
        be. Raises as `checked_files` does, and `CorruptFile`.
        """
        files = self.checked_files(store, metadata)
        # A remap removes from sets the rows of fragments that the segment does not cover. Single addresses all stay.
        mapped = moves if self.keeps_entries_of_deleted_rows else moves.within(metadata.fragment_bitmap)
        written: list[IndexFile] = []
        try:
            for file in files:
                column = self._column_of(file.path)
                written.append(
                    _copied(store, file, store_out)
                    if column is None
                    else _remapped(store, file, column, mapped, store_out)
                )
        except BaseException:
            for file in files:  # the store may have stored one although its answer was lost
                with suppress(LanceOpsError):  # clean-up will delete the file; the first error is the one to report
                    store_out.delete(file.path)
            raise
        return tuple(written)

    def _column_of(self, path: str) -> AddressColumn | None:
        return next((column for name, column in self.address_columns.items() if re.fullmatch(name, path)), None)


def _copied(store: Store, file: IndexFile, store_out: Store) -> IndexFile:
    size = copy_verified(store, file.path, store_out, file.path, durable=False)
    if size != file.size_bytes:
        raise CorruptFile(store.uri_of(file.path), "size", f"{size} bytes, and the manifest says {file.size_bytes}")
    return IndexFile(file.path, size)


def _remapped(
    store: Store, file: IndexFile, column: AddressColumn, moves: RowAddressMap, store_out: Store
) -> IndexFile:
    """Write a file again, with new addresses in its address column; large pages of other columns are copied."""
    reader = FileReader(store, file.path, file.size_bytes, verifies=True)
    if reader.version is FileVersion.V0_1:
        raise UnsupportedFeature("moving the rows of an index in a file of version 0.1 (build it again)", reader.path)
    if column.name not in reader.schema.names:
        raise CorruptFile(reader.path, "schema", f"no column {column.name!r}")
    with FileWriter(store_out, file.path, reader.schema, reader.version, durable=False) as writer:
        names = reader.schema.names
        anew = [name for name in names if name == column.name or not writer.copy_column(name, reader)]
        for batch in reader.iter_batches(reader.schema.project(anew), batch_rows=column.batch_rows):
            at = batch.schema.get_field_index(column.name)
            remapped = column.remap(batch.column(at), moves, reader.path)
            writer.write_batch(batch.set_column(at, batch.schema.field(at), remapped))
        for data in _global_buffers(reader, column, moves):
            writer.add_global_buffer(data)
        return IndexFile(file.path, writer.finish().size_bytes)


def _global_buffers(reader: FileReader, column: AddressColumn, moves: RowAddressMap) -> Iterator[pa.Buffer | bytes]:
    """Yield the buffers after number 0, which the writer makes. Each keeps its number, by which others refer to it."""
    number = reader.schema_metadata.get(column.tree_key) if column.tree_key else None
    for index in range(1, len(reader.global_buffers)):
        data = reader.global_buffer(index)
        yield remap_address_tree(memoryview(data), moves, reader.path) if str(index) == number else data
