"""`LanceDataset` in parts, one module for each kind of method, under the reference's names."""

from lance_ops.api.lance_dataset.clones_and_branches import Branch, Branches
from lance_ops.api.lance_dataset.commits import BulkCommitResult
from lance_ops.api.lance_dataset.dataset_class import LanceDataset, Version, VersionRef, dataset
from lance_ops.api.lance_dataset.delta import DatasetDelta
from lance_ops.api.lance_dataset.merge_insert import ExecuteResult, MergeInsertBuilder
from lance_ops.api.lance_dataset.optimize import DatasetOptimizer
from lance_ops.api.lance_dataset.row_changes import DeleteResult, UpdateResult
from lance_ops.api.lance_dataset.scanner_builder import ScannerBuilder
from lance_ops.api.lance_dataset.schema_changes import AlterColumn
from lance_ops.api.lance_dataset.tags import Tag, Tags

__all__ = [
    "AlterColumn",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "DatasetDelta",
    "DatasetOptimizer",
    "DeleteResult",
    "ExecuteResult",
    "LanceDataset",
    "MergeInsertBuilder",
    "ScannerBuilder",
    "Tag",
    "Tags",
    "UpdateResult",
    "Version",
    "VersionRef",
    "dataset",
]
