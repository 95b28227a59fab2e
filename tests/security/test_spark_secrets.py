"""Secrets planted in storage options come out of no part of Spark: plans, event log, REST API, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.groups import OWN_SESSIONS
from tests.security.planted import found_in, found_in_files

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@OWN_SESSIONS
@pytest.mark.server
@pytest.mark.timeout(900)  # a session of its own, with cold workers, on a machine that other tests use
def test_a_session_shows_no_storage_option(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.security.spark_session", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=850)
    shown = tmp_path / "shown"
    assert ended.returncode == 0, ended.stderr[-3000:]
    done = json.loads((shown / "done.json").read_text())
    assert done["rows"] == 4 + 2
    assert not found_in(ended.stdout + ended.stderr)
    assert not found_in_files(shown, tmp_path / "events", tmp_path / "table.lance")
    # The search was worth something: the plans, the failures and the statements are all there.
    assert len(list(shown.glob("error-*.txt"))) == 5
    assert done["format"] in ended.stdout and done["format"] in (shown / "sql.txt").read_text()
    events = "".join(path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file())
    assert "SparkListenerSQLExecutionStart" in events and "BatchScan" in events
    assert "redacted" in events  # what a query wrote as an option of `format("lance")`
