"""Make each version exist exactly once: by a conditional create in the dataset's store, or by a manifest store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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
    from lance_ops.committers.opening import (
        MANIFEST_STORE_OPTION,
        DatasetRoot,
        files_uri,
        open_base,
        open_root,
        options_for_base,
        options_of_base,
    )
    from lance_ops.committers.put_if_absent import PutIfAbsentCommitter
    from lance_ops.committers.registry import ALL_COMMITTERS
    from lance_ops.committers.version_hint import VERSION_HINT_PATH, write_hint
    from lance_ops.committers.versions_directory import detached_among, list_detached, migrate_to_v2

__all__ = [
    "ALLOWED_BASES_OPTION",
    "ALLOW_EXPANSION_OPTION",
    "ALL_COMMITTERS",
    "MANIFEST_STORE_OPTION",
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
    "detached_among",
    "files_uri",
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

_MODULES = {
    "ALLOWED_BASES_OPTION": "allowed_bases",
    "ALLOW_EXPANSION_OPTION": "allowed_expansion",
    "ALL_COMMITTERS": "registry",
    "MANIFEST_STORE_OPTION": "opening",
    "VERSION_HINT_PATH": "version_hint",
    "Abandoned": "contract",
    "CommitLock": "locked_committer",
    "CommitOutcome": "contract",
    "Committed": "contract",
    "Committer": "contract",
    "Conflict": "contract",
    "DatasetRoot": "opening",
    "ExternalManifestCommitter": "external",
    "LockedCommitter": "locked_committer",
    "PutIfAbsentCommitter": "put_if_absent",
    "Unknown": "contract",
    "allows_expansion": "allowed_expansion",
    "check_base_is_allowed": "allowed_bases",
    "detached_among": "versions_directory",
    "files_uri": "opening",
    "list_detached": "versions_directory",
    "migrate_to_v2": "versions_directory",
    "open_base": "opening",
    "open_root": "opening",
    "options_for_base": "opening",
    "options_of_base": "opening",
    "with_allowed_bases": "allowed_bases",
    "with_commit_lock": "locked_committer",
    "with_prefixes": "allowed_bases",
    "write_hint": "version_hint",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
