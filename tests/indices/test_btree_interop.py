"""This library searches B-trees of the reference; the reference searches, merges and remaps B-trees of this library."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap

from lance_ops.core.predicate import parse_filter
from lance_ops.core.schema import Schema
from lance_ops.file import FileReader
from lance_ops.indices import INDEX_ROW, INDEX_VALUE, load_index
from lance_ops.indices.btree import BTree
from lance_ops.indices.btree.layout import PAGE_DATA, PAGE_LOOKUP
from lance_ops.indices.sort_keys import sort_indices, sort_keys
from lance_ops.store import LocalStore, MemoryStore, Store
from lance_ops.table import IndexMetadata, decode_manifest
from lance_ops.table.rows.row_address_map import NewFragment, OldFragment, RewrittenGroup, RowAddressMap

if TYPE_CHECKING:
    import lance

pytestmark = pytest.mark.interop

NUM_ROWS = 10_000
MANY = np.random.default_rng(7).integers(0, 3000, NUM_ROWS)


def with_nulls(values: Any) -> list[Any]:
    return [None if row % 11 == 0 else value for row, value in enumerate(values)]


COLUMNS: dict[str, pa.Array] = {
    "int": pa.array(with_nulls(MANY.tolist()), pa.int32()),
    "unsigned": pa.array([2**64 - 1 - int(value) for value in MANY], pa.uint64()),
    "float": pa.array(with_nulls([[math.nan, -0.0, 0.0, math.inf, -math.inf, v / 7][v % 6] for v in MANY.tolist()])),
    "half": pa.array([np.float16(value / 8) for value in MANY]),
    "text": pa.array(with_nulls([f"k{value:05d}é" for value in MANY])),
    "bytes": pa.array([int(value).to_bytes(3, "little") for value in MANY], pa.binary()),
    "flag": pa.array(with_nulls([bool(value % 3) for value in MANY])),
    "day": pa.array(with_nulls([date.fromordinal(700_000 + int(value)) for value in MANY])),
    "instant": pa.array([int(value) * 10**9 for value in MANY], pa.timestamp("us", "UTC")),
    "amount": pa.array([Decimal(int(value) - 1500) / 4 for value in MANY], pa.decimal128(20, 2)),
    "nothing": pa.nulls(NUM_ROWS, pa.int64()),
}
FILTERS = {
    "int": ["x = 5", "x > 2990", "x >= 10 AND x < 20", "x IS NULL", "x IN (1, 2, 99999)", "x < 0", "x IS NOT NULL"],
    "unsigned": ["x = 18446744073709551615", "x < 18446744073709548630"],
    "float": ["x = 0.0", "x > 400", "x < 0.0", "x >= -0.0 AND x < 1", "x = CAST('NaN' AS DOUBLE)", "x IS NULL"],
    "half": ["x < 2.5", "x IS NULL"],
    "text": ["x = 'k00010é'", "x LIKE 'k0001%'", "x > 'k02990'", "x IN ('k00001é', 'k00002')", "x IS NULL"],
    "bytes": ["x = X'010000'"],
    "flag": ["x", "NOT x", "x IS NULL", "x = true"],
    "day": ["x >= DATE '1920-01-01'", "x = DATE '1917-07-16'", "x IS NULL"],
    "instant": ["x < TIMESTAMP '1970-01-02 00:00:00'"],
    "amount": ["x = 3", "x BETWEEN -1 AND 1"],
    "nothing": ["x IS NULL", "x = 1", "x IS NOT NULL"],
}


def dataset_of(uri: str, column: pa.Array, *, stable: bool = False) -> lance.LanceDataset:
    import lance

    table = pa.table({"x": column, "n": pa.array(range(len(column)))})
    return lance.write_dataset(table, uri, max_rows_per_file=3000, enable_stable_row_ids=stable, mode="overwrite")


def rows_of(dataset: lance.LanceDataset, text: str | None = None, *, indexed: bool = False) -> list[int]:
    scanner = dataset.scanner(filter=text, columns=["n"], with_row_address=True, use_scalar_index=indexed)
    return sorted(scanner.to_table().column("_rowaddr").to_pylist())


def training_rows(source: lance.LanceDataset | lance.LanceFragment) -> Iterator[pa.RecordBatch]:
    for batch in source.to_batches(columns=["x"], with_row_address=True):
        yield pa.record_batch([batch.column("x"), batch.column("_rowaddr")], names=[INDEX_VALUE, INDEX_ROW])


def root_of(dataset: lance.LanceDataset) -> LocalStore:
    return LocalStore(dataset.uri)


def indices_of(dataset: lance.LanceDataset) -> tuple[IndexMetadata, ...]:
    """Read the index metadata of a table's newest version with this library."""
    newest = min(Path(dataset.uri, "_versions").glob("*.manifest"))
    return decode_manifest(newest.read_bytes(), str(newest)).indices


