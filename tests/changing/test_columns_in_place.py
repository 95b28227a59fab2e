"""A writer gives columns new values in place: other writers change other columns, or an index holds the old values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset, LanceOperation

POINT = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.int32(), nullable=False)])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.int64()),
        ("l", pa.list_(pa.string())),
        pa.field("packed", POINT, nullable=False, metadata={"lance-encoding:packed": "true"}),
    ]
)


def rows(ids: range, generation: int = 0) -> pa.Table:
    """Return rows whose values tell the generation."""
    values = [
        {
            "id": key,
            "v": generation * 100 + key,
            "l": [f"{generation}-{key}"] * (key % 3),
            "packed": {"x": generation * 100 + key, "y": -key},
        }
        for key in ids
    ]
    return pa.Table.from_pylist(values, SCHEMA)


def made(uri: str, version: str = "2.2", *, stable: bool = False) -> LanceDataset:
    """Write two fragments of four rows each, with the files of `l` apart from the others."""
    dataset = lance_ops.write_dataset(
        rows(range(8)).drop_columns(["l"]),
        uri,
        max_rows_per_file=4,
        enable_stable_row_ids=stable,
        data_storage_version=version,
    )
    dataset.merge(rows(range(8)).select(["id", "l"]), "id")
    return lance_ops.dataset(uri)


def updates_columns(stale: LanceDataset, column: str) -> None:
    key = "_rowid" if stale.has_stable_row_ids else "_rowaddr"
    keys = stale.to_table(["id"], with_row_id=True, with_row_address=True)[key]
    stale.update_columns(pa.table({key: keys, column: rows(range(8), 1)[column]}))


def merges_in_place(stale: LanceDataset, column: str) -> None:
    builder = stale.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    builder.execute(rows(range(8), 1).select(["id", column]))


def commits_an_update(stale: LanceDataset, column: str) -> None:
    new = rows(range(8), 1).select(["id", column])
    written = [fragment.update_columns(new, "id") for fragment in stale.get_fragments()]
    operation = LanceOperation.Update(
        updated_fragments=[fragment for fragment, _ in written], fields_modified=written[0][1]
    )
    LanceDataset.commit(stale, operation, read_version=stale.version)


def replaces_files(stale: LanceDataset, column: str) -> None:
    new = rows(range(8), 1).select(["id", column])
    groups = [
        LanceOperation.DataReplacementGroup(fragment.fragment_id, fragment.update_columns(new, "id")[0].files[-1])
        for fragment in stale.get_fragments()
    ]
    LanceDataset.commit(stale, LanceOperation.DataReplacement(groups), read_version=stale.version)


Write = Callable[[LanceDataset, str], None]
WRITES: dict[str, Write] = {"v": updates_columns, "packed": merges_in_place, "l": replaces_files}
"""How each column is written. Only `l` has files of its own, so that they can be replaced."""


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("order", list(permutations(WRITES)), ids="-".join)
def test_writers_of_different_columns_that_planned_on_one_version_all_write_theirs(
    dataset_uri: str, order: tuple[str, ...], stable: bool
) -> None:
    planned = made(dataset_uri, stable=stable).version
    handles = [lance_ops.dataset(dataset_uri) for _ in order]

    for column, stale in zip(order, handles, strict=True):
        WRITES[column](stale, column)

    newest = lance_ops.dataset(dataset_uri)
    assert newest.version == planned + len(order)
    newest.validate()
    assert newest.to_table(SCHEMA.names).to_pylist() == rows(range(8), 1).to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("write", [updates_columns, merges_in_place, commits_an_update])
def test_an_index_of_a_part_of_a_packed_struct_finds_new_values(dataset_uri: str, write: Write, version: str) -> None:
    made(dataset_uri, version).create_scalar_index("packed.x", "BTREE")

    write(lance_ops.dataset(dataset_uri), "packed")

    newest = lance_ops.dataset(dataset_uri)
    assert newest.to_table(filter="packed.x = 103")["id"].to_pylist() == [3]
    newest.delete("packed.x = 3")
    assert newest.count_rows() == 8
