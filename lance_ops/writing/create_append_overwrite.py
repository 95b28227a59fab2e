"""Create, append to and overwrite a dataset from a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import pyarrow as pa

from lance_ops.committers import CommitLock, open_root, with_commit_lock
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, SchemaMismatch
from lance_ops.core.file_names import ManifestNaming
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot
from lance_ops.table import BasePath
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions import Append, Overwrite
from lance_ops.writing.commit import commit_operation, create_dataset
from lance_ops.writing.file_version_choice import choose_file_version
from lance_ops.writing.fragment_limits import FragmentLimits
from lance_ops.writing.fragment_writer import write_fragments, write_new_table
from lance_ops.writing.write_targets import AT_ROOT, WriteTargets

__all__ = ["NewTable", "append", "check_stable_row_ids", "create", "overwrite"]

Batches = Iterable[pa.RecordBatch | pa.Table]


@dataclass(frozen=True)
class NewTable:
    """Properties that are fixed when a table is created."""

    schema: Schema
    file_version: FileVersion
    stable_row_ids: bool = False
    base_paths: tuple[BasePath, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    manifest_naming: ManifestNaming = ManifestNaming.V2


def create(
    uri: str,
    storage_options: Mapping[str, str] | None,
    table: NewTable,
    batches: Batches,
    limits: FragmentLimits,
    properties: Mapping[str, str],
    base_ids: tuple[int | None, ...] = AT_ROOT,
    *,
    mode: str = "create",
    commit_lock: CommitLock | None = None,
) -> Snapshot:
    """Write version 1, holding `commit_lock` during the commit.

    `mode` says what to do if another writer creates the dataset meanwhile.
    Then `create` raises `DatasetAlreadyExists`; `append` and `overwrite` commit the same files to the other dataset.
    The data files go to the base paths `base_ids` in turn, as in the functions below.

    Raises `SchemaMismatch` if the rows would be appended to another schema, and `InvalidInput` if the other dataset
    lacks the stable row ids or the base paths asked for.
    """
    root = with_commit_lock(open_root(uri, storage_options, new_naming=table.manifest_naming), commit_lock)
    targets = WriteTargets(FileLocations(root.store, table.base_paths, root.storage_options), base_ids)
    schema, pending = write_new_table(root.store, batches, table.schema, table.file_version, limits, targets)
    try:
        return create_dataset(
            root,
            schema,
            pending,
            table.file_version,
            stable_row_ids=table.stable_row_ids,
            base_paths=table.base_paths,
            config=table.config,
            properties=properties,
            keep_if_there=mode != "create",
        )
    except DatasetAlreadyExists:
        if mode == "create":
            raise
    with pending.abandoned_on_failure():
        theirs = Snapshot.open(uri, storage_options=storage_options).with_commit_lock(commit_lock)
        _check_takes_files(theirs, table, schema, mode)
    return commit_operation(
        theirs,
        Append(pending.fragments) if mode == "append" else Overwrite(pending.fragments, schema),
        properties=properties,
        pending=pending,
        file_version=table.file_version,
    )


def check_stable_row_ids(snapshot: Snapshot) -> None:
    """Raise `InvalidInput` if the table was created without stable row ids; they cannot be added later."""
    if not snapshot.manifest.uses_stable_row_ids:
        raise InvalidInput(
            f"{snapshot.uri} was created without stable row ids, and they cannot be added: copy it into a new dataset"
        )


def append(
    snapshot: Snapshot,
    batches: Batches,
    limits: FragmentLimits,
    properties: Mapping[str, str],
    base_ids: tuple[int | None, ...] = AT_ROOT,
    file_version: str | None = None,
) -> Snapshot:
    """Add rows as new fragments; `file_version` is as for `choose_file_version`."""
    targets, version = WriteTargets(snapshot.file_locations, base_ids), choose_file_version(snapshot, file_version)
    pending = write_fragments(snapshot.store, batches, snapshot.schema, version, limits, targets, durable=False)
    return commit_operation(snapshot, Append(pending.fragments), properties=properties, pending=pending)


def overwrite(
    snapshot: Snapshot,
    batches: Batches,
    schema: Schema,
    version: FileVersion,
    limits: FragmentLimits,
    properties: Mapping[str, str],
    base_ids: tuple[int | None, ...] = AT_ROOT,
) -> Snapshot:
    """Commit a version with these rows and this schema alone. It has no indices; older versions stay."""
    targets = WriteTargets(snapshot.file_locations, base_ids)
    schema, pending = write_new_table(snapshot.store, batches, schema, version, limits, targets)
    return commit_operation(
        snapshot,
        Overwrite(pending.fragments, schema),
        properties=properties,
        pending=pending,
        file_version=version,
    )


def _check_takes_files(theirs: Snapshot, table: NewTable, schema: Schema, mode: str) -> None:
    """Raise unless files that were written for `table` fit the dataset that another writer created meanwhile."""
    is_alike = theirs.schema.fields == schema.fields and theirs.file_version is table.file_version
    if mode == "append" and not is_alike:
        raise SchemaMismatch(f"{theirs.uri} was created meanwhile with another schema or file version: append again")
    if not set(table.base_paths) <= set(theirs.manifest.base_paths):
        raise InvalidInput(f"{theirs.uri} was created meanwhile with other base paths: write again")
    if table.stable_row_ids:
        check_stable_row_ids(theirs)
