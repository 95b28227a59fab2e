"""`write_dataset`: create, append to or overwrite a dataset, under the reference's names."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from lance_ops.api.arrow_input import reader_of
from lance_ops.api.lance_dataset import LanceDataset
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot.fragment_writer import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, FragmentLimits
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.snapshot.table_schema import table_schema
from lance_ops.snapshot.write import append, check_stable_row_ids, create, create_or_append, overwrite
from lance_ops.transactions import COMMIT_MESSAGE

__all__ = ["write_dataset"]

_MODES = ("create", "append", "overwrite")


def write_dataset(
    data_obj: Any,
    uri: str | PathLike[str] | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int = MAX_BYTES_PER_FILE,
    storage_options: Mapping[str, str] | None = None,
    data_storage_version: str | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
) -> LanceDataset:
    """Write Arrow data and return the dataset at the version made.

    `data_obj` is a table, a record batch, a reader, a pandas data frame, anything with `__arrow_c_stream__`, or an
    iterable of batches (with `schema`). `create` raises `DatasetAlreadyExists` if something is there; `append` and
    `overwrite` create what is not. `max_rows_per_group` matters to the reference's oldest format and is accepted.
    `enable_stable_row_ids` is chosen once, at creation: asking an older table without them for them is refused.
    Blobs may be URIs of other objects only with `allow_external_blob_outside_bases`: nothing here keeps those.

    Raises `SchemaMismatch` naming the field if appended data does not fit; the dataset is then unchanged.
    """
    if mode not in _MODES:
        raise InvalidInput(f"mode {mode!r} is none of {', '.join(_MODES)}")
    if uri is None:
        raise InvalidInput("write_dataset needs a URI")
    target = uri.uri if isinstance(uri, LanceDataset) else fspath(uri)
    if isinstance(uri, LanceDataset) and storage_options is None:
        storage_options = uri.snapshot.storage_options
    if not enable_v2_manifest_paths:
        raise UnsupportedFeature("enable_v2_manifest_paths=False for a new table", target)
    if external_blob_mode != "reference":
        raise UnsupportedFeature(f"external_blob_mode={external_blob_mode!r} (only 'reference')", target)
    reader = reader_of(data_obj, schema)
    limits = FragmentLimits(max_rows_per_file, max_bytes_per_file, external_blobs=allow_external_blob_outside_bases)
    properties = dict(transaction_properties or {})
    if commit_message is not None:
        properties[COMMIT_MESSAGE] = commit_message
    existing = Snapshot.open_if_there(target, storage_options)
    if existing is not None and enable_stable_row_ids and mode != "create":
        check_stable_row_ids(existing)
    if existing is None:
        version = FileVersion.parse(data_storage_version or "stable")
        make = create if mode == "create" else create_or_append
        made = make(
            target,
            storage_options,
            reader,
            table_schema(reader.schema, version),
            version,
            limits,
            properties,
            stable_row_ids=enable_stable_row_ids,
        )
    elif mode == "create":
        raise DatasetAlreadyExists(f"{existing.uri} is a dataset already: pass mode='append' or mode='overwrite'")
    elif mode == "append":
        _check_append_version(existing, data_storage_version)
        made = append(existing, reader, limits, properties)
    else:
        version = FileVersion.parse(data_storage_version) if data_storage_version else existing.file_version
        made = overwrite(existing, reader, table_schema(reader.schema, version), version, limits, properties)
    return LanceDataset(made)


def _check_append_version(snapshot: Snapshot, asked: str | None) -> None:
    if asked is not None and FileVersion.parse(asked) is not snapshot.file_version:
        raise UnsupportedFeature(
            f"appending files of version {asked} to a table of {snapshot.file_version.value}", snapshot.uri
        )
