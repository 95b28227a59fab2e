"""Dictionary columns of 0.1 tables that are begun in files written apart from each other.

The table's manifest has one list of values, which the keys of all its files count in; each file has the list that was
known when it was written. So the lists of new files are joined, in the files' order, and a file whose own is not what
the joint one begins with is written anew.
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

Values = Mapping[int, pa.Array]


def join_pending_dictionaries(
    store: Store, schema: Schema, files: Sequence[DataFile]
) -> tuple[Schema, tuple[DataFile, ...]]:
    """Return the schema with the values of the dictionaries that these files begin, and files that count in them.

    The files are the caller's own, in no version yet: one that is written anew is deleted. On an error all are there.
    """
    begun = _begun(schema, files)
    if not begun:
        return schema, tuple(files)
    lists = [_lists_of(store, file, begun) for file in files]
    joint = _join(lists)
    settled: list[DataFile] = []
    written = PendingFilesBuilder(store)
    with written.abandoned_on_failure():
        for file, known in zip(files, lists, strict=True):
            if _begins(known, joint):
                settled.append(file)
            else:
                settled.append(_written_anew(store, file, joint, written))
    replaced = [f"{DATA_DIR}/{old.path}" for old, new in zip(files, settled, strict=True) if old != new]
    PendingFiles.at(store, replaced).abandon()
    return _with_values(schema, joint), tuple(settled)


def join_dictionaries_of_fragments(
    store: Store, schema: Schema, fragments: Sequence[Fragment]
) -> tuple[Schema, tuple[Fragment, ...]]:
    """Do the same with new fragments of one file each."""
    schema, files = join_pending_dictionaries(
        store, schema, [file for fragment in fragments for file in fragment.files]
    )
    return schema, tuple(replace(each, files=(file,)) for each, file in zip(fragments, files, strict=True))


def has_pending_dictionaries(schema: Schema, fragments: Iterable[Fragment]) -> bool:
    """Return whether a dictionary column of these fragments has values that only their files tell."""
    return bool(_begun(schema, [file for fragment in fragments for file in fragment.files]))


def with_pending_dictionaries(store: Store, schema: Schema, fragments: Iterable[Fragment]) -> Schema:
    """Return the schema of these fragments, whose files are others' to change, with the values of its dictionaries.

    Raises `SchemaMismatch` naming a column of which two files have different lists.
    """
    files = [file for fragment in fragments for file in fragment.files]
    begun = _begun(schema, files)
    lists = [_lists_of(store, file, begun) for file in files]
    joint = _join(lists)
    for file, known in zip(files, lists, strict=True):
        for field_id, own in known.items():
            if not _begins({field_id: own}, joint):
                raise SchemaMismatch(
                    f"column {schema.path_of(field_id)!r}: the dictionary of {file.path} is not that of the files "
                    "before it, and a table of file version 0.1 has one: write all its rows with write_dataset"
                )
    return _with_values(schema, joint)


def _begun(schema: Schema, files: Sequence[DataFile]) -> list[Field]:
    begun = [node for node in schema.walk() if node.is_dictionary and node.dictionary is None]
    if not begun or not any(_is_legacy(file) for file in files):
        return []
    return begun


def _is_legacy(file: DataFile) -> bool:
    return FileVersion.from_numbers(*file.numbers, where=file.path) is FileVersion.V0_1


def _lists_of(store: Store, file: DataFile, begun: Sequence[Field]) -> Values:
    held = [field.id for field in begun if field.id in file.fields]
    if held and file.base_id is not None:
        raise UnsupportedFeature("a dictionary begun in a file under a base path", file.path)
    reader = FileReader(store, f"{DATA_DIR}/{file.path}", file.file_size_bytes) if held else None
    return {field_id: reader.dictionary_values(field_id) for field_id in held} if reader is not None else {}


def _join(lists: Iterable[Values]) -> Values:
    joint: dict[int, pa.Array] = {}
    for values in lists:
        for field_id, own in values.items():
            known = joint.get(field_id)
            joint[field_id] = own if known is None else pa.concat_arrays([known, own.filter(_missing(own, known))])
    return joint


def _missing(own: pa.Array, known: pa.Array) -> pa.Array:
    return pc.is_null(pc.index_in(own, value_set=known))


def _begins(known: Values, joint: Values) -> bool:
    return all(joint[field_id].slice(0, len(own)).equals(own) for field_id, own in known.items())


def _with_values(schema: Schema, joint: Values) -> Schema:
    def known(field: Field) -> Dictionary | None:
        values = joint.get(field.id)
        if values is None:
            return field.dictionary or Dictionary(0, 0, pa.nulls(0, field.arrow_type.value_type))
        return Dictionary(0, len(values), values)

    return with_dictionaries(schema, known)


def _written_anew(store: Store, file: DataFile, joint: Values, written: PendingFilesBuilder) -> DataFile:
    """Write a file whose keys count in the joint lists, in the same batches."""
    reader = FileReader(store, f"{DATA_DIR}/{file.path}", file.file_size_bytes)
    name = data_file_name()
    path = f"{DATA_DIR}/{name}"
    written.add(path)
    schema = _with_values(reader.schema, joint)
    with FileWriter(store, path, schema, FileVersion.V0_1, batch_offsets=reader.batch_offsets()) as writer:
        for batch in reader.iter_batches():
            writer.write_batch(batch)
        size_bytes = writer.finish().size_bytes
    return replace(file, path=name, file_size_bytes=size_bytes)
