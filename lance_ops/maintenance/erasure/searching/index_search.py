"""Tell whether the files of an index hold a subject's values, also of rows that are gone.

The files outlive the rows that they describe. A compaction moves the zones of a zone map with their old bounds. A
column that is rewritten takes its fragment out of an index's coverage, and leaves the entries in the files. A fragment
that a version lacks may stay in the coverage. The index may then have entries of the rows, unless its own values tell,
or a version with the same segment still shows the fragment without such rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias
from uuid import UUID

import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile, ObjectNotFound, UnsupportedFeature
from lance_ops.core.predicate import Predicate
from lance_ops.maintenance.erasure.searching.row_search import FilterColumns, columns_read
from lance_ops.reading import open_index
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata

__all__ = ["FragmentFiles", "IndexSearch", "may_have_covered"]

FragmentFiles: TypeAlias = frozenset[str]
"""The URIs of a fragment's data files."""


class IndexSearch:
    """Searches the indices of a dataset's versions; a segment's files are read once, since none changes.

    `are_clean` tells whether a fragment stores no row of the subject, given the files that versions show it with.
    """

    def __init__(self, are_clean: Callable[[Collection[FragmentFiles]], bool]) -> None:
        self._are_clean = are_clean
        self._matches: dict[tuple[UUID, FilterColumns], bool | None] = {}
        self._tainted_since: dict[str, dict[str, int]] = {}
        self._rebuilt: set[UUID] = set()
        self._shown: defaultdict[tuple[UUID, int], set[FragmentFiles]] = defaultdict(set)

    def mark_rebuilt(self, indices: Iterable[IndexMetadata]) -> None:
        """Remember that these segments were built after the rows were gone."""
        self._rebuilt.update(index.uuid for index in indices)

    def note_covered(self, version: Snapshot, fragments: Mapping[int, FragmentFiles]) -> None:
        """Remember with which files a version shows the fragments that its segments cover.

        A segment never changes, so this holds for every version that has it, also after this version is removed.
        """
        for index in version.manifest.indices:
            for fragment_id in (index.fragment_bitmap or BitMap()) & BitMap(fragments):
                self._shown[index.uuid, fragment_id].add(fragments[fragment_id])

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
        """Return the indices with a segment that has, or may have, entries of the rows.

        A segment may come from an older one of the same name, whose rows a compaction moved. Without a predicate, no
        segment's files are read.
        """
        stale = set()
        for index in version.manifest.indices:
            if index.is_system or index.uuid in self._rebuilt:
                continue
            since = self._tainted_since[branch].get(index.name)
            is_descendant = since is not None and since < version.version
            if is_descendant or may_have_covered(index, tainted) or self._may_hold(version, index, predicate):
                stale.add(index.name)
        return stale

    def _may_hold(self, version: Snapshot, index: IndexMetadata, predicate: Predicate | None) -> bool:
        """Tell by a segment's values whether it holds the rows; if they do not tell, by the fragments that are gone."""
        has_match = self._has_match(version, index, predicate)
        if has_match is not None:
            return has_match
        if index.fragment_bitmap is None:
            return True
        gone = index.fragment_bitmap - BitMap(version.fragments_by_id)
        return not all(self._are_clean(self._shown[index.uuid, each]) for each in gone)

    def _has_match(self, version: Snapshot, index: IndexMetadata, predicate: Predicate | None) -> bool | None:
        if predicate is None:
            return None
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


def _holds_matching_values(version: Snapshot, index: IndexMetadata, predicate: Predicate) -> bool | None:
    """Return whether a segment's files hold a value for which the filter is true; None if they do not tell.

    Only an index on the one column that the filter reads can tell, of a kind that this library reads, and if the
    filter is not true for null: the files do not hold nulls as values. A segment that cannot be decoded is taken to
    hold one, also if some of its files are gone; one without files holds none.
    """
    columns = columns_read(version, predicate)
    if len(columns) != 1 or tuple(index.fields) != (columns[0].id,):
        return None
    (column,) = columns
    if _matches(predicate, column.name, pa.nulls(1, column.arrow_type)):
        return None
    try:
        return any(
            _matches(predicate, column.name, values.drop_null())
            for values in open_index(version, index).stored_values()
        )
    except CorruptFile:
        return True
    except ObjectNotFound:
        return bool(version.index_root(index).list_names(index.directory, limit=1))
    except UnsupportedFeature:
        return None


def _matches(predicate: Predicate, column: str, values: pa.Array) -> bool:
    batch = pa.RecordBatch.from_arrays([values], names=[column])
    return bool(predicate.mask(batch).true_count)
