"""Tell whether the files of an index hold a subject's values, also of rows that are gone.

The files outlive the rows that they describe. A compaction moves the zones of a zone map with their old bounds. A
column that is rewritten takes its fragment out of an index's coverage, and leaves the entries in the files.
"""

from __future__ import annotations

import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.core.predicate import Predicate
from lance_ops.reading import open_index
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata

__all__ = ["holds_matching_values", "may_have_covered"]


def may_have_covered(index: IndexMetadata, tainted: BitMap) -> bool:
    """Return whether a segment has, or may have had, entries of one of these fragments.

    Fragments are numbered in the order of their commits. A segment that covers a younger fragment than a tainted one
    was built when the tainted one was there, and may have covered it.
    """
    covered = index.fragment_bitmap
    return bool(tainted) and (not covered or min(tainted) <= max(covered))


def holds_matching_values(version: Snapshot, index: IndexMetadata, predicate: Predicate) -> bool:
    """Return whether a segment's files hold a value for which the filter is true.

    Only an index on the one top-level column that the filter reads can tell. A segment that cannot be decoded is taken
    to hold one. For a kind of index that this library does not read, the answer is no.
    """
    field = version.schema.by_id(index.fields[0])
    if field is None or predicate.columns() != (field.name,):
        return False
    try:
        return any(_matches(predicate, field.name, values) for values in open_index(version, index).stored_values())
    except CorruptFile:
        return True
    except UnsupportedFeature:
        return False


def _matches(predicate: Predicate, column: str, values: pa.Array) -> bool:
    batch = pa.RecordBatch.from_arrays([values.drop_null()], names=[column])
    return bool(predicate.mask(batch).true_count)