def train(dataset: lance.LanceDataset, index_type: BTree, *, stable: bool = False) -> IndexMetadata:
    """Build an index over all of a table's rows with this library; do not commit it."""
    field = Schema.from_arrow(dataset.schema).field("x")
    metadata = IndexMetadata(
        uuid.uuid4(),
        "x_idx",
        (0,),
        dataset.version,
        details=index_type.details,
        index_version=index_type.index_version(stable_row_ids=stable),
    )
    files = index_type.train(training_rows(dataset), field, root_of(dataset).child(metadata.directory))
    return replace(metadata, files=files)


def commit(dataset: lance.LanceDataset, metadata: IndexMetadata) -> lance.LanceDataset:
    """Have the reference commit our index."""
    import lance
    from lance.bitmap import Bitmap
    from lance.dataset import IndexFile

    index = lance.Index(
        uuid=str(metadata.uuid),
        name=metadata.name,
        fields=list(metadata.fields),
        dataset_version=metadata.dataset_version,
        fragment_ids=Bitmap(fragment.fragment_id for fragment in dataset.get_fragments()),
        index_version=metadata.index_version or 0,
        index_details=(metadata.details.type_url, metadata.details.value) if metadata.details else None,
        files=[IndexFile(file.path, file.size_bytes) for file in metadata.files],
    )
    operation = lance.LanceOperation.CreateIndex([index], [])
    return lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def rows_by_key(store: Store) -> pa.Table:
    """Return an index's rows as (key, address), in order, ties by address; keys tell -0.0 from 0.0 and equal NaNs."""
    rows = FileReader(store, PAGE_DATA).read()
    keys = sort_keys(rows.column("values").combine_chunks())
    assert sort_indices(keys).to_pylist() == list(range(len(keys)))
    table = pa.table({"key": keys, "row": rows.column("ids")})
    return table.take(pc.sort_indices(table, [("key", "ascending"), ("row", "ascending")]))


def pages_of(store: Store) -> pa.Table:
    """Return page_lookup with its values as keys."""
    table = FileReader(store, PAGE_LOOKUP).read()
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return pa.table({**columns, "min": sort_keys(columns["min"]), "max": sort_keys(columns["max"])})


@pytest.mark.parametrize("name", COLUMNS)
def test_both_write_the_same_index(dataset_uri: str, name: str) -> None:
    dataset = dataset_of(dataset_uri, COLUMNS[name])
    dataset.create_scalar_index("x", "BTREE", name="x_idx")
    ours, theirs = (
        root_of(dataset).child(metadata.directory) for metadata in (train(dataset, BTree()), *indices_of(dataset))
    )
    assert rows_by_key(ours).equals(rows_by_key(theirs))
    assert pages_of(ours).equals(pages_of(theirs))
    for path in (PAGE_DATA, PAGE_LOOKUP):
        mine, other = (FileReader(store, path).schema for store in (ours, theirs))
        assert mine.to_arrow().equals(other.to_arrow(), check_metadata=True)
        assert (mine.metadata, [f.id for f in mine.fields]) == (other.metadata, [f.id for f in other.fields])


