"""Create, append to or overwrite a dataset, as an opened version; `write_dataset` returns a handle on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from lance_ops import transactions, writing
from lance_ops.api.argument_checks import check_arguments
from lance_ops.api.arrow_input import reader_of
from lance_ops.api.base_paths import (
    BaseStoreParams,
    DatasetBasePath,
    declared_bases,
    with_base_store_params,
)
from lance_ops.api.file_options import fragment_limits, storage_version
from lance_ops.api.version_handle import Handle
from lance_ops.api.write_destination import check_mode, existing_dataset, lock_of, place_of, write_onto
from lance_ops.committers import with_allowed_bases
from lance_ops.core.errors import InvalidInput
from lance_ops.core.file_names import ManifestNaming
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance import cleanup
from lance_ops.snapshot import Session, Snapshot

__all__ = ["write_version"]


@check_arguments
def write_version(
    data_obj: Any,
    uri: str | PathLike[str] | Handle | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = writing.MAX_ROWS_PER_FILE,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int = writing.MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    commit_lock: object | None = None,
    progress: writing.FragmentWriteProgress | None = None,
    storage_options: Mapping[str, str] | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: cleanup.AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    base_store_params: BaseStoreParams | None = None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    session: Session | None = None,
) -> Snapshot:
    """Write Arrow data and return the dataset at the version made.

    `data_obj` is a table, a record batch, a reader, a dataset or scanner (also pyarrow's and the reference's), a data
    frame of pandas or Polars, a dataset of Hugging Face, a dictionary of columns, a list of dictionaries or of models
    of pydantic, anything with `__arrow_c_stream__`, or an iterable of batches (with `schema`). All of it is cast to
    `schema` if that is given.

    Mode `create` raises `DatasetAlreadyExists` if the dataset exists; `append` and `overwrite` create a missing one.
    `max_rows_per_group` matters only to the reference's oldest format and is accepted.

    `enable_v2_manifest_paths`, `enable_stable_row_ids`, `auto_cleanup_options` (see `lance_ops.maintenance.cleanup`)
    and `initial_bases` apply to a creation. Stable row ids for an existing table without them, and base paths for any
    existing table, are refused. Appended files have the table's file version, or the 2.x version that
    `data_storage_version` states. New files go in turn to the `target_bases`, named by name or path, or to all base
    paths with `target_all_bases` (True includes the root).

    A page collects 8 MiB of a column, or an even share of `data_cache_bytes`, and at most `max_page_bytes`. `progress`
    is called for each fragment. `commit_lock` is as for `lance_ops.dataset`.

    A blob may be the URI of another object if `external_blob_mode` is "ingest", which copies its bytes. Otherwise it
    needs `allow_external_blob_outside_bases`, because this library does not protect that object.

    The dataset returned has the given `session`, or that of the handle that was given as `uri`.

    Raises `SchemaMismatch` naming the field if appended data does not fit; the dataset is then unchanged.
    """
    check_mode(mode)
    if uri is None:
        raise InvalidInput("write_dataset needs a URI")
    target, storage_options = place_of(uri, storage_options)
    reader = reader_of(data_obj, schema)
    lock = lock_of(uri, commit_lock)
    if session is None and isinstance(uri, Handle):
        session = uri.snapshot.session
    limits = fragment_limits(
        max_rows_per_file,
        max_bytes_per_file,
        external_blob_mode,
        allow_external_blob_outside_bases,
        data_cache_bytes=data_cache_bytes,
        max_page_bytes=max_page_bytes,
        blob_pack_file_size_threshold=blob_pack_file_size_threshold,
        progress=progress,
    )
    data_storage_version = storage_version(data_storage_version, use_legacy_format)
    properties = transactions.with_commit_message(transaction_properties, commit_message)
    existing = existing_dataset(target, storage_options, mode, initial_bases, base_store_params)
    if existing is None:
        version = FileVersion.parse(data_storage_version or "stable")
        bases = writing.number_bases(declared_bases(initial_bases or (), storage_options))
        table = writing.NewTable(
            writing.table_schema(reader.schema, version),
            version,
            enable_stable_row_ids,
            bases,
            {} if auto_cleanup_options is None else cleanup.auto_cleanup_config(**auto_cleanup_options),
            ManifestNaming.V2 if enable_v2_manifest_paths else ManifestNaming.V1,
        )
        options = with_base_store_params(target, storage_options, bases, base_store_params)
        options = with_allowed_bases(target, options, [base.path for base in bases])
        base_ids = writing.choose_bases(bases, target_bases, target_all_bases, root_uri=target)
        made = writing.create(target, options, table, reader, limits, properties, base_ids, mode=mode, commit_lock=lock)
        return made.with_session(session)
    if enable_stable_row_ids:
        writing.check_stable_row_ids(existing)
    existing = existing.with_commit_lock(lock).with_session(session)
    made = write_onto(existing, reader, mode, limits, properties, target_bases, target_all_bases, data_storage_version)
    if made.has_auto_cleanup:
        cleanup.clean_up_if_due(existing.version, made)
    return made
