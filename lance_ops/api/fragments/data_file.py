"""`DataFile`: a data file as a manifest names it, under the reference's name."""

from __future__ import annotations

from lance_ops import table
from lance_ops.api.version_handle import Handle
from lance_ops.writing import describe_data_file

__all__ = ["DataFile"]


class DataFile(table.DataFile):
    """What fragments and operations take for a data file."""

    __slots__ = ()

    @classmethod
    def create(cls, dataset: Handle, path: str, *, base_id: int | None = None) -> table.DataFile:
        """Describe a file that lies in the dataset's directory of data files, or under a base path.

        Raises `UnsafePath` for a path that leaves the directory, `SchemaMismatch` naming a column the table has not.
        """
        return describe_data_file(dataset.snapshot, path, base_id)
