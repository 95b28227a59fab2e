"""Make each version exist exactly once: by a conditional create in the dataset's store, or by a manifest store."""

from __future__ import annotations

from lance_ops.committers.allowed_bases import (
    ALLOWED_BASES_OPTION,
    check_base_is_allowed,
    with_allowed_bases,
    with_prefixes,
)
from lance_ops.committers.allowed_expansion import ALLOW_EXPANSION_OPTION, allows_expansion
from lance_ops.committers.contract import Abandoned, CommitOutcome, Committed, Committer, Conflict, Unknown
from lance_ops.committers.external import ExternalManifestCommitter
from lance_ops.committers.locked_committer import CommitLock, LockedCommitter, with_commit_lock
from lance_ops.committers.opening import DatasetRoot, open_base, open_root, options_for_base, options_of_base
from lance_ops.committers.put_if_absent import PutIfAbsentCommitter
from lance_ops.committers.version_hint import VERSION_HINT_PATH, write_hint
from lance_ops.committers.versions_directory import list_detached, migrate_to_v2

__all__ = [
    "ALLOWED_BASES_OPTION",
    "ALLOW_EXPANSION_OPTION",
    "ALL_COMMITTERS",
    "VERSION_HINT_PATH",
    "Abandoned",
    "CommitLock",
    "CommitOutcome",
    "Committed",
    "Committer",
    "Conflict",
    "DatasetRoot",
    "ExternalManifestCommitter",
    "LockedCommitter",
    "PutIfAbsentCommitter",
    "Unknown",
    "allows_expansion",
    "check_base_is_allowed",
    "list_detached",
    "migrate_to_v2",
    "open_base",
    "open_root",
    "options_for_base",
    "options_of_base",
    "with_allowed_bases",
    "with_commit_lock",
    "with_prefixes",
    "write_hint",
]

ALL_COMMITTERS: tuple[type[Committer], ...] = (PutIfAbsentCommitter, ExternalManifestCommitter)
