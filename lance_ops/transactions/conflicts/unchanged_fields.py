"""Check that the fields that rows were written for, or that an index was built on, still exist with their values.

Readers find values by field id. A cast gives its column a new id and rewrites the rows that it read: in rows that were
written under the old id, the column would be null. And the id of a dropped field may be assigned to a new field, which
would then show the dropped field's values. An index of the dropped field would answer for the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_ops.core.schema import Schema
from lance_ops.table import Manifest
from lance_ops.transactions.conflicts.judgement import Retry, RewrittenFragments
from lance_ops.transactions.manifest_changes import fragments_with_changed_values
from lance_ops.transactions.operation import Operation

__all__ = ["NewFields", "NewSegments", "judge_indexed_fields"]


class NewFields:
    """The fields of one operation's new rows, checked against one concurrent transaction after the other."""

    def __init__(self, operation: Operation) -> None:
        self._written = operation.footprint().new_fields
        self._dropped: frozenset[int] = frozenset()

    def judge(self, theirs: Operation, before: Schema, after: Schema) -> Retry | None:
        """Return why the rows do not fit the schema `after` theirs, None if they do; `before` is the schema before."""
        if not self._written or not theirs.footprint().schema:
            return None
        kept = frozenset(field.id for field in after.walk())
        lost = self._written.intersection(field.id for field in before.walk()) - kept
        if theirs.footprint().restates_fragments:  # it may have rewritten values, and not only dropped columns
            if lost:
                return Retry(f"column {_named(before, lost)} was cast, and ours has values of the old type")
            if self._dropped & kept:
                column = _named(after, self._dropped & kept)
                return Retry(f"column {column} was added under the id of a dropped column that ours has values for")
        self._dropped |= lost
        return None


class NewSegments:
    """The new index segments of one operation, checked against one concurrent transaction after the other."""

    def __init__(self, operation: Operation) -> None:
        self._segments = operation.footprint().new_segments

    def judge(
        self, theirs: Operation, before: Manifest, after: Manifest, rewrites: Sequence[RewrittenFragments]
    ) -> Retry | None:
        """Return why a segment does not fit the version `after` theirs, None if all do; `before` is the one before.

        `rewrites` are the ones before theirs that ours is remapped through, in order.
        """
        if not self._segments:
            return None
        footprint = theirs.footprint()
        for segment in self._segments:
            for old, new in rewrites:
                segment = segment.remapped(old, new)
            dropped = judge_indexed_fields(segment.fields, after.schema) if footprint.schema else None
            if dropped:
                return dropped
            writes = footprint.restates_fragments or footprint.writes_values
            if writes and segment.covers_any(fragments_with_changed_values(before, after, segment.fields)):
                return Retry("values of a new index were changed")
        return None


def judge_indexed_fields(field_ids: Iterable[int], schema: Schema) -> Retry | None:
    """Return why an index of these fields has no place in a version of this schema, None if it has one.

    Ask of each version in turn: a field that a later version adds may have the id of a dropped one.
    """
    if all(map(schema.by_id, field_ids)):
        return None
    return Retry("the column of a new index was dropped or cast")


def _named(schema: Schema, field_ids: frozenset[int]) -> str:
    return repr(schema.path_of(min(field_ids)))
