"""`write_fragments`: write rows as fragments for a later commit by the caller, under the reference's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_ops import transactions, writing
from lance_ops.api import transactions as public
from lance_ops.api.argument_checks import check_arguments
from lance_ops.api.arrow_input import reader_of
from lance_ops.api.base_paths import (
    BaseStoreParams,
    DatasetBasePath,
    declared_bases,
    with_base_store_params,
)
from lance_ops.api.file_options import fragment_limits, storage_version
from lance_ops.api.write_destination import Destination, check_mode, existing_dataset, place_of
from lance_ops.committers import open_root, with_allowed_bases
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Session, Snapshot
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations

__all__ = ["write_fragments"]


@check_arguments
def write_fragments(
    data: Any,
    dataset_uri: Destination,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    max_rows_per_file: int = writing.MAX_ROWS_PER_FILE,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int = writing.MAX_BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: writing.FragmentWriteProgress | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    base_store_params: BaseStoreParams | None = None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    session: Session | None = None,
) -> list[Fragment] | public.Transaction:
    """Write data as fragments that no version names yet; return them, or a transaction for `LanceDataset.commit`.

    Mode `append` uses the schema of the dataset, `overwrite` that of the data. If no dataset exists, each mode acts as
    `create`, and the transaction creates the dataset. The files are durable and belong to the caller: if the caller
    does not commit, only clean-up removes them. `max_rows_per_group` and `enable_stable_row_ids` have no effect, as in
    the reference: the commit gives rows their ids. Nor has `session`: what is written is not read again. The other
    arguments are those of `write_dataset`.

    Raises `DatasetAlreadyExists`, and `SchemaMismatch` naming the field that does not fit.
    """
    check_mode(mode)
    uri, storage_options = place_of(dataset_uri, storage_options)
    reader = reader_of(data, schema)
    limits = fragment_limits(
        max_rows_per_file,
        max_bytes_per_file,
        external_blob_mode,
        allow_external_blob_outside_bases,
        data_cache_bytes=data_cache_bytes,
        max_page_bytes=max_page_bytes,
        progress=progress,
    )
    data_storage_version = storage_version(data_storage_version, use_legacy_format)
    existing = existing_dataset(uri, storage_options, mode, initial_bases, base_store_params)
    if existing is not None:
        targets = writing.WriteTargets(
            existing.file_locations,
            writing.choose_bases(existing.manifest.base_paths, target_bases, target_all_bases, root_uri=existing.uri),
        )
        operation = _for_existing(existing, reader, mode, data_storage_version, limits, targets)
    else:
        bases = writing.number_bases(declared_bases(initial_bases or (), storage_options))
        options = with_base_store_params(uri, storage_options, bases, base_store_params)
        root = open_root(uri, with_allowed_bases(uri, options, [base.path for base in bases]))
        targets = writing.WriteTargets(
            FileLocations(root.store, bases, root.storage_options),
            writing.choose_bases(bases, target_bases, target_all_bases, root_uri=root.store.uri),
        )
        version = FileVersion.parse(data_storage_version or "stable")
        operation = replace(_new_table(root.store, reader, version, limits, targets), initial_bases=bases)
    if not return_transaction:
        return list(operation.fragments)
    return public.Transaction(existing.version if existing is not None else 0, public.from_internal(operation))


def _for_existing(
    existing: Snapshot,
    reader: pa.RecordBatchReader,
    mode: str,
    asked_version: str | None,
    limits: writing.FragmentLimits,
    targets: writing.WriteTargets,
) -> transactions.Append | transactions.Overwrite:
    if mode == "append":
        version, schema = writing.choose_file_version(existing, asked_version), existing.schema
        pending = writing.write_fragments(existing.store, reader, schema, version, limits, targets)
        return transactions.Append(pending.fragments)
    version = FileVersion.parse(asked_version) if asked_version else existing.file_version
    return _new_table(existing.store, reader, version, limits, targets)


def _new_table(
    store: Store,
    reader: pa.RecordBatchReader,
    version: FileVersion,
    limits: writing.FragmentLimits,
    targets: writing.WriteTargets,
) -> transactions.Overwrite:
    wanted = writing.table_schema(reader.schema, version)
    schema, pending = writing.write_new_table(store, reader, wanted, version, limits, targets)
    pending.make_durable(store)
    return transactions.Overwrite(pending.fragments, schema)
