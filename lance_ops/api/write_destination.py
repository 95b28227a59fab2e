"""Resolve the dataset that a caller writes to: given as a URI or a handle, existing or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, TypeAlias

import pyarrow as pa

from lance_ops import writing
from lance_ops.api.base_paths import BaseStoreParams, DatasetBasePath, with_params
from lance_ops.api.version_handle import Handle
from lance_ops.committers import CommitLock, open_root
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, WrongType
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot

__all__ = ["Destination", "check_mode", "existing_dataset", "lock_of", "place_of", "write_onto"]

Destination: TypeAlias = str | PathLike[str] | Handle

_MODES = ("create", "append", "overwrite")


def place_of(destination: Destination, storage_options: Mapping[str, str] | None) -> tuple[str, Mapping[str, str]]:
    """Return the dataset's URI and the storage options to use; a handle's own options are the default."""
    if isinstance(destination, Handle):
        return destination.uri, destination.snapshot.storage_options if storage_options is None else storage_options
    return fspath(destination), storage_options or {}


def lock_of(destination: Destination | None, given: Any) -> CommitLock | None:
    """Return the lock that commits hold: the given one, or the handle's. Raise `WrongType` for what is no function."""
    if not given:
        return destination.snapshot.commit_lock if isinstance(destination, Handle) else None
    if not callable(given):
        raise WrongType(f"commit_lock is a function of the version, not a {type(given).__name__}")
    lock: CommitLock = given
    return lock


def check_mode(mode: str, there: str | None = None) -> None:
    """Raise `InvalidInput` for an unknown mode, `DatasetAlreadyExists` for mode `create` if the dataset is `there`."""
    if mode not in _MODES:
        raise InvalidInput(f"mode {mode!r} is none of {', '.join(_MODES)}")
    if mode == "create" and there is not None:
        raise DatasetAlreadyExists(f"{there} is a dataset already: pass mode='append' or mode='overwrite'")


def existing_dataset(
    uri: str,
    storage_options: Mapping[str, str],
    mode: str,
    initial_bases: Sequence[DatasetBasePath] | None,
    base_store_params: BaseStoreParams | None,
) -> Snapshot | None:
    """Return the existing dataset with the options of its base paths, or None.

    Raises `DatasetAlreadyExists` if the caller asked to create it, and `InvalidInput` if the caller declares base
    paths, which only a creation may do.
    """
    if mode == "create" and open_root(uri, storage_options).committer.finds_nothing():
        return None
    found = Snapshot.open_if_exists(uri, storage_options)
    if found is None:
        return None
    check_mode(mode, found.uri)
    if initial_bases:
        raise InvalidInput(f"{found.uri} is there already: declare more base paths with add_bases")
    return with_params(found, base_store_params)


def write_onto(
    snapshot: Snapshot,
    reader: pa.RecordBatchReader,
    mode: str,
    limits: writing.FragmentLimits,
    properties: Mapping[str, str],
    target_bases: Sequence[str] | None,
    target_all_bases: bool | None,
    data_storage_version: str | None,
) -> Snapshot:
    """Append the rows, or overwrite the table with them; return the version made."""
    base_ids = writing.choose_bases(snapshot.manifest.base_paths, target_bases, target_all_bases, root_uri=snapshot.uri)
    if mode == "append":
        return writing.append(snapshot, reader, limits, properties, base_ids, data_storage_version)
    version = FileVersion.parse(data_storage_version) if data_storage_version else snapshot.file_version
    schema = writing.table_schema(reader.schema, version)
    return writing.overwrite(snapshot, reader, schema, version, limits, properties, base_ids)
