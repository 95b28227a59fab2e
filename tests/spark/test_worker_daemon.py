"""Workers are forked from a process that has loaded what they read with: a first task imports next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lance_ops.api import write_dataset
from lance_ops.spark.session import DAEMON_MODULE
from lance_ops.spark.worker_daemon import serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_TASKS = """
import os, sys
from lance_ops.spark.worker_daemon import serving

def in_worker(work):
    if os.fork() == 0:
        before = set(sys.modules)
        work()
        print(*sorted(sys.modules.keys() - before), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0

def read():
    from lance_ops.spark.data_source import LanceReader, SourceOptions
    from pyspark.sql.types import LongType, StructField, StructType
    rows = StructType([StructField("integers", LongType())])
    reader = LanceReader(SourceOptions.parse({"path": sys.argv[2]}), rows)
    assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == 2048

def write_frame():
    import pickle
    from pyspark import TaskContext
    from lance_ops.spark.data_source import SourceOptions, plan_write
    from lance_ops.spark.running import Attempts
    from lance_ops.spark.running.row_job import _RowTask
    rows = serving._rows().rename_columns(["integers", "floats", "texts", "vectors", "nulls"])
    plan = plan_write(SourceOptions.parse({"path": sys.argv[1] + "-frame"}), rows.schema, "append")
    TaskContext._getOrCreate()._partitionId = 0
    (reported,) = _RowTask(Attempts(plan.write, 1, "0" * 16), tuple(rows.column_names))(rows.to_batches())
    index, outcome = pickle.loads(reported.column(0)[0].as_py())
    assert sum(fragment.physical_rows for fragment in pickle.loads(outcome)) == 2048

def write():
    import lance_ops
    written = lance_ops.write_dataset(serving._rows(), sys.argv[1], max_rows_per_file=1024)
    assert lance_ops.dataset(written.uri).to_table().num_rows == 2048
    lance_ops.dataset(written.uri).optimize.compact_files()

for load, work in ((None, read), (None, write_frame), (serving.preload, write)):
    if load is not None:
        load()
    print(*({"numba", "fsspec", "pandas", "pyarrow.dataset", "sqlglot", "s3fs"} & sys.modules.keys()), flush=True)
    in_worker(work)
"""
_FORKS = """
import os, signal, time
from lance_ops.spark.worker_daemon import serving

loaded = []

def in_worker():
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)  # an alarm would end a worker that forks

def serve():
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 600
    serving._SECONDS_WITHOUT_FORK = 0.01
    child = os.fork()
    if child == 0:
        try:
            in_worker()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    deadline = time.monotonic() + 120
    while not loaded and time.monotonic() < deadline:
        time.sleep(0.01)
    assert loaded == [os.getpid()]
    if os.fork() == 0:
        os._exit(0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)  # it is loaded once

serving._SECONDS_WITHOUT_FORK = 3600
serving.preload = lambda: loaded.append(os.getpid())
serving.manager = serve
serving.serve()
"""


def run(code: str, *arguments: str) -> list[str]:
    """Return the lines that a process prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_worker_inherits_modules_and_kernels_but_no_heavy_package_that_tasks_do_not_need(tmp_path: Path) -> None:
    stored = write_dataset(serving._rows(), str(tmp_path / "stored"))
    lines = run(_FIRST_TASKS, str(tmp_path / "table"), stored.uri)
    at_first, for_reads, _, for_frames, then, for_writes = lines
    assert at_first.split() == []
    for imported in (for_reads, for_frames):
        assert imported
        assert not {"numba", "pandas"} & set(imported.split())
    assert sorted(then.split()) == ["fsspec", "numba", "pyarrow.dataset"]
    # The daemon reads no file at first, and what it writes is in memory. So what a local disk needs remains.
    casts = [f"lance_ops.spark.translation.{name}" for name in ("type_casts", "task_clock", "store_assignment")]
    late = ("lance_ops.store.", "lance_ops.kernels.", "lance_ops.core.local_times", *casts)
    for imported, expected in ((for_reads, late), (for_writes, ("lance_ops.store.local",))):
        own = [name for name in imported.split() if name.startswith("lance_ops.")]
        assert own
        assert [name for name in own if not name.startswith(expected)] == []


def test_the_daemon_loads_the_rest_once_after_its_last_fork() -> None:
    assert run(_FORKS) == []


@pytest.mark.spark
def test_the_session_forks_its_workers_from_this_daemon(spark: SparkSession) -> None:
    def look(_: int) -> tuple[bytes, bool, str]:
        import sys
        from pathlib import Path

        import pyspark

        command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
        return command, "lance_ops.file.v2_1.page_reader" in sys.modules, pyspark.__file__

    for command, is_loaded, imported_from in spark.sparkContext.parallelize(range(2), 2).map(look).collect():
        assert DAEMON_MODULE.encode() in command.split(b"\0")
        assert is_loaded
        assert Path(imported_from).is_file()  # not in an archive, whose modules each process compiles


def test_a_daemon_that_cannot_load_the_rest_serves_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError("the cache is on a full disk")

    monkeypatch.setattr(serving, "preload", fail)
    monkeypatch.setattr("gc.freeze", lambda: None)
    serving._load_the_rest()
    assert "the cache is on a full disk" in capsys.readouterr().err
