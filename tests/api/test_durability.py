"""All files that a version names are durable before the version exists."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.committers.opening import DatasetRoot
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR, INDICES_DIR
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.writing.commit import create_dataset
from lance_ops.writing.fragment_limits import FragmentLimits
from lance_ops.writing.fragment_writer import write_new_table
from tests.fleeting_store import FleetingStore

ROWS = pa.table({"id": range(40), "value": [float(row) for row in range(40)], "text": ["x"] * 40})
PATCH = ["id", "value"]
NEW = pa.table({"id": [3, 5, 77], "value": [0.0, 1.0, 2.0], "text": ["y"] * 3})

VERBS: dict[str, Callable[[LanceDataset], object]] = {
    "delete": lambda dataset: dataset.delete("id % 7 = 1"),
    "update": lambda dataset: dataset.update({"value": "value + 1"}, "id % 7 = 1"),
    "upsert": lambda dataset: (
        dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(NEW)
    ),
    "merge in place": lambda dataset: (
        dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(NEW.select(PATCH))
    ),
    "add a column": lambda dataset: dataset.add_columns({"more": "id + 1"}),
    "cast a column": lambda dataset: dataset.alter_columns({"path": "id", "data_type": pa.int32()}),
    "compact": lambda dataset: dataset.optimize.compact_files(),
}


def table(store: FleetingStore) -> LanceDataset:
    schema, limits = Schema.from_arrow(ROWS.schema), FragmentLimits(max_rows_per_file=10)
    schema, pending = write_new_table(store, [ROWS], schema, FileVersion.V2_2, limits)
    root = DatasetRoot(store, PutIfAbsentCommitter(store), {})
    snapshot = create_dataset(root, schema, pending, FileVersion.V2_2)
    return LanceDataset.of(snapshot)


@pytest.mark.parametrize("verb", VERBS)
def test_files_are_durable_before_the_version_that_names_them(verb: str) -> None:
    store = FleetingStore()
    dataset = table(store)
    dataset.create_scalar_index("id", "BTREE")
    before, files = dataset.version, set(store.list_names(DATA_DIR))

    VERBS[verb](dataset)

    assert dataset.version > before
    assert set(store.list_names(DATA_DIR)) - files or verb == "delete"
    named = (f"{folder}/" for folder in (DATA_DIR, DELETIONS_DIR, INDICES_DIR))
    *_, lost_with_newest = store.lost_with.values()
    assert not [path for path in lost_with_newest if path.startswith(tuple(named))]


def test_files_of_a_transaction_that_is_handed_out_are_durable() -> None:
    store = FleetingStore()
    dataset = table(store)
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()

    merge.execute_uncommitted(NEW)
    (fragment, *_) = dataset.get_fragments()
    fragment.delete("id = 2")
    fragment.merge_columns({"more": "id + 1"})

    assert not store.fleeting
