"""A search of an index looks only at the fragments in which it found rows, and at those that it does not cover."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ScanRequest, bind_filter, scan
from lance_ops.table import MANIFEST_CACHE, Fragment

INDEXED, FRAGMENTS = 6, 8
"""The first fragments are indexed; the others were appended later."""


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    """Return a handle that has read nothing, of a table with deleted rows in every fragment."""
    dataset = lance_ops.write_dataset(pa.table({"id": range(10 * INDEXED)}), dataset_uri, max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(pa.table({"id": range(10 * INDEXED, 10 * FRAGMENTS)}), max_rows_per_file=10)
    dataset.delete("id % 10 = 7")
    MANIFEST_CACHE.reset()  # it holds the fragments that this process has decoded
    return lance_ops.dataset(dataset_uri)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the id of each fragment that is decoded."""
    ids: list[int] = []
    from_pb = Fragment.from_pb

    def recorded(message: Any, path: str) -> Fragment:
        ids.append(message.id)
        return from_pb(message, path)

    monkeypatch.setattr(Fragment, "from_pb", recorded)
    return ids


def _remove_deletion_files(dataset: lance_ops.LanceDataset, *, of_all_but: set[int]) -> None:
    for place in Path(dataset.uri, "_deletions").iterdir():
        if int(place.name.partition("-")[0]) not in of_all_but:
            place.unlink()


@pytest.mark.parametrize(
    ("condition", "found", "looked_at"),
    [
        ("id = 23", [23], {2, 6, 7}),
        ("id IN (58, 3)", [3, 58], {0, 5, 6, 7}),
        ("id = 37", [], {3, 6, 7}),
        ("id = -1", [], {6, 7}),
        ("id >= 55 AND id < 62", [55, 56, 58, 59, 60, 61], {5, 6, 7}),
    ],
)
def test_other_fragments_are_neither_decoded_nor_their_deletion_vectors_read(
    dataset: lance_ops.LanceDataset, decoded: list[int], condition: str, found: list[int], looked_at: set[int]
) -> None:
    _remove_deletion_files(dataset, of_all_but=looked_at)
    assert dataset.to_table(filter=condition)["id"].to_pylist() == found
    assert set(decoded) == looked_at


def test_a_search_of_indexed_fragments_alone_decodes_no_other(
    dataset: lance_ops.LanceDataset, decoded: list[int]
) -> None:
    scanner = dataset.scanner(filter="id = 23", fast_search=True)
    assert scanner.to_table()["id"].to_pylist() == [23]
    assert decoded == [2]


def test_chosen_rows_decode_their_fragments_alone_in_the_order_asked_for(
    dataset: lance_ops.LanceDataset, decoded: list[int]
) -> None:
    snapshot = dataset.snapshot
    rows = RowAddressSet.from_addresses([5 << 32 | 4, 2 << 32 | 7, 2 << 32 | 8, 7 << 32 | 1])
    request = ScanRequest(snapshot.schema, bind_filter(snapshot, "id > 0"), rows=rows)
    _remove_deletion_files(dataset, of_all_but={2, 5, 7})
    assert pa.concat_tables(scan(snapshot, request))["id"].to_pylist() == [28, 54, 71]
    in_order = replace(request, fragment_ids=(7, 3, 2, 7))
    assert pa.concat_tables(scan(snapshot, in_order))["id"].to_pylist() == [71, 28]
    assert sorted(decoded) == [2, 5, 7]
