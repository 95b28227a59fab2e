"""Read the rows that a verb is given as raw files or as a dataset (`….lance`), and tell whether they have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_ops.api import LanceDataset, dataset
from lance_ops.changing.merge_insert import check_key_casts, check_key_values
from lance_ops.committers import MANIFEST_STORE_OPTION
from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.maintenance.ingest import (
    ExtraColumns,
    RawReader,
    RowFitting,
    found_file,
    is_text_file,
    plain_schema,
    unified_raw_schema,
)
from lance_ops.verbs.contract import AbsentTable, Execution, Target, Verb
from lance_ops.verbs.imported_functions import function_token
from lance_ops.writing import conform_present_columns, conform_to_schema

__all__ = [
    "check_key_casts_of_file",
    "distinct_keys",
    "first_rows",
    "fit_keys",
    "is_dataset",
    "key_names",
    "no_keys",
    "open_source",
    "source_bytes",
    "source_rows",
    "source_tokens",
    "version_id",
]


def is_dataset(source: str) -> bool:
    """Return whether a source is a dataset, by its name."""
    return source.rstrip("/").endswith(".lance")


def open_source(data: LanceDataset, source: str) -> LanceDataset:
    """Open a dataset that is a source, with the options of `data`."""
    options = {key: value for key, value in data.snapshot.storage_options.items() if key != MANIFEST_STORE_OPTION}
    return dataset(source, storage_options=options)


def source_rows(data: LanceDataset, source: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a raw file, in the types of the table `data`, or of a dataset, in its own types.

    `columns` chooses some; of those, a file may lack one. Without it, a file has no column that the table lacks. A
    dataset is opened with the options of `data`. Raises `RawFileRefused` for a file that cannot be read, and
    `SchemaMismatch` for columns and values that do not fit the table.
    """
    if is_dataset(source):
        for batch in open_source(data, source).to_batches(None if columns is None else list(columns)):
            yield pa.Table.from_batches([batch])
        return
    table = plain_schema(data.snapshot.schema)
    if columns is not None:
        table = pa.schema([table.field(name) for name in columns])
    fitting = RowFitting(table, extra=ExtraColumns.REFUSE if columns is None else ExtraColumns.IGNORE)
    with RawReader({}) as reader:
        for batch in fitting.rows(found_file(source, {}), reader):
            yield conform_present_columns(pa.Table.from_batches([batch]), table)


def first_rows(data: LanceDataset, source: str) -> pa.Table:
    """Return the first rows of a source, as `source_rows` yields them; an empty table if it has none."""
    return next((rows for rows in source_rows(data, source) if rows.num_rows), pa.table({}))


def key_names(data: LanceDataset, on: Sequence[str]) -> list[str]:
    """Return the columns of a key as the table spells them.

    Raises `InvalidInput` for one that the table lacks, and `UnsupportedFeature` for one in a struct.
    """
    for name in on:
        data.snapshot.schema.field(name)
        if name not in data.schema.names:
            raise UnsupportedFeature("a key in a struct", f"column {name!r}")
    return list(on)


def no_keys(data: LanceDataset, on: Sequence[str]) -> pa.Table:
    """Return a table without rows of the columns of a key, in the types of the table."""
    return pa.schema([data.schema.field(name) for name in key_names(data, on)]).empty_table()


def distinct_keys(keys: pa.Table) -> pa.Table:
    """Return each key of a table of keys once."""
    return keys.group_by(keys.schema.names).aggregate([]).select(keys.schema.names)


def check_key_casts_of_file(data: LanceDataset, source: str, on: Sequence[str]) -> None:
    """Raise `SchemaMismatch` for a key of a raw file that is stored in a type whose cast to the table's may change it.

    It does not look at a dataset, because `fit_keys` checks the values, or at text, which is read in the table's types.
    """
    if not is_dataset(source) and not is_text_file(source):
        given = unified_raw_schema([found_file(source, {})], {})
        check_key_casts(given, on, data.snapshot.schema.to_arrow_storage())


def fit_keys(data: LanceDataset, source: str, on: Sequence[str], rows: pa.Table) -> pa.Table:
    """Return the key columns of rows of a source, in the types of the table.

    Raises `SchemaMismatch` for a column that they lack, and for values that do not fit.
    """
    lacking = next((name for name in on if name not in rows.schema.names), None)
    if lacking is not None:
        raise SchemaMismatch(f"{source} has no column {lacking!r}, which is in the key: rename it, or change on")
    given = rows.select(list(on)).combine_chunks()
    try:
        fitted = conform_to_schema(given, no_keys(data, on).schema)
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{source}: its keys do not fit the columns {', '.join(on)}: {error}") from error
    for name in on:
        for values, cast in zip(given[name].chunks, fitted[name].chunks, strict=True):
            check_key_values(name, values, cast)
    return fitted


def source_bytes(data: LanceDataset, source: str) -> int:
    """Return the size of a raw file, or of a dataset's data files."""
    return open_source(data, source).snapshot.size_bytes if is_dataset(source) else found_file(source, {}).size_bytes


def source_tokens(verb: Verb, work: Execution) -> dict[str, str]:
    """Return what a verb reads or imports, each with a token that changes when its content does."""
    tokens = {source: _source_token(work, source) for source in verb.sources}
    return tokens | {function: function_token(function) for function in verb.functions}


def version_id(data: Target) -> str:
    """Return what distinguishes the opened version from another one of the same number; "" if there is no table."""
    if isinstance(data, AbsentTable):
        return ""
    manifest = data.snapshot.manifest
    return manifest.transaction_file or (manifest.timestamp.isoformat() if manifest.timestamp else "")


def _source_token(work: Execution, source: str) -> str:
    """Return a dataset's version, or a raw file's token."""
    if not is_dataset(source):
        return found_file(source, work.raw_storage_options).token
    opened = open_source(work.data, source)
    return f"version {opened.version}, {version_id(opened)}"
