"""Lance datasets, written, committed and kept healthy from Python.

The public names are imported on first use (PEP 562), so that a process which needs only some of them, a Dagster code
server or a Spark task, does not pay for the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_ops.api import (
        BatchUDF,
        Blob,
        BlobArray,
        BlobColumn,
        BlobFile,
        CleanupExplanation,
        CleanupStats,
        DatasetBasePath,
        DataStatistics,
        FieldStatistics,
        FragmentMetadata,
        IndexConfig,
        LanceDataset,
        LanceFragment,
        LanceOperation,
        LanceScanner,
        MergeInsertBuilder,
        ScanStatistics,
        Session,
        Transaction,
        batch_udf,
        blob_array,
        blob_field,
        bytes_read_counter,
        dataset,
        iops_counter,
        json_to_schema,
        schema_to_json,
        set_logger,
        write_dataset,
    )

__all__ = [
    "BatchUDF",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "CleanupExplanation",
    "CleanupStats",
    "DataStatistics",
    "DatasetBasePath",
    "FieldStatistics",
    "FragmentMetadata",
    "IndexConfig",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "ScanStatistics",
    "Session",
    "Transaction",
    "__version__",
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
]

__version__ = "0.1.0"

_API = "lance_ops.api"


if not TYPE_CHECKING:  # a checker that saw these would accept any name at all

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'lance_ops' has no attribute {name!r}")
        # This import is not at the top, so that `import lance_ops` loads no other module of the library.
        load_module = import_module("lance_ops.core.lazy_import").load_module
        found = globals()[name] = getattr(load_module(_API), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
