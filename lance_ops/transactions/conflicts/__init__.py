"""Judge two concurrent operations, and rebase the later one where possible."""

from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Compatible, Incompatible, Rebase, Remap, Retry, Verdict, judge
from lance_ops.transactions.conflicts.rebasing import rebase
from lance_ops.transactions.conflicts.remapped_index import RemappedIndex, remap_index
from lance_ops.transactions.conflicts.row_remapping import CommittedRewriteGroup
from lance_ops.transactions.conflicts.unchanged_fields import NewFields

__all__ = [
    "CommittedRewriteGroup",
    "Compatible",
    "DeletionVectors",
    "Incompatible",
    "NewFields",
    "Rebase",
    "Remap",
    "RemappedIndex",
    "Retry",
    "Verdict",
    "judge",
    "rebase",
    "remap_index",
]
