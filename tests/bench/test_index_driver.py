"""The script that measures a driver whose tasks build an index."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bench.index_driver import build


def test_the_driver_sees_messages_of_one_key_a_page_and_checks_the_index(tmp_path: Path) -> None:
    before, train, merge, assemble = build(str(tmp_path), 100_000, run_rows=40_000)
    assert before.startswith("before: ")
    for line, name in ((train, "train"), (merge, "merge")):
        found = re.match(rf"{name}: 3 tasks, (\d+) B sent, (\d+) B back", line)
        assert found is not None
        assert all(int(size) < 12_000 for size in found.groups())  # the keys have 800,000
    assert assemble.startswith("assemble: ")
