"""One process compacts and reindexes in a loop while others append, delete and update."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import commit_rewrites, execute_rewrite

WRITERS, FIRST_ROWS, ROWS = 2, 40, 5


def rows(writer: int, start: int, stop: int) -> pa.Table:
    """Rows that only one writer changes."""
    numbers = list(range(start, stop))
    ids = pa.array([number * WRITERS + writer for number in numbers], pa.int64())
    return pa.table({"id": ids, "value": pa.array([0] * len(numbers), pa.int64())})


def write(uri: str, writer: int, turns: int, outcome: str) -> None:
    """Append, delete and update, and then write the expected rows to a file."""
    random = Random(writer)
    known = dict.fromkeys(rows(writer, 0, FIRST_ROWS).column("id").to_pylist(), 0)
    for turn in range(turns):
        start = FIRST_ROWS + turn * ROWS
        new = rows(writer, start, start + ROWS)
        lance_ops.write_dataset(new, uri, mode="append")
        known |= dict.fromkeys(new.column("id").to_pylist(), 0)
        gone, *changed = random.sample(sorted(known), 4)
        dataset = lance_ops.dataset(uri)
        assert dataset.delete(f"id = {gone}", conflict_retries=50)["num_deleted_rows"] == 1
        known.pop(gone)
        condition = f"id in ({', '.join(map(str, changed))})"
        assert dataset.update({"value": "value + 1"}, condition, conflict_retries=50)["num_rows_updated"] == 3
        known |= {number: known[number] + 1 for number in changed}
    Path(outcome).write_text(json.dumps(known))


def compact(uri: str, done: str) -> None:
    """Compact in a loop. A conflict is an error, since no concurrent change may make a rewrite useless."""
    compactions = 0
    while not Path(done).exists() or not compactions:
        snapshot = lance_ops.dataset(uri).snapshot
        plan = plan_compaction(snapshot, CompactionOptions(materialize_deletions_threshold=0.0))
        _, metrics = commit_rewrites(snapshot, [execute_rewrite(task) for task in plan.tasks])
        compactions += metrics.fragments_removed > 0
        lance_ops.dataset(uri).optimize.optimize_indices()
    Path(done).write_text(str(compactions))


def run_beside(uri: str, folder: Path, turns: int) -> None:
    for writer in range(WRITERS):
        lance_ops.write_dataset(rows(writer, 0, FIRST_ROWS), uri, mode="append")
    lance_ops.dataset(uri).create_scalar_index("id", "BTREE")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # otherwise each process imports the library
    outcomes = [folder / f"writer{writer}" for writer in range(WRITERS)]
    writers = [
        context.Process(target=write, args=(uri, writer, turns, str(outcome)))
        for writer, outcome in enumerate(outcomes)
    ]
    done = folder / "done"
    upkeep = context.Process(target=compact, args=(uri, str(done)))
    for process in (upkeep, *writers):
        process.start()
    for process in writers:
        process.join()
    done.touch()
    upkeep.join()

    assert [process.exitcode for process in (*writers, upkeep)] == [0] * (WRITERS + 1)
    assert int(done.read_text()) >= 1
    known: dict[int, int] = {}
    for outcome in outcomes:
        known |= {int(key): value for key, value in json.loads(outcome.read_text()).items()}
    dataset = lance_ops.dataset(uri)
    dataset.validate()
    found = dataset.to_table()
    assert found.num_rows == len(known)
    assert dict(zip(found.column("id").to_pylist(), found.column("value").to_pylist(), strict=True)) == known
    assert "ScalarIndexQuery" in dataset.scanner(filter="id < 60").explain_plan()
    by_index = dataset.to_table(filter="id < 60").column("id").to_pylist()
    assert sorted(by_index) == sorted(number for number in known if number < 60)


def test_compaction_commits_beside_concurrent_writers(dataset_uri: str, tmp_path: Path) -> None:
    run_beside(dataset_uri, tmp_path, turns=8)


@pytest.mark.soak
def test_compaction_commits_beside_concurrent_writers_for_long(dataset_uri: str, tmp_path: Path) -> None:
    started = time.monotonic()
    while time.monotonic() - started < 600:
        folder = tmp_path / f"{time.monotonic_ns()}"
        folder.mkdir()
        run_beside(f"{folder}/data.lance", folder, turns=150)
