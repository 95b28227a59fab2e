"""What a dataset's declaration says about the options of verbs that a launch leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lance_ops.dagster.declaration import DatasetConfig

__all__ = ["with_policy"]


def with_policy(config: DatasetConfig, verb: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options that a launch gives, completed by the declared ones."""
    complete = _POLICIES.get(verb)
    return given if complete is None else complete(config, given)


def _compact(config: DatasetConfig, given: Mapping[str, Any]) -> Mapping[str, Any]:
    policy = config.maintenance.compaction
    names = ("target_rows_per_fragment", "materialize_deletions", "materialize_deletions_threshold")
    return {**{name: getattr(policy, name) for name in names}, **given}


def _cleanup(config: DatasetConfig, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take the launch's limits if it gives any, else the policy's. The two are never mixed: that would surprise."""
    policy, limits = config.maintenance.cleanup, ("older_than_days", "retain_versions")
    return (
        given if {*limits, "versions"} & set(given) else {**{name: getattr(policy, name) for name in limits}, **given}
    )


def _reindex(config: DatasetConfig, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the declared indices to those that the launch creates, and work on all of them unless it names some."""
    declared = {
        index.index_name: index.column if index.type is None else f"{index.column}:{index.type}"
        for index in config.indices
    }
    create = {**declared, **given.get("create", {})}
    return {**given, "create": create, "indices": given.get("indices") or tuple(create)}


_POLICIES: Mapping[str, Callable[[DatasetConfig, Mapping[str, Any]], Mapping[str, Any]]] = {
    "compact": _compact,
    "cleanup": _cleanup,
    "reindex": _reindex,
}
