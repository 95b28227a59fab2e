"""Changes of a table as data: operations, transactions, who wins, and the one loop that commits."""

from __future__ import annotations

from lance_ops.transactions.committed.committed_versions import (
    Landed,
    newest_first,
    read_manifest,
    read_transaction,
    read_version,
)
from lance_ops.transactions.committed.find_commit import find_token, find_transaction
from lance_ops.transactions.committed.ghosts import has_grown
from lance_ops.transactions.committed.tokens import BATCH_PREFIX, REPLACES_PREFIX, TOKEN, keep_token, token_of
from lance_ops.transactions.committing.commit_clone import commit_clone
from lance_ops.transactions.committing.loop import MAX_RETRIES, CommitResult, commit
from lance_ops.transactions.conflicts.judgement import Carry, Compatible, Incompatible, Rebase, Retry, Verdict, judge
from lance_ops.transactions.conflicts.remapped_index import FollowedIndex, follow_index
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.inserted_keys import InsertedKeys
from lance_ops.transactions.manifest_changes.update_map import UpdateMap
from lance_ops.transactions.next_manifest import NO_TABLE, next_manifest
from lance_ops.transactions.operation import Context, Operation
from lance_ops.transactions.operations import (
    ALL_OPERATIONS,
    Append,
    AppendFragmentReuseTransitions,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    Merge,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    UnknownOperation,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from lance_ops.transactions.transaction import COMMIT_MESSAGE, Transaction, with_message

__all__ = [
    "ALL_OPERATIONS",
    "BATCH_PREFIX",
    "COMMIT_MESSAGE",
    "MAX_RETRIES",
    "NO_TABLE",
    "REPLACES_PREFIX",
    "TOKEN",
    "Append",
    "AppendFragmentReuseTransitions",
    "Carry",
    "Clone",
    "CommitResult",
    "Compatible",
    "Context",
    "CreateIndex",
    "DataOverlay",
    "DataReplacement",
    "DataReplacementGroup",
    "Delete",
    "FollowedIndex",
    "Footprint",
    "Incompatible",
    "InsertedKeys",
    "Landed",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "Rebase",
    "ReserveFragments",
    "Restore",
    "Retry",
    "Rewrite",
    "RewriteGroup",
    "RewrittenIndex",
    "Transaction",
    "UnknownOperation",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMap",
    "UpdateMemWalState",
    "UpdateMode",
    "Verdict",
    "commit",
    "commit_clone",
    "find_token",
    "find_transaction",
    "follow_index",
    "has_grown",
    "judge",
    "keep_token",
    "newest_first",
    "next_manifest",
    "read_manifest",
    "read_transaction",
    "read_version",
    "token_of",
    "with_message",
]
