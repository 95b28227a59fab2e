"""All files that a version names are durable before the version exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import LanceDataset
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.committers.opening import DatasetRoot
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR, INDICES_DIR
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index, reindex
from lance_ops.maintenance.indexing.segment_commit import commit_segment
from lance_ops.refs import PINS_DIR, pinned, pinned_with_later
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot
from lance_ops.store import LocalStore, Store
from lance_ops.store.local.begin_fsync import begin_fsync
from lance_ops.table import IndexMetadata
from lance_ops.writing.commit import create_dataset
from lance_ops.writing.fragment_limits import FragmentLimits
from lance_ops.writing.fragment_writer import write_new_table
from tests.fleeting_store import FleetingStore

pytestmark = pytest.mark.usefixtures("on_disk")

ROWS = pa.table({"id": range(40), "value": [float(row) for row in range(40)], "text": ["x"] * 40})
PATCH = ["id", "value"]
NEW = pa.table({"id": [3, 5, 77], "value": [0.0, 1.0, 2.0], "text": ["y"] * 3})


def _index_by_tasks(dataset: LanceDataset) -> object:
    return create_scalar_index(dataset.snapshot, "value", "BTREE", runner=InThreads(1), sizes=TaskSizes(least_bytes=1))


def _index_beside_a_compaction(dataset: LanceDataset, kind: str) -> None:
    """Let a compaction commit between the build of an index and its commit, so that the index is remapped."""

    def compact_first(snapshot: Snapshot, new: IndexMetadata, replaced: tuple[IndexMetadata, ...]) -> Snapshot:
        LanceDataset.of(snapshot).optimize.compact_files()
        made = commit_segment(snapshot, new, replaced)
        assert new.uuid not in {index.uuid for index in made.manifest.indices}
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reindex, "commit_segment", compact_first)
        dataset.create_scalar_index("value", kind)


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
    "index": lambda dataset: dataset.create_scalar_index("value", "BTREE"),
    "index by zones": lambda dataset: dataset.create_scalar_index("value", "ZONEMAP"),
    "index by tasks": _index_by_tasks,
    "index beside a compaction": lambda dataset: _index_beside_a_compaction(dataset, "BTREE"),
    "index by zones beside a compaction": lambda dataset: _index_beside_a_compaction(dataset, "ZONEMAP"),
    "extend an index": lambda dataset: dataset.optimize.optimize_indices(),
}


def table(store: Store) -> LanceDataset:
    schema, limits = Schema.from_arrow(ROWS.schema), FragmentLimits(max_rows_per_file=10)
    schema, pending = write_new_table(store, [ROWS], schema, FileVersion.V2_2, limits)
    root = DatasetRoot(store, PutIfAbsentCommitter(store), {})
    snapshot = create_dataset(root, schema, pending, FileVersion.V2_2)
    return LanceDataset.of(snapshot)


def indexed_table(store: Store) -> LanceDataset:
    """Return a table with an index that does not cover the newest fragment."""
    dataset = table(store)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(ROWS.slice(0, 5))
    return dataset


@pytest.mark.parametrize("verb", VERBS)
def test_files_are_durable_before_the_version_that_names_them(verb: str) -> None:
    store = FleetingStore()
    dataset = indexed_table(store)
    before, files = dataset.version, set(store.list_names(DATA_DIR))

    VERBS[verb](dataset)

    assert dataset.latest_version > before
    writes_rows = verb != "delete" and not verb.startswith(("index", "extend"))
    assert set(store.list_names(DATA_DIR)) - files or not writes_rows
    named = tuple(f"{folder}/" for folder in (DATA_DIR, DELETIONS_DIR, INDICES_DIR))
    *_, lost_with_newest = store.lost_with.values()
    assert not [path for path in lost_with_newest if path.startswith(named)]


class Waves:
    """How often this process has begun to sync files together."""

    number = 0


@pytest.fixture
def waves(monkeypatch: pytest.MonkeyPatch) -> Waves:
    """Count the waves of syncs."""
    waves = Waves()

    def counting(descriptors: Sequence[int]) -> Callable[[], None]:
        waves.number += 1
        return begin_fsync(descriptors)

    monkeypatch.setattr("lance_ops.store.local.syncing.begin_fsync", counting)
    return waves


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_waits_for_the_disk_twice_for_each_commit(verb: str, tmp_path: Path, waves: Waves) -> None:
    dataset = indexed_table(LocalStore(str(tmp_path / "table.lance")))
    before, waves.number = dataset.version, 0

    VERBS[verb](dataset)

    commits = lance_ops.dataset(dataset.uri).version - before
    assert waves.number == 2 * commits > 0


def test_marks_of_clean_ups_and_pins_are_never_waited_for(tmp_path: Path, waves: Waves) -> None:
    dataset = indexed_table(LocalStore(str(tmp_path / "table.lance")))
    waves.number = 0
    with pinned(dataset.snapshot), pinned_with_later(dataset.snapshot):
        assert len(list(dataset.snapshot.store.list(PINS_DIR))) == 2
    assert dataset.cleanup_old_versions(timedelta(0)).old_versions == dataset.version - 1
    assert waves.number == 0


def test_files_of_a_transaction_that_is_handed_out_are_durable() -> None:
    store = FleetingStore()
    dataset = table(store)
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()

    merge.execute_uncommitted(NEW)
    (fragment, *_) = dataset.get_fragments()
    fragment.delete("id = 2")
    fragment.merge_columns({"more": "id + 1"})

    assert not store.fleeting
