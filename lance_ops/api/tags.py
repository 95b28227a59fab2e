"""`LanceDataset.tags`: named versions, under the reference's names."""

from __future__ import annotations

from typing import TypedDict

from lance_ops.core.errors import UnsupportedFeature, VersionNotFound
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.snapshot.tags import Tag as StoredTag
from lance_ops.snapshot.tags import create_tag, delete_tag, list_tags, read_tag, update_tag

__all__ = ["Reference", "Tag", "Tags", "resolve_reference"]

Reference = int | str | tuple[str | None, int | None]
"""A version, a tag's name, or (branch, version) with branch None."""


class Tag(TypedDict):
    """A tag as `list` returns it."""

    branch: str | None
    version: int
    created_at: object
    updated_at: object
    manifest_size: int
    metadata: dict[str, str]


_Listed = list[tuple[str, Tag]]  # inside the class, `list` is the method


class Tags:
    """The tags of one dataset."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, Tag]:
        """Return every tag by name."""
        return {name: _public(tag) for name, tag in list_tags(self._snapshot.store).items()}

    def list_ordered(self, order: str | None = None) -> _Listed:
        """Return (name, tag) pairs by version, newest first unless `order` is "asc"."""
        return sorted(self.list().items(), key=lambda item: item[1]["version"], reverse=order != "asc")

    def get_version(self, tag: str) -> int:
        """Return the version that a tag names; raise `ReferenceNotFound` if there is no such tag."""
        return read_tag(self._snapshot.store, tag).version

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Name a version (by default this one).

        Raises `InvalidInput` for a name in use or not allowed, `VersionNotFound` for a version that is not there.
        """
        version = self._version(reference)
        create_tag(self._snapshot.store, tag, version, self._manifest_size(version))
        if not self._snapshot.committer.exists(version):  # a clean-up that removes it looks for tags afterwards
            delete_tag(self._snapshot.store, tag)
            raise VersionNotFound(f"{self._snapshot.uri}: version {version} was cleaned up")

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Move a tag to a version (by default this one)."""
        version = self._version(reference)
        before = read_tag(self._snapshot.store, tag)
        update_tag(self._snapshot.store, tag, version, self._manifest_size(version))
        if not self._snapshot.committer.exists(version):
            update_tag(self._snapshot.store, tag, before.version, before.manifest_size)
            raise VersionNotFound(f"{self._snapshot.uri}: version {version} was cleaned up")

    def delete(self, tag: str) -> None:
        """Remove a tag; its version may then be cleaned up."""
        delete_tag(self._snapshot.store, tag)

    def _version(self, reference: Reference | None) -> int:
        return self._snapshot.version if reference is None else resolve_reference(self._snapshot, reference)

    def _manifest_size(self, version: int) -> int:
        return len(self._snapshot.committer.read(version))


def resolve_reference(snapshot: Snapshot, reference: Reference) -> int:
    """Return the version a reference means; raise `ReferenceNotFound` for an unknown tag."""
    if isinstance(reference, tuple):
        branch, version = reference
        if branch is not None:
            raise UnsupportedFeature("a reference into a branch", snapshot.uri)
        return snapshot.latest().version if version is None else version
    return read_tag(snapshot.store, reference).version if isinstance(reference, str) else reference


def _public(tag: StoredTag) -> Tag:
    return Tag(
        branch=tag.branch,
        version=tag.version,
        created_at=tag.created_at,
        updated_at=tag.updated_at,
        manifest_size=tag.manifest_size,
        metadata=dict(tag.metadata),
    )
