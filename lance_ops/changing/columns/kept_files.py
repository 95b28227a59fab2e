"""Keep the finished column files of a backfill under a name, so that a later attempt takes them over.

    data/backfill-{digest}/{fragment}.json      a record of one file; the digest names the backfill

A task writes the record when its file is durable. A record counts only for the fragment as it was: the same data files
and the same deletion file. The commit removes the folder. Records and files of a backfill that nobody finishes are
files that no version names: clean-up removes them when they are old.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress

from lance_ops.changing.columns.column_file import ColumnFile
from lance_ops.core.errors import ObjectNotFound, UnsafePath
from lance_ops.core.file_names import DATA_DIR
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.store import Store
from lance_ops.table import DataFile, Fragment

__all__ = ["KeptFiles"]


@dataclass(frozen=True)
class KeptFiles:
    """The files of one backfill, by fragment. Every task carries it."""

    folder: str

    @classmethod
    def of(cls, name: str, columns: Schema, source: str) -> KeptFiles:
        """Return the files of the backfill that a caller names; another `source` or other columns are another backfill.

        The columns count with the ids of their fields, since the files hold these.
        """
        fields = [(node.id, node.name, str(node.arrow_type)) for node in columns.walk()]
        digest = hashlib.sha256(repr((name, fields, source)).encode()).hexdigest()
        return cls(f"{DATA_DIR}/backfill-{digest[:32]}")

    def find(self, store: Store, fragment: Fragment) -> ColumnFile | None:
        """Return the finished file of a fragment; None if there is none, or if the fragment has changed since."""
        with suppress(ObjectNotFound, ValueError, KeyError, TypeError, UnsafePath):  # a damaged record is none
            record = json.loads(store.get(self._path(fragment)).to_pybytes())
            file = DataFile(**record["file"])
            if record["fragment"] == _state(fragment) and store.size(f"{DATA_DIR}/{file.path}") == file.file_size_bytes:
                return ColumnFile(fragment.id, file)
        return None

    def keep(self, store: Store, fragment: Fragment, written: ColumnFile) -> None:
        """Make a file durable, and then its record."""
        store.make_durable(f"{DATA_DIR}/{written.file.path}")
        file = {
            "path": written.file.path,
            "fields": written.file.fields,
            "column_indices": written.file.column_indices,
            "file_major_version": written.file.file_major_version,
            "file_minor_version": written.file.file_minor_version,
            "file_size_bytes": written.file.file_size_bytes,
        }
        store.put(self._path(fragment), json.dumps({"fragment": _state(fragment), "file": file}).encode())

    def remove(self, store: Store) -> None:
        """Remove the records, or leave them to clean-up; the files stay."""
        store.child(self.folder).clear_or_leave()

    def _path(self, fragment: Fragment) -> str:
        return f"{self.folder}/{fragment.id}.json"


def _state(fragment: Fragment) -> list[str]:
    return [*(file.path for file in fragment.files), fragment.deletion_path or ""]
