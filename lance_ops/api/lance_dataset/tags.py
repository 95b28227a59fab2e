"""`LanceDataset.tags`: create, list, move and delete tags, under the reference's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TypedDict

from lance_ops import refs
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.core.errors import CorruptFile, LanceOpsError, ReferenceNotFound, UnsupportedFeature, VersionNotFound
from lance_ops.snapshot import Snapshot

__all__ = ["Reference", "Tag", "Tags", "open_reference"]

Reference = int | str | tuple[str | None, int | None]
"""A version number on the handle's branch, a tag's name, or (branch, version).

Branch None or "main" means the main branch; version None means the newest.
"""


class Tag(TypedDict):
    """A tag as `list` returns it."""

    branch: str | None
    version: int
    created_at: object
    updated_at: object
    manifest_size: int
    metadata: dict[str, str]


_Listed = list[tuple[str, Tag]]  # inside the class, `list` is the method


@check_public_methods
class Tags:
    """The tags of one dataset."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, Tag]:
        """Return every tag by name."""
        return {name: _public(tag) for name, tag in refs.list_tags(refs.reference_store(self._snapshot)).items()}

    def list_ordered(self, order: str | None = None) -> _Listed:
        """Return (name, tag) pairs by version, newest first unless `order` is "asc"."""
        return sorted(self.list().items(), key=lambda item: item[1]["version"], reverse=order != "asc")

    def get_version(self, tag: str) -> int:
        """Return the version that a tag names; raise `ReferenceNotFound` if there is no such tag."""
        return refs.read_tag(refs.reference_store(self._snapshot), tag).version

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Name a version (by default this one).

        Raises `InvalidInput` for a name that is in use or not allowed, and `VersionNotFound` for a version that does
        not exist or is being cleaned up.
        """
        named, references = self._named(reference), refs.writable_reference_store(self._snapshot)
        refs.create_tag(references, tag, named.version, _manifest_size(named), refs.branch_of(named))
        try:
            refs.check_version_is_kept(named)
        except LanceOpsError:
            refs.delete_tag(references, tag)
            raise

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Move a tag to a version (by default this one)."""
        named, references = self._named(reference), refs.writable_reference_store(self._snapshot)
        before = refs.read_tag(references, tag)
        with self._kept(before):  # until it is certain that the tag need not move back
            refs.update_tag(references, tag, named.version, _manifest_size(named), refs.branch_of(named))
            try:
                refs.check_version_is_kept(named)
            except LanceOpsError:
                refs.update_tag(references, tag, before.version, before.manifest_size, before.branch)
                raise

    def delete(self, tag: str) -> None:
        """Remove a tag. Clean-up may then remove its version."""
        refs.delete_tag(refs.writable_reference_store(self._snapshot), tag)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a tag; its version and the time of its last move stay the same."""
        refs.replace_tag_metadata(refs.writable_reference_store(self._snapshot), tag, metadata)

    @contextmanager
    def _kept(self, tag: refs.Tag) -> Iterator[None]:
        """Keep clean-up from removing the version that a tag names during the block, if it is there."""
        with ExitStack() as stack:
            with suppress(VersionNotFound, ReferenceNotFound, CorruptFile, UnsupportedFeature):
                stack.enter_context(refs.pinned(refs.open_branch(self._snapshot, tag.branch, tag.version)))
            yield

    def _named(self, reference: Reference | None) -> Snapshot:
        if isinstance(reference, int):
            return self._snapshot.at(reference, as_listed=True)  # `check_version_is_kept` looks whether it is there
        return self._snapshot if reference is None else open_reference(self._snapshot, reference)


def open_reference(snapshot: Snapshot, reference: Reference) -> Snapshot:
    """Open the version that a reference names; raise `ReferenceNotFound` for an unknown tag or branch."""
    if isinstance(reference, tuple):
        return refs.open_branch(snapshot, *reference)
    if isinstance(reference, str):
        tag = refs.read_tag(refs.reference_store(snapshot), reference)
        return refs.open_branch(snapshot, tag.branch, tag.version)
    return snapshot.at(reference)


def _manifest_size(snapshot: Snapshot) -> int:
    known = snapshot.committer.as_listed(snapshot.version)
    return len(snapshot.committer.read(snapshot.version) if known is None else known)


def _public(tag: refs.Tag) -> Tag:
    return Tag(
        branch=tag.branch,
        version=tag.version,
        created_at=tag.created_at,
        updated_at=tag.updated_at,
        manifest_size=tag.manifest_size,
        metadata=dict(tag.metadata),
    )
