"""Compact a table on a cluster that speculates, with a task that lags; print what came of it as one line of JSON.

The arguments are the master and a folder. Spark starts a second attempt on another host only, so this needs two workers
under different host names.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lance_ops.spark import OnSpark, get_or_create
from tests.spark.faults.struck_verbs import strike_verb

T = TypeVar("T")
R = TypeVar("R")

_CONFIG = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.quantile": "0.5",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",  # Spark starts no second attempt of a stage's only task
    "spark.driver.memory": "1g",
}


def lag(function: Callable[[T], R], task: T) -> R:
    """Write the task's files, and report so late that Spark starts a second attempt and kills this one."""
    function(task)
    time.sleep(300)
    raise AssertionError("Spark has started no second attempt, or did not end this one")


def main(master: str, folder: Path) -> None:
    """Strike a compaction; the lagging task is tried again beside its first attempt."""
    session = get_or_create("speculation", master=master, config=_CONFIG)
    session.sparkContext.setLogLevel("OFF")
    print(json.dumps(strike_verb(OnSpark(session), "compaction", lag, folder, stays=False)), flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
