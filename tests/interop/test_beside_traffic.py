"""Our compactions, deletes and updates commit after concurrent reference commits, where the reference gives up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.deletion import commit_deletion, find_rows, plan_deletion
from lance_ops.changing.row_updates import bind_updates, commit_update, plan_update, rewrite_rows
from lance_ops.core.errors import RetryableConflict
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import commit_rewrites, execute_rewrite
from lance_ops.reading.filters import bind_filter
from lance_ops.snapshot.snapshot import Snapshot

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

Rows = dict[int, int]
Commit = Callable[[], Snapshot]


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "value": pa.array([0] * (stop - start))})


def read(uri: str, version: int | None = None) -> Rows:
    """Return the rows of a version as both libraries read them, and check that both validate it."""
    ours, theirs = lance_ops.dataset(uri, version), lance.dataset(uri, version=version)
    ours.validate()
    theirs.validate()
    table = ours.to_table()
    assert table == theirs.to_table()
    assert ours.count_rows() == theirs.count_rows() == table.num_rows
    ids = table.column("id").to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, table.column("value").to_pylist(), strict=True))


def planned_compaction(snapshot: Snapshot, target: int = 1000) -> Commit:
    tasks = plan_compaction(snapshot, CompactionOptions(target, materialize_deletions_threshold=0)).tasks
    rewrites = [execute_rewrite(task) for task in tasks]
    return lambda: commit_rewrites(snapshot, rewrites)[0]


def planned_deletion(snapshot: Snapshot, predicate: str) -> Commit:
    plan = plan_deletion(snapshot, bind_filter(snapshot, predicate))
    found = [find_rows(task) for task in plan.tasks]
    return lambda: commit_deletion(plan, found)[0]


def planned_update(snapshot: Snapshot, predicate: str) -> Commit:
    plan = plan_update(snapshot, bind_updates(snapshot, {"value": "value + 1"}), bind_filter(snapshot, predicate))
    outcomes = [rewrite_rows(task) for task in plan.tasks]
    return lambda: commit_update(plan, outcomes)[0]


@pytest.fixture
def uri(dataset_uri: str) -> str:
    """Five fragments of twenty rows by the reference, an index on `id`, one row deleted."""
    lance.write_dataset(rows(0, 100), dataset_uri, max_rows_per_file=20)
    dataset = lance.dataset(dataset_uri)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 42")
    return dataset_uri


def merge_insert(dataset: Any) -> None:
    new = pa.table({"id": pa.array([7, 200], pa.int64()), "value": pa.array([9, 9])})
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)


def whole_fragment(dataset: Any) -> None:
    dataset.delete("id >= 20 and id < 40")


THEIRS: dict[str, tuple[Callable[[Any], object], Callable[[Rows], object]]] = {
    "Delete": (lambda dataset: dataset.delete("id % 9 = 1"), lambda known: [known.pop(i) for i in range(1, 100, 9)]),
    "Delete all of one": (whole_fragment, lambda known: [known.pop(i, 0) for i in range(20, 40)]),
    "Update": (lambda dataset: dataset.update({"value": "5"}, where="id = 8"), lambda known: known.update({8: 5})),
    "MergeInsert": (merge_insert, lambda known: known.update({7: 9, 200: 9})),
    "CreateIndex": (lambda dataset: dataset.create_scalar_index("value", "BTREE"), lambda known: None),
    "Append": (
        lambda dataset: dataset.insert(rows(300, 310)),
        lambda known: known.update(dict.fromkeys(range(300, 310), 0)),
    ),
    "Rewrite": (lambda dataset: dataset.optimize.compact_files(), lambda known: None),
}


@pytest.mark.parametrize("theirs", [name for name in THEIRS if name != "Rewrite"])
def test_our_compaction_commits_after_a_concurrent_reference_transaction(uri: str, theirs: str) -> None:
    known = read(uri)
    commit = planned_compaction(lance_ops.dataset(uri).snapshot)
    act, note = THEIRS[theirs]
    act(lance.dataset(uri))
    note(known)

    committed = commit()

    assert read(uri) == known
    assert len(committed.fragments) == (1 if theirs in ("Delete", "Delete all of one", "CreateIndex") else 2)
    for column in ("id", "value") if theirs == "CreateIndex" else ("id",):
        for number in (1, 5, 7, 8, 21, 42, 99):
            predicate = f"{column} = {number}"
            found = {key: value for key, value in known.items() if (key if column == "id" else value) == number}
            for dataset in (lance_ops.dataset(uri), lance.dataset(uri)):
                assert "ScalarIndexQuery" in dataset.scanner(filter=predicate).explain_plan()
                assert sorted(dataset.to_table(filter=predicate).column("id").to_pylist()) == sorted(found)


@pytest.mark.parametrize("ours", ["Delete", "Update"])
@pytest.mark.parametrize(
    "chain", [["Rewrite"], ["Delete", "Rewrite", "Append", "Rewrite", "Delete all of one"]], ids=len
)
def test_our_change_commits_after_their_concurrent_compactions(uri: str, ours: str, chain: list[str]) -> None:
    known = read(uri)
    snapshot = lance_ops.dataset(uri).snapshot
    plan = planned_deletion if ours == "Delete" else planned_update
    commit = plan(snapshot, "id in (3, 44, 81)")
    for name in chain:
        act, note = THEIRS[name]
        act(lance.dataset(uri))
        note(known)

    commit()

    for number in (3, 44, 81):
        known[number] += 1
        if ours == "Delete":
            del known[number]
    assert read(uri) == known


def test_compactions_of_different_fragments_by_both_libraries_commit(uri: str) -> None:
    known = read(uri)
    snapshot = lance_ops.dataset(uri).snapshot
    tasks = plan_compaction(snapshot, CompactionOptions(40)).tasks
    assert [task.fragment_ids for task in tasks] == [(0, 1), (2, 3, 4)]
    rewrites = [execute_rewrite(tasks[0])]
    lance.dataset(uri).optimize.compact_files(excluded_fragment_ids=[0, 1])

    committed, _ = commit_rewrites(snapshot, rewrites)

    assert read(uri) == known
    assert len(committed.fragments) == 2
    for dataset in (lance_ops.dataset(uri), lance.dataset(uri)):
        assert "ScalarIndexQuery" in dataset.scanner(filter="id = 70").explain_plan()
        assert sorted(dataset.to_table(filter="id in (3, 42, 70)").column("id").to_pylist()) == [3, 70]


@pytest.mark.parametrize("seed", range(4))
def test_random_interleavings_read_the_same_at_every_version(dataset_uri: str, seed: int) -> None:
    """Our changes are planned on old versions and committed later, after changes of the reference."""
    random, next_id = Random(seed), 60
    lance.write_dataset(rows(0, next_id), dataset_uri, max_rows_per_file=12)
    lance.dataset(dataset_uri).create_scalar_index("id", "BTREE")
    known: Rows = dict.fromkeys(range(next_id), 0)
    history = {1: dict(known), 2: dict(known)}
    waiting: list[tuple[Commit, str, list[int]]] = []
    landed = 0
    for _ in range(26):
        chosen = random.sample(sorted(known), 3)
        predicate = f"id in ({', '.join(map(str, chosen))})"
        theirs = lance.dataset(dataset_uri)
        match random.choice(["plan", "plan", "plan", *["commit"] * 3, "delete", "update", "append", "compact"]):
            case "plan":
                old = lance_ops.dataset(dataset_uri, max(2, theirs.version - random.randint(0, 3))).snapshot
                ids = [i for i in chosen if i in history[old.version]]
                kind = random.choice(["delete", "update", "compact"])
                if kind == "compact":
                    waiting.append((planned_compaction(old, random.choice([20, 1000])), kind, ids))
                elif ids:
                    plan = planned_deletion if kind == "delete" else planned_update
                    waiting.append((plan(old, predicate), kind, ids))
            case "commit" if waiting:
                commit, kind, ids = waiting.pop(random.randrange(len(waiting)))
                with suppress(RetryableConflict):
                    commit()
                    landed += 1
                    known |= {i: known[i] + 1 for i in ids if kind == "update"}
                    known = {i: value for i, value in known.items() if kind != "delete" or i not in ids}
            case "delete":
                theirs.delete(predicate)
                known = {i: value for i, value in known.items() if i not in chosen}
            case "update":
                theirs.update({"value": "value + 1"}, where=predicate)
                known |= {i: known[i] + 1 for i in chosen}
            case "append":
                theirs.insert(rows(next_id, next_id + 8))
                known |= dict.fromkeys(range(next_id, next_id + 8), 0)
                next_id += 8
            case "compact":
                theirs.optimize.compact_files(materialize_deletions_threshold=0.0)
        for version in range(max(history) + 1, lance.dataset(dataset_uri).version + 1):
            history[version] = dict(known)
    assert landed
    for version, expected in history.items():
        assert read(dataset_uri, version) == expected
