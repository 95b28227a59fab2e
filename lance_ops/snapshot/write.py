"""Create, append to and overwrite a dataset from a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from lance_ops.committers import open_root
from lance_ops.core.errors import CommitStateUnknown, DatasetAlreadyExists, InvalidInput, SchemaMismatch
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot.commit import commit_operation, create_dataset, delete_paths, removing_on_failure
from lance_ops.snapshot.fragment_writer import FragmentLimits, data_paths, write_fragments, write_new_table
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.transactions import Append, Overwrite

__all__ = ["append", "check_stable_row_ids", "create", "create_or_append", "overwrite"]

Batches = Iterable[pa.RecordBatch | pa.Table]


def create(
    uri: str,
    storage_options: Mapping[str, str] | None,
    batches: Batches,
    schema: Schema,
    version: FileVersion,
    limits: FragmentLimits,
    properties: Mapping[str, str],
    *,
    stable_row_ids: bool = False,
) -> Snapshot:
    """Write version 1; raise `DatasetAlreadyExists` if somebody else does so meanwhile."""
    root = open_root(uri, storage_options)
    schema, fragments = write_new_table(root.store, batches, schema, version, limits)
    return create_dataset(
        root,
        schema,
        fragments,
        version,
        stable_row_ids=stable_row_ids,
        properties=properties,
        own_files=data_paths(fragments),
    )


def create_or_append(
    uri: str,
    storage_options: Mapping[str, str] | None,
    batches: Batches,
    schema: Schema,
    version: FileVersion,
    limits: FragmentLimits,
    properties: Mapping[str, str],
    *,
    stable_row_ids: bool = False,
) -> Snapshot:
    """Write version 1 or, if somebody else creates the dataset meanwhile, append the same files to theirs.

    Raises `SchemaMismatch` if theirs has another schema, `InvalidInput` if it lacks the stable row ids asked for.
    """
    root = open_root(uri, storage_options)
    schema, fragments = write_new_table(root.store, batches, schema, version, limits)
    own_files = data_paths(fragments)
    try:
        return create_dataset(
            root,
            schema,
            fragments,
            version,
            stable_row_ids=stable_row_ids,
            properties=properties,
        )
    except CommitStateUnknown:
        raise
    except DatasetAlreadyExists:
        pass
    except Exception:
        delete_paths(root.store, own_files)
        raise
    with removing_on_failure(root.store, own_files):
        theirs = Snapshot.open(uri, storage_options=storage_options)
        if theirs.schema.fields != schema.fields or theirs.file_version is not version:
            raise SchemaMismatch(
                f"{theirs.uri} was created meanwhile with another schema or file version: append again"
            )
        if stable_row_ids:
            check_stable_row_ids(theirs)
    return commit_operation(theirs, Append(fragments), properties=properties, own_files=own_files)


def check_stable_row_ids(snapshot: Snapshot) -> None:
    """Raise `InvalidInput` unless the table has stable row ids, which only its creation can give it."""
    if not snapshot.manifest.uses_stable_row_ids:
        raise InvalidInput(
            f"{snapshot.uri} was created without stable row ids, and they cannot be added: copy it into a new dataset"
        )


def append(snapshot: Snapshot, batches: Batches, limits: FragmentLimits, properties: Mapping[str, str]) -> Snapshot:
    """Add rows after those there are."""
    fragments = tuple(write_fragments(snapshot.store, batches, snapshot.schema, snapshot.file_version, limits))
    return commit_operation(snapshot, Append(fragments), properties=properties, own_files=data_paths(fragments))


def overwrite(
    snapshot: Snapshot,
    batches: Batches,
    schema: Schema,
    version: FileVersion,
    limits: FragmentLimits,
    properties: Mapping[str, str],
) -> Snapshot:
    """Replace all rows and the schema; indices go, old versions stay."""
    schema, fragments = write_new_table(snapshot.store, batches, schema, version, limits)
    return commit_operation(
        snapshot,
        Overwrite(fragments, schema),
        properties=properties,
        own_files=data_paths(fragments),
        file_version=version,
    )
