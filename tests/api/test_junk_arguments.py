"""Every public argument given junk: the call works, or raises an error of this library, `TypeError` or `ValueError`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import LanceOpsError, WrongType
from lance_ops.store import MemoryStore

ROWS = pa.table(
    {
        "id": range(8),
        "text": [f"x{number}" for number in range(8)],
        "l": [[{"item": number}] for number in range(8)],
        "s": [{"a": number} for number in range(8)],
    }
)

JUNK: dict[str, Any] = {
    "negative": -1,
    "far negative": -(2**70),
    "largest": 2**63 - 1,
    "largest unsigned": 2**64 - 1,
    "huge": 2**70,
    "fraction": 1.5,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "text": "no such",
    "empty text": "",
    "NUL": "a\0b",
    "half a condition": "id >",
    "bytes": b"x",
    "empty list": [],
    "negative items": [-1],
    "largest items": [2**63 - 1],
    "huge items": [2**70],
    "fraction items": [1.5],
    "not a number items": [float("nan")],
    "text items": ["no such"],
    "empty text items": [""],
    "same items": ["id", "id"],
    "items of a list": ["l.item"],
    "null items": [None],
    "mapping": {"a": 1},
    "mapping of text": {"a": "no such"},
    "object": object(),
    "numpy number": np.int64(-1),
    "numpy fraction": np.float64(1.5),
    "numpy matrix": np.zeros((2, 2), np.int64),
    "numpy objects": np.array([object()]),
    "numpy text": np.array(["a"]),
    "arrow text": pa.array(["a"]),
    "arrow nulls": pa.array([None, 1]),
    "switch": True,
    "set": {1},
    "pair": ("no such", 1),
    "class": int,
    "date": date(2020, 1, 1),
}

Call = Callable[[lance_ops.LanceDataset, Any], object]


def merge(dataset: lance_ops.LanceDataset) -> Any:
    return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()


def commit(dataset: lance_ops.LanceDataset, **arguments: Any) -> object:
    append: Any = lance_ops.LanceOperation.Append([])
    return type(dataset).commit(dataset.uri, **{"operation": append, "read_version": 1, **arguments})


def write(dataset: lance_ops.LanceDataset, **arguments: Any) -> object:
    return lance_ops.write_dataset(**{"data_obj": ROWS, "uri": dataset.uri, "mode": "append", **arguments})


CALLS: dict[str, Call] = {
    "take": lambda d, junk: d.take(junk),
    "take columns": lambda d, junk: d.take([0], columns=junk),
    "_take_rows": lambda d, junk: d._take_rows(junk),
    "_take_rows columns": lambda d, junk: d._take_rows([0], columns=junk),
    "take_blobs": lambda d, junk: d.take_blobs(junk, indices=[0]),
    "sample": lambda d, junk: d.sample(junk),
    "head": lambda d, junk: d.head(junk),
    "slice start": lambda d, junk: d.slice(junk, 3),
    "slice end": lambda d, junk: d.slice(0, junk),
    "count_rows": lambda d, junk: d.count_rows(junk),
    "columns": lambda d, junk: d.to_table(columns=junk),
    "filter": lambda d, junk: d.to_table(filter=junk),
    "limit": lambda d, junk: d.to_table(limit=junk),
    "offset": lambda d, junk: d.to_table(offset=junk),
    "batch_size": lambda d, junk: list(d.to_batches(batch_size=junk)),
    "batch_size_bytes": lambda d, junk: list(d.to_batches(batch_size_bytes=junk)),
    "batch_readahead": lambda d, junk: d.to_table(batch_readahead=junk),
    "fragment_readahead": lambda d, junk: d.to_table(fragment_readahead=junk),
    "io_buffer_size": lambda d, junk: d.to_table(io_buffer_size=junk),
    "late_materialization": lambda d, junk: d.to_table(filter="id > 3", late_materialization=junk),
    "blob_handling": lambda d, junk: d.to_table(blob_handling=junk),
    "order_by": lambda d, junk: d.to_table(order_by=junk),
    "fragments": lambda d, junk: d.scanner(fragments=junk).to_table(),
    "row_addr_allowlist": lambda d, junk: d.scanner(row_addr_allowlist=junk).to_table(),
    "with_row_id": lambda d, junk: d.to_table(with_row_id=junk),
    "scanner head": lambda d, junk: d.scanner().head(junk),
    "delete": lambda d, junk: d.delete(junk),
    "delete retries": lambda d, junk: d.delete("id = 1", conflict_retries=junk),
    "update": lambda d, junk: d.update(junk),
    "update value": lambda d, junk: d.update({"id": junk}),
    "update where": lambda d, junk: d.update({"id": "1"}, where=junk),
    "merge on": lambda d, junk: d.merge_insert(junk).when_not_matched_insert_all().execute(ROWS),
    "merge data": lambda d, junk: merge(d).execute(junk),
    "merge condition": lambda d, junk: merge(d).when_matched_update_all(junk).execute(ROWS),
    "merge by source": lambda d, junk: merge(d).when_not_matched_by_source_delete(junk).execute(ROWS),
    "merge retries": lambda d, junk: merge(d).conflict_retries(junk).execute(ROWS),
    "merge timeout": lambda d, junk: merge(d).retry_timeout(junk).execute(ROWS),
    "insert": lambda d, junk: d.insert(junk),
    "insert mode": lambda d, junk: d.insert(ROWS, mode=junk),
    "write data": lambda d, junk: write(d, data_obj=junk),
    "write schema": lambda d, junk: write(d, schema=junk),
    "write mode": lambda d, junk: write(d, mode=junk),
    "write rows": lambda d, junk: write(d, max_rows_per_file=junk),
    "write bytes": lambda d, junk: write(d, max_bytes_per_file=junk),
    "write version": lambda d, junk: write(d, data_storage_version=junk),
    "write options": lambda d, junk: write(d, storage_options=junk),
    "write properties": lambda d, junk: write(d, transaction_properties=junk),
    "open version": lambda d, junk: lance_ops.dataset(d.uri, version=junk),
    "open asof": lambda d, junk: lance_ops.dataset(d.uri, asof=junk),
    "open options": lambda d, junk: lance_ops.dataset(d.uri, storage_options=junk),
    "open cache": lambda d, junk: lance_ops.dataset(d.uri, metadata_cache_size_bytes=junk),
    "open scan options": lambda d, junk: lance_ops.dataset(d.uri, default_scan_options=junk).to_table(),
    "checkout": lambda d, junk: d.checkout_version(junk),
    "read_transaction": lambda d, junk: d.read_transaction(junk),
    "get_transactions": lambda d, junk: d.get_transactions(junk),
    "delta": lambda d, junk: d.delta(compared_against=junk),
    "tracked_files": lambda d, junk: d.tracked_files(min_version=junk).read_all(),
    "tag name": lambda d, junk: d.tags.create(junk, 1),
    "tag reference": lambda d, junk: d.tags.create(f"t{uuid.uuid4().hex}", junk),
    "tag update": lambda d, junk: d.tags.update("t", junk),
    "tag delete": lambda d, junk: d.tags.delete(junk),
    "tag get": lambda d, junk: d.tags.get_version(junk),
    "tag metadata": lambda d, junk: d.tags.replace_metadata("t", junk),
    "tag order": lambda d, junk: d.tags.list_ordered(junk),
    "branch name": lambda d, junk: d.create_branch(junk),
    "branch reference": lambda d, junk: d.create_branch(f"b{uuid.uuid4().hex}", junk),
    "branch delete": lambda d, junk: d.branches.delete(junk),
    "clone reference": lambda d, junk: d.shallow_clone(f"memory://{uuid.uuid4().hex}", junk),
    "add columns": lambda d, junk: d.add_columns(junk),
    "add expression": lambda d, junk: d.add_columns({f"n{uuid.uuid4().hex}": junk}),
    "drop columns": lambda d, junk: d.drop_columns(junk),
    "alter": lambda d, junk: d.alter_columns(junk),
    "alter path": lambda d, junk: d.alter_columns({"path": junk, "name": "z"}),
    "alter name": lambda d, junk: d.alter_columns({"path": "text", "name": junk}),
    "alter type": lambda d, junk: d.alter_columns({"path": "text", "data_type": junk}),
    "alter nullable": lambda d, junk: d.alter_columns({"path": "text", "nullable": junk}),
    "join": lambda d, junk: d.merge(junk, "id"),
    "join on": lambda d, junk: d.merge(pa.table({"id": [1], "z": [1]}), junk),
    "config": lambda d, junk: d.update_config(junk),
    "config keys": lambda d, junk: d.delete_config_keys(junk),
    "metadata": lambda d, junk: d.update_metadata(junk),
    "schema metadata": lambda d, junk: d.update_schema_metadata(junk),
    "field metadata": lambda d, junk: d.update_field_metadata(junk),
    "field metadata values": lambda d, junk: d.update_field_metadata({"id": junk}),
    "compact rows": lambda d, junk: d.optimize.compact_files(target_rows_per_fragment=junk),
    "compact threads": lambda d, junk: d.optimize.compact_files(num_threads=junk),
    "compact threshold": lambda d, junk: d.optimize.compact_files(materialize_deletions_threshold=junk),
    "compact batch": lambda d, junk: d.optimize.compact_files(batch_size=junk),
    "optimize": lambda d, junk: d.optimize.optimize_indices(index_names=junk),
    "clean up age": lambda d, junk: d.cleanup_old_versions(junk),
    "clean up retained": lambda d, junk: d.cleanup_old_versions(retain_versions=junk),
    "clean up versions": lambda d, junk: d.cleanup_old_versions(versions=junk),
    "index column": lambda d, junk: d.create_scalar_index(junk, "BTREE"),
    "index type": lambda d, junk: d.create_scalar_index("text", junk),
    "index type of a configuration": lambda d, junk: d.create_scalar_index("text", lance_ops.IndexConfig(junk)),
    "index parameters": lambda d, junk: d.create_scalar_index("text", lance_ops.IndexConfig("ZONEMAP", junk)),
    "index parameter": lambda d, junk: d.create_scalar_index(
        "text", lance_ops.IndexConfig("ZONEMAP", {"rows_per_zone": junk})
    ),
    "index name": lambda d, junk: d.create_scalar_index("text", "BTREE", name=junk),
    "index drop": lambda d, junk: d.drop_index(junk),
    "index stats": lambda d, junk: d.stats.index_stats(junk),
    "get_fragment": lambda d, junk: d.get_fragment(junk),
    "fragment take": lambda d, junk: d.get_fragments()[0].take(junk),
    "fragment head": lambda d, junk: d.get_fragments()[0].head(junk),
    "fragment delete": lambda d, junk: d.get_fragments()[0].delete(junk),
    "fragment columns": lambda d, junk: d.get_fragments()[0].to_table(columns=junk),
    "commit operation": lambda d, junk: commit(d, operation=junk),
    "commit version": lambda d, junk: commit(d, read_version=junk),
    "commit retries": lambda d, junk: commit(d, max_retries=junk),
}


@pytest.fixture(scope="module")
def template() -> MemoryStore:
    store = MemoryStore()
    dataset = lance_ops.write_dataset(ROWS, store.uri, max_rows_per_file=5)
    dataset.create_scalar_index("id", "BTREE")
    dataset.tags.create("t", 1)
    return store


@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_junk_works_or_names_what_is_wrong(template: MemoryStore, name: str) -> None:
    dataset = copied(template)
    for kind, junk in JUNK.items():
        before = dataset.latest_version
        error = error_of(CALLS[name], dataset, junk)
        if error is None:
            dataset = copied(template)
            continue
        is_typed = isinstance(error, LanceOpsError) or type(error) in (TypeError, ValueError)
        assert is_typed, f"{kind}: {error!r}"
        assert str(error), kind
        assert lance_ops.dataset(dataset.uri).version == before, f"{kind}: a commit beside {error!r}"


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("take", "indices"),
        ("limit", "limit"),
        ("delete", "predicate"),
        ("merge timeout", "timeout"),
        ("tag name", "tag"),
        ("clean up age", "older_than"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(template: MemoryStore, call: str, named: str) -> None:
    with pytest.raises(WrongType, match=named):
        CALLS[call](copied(template), object())


def error_of(call: Call, dataset: lance_ops.LanceDataset, junk: Any) -> Exception | None:
    try:
        call(dataset, junk)
    except Exception as error:  # noqa: BLE001 # which error it is, is the question
        return error
    return None


def copied(template: MemoryStore) -> lance_ops.LanceDataset:
    store = MemoryStore()
    for info in template.list():
        store.put(info.path, template.get(info.path))
    return lance_ops.dataset(store.uri)
