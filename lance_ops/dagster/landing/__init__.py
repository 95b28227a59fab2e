"""Raw files that land: how they form batches, what a sensor tick decides, and the asset that ingests them."""

from lance_ops.dagster.landing.batch_report import (
    CHANGED_TOKEN,
    REFUSED,
    REFUSED_OF_RUN,
    batch_states,
    reported_in_state,
)
from lance_ops.dagster.landing.batch_state import BatchReport, BatchState, BatchStatus
from lance_ops.dagster.landing.batches import batches_asset, record_planned_batches
from lance_ops.dagster.landing.landing import list_files, list_landing
from lance_ops.dagster.landing.landing_check import build_landing_check
from lance_ops.dagster.landing.landing_entries import LandedBatch, LandedFile
from lance_ops.dagster.landing.outside_glob import OutsideGlob
from lance_ops.dagster.landing.raw_sensor import build_raw_sensor
from lance_ops.dagster.landing.settled_check import (
    UNSETTLED_BATCHES,
    build_settled_check,
    build_settled_sensor,
    named_with_reasons,
    unsettled_states,
)

__all__ = [
    "CHANGED_TOKEN",
    "REFUSED",
    "REFUSED_OF_RUN",
    "UNSETTLED_BATCHES",
    "BatchReport",
    "BatchState",
    "BatchStatus",
    "LandedBatch",
    "LandedFile",
    "OutsideGlob",
    "batch_states",
    "batches_asset",
    "build_landing_check",
    "build_raw_sensor",
    "build_settled_check",
    "build_settled_sensor",
    "list_files",
    "list_landing",
    "named_with_reasons",
    "record_planned_batches",
    "reported_in_state",
    "unsettled_states",
]
