"""Check what points to versions: the hint at the newest version, tags and branches."""

from __future__ import annotations

import json
from collections.abc import Callable

from lance_ops.committers import VERSION_HINT_PATH, Committer, list_detached, open_root
from lance_ops.core.errors import LanceOpsError, ObjectNotFound
from lance_ops.core.file_names import MAIN_BRANCH
from lance_ops.maintenance.verification.findings import DamageKind, FindingCollector
from lance_ops.refs import (
    branch_of,
    branch_uri,
    erasure_before,
    list_branches,
    list_tag_names,
    read_tag,
    reference_store,
)
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store

__all__ = ["check_references"]


def check_references(snapshot: Snapshot, found: FindingCollector) -> None:
    """Record a hint, tags and branches that name versions which do not exist."""
    _check_hint(snapshot, found)
    exists = _existing_versions(snapshot)
    references = reference_store(snapshot)
    with found.errors_as(DamageKind.TAG):
        for name in list_tag_names(references):
            of_tag = found.of_reference(name)
            with of_tag.errors_as(DamageKind.TAG):
                tag = read_tag(references, name)
                if not exists(tag.branch, tag.version):
                    detail = f"tag {name!r} names version {tag.version} of {_branch(tag.branch)}, which does not exist"
                    of_tag.damaged(DamageKind.TAG, detail)
    with found.errors_as(DamageKind.BRANCH):
        for name, branch in list_branches(references).items():
            of_branch = found.of_reference(name)
            if not exists(name, None):
                of_branch.damaged(DamageKind.BRANCH, f"branch {name!r} has no version")
            parent, version = branch.parent_branch, branch.parent_version
            if not exists(parent, version) and erasure_before(references, parent, version) is None:
                began = f"version {version} of {_branch(parent)}"
                of_branch.damaged(DamageKind.BRANCH, f"branch {name!r} began with {began}, which does not exist")


def _check_hint(snapshot: Snapshot, found: FindingCollector) -> None:
    """Record a hint at a version that does not exist.

    The hint is read before the versions are listed, so a commit in between is no damage. A hint may lag behind, and a
    reader may see it half written.
    """
    path = snapshot.store.uri_of(VERSION_HINT_PATH)
    with found.errors_as(DamageKind.VERSION_HINT, path):
        try:
            text = snapshot.store.get(VERSION_HINT_PATH).to_pybytes()
        except ObjectNotFound:
            return
        try:
            version = int(json.loads(text)["version"])
        except (ValueError, KeyError, TypeError, RecursionError):
            found.unverified(DamageKind.VERSION_HINT, "not a hint, or half written: readers ignore it", path)
            return
        if version not in snapshot.committer.versions():
            found.damaged(DamageKind.VERSION_HINT, f"it names version {version}, which does not exist", path)


def _existing_versions(snapshot: Snapshot) -> Callable[[str | None, int | None], bool]:
    """Return a function that tells whether a branch has a version; for the version None, whether it has any."""
    listed: dict[str | None, frozenset[int]] = {branch_of(snapshot): _versions_of(snapshot.store, snapshot.committer)}

    def exists(branch: str | None, version: int | None) -> bool:
        branch = None if branch == MAIN_BRANCH else branch
        if branch not in listed:
            try:
                root = open_root(branch_uri(snapshot, branch), snapshot.storage_options)
                listed[branch] = _versions_of(root.store, root.committer)
            except LanceOpsError:
                listed[branch] = frozenset()
        return bool(listed[branch]) if version is None else version in listed[branch]

    return exists


def _versions_of(store: Store, committer: Committer) -> frozenset[int]:
    """Return the versions that a tag may name, detached ones too."""
    return frozenset((*committer.versions(), *(list_detached(store) if committer.takes_detached else ())))


def _branch(name: str | None) -> str:
    return f"branch {name or MAIN_BRANCH!r}"
