"""Tell whether the files of an index hold a subject's values, also of rows that are gone.

The files outlive the rows that they describe. A compaction moves the zones of a zone map with their old bounds. A
column that is rewritten takes its fragment out of an index's coverage, and leaves the entries in the files.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile, ObjectNotFound, UnsupportedFeature
from lance_ops.core.predicate import Predicate
from lance_ops.maintenance.erasure.row_search import FilterColumns, columns_read
from lance_ops.reading import open_index
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata

__all__ = ["IndexSearch", "may_have_covered"]


class IndexSearch:
    """Searches the indices of a dataset's versions; a segment's files are read once, since none changes."""

    def __init__(self) -> None:
        self._matches: dict[tuple[UUID, FilterColumns], bool] = {}
        self._tainted_since: dict[str, dict[str, int]] = {}
        self._rebuilt: set[UUID] = set()

    def mark_rebuilt(self, indices: Iterable[IndexMetadata]) -> None:
        """Remember that these segments were built after the rows were gone."""
        self._rebuilt.update(index.uuid for index in indices)

    def follow(self, branch: str, start: tuple[str, int] | None, versions: Iterable[tuple[Snapshot, BitMap]]) -> None:
        """Note the first version of a branch in which each index, by name, may have entries of tainted fragments.

        `versions` have their tainted fragments. `start` is the branch and the version that this branch was created
        from: follow that branch first, because this one has its indices up to then.
        """
        first: dict[str, int] = {}
        if start is not None:
            parent, parent_version = start
            inherited = self._tainted_since.get(parent, {})
            first = {name: since for name, since in inherited.items() if since <= parent_version}
        for version, tainted in versions:
            for index in version.manifest.indices:
                if not index.is_system and may_have_covered(index, tainted):
                    first[index.name] = min(first.get(index.name, version.version), version.version)
        self._tainted_since[branch] = first

    def stale_indices(self, branch: str, version: Snapshot, tainted: BitMap, predicate: Predicate | None) -> set[str]:
        """Return the indices with a segment that has, or may have, entries of tainted or of removed fragments.

        A segment may come from an older one of the same name, whose rows a compaction moved. Without a predicate, no
        segment's files are read.
        """
        present, stale = BitMap(version.fragments_by_id), set()
        for index in version.manifest.indices:
            if index.is_system or index.uuid in self._rebuilt:
                continue
            covered, since = index.fragment_bitmap, self._tainted_since[branch].get(index.name)
            has_gone = covered is None or bool(covered - present)
            is_descendant = since is not None and since < version.version
            if (
                has_gone
                or is_descendant
                or may_have_covered(index, tainted)
                or self._has_match(version, index, predicate)
            ):
                stale.add(index.name)
        return stale

    def _has_match(self, version: Snapshot, index: IndexMetadata, predicate: Predicate | None) -> bool:
        if predicate is None:
            return False
        key = (index.uuid, columns_read(version, predicate))
        if key not in self._matches:
            self._matches[key] = _holds_matching_values(version, index, predicate)
        return self._matches[key]


def may_have_covered(index: IndexMetadata, tainted: BitMap) -> bool:
    """Return whether a segment has, or may have had, entries of one of these fragments.

    Fragments are numbered in the order of their commits. A segment that covers a younger fragment than a tainted one
    was built when the tainted one was there, and may have covered it.
    """
    covered = index.fragment_bitmap
    return bool(tainted) and (not covered or min(tainted) <= max(covered))


def _holds_matching_values(version: Snapshot, index: IndexMetadata, predicate: Predicate) -> bool:
    """Return whether a segment's files hold a value for which the filter is true.

    Only an index on the one top-level column that the filter reads can tell. A segment that cannot be decoded is taken
    to hold one, also if some of its files are gone; one without files holds none. For a kind of index that this library
    does not read, the answer is no.
    """
    field = version.schema.by_id(index.fields[0]) if index.fields else None
    if field is None or predicate.columns() != (field.name,):
        return False
    try:
        return any(_matches(predicate, field.name, values) for values in open_index(version, index).stored_values())
    except CorruptFile:
        return True
    except ObjectNotFound:
        return bool(version.index_root(index).list_names(index.directory, limit=1))
    except UnsupportedFeature:
        return False


def _matches(predicate: Predicate, column: str, values: pa.Array) -> bool:
    batch = pa.RecordBatch.from_arrays([values.drop_null()], names=[column])
    return bool(predicate.mask(batch).true_count)
