"""A declared dataset: its YAML, its names, and the environment variables in it."""

from lance_ops.dagster.declaration.config import (
    CleanupPolicy,
    CompactionPolicy,
    DatasetConfig,
    RawFiles,
    StoreLocation,
    WriteOptions,
)
from lance_ops.dagster.declaration.config_files import load_datasets
from lance_ops.dagster.declaration.environment import expand, expand_all
from lance_ops.dagster.declaration.names import DatasetNames, safe_key
from lance_ops.dagster.declaration.patterns import KeyPattern, PathGlob

__all__ = [
    "CleanupPolicy",
    "CompactionPolicy",
    "DatasetConfig",
    "DatasetNames",
    "KeyPattern",
    "PathGlob",
    "RawFiles",
    "StoreLocation",
    "WriteOptions",
    "expand",
    "expand_all",
    "load_datasets",
    "safe_key",
]
