"""Two standalone workers, processes of their own, are killed at random while a driver changes a table on S3.

`SPARK_SOAK_MINUTES` says how long, ten by default. Nothing may be lost, and nothing may be there twice.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.compute as pc
import pyspark
import pytest

import lance_ops
from lance_ops.spark.java import find_java
from tests.s3_server import moto_server
from tests.spark.faults.standalone import ROWS

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.server]

_START_SECONDS = 300.0
_SECONDS_BETWEEN_KILLS = (10.0, 40.0)
SCRIPT = Path(__file__).with_name("standalone.py")


def start(command: list[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a process group, which has the executors of a worker, too."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **environment}, start_new_session=True
        )


@contextmanager
def process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a process group of its own, and kill the group in the end."""
    started = start(command, log, environment)
    try:
        yield started
    finally:
        kill(started)


def kill(group: subprocess.Popen[bytes]) -> None:
    """Kill a process and everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(group.pid, signal.SIGKILL)
    group.wait()


def wait_for(found: Callable[[], str | None], what: str) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (seen := found()) is not None:
            return seen
        time.sleep(0.2)
    raise AssertionError(f"no {what} after {_START_SECONDS:.0f} s")


def in_log(log: Path, pattern: str) -> str | None:
    seen = re.search(pattern, log.read_text(errors="replace"))
    return None if seen is None else seen[1]


def test_nothing_is_lost_or_doubled_while_workers_are_killed(tmp_path: Path) -> None:
    seconds, chance = 60 * float(os.environ.get("SPARK_SOAK_MINUTES", "10")), random.Random(17)
    root = str(Path(__file__).parents[3])
    environment = {
        "JAVA_HOME": str(find_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    run = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    master = [*run, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    log, stop, said = tmp_path / "master.log", tmp_path / "stop", tmp_path / "driver.log"
    with moto_server() as server, process(master, log, environment):
        url = wait_for(lambda: in_log(log, r"Starting Spark master at (spark://\S+)"), "master")
        worker = [*run, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "1g"]
        uri, options = server.new_uri("table.lance"), server.storage_options
        environment["STORAGE_OPTIONS"] = json.dumps(options)
        driver = [sys.executable, "-W", "ignore", str(SCRIPT), url, uri, str(stop)]
        workers: list[subprocess.Popen[bytes]] = []

        def start_worker() -> subprocess.Popen[bytes]:
            return start([*worker, "--webui-port", "0", url], tmp_path / "workers.log", environment)

        try:
            workers += [start_worker(), start_worker()]
            with process(driver, said, environment) as running:
                wait_for(lambda: in_log(said, r"(done 0)"), f"first step in {said}")
                ends, kills = time.monotonic() + seconds, 0
                while time.monotonic() < ends:
                    time.sleep(min(chance.uniform(*_SECONDS_BETWEEN_KILLS), max(0.0, ends - time.monotonic())))
                    position = chance.randrange(len(workers))
                    kill(workers[position])
                    workers[position], kills = start_worker(), kills + 1
                    assert running.poll() is None, said.read_text()
                stop.touch()
                running.wait(_START_SECONDS)
        finally:
            for each in workers:
                kill(each)
        steps = len(re.findall(r"^done \d+$", said.read_text(), re.MULTILINE))
        table = lance_ops.dataset(uri, storage_options=options)
        ids, touched = (table.to_table([name])[name] for name in ("id", "touched"))
        assert kills >= 1 and running.returncode == 0, said.read_text()
        # the last step may have ended between its append and its merge
        assert len(ids) in (steps * ROWS, (steps + 1) * ROWS)
        assert sorted(ids.to_pylist()) == list(range(len(ids)))
        assert pc.sum(touched).as_py() >= steps * ROWS // 2
        assert table.verify().ok
        print(f"{steps} steps, {kills} kills, {said.read_text().count('again')} repetitions")
