"""Verify a part of a dataset in each run, and report it as the check `intact` of the head.

A run verifies files of about the declared number of bytes, and the next run of the same level continues where it
ended. A pass is a sequence of runs from the first part of the table to its last. The evaluations of the check remember
the place, whether the pass was intact so far, when the last intact pass ended, and when the last pass ended whether or
not it found damage. They also list the damages that are not known to be gone: while there is one, the check is red,
whatever the newest run found intact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import causes_of_red
from lance_ops.dagster.event_log import newest_evaluations
from lance_ops.dagster.head.known_damage import (
    KNOWN_DAMAGES,
    KnownDamage,
    decode_damages,
    encode_damages,
    known_damages,
)
from lance_ops.dagster.markdown import named, size_text, table
from lance_ops.dagster.opening import open_to_look
from lance_ops.maintenance.verification import (
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    verify_uri,
)
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot

__all__ = [
    "INTACT",
    "intact_evaluation",
    "last_intact_pass_at",
    "last_pass_ended_at",
    "next_part_to_verify",
    "verify_some",
    "verify_within",
]

INTACT = "intact"
"""The name of the check."""

_NEXT_PART = "lance/next_part"
_CHECKSUMS = "lance/read_checksums"
_PASS_INTACT = "lance/pass_is_intact"
_VERIFIED_AT = "lance/verified_at"
_PASS_ENDED_AT = "lance/pass_ended_at"
_SEARCHED = 2000
"""How many records of the check are searched for the newest run of a level. Hourly runs of another level, or hourly
runs that end before they come to the check, leave fewer in eleven weeks."""

_SHOWN = 50


@dataclass(frozen=True)
class _Progress:
    """How far the runs of a level are: where the next one continues, and what is known of the present pass."""

    next_part: int = 0
    is_intact: bool = True
    last_intact_pass_at: datetime | None = None
    last_pass_ended_at: datetime | None = None
    known: tuple[KnownDamage, ...] = ()

    def goes_on_at(self, first_part: int) -> bool:
        """Return whether a run from a part begins a pass, or goes on with the present one."""
        return first_part in (0, self.next_part)

    def after(self, report: VerificationReport, first_part: int) -> _Progress:
        """Return the progress after a run that began at a part.

        A run that ends a pass and goes on with the first part is also the beginning of the next pass. A run that began
        elsewhere than at the first part or at the present place ends no pass and keeps the place: the parts between
        were not verified.
        """
        if not self.goes_on_at(first_part):
            return replace(self, is_intact=self.is_intact and report.ok)
        is_intact = report.ok and (self.is_intact or first_part == 0)
        ends_pass = report.reaches_end_from(first_part)
        ends_full_pass = ends_pass and report.level is VerificationLevel.FULL
        now = datetime.now(UTC)
        return _Progress(
            report.next_part or 0,
            report.ok if ends_pass else is_intact,
            now if ends_full_pass and is_intact else self.last_intact_pass_at,
            now if ends_full_pass else self.last_pass_ended_at,
        )


def verify_some(
    instance: dg.DagsterInstance,
    config: DatasetConfig,
    runner: Runner | None = None,
    *,
    max_megabytes: int | None,
    quick: bool = False,
) -> dg.AssetCheckEvaluation:
    """Verify the next parts of the newest version, all parts if `max_megabytes` (MiB) is None; return the evaluation.

    The evaluation names the damaged fragments and indices. A newest version whose manifest cannot be read is a damage.
    Raises `DatasetNotFound`.
    """
    level = VerificationLevel.QUICK if quick else VerificationLevel.FULL
    max_bytes = None if max_megabytes is None else max_megabytes * 1024**2
    return _verified(instance, config, runner, level, max_bytes)[1]


def verify_within(
    instance: dg.DagsterInstance, config: DatasetConfig, runner: Runner | None, max_bytes: int | None
) -> tuple[VerificationReport, dg.AssetCheckEvaluation]:
    """Verify the checksums of the next parts within a budget; return the report, and the evaluation of `verify_some`.

    At least one part is verified, whatever its size.
    """
    return _verified(instance, config, runner, VerificationLevel.FULL, max_bytes)


def next_part_to_verify(instance: dg.DagsterInstance, config: DatasetConfig, level: VerificationLevel) -> int:
    """Return the part where the next run of a level continues."""
    return _progress(instance, config, level).next_part


def intact_evaluation(
    instance: dg.DagsterInstance, config: DatasetConfig, report: VerificationReport, first_part: int
) -> dg.AssetCheckEvaluation:
    """Return the evaluation of the check by a verification that began at a part."""
    before = _progress(instance, config, report.level)
    newest = _open_newest(config) if before.known else None
    known = known_damages(before.known, report, first_part, in_turn=before.goes_on_at(first_part), newest=newest)
    return _evaluation(config, report, replace(before.after(report, first_part), known=known))


def last_intact_pass_at(instance: dg.DagsterInstance, config: DatasetConfig) -> datetime | None:
    """Return when a pass over all checksums last ended without damage; None if no recent run knows of one."""
    return _progress(instance, config, VerificationLevel.FULL).last_intact_pass_at


def last_pass_ended_at(instance: dg.DagsterInstance, config: DatasetConfig) -> datetime | None:
    """Return when a pass over all checksums last ended, whether or not it found damage; None if it is not known."""
    return _progress(instance, config, VerificationLevel.FULL).last_pass_ended_at


def _verified(
    instance: dg.DagsterInstance,
    config: DatasetConfig,
    runner: Runner | None,
    level: VerificationLevel,
    max_bytes: int | None,
) -> tuple[VerificationReport, dg.AssetCheckEvaluation]:
    location = config.table()
    first_part = 0 if max_bytes is None else next_part_to_verify(instance, config, level)
    options = VerificationOptions(level, max_bytes=max_bytes, first_part=first_part)
    report = verify_uri(location.uri, None, location.storage_options, options, runner)
    return report, intact_evaluation(instance, config, report, first_part)


def _evaluation(config: DatasetConfig, report: VerificationReport, progress: _Progress) -> dg.AssetCheckEvaluation:
    metadata: dict[str, Any] = {
        "lance/version": report.version,
        "lance/num_files": report.num_files,
        "lance/size_bytes": report.size_bytes,
        "lance/num_damages": len(report.damages),
        "lance/files_without_checksums": len(report.files_without_checksums),
        _CHECKSUMS: report.level is VerificationLevel.FULL,
        _NEXT_PART: progress.next_part,
        _PASS_INTACT: progress.is_intact,
        KNOWN_DAMAGES: encode_damages(progress.known),
        **causes_of_red(each.place for each in progress.known),
    }
    moments = {_VERIFIED_AT: progress.last_intact_pass_at, _PASS_ENDED_AT: progress.last_pass_ended_at}
    metadata |= {name: dg.MetadataValue.timestamp(at) for name, at in moments.items() if at is not None}
    if report.damages:
        metadata["lance/damaged_fragments"] = ", ".join(map(str, report.damaged_fragments)) or "none"
        metadata["lance/damaged_indices"] = ", ".join(report.damaged_indices) or "none"
        metadata["lance/damages"] = dg.MetadataValue.md(_damages_markdown(report))
    return dg.AssetCheckEvaluation(
        asset_key=DatasetNames(config.name).head,
        check_name=INTACT,
        passed=report.ok and not progress.known,
        description=_sentence(report, progress.known),
        metadata=metadata,
    )


def _open_newest(config: DatasetConfig) -> Snapshot | None:
    try:
        return open_to_look(config)
    except LanceOpsError:  # the check `valid` tells of it
        return None


def _sentence(report: VerificationReport, known: Sequence[KnownDamage]) -> str:
    checked = f"{report.num_files} files of version {report.version}, {size_text(report.size_bytes)}"
    if report.ok:
        earlier = list(dict.fromkeys(f"{each.place} (version {each.version})" for each in known))
        return f"{checked}, are intact" + (_of_earlier_runs(earlier) if earlier else "")
    places = [
        *(f"fragment {fragment_id}" for fragment_id in report.damaged_fragments),
        *(f"index {name}" for name in report.damaged_indices),
    ]
    where = named(places, _SHOWN) if places else str(report.damages[0])
    return f"{len(report.damages)} damages in {checked}: {where}; run lance-ops repair"


def _of_earlier_runs(places: Sequence[str]) -> str:
    return (
        f"; an earlier run found damages that are not known to be gone: {named(places, _SHOWN)}; "
        "run lance-ops repair, or verify all parts (max_megabytes: 0)"
    )


def _damages_markdown(report: VerificationReport) -> str:
    lines = [
        (each.kind.value, "" if each.fragment_id is None else each.fragment_id, each.path or "", each.detail)
        for each in report.damages[:_SHOWN]
    ]
    return table(["kind", "fragment", "file", "detail"], lines)


def _progress(instance: dg.DagsterInstance, config: DatasetConfig, level: VerificationLevel) -> _Progress:
    """Return what the newest run of a level remembers; a new beginning if there is no recent one.

    Runs of every level remember when a full pass last ended, and the known damages.
    """
    key = dg.AssetCheckKey(DatasetNames(config.name).head, INTACT)
    is_full = level is VerificationLevel.FULL
    ended: datetime | None = None
    known: tuple[KnownDamage, ...] | None = None
    for evaluation in (found.evaluation for found in newest_evaluations(instance, key, at_least=_SEARCHED)):
        ended = ended or _moment(evaluation.metadata, _PASS_ENDED_AT)
        known = decode_damages(evaluation.metadata) if known is None else known
        if _value(evaluation.metadata, _CHECKSUMS) is not is_full:
            continue
        next_part, verified = _value(evaluation.metadata, _NEXT_PART), _moment(evaluation.metadata, _VERIFIED_AT)
        return _Progress(
            next_part if isinstance(next_part, int) else 0,
            _value(evaluation.metadata, _PASS_INTACT) is True,
            verified,
            ended or (verified if is_full else None),
            known or (),
        )
    return _Progress(last_pass_ended_at=ended, known=known or ())


def _moment(metadata: Mapping[str, dg.MetadataValue[Any]], key: str) -> datetime | None:
    found = _value(metadata, key)
    return datetime.fromtimestamp(found, UTC) if isinstance(found, float) else None


def _value(metadata: Mapping[str, dg.MetadataValue[Any]], key: str) -> object:
    found = metadata.get(key)
    return None if found is None else found.value
