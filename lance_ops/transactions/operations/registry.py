"""All operations, in one explicit tuple. A new one needs a file and a line in `ALL_OPERATIONS`."""

from __future__ import annotations

from lance_ops.transactions.operation import Operation
from lance_ops.transactions.operations.append import Append
from lance_ops.transactions.operations.clone import Clone
from lance_ops.transactions.operations.create_index import CreateIndex
from lance_ops.transactions.operations.data_replacement import DataReplacement
from lance_ops.transactions.operations.delete import Delete
from lance_ops.transactions.operations.merge import Merge
from lance_ops.transactions.operations.overwrite import Overwrite
from lance_ops.transactions.operations.project import Project
from lance_ops.transactions.operations.reserve_fragments import ReserveFragments
from lance_ops.transactions.operations.restore import Restore
from lance_ops.transactions.operations.rewrite import Rewrite
from lance_ops.transactions.operations.unsupported import (
    AppendFragmentReuseTransitions,
    DataOverlay,
    UpdateMemWalState,
)
from lance_ops.transactions.operations.update import Update
from lance_ops.transactions.operations.update_bases import UpdateBases
from lance_ops.transactions.operations.update_config import UpdateConfig

__all__ = ["ALL_OPERATIONS"]

ALL_OPERATIONS: tuple[type[Operation], ...] = (
    Append,
    AppendFragmentReuseTransitions,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Merge,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
