"""The script that measures a driver whose tasks merge: its messages are those of a merge that is run."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

import lance_ops
from lance_ops.changing.merge_insert import MergeRequest, WhenMatched
from lance_ops.changing.merge_insert.by_tasks import SourceRows, TaskSizes, distributed_merge
from tests.bench.merge_driver import drive
from tests.pickling_runner import PicklingRunner


def test_the_driver_gets_messages_of_the_size_that_tasks_report(tmp_path: Path) -> None:
    ids = pa.table({"id": range(640), "value": [0.5] * 640})
    target = lance_ops.write_dataset(ids, tmp_path / "t.lance", max_rows_per_file=10).snapshot
    half = ids.set_column(0, "id", pa.array([n if n % 2 else n + 1000 for n in range(640)]))  # of each fragment's rows
    source = lance_ops.write_dataset(half, tmp_path / "s.lance", max_rows_per_file=320).snapshot
    runner = PicklingRunner()
    sizes = TaskSizes(rows_per_bucket=320, rows_per_part=320)
    distributed_merge(target, MergeRequest(("id",), WhenMatched.UPDATE), SourceRows.of(source), runner, sizes=sizes)
    run = dict(runner.jobs)
    assert run == {"merge (keys) into": 4, "merge (join) into": 2, "merge (rows) into": 4}

    before, *steps, commit = drive(str(tmp_path), 64, 640, 320, sizes)
    assert before.startswith("before: ")
    assert commit.startswith("commit: 66 fragments; ")
    first = 0
    for line, num_tasks in zip(steps, run.values(), strict=True):
        found = re.search(r"(\d+) tasks, ([\d,]+) B sent, .* ([\d,]+) B back", line)
        assert found is not None
        shown = [int(each.replace(",", "")) for each in found.groups()]
        real = [num_tasks, sum(runner.task_bytes[first:][:num_tasks]), sum(runner.outcome_bytes[first:][:num_tasks])]
        assert shown[0] == real[0]
        assert all(0.8 < one / other < 1.25 for one, other in zip(shown[1:], real[1:], strict=True)), (line, real)
        first += num_tasks
