"""Keep the finished column files of a backfill under a name, so that a later attempt takes them over.

    data/backfill-{digest}/{fragment}.json      a record of one file; the digest names the backfill
    data/backfill-{digest}/{…}.piece            some rows of a fragment whose file is not finished; see `column_pieces`

A task writes the record when its file is durable. A record counts only for the fragment as it was: the same data files
and the same deletion file. The commit removes the folder. Records and files of a backfill that nobody finishes are
files that no version names: clean-up removes them when they are old. So no attempt takes over what soon may be removed,
and each looks directly before its commit whether its files are still there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from lance_ops.changing.columns.column_file import ColumnFile
from lance_ops.core.errors import ObjectNotFound, RetryableConflict, UnsafePath
from lance_ops.core.file_names import DATA_DIR
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.refs import UNVERIFIED_AGE
from lance_ops.store import Store
from lance_ops.table import DataFile, Fragment

__all__ = ["KeptFiles"]

_OLDEST = UNVERIFIED_AGE - timedelta(days=1)
"""The age up to which a file is taken over: clean-up must not remove it before the commit names it."""


@dataclass(frozen=True)
class KeptFiles:
    """The files of one backfill, by fragment; those of the fragments `too_old` are not taken over."""

    folder: str
    too_old: frozenset[int] = frozenset()

    @classmethod
    def of(cls, name: str, columns: Schema, source: str) -> KeptFiles:
        """Return the files of the backfill that a caller names; another `source` or other columns are another backfill.

        The columns count with the ids of their fields, since the files hold these.
        """
        fields = [(node.id, node.name, str(node.arrow_type)) for node in columns.walk()]
        digest = hashlib.sha256(repr((name, fields, source)).encode()).hexdigest()
        return cls(f"{DATA_DIR}/backfill-{digest[:32]}")

    def without_old(self, store: Store, fragments: Iterable[Fragment]) -> KeptFiles:
        """Return the files, without those whose record is too old.

        A record is younger than its file by the seconds of its writing.
        """
        old = self._listed(store, lambda age: age > _OLDEST)
        return replace(self, too_old=frozenset(each.id for each in fragments if self._path(each) in old))

    def for_fragments(self, fragment_ids: Iterable[int]) -> KeptFiles:
        """Return what a task for these fragments carries."""
        return replace(self, too_old=self.too_old.intersection(fragment_ids))

    def finished_pieces(self, store: Store) -> frozenset[str]:
        """Return the paths of the pieces that may be taken over, which are whole, as no part of one is ever seen."""
        return self._listed(store, lambda age: age <= _OLDEST)

    def find(self, store: Store, fragment: Fragment) -> ColumnFile | None:
        """Return the finished file of a fragment; None if there is none, or if the fragment has changed since."""
        if fragment.id in self.too_old:
            return None
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

    def check_present(self, store: Store, files: Iterable[ColumnFile]) -> None:
        """Raise `RetryableConflict` if a file is gone; another attempt computes that file again."""
        present = frozenset(store.list_names(DATA_DIR))
        gone = sorted(found.file.path for found in files if found.file.path not in present)
        if gone:
            raise RetryableConflict(
                f"{store.uri_of(f'{DATA_DIR}/{gone[0]}')}: {len(gone)} finished files of this checkpoint are gone, "
                "because a clean-up removed them; make the same call again to compute them"
            )

    def remove(self, store: Store) -> None:
        """Remove the records, or leave them to clean-up; the files stay."""
        store.child(self.folder).clear_or_leave()

    def _listed(self, store: Store, wanted: Callable[[timedelta], bool]) -> frozenset[str]:
        """Return the paths of the files in the folder whose age is wanted."""
        found = list(store.list(self.folder))
        now = store.now() if found else None
        return frozenset(info.path for info in found if now is not None and wanted(now - info.modified))

    def _path(self, fragment: Fragment) -> str:
        return f"{self.folder}/{fragment.id}.json"


def _state(fragment: Fragment) -> list[str]:
    return [*(file.path for file in fragment.files), fragment.deletion_path or ""]
