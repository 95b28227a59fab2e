"""Read a fragment's row sequences: stable row ids, and the versions that created and last updated each row."""

from __future__ import annotations

from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile
from lance_ops.store import Store
from lance_ops.table import ExternalFile, Fragment, RowSequence
from lance_ops.table.rows import FIRST_VERSION, RowIds, RowVersions, decode_row_ids, decode_versions

__all__ = ["RowLineage"]


class RowLineage:
    """The row sequences of one fragment, each read and decoded on first use."""

    def __init__(self, store: Store, fragment: Fragment, next_row_id: int, manifest_uri: str) -> None:
        self._store = store
        self._fragment = fragment
        self._next_row_id = next_row_id
        self._manifest_uri = manifest_uri

    @cached_property
    def row_ids(self) -> RowIds:
        """The rows' stable ids. Raises `CorruptFile` unless there is one id for each row, below the next free id."""
        data, source = self._bytes(self._fragment.row_ids)
        row_ids = decode_row_ids(data or b"", self._fragment.physical_rows, source)
        if row_ids.end > self._next_row_id:  # the next append would give an id to a second row
            reason = f"row id {row_ids.end - 1} is in use, but the next row id is {self._next_row_id}"
            raise CorruptFile(self._manifest_uri, f"fragment {self._fragment.id}", reason)
        return row_ids

    @cached_property
    def created_at_versions(self) -> RowVersions:
        """The version that created each row."""
        return self._versions(self._fragment.created_at_versions)

    @cached_property
    def last_updated_at_versions(self) -> RowVersions:
        """The version that last updated each row."""
        return self._versions(self._fragment.last_updated_at_versions)

    def _versions(self, sequence: RowSequence) -> RowVersions:
        data, source = self._bytes(sequence)
        if data is None:
            return RowVersions.uniform(FIRST_VERSION, self._fragment.physical_rows)
        return decode_versions(data, self._fragment.physical_rows, source)

    def _bytes(self, sequence: RowSequence) -> tuple[bytes | None, str]:
        """Return a sequence's bytes and the name of its source for error messages."""
        if not isinstance(sequence, ExternalFile):
            return sequence, f"{self._manifest_uri}: fragment {self._fragment.id}"
        stop = sequence.offset + sequence.size
        return (
            self._store.get_range(sequence.path, sequence.offset, stop).to_pybytes(),
            self._store.uri_of(sequence.path),
        )
