"""Read and write the file of a branch: `_refs/branches/{name}.json`, with a slash in the name written as `%2F`.

    parentBranch     the branch it came from, null for the main branch   parentVersion   the version it began with
    identifier       {"version_mapping": [[version, id], ...]}           createAt        seconds since 1970
    manifestSize     bytes                                               metadata        strings by key

The mapping leads from the main branch to this one. Each step is a branch on the way: the version it began with, and its
id of 32 hex digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from lance_ops.core.errors import InvalidInput
from lance_ops.core.file_names import BRANCHES_DIR, MAIN_BRANCH, check_branch_name
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

__all__ = ["Branch", "branch_path", "create_branch_file", "list_branches", "read_branch", "replace_branch_metadata"]

_KIND = "branch"


@dataclass(frozen=True)
class Branch:
    """The content of a branch's file."""

    parent_branch: str | None
    identifier: tuple[tuple[int, str], ...]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the bytes of the branch's file."""
        content = {
            "parentBranch": self.parent_branch,
            "identifier": {"version_mapping": [list(step) for step in self.identifier]},
            "parentVersion": self.parent_version,
            "createAt": self.create_at,
            "manifestSize": self.manifest_size,
            "metadata": dict(self.metadata),
        }
        return encode_reference(content)

    @classmethod
    def decode(cls, data: bytes, path: str) -> Branch:
        """Decode a branch's file; raise `CorruptFile` with its path if it is not one."""
        return decode_reference(data, path, _KIND, cls._of)

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Branch:
        steps = (content.get("identifier") or {}).get("version_mapping") or []
        parent = content.get("parentBranch")
        return cls(
            parent_branch=None if parent in (None, MAIN_BRANCH) else check_branch_name(parent),
            identifier=tuple((int(version), str(digits)) for version, digits in steps),
            parent_version=int(content["parentVersion"]),
            create_at=int(content.get("createAt") or 0),
            manifest_size=int(content.get("manifestSize") or 0),
            metadata=dict(content.get("metadata") or {}),
        )


def branch_path(name: str) -> str:
    """Return the path of a branch's file; raise `InvalidInput` for a name that is not allowed."""
    return f"{BRANCHES_DIR}/{check_branch_name(name).replace('/', '%2F')}{REFERENCE_SUFFIX}"


def list_branches(store: Store) -> dict[str, Branch]:
    """Return every branch by name.

    Raises `InvalidInput` for one whose name lies in the directories of another: their files could not be told apart.
    """
    names = sorted(stem.replace("%2F", "/") for stem in list_stems(store, BRANCHES_DIR))
    return read_references(store, names, read_branch)


def read_branch(store: Store, name: str) -> Branch:
    """Return a branch; raise `ReferenceNotFound` if no branch has that name."""
    path = branch_path(name)
    return Branch.decode(read_reference(store, path, _KIND, name), store.uri_of(path))


def create_branch_file(store: Store, name: str, branch: Branch) -> None:
    """Write a new branch's file; raise `InvalidInput` if the name is taken."""
    if not create_reference(store, branch_path(name), branch.encode()):
        raise InvalidInput(f"branch {name!r} exists already")


def replace_branch_metadata(store: Store, name: str, metadata: Mapping[str, str]) -> Branch:
    """Replace a branch's metadata.

    Raises `ReferenceNotFound` if no branch has that name, `InvalidInput` for metadata that are not strings.
    """
    branch = replace(read_branch(store, name), metadata=check_metadata(metadata))
    store.put(branch_path(name), branch.encode())
    return branch
