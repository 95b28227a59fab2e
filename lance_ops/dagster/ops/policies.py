"""What a dataset's declaration says about the options of verbs that a launch leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lance_ops.dagster.head import next_part_to_verify
from lance_ops.dagster.ops.landed_batches import declared_ingestion, landed_files
from lance_ops.dagster.ops.table_ops import Work
from lance_ops.maintenance.verification import VerificationLevel

__all__ = ["with_policy"]


def with_policy(work: Work, verb: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options that a launch gives, completed by the declared ones and by what Dagster remembers."""
    complete = _POLICIES.get(verb)
    return given if complete is None else complete(work, given)


def _compact(work: Work, given: Mapping[str, Any]) -> Mapping[str, Any]:
    policy = work.config.maintenance.compaction
    names = ("target_rows_per_fragment", "materialize_deletions", "materialize_deletions_threshold")
    return {**{name: getattr(policy, name) for name in names}, **given}


def _cleanup(work: Work, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take the launch's limits if it gives any, else the policy's. The two are never mixed: that would surprise."""
    policy, limits = work.config.maintenance.cleanup, ("older_than_days", "retain_versions")
    return (
        given if {*limits, "versions"} & set(given) else {**{name: getattr(policy, name) for name in limits}, **given}
    )


def _reindex(work: Work, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the declared indices to those that the launch creates, and work on all of them unless it names some."""
    declared = {
        index.index_name: index.column if index.type is None else f"{index.column}:{index.type}"
        for index in work.config.indices
    }
    create = {**declared, **given.get("create", {})}
    return {**given, "create": create, "indices": given.get("indices") or tuple(create)}


def _verify(work: Work, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Bound the verification of the newest version, and begin where the last run of the same level ended."""
    if given.get("all_versions") or "version" in given:
        return given
    options = {"max_megabytes": work.config.maintenance.verification.max_megabytes or 0, **given}
    if options["max_megabytes"] and "first_part" not in options:
        level = VerificationLevel(options.get("level", VerificationLevel.FULL))
        options["first_part"] = next_part_to_verify(work.context.instance, work.config, level)
    return options


def _ingest_files(work: Work, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ingest by the declared policies: the given files, or the batches of the landing folder that the table lacks."""
    declared = declared_ingestion(work.config)
    if work.config.raw is None:
        return {**declared, **given}
    return {**declared, **given, **landed_files(work.config, work.opened, work.context.instance, given)}


_POLICIES: Mapping[str, Callable[[Work, Mapping[str, Any]], Mapping[str, Any]]] = {
    "compact": _compact,
    "cleanup": _cleanup,
    "ingest_files": _ingest_files,
    "reindex": _reindex,
    "verify": _verify,
}
