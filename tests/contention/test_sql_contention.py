"""Two processes change one table by SQL of Spark, beside compactions: no change is lost, and none is made twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_ops
from tests.contention.sql_writer import OWN_IDS

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.interop, pytest.mark.usefixtures("on_disk")]

_ROWS = 2000
_SECONDS = 60


@pytest.mark.parametrize("stable", [False, True])
def test_each_change_by_sql_is_made_once(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    zeros = [0] * _ROWS
    columns = {"id": range(_ROWS), "n": zeros, "u0": zeros, "u1": zeros, "kind": ["kept"] * _ROWS}
    lance_ops.write_dataset(pa.table(columns), uri, max_rows_per_file=400, enable_stable_row_ids=stable)
    commands = [[sys.executable, "-m", "tests.contention.sql_writer", uri, str(i), str(_SECONDS)] for i in (0, 1)]
    writers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        for command in commands
    ]
    changed = [json.loads(writer.communicate()[0].strip().splitlines()[-1]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]

    dataset = lance_ops.dataset(uri)
    rows = dataset.to_table().to_pylist()
    kept = [row for row in rows if row["kind"] == "kept"]
    assert sorted(row["id"] for row in kept) == [*range(_ROWS)]
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(row["n"] == row["u0"] + row["u1"] for row in kept)
    for number, counts in enumerate(changed):
        assert counts["updated"] and counts["merged"], counts
        assert sum(row[f"u{number}"] for row in kept) == counts["updated"] + counts["merged"]
        own = [row for row in rows if row["id"] // OWN_IDS == number + 1]
        assert len(own) == counts.get("inserted", 0) - counts.get("deleted", 0)
    assert not dataset.verify().findings
    assert lance.dataset(uri).to_table().num_rows == len(rows)
