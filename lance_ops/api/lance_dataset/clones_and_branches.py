"""The methods of `LanceDataset` for clones, branches and base paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Self, TypedDict

from lance_ops import refs, transactions, writing
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.base_paths import DatasetBasePath, declared_bases
from lance_ops.api.lance_dataset.tags import Reference, open_reference
from lance_ops.api.version_handle import Handle
from lance_ops.committers import with_allowed_bases
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot

__all__ = ["Branch", "Branches", "Copies"]


class Branch(TypedDict):
    """A branch as `list` returns it."""

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str]


_Listed = list[tuple[str, Branch]]  # inside the class, `list` is the method


@check_public_methods
class Branches:
    """The branches of one dataset."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, Branch]:
        """Return every branch by name."""
        return {
            name: _public(branch) for name, branch in refs.list_branches(refs.reference_store(self._snapshot)).items()
        }

    def list_ordered(self, order: str | None = None) -> _Listed:
        """Return (name, branch) pairs, sorted by the version that each branch began with, newest first unless `order`
        is "asc".
        """
        return sorted(self.list().items(), key=lambda item: item[1]["parent_version"], reverse=order != "asc")

    def delete(self, branch: str) -> None:
        """Remove a branch with its files; raise `InvalidInput` if other branches began on it or tags name it."""
        refs.delete_branch(self._snapshot, branch)

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a branch."""
        refs.replace_branch_metadata(refs.writable_reference_store(self._snapshot), branch, metadata)


class Copies(Handle):
    """Clones, branches, and base paths."""

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Return the base paths of this version by id."""
        return {base.id: DatasetBasePath.of(base) for base in self._snapshot.manifest.base_paths}

    def add_bases(
        self, new_bases: Sequence[DatasetBasePath], transaction_properties: Mapping[str, str] | None = None
    ) -> Self:
        """Declare more base paths; raise `InvalidInput` for an id, name or path that is in use.

        Raises `IncompatibleTransaction` when a concurrent commit declared one of them.
        """
        operation = transactions.UpdateBases(declared_bases(new_bases, self._snapshot.storage_options))
        made = writing.commit_operation(self._snapshot, operation, properties=transaction_properties)
        options = with_allowed_bases(made.uri, made.storage_options, [base.path for base in new_bases])
        self._committed(replace(made, storage_options=options or {}))
        return self

    @property
    def branches(self) -> Branches:
        """The branches of the dataset."""
        return Branches(self._snapshot)

    def create_branch(
        self, branch: str, reference: Reference | None = None, storage_options: Mapping[str, str] | None = None
    ) -> Self:
        """Create a branch that begins with a version (by default this one), and return a handle on it.

        Raises `InvalidInput` for a name that is taken or not allowed.
        """
        source = self._snapshot if reference is None else open_reference(self._snapshot, reference)
        return self.of(refs.create_branch(source, branch, storage_options), self._default_scan_options)

    def shallow_clone(
        self,
        target_path: str | PathLike[str],
        reference: Reference,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a dataset at `target_path` that reads the files of a version of this one, and return a handle on it.

        Tag the version so that clean-up keeps its files. Raises `DatasetAlreadyExists`.
        """
        source = open_reference(self._snapshot, reference)
        return self.of(refs.shallow_clone(source, fspath(target_path), storage_options))

    def deep_clone(
        self,
        target_path: str | PathLike[str],
        reference: Reference,
        storage_options: Mapping[str, str] | None = None,
        *,
        runner: Runner | None = None,
    ) -> Self:
        """Copy the files of a version into a new dataset at `target_path`, and return a handle on it.

        Tasks of the runner copy the files, by default in threads. Raises `DatasetAlreadyExists`.
        """
        source = open_reference(self._snapshot, reference)
        return self.of(refs.deep_clone(source, fspath(target_path), storage_options, runner))


def _public(branch: refs.Branch) -> Branch:
    return Branch(
        parent_branch=branch.parent_branch,
        branch_identifier=[*branch.identifier],
        parent_version=branch.parent_version,
        create_at=branch.create_at,
        manifest_size=branch.manifest_size,
        metadata=dict(branch.metadata),
    )
