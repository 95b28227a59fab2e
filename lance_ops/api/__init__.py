"""The public face: the reference's names, argument order and defaults over the rooms below."""

from lance_ops.api.base_paths import DatasetBasePath
from lance_ops.api.blob_values import Blob, BlobArray, BlobType, blob_array, blob_field
from lance_ops.api.fragments.data_file import DataFile
from lance_ops.api.fragments.fragment import FragmentSession, LanceFragment
from lance_ops.api.fragments.write_fragments import write_fragments
from lance_ops.api.lance_dataset.commits import BulkCommitResult
from lance_ops.api.lance_dataset.copies import Branch, Branches
from lance_ops.api.lance_dataset.dataset_handle import LanceDataset, Version, VersionRef, dataset
from lance_ops.api.lance_dataset.delta import DatasetDelta
from lance_ops.api.lance_dataset.merge_insert import ExecuteResult, MergeInsertBuilder
from lance_ops.api.lance_dataset.optimize import AutoCleanupConfig, DatasetOptimizer
from lance_ops.api.lance_dataset.row_changes import DeleteResult, UpdateResult
from lance_ops.api.lance_dataset.scanner_builder import ScannerBuilder
from lance_ops.api.lance_dataset.schema_changes import AlterColumn
from lance_ops.api.lance_dataset.tags import Tag, Tags
from lance_ops.api.operations import LanceOperation
from lance_ops.api.scanning.blob_file import BlobFile
from lance_ops.api.scanning.scanner import LanceScanner
from lance_ops.api.schemas.lance_schema import LanceField, LanceSchema
from lance_ops.api.schemas.schema_json import json_to_schema, schema_to_json
from lance_ops.api.stats import DataStatistics, FieldStatistics, LanceStats
from lance_ops.api.transaction import Transaction
from lance_ops.api.udf import BatchUDF, batch_udf
from lance_ops.api.write import write_dataset
from lance_ops.maintenance.cleanup.cleanup import CleanupExplanation, CleanupStats
from lance_ops.reading.sorted_scan import ColumnOrdering
from lance_ops.table import DeletionFile
from lance_ops.table import Fragment as FragmentMetadata
from lance_ops.writing.write_progress import FragmentWriteProgress, NoopFragmentWriteProgress

__all__ = [
    "AlterColumn",
    "AutoCleanupConfig",
    "BatchUDF",
    "Blob",
    "BlobArray",
    "BlobFile",
    "BlobType",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CleanupExplanation",
    "CleanupStats",
    "ColumnOrdering",
    "DataFile",
    "DataStatistics",
    "DatasetBasePath",
    "DatasetDelta",
    "DatasetOptimizer",
    "DeleteResult",
    "DeletionFile",
    "ExecuteResult",
    "FieldStatistics",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "LanceDataset",
    "LanceField",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "MergeInsertBuilder",
    "NoopFragmentWriteProgress",
    "ScannerBuilder",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "Version",
    "VersionRef",
    "batch_udf",
    "blob_array",
    "blob_field",
    "dataset",
    "json_to_schema",
    "schema_to_json",
    "write_dataset",
    "write_fragments",
]
