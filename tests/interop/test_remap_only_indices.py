"""Indices of kinds that only the reference builds and searches: it finds every row by them after our compactions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import UnsupportedFeature
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import commit_rewrites, execute_rewrite
from lance_ops.table import IndexDetails
from lance_ops.transactions import CreateIndex
from lance_ops.writing.commit import commit_operation

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION, WORD = 600, 8, "seven"
SCALAR = {"BITMAP": "number", "LABEL_LIST": "labels", "NGRAM": "text"}
VECTOR = ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ"]
KINDS = [*SCALAR, "INVERTED", *VECTOR]
FILTERS = {
    "BITMAP": "number = 7",
    "LABEL_LIST": f"array_has_any(labels, ['{WORD}'])",
    "NGRAM": f"contains(text, '{WORD}')",
}


def is_wanted(number: int) -> bool:
    return number % 11 == 7


def rows(first: int, stop: int) -> pa.Table:
    """Rows of which one in eleven is wanted, by each column; there are nulls, and vectors of which no two are near."""
    ids = range(first, stop)
    random = np.random.default_rng(first)
    vectors = random.random((len(ids), DIMENSION), dtype=np.float32).reshape(-1)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "number": pa.array([7 if is_wanted(n) else None if n % 13 == 0 else n % 5 for n in ids], pa.int64()),
            "labels": [[WORD, "all"] if is_wanted(n) else None if n % 13 == 0 else ["all"] for n in ids],
            "text": [f"row {WORD} of many" if is_wanted(n) else None if n % 13 == 0 else "another row" for n in ids],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
        }
    )


def build(uri: str, kind: str) -> None:
    dataset = lance.dataset(uri)
    if kind in VECTOR:
        parts = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
        dataset.create_index("vector", kind, name="remap_only", num_partitions=3, **parts)
    else:
        dataset.create_scalar_index(SCALAR.get(kind, "text"), kind, name="remap_only")


def found(uri: str, kind: str) -> list[int]:
    """Return the ids that the reference finds by the index alone: all of them by vectors, the wanted ones otherwise."""
    dataset = lance.dataset(uri)
    asked: dict[str, Any] = {"fast_search": True}
    if kind in VECTOR:
        everything = {"column": "vector", "q": np.zeros(DIMENSION, np.float32), "k": 4 * NUM_ROWS, "nprobes": 3}
        asked["nearest"] = everything | ({"ef": 4 * NUM_ROWS} if "HNSW" in kind else {})
    elif kind == "INVERTED":
        asked["full_text_query"] = WORD
    else:
        asked["filter"] = FILTERS[kind]
        assert "ScalarIndexQuery" in dataset.scanner(**asked).explain_plan()
    ids: list[int] = sorted(dataset.to_table(columns=["id"], **asked)["id"].to_pylist())
    return ids


def check(uri: str, kind: str, live: list[int]) -> None:
    assert lance_ops.dataset(uri).to_table().sort_by("id")["id"].to_pylist() == live
    assert lance.dataset(uri).stats.index_stats("remap_only")["num_unindexed_rows"] == 0
    assert found(uri, kind) == [n for n in live if kind in VECTOR or is_wanted(n)]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = lance.write_dataset(rows(0, NUM_ROWS), str(tmp_path / "table.lance"), max_rows_per_file=NUM_ROWS // 6)
    return str(made.uri)


Compaction = Callable[[str], object]


def ours(uri: str) -> None:
    compacted = lance_ops.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0.0)
    assert compacted.fragments_removed


def clustered(uri: str) -> None:
    lance_ops.dataset(uri).optimize.compact_files(cluster_by=["text", "id"], target_rows_per_fragment=200)


def theirs(uri: str) -> None:
    lance.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_finds_every_row_once_by_an_index_that_a_compaction_remapped(uri: str, kind: str) -> None:
    build(uri, kind)
    live = list(range(NUM_ROWS))
    for step, compact in enumerate([ours, clustered, theirs, ours]):
        lance.dataset(uri).delete(f"id % 19 = {step}")
        lance_ops.dataset(uri).delete(f"id % 23 = {step}")
        live = [n for n in live if n % 19 != step and n % 23 != step]
        compact(uri)
        check(uri, kind, live)
        added = NUM_ROWS * (step + 1)
        lance.dataset(uri).insert(rows(added, added + 40))
        lance.dataset(uri).optimize.optimize_indices()
        live += range(added, added + 40)
        check(uri, kind, live)


@pytest.mark.parametrize("kind", ["BITMAP", "INVERTED", "IVF_HNSW_SQ"])
def test_an_index_that_comes_while_a_compaction_works_is_remapped_too(uri: str, kind: str) -> None:
    lance.dataset(uri).delete("id % 10 = 0")
    snapshot = lance_ops.dataset(uri).snapshot
    options = CompactionOptions(materialize_deletions_threshold=0.0)
    rewrites = [execute_rewrite(task) for task in plan_compaction(snapshot, options).tasks]
    build(uri, kind)
    lance.dataset(uri).delete("id % 10 = 1")
    commit_rewrites(snapshot, rewrites)
    check(uri, kind, [n for n in range(NUM_ROWS) if n % 10 > 1])


def test_no_reader_looks_for_rows_of_a_fragment_that_was_emptied_during_the_compaction(uri: str) -> None:
    build(uri, "IVF_FLAT")
    snapshot = lance_ops.dataset(uri).snapshot
    options = CompactionOptions(target_rows_per_fragment=NUM_ROWS // 2)
    rewrites = [execute_rewrite(task) for task in plan_compaction(snapshot, options).tasks]
    assert len(rewrites) == 2
    lance_ops.dataset(uri).delete(f"id < {NUM_ROWS // 2}")
    commit_rewrites(snapshot, rewrites)
    check(uri, "IVF_FLAT", list(range(NUM_ROWS // 2, NUM_ROWS)))


def test_a_bloom_filter_covers_no_rows_that_moved(uri: str) -> None:
    lance.dataset(uri).create_scalar_index("number", "BLOOMFILTER", name="remap_only")
    ours(uri)
    assert lance.dataset(uri).stats.index_stats("remap_only")["num_indexed_rows"] == 0
    assert lance.dataset(uri).count_rows("number = 7") == sum(map(is_wanted, range(NUM_ROWS)))


def test_rows_beneath_an_index_of_an_unknown_kind_do_not_move(uri: str) -> None:
    build(uri, "BITMAP")
    snapshot = lance_ops.dataset(uri).snapshot
    [index] = snapshot.manifest.indices
    strange = replace(index, uuid=uuid.uuid4(), name="strange", details=IndexDetails("/lance.table.StrangeDetails"))
    commit_operation(snapshot, CreateIndex((strange,), (index,)))
    before = lance_ops.dataset(uri).version
    with pytest.raises(UnsupportedFeature, match="'strange'.*StrangeDetails.*drop the index"):
        lance_ops.dataset(uri).optimize.compact_files()
    assert lance_ops.dataset(uri).version == before
