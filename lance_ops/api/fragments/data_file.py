"""`DataFile`: a data file as a manifest names it, under the reference's name."""

from __future__ import annotations

from dataclasses import fields

from lance_ops import table, writing
from lance_ops.api.version_handle import Handle

__all__ = ["DataFile"]


class DataFile(table.DataFile):
    """A data file of a fragment, as operations take it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same file; a manifest's files are of the class above, and Python asks this one."""
        return isinstance(other, table.DataFile) and all(
            getattr(self, each.name) == getattr(other, each.name) for each in fields(self)
        )

    __hash__ = table.DataFile.__hash__

    @classmethod
    def create(cls, dataset: Handle, path: str, *, base_id: int | None = None) -> table.DataFile:
        """Describe a file in the dataset's directory of data files, or beneath a base path.

        Raises `UnsafePath` for a path that leaves the directory, and `SchemaMismatch` naming a column that the table
        lacks.
        """
        return writing.describe_data_file(dataset.snapshot, path, base_id)
