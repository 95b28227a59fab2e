"""Spark runs a second attempt of a task beside the first: the table has the rows once, and one file is left over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from lance_ops.spark.java import find_java
from tests.spark.faults.test_soak import in_log, process, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.spark]

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux answers at each address of 127.0.0.0/8")
def test_a_task_that_spark_runs_twice_is_committed_once(tmp_path: Path) -> None:
    run = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    log, said = tmp_path / "master.log", tmp_path / "driver.log"
    environment = {
        "JAVA_HOME": str(find_java()),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    master = [*run, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        stack.enter_context(process(master, log, {**environment, "SPARK_LOCAL_IP": "127.0.0.1"}))
        url = wait_for(lambda: in_log(log, r"Starting Spark master at (spark://\S+)"), "master")
        for host in ("127.0.0.1", "127.0.0.2"):
            worker = [*run, "org.apache.spark.deploy.worker.Worker", "--host", host, "-c", "1", "-m", "1g"]
            local = {**environment, "SPARK_LOCAL_IP": host}
            stack.enter_context(process([*worker, "--webui-port", "0", url], tmp_path / f"{host}.log", local))
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.spark.faults.speculation",
            url,
            str(tmp_path / "struck"),
        ]
        driver = {**os.environ, **environment, "SPARK_LOCAL_IP": "127.0.0.1"}
        with said.open("w") as errors:
            done = subprocess.run(
                command,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=driver,
                timeout=280,
                check=False,
            )
    assert done.returncode == 0, said.read_text()[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["struck"] and found["after"], found
    assert (found["left over"], found["removed"], found["stayed"]) == (1, 1, 0)
