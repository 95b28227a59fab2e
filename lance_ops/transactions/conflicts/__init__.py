"""Judge two concurrent operations, and rebase the later one where possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
    from lance_ops.transactions.conflicts.judgement import (
        Compatible,
        Incompatible,
        Rebase,
        Remap,
        Retry,
        Verdict,
        judge,
    )
    from lance_ops.transactions.conflicts.rebasing import rebase
    from lance_ops.transactions.conflicts.remapped_index import RemappedIndex, remap_index
    from lance_ops.transactions.conflicts.row_remapping import CommittedRewriteGroup
    from lance_ops.transactions.conflicts.unchanged_fields import NewFields, NewSegments

__all__ = [
    "CommittedRewriteGroup",
    "Compatible",
    "DeletionVectors",
    "Incompatible",
    "NewFields",
    "NewSegments",
    "Rebase",
    "Remap",
    "RemappedIndex",
    "Retry",
    "Verdict",
    "judge",
    "rebase",
    "remap_index",
]

_MODULES = {
    "CommittedRewriteGroup": "row_remapping",
    "Compatible": "judgement",
    "DeletionVectors": "deletion_vectors",
    "Incompatible": "judgement",
    "NewFields": "unchanged_fields",
    "NewSegments": "unchanged_fields",
    "Rebase": "judgement",
    "Remap": "judgement",
    "RemappedIndex": "remapped_index",
    "Retry": "judgement",
    "Verdict": "judgement",
    "judge": "judgement",
    "rebase": "rebasing",
    "remap_index": "remapped_index",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
