"""Every public name and argument of the reference exists here, or is in one list with the reason why not."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import (
    api,
    arrow,
    blob,
    commit,
    debug,
    file,
    fragment,
    hf,
    log,
    optimize,
    progress,
    pydantic,
    sampler,
    schema,
    types,
    udf,
)

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

THEIRS = import_module("lance.dataset")  # the package's attribute of that name is the function
ARROW = import_module("lance.arrow")
FRAGMENTS = import_module("lance.fragment")
A_SCHEMA = import_module("lance.schema").LanceSchema.from_pyarrow(pa.schema([("a", pa.int8())]))

MODULES: dict[str, tuple[Any, Any]] = {
    "lance": (lance_ops, lance),
    "lance.arrow": (arrow, ARROW),
    "lance.blob": (blob, import_module("lance.blob")),
    "lance.commit": (commit, import_module("lance.commit")),
    "lance.debug": (debug, import_module("lance.debug")),
    "lance.file": (file, import_module("lance.file")),
    "lance.fragment": (fragment, FRAGMENTS),
    "lance.hf": (hf, import_module("lance.hf")),
    "lance.optimize": (optimize, import_module("lance.optimize")),
    "lance.log": (log, import_module("lance.log")),
    "lance.pydantic": (pydantic, import_module("lance.pydantic")),
    "lance.progress": (progress, import_module("lance.progress")),
    "lance.sampler": (sampler, import_module("lance.sampler")),
    "lance.types": (types, import_module("lance.types")),
    "lance.udf": (udf, import_module("lance.udf")),
    "lance.schema": (schema, import_module("lance.schema")),
}

TESTED_APART = {"lance.torch": "tests/interop/test_torch.py"}
"""Modules that need packages which the tests may lack, with the tests that compare their names."""

CLASSES: dict[str, tuple[Any, Any]] = {
    "Branches": (api.Branches, THEIRS.Branches),
    "DataFile": (api.DataFile, FRAGMENTS.DataFile),
    "DeletionFile": (api.DeletionFile, FRAGMENTS.DeletionFile),
    "DatasetDelta": (api.DatasetDelta, THEIRS.DatasetDelta),
    "DatasetOptimizer": (api.DatasetOptimizer, THEIRS.DatasetOptimizer),
    "EncodedImageArray": (arrow.EncodedImageArray, ARROW.EncodedImageArray),
    "EncodedImageType": (arrow.EncodedImageType, ARROW.EncodedImageType),
    "FixedShapeImageTensorArray": (arrow.FixedShapeImageTensorArray, ARROW.FixedShapeImageTensorArray),
    "FixedShapeImageTensorType": (arrow.FixedShapeImageTensorType, ARROW.FixedShapeImageTensorType),
    "FragmentMetadata": (api.FragmentMetadata, FRAGMENTS.FragmentMetadata),
    "ImageURIArray": (arrow.ImageURIArray, ARROW.ImageURIArray),
    "ImageURIType": (arrow.ImageURIType, ARROW.ImageURIType),
    "LanceDataset": (lance_ops.LanceDataset, lance.LanceDataset),
    "LanceField": (schema.LanceField, type(A_SCHEMA.fields()[0])),
    "LanceFileReader": (file.LanceFileReader, import_module("lance.file").LanceFileReader),
    "LanceFileSession": (file.LanceFileSession, import_module("lance.file").LanceFileSession),
    "LanceFileWriter": (file.LanceFileWriter, import_module("lance.file").LanceFileWriter),
    "LanceFragment": (lance_ops.LanceFragment, lance.LanceFragment),
    "LanceOperation": (lance_ops.LanceOperation, lance.LanceOperation),
    "LanceScanner": (api.LanceScanner, lance.LanceScanner),
    "LanceSchema": (schema.LanceSchema, import_module("lance.schema").LanceSchema),
    "LanceStats": (api.LanceStats, THEIRS.LanceStats),
    "MergeInsertBuilder": (api.MergeInsertBuilder, THEIRS.MergeInsertBuilder),
    "ScannerBuilder": (api.ScannerBuilder, THEIRS.ScannerBuilder),
    "PandasBFloat16Array": (arrow.PandasBFloat16Array, ARROW.PandasBFloat16Array),
    "RowDatasetVersionMeta": (fragment.RowDatasetVersionMeta, FRAGMENTS.RowDatasetVersionMeta),
    "RowIdMeta": (fragment.RowIdMeta, FRAGMENTS.RowIdMeta),
    "RowIdSequence": (fragment.RowIdSequence, FRAGMENTS.RowIdSequence),
    "Session": (lance_ops.Session, lance.Session),
    "SqlQuery": (api.SqlQuery, THEIRS.SqlQuery),
    "SqlQueryBuilder": (api.SqlQueryBuilder, THEIRS.SqlQueryBuilder),
    "Tags": (api.Tags, THEIRS.Tags),
    "Transaction": (api.Transaction, THEIRS.Transaction),
}

OUT_OF_SCOPE: dict[str, set[str]] = {
    "vector and full-text search, and the building of indices in parts": {
        "LanceDataset.centroids",
        "LanceDataset.commit_existing_index_segments",
        "LanceDataset.create_index",
        "LanceDataset.create_index_uncommitted",
        "LanceDataset.get_ivf_model",
        "LanceDataset.merge_existing_index_segments",
        "LanceDataset.merge_index_metadata",
        "ScannerBuilder.full_text_search",
        "ScannerBuilder.minhash_search",
        "ScannerBuilder.nearest",
        "ScannerBuilder.with_index_segments",
        "lance.FtsToken",
        "lance.Index",
        "lance.IndexFile",
        "lance.IndexProgress",
        "lance.download",
        "lance.indices",
        "lance.progress.IndexProgress",
        "lance.query",
        "lance.tokenize",
        "lance.util",
        "lance.vector",
    },
    "write-ahead tables in memory, and sharding": {
        "LanceDataset.initialize_mem_wal",
        "LanceDataset.mem_wal_index_details",
        "LanceDataset.mem_wal_writer",
        "MergeInsertBuilder.mark_sstables_as_compacted",
        "lance.CompactedSsTable",
        "lance.ExecutionPlan",
        "lance.LsmPointLookupPlanner",
        "lance.LsmScanner",
        "lance.LsmVectorSearchPlanner",
        "lance.ShardSnapshot",
        "lance.ShardWriter",
        "lance.ShardingField",
        "lance.ShardingSpec",
        "lance.evaluate_sharding_spec",
        "lance.mem_wal",
    },
    "a module of the same name as a function: what is in it is in `lance_ops.api`": {"lance.dataset"},
    "what a dry run of clean-up lists: here paths and names of branches themselves": {
        "lance.CleanupCandidateFile",
        "lance.CleanupReferencedBranch",
    },
    "Substrait and DataFusion's native tables: DataFusion takes a dataset itself, and `sql` uses it": {
        "ScannerBuilder.substrait_aggregate",
        "lance.FFILanceTableProvider",
    },
    "namespaces, catalogues of many tables, and the credentials that they renew": {
        "lance.namespace",
    },
    "metrics for OpenTelemetry: they measure the reference's own engine": {"lance.otel"},
    "counters of I/O and logs of the reference's own engine": {
        "lance.io",
        "lance.simd_info",
        "lance.tracing",
    },
    "a feature that the reference itself calls unstable, and whose tables it refuses unless told otherwise": {
        "LanceOperation.DataOverlay",
        "LanceOperation.DataOverlayFile",
        "LanceOperation.DataOverlayGroup",
    },
    "what the reference names and does not implement, has deprecated, or keeps for its own halves": {
        "DataFile.field_ids",
        "FragmentMetadata.data_files",
        "LanceScanner.from_batches",
        "LanceScanner.from_dataset",
        "LanceScanner.from_fragment",
        "LanceScanner.scan_batches",
        "LanceScanner.take",
        "MergeInsertBuilder.analyze_plan_batches",
        "MergeInsertBuilder.execute_batches",
        "MergeInsertBuilder.execute_uncommitted_batches",
        "lance.bitmap",
        "lance.conftest",
        "lance.dependencies",
        "lance.fragment.Bitmap",
        "lance.fragment.normalize_transform",
        "lance.lance",
        "lance.log.get_python_log_level",
        "lance.sampler.PrioritizedItem",
        "lance.sampler.reservoir_sampling",
        "lance.sanitize_ts",
        "lance.types.model_to_dict",
        "lance.udf.BatchUDFCheckpoint",
        "lance.udf.normalize_transform",
    },
    "files of a table without their table: descriptors of blobs, and writers of them": {
        "LanceFileSession.open_dedicated_blob_writer",
        "LanceFileSession.open_packed_blob_writer",
        "lance.BlobDescriptor",
        "lance.BlobDescriptorArrayBuilder",
        "lance.DedicatedBlobWriter",
        "lance.PackedBlobWriter",
        "lance.blob.BlobDescriptor",
        "lance.blob.BlobDescriptorArrayBuilder",
        "lance.blob.BlobIterator",
        "lance.blob.DedicatedBlobWriter",
        "lance.blob.LanceBlobFile",
        "lance.blob.PackedBlobWriter",
    },
}

ARGUMENTS_OUT_OF_SCOPE: dict[str, set[str]] = {
    "namespaces": {"namespace_client", "namespace_client_managed_versioning", "table_id"},
    "indices built in parts, or of types that are not here": {
        "document_granularity",
        "format_version",
        "fragment_ids",
        "index_uuid",
        "progress_callback",
    },
}

MADE_BY_THE_LIBRARY = {
    "BlobFile",
    "CleanupExplanation",
    "CleanupStats",
    "CompactionMetrics",
    "CompactionPlan",
    "CompactionTask",
    "DatasetDelta",
    "FragmentSession",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileStatistics",
    "LancePageMetadata",
    "LanceScanner",
    "LanceStats",
    "ReaderResults",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RewriteResult",
    "ScanStatistics",
    "SqlQuery",
    "SqlQueryBuilder",
}
"""Classes that users do not construct, so their arguments may differ."""


def names(what: Any) -> set[str]:
    return {name for name in dir(what) if not name.startswith("_")}


def names_of(module: Any) -> set[str]:
    """The functions and classes of a module that the package defines, and the names in its `__all__`."""
    own = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        origin = getattr(value, "__module__", None)
        if name.startswith("_") or inspect.ismodule(value) or not isinstance(origin, str):
            continue
        if (inspect.isclass(value) or inspect.isroutine(value)) and origin.partition(".")[0] in ("lance", "builtins"):
            own.add(name)
    return own


def absent() -> Iterator[str]:
    for scope, (ours, theirs) in MODULES.items():
        yield from (f"{scope}.{name}" for name in names_of(theirs) if not hasattr(ours, name))
    for scope, (ours, theirs) in CLASSES.items():
        yield from (f"{scope}.{name}" for name in names(theirs) - names(ours))
    for module in pkgutil.iter_modules(lance.__path__):
        if not module.name.startswith("_") and f"lance.{module.name}" not in MODULES | TESTED_APART:
            yield f"lance.{module.name}"


def test_every_missing_name_is_listed_with_a_reason() -> None:
    listed = [name for names in OUT_OF_SCOPE.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(absent()) == set(listed)


def test_every_missing_name_is_in_the_document_with_what_to_use_instead() -> None:
    text = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    section = text.partition("## Names that are left out")[2].partition("\n## ")[0]
    missing = {name for names in OUT_OF_SCOPE.values() for name in names}
    assert {name.removeprefix("lance.") for name in missing} == set(names_in(section))


def names_in(section: str) -> list[str]:
    """Return the names in the first column of a table."""
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def missing_arguments() -> Iterator[tuple[str, str]]:
    for scope, (ours, theirs) in (MODULES | CLASSES).items():
        for name in names_of(theirs) if scope in MODULES else names(theirs):
            mine, other = getattr(ours, name, None), getattr(theirs, name)
            if name in MADE_BY_THE_LIBRARY or not (callable(mine) and callable(other)):
                continue
            try:
                known, wanted = (inspect.signature(each).parameters for each in (mine, other))
            except ValueError:  # one that is made in Rust and does not say
                continue
            open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())
            for parameter in wanted.values():
                named = parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
                if named and not open_ended and parameter.name not in known and not parameter.name.startswith("_"):
                    yield f"{scope}.{name}", parameter.name


def test_every_missing_argument_is_listed_with_a_reason() -> None:
    listed = {argument for arguments in ARGUMENTS_OUT_OF_SCOPE.values() for argument in arguments}
    found = list(missing_arguments())
    assert [(name, argument) for name, argument in found if argument not in listed] == []
    assert {argument for _, argument in found} == listed
