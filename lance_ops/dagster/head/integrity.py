"""Verify a part of a dataset in each run, and report it as the check `intact` of the head.

A run verifies files of about the declared number of bytes, and the next run continues where it ended. The evaluations
of the check remember the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance.verification import (
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    verify_uri,
)
from lance_ops.runners import Runner

__all__ = ["INTACT", "evaluation_of", "verified_at", "verify_some"]

INTACT = "intact"
"""The name of the check."""

_NEXT_PART = "lance/next_part"
_CHECKSUMS = "lance/read_checksums"
_LOOKED_AT = 20
"""How many runs of the check are searched for the place to continue: a planned run has none."""

_SHOWN = 50


def verify_some(
    instance: dg.DagsterInstance,
    config: DatasetConfig,
    runner: Runner | None = None,
    *,
    max_megabytes: int | None,
    quick: bool = False,
) -> VerificationReport:
    """Verify the next parts of the newest version, all parts if `max_megabytes` is None.

    A newest version whose manifest cannot be read is a damage of the report. Raises `DatasetNotFound`.
    """
    location = config.table()
    options = VerificationOptions(
        VerificationLevel.QUICK if quick else VerificationLevel.FULL,
        max_bytes=None if max_megabytes is None else max_megabytes * 1024**2,
        first_part=0 if max_megabytes is None else _next_part(instance, config),
    )
    return verify_uri(location.uri, None, location.storage_options, options, runner)


def verified_at(instance: dg.DagsterInstance, config: DatasetConfig) -> datetime | None:
    """Return when a verification of checksums last reached the table's end; None if no recent one did."""
    for moment, metadata in _evaluations(instance, config):
        full = metadata.get(_CHECKSUMS)
        if isinstance(full, dg.BoolMetadataValue) and full.value and _int(metadata, _NEXT_PART) == 0:
            return moment
    return None


def evaluation_of(config: DatasetConfig, report: VerificationReport) -> dg.AssetCheckEvaluation:
    """Return what a report says as an evaluation of the check; it names the damaged fragments and indices."""
    metadata: dict[str, Any] = {
        "lance/version": report.version,
        "lance/num_files": report.num_files,
        "lance/size_bytes": report.size_bytes,
        "lance/num_damages": len(report.damages),
        "lance/files_without_checksums": len(report.files_without_checksums),
        _CHECKSUMS: report.level is VerificationLevel.FULL,
        _NEXT_PART: 0 if report.next_part is None else report.next_part,
    }
    if report.damages:
        metadata["lance/damaged_fragments"] = ", ".join(map(str, report.damaged_fragments)) or "none"
        metadata["lance/damaged_indices"] = ", ".join(report.damaged_indices) or "none"
        metadata["lance/damages"] = dg.MetadataValue.md(_damages_markdown(report))
    return dg.AssetCheckEvaluation(
        asset_key=DatasetNames(config.name).head,
        check_name=INTACT,
        passed=report.ok,
        description=_sentence(report),
        metadata=metadata,
    )


def _sentence(report: VerificationReport) -> str:
    checked = f"{report.num_files} files of version {report.version}, {size_text(report.size_bytes)}"
    if report.ok:
        return f"{checked}, are intact"
    places = [
        *(f"fragment {fragment_id}" for fragment_id in report.damaged_fragments),
        *(f"index {name}" for name in report.damaged_indices),
    ]
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    where = f"{', '.join(places[:_SHOWN])}{more}" if places else str(report.damages[0])
    return f"{len(report.damages)} damages in {checked}: {where}; run lance-ops repair"


def _damages_markdown(report: VerificationReport) -> str:
    lines = [
        (each.kind.value, "" if each.fragment_id is None else each.fragment_id, each.path or "", each.detail)
        for each in report.damages[:_SHOWN]
    ]
    return table(["kind", "fragment", "file", "detail"], lines)


def _next_part(instance: dg.DagsterInstance, config: DatasetConfig) -> int:
    """Return where the newest evaluation of the check ended, 0 if there is none."""
    found = (_int(metadata, _NEXT_PART) for _, metadata in _evaluations(instance, config))
    return next((part for part in found if part is not None), 0)


def _evaluations(
    instance: dg.DagsterInstance, config: DatasetConfig
) -> Iterator[tuple[datetime, Mapping[str, dg.MetadataValue[Any]]]]:
    """Yield when the newest runs of the check ended, and their metadata, the newest first."""
    key = dg.AssetCheckKey(DatasetNames(config.name).head, INTACT)
    for record in instance.event_log_storage.get_asset_check_execution_history(key, limit=_LOOKED_AT):
        evaluation = record.event.asset_check_evaluation if record.event is not None else None
        if evaluation is not None:
            yield datetime.fromtimestamp(record.create_timestamp, UTC), evaluation.metadata


def _int(metadata: Mapping[str, dg.MetadataValue[Any]], key: str) -> int | None:
    found = metadata.get(key)
    return found.value if isinstance(found, dg.IntMetadataValue) else None
