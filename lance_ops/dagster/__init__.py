"""Build Dagster definitions for a declared Lance dataset: assets, checks, jobs, sensors and a schedule.

Two assets stand for a dataset. `<dataset>/batches` is partitioned by ingestion batch. Backfills run on it, and one run
commits any number of batches once. `<dataset>`, the head, has no partitions. Each committed version, whichever writer
made it, is one materialization of the head with the version's number as its data version. Checks, freshness and
downstream assets attach to the head.
"""

from __future__ import annotations

from lance_ops.core.errors import MissingPackage

try:
    import dagster  # noqa: F401 - to find out whether it is installed
except ImportError as error:
    raise MissingPackage("lance_ops.dagster", "dagster", "dagster", str(error)) from error

from lance_ops.dagster.component import LanceDatasetComponent
from lance_ops.dagster.declaration import DatasetConfig, load_dataset
from lance_ops.dagster.definitions import build_asset_definitions, build_definitions, build_job_definitions
from lance_ops.dagster.fleet_component import LanceFleetComponent
from lance_ops.dagster.in_process import CodeLocation, Ticked
from lance_ops.dagster.instance_settings import inspect_instance, open_instance
from lance_ops.dagster.io import LanceDatasetResource, LanceIOManager
from lance_ops.dagster.landing import BatchReport, BatchState, BatchStatus, OutsideGlob, batch_states
from lance_ops.dagster.markdown import size_text
from lance_ops.dagster.resources_component import LanceResourcesComponent

__all__ = [
    "BatchReport",
    "BatchState",
    "BatchStatus",
    "CodeLocation",
    "DatasetConfig",
    "LanceDatasetComponent",
    "LanceDatasetResource",
    "LanceFleetComponent",
    "LanceIOManager",
    "LanceResourcesComponent",
    "OutsideGlob",
    "Ticked",
    "batch_states",
    "build_asset_definitions",
    "build_definitions",
    "build_job_definitions",
    "inspect_instance",
    "load_dataset",
    "open_instance",
    "size_text",
]
