"""The public API: the reference's names, argument order and defaults, translated to calls of the rooms below."""

from lance_ops.api.base_paths import DatasetBasePath
from lance_ops.api.blob_values import Blob, BlobArray, BlobColumn, BlobType, blob_array, blob_field
from lance_ops.api.compaction import Compaction, CompactionOptions, CompactionPlan, CompactionTask, RewriteResult
from lance_ops.api.fragments import DataFile, FragmentSession, LanceFragment, RowIdSequence, write_fragments
from lance_ops.api.images import (
    EncodedImageArray,
    EncodedImageScalar,
    EncodedImageType,
    FixedShapeImageTensorArray,
    FixedShapeImageTensorScalar,
    FixedShapeImageTensorType,
    ImageArray,
    ImageScalar,
    ImageURIArray,
    ImageURIScalar,
    ImageURIType,
)
from lance_ops.api.lance_dataset import (
    AlterColumn,
    Branch,
    Branches,
    BulkCommitResult,
    DatasetDelta,
    DatasetOptimizer,
    DeleteResult,
    ExecuteResult,
    LanceDataset,
    MergeInsertBuilder,
    ScannerBuilder,
    Tag,
    Tags,
    UpdateResult,
    Version,
    VersionRef,
    dataset,
)
from lance_ops.api.operations import LanceOperation
from lance_ops.api.scanning import BlobFile, LanceScanner, ScanStatistics
from lance_ops.api.schemas import LanceField, LanceSchema, json_to_schema, schema_to_json
from lance_ops.api.sql import SqlQuery, SqlQueryBuilder
from lance_ops.api.stats import DataStatistics, FieldStatistics, LanceStats
from lance_ops.api.transaction import Transaction
from lance_ops.api.udf import BatchUDF, batch_udf
from lance_ops.api.write import write_dataset
from lance_ops.core.logs import set_logger
from lance_ops.maintenance.cleanup import AutoCleanupConfig, CleanupExplanation, CleanupStats
from lance_ops.maintenance.compaction import CompactionMetrics
from lance_ops.maintenance.verification import VerificationReport
from lance_ops.reading import ColumnOrdering
from lance_ops.snapshot import Session
from lance_ops.store import IOStats, bytes_read_counter, iops_counter
from lance_ops.table import DeletionFile, RowDatasetVersionMeta, RowIdMeta
from lance_ops.table import Fragment as FragmentMetadata
from lance_ops.transactions import COMMIT_MESSAGE as LANCE_COMMIT_MESSAGE_KEY
from lance_ops.writing import FileSystemFragmentWriteProgress, FragmentWriteProgress, NoopFragmentWriteProgress

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "AlterColumn",
    "AutoCleanupConfig",
    "BatchUDF",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "Branch",
    "Branches",
    "BulkCommitResult",
    "CleanupExplanation",
    "CleanupStats",
    "ColumnOrdering",
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "DataFile",
    "DataStatistics",
    "DatasetBasePath",
    "DatasetDelta",
    "DatasetOptimizer",
    "DeleteResult",
    "DeletionFile",
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "ExecuteResult",
    "FieldStatistics",
    "FileSystemFragmentWriteProgress",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "IOStats",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
    "LanceDataset",
    "LanceField",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "MergeInsertBuilder",
    "NoopFragmentWriteProgress",
    "RewriteResult",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "ScanStatistics",
    "ScannerBuilder",
    "Session",
    "SqlQuery",
    "SqlQueryBuilder",
    "Tag",
    "Tags",
    "Transaction",
    "UpdateResult",
    "VerificationReport",
    "Version",
    "VersionRef",
    "batch_udf",
    "blob_array",
    "blob_field",
    "bytes_read_counter",
    "dataset",
    "iops_counter",
    "json_to_schema",
    "schema_to_json",
    "set_logger",
    "write_dataset",
    "write_fragments",
]
