"""Indices and values written in place, where the files list other fields than the index: its parents or its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from lance_ops.core.errors import RetryableConflict
from lance_ops.core.schema import Schema
from lance_ops.store import MemoryStore
from lance_ops.table import Fragment, IndexDetails, Manifest, with_tombstones
from lance_ops.table.manifest import FileLocations
from lance_ops.table.rows.row_sequences import encode_row_id_range
from lance_ops.transactions import (
    CreateIndex,
    DataReplacement,
    DataReplacementGroup,
    Merge,
    Operation,
    Overwrite,
    RemappedIndex,
    Rewrite,
    RewriteGroup,
    Transaction,
    Update,
    UpdateMode,
    commit,
    remap_index,
)
from tests.table.samples import data_file, index
from tests.transactions.tables import Table

POINT = pa.struct([("x", pa.int32()), ("y", pa.int32())])
SCHEMA = Schema.from_arrow(
    pa.schema(
        [
            ("a", pa.int64()),
            ("l", pa.list_(pa.string())),
            pa.field("packed", POINT, metadata={"lance-encoding:packed": "true"}),
            ("s", POINT),
            ("deep", pa.list_(pa.struct([("x", pa.list_(pa.int32()))]))),
        ]
    )
)
COLUMNS = {"a": (0,), "l": (2,), "packed": (3,), "s.x": (7,), "s.y": (8,), "deep": (12,)}
"""The fields that the file of each column lists, as files of 2.1 and later do."""

CASES = [
    ("a", "a", True),
    ("a", "l", False),
    ("l", "l", True),
    ("l", "l.item", True),
    ("l", "deep", False),
    ("packed", "packed", True),
    ("packed", "packed.x", True),
    ("packed", "s.x", False),
    ("s.x", "s.x", True),
    ("s.x", "s.y", False),
    ("s.x", "s", True),
    ("deep", "deep", True),
    ("deep", "deep.item.x", True),
    ("deep", "deep.item.x.item", True),
]


@pytest.fixture
def table() -> Table:
    """Two fragments, each with a file for each column."""
    store = MemoryStore()
    files = [tuple(data_file(f"{name}{number}", fields) for name, fields in COLUMNS.items()) for number in range(2)]
    table = Table(store, fragments=0)
    commit(table.committer, store, Transaction(0, Overwrite(tuple(Fragment(0, each, 10) for each in files), SCHEMA)))
    return table


def in_place(newest: Manifest, column: str) -> Operation:
    return Update(
        updated_fragments=(_with_new_file(newest, column),),
        fields_modified=COLUMNS[column],
        update_mode=UpdateMode.REWRITE_COLUMNS,
    )


def replacement(newest: Manifest, column: str) -> Operation:
    return DataReplacement((DataReplacementGroup(0, data_file(f"new-{column}", COLUMNS[column])),))


def merge(newest: Manifest, column: str) -> Operation:
    return Merge((_with_new_file(newest, column), *list(newest.fragments)[1:]), SCHEMA, True)


def _with_new_file(newest: Manifest, column: str) -> Fragment:
    old, fields = newest.fragments[0], COLUMNS[column]
    kept = (with_tombstones(file, fields) for file in old.files)
    files = (*(file for file in kept if file.live_fields), data_file(f"new-{column}", fields))
    return replace(old, files=files)


def segment(path: str) -> CreateIndex:
    return CreateIndex((index(1, "i", (SCHEMA.field(path).id,), (0, 1)),))


Write = Callable[[Manifest, str], Operation]
WRITES = pytest.mark.parametrize("write", [in_place, replacement, merge])


@WRITES
@pytest.mark.parametrize(("column", "indexed", "meet"), CASES)
def test_an_index_keeps_the_fragments_in_which_its_values_did_not_change(
    table: Table, write: Write, column: str, indexed: str, meet: bool
) -> None:
    table.commit(segment(indexed))

    made = table.commit(write(table.newest, column)).manifest

    assert list(made.indices[0].fragment_bitmap or ()) == ([1] if meet else [0, 1])


@WRITES
@pytest.mark.parametrize(("column", "indexed", "meet"), CASES)
def test_an_index_built_beside_new_values_of_its_field_is_retryable(
    table: Table, write: Write, column: str, indexed: str, meet: bool
) -> None:
    planned, ours = table.newest, segment(indexed)
    table.commit(write(planned, column))

    remapped = remap_index(table.store, table.committer, ours.new_indices[0], planned, FileLocations(table.store))
    assert isinstance(remapped, RemappedIndex)
    assert list(remapped.fragment_bitmap) == ([1] if meet else [0, 1])
    if meet:
        with pytest.raises(RetryableConflict, match="values of a new index were changed"):
            table.commit(ours, planned.version)
    else:
        assert table.commit(ours, planned.version).version == 3


@pytest.mark.parametrize("write", [in_place, replacement])
@pytest.mark.parametrize(("column", "indexed", "meet"), CASES)
def test_values_written_beside_a_new_index_are_not_covered_by_it(
    table: Table, write: Write, column: str, indexed: str, meet: bool
) -> None:
    ours, planned = write(table.newest, column), table.newest.version
    table.commit(segment(indexed))

    try:
        made = table.commit(ours, planned).manifest
    except RetryableConflict:
        assert meet
        return

    assert list(made.indices[0].fragment_bitmap or ()) == ([1] if meet else [0, 1])


def test_an_index_of_row_ids_does_not_cover_new_values_of_rows_that_a_rewrite_moved() -> None:
    row_ids = [encode_row_id_range(*each) for each in ((0, 10), (10, 10), (0, 20))]
    fragments = [
        Fragment(0, tuple(data_file(f"{name}{number}", fields) for name, fields in COLUMNS.items()), 10).with_sequences(
            row_ids=row_ids[number]
        )
        for number in range(3)
    ]
    table = Table(fragments=0)
    first = Transaction(0, Overwrite(tuple(fragments[:2]), SCHEMA))
    planned = commit(table.committer, table.store, first, stable_row_ids=True).manifest
    labels = replace(
        index(1, "i", (SCHEMA.field("l").id,), (0, 1)), details=IndexDetails("/lance.table.LabelListIndexDetails")
    )
    both = RewriteGroup(tuple(planned.fragments), (replace(fragments[2], physical_rows=20),))
    moved = table.commit(Rewrite((both,))).manifest.fragments[0].id
    table.commit(DataReplacement((DataReplacementGroup(moved, data_file("new", COLUMNS["l"])),)))

    with pytest.raises(RetryableConflict, match="values of a new index were changed"):
        table.commit(CreateIndex((labels,)), planned.version)
