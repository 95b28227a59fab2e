"""Open the data files of small fragments together, if one file holds what is read of each, and all of them are alike.

Fragments that were written in the same way differ in numbers alone. What the manifest says of one file is checked for
all of them, and the files' schema is checked once.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.types as pt

from lance_ops.core.schema import Schema
from lance_ops.file import AlikeFiles, stores_field_alike
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.snapshot.stored_columns import check_types, stored_ids_by_table_id
from lance_ops.table import Fragment

__all__ = ["open_alike"]


def open_alike(snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema) -> AlikeFiles | None:
    """Return the data files of fragments, each of which holds all of `schema` under the table's field ids.

    Returns None for fragments that must be opened one by one: they are not alike, or one of them is corrupt. Raises as
    `Store.view` does, and `CorruptFile` if files and manifest contradict each other.
    """
    if any(pt.is_dictionary(part.arrow_type) for part in schema.walk()):
        return None
    head = fragments[0].files[0] if fragments[0].files else None
    files = [fragment.files[0] for fragment in fragments if len(fragment.files) == 1]
    if head is None or len(files) < len(fragments):
        return None
    shape = head.fields, head.column_indices, head.base_id
    if any((file.fields, file.column_indices, file.base_id) != shape for file in files):
        return None
    sizes = [file.file_size_bytes for file in files]
    held = {*head.fields}
    if min(sizes) <= 0 or not all(part.children or part.id in held for part in schema.walk()):
        return None
    store, directory = snapshot.file_locations.data_directory(head.base_id)
    if not store.reads_in_place:
        return None
    paths = [f"{directory}/{file.path}" if directory else file.path for file in files]
    found = AlikeFiles.open(store, paths, sizes, schema, verify_pages=snapshot.verifies_reads)
    if found is None or found.num_rows.tolist() != [fragment.physical_rows for fragment in fragments]:
        return None
    if stored_ids_by_table_id(head, found) or not all(stores_field_alike(found, field) for field in schema.fields):
        return None
    check_types(found, schema)
    return found