@pytest.mark.parametrize("name", COLUMNS)
def test_the_reference_searches_our_index(dataset_uri: str, name: str) -> None:
    dataset = dataset_of(dataset_uri, COLUMNS[name])
    dataset = commit(dataset, train(dataset, BTree()))
    for text in FILTERS[name]:
        assert "ScalarIndexQuery" in dataset.scanner(filter=text).explain_plan(), text
        assert rows_of(dataset, text, indexed=True) == rows_of(dataset, text), text


@pytest.mark.parametrize("name", COLUMNS)
def test_we_search_an_index_of_the_reference(dataset_uri: str, name: str) -> None:
    dataset = dataset_of(dataset_uri, COLUMNS[name])
    dataset.create_scalar_index("x", "BTREE")
    index = load_index(root_of(dataset), *indices_of(dataset))
    for text in FILTERS[name]:
        query = BTree().serves(parse_filter(text, dataset.schema))
        assert query is not None, text
        assert index.search(query).addresses().tolist() == rows_of(dataset, text), text


@pytest.mark.parametrize("name", ["int", "unsigned", "text", "nothing"])
def test_statistics_equal_those_of_the_reference(dataset_uri: str, name: str) -> None:
    dataset = dataset_of(dataset_uri, COLUMNS[name])
    dataset.create_scalar_index("x", "BTREE")
    index = load_index(root_of(dataset), *indices_of(dataset))
    assert index.statistics() == dataset.stats.index_stats("x_idx")["indices"][0]


def test_our_index_in_a_table_with_stable_row_ids_holds_addresses(dataset_uri: str) -> None:
    dataset = dataset_of(dataset_uri, COLUMNS["int"], stable=True)
    dataset.delete("n < 5")
    dataset.optimize.compact_files()  # ids and addresses differ from here on
    dataset = commit(dataset, train(dataset, BTree(), stable=True))
    for text in FILTERS["int"]:
        assert "ScalarIndexQuery" in dataset.scanner(filter=text).explain_plan()
        assert rows_of(dataset, text, indexed=True) == rows_of(dataset, text), text


def test_the_reference_remaps_and_extends_our_index(dataset_uri: str) -> None:
    import lance

    dataset = dataset_of(dataset_uri, COLUMNS["text"])
    dataset = commit(dataset, train(dataset, BTree()))
    lance.write_dataset(pa.table({"x": ["k00010é", None, "new"], "n": [-1, -2, -3]}), dataset_uri, mode="append")
    dataset = lance.dataset(dataset_uri)
    dataset.optimize.optimize_indices()
    dataset.delete("n % 3 = 0")
    dataset.optimize.compact_files()
    [metadata] = indices_of(dataset)
    assert metadata.fragment_bitmap == BitMap(fragment.fragment_id for fragment in dataset.get_fragments())
    for text in [*FILTERS["text"], "x = 'new'"]:
        assert rows_of(dataset, text, indexed=True) == rows_of(dataset, text), text
        query = BTree().serves(parse_filter(text, dataset.schema))
        assert query is not None
        assert load_index(root_of(dataset), metadata).search(query).addresses().tolist() == rows_of(dataset, text), text


