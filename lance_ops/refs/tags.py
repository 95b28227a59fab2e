"""Read and write tags: names for versions, which clean-up keeps.

A tag is a small JSON file, `_refs/tags/{name}.json`, with the keys `branch` (null for the main branch), `version`,
`createdAt` and `updatedAt` (RFC 3339), `manifestSize` in bytes, and `metadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any

from lance_ops.core.errors import InvalidInput
from lance_ops.core.file_names import MAIN_BRANCH, TAGS_DIR, check_branch_name, check_reference_name
from lance_ops.core.records import dataclass
from lance_ops.refs.reference_file import (
    REFERENCE_SUFFIX,
    check_metadata,
    create_reference,
    decode_reference,
    encode_reference,
    list_stems,
    read_reference,
    read_references,
)
from lance_ops.store import Store

__all__ = [
    "Tag",
    "create_tag",
    "delete_tag",
    "list_tag_names",
    "list_tags",
    "read_tag",
    "replace_tag_metadata",
    "update_tag",
]

_KIND = "tag"


@dataclass(frozen=True)
class Tag:
    """A named version. Files of older writers have only the version and the manifest's size."""

    version: int
    manifest_size: int
    branch: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the bytes of the tag's file."""
        content = {
            "branch": self.branch,
            "version": self.version,
            "createdAt": _format(self.created_at),
            "updatedAt": _format(self.updated_at),
            "manifestSize": self.manifest_size,
            "metadata": dict(self.metadata),
        }
        return encode_reference(content)

    @classmethod
    def decode(cls, data: bytes, path: str) -> Tag:
        """Decode a tag's file; raise `CorruptFile` with its path if it is not one."""
        return decode_reference(data, path, _KIND, cls._of)

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Tag:
        branch = content.get("branch")
        return cls(
            version=int(content["version"]),
            manifest_size=int(content.get("manifestSize", 0)),
            branch=None if branch in (None, MAIN_BRANCH) else check_branch_name(branch),
            created_at=_parse(content.get("createdAt")),
            updated_at=_parse(content.get("updatedAt")),
            metadata=dict(content.get("metadata") or {}),
        )


def list_tag_names(store: Store) -> list[str]:
    """Return the sorted names of all tags, without reading them."""
    return list_stems(store, TAGS_DIR)


def list_tags(store: Store) -> dict[str, Tag]:
    """Return every tag by name."""
    return read_references(store, list_tag_names(store), read_tag)


def read_tag(store: Store, name: str) -> Tag:
    """Return a tag; raise `ReferenceNotFound` if no tag has that name."""
    path = _path(name)
    return Tag.decode(read_reference(store, path, _KIND, name), store.uri_of(path))


def create_tag(store: Store, name: str, version: int, manifest_size: int, branch: str | None = None) -> Tag:
    """Name a version of a branch (None: the main branch); raise `InvalidInput` if the name is taken."""
    now = datetime.now(UTC)
    tag = Tag(version, manifest_size, branch, created_at=now, updated_at=now)
    if not create_reference(store, _path(name), tag.encode()):
        raise InvalidInput(f"tag {name!r} exists already: update it to move it")
    return tag


def update_tag(store: Store, name: str, version: int, manifest_size: int, branch: str | None = None) -> Tag:
    """Move a tag to another version; raise `ReferenceNotFound` if no tag has that name."""
    now = datetime.now(UTC)
    tag = replace(read_tag(store, name), version=version, manifest_size=manifest_size, branch=branch, updated_at=now)
    store.put(_path(name), tag.encode())
    return tag


def replace_tag_metadata(store: Store, name: str, metadata: Mapping[str, str]) -> Tag:
    """Replace a tag's metadata, but not its time of update; raise `ReferenceNotFound` if no tag has that name."""
    tag = replace(read_tag(store, name), metadata=check_metadata(metadata))
    store.put(_path(name), tag.encode())
    return tag


def delete_tag(store: Store, name: str) -> None:
    """Remove a tag; raise `ReferenceNotFound` if no tag has that name."""
    read_tag(store, name)
    store.delete(_path(name))


def _path(name: str) -> str:
    return f"{TAGS_DIR}/{check_reference_name(name)}{REFERENCE_SUFFIX}"


def _format(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _parse(text: str | None) -> datetime | None:
    if text is None:
        return None
    whole, dot, rest = text.partition(".")
    digits = rest.rstrip("Z")[:6] if dot else ""  # a datetime has no nanoseconds
    moment = datetime.fromisoformat(whole.rstrip("Z"))
    return moment.replace(microsecond=int(digits.ljust(6, "0") or 0), tzinfo=UTC)
