"""The options of the verb `ingest_files` that a declaration gives: its policies, and the batches that have landed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.core.errors import InvalidInput
from lance_ops.core.redaction import public_uri
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames, StoreLocation
from lance_ops.dagster.landing import LandedBatch, list_landing
from lance_ops.maintenance import ingested_batches, tokens_of
from lance_ops.maintenance.ingest import RawLimits, failures_of_store, local_path, remote_file_system
from lance_ops.snapshot import Snapshot

__all__ = ["declared_ingestion", "landed_files", "raw_storage_options"]

_SHOWN = 5


def declared_ingestion(config: DatasetConfig) -> dict[str, Any]:
    """Return the policies of a declaration as options of the verb."""
    write, raw = config.write, config.raw
    options: dict[str, Any] = {
        "columns": write.columns,
        "batch_column": write.batch_column,
        "mode": write.mode.value,
        "on": write.keys,
        "valid_from": write.valid_from,
        "valid_to": write.valid_to,
        "current": write.current,
        "data_storage_version": write.data_storage_version,
        "stable_row_ids": write.enable_stable_row_ids,
        "max_rows_per_file": write.max_rows_per_file,
    }
    if raw is None:
        return options
    limits, usual = raw.limits.model_dump(), asdict(RawLimits())
    return {
        **options,
        **raw.text.model_dump(),
        "schema_mode": raw.schema_mode.value,
        "missing_columns": raw.missing_columns.value,
        "extra_columns": raw.extra_columns.value,
        "case_sensitive": raw.case_sensitive,
        "changed": "replace" if raw.changed == "replace" else "refuse",
        "bad": raw.bad,
        "limits": {name: str(value) for name, value in limits.items() if value != usual[name]},
        "isolated": raw.isolated,
    }


def landed_files(
    config: DatasetConfig, snapshot: Snapshot | None, instance: dg.DagsterInstance, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return files, batches, only and beneath for the landed batches that `only` names, or that the table lacks.

    Without `only` they are as many as a tick of the sensor takes. Batches that the table holds and that are no recorded
    partition are named, too, so that an attempt records what an earlier one committed before it died.
    Empty if the launch names files. They must be outside the landing folder, because the sensor knows its files by the
    keys of their batches.
    """
    raw = config.landing()
    location = raw.location()
    if given.get("files"):
        inside = [file for file in given["files"] if _is_beneath(file, location)]
        if inside:
            raise InvalidInput(f"files: {public_uri(inside[0])} is in the landing folder: name its batch in only")
        return {}
    folder = local_path(location.uri)
    root = location.uri if folder is None else os.path.abspath(os.path.expanduser(folder))
    landing = list_landing(raw, datetime.now(UTC))
    if given.get("only"):
        found, missing = landing.find(given["only"])
        if missing:
            shown = ", ".join(missing[:_SHOWN])
            raise InvalidInput(f"only: {len(missing)} batches have no files in {location.public_uri}: {shown}")
        for key in found:
            if reason := landing.why_lacking(key):
                raise InvalidInput(f"only: batch {key} is not complete: {reason}")
        chosen = list(found.values())
    else:
        names = DatasetNames(config.name)
        held = ingested_batches(snapshot) if snapshot else {}
        tokens = tokens_of(held)
        wanted = landing.wanted(raw, instance.get_dynamic_partitions(names.of("batches")), lambda: held)
        asked = (batch.batch_to_request(tokens, raw.changed) for batch in wanted)
        chosen = _first([batch for batch in asked if batch is not None], raw.max_files_per_tick)
        recorded = instance.get_materialized_partitions(names.batches) if tokens else set()
        spelled = (each for batch in wanted for each in (batch, batch.as_changed()) if each.key not in recorded)
        unrecorded = [batch for batch in spelled if tokens.get(batch.key) == batch.token]
        chosen += _first(unrecorded, raw.max_files_per_tick)
    return {
        "files": tuple(file.uri for batch in chosen for file in batch.files),
        "batches": {file.uri: batch.key for batch in chosen for file in batch.files},
        "only": (),
        "beneath": root if folder is not None and raw.links == "refuse" else None,
    }


def raw_storage_options(config: DatasetConfig) -> Mapping[str, str]:
    """Return the options of the landing folder's store; none for a dataset without a landing folder."""
    return {} if config.raw is None else config.raw.location().storage_options


def _is_beneath(file: str, location: StoreLocation) -> bool:
    """Return whether a file is in a folder, however the two are spelled and linked."""
    path, folder = local_path(file), local_path(location.uri)
    if path is not None and folder is not None:
        path, folder = os.path.realpath(path), os.path.realpath(os.path.expanduser(folder))
        return os.path.commonpath((path, folder)) == folder
    if path is not None or folder is not None:
        return False
    with failures_of_store(file, location.storage_options):
        (store, key), (other, prefix) = (
            remote_file_system(uri, location.storage_options) for uri in (file, location.uri)
        )
    return type(store) is type(other) and key.startswith(f"{prefix.rstrip('/')}/")


def _first(batches: Sequence[LandedBatch], max_files: int) -> list[LandedBatch]:
    """Return the first batches with at most this many files, but at least one."""
    taken: list[LandedBatch] = []
    num_files = 0
    for batch in batches:
        num_files += len(batch.files)
        if taken and num_files > max_files:
            break
        taken.append(batch)
    return taken
