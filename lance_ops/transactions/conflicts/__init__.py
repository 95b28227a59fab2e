"""Judge two concurrent operations, and rebase the one that came later where that is possible."""

from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Carry, Compatible, Incompatible, Rebase, Retry, Verdict, judge
from lance_ops.transactions.conflicts.new_fields import NewFields
from lance_ops.transactions.conflicts.rebasing import rebase
from lance_ops.transactions.conflicts.remapped_index import RemappedIndex, remap_index
from lance_ops.transactions.conflicts.remapped_rows import Move

__all__ = [
    "Carry",
    "Compatible",
    "DeletionVectors",
    "Incompatible",
    "Move",
    "NewFields",
    "Rebase",
    "RemappedIndex",
    "Retry",
    "Verdict",
    "judge",
    "rebase",
    "remap_index",
]
