"""Shallow clones whose index the reference's compaction wrote beneath the clone, and looks for in the source."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

KEYS = [key for key in range(400) if key % 7]
"""The keys of the clone's rows: the others were deleted before its compaction."""


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    uri = str(tmp_path / "source")
    rows = pa.table({"key": range(400), "text": [f"t{key}" for key in range(400)]})
    made = lance_ops.write_dataset(rows, uri, max_rows_per_file=100, enable_stable_row_ids=request.param)
    made.create_scalar_index("key", "BTREE")
    return uri


@pytest.fixture
def clone(source: str, library: Any, tmp_path: Path) -> str:
    uri = str(tmp_path / "clone")
    original = library.dataset(source)
    original.shallow_clone(uri, original.version)
    compact_by_the_reference(uri)
    return uri


def compact_by_the_reference(uri: str) -> None:
    lance.dataset(uri).delete("key % 7 = 0")
    lance.dataset(uri).optimize.compact_files()
    misplaced = [index.base_id for index in lance_ops.dataset(uri).snapshot.manifest.indices]
    assert misplaced == [0], "the reference names the right base now: this module tests nothing"
    assert list(Path(uri, "_indices").iterdir())


def answers(dataset: lance_ops.LanceDataset) -> None:
    """Check what filters find, by the index where there is one, against all rows."""
    live = dataset.to_table(columns=["key"]).column("key").to_pylist()
    conditions: dict[str, Callable[[int], bool]] = {
        "key = 100": lambda key: key == 100,
        "key in (3, 7, 250)": lambda key: key in (3, 7, 250),
        "key > 390": lambda key: key > 390,
    }
    for condition, is_true in conditions.items():
        found = dataset.to_table(columns=["key"], filter=condition).column("key").to_pylist()
        assert sorted(found) == sorted(filter(is_true, live)), condition


def uses_index(dataset: lance_ops.LanceDataset) -> bool:
    return "ScalarIndexQuery" in dataset.scanner(filter="key = 100").explain_plan()


def delete(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.delete("key = 101")["num_deleted_rows"] == 1


def update(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.update({"text": "'new'"}, "key = 101")["num_rows_updated"] == 1


def merge(dataset: lance_ops.LanceDataset) -> None:
    rows = pa.table({"key": [101, 1000], "text": ["new", "new"]})
    dataset.merge_insert("key").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def compact(dataset: lance_ops.LanceDataset) -> None:
    dataset.insert(pa.table({"key": [1000], "text": ["new"]}))
    dataset.optimize.compact_files()


def optimize(dataset: lance_ops.LanceDataset) -> None:
    dataset.insert(pa.table({"key": [1000], "text": ["new"]}))
    dataset.optimize.optimize_indices()
    assert dataset.stats.index_stats("key_idx")["num_unindexed_rows"] == 0


def replace_index(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_scalar_index("key", "BTREE")


def clean_up(dataset: lance_ops.LanceDataset) -> None:
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)


VERBS: list[Callable[[lance_ops.LanceDataset], None]] = [
    delete,
    update,
    merge,
    compact,
    optimize,
    replace_index,
    clean_up,
]


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_a_misplaced_index_is_found_beneath_the_clone(clone: str) -> None:
    dataset = lance_ops.dataset(clone)
    assert dataset.to_table().column("key").to_pylist() == KEYS
    assert uses_index(dataset)
    answers(dataset)
    dataset.validate()
    assert dataset.stats.index_stats("key_idx")["num_indexed_rows"] == len(KEYS)
    listed = dataset.tracked_files().read_all().to_pylist()
    newest = [file for file in listed if file["type"] == "index file" and file["version"] == dataset.version]
    assert newest and all(Path(file["base_uri"], file["path"]).is_file() for file in newest)


@pytest.mark.parametrize("library", [lance])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_a_verb_on_a_clone_with_a_misplaced_index_keeps_it_right(
    clone: str, verb: Callable[[lance_ops.LanceDataset], None]
) -> None:
    verb(lance_ops.dataset(clone))
    after = lance_ops.dataset(clone)
    assert uses_index(after)
    answers(after)
    after.validate()


@pytest.mark.parametrize("library", [lance])
def test_a_clone_of_such_a_clone_finds_the_index_too(clone: str, tmp_path: Path) -> None:
    for library in (lance_ops, lance):
        again = str(tmp_path / f"again-{library.__name__}")
        original = library.dataset(clone)
        original.shallow_clone(again, original.version)
        dataset = lance_ops.dataset(again)
        assert uses_index(dataset)
        answers(dataset)
    deep = lance_ops.dataset(clone).deep_clone(str(tmp_path / "deep"), lance_ops.dataset(clone).version)
    assert uses_index(deep)
    answers(deep)
    assert lance.dataset(deep.uri).to_table(filter="key = 100").num_rows == 1


@pytest.mark.parametrize("library", [lance])
def test_a_clone_whose_index_is_nowhere_is_scanned_and_can_be_indexed_again(clone: str) -> None:
    shutil.rmtree(Path(clone) / "_indices")
    dataset = lance_ops.dataset(clone)
    assert not uses_index(dataset)
    answers(dataset)
    dataset.insert(pa.table({"key": [1000], "text": ["new"]}))
    dataset.optimize.compact_files()
    answers(dataset)
    dataset.optimize.optimize_indices()
    assert uses_index(dataset)
    answers(dataset)
    dataset.validate()
