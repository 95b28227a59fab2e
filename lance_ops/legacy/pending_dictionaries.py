"""Add to a 0.1 table's schema the dictionary values that only its new files hold, and rewrite files whose keys change.

A 0.1 table has one list of values for each dictionary column. Its manifest points to the list, and the keys in all
files are positions in it. Files that are written independently each have the list of values that their own writer
collected. The lists are joined in the order of the files. A file whose list is not a prefix of the joined list is
rewritten, because its keys would mean other values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.core.file_names import DATA_DIR, data_file_name
from lance_ops.core.schema import Dictionary, Field, Schema, with_dictionaries
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter
from lance_ops.store import Store
from lance_ops.table import DataFile, Fragment
from lance_ops.transactions import PendingFiles, PendingFilesBuilder

__all__ = [
    "has_pending_dictionaries",
    "join_dictionaries_of_fragments",
    "join_pending_dictionaries",
    "with_pending_dictionaries",
]

DictionaryValues = Mapping[int, pa.Array]
"""The values of dictionary columns, by field id."""


def join_pending_dictionaries(
    store: Store, schema: Schema, files: Sequence[DataFile]
) -> tuple[Schema, tuple[DataFile, ...]]:
    """Return the schema with the joined dictionary values, and files whose keys are positions in them.

    No version may name the files yet: a file that is rewritten is deleted. On an error all given files stay.
    """
    pending_fields = _pending_fields(schema, files)
    if not pending_fields:
        return schema, tuple(files)
    values_by_file = [_values_of_file(store, file, pending_fields) for file in files]
    joined = _join(values_by_file)
    new_files: list[DataFile] = []
    written = PendingFilesBuilder(store)
    with written.abandoned_on_failure():
        for file, values in zip(files, values_by_file, strict=True):
            new_files.append(file if _are_prefixes(values, joined) else _rewrite_file(store, file, joined, written))
    replaced = [f"{DATA_DIR}/{old.path}" for old, new in zip(files, new_files, strict=True) if old != new]
    PendingFiles.at(store, replaced).abandon()
    return _with_values(schema, joined), tuple(new_files)


def join_dictionaries_of_fragments(
    store: Store, schema: Schema, fragments: Sequence[Fragment]
) -> tuple[Schema, tuple[Fragment, ...]]:
    """Do the same as `join_pending_dictionaries` for new fragments of one file each."""
    files = [file for fragment in fragments for file in fragment.files]
    schema, files_joined = join_pending_dictionaries(store, schema, files)
    return schema, tuple(replace(each, files=(file,)) for each, file in zip(fragments, files_joined, strict=True))


def has_pending_dictionaries(schema: Schema, fragments: Iterable[Fragment]) -> bool:
    """Return whether the schema lacks the values of a dictionary column, so that only the files have them."""
    return bool(_pending_fields(schema, [file for fragment in fragments for file in fragment.files]))


def with_pending_dictionaries(store: Store, schema: Schema, fragments: Iterable[Fragment]) -> Schema:
    """Return the schema with the joined dictionary values of these fragments, without rewriting any file.

    Raises `SchemaMismatch` naming a column if a file would have to be rewritten.
    """
    files = [file for fragment in fragments for file in fragment.files]
    pending_fields = _pending_fields(schema, files)
    values_by_file = [_values_of_file(store, file, pending_fields) for file in files]
    joined = _join(values_by_file)
    for file, values_by_field in zip(files, values_by_file, strict=True):
        for field_id, values in values_by_field.items():
            if not _are_prefixes({field_id: values}, joined):
                raise SchemaMismatch(
                    f"column {schema.path_of(field_id)!r}: the dictionary of {file.path} is not that of the files "
                    "before it, and a table of file version 0.1 has one: write all its rows with write_dataset"
                )
    return _with_values(schema, joined)


def _pending_fields(schema: Schema, files: Sequence[DataFile]) -> list[Field]:
    """Return the dictionary fields without values in the schema; none if no file has version 0.1."""
    pending = [node for node in schema.walk() if node.is_dictionary and node.dictionary is None]
    if not pending or not any(_is_legacy(file) for file in files):
        return []
    return pending


def _is_legacy(file: DataFile) -> bool:
    return FileVersion.from_numbers(*file.numbers, where=file.path) is FileVersion.V0_1


def _values_of_file(store: Store, file: DataFile, pending_fields: Sequence[Field]) -> DictionaryValues:
    field_ids = [field.id for field in pending_fields if field.id in file.fields]
    if not field_ids:
        return {}
    if file.base_id is not None:
        raise UnsupportedFeature("a new dictionary in a file under a base path", file.path)
    reader = FileReader(store, f"{DATA_DIR}/{file.path}", file.file_size_bytes)
    return {field_id: reader.dictionary_values(field_id) for field_id in field_ids}


def _join(values_by_file: Iterable[DictionaryValues]) -> DictionaryValues:
    """Return for each field the values of all files, each value once, in the order of the files."""
    joined: dict[int, pa.Array] = {}
    for values_by_field in values_by_file:
        for field_id, values in values_by_field.items():
            so_far = joined.get(field_id)
            joined[field_id] = values if so_far is None else pa.concat_arrays([so_far, _missing_from(so_far, values)])
    return joined


def _missing_from(so_far: pa.Array, values: pa.Array) -> pa.Array:
    return values.filter(pc.is_null(pc.index_in(values, value_set=so_far)))


def _are_prefixes(values_by_field: DictionaryValues, joined: DictionaryValues) -> bool:
    return all(joined[field_id].slice(0, len(values)).equals(values) for field_id, values in values_by_field.items())


def _with_values(schema: Schema, joined: DictionaryValues) -> Schema:
    def dictionary_of(field: Field) -> Dictionary | None:
        values = joined.get(field.id)
        if values is None:
            return field.dictionary or Dictionary(0, 0, pa.nulls(0, field.arrow_type.value_type))
        return Dictionary(0, len(values), values)

    return with_dictionaries(schema, dictionary_of)


def _rewrite_file(store: Store, file: DataFile, joined: DictionaryValues, written: PendingFilesBuilder) -> DataFile:
    """Write the file's rows again, in the same batches, with keys that are positions in the joined values."""
    reader = FileReader(store, f"{DATA_DIR}/{file.path}", file.file_size_bytes)
    name = data_file_name()
    path = f"{DATA_DIR}/{name}"
    written.add(path)
    schema = _with_values(reader.schema, joined)
    with FileWriter(store, path, schema, FileVersion.V0_1, batch_offsets=reader.batch_offsets()) as writer:
        for batch in reader.iter_batches():
            writer.write_batch(batch)
        size_bytes = writer.finish().size_bytes
    return replace(file, path=name, file_size_bytes=size_bytes)