def test_both_remap_an_index_alike(dataset_uri: str) -> None:
    dataset = dataset_of(dataset_uri, COLUMNS["int"])
    dataset.create_scalar_index("x", "BTREE")
    [old] = indices_of(dataset)
    dataset.delete("n % 7 < 3 AND n < 8000")
    before = {row["n"]: row["_rowaddr"] for row in numbered(dataset)}
    sizes = {fragment.fragment_id: fragment.physical_rows for fragment in dataset.get_fragments()}
    dataset.optimize.compact_files()
    [new] = indices_of(dataset)

    live = set(before.values())
    olds = tuple(
        OldFragment(number, size, tuple(offset for offset in range(size) if number << 32 | offset not in live))
        for number, size in sizes.items()
    )
    news = tuple(NewFragment(fragment.fragment_id, fragment.physical_rows) for fragment in dataset.get_fragments())
    moved = RowAddressMap((RewrittenGroup(olds, news),))
    assert {number: int(moved.remap(np.array([address], np.uint64))[0]) for number, address in before.items()} == {
        row["n"]: row["_rowaddr"] for row in numbered(dataset)
    }
    ours, theirs = MemoryStore(), root_of(dataset).child(new.directory)
    load_index(root_of(dataset), old).remap(moved, ours)
    assert rows_by_key(ours).equals(rows_by_key(theirs))
    assert pages_of(ours).equals(pages_of(theirs))


@pytest.mark.parametrize("name", ["int", "text", "flag"])
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_the_reference_searches_an_index_whose_pages_we_copied(dataset_uri: str, name: str, maker: str) -> None:
    import lance

    import lance_ops

    dataset = dataset_of(dataset_uri, COLUMNS[name])
    if maker == "theirs":
        dataset.create_scalar_index("x", "BTREE")
    else:
        lance_ops.dataset(dataset_uri).create_scalar_index("x", "BTREE")
    [before] = indices_of(lance.dataset(dataset_uri))
    lance_ops.dataset(dataset_uri).optimize.compact_files()
    dataset = lance.dataset(dataset_uri)
    assert len(dataset.get_fragments()) == 1
    [metadata] = indices_of(dataset)
    old, new = (root_of(dataset).child(index.directory) for index in (before, metadata))
    assert new.get(PAGE_LOOKUP).equals(old.get(PAGE_LOOKUP))
    old_data, new_data = FileReader(old, PAGE_DATA), FileReader(new, PAGE_DATA)
    (old_page,), (new_page,) = old_data.column(0).pages, new_data.column(0).pages
    assert [old_data.buffer(at) for at in old_page.buffers] == [new_data.buffer(at) for at in new_page.buffers]
    for text in FILTERS[name]:
        assert "ScalarIndexQuery" in dataset.scanner(filter=text).explain_plan()
        assert rows_of(dataset, text, indexed=True) == rows_of(dataset, text), text


def test_both_merge_segments_alike(dataset_uri: str) -> None:
    import lance

    dataset = dataset_of(dataset_uri, COLUMNS["float"])
    dataset.create_scalar_index("x", "BTREE")
    [first] = indices_of(dataset)
    for values in ([math.nan, None, -0.0], [5.0, 0.0, None, 1e300]):
        table = pa.table({"x": pa.array(values, pa.float64()), "n": list(range(len(values)))})
        lance.write_dataset(table, dataset_uri, mode="append")
        dataset = lance.dataset(dataset_uri)
        if len(indices_of(dataset)) == 1:
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
    segments = indices_of(dataset)
    assert [segment.uuid == first.uuid for segment in segments] == [True, False]
    dataset.optimize.optimize_indices(num_indices_to_merge=len(segments))
    [merged] = indices_of(dataset)

    fragments = dataset.get_fragments()
    new_rows = training_rows(fragments[-1])
    ours, theirs = MemoryStore(), root_of(dataset).child(merged.directory)
    loaded = [load_index(root_of(dataset), segment) for segment in segments]
    loaded[0].merge(loaded[1:], new_rows, ours, live_fragments=[fragment.fragment_id for fragment in fragments])
    assert rows_by_key(ours).equals(rows_by_key(theirs))
    assert pages_of(ours).equals(pages_of(theirs))


def numbered(dataset: lance.LanceDataset) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = dataset.to_table(columns=["n"], with_row_address=True).to_pylist()
    return rows
