"""The script that measures a driver whose tasks build an index of a table of many fragments."""

from __future__ import annotations

import re
from pathlib import Path

from lance_ops.maintenance.indexing import TaskSizes
from tests.bench.index_driver import drive


def test_the_driver_sees_messages_of_one_key_a_page_and_commits_the_index(tmp_path: Path) -> None:
    before, *steps, commit = drive(str(tmp_path), 40, 100_000, TaskSizes(least_bytes=1, task_bytes=640_000))
    assert before.startswith("before: ")
    assert len(steps) == 2
    for line in steps:
        found = re.match(r"index.*: [34] tasks, ([\d,]+) B sent, ([\d,]+) B back", line)
        assert found is not None, line
        assert all(int(size.replace(",", "")) < 20_000 for size in found.groups())  # the keys have 800,000
    assert commit.startswith("commit: an index of 0 MB over 40 fragments; ")
