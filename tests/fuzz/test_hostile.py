"""Hostile files, read in a child process: each within limits of time and memory, and only with typed errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.fuzz.bombs import BOMBS


def test_hostile_files_give_rows_or_typed_errors_within_limits() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "error", "-m", "tests.fuzz.survey"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bombs"] == {name: outcome for name, (_, outcome) in BOMBS.items()}
    assert set(found["cut"]) == {"ChecksumMismatch", "CorruptFile"}
    assert found["mutated"]["CorruptFile"] > 100 and found["mutated"]["rows"] > 50
    assert found["manifests"]["CorruptFile"] > 5 and found["manifests"]["rows"] > 5
    assert found["deletions"]["CorruptFile"] > 5
