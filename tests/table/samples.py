"""Manifests to test with, small and large, made by hand and by hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import hypothesis.strategies as st
import pyarrow as pa
from pyroaring import FrozenBitMap

from lance_ops.core.schema import Dictionary, Schema, with_dictionaries
from lance_ops.table import (
    WRITER,
    BasePath,
    DataFile,
    DataFormat,
    DeletionFile,
    DeletionFileType,
    ExternalFile,
    Fragment,
    FragmentList,
    IndexDetails,
    IndexFile,
    IndexMetadata,
    Manifest,
    RowDatasetVersionMeta,
    RowIdMeta,
)

SCHEMA = Schema.from_arrow(
    pa.schema(
        [pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.struct([("x", pa.string()), ("y", pa.float32())]))]
    )
)

DICTIONARIES = {
    "name": pa.array(["a", "bé", "ccc"]),
    "number": pa.array([10, -20]),
    "blob": pa.array([b"\xff", b"z"], pa.large_binary()),
    "item": pa.array([7], pa.uint8()),
    "none": pa.array([], pa.string()),
}
DICTIONARY_SCHEMA = Schema.from_arrow(
    pa.schema(
        [
            ("name", pa.dictionary(pa.int8(), pa.string())),
            ("in", pa.struct([("number", pa.dictionary(pa.uint16(), pa.int64())), ("x", pa.int8())])),
            ("list", pa.list_(pa.dictionary(pa.int32(), pa.uint8()))),
            ("blob", pa.dictionary(pa.int64(), pa.large_binary())),
            ("none", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
)


def data_file(name: str, fields: tuple[int, ...] = (0, 2, 3)) -> DataFile:
    """Return a 2.2 data file of these fields."""
    return DataFile(f"{name}.lance", fields, tuple(range(len(fields))), 2, 2, 1000)


def fragment(fragment_id: int, rows: int = 10, deleted: int = 0) -> Fragment:
    """Return a fragment with one file, and a deletion file if rows are deleted."""
    deletions = DeletionFile(1, fragment_id + 7, DeletionFileType.ARROW_ARRAY, deleted) if deleted else None
    return Fragment(fragment_id, (data_file(f"f{fragment_id}"),), rows, deletions)


def index(
    number: int, name: str = "a_idx", fields: tuple[int, ...] = (0,), covers: tuple[int, ...] = (0,)
) -> IndexMetadata:
    """Return a BTREE segment over these fragments."""
    return IndexMetadata(
        uuid=UUID(int=number),
        name=name,
        fields=fields,
        dataset_version=number,
        fragment_bitmap=FrozenBitMap(covers),
        details=IndexDetails("/lance.table.BTreeIndexDetails"),
        index_version=0,
        files=(IndexFile("page_data.lance", 10), IndexFile("page_lookup.lance", 5)),
    )


def manifest(*fragments: Fragment, version: int = 1, indices: tuple[IndexMetadata, ...] = ()) -> Manifest:
    """Return a sound manifest."""
    deleted = any(each.deletion_file for each in fragments)
    return Manifest(
        version=version,
        schema=SCHEMA,
        fragments=FragmentList(fragments),
        indices=indices,
        data_format=DataFormat("2.2"),
        timestamp_ns=1_700_000_000_123_456_789,
        reader_feature_flags=int(deleted),
        writer_feature_flags=int(deleted),
        max_fragment_id=max((each.id for each in fragments), default=None),
        transaction_file=f"{version - 1}-00000000-0000-4000-8000-000000000000.txn",
        writer_version=WRITER,
    )


_U32 = st.integers(0, 2**32 - 1)
_U64 = st.integers(0, 2**64 - 1)
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
_NAME = st.from_regex(r"[A-Za-z0-9_]{1,12}", fullmatch=True)
_MAP = st.dictionaries(_TEXT, _TEXT, max_size=3)
_BASE = st.none() | st.integers(0, 3)
_SEQUENCE = st.binary(max_size=20) | st.builds(ExternalFile, path=_NAME, offset=_U64, size=_U64)

_DATA_FILES = st.builds(
    DataFile,
    path=_NAME,
    fields=st.lists(st.integers(-2, 9), max_size=4).map(tuple),
    column_indices=st.lists(st.integers(-1, 9), max_size=4).map(tuple),
    file_major_version=st.integers(0, 2),
    file_minor_version=st.integers(0, 3),
    file_size_bytes=_U64,
    base_id=_BASE,
)
_DELETION_FILES = st.builds(
    DeletionFile,
    file_type=st.sampled_from(DeletionFileType),
    read_version=_U64,
    id=_U64,
    num_deleted_rows=_U64,
    base_id=_BASE,
)
FRAGMENTS = st.builds(
    Fragment,
    id=_U32,
    files=st.lists(_DATA_FILES, max_size=3).map(tuple),
    deletion_file=st.none() | _DELETION_FILES,
    physical_rows=_U32,
    row_id_meta=st.none() | st.builds(RowIdMeta, _SEQUENCE),
    last_updated_at_version_meta=st.none() | st.builds(RowDatasetVersionMeta, _SEQUENCE),
    created_at_version_meta=st.none() | st.builds(RowDatasetVersionMeta, _SEQUENCE),
)
INDICES = st.builds(
    IndexMetadata,
    uuid=st.uuids(),
    name=_TEXT,
    fields=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    dataset_version=_U64,
    fragment_bitmap=st.none() | st.lists(_U32, max_size=20).map(FrozenBitMap),
    details=st.none() | st.builds(IndexDetails, type_url=_TEXT, value=st.binary(max_size=9)),
    index_version=st.none() | st.integers(0, 9),
    created_at_ms=st.none() | _U64,
    base_id=_BASE,
    files=st.lists(st.builds(IndexFile, path=_NAME, size_bytes=_U64), max_size=2).map(tuple),
    covering_fields=st.lists(st.integers(0, 9), max_size=2).map(tuple),
)


def _with_known_fragments(made: Manifest) -> Manifest:
    """Return the manifest with a `max_fragment_id` that is not below any fragment it names."""
    covered = (each.fragment_bitmap.max() for each in made.indices if each.fragment_bitmap)
    return replace(made, max_fragment_id=max([made.max_fragment_id or 0, *made.fragments.ids, *covered]))


MANIFESTS = st.builds(
    Manifest,
    version=_U64,
    schema=st.just(SCHEMA),
    fragments=st.lists(FRAGMENTS, max_size=3).map(FragmentList),
    indices=st.lists(INDICES, max_size=2).map(tuple),
    data_format=st.builds(DataFormat, version=_TEXT, file_format=_TEXT),
    timestamp_ns=st.none() | st.integers(-(10**18), 4 * 10**18),
    tag=_TEXT,
    reader_feature_flags=_U64,
    writer_feature_flags=_U64,
    max_fragment_id=_U32,
    transaction_file=_NAME,
    writer_version=st.just(WRITER),
    next_row_id=_U64,
    config=_MAP,
    table_metadata=_MAP,
    base_paths=st.lists(
        st.builds(BasePath, id=_U32, path=_NAME, name=st.none() | _TEXT, is_dataset_root=st.booleans()), max_size=2
    ).map(tuple),
    branch=st.none() | _TEXT,
).map(_with_known_fragments)


def with_values(schema: Schema, values: Mapping[str, pa.Array]) -> Schema:
    """Return the schema with the values of each dictionary column, by its name."""
    return with_dictionaries(schema, lambda field: Dictionary(0, len(values[field.name]), values[field.name]))


def legacy_manifest(schema: Schema) -> Manifest:
    """Return a version of a 0.1 table."""
    return replace(manifest(fragment(0), indices=(index(1),)), schema=schema, data_format=DataFormat("0.1"))
