"""Workers are forked from a process that has loaded the library, so a first task imports next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lance_ops.spark import worker_daemon
from lance_ops.spark.session import DAEMON_MODULE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_TASKS = """
import os, sys
from lance_ops.spark import worker_daemon
worker_daemon.preload()
print(*({"numba", "pandas", "sqlglot", "s3fs"} & sys.modules.keys()), flush=True)
if os.fork() == 0:
    before = set(sys.modules)
    import lance_ops
    written = lance_ops.write_dataset(worker_daemon._rows(), sys.argv[1], max_rows_per_file=1024)
    assert lance_ops.dataset(written.uri).to_table().num_rows == 2048
    lance_ops.dataset(written.uri).optimize.compact_files()
    print(*sorted(sys.modules.keys() - before), flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_worker_inherits_modules_and_kernels_but_no_heavy_package_that_tasks_do_not_need(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _FIRST_TASKS, str(tmp_path / "table")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    packages, imported = done.stdout.splitlines()
    assert packages.split() == ["numba"]
    own = [name for name in imported.split() if name.startswith("lance_ops.")]
    assert own  # the table that the daemon makes is in memory, so what a local disk needs remains
    assert [name for name in own if not f"{name}.".startswith("lance_ops.store.local.")] == []


@pytest.mark.spark
def test_the_session_forks_its_workers_from_this_daemon(spark: SparkSession) -> None:
    def look(_: int) -> tuple[bytes, bool]:
        import sys
        from pathlib import Path

        return Path(f"/proc/{os.getppid()}/cmdline").read_bytes(), "lance_ops.file.v2_1.page_encoder" in sys.modules

    for command, is_loaded in spark.sparkContext.parallelize(range(2), 2).map(look).collect():
        assert DAEMON_MODULE.encode() in command.split(b"\0")
        assert is_loaded


def test_a_daemon_that_cannot_load_the_library_serves_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError("the cache is on a full disk")

    served: list[bool] = []
    monkeypatch.setattr(worker_daemon, "preload", fail)
    monkeypatch.setattr(worker_daemon, "manager", lambda: served.append(True))
    monkeypatch.setattr("gc.freeze", lambda: None)
    worker_daemon.main()
    assert served == [True]
    assert "the cache is on a full disk" in capsys.readouterr().err
