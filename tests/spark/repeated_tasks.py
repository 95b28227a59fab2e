"""Run failing tasks on a Spark master that tries each four times; print what came of them as one line of JSON.

Each function runs as the task of a plan, and with the rows of a DataFrame. A session has one master, so this needs a
process of its own. The argument is a folder for marks of the attempts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lance_ops.core.errors import CorruptFile, StoreError
from lance_ops.runners import Job
from lance_ops.spark import OnSpark, get_or_create
from lance_ops.spark.running import map_rows


def mark(folder: str) -> int:
    """Leave a mark, and return how many marks were there."""
    earlier = len(os.listdir(folder))
    Path(folder, str(earlier)).touch()
    return earlier


def fail_twice(folder: str) -> str:
    if mark(folder) < 2:
        raise StoreError("503 Slow Down")
    return "done"


def fail_always(folder: str) -> str:
    mark(folder)
    raise StoreError("503 Slow Down")


def die_twice(folder: str) -> str:
    if mark(folder) < 2:
        os._exit(3)
    return "done"


def find_damage(folder: str) -> str:
    mark(folder)
    raise CorruptFile("file-1", "footer", "is torn")


TASKS: dict[str, Callable[[str], str]] = {
    "a store that is too busy at first": fail_twice,
    "a store that stays too busy": fail_always,
    "a worker that dies at first": die_twice,
    "a file that is damaged": find_damage,
}


@dataclass(frozen=True)
class AfterRows:
    """Calls a function of a folder when it has seen all rows."""

    function: Callable[[str], str]
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> str:
        assert sum(batch.num_rows for batch in batches) == 1
        return self.function(self.folder)


def came_of(run: Callable[[str], str], folder: Path) -> dict[str, Any]:
    """Return the outcome or the error, and the number of attempts."""
    folder.mkdir()
    try:
        outcome = run(str(folder))
    except Exception as error:  # noqa: BLE001 - it is what the test compares
        outcome = f"{type(error).__name__}: {error}"
    return {"outcome": outcome, "attempts": len(os.listdir(folder))}


def came_of_each_task(session: SparkSession, scratch: Path) -> dict[str, Any]:
    """Run each function as the task of a plan, and with the rows of a DataFrame."""
    row = session.range(1)

    def of_task(function: Callable[[str], str], folder: str) -> str:
        return OnSpark(session).map(function, [folder])[0]

    def of_rows(function: Callable[[str], str], folder: str) -> str:
        return map_rows(row.coalesce(1), AfterRows(function, folder), Job("look at", "rows"))[0]

    return {
        way.__name__: {
            name: came_of(partial(way, function), scratch / f"{name} {way.__name__}")
            for name, function in TASKS.items()
        }
        for way in (of_task, of_rows)
    }


def main(scratch: Path) -> None:
    """Run the functions in a session of this process."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    session = get_or_create("repeated tasks", master="local[2,4]", config={"spark.driver.memory": "1g"})
    print(json.dumps(came_of_each_task(session, scratch)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
