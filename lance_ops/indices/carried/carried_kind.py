"""The contract of a kind of index that is carried: which of its files name rows, and how a remap writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, LanceOpsError, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter, read_verified
from lance_ops.indices.carried.moved_addresses import Move, move_tree
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = ["AddressColumn", "CarriedKind"]


@dataclass(frozen=True)
class AddressColumn:
    """The column of a file that names rows. `move` gives its new values, for `batch_rows` of its rows at a time.

    `tree_key` is the key of the schema's metadata whose value is the number of a global buffer with a set of addresses;
    a file without the key has no such buffer.
    """

    name: str
    move: Move
    batch_rows: int
    tree_key: str | None = None


@dataclass(frozen=True)
class CarriedKind:
    """A kind of index by the name of its details message.

    `addressed` has the files that name rows, and `copied` those that do not; both are regular expressions of whole
    names. `keeps_deleted_rows` says that a remap leaves entries of deleted rows in their place, under the addresses
    that they had, because other files or columns count on the places of entries.
    """

    details_name: str
    newest_index_version: int
    addressed: Mapping[str, AddressColumn]
    copied: str = ""
    keeps_deleted_rows: bool = False

    @property
    def names_rows(self) -> bool:
        """Whether an index names single rows. Otherwise it describes rows together, and cannot follow them."""
        return bool(self.addressed)

    def files_of(self, store: Store, metadata: IndexMetadata) -> tuple[IndexFile, ...]:
        """Return the files of an index in its directory `store`, which is listed if the metadata does not name them.

        Raises `UnsupportedFeature` for an index version, or a file, that this library does not know.
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

        The files are not synced; a failure leaves none of them behind. Raises as `files_of` does, and `CorruptFile`.
        """
        files = self.files_of(store, metadata)
        counted = moves if self.keeps_deleted_rows else moves.within(metadata.fragment_bitmap)
        written: list[IndexFile] = []
        try:
            for file in files:
                column = self._column_of(file.path)
                written.append(
                    _copied(store, file, store_out)
                    if column is None
                    else _with_moved_rows(store, file, column, counted, store_out)
                )
        except BaseException:
            for file in files:  # the store may have stored one although its answer was lost
                with suppress(LanceOpsError):  # clean-up will delete the file; the first error is the one to report
                    store_out.delete(file.path)
            raise
        return tuple(written)

    def _column_of(self, path: str) -> AddressColumn | None:
        return next((column for name, column in self.addressed.items() if re.fullmatch(name, path)), None)


def _copied(store: Store, file: IndexFile, store_out: Store) -> IndexFile:
    size = 0
    with store_out.open_writer(file.path, durable=False) as sink:
        for part in read_verified(store, file.path):
            sink.write(part)
            size += len(part)
    if size != file.size_bytes:
        raise CorruptFile(store.uri_of(file.path), "size", f"{size} bytes, and the manifest says {file.size_bytes}")
    return IndexFile(file.path, size)


def _with_moved_rows(
    store: Store, file: IndexFile, column: AddressColumn, moves: RowAddressMap, store_out: Store
) -> IndexFile:
    """Write a file with another column of addresses. Pages of the other columns are copied where they are large."""
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
            moved = column.move(batch.column(at), moves, reader.path)
            writer.write_batch(batch.set_column(at, batch.schema.field(at), moved))
        for data in _global_buffers(reader, column, moves):
            writer.add_global_buffer(data)
        return IndexFile(file.path, writer.finish().size_bytes)


def _global_buffers(reader: FileReader, column: AddressColumn, moves: RowAddressMap) -> Iterator[pa.Buffer | bytes]:
    """Yield the buffers after the first, which the writer makes: they keep their numbers, by which others name them."""
    number = reader.schema_metadata.get(column.tree_key) if column.tree_key else None
    for index in range(1, len(reader.global_buffers)):
        data = reader.global_buffer(index)
        yield move_tree(memoryview(data), moves, reader.path) if str(index) == number else data
