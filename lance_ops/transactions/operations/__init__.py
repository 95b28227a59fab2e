"""The operations, one in each file. A new one needs a file and a line in `ALL_OPERATIONS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.transactions.operations.append import Append
    from lance_ops.transactions.operations.clone import Clone
    from lance_ops.transactions.operations.create_index import CreateIndex
    from lance_ops.transactions.operations.data_replacement import DataReplacement, DataReplacementGroup
    from lance_ops.transactions.operations.delete import Delete
    from lance_ops.transactions.operations.merge import Merge
    from lance_ops.transactions.operations.overwrite import Overwrite
    from lance_ops.transactions.operations.project import Project
    from lance_ops.transactions.operations.registry import ALL_OPERATIONS
    from lance_ops.transactions.operations.reserve_fragments import ReserveFragments
    from lance_ops.transactions.operations.restore import Restore
    from lance_ops.transactions.operations.rewrite import Rewrite, RewriteGroup, RewrittenIndex
    from lance_ops.transactions.operations.unsupported import (
        AppendFragmentReuseTransitions,
        DataOverlay,
        UnknownOperation,
        UpdateMemWalState,
    )
    from lance_ops.transactions.operations.update import Update, UpdateMode
    from lance_ops.transactions.operations.update_bases import UpdateBases
    from lance_ops.transactions.operations.update_config import UpdateConfig

__all__ = [
    "ALL_OPERATIONS",
    "Append",
    "AppendFragmentReuseTransitions",
    "Clone",
    "CreateIndex",
    "DataOverlay",
    "DataReplacement",
    "DataReplacementGroup",
    "Delete",
    "Merge",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "RewrittenIndex",
    "UnknownOperation",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMemWalState",
    "UpdateMode",
]

_MODULES = {
    "ALL_OPERATIONS": "registry",
    "Append": "append",
    "AppendFragmentReuseTransitions": "unsupported",
    "Clone": "clone",
    "CreateIndex": "create_index",
    "DataOverlay": "unsupported",
    "DataReplacement": "data_replacement",
    "DataReplacementGroup": "data_replacement",
    "Delete": "delete",
    "Merge": "merge",
    "Overwrite": "overwrite",
    "Project": "project",
    "ReserveFragments": "reserve_fragments",
    "Restore": "restore",
    "Rewrite": "rewrite",
    "RewriteGroup": "rewrite",
    "RewrittenIndex": "rewrite",
    "UnknownOperation": "unsupported",
    "Update": "update",
    "UpdateBases": "update_bases",
    "UpdateConfig": "update_config",
    "UpdateMemWalState": "unsupported",
    "UpdateMode": "update",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
