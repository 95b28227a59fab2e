"""Verify a dataset: are all files of a version there, and do they say what the manifest and each other say?

    plan_verification(snapshot, options) -> VerificationPlan     tasks for the manifest, fragments, indices, ids
    execute(task) -> Checked                                     any process: reads files, records findings
    verify(snapshot, options, runner) -> VerificationReport

A damage is a finding, never an error, so that one damaged file hides no other. A task opens its version again: the
caller's open files and cached deletion vectors may be older than the damage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from lance_ops.committers import open_root
from lance_ops.core.errors import CorruptFile, UnsupportedFeature, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.verification.checks import (
    SharedRowId,
    check_fragment,
    check_index,
    check_index_entries,
    check_references,
    check_rows,
    check_table,
    find_shared_row_ids,
    record_shared_row_ids,
)
from lance_ops.maintenance.verification.findings import CheckedFile, DamageKind, Finding, FindingCollector
from lance_ops.maintenance.verification.report import VerificationLevel, VerificationReport
from lance_ops.maintenance.verification.verification_plan import (
    FragmentsTask,
    IndexEntriesTask,
    IndexTask,
    RowIdsTask,
    RowsTask,
    TableTask,
    VerificationOptions,
    VerificationTask,
    plan_verification,
)
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata

__all__ = ["Checked", "execute", "unreadable_newest_version", "unreadable_version", "verify", "verify_uri"]


@dataclass(frozen=True)
class Checked:
    """What a task found, and the files that it looked at.

    Several tasks may find ids that the same two fragments share, so these become findings when all tasks are done.
    """

    findings: tuple[Finding, ...]
    files: tuple[CheckedFile, ...]
    shared_row_ids: tuple[SharedRowId, ...] = ()


def verify(
    snapshot: Snapshot, options: VerificationOptions | None = None, runner: Runner | None = None
) -> VerificationReport:
    """Verify a version; `all_versions` adds the other retained versions of its branch, `max_bytes` checks only a part.

    If clean-up removes a version meanwhile, its missing files are no damage. Raises only if the store cannot list the
    versions, or if a runner loses its tasks.
    """
    plan = plan_verification(snapshot, options)
    outcomes = (runner or InThreads()).map(execute, plan.tasks, plan.job)
    merged = FindingCollector(plan.version, findings=[*plan.findings])
    merged.findings += [finding for outcome in outcomes for finding in outcome.findings]
    record_shared_row_ids((shared for outcome in outcomes for shared in outcome.shared_row_ids), merged)
    findings = _without_blame_for_clean_up(snapshot, merged.findings)
    files = [file for outcome in outcomes for file in outcome.files]
    return VerificationReport.of(
        plan.uri, plan.version, plan.options.level, plan.versions, findings, files, plan.next_part
    )


def _without_blame_for_clean_up(snapshot: Snapshot, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings; damages of versions that do not exist any more become unverified.

    Clean-up removes a version's manifest before its files, so the manifest of a version whose files it took is gone.
    """
    gone = {
        version
        for version in {finding.version for finding in findings if finding.is_damage}
        if not snapshot.committer.exists(version)
    }
    return [
        finding.as_unverified("the version was removed meanwhile") if finding.version in gone else finding
        for finding in findings
    ]


def verify_uri(
    uri: str,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    options: VerificationOptions | None = None,
    runner: Runner | None = None,
) -> VerificationReport:
    """Verify a dataset whose manifest may be damaged: a manifest that cannot be read is a finding of the report.

    Raises `DatasetNotFound` and `VersionNotFound`.
    """
    try:
        snapshot = Snapshot.open(uri, version, storage_options)
    except (CorruptFile, UnsupportedFeature) as error:
        root = open_root(uri, storage_options)
        number = (root.committer.latest() if version is None else version) or 0
        return _of_manifest(root.store.uri, number, error, (options or VerificationOptions()).level)
    return verify(snapshot, options, runner)


def unreadable_newest_version(snapshot: Snapshot, level: VerificationLevel) -> VerificationReport | None:
    """Return the report of a newer version than the opened one whose manifest cannot be read; None if there is none."""
    newest = snapshot.committer.latest()
    if newest is None or newest <= snapshot.version:
        return None
    try:
        return unreadable_version(snapshot, newest, level)
    except VersionNotFound:  # a concurrent clean-up removed it
        return None


def unreadable_version(snapshot: Snapshot, version: int, level: VerificationLevel) -> VerificationReport | None:
    """Return the report of a version whose manifest cannot be read; None if it can. Raises `VersionNotFound`."""
    try:
        snapshot.at(version)
    except (CorruptFile, UnsupportedFeature) as error:
        return _of_manifest(snapshot.store.uri, version, error, level)
    return None


def _of_manifest(
    uri: str, version: int, error: CorruptFile | UnsupportedFeature, level: VerificationLevel
) -> VerificationReport:
    found = FindingCollector(version)
    found.failed(DamageKind.MANIFEST, error)
    return VerificationReport.of(uri, version, level, (), found.findings, ())


def execute(task: VerificationTask) -> Checked:
    """Do the checks of a task."""
    found = FindingCollector(task.snapshot.version)
    shared: list[SharedRowId] = []
    with found.errors_as(DamageKind.MANIFEST):
        try:
            shared = _check(task, task.snapshot.open(), found)
        except VersionNotFound as error:
            found.unverified(DamageKind.MANIFEST, f"{error}: it was removed meanwhile")
    return Checked(tuple(found.findings), tuple(found.files), tuple(shared))


def _check(task: VerificationTask, snapshot: Snapshot, found: FindingCollector) -> list[SharedRowId]:
    match task:
        case FragmentsTask(_, positions, decode, _, skip_rows):
            for position in positions:
                fragment = snapshot.manifest.fragments[position]
                check_fragment(snapshot, fragment, found, decode=decode, skip_rows=skip_rows)
        case RowsTask(_, position, start, stop):
            check_rows(snapshot, snapshot.manifest.fragments[position], start, stop, found)
        case IndexTask(_, uuid, decode):
            check_index(snapshot, _segment(snapshot, uuid), found, decode=decode)
        case IndexEntriesTask(_, uuid, spans):
            check_index_entries(snapshot, _segment(snapshot, uuid), spans, found)
        case RowIdsTask(_, start, stop, max_runs):
            return find_shared_row_ids(snapshot, start, stop, max_runs)
        case TableTask(_, references):
            check_table(snapshot, found, is_old=not references)
            if references:
                check_references(snapshot, found)
    return []


def _segment(snapshot: Snapshot, uuid: UUID) -> IndexMetadata:
    return next(index for index in snapshot.manifest.indices if index.uuid == uuid)
