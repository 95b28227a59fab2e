"""Whether the fields of rows that come in are still those that they were written for.

Values are found by field id. A cast gives its column another id and rewrites the rows that it knows: of others, written
under the old id, the column would be null. And the id of a field that was dropped may be given to another one, which
would then show the dropped one's values.
"""

from __future__ import annotations

from lance_ops.core.schema import Schema
from lance_ops.transactions.conflicts.judgement import Retry
from lance_ops.transactions.operation import Operation

__all__ = ["NewFields"]


class NewFields:
    """The fields of one operation's new rows, followed from one version to the next."""

    def __init__(self, operation: Operation) -> None:
        self._written = operation.footprint().new_fields
        self._dropped: frozenset[int] = frozenset()

    def judge(self, theirs: Operation, before: Schema, after: Schema) -> Retry | None:
        """Return what theirs, which made `after` of `before`, has against the rows."""
        if not self._written or not theirs.footprint().schema:
            return None
        kept = frozenset(field.id for field in after.walk())
        lost = self._written.intersection(field.id for field in before.walk()) - kept
        if theirs.footprint().restates_fragments:  # it could have rewritten values, not just given up columns
            if lost:
                return Retry(f"column {_named(before, lost)} was cast, and ours holds values of the old type")
            if self._dropped & kept:
                return Retry(f"column {_named(after, self._dropped & kept)} came under the id of a dropped one of ours")
        self._dropped |= lost
        return None


def _named(schema: Schema, field_ids: frozenset[int]) -> str:
    return repr(schema.path_of(min(field_ids)))
